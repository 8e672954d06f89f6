package files

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Position is a place in the list of an account's files, newest first. The zero Position is its start.
type Position struct {
	CreatedAt time.Time
	ID        string
}

// ListRecords is what Lister needs of the table.
type ListRecords interface {
	// Files returns, with one query, up to max records of the account behind after, newest first by (created_at, id),
	// whatever their state. More is false when nothing follows them.
	Files(ctx context.Context, account string, after Position, max int) (list []File, more bool, err error)
}

// Filter narrows a list. Empty fields don't.
type Filter struct {
	States  []State // as the clock has them; empty: the live ones
	Purpose Purpose
	Run     string
}

func (q Filter) matches(f File, now time.Time) bool {
	states := q.States
	if len(states) == 0 {
		states = LiveStates
	}
	return slices.Contains(states, f.At(now)) && (q.Purpose == "" || f.Purpose == q.Purpose) && (q.Run == "" || f.Run == q.Run)
}

// Lister lists files.
type Lister struct {
	Records ListRecords
	Now     func() time.Time
}

// listRead is how many records one page reads at the most: filters apply afterwards, so a page may be short.
const listRead = 200

// List returns up to limit files of the account that c may see and q matches, and where to go on: nil at the end.
func (l *Lister) List(ctx context.Context, c Caller, q Filter, after Position, limit int) ([]File, *Position, error) {
	now := l.Now()
	read, more, err := l.Records.Files(ctx, c.Account, after, max(limit, listRead))
	if err != nil {
		return nil, nil, fmt.Errorf("listing files: %w", err)
	}
	page := make([]File, 0, limit)
	for i, f := range read {
		if CapabilitiesOf(c, f).Visible && q.matches(f, now) {
			page = append(page, f)
		}
		last := i == len(read)-1
		if len(page) == limit && !(last && !more) || last && more {
			return page, &Position{CreatedAt: f.CreatedAt, ID: f.ID}, nil
		}
	}
	return page, nil, nil
}

// Usage is what an account and one of its actors hold.
type Usage struct {
	LiveBytes    int64
	Files        int64
	Reservations int64 // of the actor
}

// UsageRecords is what Meter needs of the table.
type UsageRecords interface {
	EndedHolds(ctx context.Context, account string, now time.Time, max int) (ids []string, err error)
	Release(ctx context.Context, account, id string, now time.Time) error
	// Usage reads the counters with strong consistency.
	Usage(ctx context.Context, account, actor string) (Usage, error)
}

// Meter reports usage.
type Meter struct {
	Records UsageRecords
	Now     func() time.Time
}

// Usage returns what the caller's account and actor hold now. Holds whose time is over are released first, so the
// figures are right at the second of expiry.
func (m *Meter) Usage(ctx context.Context, c Caller) (Usage, error) {
	now := m.Now()
	for range releaseRounds {
		more, err := releaseEnded(ctx, m.Records, c.Account, now)
		if err != nil {
			return Usage{}, err
		}
		if more {
			continue
		}
		u, err := m.Records.Usage(ctx, c.Account, c.Actor)
		if err != nil {
			return Usage{}, fmt.Errorf("reading usage: %w", err)
		}
		return u, nil
	}
	return Usage{}, fmt.Errorf("ended holds kept coming: %w", ErrTryAgain)
}
