package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Staged is an uploaded object that is not verified yet, opened at one version.
type Staged struct {
	Size     int64 // of the whole object, bytes
	ETag     string
	Modified time.Time     // when S3 stored it, whole seconds
	Head     io.ReadCloser // its first bytes, HeadBytes at most; not read before Size is known to be acceptable
}

// HeadBytes is how much of an object verification reads; ZIP containers may cost one more range of TailBytes.
const (
	HeadBytes = 4 << 10
	TailBytes = 64 << 10
)

// Sealed is a verified copy.
type Sealed struct {
	Object string // its name, to be stored in File.Sealed
	SHA256 string // lower-case hex, computed by S3 while copying
}

// Stage is the part of the object store that clients can write, and the way out of it.
type Stage interface {
	// Open opens the staged object of id with one request, or ErrNotUploaded. An empty object opens with an empty
	// Head.
	Open(ctx context.Context, id string) (Staged, error)
	// Tail reads the last n bytes (all of a smaller object) of the staged object, which must still have the given
	// ETag; else ErrStagedChanged or ErrNotUploaded.
	Tail(ctx context.Context, id, etag string, n int64) ([]byte, error)
	// Seal copies the staged object of f, which must still have the given ETag (else ErrStagedChanged or
	// ErrNotUploaded), to a name of its own that depends on that ETag alone. It reads no body.
	Seal(ctx context.Context, f File, etag string) (Sealed, error)
	// CopyName returns the name of the copy that Seal makes of the staged object of id with the given ETag, quoted or not; ""
	// when there can be none.
	CopyName(id, etag string) string
	// Discard deletes the staged object of id, if any.
	Discard(ctx context.Context, id string) error
	// Remove deletes a sealed object, if it exists.
	Remove(ctx context.Context, object string) error
	// Purge deletes everything stored for id; see Bytes.
	Purge(ctx context.Context, id string) error
}

// VerifyRecords is what Verifier needs of the table.
type VerifyRecords interface {
	// MarkReady moves before from reserved to ready with the verified values, settles its quota to verified.Size and
	// returns the new record. When the file isn't reserved any more: ErrStateChanged.
	MarkReady(ctx context.Context, before File, verified Verified) (File, error)
	DeleteRecords
}

// Verified is what verification learned of a file.
type Verified struct {
	Sealed       Sealed
	Size         int64
	DetectedType string
	At           time.Time
}

// Ending is how a file ends.
type Ending struct {
	State  State // Spent, Rejected, Expired or Deleted
	Reason *Reason
	At     time.Time
}

// TypeCheck compares a declared media type with the bytes. Tail returns up to n bytes from the end of the object; it
// is called at most once. Detected is what the bytes are, or "".
type TypeCheck func(ctx context.Context, declared string, head []byte, size int64, tail func(ctx context.Context, n int64) ([]byte, error)) (detected string, ok bool, err error)

// Verifier turns uploaded bytes into a sealed file. It may run any number of times, at once, from an event or on
// demand: the state of the record decides what is left to do.
type Verifier struct {
	Records      VerifyRecords
	Stage        Stage
	CheckType    TypeCheck
	MaxFileBytes int64
	Now          func() time.Time
}

// verifyAttempts bounds how often verification starts over when the staged object changes under it.
const verifyAttempts = 4

// Event handles the news that an object with the given ETag ("" if it isn't told) was staged for id, which need not be a
// file id. Whatever is staged for a file that isn't reserved is removed, and so are copies, for the verifier that was told
// before may have been killed between copying and finding out: of a file that has ended or never was all of them, of a
// live one the copy of this object, unless it is the one that was verified. The error is nil when nothing is left to do;
// after any other the event must be delivered again.
func (v *Verifier) Event(ctx context.Context, id, etag string) error {
	if !ValidID(id) {
		return v.Stage.Discard(ctx, id)
	}
	f, err := v.Records.File(ctx, id)
	if errors.Is(err, ErrFileNotFound) {
		return v.Stage.Purge(ctx, id)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", id, err)
	}
	if !f.State.Live() {
		return v.Stage.Purge(ctx, id)
	}
	if f.State != Reserved {
		return v.discardReplay(ctx, f, etag)
	}
	_, err = v.Verify(ctx, f)
	if errors.Is(err, ErrNotUploaded) || errors.Is(err, ErrUploadExpired) {
		return nil // the object is gone again, or was late and has been removed
	}
	return err
}

// discardReplay removes what was staged for f after another object was verified, and its copy. The staged object goes first,
// so that no copy of it can be begun afterwards.
func (v *Verifier) discardReplay(ctx context.Context, f File, etag string) error {
	if err := v.discard(ctx, f.ID); err != nil {
		return err
	}
	copied := v.Stage.CopyName(f.ID, etag)
	if copied == "" || f.uses(copied) {
		return nil
	}
	if err := v.Stage.Remove(ctx, copied); err != nil {
		return fmt.Errorf("removing a copy that %s does not name: %w", f.ID, err)
	}
	return nil
}

// Verify brings a file that was read as reserved as far as its bytes allow and returns the record as it is then:
// ready, rejected, or whatever another writer made of it. ErrNotUploaded while its bytes are missing, ErrUploadExpired
// once they are too late. A file that isn't reserved is returned as it is.
func (v *Verifier) Verify(ctx context.Context, f File) (File, error) {
	if f.State != Reserved {
		return f, nil
	}
	for range verifyAttempts {
		after, err := v.once(ctx, f)
		if !errors.Is(err, ErrStagedChanged) && !errors.Is(err, ErrStateChanged) {
			return after, err
		}
		if f, err = v.Records.File(ctx, f.ID); err != nil {
			return File{}, fmt.Errorf("reading %s again: %w", f.ID, err)
		}
		if f.State != Reserved { // another writer was faster; what is staged now came too late
			return f, v.discard(ctx, f.ID)
		}
	}
	return File{}, fmt.Errorf("the staged object of %s keeps changing: %w", f.ID, ErrTryAgain)
}

// once runs one attempt. ErrStagedChanged and ErrStateChanged mean: read the record and start over.
func (v *Verifier) once(ctx context.Context, f File) (File, error) {
	staged, err := v.Stage.Open(ctx, f.ID)
	if errors.Is(err, ErrNotUploaded) {
		return v.missing(ctx, f)
	}
	if err != nil {
		return File{}, fmt.Errorf("opening the staged object of %s: %w", f.ID, err)
	}
	defer staged.Head.Close()
	if now := v.Now(); staged.Modified.After(f.UploadBy) || !now.Before(f.ExpiresAt) {
		return v.late(ctx, f, now)
	}
	if reason := v.checkSize(f, staged.Size); reason != nil {
		return v.reject(ctx, f, reason)
	}
	detected, reason, err := v.checkType(ctx, f, staged)
	if err != nil {
		return File{}, fmt.Errorf("checking the type of %s: %w", f.ID, err)
	}
	if reason != nil {
		return v.reject(ctx, f, reason)
	}
	sealed, err := v.Stage.Seal(ctx, f, staged.ETag)
	if errors.Is(err, ErrNotUploaded) {
		return File{}, ErrStagedChanged // another verifier finished, or the file ended
	}
	if err != nil {
		return File{}, fmt.Errorf("sealing %s: %w", f.ID, err)
	}
	if f.SHA256 != "" && sealed.SHA256 != f.SHA256 {
		reason := &Reason{Code: CodeChecksumMismatch, Detail: "The SHA-256 of the uploaded bytes is not the declared one. Reserve again and upload the right bytes."}
		return v.rejectSealed(ctx, f, reason, sealed)
	}
	ready, err := v.Records.MarkReady(ctx, f, Verified{Sealed: sealed, Size: staged.Size, DetectedType: detected, At: v.Now()})
	if errors.Is(err, ErrStateChanged) {
		return v.lost(ctx, f.ID, sealed)
	}
	if err != nil {
		return File{}, fmt.Errorf("marking %s ready: %w", f.ID, err)
	}
	return ready, v.discard(ctx, f.ID)
}

// missing answers for a reserved file without staged bytes. Another verifier may just have finished, so the record is
// read again before anything is said.
func (v *Verifier) missing(ctx context.Context, f File) (File, error) {
	current, err := v.Records.File(ctx, f.ID)
	if err != nil {
		return File{}, fmt.Errorf("reading %s again: %w", f.ID, err)
	}
	if current.State != Reserved {
		return current, nil
	}
	if current.At(v.Now()) == Expired {
		return current, ErrUploadExpired
	}
	return current, ErrNotUploaded
}

// late ends a reservation whose bytes came after its time.
func (v *Verifier) late(ctx context.Context, f File, now time.Time) (File, error) {
	ended, err := v.Records.End(ctx, f, Ending{State: Expired, At: now})
	if err != nil {
		return File{}, fmt.Errorf("ending the late upload %s: %w", f.ID, err)
	}
	if err := v.discard(ctx, f.ID); err != nil {
		return File{}, err
	}
	return ended, ErrUploadExpired
}

func (v *Verifier) checkSize(f File, size int64) *Reason {
	switch {
	case size > v.MaxFileBytes:
		return &Reason{Code: CodeFileTooLarge, Detail: fmt.Sprintf("The upload has %d bytes; a file may have at most %d.", size, v.MaxFileBytes)}
	case size == 0:
		return &Reason{Code: CodeSizeMismatch, Detail: "The upload is empty. Reserve again and send the bytes."}
	case f.Size != SizeUnknown && f.Size != size:
		return &Reason{Code: CodeSizeMismatch, Detail: fmt.Sprintf("The upload has %d bytes; %d were declared.", size, f.Size)}
	}
	return nil
}

func (v *Verifier) checkType(ctx context.Context, f File, s Staged) (detected string, reason *Reason, err error) {
	head, err := io.ReadAll(io.LimitReader(s.Head, HeadBytes))
	if err != nil {
		return "", nil, fmt.Errorf("reading its first bytes: %w: %w", ErrTryAgain, err)
	}
	tail := func(ctx context.Context, n int64) ([]byte, error) {
		b, err := v.Stage.Tail(ctx, f.ID, s.ETag, n)
		if errors.Is(err, ErrNotUploaded) {
			err = ErrStagedChanged
		}
		return b, err
	}
	detected, ok, err := v.CheckType(ctx, f.ContentType, head, s.Size, tail)
	if err != nil {
		return "", nil, err
	}
	if !ok {
		return detected, typeMismatch(f.ContentType, detected), nil
	}
	return detected, nil, nil
}

func typeMismatch(declared, detected string) *Reason {
	seen := detected
	if seen == "" {
		seen = "something else"
	}
	return &Reason{
		Code:     CodeTypeMismatch,
		Detail:   fmt.Sprintf("The bytes look like %s, not like the declared %s. Send the file again with the type of its bytes, or with application/octet-stream.", seen, declared),
		Declared: declared,
		Detected: detected,
	}
}

// reject ends f as rejected and removes its bytes.
func (v *Verifier) reject(ctx context.Context, f File, reason *Reason) (File, error) {
	rejected, err := v.Records.End(ctx, f, Ending{State: Rejected, Reason: reason, At: v.Now()})
	if err != nil {
		return File{}, fmt.Errorf("marking %s rejected: %w", f.ID, err)
	}
	return rejected, v.discard(ctx, f.ID)
}

// rejectSealed rejects f after its bytes were copied. The copy goes first: once f is rejected, nobody looks for it any
// more. Other copies of the same bytes can't pass either, so nobody will name it.
func (v *Verifier) rejectSealed(ctx context.Context, f File, reason *Reason, s Sealed) (File, error) {
	if err := v.Stage.Remove(ctx, s.Object); err != nil {
		return File{}, fmt.Errorf("removing the rejected copy of %s: %w", f.ID, err)
	}
	return v.reject(ctx, f, reason)
}

// lost cleans up after another writer moved the file on: our copy goes unless the record names it.
func (v *Verifier) lost(ctx context.Context, id string, ours Sealed) (File, error) {
	current, err := v.Records.File(ctx, id)
	if errors.Is(err, ErrFileNotFound) {
		current = File{ID: id, State: Deleted}
	} else if err != nil {
		return File{}, fmt.Errorf("reading %s again: %w", id, err)
	}
	if current.State == Reserved { // nobody has moved it: another verifier may yet name this very copy
		return File{}, ErrStateChanged
	}
	if !current.uses(ours.Object) {
		if err := v.Stage.Remove(ctx, ours.Object); err != nil {
			return File{}, fmt.Errorf("removing the losing copy of %s: %w", id, err)
		}
	}
	return current, v.discard(ctx, id)
}

func (v *Verifier) discard(ctx context.Context, id string) error {
	if err := v.Stage.Discard(ctx, id); err != nil {
		return fmt.Errorf("removing the staged object of %s: %w", id, err)
	}
	return nil
}

// Codes of verification, as the API shows them.
const (
	CodeSizeMismatch     = "size_mismatch"
	CodeChecksumMismatch = "checksum_mismatch"
	CodeTypeMismatch     = "type_mismatch"
	CodeFileTooLarge     = "file_too_large"
)

// Completer finishes uploads on request.
type Completer struct {
	Verifier *Verifier
	Now      func() time.Time
}

// Complete verifies the upload now and returns the ready file, or ErrNotUploaded, *FailedVerificationError, or the
// reason why the file is gone. It gives the same answer each time.
func (s *Completer) Complete(ctx context.Context, c Caller, id string) (File, error) {
	f, err := visible(ctx, s.Verifier.Records, c, id)
	if err != nil {
		return File{}, err
	}
	if !CapabilitiesOf(c, f).Upload {
		return File{}, ErrFileNotFound
	}
	if f, err = s.Verifier.Verify(ctx, f); err != nil {
		return File{}, err
	}
	if f.State == Rejected {
		return File{}, &FailedVerificationError{Reason: *f.Reason, MaxFileBytes: s.Verifier.MaxFileBytes}
	}
	return f, f.Gone(s.Now())
}

// FailedVerificationError answers a request to verify bytes that don't pass.
type FailedVerificationError struct {
	Reason       Reason
	MaxFileBytes int64
}

func (e *FailedVerificationError) Error() string { return "verification failed: " + e.Reason.Code }
