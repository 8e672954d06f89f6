package sniff

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/gabriel-vasile/mimetype"

	"claimcheck.dev/claimcheck/shared/mediatype"
)

// finding is what the bytes show.
type finding struct {
	kind     string   // media type to report, "" when nothing is known
	families []string // families of which the bytes show the signature
	also     []string // families that agree too, but not their relatives
	text     bool     // the bytes may be called text
	// pdfMarker is set when "%PDF-" lies within the first 1024 bytes, but not
	// at their start, and nothing else says that this is a PDF: it may be junk
	// before a PDF, or prose about PDF.
	pdfMarker bool
}

// binaryFinding is the finding for a kind that is not text. Kinds without a row
// in the table are families of their own.
func binaryFinding(kind string) finding {
	families := familiesOf(strings.ToLower(kind))
	if len(families) == 0 {
		return finding{kind: kind, families: []string{kind}}
	}
	return finding{kind: kind, families: families[:1]}
}

// shows reports whether the bytes agree with a declared family: the same one,
// a descendant of it, or an ancestor ("still undecided: the parent").
func (f finding) shows(declared string) bool {
	for _, shown := range f.families {
		if shown == declared || isAncestor(declared, shown) || isAncestor(shown, declared) {
			return true
		}
	}
	return slices.Contains(f.also, declared)
}

// detect finds what the bytes are. The error is that of tail.
func detect(ctx context.Context, head []byte, size int64, tail Tail) (finding, error) {
	if len(head) == 0 {
		return finding{text: true}, nil
	}
	cut := size > int64(len(head))
	if decoded, ok := decodeWide(head); ok {
		kind, _ := fromLibrary(decoded)
		return finding{kind: refineText(decoded, cut, kind), text: true}, nil
	}
	body := bytes.TrimPrefix(head, []byte(utf8BOM))
	switch {
	case isZip(body):
		if len(body) < len(head) {
			// Behind a BOM no offset in the archive is right.
			return binaryFinding("application/zip"), nil
		}
		return detectZip(ctx, head, size, tail)
	case isOLE(body):
		return detectOLE(body), nil
	case isBMFF(body):
		return detectBMFF(body), nil
	}
	return detectFlat(body, cut), nil
}

// textualKinds have a signature and are text all the same: they may be declared
// as either.
var textualKinds = map[string]bool{
	"application/pkcs7-signature":   true,
	"application/postscript":        true,
	"application/rtf":               true,
	"application/vnd.apple.mpegurl": true,
	"application/vnd.fdf":           true,
	"application/x-bittorrent":      true,
	"image/vnd.dxf":                 true,
	"image/x-portable-bitmap":       true,
	"image/x-portable-graymap":      true,
	"image/x-portable-pixmap":       true,
	"image/x-xpixmap":               true,
}

// shortMagic are the kinds whose signature is so short that text meets it by
// accident. Evident text that does is text and nothing else.
var shortMagic = map[string]bool{
	"application/vnd.microsoft.portable-executable": true, // MZ
	"application/x-bzip2":                           true, // BZh
	"application/x-shockwave-flash":                 true, // FWS
	"application/zlib":                              true, // "x "
	"audio/musepack":                                true, // MP+
	"image/x-gimp-gbr":                              true, // GIMP as bytes 20 to 23
	"image/x-gimp-pat":                              true,
}

// detectFlat finds the kind of anything but the containers.
func detectFlat(body []byte, cut bool) finding {
	marker := pdfMarkerAt(body)
	if marker >= 0 && len(bytes.TrimLeft(body[:marker], "\x00\t\n\v\f\r ")) == 0 {
		return binaryFinding("application/pdf")
	}
	if marker >= 0 {
		// The library calls everything with the marker a PDF. Hide it to see
		// what stands before: a tar, an image, prose.
		body = bytes.Clone(body)
		copy(body[marker:], "%pdf-")
	}
	found := detectSignature(body, cut)
	if marker >= 0 && (found.text || found.kind == "" || shortMagic[found.kind]) {
		if !found.text || isPDFBody(body, marker) {
			return binaryFinding("application/pdf")
		}
		found.pdfMarker = true
	}
	return found
}

// detectSignature asks the own table, then the library, and settles whether a
// binary signature in what is evidently text counts.
func detectSignature(body []byte, cut bool) finding {
	kind, isText := matchSignature(body), false
	if kind == "" {
		kind, isText = fromLibrary(body)
	}
	if kind == "" && bytes.HasPrefix(body, []byte("\x1a\x45\xdf\xa3")) {
		// EBML whose document type stands where the library does not look.
		kind = "video/matroska"
	}
	hasNUL := bytes.IndexByte(body, 0) >= 0
	switch {
	case isText, kind == "":
		if hasNUL {
			return finding{}
		}
		return finding{kind: refineText(body, cut, kind), text: true}
	case kind == "application/zlib" && !hasNUL && validUTF8(body):
		return finding{kind: refineText(body, cut, ""), text: true}
	case kind == id3Only:
		found := binaryFinding("audio/mpeg")
		found.also = []string{"aac", "flac", "ape", "tta", "musepack", "wavpack"}
		return found
	}
	found := binaryFinding(kind)
	if !isProse(body, kind) {
		return found
	}
	// A signature that consists of letters may open a text: "MThd is the first
	// chunk of a MIDI file". The bytes then agree with both.
	found.text = true
	if !textualKinds[kind] {
		found.kind = "text/plain"
		if shortMagic[kind] {
			found.families = nil
		}
	}
	return found
}

// fromLibrary returns the library's answer without parameters, "" for none, and
// whether it is a kind of text.
func fromLibrary(body []byte) (kind string, isText bool) {
	found := mimetype.Detect(body)
	kind = mediatype.Base(found.String())
	if kind == "application/octet-stream" || kind == "image/x-icon" && !isIcon(body) {
		return "", false
	}
	for m := found; m != nil; m = m.Parent() {
		if m.Is("text/plain") {
			return kind, true
		}
	}
	return kind, false
}

const pdfMarker = "%PDF-"

// pdfMarkerAt returns where in the first 1024 bytes the PDF marker is, or -1.
func pdfMarkerAt(body []byte) int {
	return bytes.Index(body[:min(len(body), 1024)], []byte(pdfMarker))
}

// isPDFBody tells a PDF behind leading text from prose that mentions the
// marker: the marker starts a line, names a version, and objects follow.
func isPDFBody(body []byte, marker int) bool {
	lineStart := marker == 0 || body[marker-1] == '\n' || body[marker-1] == '\r'
	rest := body[marker+len(pdfMarker):]
	isDigit := func(i int) bool { return i < len(rest) && '0' <= rest[i] && rest[i] <= '9' }
	return lineStart && isDigit(0) && isDigit(2) && rest[1] == '.' && bytes.Contains(rest, []byte(" obj"))
}

// declaresPDF reports whether a type would be satisfied by a PDF.
func declaresPDF(declared string) bool {
	return slices.Contains(familiesOf(declared), "pdf")
}
