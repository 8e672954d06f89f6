package files

import (
	"context"
	"errors"
	"fmt"
	"time"

	"claimcheck.dev/claimcheck/shared/mediatype"
	"claimcheck.dev/claimcheck/shared/names"
)

// IdempotencyWindow is how long an Idempotency-Key is remembered.
const IdempotencyWindow = 24 * time.Hour

// Idempotency identifies a repeatable request. Remembered per account, actor and route.
type Idempotency struct {
	Account string
	Actor   string
	Route   string // such as "POST /v1/uploads"
	Key     string // the client's Idempotency-Key
	Digest  string // SHA-256 of the request; another one under the same key is a mismatch
}

// Creator stores new files with their quota.
type Creator interface {
	// Create stores f (a new id), charges its quota and remembers idem (may be nil), all or nothing. When idem is
	// remembered with the same digest and hasn't passed its window at now, nothing is written and the file made then
	// is returned with repeated true; with another digest ErrIdempotencyMismatch. A quota that would be exceeded is a
	// *LimitError without RetryAfter; conflicts that outlast their retries are ErrTryAgain.
	Create(ctx context.Context, f File, q Quota, idem *Idempotency, now time.Time) (got File, repeated bool, err error)
	// EndedHolds returns up to max ids of files of the account whose quota is still charged although their deadline
	// is not after now, read with strong consistency.
	EndedHolds(ctx context.Context, account string, now time.Time, max int) (ids []string, err error)
	// NextEnd returns the deadline of the first charged file of the account that counts against kind, the zero time
	// when there is none. Actor matters for the kinds that are counted by actor.
	NextEnd(ctx context.Context, account, actor string, kind LimitKind) (time.Time, error)
	// Undo removes a reservation that Create made, or may have made, with its quota and its idempotency row, as if it
	// had never been. It is a success when there is nothing to remove, and ErrStateChanged when the file isn't reserved
	// any more.
	Undo(ctx context.Context, f File, idem *Idempotency) error
	// Release ends the hold of a file whose deadline has passed and marks the file expired if it is still live. It is
	// a success that changes nothing when that has been done.
	Release(ctx context.Context, account, id string, now time.Time) error
}

// Draft is what a caller asks for, as strings and numbers of the API.
type Draft struct {
	Filename    string
	ContentType string // "" for application/octet-stream
	Size        *int64 // nil: not declared
	SHA256      string // any accepted notation, "" when not declared
	SingleUse   bool
	TTLSeconds  *int64
	Metadata    map[string]string
}

// newFile checks d and makes the record of a reservation.
func newFile(c Caller, d Draft, l Limits, id string, now time.Time) (File, error) {
	var bad ValidationError
	f := File{
		ID: id, Account: c.Account, Actor: c.Actor, State: Reserved, Purpose: Upload,
		Size: SizeUnknown, SingleUse: d.SingleUse, Metadata: d.Metadata, Counted: true,
		CreatedAt: now.UTC().Truncate(time.Second),
	}
	var err error
	if f.Filename, err = names.Clean(d.Filename); err != nil {
		bad.Add("filename", err.Error())
	}
	f.ContentType = mediatype.OctetStream
	if d.ContentType != "" {
		if f.ContentType, err = mediatype.Parse(d.ContentType); err != nil {
			bad.Add("content_type", err.Error())
		}
	}
	if d.SHA256 != "" {
		var ok bool
		if f.SHA256, ok = ParseSHA256(d.SHA256); !ok {
			bad.Add("sha256", "must be a SHA-256 digest in hex (64 characters), base64 or base64url")
		}
	}
	checkMetadata(d.Metadata, &bad)
	life, problem := l.life(d.TTLSeconds, d.SingleUse)
	if problem != "" {
		bad.Add("ttl_seconds", problem)
	}
	empty := false
	if d.Size != nil {
		f.Size = *d.Size
		empty = f.Size == 0
		if f.Size < 0 {
			bad.Add("size_bytes", "must be a whole number of bytes, 1 or more")
		}
	}
	if err := bad.Err(); err != nil {
		return File{}, err
	}
	if empty {
		return File{}, ErrEmptyFile
	}
	f.Charged = f.Size
	if f.Size == SizeUnknown {
		f.Charged = l.MaxFileBytes
	}
	f.ExpiresAt = f.CreatedAt.Add(life)
	f.UploadBy = f.CreatedAt.Add(min(l.ReservationTTL, life))
	return f, nil
}

// releaseBatch bounds how many ended holds one refused creation clears at a time, and releaseRounds how often it
// tries again before it reports the limit.
const (
	releaseBatch  = 25
	releaseRounds = 40
)

// answerTime is kept free before the deadline of a request, for its answer. A function that reaches its deadline is
// stopped, and the gateway answers 500 for it.
const answerTime = 2 * time.Second

// releaser is what releaseEnded needs of Creator or UsageRecords.
type releaser interface {
	EndedHolds(ctx context.Context, account string, now time.Time, max int) (ids []string, err error)
	Release(ctx context.Context, account, id string, now time.Time) error
}

// releaseEnded releases a batch of holds whose time is over; more tells that there may be others. When the time of the
// request runs out it is ErrTryAgain: every hold that was released is one less for the repeat.
func releaseEnded(ctx context.Context, r releaser, account string, now time.Time) (more bool, err error) {
	ended, err := r.EndedHolds(ctx, account, now, releaseBatch)
	if err != nil {
		return false, fmt.Errorf("looking for ended holds: %w", err)
	}
	for _, id := range ended {
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < answerTime {
			return false, fmt.Errorf("ended holds are still being released: %w", ErrTryAgain)
		}
		if err := r.Release(ctx, account, id, now); err != nil {
			return false, fmt.Errorf("releasing the ended hold of %s: %w", id, err)
		}
	}
	return len(ended) == releaseBatch, nil
}

// create stores f. Whoever meets a limit clears the holds whose time is over and tries again, so quotas are free at
// the second of expiry without any background process. Only a limit that is met after no ended hold was left is
// reported: another caller may have cleared some between an attempt and the search for them.
func create(ctx context.Context, r Creator, f File, q Quota, idem *Idempotency, now time.Time) (File, bool, error) {
	cleared := false
	for range releaseRounds {
		got, repeated, err := r.Create(ctx, f, q, idem, now)
		var limit *LimitError
		switch {
		case err == nil:
			return got, repeated, nil
		case !errors.As(err, &limit):
			return File{}, false, abandon(ctx, r, f, idem, err)
		case cleared:
			return File{}, false, withRetryAfter(ctx, r, f, limit, now)
		}
		more, err := releaseEnded(ctx, r, f.Account, now)
		if err != nil {
			return File{}, false, err
		}
		cleared = !more
	}
	return File{}, false, fmt.Errorf("ended holds kept coming: %w", ErrTryAgain)
}

// abandon takes back what a failed Create may have stored all the same. Under an idempotency key it stays: the repeat
// that the caller is asked for finds it, and a parallel one may have answered with it.
func abandon(ctx context.Context, r Creator, f File, idem *Idempotency, err error) error {
	if idem != nil || !errors.Is(err, ErrTryAgain) && ctx.Err() == nil {
		return err
	}
	if undo := r.Undo(context.WithoutCancel(ctx), f, nil); undo != nil {
		return errors.Join(err, fmt.Errorf("taking back %s: %w", f.ID, undo))
	}
	return err
}

// withRetryAfter completes limit with what f is charged and the time until quota comes free.
func withRetryAfter(ctx context.Context, r Creator, f File, limit *LimitError, now time.Time) error {
	end, err := r.NextEnd(ctx, f.Account, f.Actor, limit.Kind)
	if err != nil {
		return fmt.Errorf("looking for the next end: %w", err)
	}
	out := *limit
	out.Bytes = f.Charged
	out.RetryAfter = time.Second
	if wait := end.Sub(now); wait > time.Second {
		out.RetryAfter = wait
	}
	return &out
}
