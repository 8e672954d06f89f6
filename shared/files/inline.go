package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// SealedWriter stores bytes that a function has in hand.
type SealedWriter interface {
	// PutSealed stores body as the sealed object of f. The name depends on f and the bytes alone, so a repeat changes
	// nothing. It is returned with an error too when the object may be there nevertheless.
	PutSealed(ctx context.Context, f File, body []byte) (Sealed, error)
	// Remove deletes a sealed object, if it exists.
	Remove(ctx context.Context, object string) error
}

// InlineRecords is what Inline needs of the table.
type InlineRecords interface {
	Creator
	Finder
	MarkReady(ctx context.Context, before File, verified Verified) (File, error)
}

// Inline stores small bodies in one request.
type Inline struct {
	Records   InlineRecords
	Objects   SealedWriter
	CheckType TypeCheck
	Limits    Limits // MaxFileBytes is the limit of inline bodies
	Now       func() time.Time
	NewID     func() string
}

// Create stores body as a ready file. The errors are those of Uploads.Reserve and *FailedVerificationError; after any
// of them nothing is stored or counted. Draft.Size is ignored, the body has one; a declared SHA-256 is compared.
func (s *Inline) Create(ctx context.Context, c Caller, d Draft, body []byte, idem *Idempotency) (File, error) {
	now := s.Now()
	size := int64(len(body))
	if size > s.Limits.MaxFileBytes {
		return File{}, &TooLargeError{
			Max:    s.Limits.MaxFileBytes,
			Detail: fmt.Sprintf("An inline body may have at most %d bytes. Reserve an upload with POST /v1/uploads and send the bytes to S3.", s.Limits.MaxFileBytes),
		}
	}
	d.Size = &size
	f, err := newFile(c, d, s.Limits, s.NewID(), now)
	if err != nil {
		return File{}, err
	}
	f.Counted = false // it is ready before the request ends
	digest := sha256.Sum256(body)
	sum := hex.EncodeToString(digest[:])
	if f.SHA256 != "" && f.SHA256 != sum {
		return File{}, &FailedVerificationError{Reason: Reason{Code: CodeChecksumMismatch, Detail: "The SHA-256 of the body is not the declared one. Send the bytes again."}}
	}
	f.SHA256 = sum
	detected, err := s.inspect(ctx, f, body)
	if err != nil {
		return File{}, err
	}
	f, repeated, err := create(ctx, s.Records, f, s.Limits.quota(), idem, now)
	if err != nil {
		return File{}, err
	}
	if gone := f.Gone(now); gone != nil || f.State != Reserved {
		return f, gone
	}
	return s.store(ctx, f, detected, body, idem, repeated)
}

func (s *Inline) inspect(ctx context.Context, f File, body []byte) (detected string, err error) {
	tail := func(_ context.Context, n int64) ([]byte, error) { return body[max(0, int64(len(body))-n):], nil }
	detected, ok, err := s.CheckType(ctx, f.ContentType, body[:min(HeadBytes, len(body))], int64(len(body)), tail)
	if err != nil {
		return "", fmt.Errorf("checking the type: %w", err)
	}
	if !ok {
		return "", &FailedVerificationError{Reason: *typeMismatch(f.ContentType, detected)}
	}
	return detected, nil
}

// store writes the bytes of a reserved inline file and marks it ready; when that fails it takes the reservation back.
func (s *Inline) store(ctx context.Context, f File, detected string, body []byte, idem *Idempotency, repeated bool) (File, error) {
	sealed, err := s.Objects.PutSealed(ctx, f, body)
	if err == nil {
		var ready File
		ready, err = s.Records.MarkReady(ctx, f, Verified{Sealed: sealed, Size: int64(len(body)), DetectedType: detected, At: s.Now()})
		if err == nil {
			return ready, nil
		}
		if errors.Is(err, ErrStateChanged) { // a parallel repeat was faster
			return s.settled(ctx, f.ID, sealed)
		}
	}
	err = fmt.Errorf("storing the bytes of %s: %w", f.ID, err)
	if repeated {
		return File{}, err // the first request answers for the reservation
	}
	ctx = context.WithoutCancel(ctx)
	undo := s.Records.Undo(ctx, f, idem)
	switch {
	case errors.Is(undo, ErrStateChanged): // it was marked ready after all
		return s.settled(ctx, f.ID, sealed)
	case undo != nil:
		return File{}, errors.Join(err, fmt.Errorf("taking back %s: %w", f.ID, undo))
	}
	return File{}, errors.Join(err, s.remove(ctx, f.ID, sealed))
}

// settled returns the file as another writer left it. Our object goes unless the record of a live file names it.
func (s *Inline) settled(ctx context.Context, id string, ours Sealed) (File, error) {
	current, err := s.Records.File(ctx, id)
	if errors.Is(err, ErrFileNotFound) {
		err = fmt.Errorf("%s was taken back meanwhile: %w", id, ErrTryAgain)
		return File{}, errors.Join(err, s.remove(ctx, id, ours))
	}
	if err != nil {
		return File{}, fmt.Errorf("reading %s again: %w", id, err)
	}
	if !current.uses(ours.Object) {
		if err := s.remove(ctx, id, ours); err != nil {
			return File{}, err
		}
	}
	return current, current.Gone(s.Now())
}

func (s *Inline) remove(ctx context.Context, id string, sealed Sealed) error {
	if sealed.Object == "" {
		return nil
	}
	if err := s.Objects.Remove(ctx, sealed.Object); err != nil {
		return fmt.Errorf("removing the object of %s: %w", id, err)
	}
	return nil
}
