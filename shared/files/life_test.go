package files_test

import (
	"context"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
)

const lease = 5 * time.Minute

// life is what the lives of the files of a world need beside it.
type life struct {
	*world
	claimer    *files.Claimer
	claims     *files.Claims
	deleter    *files.Deleter
	purger     *files.Purger
	lister     *files.Lister
	meter      *files.Meter
	sweeper    *files.Sweeper
	reconciler *files.Reconciler
	unclean    *[]string // files whose bytes could not be removed at once
}

func newLife(t testing.TB) *life { return lifeOf(newWorld(t)) }

func lifeOf(w *world) *life {
	unclean := new([]string)
	cleaner := files.Cleaner{Bytes: w.store, Failed: func(_ context.Context, id string, _ error) { *unclean = append(*unclean, id) }}
	return &life{
		world: w, unclean: unclean,
		claimer: &files.Claimer{
			Records: w.records, Verifier: w.verifier, Signer: w.signer, Lease: lease, LinkTTL: 15 * time.Minute,
			Now: w.clock.Now, Random: files.RandomText,
		},
		claims:     &files.Claims{Records: w.records, Cleaner: cleaner, Lease: lease, Now: w.clock.Now},
		deleter:    &files.Deleter{Records: w.records, Cleaner: cleaner, Now: w.clock.Now},
		purger:     &files.Purger{Records: w.records, Bytes: w.store},
		lister:     &files.Lister{Records: w.records, Now: w.clock.Now},
		meter:      &files.Meter{Records: w.records, Now: w.clock.Now},
		sweeper:    &files.Sweeper{Records: w.records, Verifier: w.verifier, Now: w.clock.Now},
		reconciler: &files.Reconciler{Records: w.records, Objects: w.store, Now: w.clock.Now},
	}
}

var bob = files.Caller{Account: "acme", Actor: "bob", Scopes: files.Scopes}

// stranger is of another account, under a name that is known in the first.
var stranger = files.Caller{Account: "other", Actor: "alice", Scopes: files.Scopes}

func once(d *files.Draft) { d.SingleUse = true }

func living(seconds int64) func(*files.Draft) {
	return func(d *files.Draft) { d.TTLSeconds = &seconds }
}

// claim leases id to holder, which must go well.
func (l *life) claim(c files.Caller, id, holder string) files.Lent {
	l.t.Helper()
	lent, err := l.claimer.Claim(l.ctx, c, id, holder, nil, nil)
	if err != nil {
		l.t.Fatalf("claiming %s for %s: %v", id, holder, err)
	}
	return lent
}

// sweep does what a schedule does, and delivers the ends of files to the deletion queue.
func (l *life) sweep() files.Swept {
	l.t.Helper()
	swept, err := l.sweeper.Sweep(l.ctx)
	if err != nil {
		l.t.Fatalf("sweeping: %v", err)
	}
	l.purge()
	return swept
}

// purge hands every file that has ended to the deletion queue, as the stream of the table does.
func (l *life) purge() {
	l.t.Helper()
	for id, f := range l.records.Snapshot(l.t).Files {
		if !f.State.Live() {
			wantErr(l.t, l.purger.Purge(l.ctx, id), nil)
		}
	}
}

func (l *life) wantUsage(bytes, n, reservations int64) {
	l.t.Helper()
	got, err := l.meter.Usage(l.ctx, alice)
	want := files.Usage{LiveBytes: bytes, Files: n, Reservations: reservations}
	if err != nil || got != want {
		l.t.Errorf("the usage is %+v, %v; want %+v", got, err, want)
	}
}

// ready stores a file of body under the given life, single use or not, and checks that it is there.
func (l *life) ready(change ...func(*files.Draft)) files.File {
	l.t.Helper()
	f := l.upload(pdf, change...)
	l.wantState(f.ID, files.Ready)
	return f
}

// wantGone: f has ended as state, and nothing of it is stored.
func (l *life) wantGone(f files.File, state files.State) {
	l.t.Helper()
	l.wantState(f.ID, state)
	o := l.store.Objects()
	if _, staged := o.Staged[f.ID]; staged || f.Sealed != "" && o.Sealed[f.Sealed] != nil {
		l.t.Errorf("bytes of %s, which is %s, are still there", f.ID, state)
	}
}
