package filestest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
)

// Records keeps records in memory, for everything that the domain asks of records. Make it with NewRecords; it is safe
// for concurrent use.
type Records struct {
	Hook Hook

	mu       sync.Mutex
	files    map[string]files.File
	holds    map[string]Hold // by file id
	accounts map[string]AccountUsage
	actors   map[ActorID]ActorUsage
	requests map[files.Idempotency]request // keys without digest
	moves    int64                         // holds that have begun or ended

	watermark time.Time
	progress  files.Progress
}

type request struct {
	digest  string
	made    string // the id of a file or of a claim
	expires time.Time
}

// NewRecords returns empty records.
func NewRecords() *Records {
	return &Records{
		files:    map[string]files.File{},
		holds:    map[string]Hold{},
		accounts: map[string]AccountUsage{},
		actors:   map[ActorID]ActorUsage{},
		requests: map[files.Idempotency]request{},
	}
}

// locked runs do as the operation op, under the hook and the lock.
func locked[T any](ctx context.Context, r *Records, op string, do func() (T, error)) (T, error) {
	return call(ctx, r.Hook, op, func() (T, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return do()
	})
}

// File implements files.Finder.
func (r *Records) File(ctx context.Context, id string) (files.File, error) {
	return locked(ctx, r, "File", func() (files.File, error) { return r.find(id) })
}

func (r *Records) find(id string) (files.File, error) {
	f, ok := r.files[id]
	if !ok {
		return files.File{}, files.ErrFileNotFound
	}
	return clone(f), nil
}

func clone(f files.File) files.File {
	f.Metadata = maps.Clone(f.Metadata)
	if f.Reason != nil {
		reason := *f.Reason
		f.Reason = &reason
	}
	return f
}

type created struct {
	file     files.File
	repeated bool
}

// Create implements files.Creator.
func (r *Records) Create(ctx context.Context, f files.File, q files.Quota, idem *files.Idempotency, now time.Time) (files.File, bool, error) {
	out, err := locked(ctx, r, "Create", func() (created, error) {
		if idem != nil {
			if earlier, ok := r.requests[withoutDigest(*idem)]; ok && now.Before(earlier.expires) {
				if earlier.digest != idem.Digest {
					return created{}, files.ErrIdempotencyMismatch
				}
				got, err := r.find(earlier.made)
				return created{got, true}, err
			}
		}
		if _, taken := r.files[f.ID]; taken {
			return created{}, fmt.Errorf("there is a file %s", f.ID)
		}
		if err := r.room(f, q); err != nil {
			return created{}, err
		}
		r.files[f.ID] = clone(f)
		r.hold(holdOf(f))
		if idem != nil {
			r.requests[withoutDigest(*idem)] = request{idem.Digest, f.ID, now.Add(files.IdempotencyWindow).Truncate(time.Second)}
		}
		return created{file: f}, nil
	})
	return out.file, out.repeated, err
}

func withoutDigest(i files.Idempotency) files.Idempotency {
	i.Digest = ""
	return i
}

// room returns the limit that f would exceed: those of the actor come first.
func (r *Records) room(f files.File, q files.Quota) error {
	h := holdOf(f)
	if h.Counted {
		actor := r.actors[ActorID{f.Account, f.Actor}]
		if actor.Reservations+1 > q.ActorMaxReservations {
			return &files.LimitError{Kind: files.LimitReservations, Max: q.ActorMaxReservations}
		}
		if h.Unsized > 0 && actor.Unsized+h.Unsized > q.ActorMaxUnsizedBytes {
			return &files.LimitError{Kind: files.LimitUnsized, Max: q.ActorMaxUnsizedBytes}
		}
	}
	if r.accounts[f.Account].Bytes+h.Bytes > q.AccountMaxLiveBytes {
		return &files.LimitError{Kind: files.LimitBytes, Max: q.AccountMaxLiveBytes}
	}
	return nil
}

func (r *Records) hold(h Hold) {
	r.holds[h.ID] = h
	r.count(h, 1)
}

// release takes the hold of id off, if there is one.
func (r *Records) release(id string) {
	if h, ok := r.holds[id]; ok {
		delete(r.holds, id)
		r.count(h, -1)
	}
}

// held returns an error for a live file without a hold: no write ends the one without the other.
func (r *Records) held(id string) error {
	if _, ok := r.holds[id]; !ok {
		return fmt.Errorf("the hold of %s is missing", id)
	}
	return nil
}

func (r *Records) count(h Hold, sign int64) {
	r.moves++
	account := r.accounts[h.Account]
	r.accounts[h.Account] = AccountUsage{account.Bytes + sign*h.Bytes, account.Files + sign}
	if h.Counted {
		id := ActorID{h.Account, h.Actor}
		actor := r.actors[id]
		r.actors[id] = ActorUsage{actor.Reservations + sign, actor.Unsized + sign*h.Unsized}
	}
}

// Undo implements files.Creator.
func (r *Records) Undo(ctx context.Context, f files.File, idem *files.Idempotency) error {
	_, err := locked(ctx, r, "Undo", func() (struct{}, error) {
		current, ok := r.files[f.ID]
		if !ok {
			return struct{}{}, nil
		}
		if current.State != files.Reserved {
			return struct{}{}, files.ErrStateChanged
		}
		delete(r.files, f.ID)
		r.release(f.ID)
		if idem != nil && r.requests[withoutDigest(*idem)].made == f.ID {
			delete(r.requests, withoutDigest(*idem))
		}
		return struct{}{}, nil
	})
	return err
}

// EndedHolds implements files.Creator.
func (r *Records) EndedHolds(ctx context.Context, account string, now time.Time, limit int) ([]string, error) {
	return locked(ctx, r, "EndedHolds", func() ([]string, error) {
		var ids []string
		for _, h := range r.holdsOf(account) {
			if len(ids) < limit && !h.Deadline.After(now) {
				ids = append(ids, h.ID)
			}
		}
		return ids, nil
	})
}

// holdsOf returns the holds of an account in the order in which they end.
func (r *Records) holdsOf(account string) []Hold {
	var out []Hold
	for _, h := range r.holds {
		if h.Account == account {
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b Hold) int {
		if c := a.Deadline.Compare(b.Deadline); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out
}

// NextEnd implements files.Creator.
func (r *Records) NextEnd(ctx context.Context, account, actor string, kind files.LimitKind) (time.Time, error) {
	return locked(ctx, r, "NextEnd", func() (time.Time, error) {
		for _, h := range r.holdsOf(account) {
			if kind == files.LimitBytes || h.Actor == actor && h.Counted && (kind == files.LimitReservations || h.Unsized > 0) {
				return h.Deadline, nil
			}
		}
		return time.Time{}, nil
	})
}

// Release implements files.Creator.
func (r *Records) Release(ctx context.Context, account, id string, now time.Time) error {
	_, err := locked(ctx, r, "Release", func() (struct{}, error) {
		h, held := r.holds[id]
		if !held || h.Account != account || h.Deadline.After(now) {
			return struct{}{}, nil
		}
		r.release(id)
		if f, ok := r.files[id]; ok && f.State.Live() {
			r.files[id] = ended(f, files.Ending{State: files.Expired, At: now})
		}
		return struct{}{}, nil
	})
	return err
}

// MarkReady implements files.VerifyRecords.
func (r *Records) MarkReady(ctx context.Context, before files.File, v files.Verified) (files.File, error) {
	return locked(ctx, r, "MarkReady", func() (files.File, error) {
		f, ok := r.files[before.ID]
		if !ok || f.State != files.Reserved {
			return files.File{}, files.ErrStateChanged
		}
		if err := r.held(f.ID); err != nil {
			return files.File{}, err
		}
		f.State = files.Ready
		f.Sealed, f.SHA256 = v.Sealed.Object, v.Sealed.SHA256
		f.Size, f.Charged = v.Size, v.Size
		f.DetectedType = v.DetectedType
		f.VerifiedAt = v.At.UTC().Truncate(time.Second)
		r.files[f.ID] = f
		r.release(f.ID)
		r.hold(holdOf(f))
		return clone(f), nil
	})
}

// End implements files.DeleteRecords.
func (r *Records) End(ctx context.Context, before files.File, end files.Ending) (files.File, error) {
	return locked(ctx, r, "End", func() (files.File, error) {
		f, ok := r.files[before.ID]
		if !ok || f.State != before.State {
			return files.File{}, files.ErrStateChanged
		}
		if f.State.Live() {
			if err := r.held(f.ID); err != nil {
				return files.File{}, err
			}
		}
		f = ended(f, end)
		r.files[f.ID] = f
		r.release(f.ID)
		return clone(f), nil
	})
}

func ended(f files.File, end files.Ending) files.File {
	f.State, f.EndedAt = end.State, end.At.UTC().Truncate(time.Second)
	if end.Reason != nil {
		reason := *end.Reason
		f.Reason = &reason
	}
	return f
}

// Drop removes the record of id and leaves its hold, as TTL does with a file that nobody ended.
func (r *Records) Drop(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.files, id)
}

// Snapshot returns a copy of everything. No hook runs.
func (r *Records) Snapshot(testing.TB) Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Snapshot{Files: map[string]files.File{}, Accounts: maps.Clone(r.accounts), Actors: maps.Clone(r.actors)}
	for id, f := range r.files {
		s.Files[id] = clone(f)
	}
	for _, h := range r.holds {
		s.Holds = append(s.Holds, h)
	}
	return s
}
