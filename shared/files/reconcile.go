package files

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// StoredObject is one object of the store.
type StoredObject struct {
	ID       string // the file id in its name; "" when the name holds none
	Object   string // its name
	Staged   bool   // a client's upload, not a sealed copy
	Modified time.Time
}

// ReconcileObjects is what Reconciler needs of the object store.
type ReconcileObjects interface {
	// List returns a page of all objects in the order of their names, behind from ("" for the start); next is "" at
	// the end.
	List(ctx context.Context, from string) (page []StoredObject, next string, err error)
	// Exists reports whether a sealed object is there.
	Exists(ctx context.Context, object string) (bool, error)
	// Remove deletes an object of either kind by its name, if it exists.
	Remove(ctx context.Context, object string) error
}

// Audit compares the counters of an account with what its holds add up to.
type Audit struct {
	Account string
	Counted Ledger // as the counters say
	Held    Ledger // as the holds add up
	Stable  bool   // nothing moved while the holds were read; else the comparison says nothing
	Version string // tells Correct whether anything has moved since; opaque to this package
}

// Ledger is the quota of an account and of its actors.
type Ledger struct {
	Bytes  int64
	Files  int64
	Actors map[string]ActorLedger // only those with something counted
}

// ActorLedger is the part of the quota that is counted by actor.
type ActorLedger struct {
	Reservations int64
	Unsized      int64 // bytes
}

// Drifted reports whether a stable audit found counters that are wrong.
func (a Audit) Drifted() bool {
	if !a.Stable {
		return false
	}
	if a.Counted.Bytes != a.Held.Bytes || a.Counted.Files != a.Held.Files || len(a.Counted.Actors) != len(a.Held.Actors) {
		return true
	}
	for name, l := range a.Counted.Actors {
		if a.Held.Actors[name] != l {
			return true
		}
	}
	return false
}

// ReconcileRecords is what Reconciler needs of the table.
type ReconcileRecords interface {
	DeleteRecords
	// Records returns the records of the given ids, those that exist, with strong consistency.
	Records(ctx context.Context, ids []string) (map[string]File, error)
	// Walk returns a page of live file records and of accounts that have counters, in no particular order, from the
	// given place on ("" for the start); next is "" at the end.
	Walk(ctx context.Context, from string) (page WalkPage, next string, err error)
	// HasHold reports whether the quota of a live file is held.
	HasHold(ctx context.Context, f File) (bool, error)
	// RestoreHold holds the quota of a live file again if nothing does; the counters follow.
	RestoreHold(ctx context.Context, f File) error
	// Audit adds up the holds of an account.
	Audit(ctx context.Context, account string) (Audit, error)
	// Correct sets the counters of an account to what its holds add up to, if they still are what the audit counted.
	// ErrStateChanged when they moved.
	Correct(ctx context.Context, a Audit) error
	// Progress and SetProgress keep the place where a reconcile that ran out of time goes on.
	Progress(ctx context.Context) (Progress, error)
	SetProgress(ctx context.Context, p Progress) error
}

// WalkPage is one page of a walk over the table.
type WalkPage struct {
	Files    []File
	Accounts []string
}

// Progress is where a reconcile stands: the zero Progress is its start.
type Progress struct {
	Phase string // phaseObjects or phaseRecords
	From  string
}

const (
	phaseObjects = "objects"
	phaseRecords = "records"
)

// Reconciler compares the object store with the records, and the counters with the holds, both ways. It repairs what
// is wrong and reports it; all of it should be zero. It works a page at a time, so its memory doesn't grow, and goes on
// where it stopped when its time runs out.
type Reconciler struct {
	Records ReconcileRecords
	Objects ReconcileObjects
	Now     func() time.Time
	Reserve time.Duration // kept free before the deadline of the context
}

// Reconciled counts what a run found and repaired.
type Reconciled struct {
	Orphans  int // objects without a live record that names them, removed
	Lost     int // records without their object, ended as deleted
	Unheld   int // live records whose quota was not held, held again
	Overdue  int // records that no sweep has ended in time, ended as expired
	Drifted  int // accounts whose counters were wrong, corrected
	Finished bool
}

const (
	// orphanAge is how old an object must be to be an orphan: verification may still be about to name a younger one.
	orphanAge = 2 * time.Hour
	// settleAge is how old a ready record must be before its object is missed.
	settleAge = 10 * time.Minute
	// overdueAge is how long after its end a file is still left to the sweep.
	overdueAge = sweepPatience
)

// Reconcile runs from where the last run stopped. Errors on single files are joined and don't stop the others.
func (r *Reconciler) Reconcile(ctx context.Context) (Reconciled, error) {
	p, err := r.Records.Progress(ctx)
	if err != nil {
		return Reconciled{}, fmt.Errorf("reading the progress: %w", err)
	}
	var out tally
	if p.Phase == "" {
		p.Phase = phaseObjects
	}
	var errs []error
	for p.Phase != "" {
		if deadline, ok := ctx.Deadline(); ctx.Err() != nil || ok && time.Until(deadline) < r.Reserve {
			break
		}
		next, err := r.step(ctx, p, &out)
		if err != nil {
			errs = append(errs, err)
		}
		if next == p {
			break // the page itself could not be read; the next run tries again
		}
		p = next
	}
	out.Finished = p.Phase == ""
	if err := r.Records.SetProgress(context.WithoutCancel(ctx), p); err != nil {
		errs = append(errs, fmt.Errorf("keeping the progress: %w", err))
	}
	return out.Reconciled, errors.Join(errs...)
}

// tally counts for several at once.
type tally struct {
	mu sync.Mutex
	Reconciled
}

func (t *tally) count(add func(*Reconciled)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	add(&t.Reconciled)
}

// step handles one page and returns where to go on.
func (r *Reconciler) step(ctx context.Context, p Progress, out *tally) (Progress, error) {
	if p.Phase == phaseObjects {
		page, next, err := r.Objects.List(ctx, p.From)
		if err != nil {
			return p, fmt.Errorf("listing objects: %w", err)
		}
		err = r.objects(ctx, page, out)
		if next == "" {
			return Progress{Phase: phaseRecords}, err
		}
		return Progress{Phase: phaseObjects, From: next}, err
	}
	page, next, err := r.Records.Walk(ctx, p.From)
	if err != nil {
		return p, fmt.Errorf("walking the records: %w", err)
	}
	err = errors.Join(r.records(ctx, page.Files, out), r.accounts(ctx, page.Accounts, out))
	if next == "" {
		return Progress{}, err
	}
	return Progress{Phase: phaseRecords, From: next}, err
}

// objects removes the orphans of a page.
func (r *Reconciler) objects(ctx context.Context, page []StoredObject, out *tally) error {
	old := make([]StoredObject, 0, len(page))
	var ids []string
	for _, o := range page {
		if r.Now().Sub(o.Modified) < orphanAge {
			continue
		}
		old = append(old, o)
		if ValidID(o.ID) {
			ids = append(ids, o.ID)
		}
	}
	if len(old) == 0 {
		return nil
	}
	records, err := r.Records.Records(ctx, ids)
	if err != nil {
		return fmt.Errorf("reading the records of a page of objects: %w", err)
	}
	return inParallel(old, func(o StoredObject) error {
		if f, ok := records[o.ID]; ok && needs(f, o) {
			return nil
		}
		if err := r.Objects.Remove(ctx, o.Object); err != nil {
			return fmt.Errorf("removing an orphan of %q: %w", o.ID, err)
		}
		out.count(func(r *Reconciled) { r.Orphans++ })
		return nil
	})
}

// needs reports whether o is of use to f. While f is reserved any copy may be: a verifier that finds the copy of one
// that was killed names that.
func needs(f File, o StoredObject) bool {
	return f.State == Reserved || !o.Staged && f.uses(o.Object)
}

// records looks for files whose object is gone, for live files whose quota nobody holds and for those that should have
// ended.
func (r *Reconciler) records(ctx context.Context, page []File, out *tally) error {
	return inParallel(page, func(f File) error {
		if err := r.record(ctx, f, out); err != nil && !errors.Is(err, ErrStateChanged) { // it moves by itself
			return fmt.Errorf("reconciling %s: %w", f.ID, err)
		}
		return nil
	})
}

func (r *Reconciler) record(ctx context.Context, f File, out *tally) error {
	now := r.Now()
	// The hold comes first: without it no write can end the file.
	held, err := r.Records.HasHold(ctx, f)
	if err != nil {
		return err
	}
	if !held {
		if err := r.Records.RestoreHold(ctx, f); err != nil {
			return err
		}
		out.count(func(r *Reconciled) { r.Unheld++ })
	}
	if f.At(now) == Expired {
		if now.Sub(f.Deadline()) < overdueAge {
			return nil
		}
		if _, err := r.Records.End(ctx, f, Ending{State: Expired, At: now}); err != nil {
			return err
		}
		out.count(func(r *Reconciled) { r.Overdue++ })
		return nil
	}
	if f.Sealed == "" || now.Sub(f.VerifiedAt) < settleAge {
		return nil
	}
	there, err := r.Objects.Exists(ctx, f.Sealed)
	if err != nil || there {
		return err
	}
	if _, err := r.Records.End(ctx, f, Ending{State: Deleted, At: now}); err != nil {
		return err
	}
	out.count(func(r *Reconciled) { r.Lost++ })
	return nil
}

func (r *Reconciler) accounts(ctx context.Context, page []string, out *tally) error {
	var errs []error
	for _, account := range page {
		audit, err := r.Records.Audit(ctx, account)
		if err != nil {
			errs = append(errs, fmt.Errorf("auditing an account: %w", err))
			continue
		}
		if !audit.Drifted() {
			continue
		}
		if err := r.Records.Correct(ctx, audit); err != nil {
			if !errors.Is(err, ErrStateChanged) {
				errs = append(errs, fmt.Errorf("correcting an account: %w", err))
			}
			continue
		}
		out.count(func(r *Reconciled) { r.Drifted++ })
	}
	return errors.Join(errs...)
}
