package httpapi

import (
	"strings"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
)

// FileObject is a file as the API shows it.
type FileObject struct {
	File         string            `json:"file"`
	ID           string            `json:"id"`
	State        files.State       `json:"state"`
	Purpose      files.Purpose     `json:"purpose"`
	Filename     string            `json:"filename"`
	ContentType  string            `json:"content_type"`
	DetectedType *string           `json:"detected_type"`
	SizeBytes    *int64            `json:"size_bytes"`
	SHA256       *string           `json:"sha256"`
	SingleUse    bool              `json:"single_use"`
	Metadata     map[string]string `json:"metadata"`
	Actor        string            `json:"actor"`
	Run          *string           `json:"run"`
	CreatedAt    time.Time         `json:"created_at"`
	UploadBy     time.Time         `json:"upload_by"`
	ExpiresAt    time.Time         `json:"expires_at"`
	Reason       *ReasonObject     `json:"reason,omitempty"`
}

// ReasonObject says why a file was rejected.
type ReasonObject struct {
	Code     string  `json:"code"`
	Detail   string  `json:"detail"`
	Declared *string `json:"declared,omitempty"`
	Detected *string `json:"detected,omitempty"`
}

// NewFileObject shows f with handles of the given prefix. Its state is the one at now.
func NewFileObject(prefix string, f files.File, now time.Time) FileObject {
	return FileObject{
		File:         prefix + f.ID,
		ID:           f.ID,
		State:        f.At(now),
		Purpose:      f.Purpose,
		Filename:     f.Filename,
		ContentType:  f.ContentType,
		DetectedType: nullable(detectedType(f)),
		SizeBytes:    knownSize(f.Size),
		SHA256:       nullable(f.SHA256),
		SingleUse:    f.SingleUse,
		Metadata:     metadata(f.Metadata),
		Actor:        f.Actor,
		Run:          nullable(f.Run),
		CreatedAt:    f.CreatedAt.UTC(),
		UploadBy:     f.UploadBy.UTC(),
		ExpiresAt:    f.ExpiresAt.UTC(),
		Reason:       reasonObject(f.Reason),
	}
}

// UploadObject is a reservation as the API shows it. Upload and Curl are null once the file isn't reserved any more.
type UploadObject struct {
	File         string            `json:"file"`
	ID           string            `json:"id"`
	State        files.State       `json:"state"`
	Purpose      files.Purpose     `json:"purpose"`
	Filename     string            `json:"filename"`
	ContentType  string            `json:"content_type"`
	SizeBytes    *int64            `json:"size_bytes"`
	SHA256       *string           `json:"sha256"`
	SingleUse    bool              `json:"single_use"`
	Metadata     map[string]string `json:"metadata"`
	Upload       *UploadRequest    `json:"upload"`
	Curl         *string           `json:"curl"`
	MaxSizeBytes int64             `json:"max_size_bytes"`
	CreatedAt    time.Time         `json:"created_at"`
	UploadBy     time.Time         `json:"upload_by"`
	ExpiresAt    time.Time         `json:"expires_at"`
	Reason       *ReasonObject     `json:"reason,omitempty"`
}

// UploadRequest is the presigned request that stores the bytes. Headers is exactly what the client must send.
type UploadRequest struct {
	Method    string            `json:"method"`
	URL       string            `json:"url"`
	ExpiresAt time.Time         `json:"expires_at"`
	Headers   map[string]string `json:"headers"`
}

// NewUploadObject shows a reservation.
func NewUploadObject(prefix string, r files.Reservation, maxSize int64, now time.Time) UploadObject {
	f := r.File
	o := UploadObject{
		File:         prefix + f.ID,
		ID:           f.ID,
		State:        f.At(now),
		Purpose:      f.Purpose,
		Filename:     f.Filename,
		ContentType:  f.ContentType,
		SizeBytes:    knownSize(f.Size),
		SHA256:       nullable(f.SHA256),
		SingleUse:    f.SingleUse,
		Metadata:     metadata(f.Metadata),
		MaxSizeBytes: maxSize,
		CreatedAt:    f.CreatedAt.UTC(),
		UploadBy:     f.UploadBy.UTC(),
		ExpiresAt:    f.ExpiresAt.UTC(),
		Reason:       reasonObject(f.Reason),
	}
	if up := r.Upload; up != nil {
		o.Upload = &UploadRequest{Method: up.Method, URL: up.URL, ExpiresAt: up.ExpiresAt.UTC(), Headers: up.Headers}
		line := curlLine(f.Filename, *up)
		o.Curl = &line
	}
	return o
}

// curlLine is a command that uploads a file of the given name from the current folder, safe to paste into a POSIX
// shell whatever the name holds. curl sends the length itself; ./ keeps names such as - and @x plain file names, and
// --globoff keeps brackets literal.
func curlLine(filename string, up files.SignedRequest) string {
	var b strings.Builder
	b.WriteString("curl --fail-with-body --globoff -X " + up.Method + " -T " + shellQuote("./"+filename))
	for _, name := range sortedKeys(up.Headers) {
		if name != "Content-Length" {
			b.WriteString(" -H " + shellQuote(name+": "+up.Headers[name]))
		}
	}
	b.WriteString(" " + shellQuote(up.URL))
	return b.String()
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// LinkObject is a signed download as the API shows it.
type LinkObject struct {
	URL         string    `json:"url"`
	Method      string    `json:"method"`
	ExpiresAt   time.Time `json:"expires_at"`
	ContentType string    `json:"content_type"`
	SizeBytes   int64     `json:"size_bytes"`
	SHA256      string    `json:"sha256"`
	Filename    string    `json:"filename"`
}

// NewLinkObject shows a link.
func NewLinkObject(l files.Link) LinkObject {
	return LinkObject{
		URL: l.URL, Method: "GET", ExpiresAt: l.ExpiresAt.UTC(), ContentType: l.File.ContentType,
		SizeBytes: l.File.Size, SHA256: l.File.SHA256, Filename: l.File.Filename,
	}
}

// ClaimObject says what became of the file of a claim.
type ClaimObject struct {
	Claim string      `json:"claim"`
	State files.State `json:"state"`
}

func reasonObject(r *files.Reason) *ReasonObject {
	if r == nil {
		return nil
	}
	return &ReasonObject{Code: r.Code, Detail: r.Detail, Declared: nullable(r.Declared), Detected: nullable(r.Detected)}
}

// detectedType is what the bytes of f say, or "". Of rejected bytes only the reason tells.
func detectedType(f files.File) string {
	if f.DetectedType == "" && f.Reason != nil {
		return f.Reason.Detected
	}
	return f.DetectedType
}

// nullable shows an unknown value as null.
func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func knownSize(n int64) *int64 {
	if n == files.SizeUnknown {
		return nil
	}
	return &n
}

func metadata(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}
