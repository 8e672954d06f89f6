package files

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Hold is what keeps the quota of a live file: it exists exactly as long.
type Hold struct {
	Account  string
	ID       string
	Deadline time.Time
}

// SweepRecords is what Sweeper needs of the table.
type SweepRecords interface {
	VerifyRecords
	// Release ends the hold of a file; see Creator.
	Release(ctx context.Context, account, id string, now time.Time) error
	// Due returns a page of the holds whose deadline lies in the given minute and is not after now. Next is "" at the
	// end, else what to pass to go on.
	Due(ctx context.Context, minute, now time.Time, from string) (page []Hold, next string, err error)
	// Watermark is the minute before which every hold has been swept; the zero time before the first sweep.
	Watermark(ctx context.Context) (time.Time, error)
	// SetWatermark moves the watermark forward; an earlier time than the stored one changes nothing.
	SetWatermark(ctx context.Context, minute time.Time) error
}

// Sweeper ends the files whose time is over: record and quota. Their bytes are the deletion queue's, which hears of each
// end, so that a sweep of many waits for no object. The clock has refused them before; sweeping only cleans up, so it may
// be late, run twice or stop half-way.
type Sweeper struct {
	Records  SweepRecords
	Verifier *Verifier
	Now      func() time.Time
	// Reserve is kept free before the deadline of the context; a sweep that runs out of time goes on in the next one.
	Reserve time.Duration
}

// Swept counts what a sweep did.
type Swept struct {
	Ended  int  // files
	Behind bool // time ran out before the present was reached
}

const (
	// sweepLag is how far the watermark stays behind the clock: clocks differ a little, and an index shows new entries
	// with a delay.
	sweepLag = 2 * time.Minute
	// sweepFirst is how far back the first sweep looks.
	sweepFirst = 2 * time.Hour
	// sweepPatience is for how long a minute in which something failed is swept again. What can't be ended by then is
	// left to reconciling, so that one file doesn't make every sweep longer than the last.
	sweepPatience = 6 * time.Hour
)

// Sweep ends everything that is due, minute by minute from the watermark on. One failing file does not keep the others
// alive: the errors are joined, and the watermark stays before the first minute that had one.
func (s *Sweeper) Sweep(ctx context.Context) (Swept, error) {
	now := s.Now().UTC()
	from, err := s.Records.Watermark(ctx)
	if err != nil {
		return Swept{}, fmt.Errorf("reading the watermark: %w", err)
	}
	if from.IsZero() {
		from = now.Add(-sweepFirst)
	}
	var (
		out   Swept
		errs  []error
		stuck bool // a minute before has to be swept again
	)
	for minute := from.Truncate(time.Minute); !minute.After(now); minute = minute.Add(time.Minute) {
		ended, done, err := s.minute(ctx, minute, now)
		out.Ended += ended
		if err != nil {
			errs = append(errs, err)
			stuck = stuck || now.Sub(minute) < sweepPatience
		}
		if !done {
			out.Behind = true
			break
		}
		if !stuck && minute.Before(now.Add(-sweepLag)) {
			if err := s.Records.SetWatermark(ctx, minute.Add(time.Minute)); err != nil {
				errs = append(errs, fmt.Errorf("moving the watermark: %w", err))
				stuck = true
			}
		}
	}
	return out, errors.Join(errs...)
}

func (s *Sweeper) outOfTime(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && time.Until(deadline) < s.Reserve
}

// minute ends what is due in one minute, a page at a time. Done is false when time ran out before its end.
func (s *Sweeper) minute(ctx context.Context, minute, now time.Time) (ended int, done bool, _ error) {
	var (
		errs []error
		next string
	)
	for !s.outOfTime(ctx) {
		page, after, err := s.Records.Due(ctx, minute, now, next)
		if err != nil {
			return ended, true, errors.Join(append(errs, fmt.Errorf("reading what is due: %w", err))...)
		}
		n, err := s.page(ctx, page, now)
		ended += n
		if err != nil {
			errs = append(errs, err)
		}
		if after == "" {
			return ended, true, errors.Join(errs...)
		}
		next = after
	}
	return ended, false, errors.Join(errs...)
}

func (s *Sweeper) page(ctx context.Context, page []Hold, now time.Time) (ended int, _ error) {
	var n atomic.Int64
	err := inParallel(page, func(h Hold) error {
		did, err := s.settle(ctx, h, now)
		if did {
			n.Add(1)
		}
		return err
	})
	return int(n.Load()), err
}

// settle ends the file of one due hold, looking again when it moves meanwhile.
func (s *Sweeper) settle(ctx context.Context, h Hold, now time.Time) (ended bool, err error) {
	for range verifyAttempts {
		ended, err = s.settleOnce(ctx, h, now)
		if !errors.Is(err, ErrStateChanged) {
			return ended, err
		}
	}
	return false, fmt.Errorf("%s keeps changing: %w", h.ID, ErrTryAgain)
}

// settleOnce ends the file of one due hold. A reservation gets a last look at its staged bytes first: they may have come
// in time, and only the news of them been lost.
func (s *Sweeper) settleOnce(ctx context.Context, h Hold, now time.Time) (ended bool, _ error) {
	f, err := s.Records.File(ctx, h.ID)
	if errors.Is(err, ErrFileNotFound) || err == nil && !f.State.Live() {
		return false, s.Records.Release(ctx, h.Account, h.ID, now)
	}
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", h.ID, err)
	}
	if f.State == Reserved && now.Before(f.ExpiresAt) {
		f, err = s.Verifier.Verify(ctx, f)
		if err != nil && !errors.Is(err, ErrUploadExpired) && !errors.Is(err, ErrNotUploaded) {
			return false, fmt.Errorf("verifying %s at its end: %w", h.ID, err)
		}
	}
	if f.At(now) != Expired || !f.State.Live() {
		return !f.State.Live(), nil
	}
	if _, err := s.Records.End(ctx, f, Ending{State: Expired, At: now}); err != nil {
		return false, fmt.Errorf("ending %s: %w", h.ID, err)
	}
	return true, nil
}
