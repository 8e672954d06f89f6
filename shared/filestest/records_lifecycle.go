package filestest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
)

// PageSize is how much a page of Due, Walk and List has: so little that tests meet the ends of pages.
const PageSize = 3

// Files implements files.ListRecords.
func (r *Records) Files(ctx context.Context, account string, after files.Position, limit int) ([]files.File, bool, error) {
	type page struct {
		list []files.File
		more bool
	}
	p, err := locked(ctx, r, "Files", func() (page, error) {
		list := []files.File{}
		for _, f := range r.files {
			if f.Account == account && (after == files.Position{} || newestFirst(f, files.File{ID: after.ID, CreatedAt: after.CreatedAt}) > 0) {
				list = append(list, clone(f))
			}
		}
		slices.SortFunc(list, newestFirst)
		if len(list) > limit {
			return page{list[:limit], true}, nil
		}
		return page{list, false}, nil
	})
	return p.list, p.more, err
}

func newestFirst(a, b files.File) int {
	return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), strings.Compare(b.ID, a.ID))
}

// Usage implements files.UsageRecords.
func (r *Records) Usage(ctx context.Context, account, actor string) (files.Usage, error) {
	return locked(ctx, r, "Usage", func() (files.Usage, error) {
		a := r.accounts[account]
		return files.Usage{LiveBytes: a.Bytes, Files: a.Files, Reservations: r.actors[ActorID{account, actor}].Reservations}, nil
	})
}

type paged[T any] struct {
	page T
	next string
}

// Due implements files.SweepRecords.
func (r *Records) Due(ctx context.Context, minute, now time.Time, from string) ([]files.Hold, string, error) {
	p, err := locked(ctx, r, "Due", func() (paged[[]files.Hold], error) {
		due := map[string]files.Hold{} // by place
		for _, h := range r.holds {
			if h.Deadline.Truncate(time.Minute).Equal(minute.Truncate(time.Minute)) && !h.Deadline.After(now) {
				due[fmt.Sprintf("%d#%s", h.Deadline.Unix(), h.ID)] = files.Hold{Account: h.Account, ID: h.ID, Deadline: h.Deadline}
			}
		}
		places, next := pageOf(due, from)
		var page []files.Hold
		for _, p := range places {
			page = append(page, due[p])
		}
		return paged[[]files.Hold]{page, next}, nil
	})
	return p.page, p.next, err
}

// pageOf returns the next keys of m behind from, in order, and where to go on.
func pageOf[T any](m map[string]T, from string) (keys []string, next string) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if k <= from {
			continue
		}
		if len(keys) == PageSize {
			return keys, keys[PageSize-1]
		}
		keys = append(keys, k)
	}
	return keys, ""
}

// Watermark implements files.SweepRecords.
func (r *Records) Watermark(ctx context.Context) (time.Time, error) {
	return locked(ctx, r, "Watermark", func() (time.Time, error) { return r.watermark, nil })
}

// SetWatermark implements files.SweepRecords.
func (r *Records) SetWatermark(ctx context.Context, minute time.Time) error {
	return r.do(ctx, "SetWatermark", func() error {
		if minute.After(r.watermark) {
			r.watermark = minute.UTC()
		}
		return nil
	})
}

// do is locked for what returns an error alone.
func (r *Records) do(ctx context.Context, op string, do func() error) error {
	_, err := locked(ctx, r, op, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// Records implements files.ReconcileRecords.
func (r *Records) Records(ctx context.Context, ids []string) (map[string]files.File, error) {
	return locked(ctx, r, "Records", func() (map[string]files.File, error) {
		out := map[string]files.File{}
		for _, id := range ids {
			if f, ok := r.files[id]; ok {
				out[id] = clone(f)
			}
		}
		return out, nil
	})
}

// Walk implements files.ReconcileRecords.
func (r *Records) Walk(ctx context.Context, from string) (files.WalkPage, string, error) {
	p, err := locked(ctx, r, "Walk", func() (paged[files.WalkPage], error) {
		type row struct{ file, account string }
		rows := map[string]row{}
		for id := range r.files {
			rows["file "+id] = row{file: id}
		}
		for account := range r.accounts {
			rows["account "+account] = row{account: account}
		}
		places, next := pageOf(rows, from)
		var page files.WalkPage
		for _, p := range places {
			if at := rows[p]; at.file == "" {
				page.Accounts = append(page.Accounts, at.account)
			} else if f := r.files[at.file]; f.State.Live() {
				page.Files = append(page.Files, clone(f))
			}
		}
		return paged[files.WalkPage]{page, next}, nil
	})
	return p.page, p.next, err
}

// HasHold implements files.ReconcileRecords.
func (r *Records) HasHold(ctx context.Context, f files.File) (bool, error) {
	return locked(ctx, r, "HasHold", func() (bool, error) {
		h, held := r.holds[f.ID]
		return held && h.Deadline.Equal(f.Deadline()), nil
	})
}

// RestoreHold implements files.ReconcileRecords.
func (r *Records) RestoreHold(ctx context.Context, f files.File) error {
	return r.do(ctx, "RestoreHold", func() error {
		if _, held := r.holds[f.ID]; held {
			return nil
		}
		if current, ok := r.files[f.ID]; !ok || current.State != f.State || current.Charged != f.Charged {
			return files.ErrStateChanged
		}
		r.hold(holdOf(f))
		return nil
	})
}

// Audit implements files.ReconcileRecords.
func (r *Records) Audit(ctx context.Context, account string) (files.Audit, error) {
	return locked(ctx, r, "Audit", func() (files.Audit, error) {
		held := files.Ledger{Actors: map[string]files.ActorLedger{}}
		for _, h := range r.holdsOf(account) {
			held.Bytes += h.Bytes
			held.Files++
			if h.Counted {
				l := held.Actors[h.Actor]
				held.Actors[h.Actor] = files.ActorLedger{Reservations: l.Reservations + 1, Unsized: l.Unsized + h.Unsized}
			}
		}
		return files.Audit{
			Account: account, Counted: r.counted(account), Held: held, Stable: true, Version: fmt.Sprint(r.moves),
		}, nil
	})
}

// counted returns the counters of an account, without what is zero.
func (r *Records) counted(account string) files.Ledger {
	l := files.Ledger{Bytes: r.accounts[account].Bytes, Files: r.accounts[account].Files, Actors: map[string]files.ActorLedger{}}
	for id, u := range r.actors {
		if id.Account == account && u != (ActorUsage{}) {
			l.Actors[id.Actor] = files.ActorLedger{Reservations: u.Reservations, Unsized: u.Unsized}
		}
	}
	return l
}

// Correct implements files.ReconcileRecords.
func (r *Records) Correct(ctx context.Context, a files.Audit) error {
	return r.do(ctx, "Correct", func() error {
		now := r.counted(a.Account)
		if a.Version != fmt.Sprint(r.moves) || now.Bytes != a.Counted.Bytes || now.Files != a.Counted.Files || !maps.Equal(now.Actors, a.Counted.Actors) {
			return files.ErrStateChanged
		}
		r.accounts[a.Account] = AccountUsage{Bytes: a.Held.Bytes, Files: a.Held.Files}
		for id := range r.actors {
			if id.Account == a.Account {
				delete(r.actors, id)
			}
		}
		for name, l := range a.Held.Actors {
			r.actors[ActorID{a.Account, name}] = ActorUsage{Reservations: l.Reservations, Unsized: l.Unsized}
		}
		return nil
	})
}

// Progress implements files.ReconcileRecords.
func (r *Records) Progress(ctx context.Context) (files.Progress, error) {
	return locked(ctx, r, "Progress", func() (files.Progress, error) { return r.progress, nil })
}

// SetProgress implements files.ReconcileRecords.
func (r *Records) SetProgress(ctx context.Context, p files.Progress) error {
	return r.do(ctx, "SetProgress", func() error { r.progress = p; return nil })
}

// DropHold removes the hold of id and leaves the counters as they are, as no operation does.
func (r *Records) DropHold(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.holds, id)
}

// SetAccount makes the counters of an account say something else, as no operation does.
func (r *Records) SetAccount(account string, u AccountUsage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.accounts[account] = u
}

// SetActor is SetAccount for the counters of an actor.
func (r *Records) SetActor(id ActorID, u ActorUsage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.actors[id] = u
}
