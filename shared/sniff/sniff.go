// Package sniff decides whether the bytes of an object agree with the media
// type its uploader declared. The signatures come from
// github.com/gabriel-vasile/mimetype; this package holds the policy above them.
//
// Check looks at the first HeadBytes of an object and, for ZIP containers
// whose head does not settle what they hold, at one range of TailBytes at the
// end. A declared type falls in one of three groups:
//
//   - Text (text/*, JSON, XML, YAML, CSV, source code ...): the bytes must look
//     like text. Which text it is never matters. See text.go.
//   - Well known (PDF, images, audio, video, archives, Office, ...): the bytes
//     must show the signature of the type's family or of the family's parent.
//     families.go lists the families and their relations.
//   - Everything else, application/octet-stream included: always passes.
//
// Where the pieces are: detect.go turns bytes into a finding; magic.go has the
// signatures that the library lacks; bmff.go, ole.go, zip.go and zipkind.go
// look inside the containers that many types share.
package sniff

import (
	"context"

	"claimcheck.dev/claimcheck/shared/mediatype"
)

const (
	// HeadBytes is how much of the start of an object Check can use.
	HeadBytes = 4096
	// TailBytes is how much of the end of a ZIP container Check may ask for.
	TailBytes = 65536
)

// Tail returns up to n bytes from the end of the object. It is called at most
// once, and only for ZIP containers whose head does not settle the kind. It may
// return fewer bytes than asked for, but always the last ones.
type Tail func(ctx context.Context, n int64) ([]byte, error)

// Result is what Check found.
type Result struct {
	// Detected is the media type that the bytes show, without parameters:
	// "text/plain" for text of no recognised kind, "" when nothing is known.
	Detected string
	// OK is true when the bytes agree with the declared type.
	OK bool
}

// Check compares a declared media type (parameters are ignored) with the bytes
// of an object of size bytes, of which head is the first HeadBytes or fewer.
// The only error is the one returned by tail; tail may be nil, and a container
// is then judged by its head alone.
func Check(ctx context.Context, declared string, head []byte, size int64, tail Tail) (Result, error) {
	if len(head) > HeadBytes {
		head = head[:HeadBytes]
	}
	found, err := detect(ctx, head, max(size, int64(len(head))), tail)
	if err != nil {
		return Result{}, err
	}
	base := mediatype.Base(declared)
	if found.pdfMarker && declaresPDF(base) {
		// A PDF reader accepts the marker anywhere in the first 1024 bytes.
		return Result{Detected: "application/pdf", OK: true}, nil
	}
	return Result{Detected: found.kind, OK: agrees(base, found)}, nil
}

// agrees applies the policy for one declared type.
func agrees(declared string, found finding) bool {
	families := familiesOf(declared)
	if len(families) == 0 {
		return !isTextType(declared) || found.text
	}
	for _, family := range families {
		if family == textFamily {
			if found.text {
				return true
			}
			continue
		}
		if found.shows(family) {
			return true
		}
	}
	return false
}
