package files

import (
	"errors"
	"strings"
	"time"
)

// The refusals of the domain. Each has one row in the status table of package httpapi.
var (
	ErrFileNotFound        = errors.New("file not found")
	ErrNotUploaded         = errors.New("no bytes were uploaded yet")
	ErrUploadExpired       = errors.New("the reservation ended before its bytes arrived")
	ErrFileExpired         = errors.New("the file has expired")
	ErrFileSpent           = errors.New("the single-use file was spent")
	ErrFileDeleted         = errors.New("the file was deleted")
	ErrEmptyFile           = errors.New("the file is empty")
	ErrClaimRequired       = errors.New("a single-use file is read through a claim")
	ErrIdempotencyMismatch = errors.New("this Idempotency-Key came with another request before")
	ErrForbidden           = errors.New("the key lacks a scope")
	ErrUnauthorized        = errors.New("no valid credentials")

	// ErrTryAgain means that a dependency refused or a write conflict outlasted its retries; nothing is known to
	// be wrong with the request. Adapters wrap their cause with it.
	ErrTryAgain = errors.New("temporarily unavailable")
)

// Errors between this package and its adapters; no client sees them.
var (
	// ErrStateChanged is returned by a conditional write that found another state than the one it expects.
	ErrStateChanged = errors.New("the file is in another state")
	// ErrStagedChanged is returned when the staged object is no longer the one that was opened.
	ErrStagedChanged = errors.New("the staged object changed")
)

// FieldError is what is wrong with one field of a request.
type FieldError struct {
	Field   string
	Message string
}

// ValidationError reports every bad field of a request at once.
type ValidationError struct {
	Fields []FieldError
}

func (e *ValidationError) Error() string {
	parts := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		parts[i] = f.Field + ": " + f.Message
	}
	return strings.Join(parts, "; ")
}

// Add records a problem with field.
func (e *ValidationError) Add(field, message string) {
	e.Fields = append(e.Fields, FieldError{field, message})
}

// Err returns e, or nil when nothing was added.
func (e *ValidationError) Err() error {
	if len(e.Fields) == 0 {
		return nil
	}
	return e
}

// Invalid is a ValidationError for one field.
func Invalid(field, message string) error {
	return &ValidationError{Fields: []FieldError{{field, message}}}
}

// TooLargeError refuses more bytes than a limit allows.
type TooLargeError struct {
	Max    int64  // bytes
	Detail string // what to do instead
}

func (e *TooLargeError) Error() string { return "file too large" }

// LimitKind names a quota.
type LimitKind string

const (
	LimitBytes        LimitKind = "bytes"        // live bytes of an account
	LimitReservations LimitKind = "reservations" // open reservations of an actor
	LimitUnsized      LimitKind = "unsized"      // bytes an actor holds in reservations without a size
)

// LimitError refuses what would exceed a quota. RetryAfter is the time until the first hold that ends, at least a
// second. Bytes is what the refused file is charged: over a Max in bytes it would fit at no time.
type LimitError struct {
	Kind       LimitKind
	Max        int64
	Bytes      int64
	RetryAfter time.Duration
}

func (e *LimitError) Error() string { return "limit reached: " + string(e.Kind) }

// RejectedError says that the bytes of a file failed verification.
type RejectedError struct {
	File File // its Reason is set
}

func (e *RejectedError) Error() string { return "the file was rejected" }

// HandleError ties the refusal of one handle in a larger request to that handle.
type HandleError struct {
	Handle string
	Err    error
}

func (e *HandleError) Error() string { return e.Err.Error() }
func (e *HandleError) Unwrap() error { return e.Err }
