package files_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
)

// reconcile runs once, to its end and without an error.
func (l *life) reconcile() files.Reconciled {
	l.t.Helper()
	got, err := l.reconciler.Reconcile(l.ctx)
	if err != nil || !got.Finished {
		l.t.Fatalf("reconciling: %+v, %v", got, err)
	}
	got.Finished = false
	return got
}

func (l *life) wantReconciled(want files.Reconciled) {
	l.t.Helper()
	if got := l.reconcile(); got != want {
		l.t.Errorf("reconciled %+v, want %+v", got, want)
	}
	if got := l.reconcile(); got != (files.Reconciled{}) {
		l.t.Errorf("reconciled again %+v, want nothing", got)
	}
}

// TestNothingToReconcile: files in every state, and objects that are young, are left alone.
func TestNothingToReconcile(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	long := func(d *files.Draft) { d.TTLSeconds = size(86400) }
	l.ready(long)
	f := l.ready(once, long)
	l.claim(alice, f.ID, "call-1")
	spent := l.ready(once, long)
	_, err := l.claims.Commit(l.ctx, alice, l.claim(alice, spent.ID, "call-2").File.Claim.ID)
	wantErr(t, err, nil)
	wantErr(t, l.deleter.Delete(l.ctx, alice, l.ready(long).ID), nil)
	l.reserve(draft(pdf))
	waiting := l.reserve(draft(pdf))
	l.put(waiting.ID, pdf)
	before := l.records.Snapshot(t)
	for range 2 {
		l.wantReconciled(files.Reconciled{})
		l.clock.Advance(40 * time.Minute)
	}
	after := l.records.Snapshot(t)
	for id, f := range before.Files {
		if after.Files[id].State != f.State {
			t.Errorf("%s was %s and is %s", id, f.State, after.Files[id].State)
		}
	}
	if n := len(l.store.Objects().Sealed); n != 2 {
		t.Errorf("there are %d sealed objects, want 2", n)
	}
}

// TestOrphans: objects that no live record names go once they are two hours old, and not before.
func TestOrphans(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	f := l.ready()
	dead := l.ready()
	wantErr(t, l.deleter.Delete(l.ctx, alice, dead.ID), nil)
	at := l.clock.Now()
	names := []string{
		l.store.Leave(files.NewID(), "v", pdf, at), // no record
		l.store.Leave(dead.ID, "v", pdf, at),       // deleted while a verifier was at work
		l.store.Leave(f.ID, "v", pdf, at),          // a copy that lost
		l.store.Leave("operator", "v", pdf, at),    // no file at all
		l.store.Leave(files.NewID(), "young", pdf, at.Add(time.Second)),
	}
	l.put(dead.ID, pdf) // replayed, and its event lost
	l.put("stranger", pdf)
	l.clock.Set(at.Add(2 * time.Hour))
	if got := l.reconcile(); got != (files.Reconciled{Orphans: 6}) {
		t.Errorf("reconciled %+v, want 6 orphans", got)
	}
	o := l.store.Objects()
	if len(o.Staged) != 0 || len(o.Sealed) != 2 || o.Sealed[f.Sealed] == nil || o.Sealed[names[4]] == nil {
		t.Errorf("what is left: %d staged and %d sealed objects", len(o.Staged), len(o.Sealed))
	}
	l.clock.Advance(time.Second)
	l.wantReconciled(files.Reconciled{Orphans: 1})
	l.check()
}

// TestCopiesOfReservations: a copy that a killed verifier left may yet be named by the next one.
func TestCopiesOfReservations(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.uploads.Limits.ReservationTTL = 10 * time.Hour
	f := l.reserve(draft(pdf))
	l.put(f.ID, pdf)
	l.faults.Fail(filestest.Step{Op: "MarkReady", N: 1}, filestest.Before)
	wantErr(t, l.verifier.Event(l.ctx, f.ID, ""), files.ErrTryAgain)
	l.clock.Advance(3 * time.Hour)
	// The next verifier finds the copy and is about to name it.
	l.faults.Do(filestest.Step{Op: "MarkReady", N: 2}, filestest.Before, func() { l.reconcile() })
	wantErr(t, l.verifier.Event(l.ctx, f.ID, ""), nil)
	l.wantState(f.ID, files.Ready)
	l.check()
}

// TestLost: a record whose object is gone ends, and its quota is free.
func TestLost(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	keep, lost, claimed := l.ready(), l.ready(), l.ready(once)
	l.claim(alice, claimed.ID, "call-1")
	l.store.Lose(lost.Sealed)
	l.store.Lose(claimed.Sealed)
	l.clock.Advance(10*time.Minute - time.Second)
	l.wantReconciled(files.Reconciled{}) // just verified: not missed yet
	l.clock.Advance(time.Second)
	l.wantReconciled(files.Reconciled{Lost: 2})
	l.wantState(keep.ID, files.Ready)
	_, err := l.reader.Link(l.ctx, alice, lost.ID, nil)
	wantErr(t, err, files.ErrFileDeleted)
	l.wantUsage(int64(len(pdf)), 1, 0)
	l.check()
}

// TestUnheld: a live file without its hold is held again, whatever the counters say.
func TestUnheld(t *testing.T) {
	t.Parallel()
	for name, counters := range map[string]func(l *life){
		"counters right": func(*life) {},
		"counters short": func(l *life) {
			l.records.SetAccount("acme", filestest.AccountUsage{})
			l.records.SetActor(filestest.ActorID{Account: "acme", Actor: "alice"}, filestest.ActorUsage{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			for _, f := range []files.File{l.reserve(draft(nil)), l.reserve(draft(pdf)), l.ready()} {
				l.records.DropHold(f.ID)
			}
			counters(l)
			if got := l.reconcile(); got.Unheld != 3 {
				t.Errorf("reconciled %+v, want 3 unheld", got)
			}
			l.reconcile() // the walk may have met the account before the files
			l.check()
			if got := l.reconcile(); got != (files.Reconciled{}) {
				t.Errorf("reconciled once more %+v, want nothing", got)
			}
		})
	}
}

// TestOverdue: what no sweep found ends here, with or without a hold.
func TestOverdue(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	held, unheld, reserved := l.ready(living(60)), l.ready(living(60)), l.reserve(draft(pdf, living(60)))
	l.records.DropHold(unheld.ID)
	l.clock.Advance(time.Minute)
	if got := l.reconcile(); got.Overdue != 0 {
		t.Errorf("reconciled %+v: that is for the sweep to end", got)
	}
	l.clock.Advance(7 * time.Hour)
	if got := l.reconcile(); got.Overdue != 3 {
		t.Errorf("reconciled %+v, want 3 overdue", got)
	}
	for _, f := range []files.File{held, unheld, reserved} {
		l.wantState(f.ID, files.Expired)
	}
	l.purge()
	l.reconcile()
	l.check()
}

// TestDrift: counters that are not the sums of the holds are set to them.
func TestDrift(t *testing.T) {
	t.Parallel()
	alices := filestest.ActorID{Account: "acme", Actor: "alice"}
	for name, spoil := range map[string]func(l *life){
		"bytes": func(l *life) { l.records.SetAccount("acme", filestest.AccountUsage{Bytes: 1, Files: 2}) },
		"files": func(l *life) {
			l.records.SetAccount("acme", filestest.AccountUsage{Bytes: 1000 + int64(len(pdf)), Files: 3})
		},
		"negative":     func(l *life) { l.records.SetAccount("acme", filestest.AccountUsage{Bytes: -5, Files: -1}) },
		"reservations": func(l *life) { l.records.SetActor(alices, filestest.ActorUsage{Reservations: 3, Unsized: 1000}) },
		"unsized":      func(l *life) { l.records.SetActor(alices, filestest.ActorUsage{Reservations: 1}) },
		"missing":      func(l *life) { l.records.SetActor(alices, filestest.ActorUsage{}) },
		"nobody's": func(l *life) {
			l.records.SetActor(filestest.ActorID{Account: "acme", Actor: "carol"}, filestest.ActorUsage{Reservations: 1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.ready()
			l.reserve(draft(nil))
			spoil(l)
			l.wantReconciled(files.Reconciled{Drifted: 1})
			l.check()
		})
	}
}

// moving audits as if something moved meanwhile.
type moving struct{ files.ReconcileRecords }

func (m moving) Audit(ctx context.Context, account string) (files.Audit, error) {
	a, err := m.ReconcileRecords.Audit(ctx, account)
	a.Stable = false
	return a, err
}

// TestDriftThatMoves: an audit under which something moved proves nothing, and a correction that comes too late is none.
func TestDriftThatMoves(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.ready()
	l.records.SetAccount("acme", filestest.AccountUsage{Bytes: 1, Files: 1})
	l.reconciler.Records = moving{l.records}
	l.wantReconciled(files.Reconciled{})
	l.reconciler.Records = l.records
	l.faults.Do(filestest.Step{Op: "Correct", N: 1}, filestest.Before, func() { l.ready() })
	if got := l.reconcile(); got != (files.Reconciled{}) {
		t.Errorf("reconciled %+v, want nothing", got)
	}
	l.wantReconciled(files.Reconciled{Drifted: 1})
	l.check()
}

// TestReconcileGoesOn: a run that has no time left goes on where it stopped.
func TestReconcileGoesOn(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	n := 5 * filestest.PageSize
	for range n {
		l.store.Leave(files.NewID(), "v", pdf, l.clock.Now())
	}
	for i := range n {
		f := l.ready(func(d *files.Draft) { d.TTLSeconds = size(86400) })
		if i%2 == 0 {
			l.store.Lose(f.Sealed)
		}
	}
	l.clock.Advance(3 * time.Hour)
	var sum files.Reconciled
	runs := 0
	for !sum.Finished {
		if runs++; runs > 100 {
			t.Fatal("it never comes to an end")
		}
		// Each run has time for one page: the clock of the context is stopped behind it.
		ctx, stop := context.WithCancel(l.ctx)
		for _, op := range []string{"List", "Walk"} {
			l.faults.Do(filestest.Step{Op: op, N: l.calls(op) + 1}, filestest.After, stop)
		}
		got, err := l.reconciler.Reconcile(ctx)
		stop()
		if err != nil {
			t.Fatal(err)
		}
		if got.Orphans+got.Lost > filestest.PageSize {
			t.Errorf("one run did %+v, more than a page", got)
		}
		sum.Orphans += got.Orphans
		sum.Lost += got.Lost
		sum.Finished = got.Finished
	}
	if sum.Orphans != n || sum.Lost != (n+1)/2 || runs < 10 {
		t.Errorf("in %d runs: %+v", runs, sum)
	}
	l.check()
	l.reconciler.Reserve = time.Hour
	ctx, cancel := context.WithTimeout(l.ctx, time.Minute)
	defer cancel()
	steps := len(l.faults.Steps())
	if got, err := l.reconciler.Reconcile(ctx); err != nil || got.Finished || l.calls("List") == steps {
		t.Errorf("without any time: %+v, %v", got, err)
	}
}

// TestReconcileFailures: what fails for one object or record is reported and stops no other.
func TestReconcileFailures(t *testing.T) {
	t.Parallel()
	build := func() *life {
		l := newLife(t)
		at := l.clock.Now()
		for range 2 {
			l.store.Leave(files.NewID(), "v", pdf, at)
			l.store.Lose(l.ready().Sealed)
			l.records.DropHold(l.ready().ID)
		}
		l.clock.Advance(3 * time.Hour)
		return l
	}
	for _, op := range []string{"Progress", "List", "Records", "Remove", "Walk", "Exists", "HasHold", "RestoreHold", "End", "Audit", "Correct", "SetProgress"} {
		for _, when := range []filestest.When{filestest.Before, filestest.After} {
			l := build()
			l.faults.Fail(filestest.Step{Op: op, N: l.calls(op) + 1}, when)
			_, err := l.reconciler.Reconcile(l.ctx)
			if l.faults.Fired() != 1 || !errors.Is(err, files.ErrTryAgain) {
				t.Errorf("%s %s: %v after %d faults", when, op, err, l.faults.Fired())
			}
			for range 3 {
				if _, err := l.reconciler.Reconcile(l.ctx); err != nil {
					t.Errorf("%s %s: the next run: %v", when, op, err)
				}
			}
			s := l.records.Snapshot(t)
			if bad := append(s.Violations(), s.ObjectViolations(l.store.Objects())...); len(bad) > 0 {
				t.Errorf("%s %s: %s", when, op, fmt.Sprint(bad))
			}
		}
	}
}
