package files

import (
	"context"
	"fmt"
	"time"
)

// SignedRequest is a presigned request: what the client must send, nothing more. URL and headers are secrets until
// ExpiresAt.
type SignedRequest struct {
	Method    string
	URL       string
	Headers   map[string]string
	ExpiresAt time.Time // never later than the credentials that signed it
}

// UploadSigner presigns the upload of a reserved file.
type UploadSigner interface {
	// SignUpload signs a write-once PUT of f's staged bytes: content type, length and digest as far as f declares
	// them. It ends at until or with the signing credentials, whichever is earlier.
	SignUpload(ctx context.Context, f File, now, until time.Time) (SignedRequest, error)
}

// Finder reads records.
type Finder interface {
	// File returns the record of id with strong consistency, or ErrFileNotFound.
	File(ctx context.Context, id string) (File, error)
}

// Uploads reserves slots.
type Uploads struct {
	Records Creator
	Signer  UploadSigner
	Limits  Limits
	URLTTL  time.Duration // life of one presigned upload
	Now     func() time.Time
	NewID   func() string
}

// Reservation is a file with, while it waits for its bytes, the request that uploads them.
type Reservation struct {
	File   File
	Upload *SignedRequest // nil unless reserved
}

// Reserve creates a file and presigns its upload. The errors are *ValidationError, ErrEmptyFile, *TooLargeError,
// *LimitError, ErrIdempotencyMismatch and ErrTryAgain; after any of them nothing is stored or counted, but that
// ErrTryAgain under an idempotency key may leave the reservation for the repeat to find. A repeat under the same key
// returns the same file with a fresh upload.
func (u *Uploads) Reserve(ctx context.Context, c Caller, d Draft, idem *Idempotency) (Reservation, error) {
	now := u.Now()
	f, err := newFile(c, d, u.Limits, u.NewID(), now)
	if err != nil {
		return Reservation{}, err
	}
	if f.Size > u.Limits.MaxFileBytes {
		return Reservation{}, &TooLargeError{
			Max:    u.Limits.MaxFileBytes,
			Detail: fmt.Sprintf("A file may have at most %d bytes; %d were declared.", u.Limits.MaxFileBytes, f.Size),
		}
	}
	// Signed before it is stored: when signing fails there is nothing to take back.
	reservation, err := sign(ctx, u.Signer, f, now, u.URLTTL)
	if err != nil {
		return Reservation{}, err
	}
	f, repeated, err := create(ctx, u.Records, f, u.Limits.quota(), idem, now)
	if err != nil {
		return Reservation{}, err
	}
	if !repeated {
		return reservation, nil
	}
	if gone := f.Gone(now); gone != nil {
		return Reservation{}, gone
	}
	return sign(ctx, u.Signer, f, now, u.URLTTL)
}

// Renewer shows reservations to their creator, with a fresh upload while they wait for bytes.
type Renewer struct {
	Records Finder
	Signer  UploadSigner
	URLTTL  time.Duration
	Now     func() time.Time
}

// Get returns the reservation. Only its creator may ask; to anyone else it is ErrFileNotFound. Rejected files are
// shown, other finished ones explain themselves by an error.
func (r *Renewer) Get(ctx context.Context, c Caller, id string) (Reservation, error) {
	f, err := visible(ctx, r.Records, c, id)
	if err != nil {
		return Reservation{}, err
	}
	if !CapabilitiesOf(c, f).Upload {
		return Reservation{}, ErrFileNotFound
	}
	now := r.Now()
	if f.State != Rejected {
		if err := f.Gone(now); err != nil {
			return Reservation{}, err
		}
	}
	return sign(ctx, r.Signer, f, now, r.URLTTL)
}

// sign adds a presigned upload to a file that waits for its bytes.
func sign(ctx context.Context, s UploadSigner, f File, now time.Time, ttl time.Duration) (Reservation, error) {
	if f.State != Reserved {
		return Reservation{File: f}, nil
	}
	signed, err := s.SignUpload(ctx, f, now, earliest(now.Add(ttl), f.UploadBy))
	if err != nil {
		return Reservation{}, fmt.Errorf("presigning the upload of %s: %w", f.ID, err)
	}
	return Reservation{File: f, Upload: &signed}, nil
}

// visible returns the record of id if c may know of it, else ErrFileNotFound: the same for malformed, missing and
// foreign ids.
func visible(ctx context.Context, r Finder, c Caller, id string) (File, error) {
	if !ValidID(id) {
		return File{}, ErrFileNotFound
	}
	f, err := r.File(ctx, id)
	if err != nil {
		return File{}, err
	}
	if !CapabilitiesOf(c, f).Visible {
		return File{}, ErrFileNotFound
	}
	return f, nil
}

func earliest(t time.Time, others ...time.Time) time.Time {
	for _, o := range others {
		if o.Before(t) {
			t = o
		}
	}
	return t
}
