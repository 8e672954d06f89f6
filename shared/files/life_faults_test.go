package files_test

import (
	"errors"

	"claimcheck.dev/claimcheck/shared/files"
)

// lifeScenarios are the scenarios of the later life of files. Where a file ends, the deletion queue hears of it too.
func lifeScenarios() []scenario {
	// all wants every file to be in the same state, and nothing to be counted that has ended.
	all := func(state files.State) func(w *world) {
		return func(w *world) {
			w.t.Helper()
			s := w.records.Snapshot(w.t)
			if len(s.Files) == 0 {
				w.t.Error("there are no files")
			}
			for id := range s.Files {
				w.wantState(id, state)
			}
		}
	}
	// ending runs do on a file that prepare has made, and delivers the end of the file to the deletion queue.
	ending := func(prepare func(l *life) files.File, do func(l *life, f files.File) error) func(w *world) func() error {
		return func(w *world) func() error {
			l := lifeOf(w)
			f := prepare(l)
			return func() error { return errors.Join(do(l, f), l.purger.Purge(l.ctx, f.ID)) }
		}
	}
	waiting := func(l *life) files.File {
		f := l.reserve(draft(nil, once))
		l.put(f.ID, pdf)
		return f
	}
	ready := func(l *life) files.File { return l.ready(once, living(600)) }
	claimed := func(l *life) files.File { return l.claim(alice, ready(l).ID, "call-1").File }
	remove := func(l *life, f files.File) error { return l.deleter.Delete(l.ctx, alice, f.ID) }
	idem := &files.Idempotency{Account: "acme", Actor: "alice", Route: "r", Key: "k", Digest: "d"}
	claim := func(idem *files.Idempotency) func(l *life, f files.File) error {
		return func(l *life, f files.File) error {
			lent, err := l.claimer.Claim(l.ctx, alice, f.ID, "call-1", nil, idem)
			if err == nil && lent.File.Claim.ID != l.file(f.ID).Claim.ID {
				err = errors.New("the claim is not the one of the record")
			}
			return err
		}
	}
	sweep := func(l *life, _ files.File) error { _, err := l.sweeper.Sweep(l.ctx); return err }
	// late ends the time of f, which the sweeps up to now have not seen.
	late := func(l *life, f files.File) files.File { l.sweep(); l.clock.Set(f.Deadline()); return f }
	return []scenario{
		{name: "delete a reservation", prepare: ending(waiting, remove), want: all(files.Deleted)},
		{name: "delete", prepare: ending(ready, remove), want: all(files.Deleted)},
		{name: "delete what is claimed", prepare: ending(claimed, remove), want: all(files.Deleted)},
		{name: "claim", prepare: ending(ready, claim(nil)), want: all(files.Claimed)},
		{name: "claim with a key", prepare: ending(ready, claim(idem)), want: all(files.Claimed)},
		{
			name: "claim what waits",
			prepare: ending(waiting, func(l *life, f files.File) error {
				return errors.Join(claim(nil)(l, f), l.verifier.Event(l.ctx, f.ID, ""))
			}),
			want: all(files.Claimed),
		}, {
			name: "claim after a lease",
			prepare: ending(func(l *life) files.File {
				f := claimed(l)
				l.clock.Set(f.Claim.LeaseUntil)
				return f
			}, func(l *life, f files.File) error {
				_, err := l.claimer.Claim(l.ctx, bob, f.ID, "call-2", nil, nil)
				return err
			}),
			want: all(files.Claimed),
		}, {
			name: "commit",
			prepare: ending(claimed, func(l *life, f files.File) error {
				_, err := l.claims.Commit(l.ctx, alice, f.Claim.ID)
				return err
			}),
			want: all(files.Spent),
		}, {
			name: "release",
			prepare: ending(claimed, func(l *life, f files.File) error {
				_, err := l.claims.Release(l.ctx, alice, f.Claim.ID)
				return err
			}),
			want: all(files.Ready),
		}, {
			name: "extend",
			prepare: ending(claimed, func(l *life, f files.File) error {
				_, err := l.claims.Extend(l.ctx, alice, f.Claim.ID, nil)
				return err
			}),
			want: all(files.Claimed),
		},
		{name: "sweep", prepare: ending(func(l *life) files.File { return late(l, ready(l)) }, sweep), want: all(files.Expired)},
		{name: "sweep what is claimed", prepare: ending(func(l *life) files.File { return late(l, claimed(l)) }, sweep), want: all(files.Expired)},
		{
			name:    "sweep a reservation",
			prepare: ending(func(l *life) files.File { return late(l, l.reserve(draft(nil))) }, sweep),
			want:    all(files.Expired),
		}, {
			name: "sweep bytes that came in time",
			prepare: ending(func(l *life) files.File {
				f := l.reserve(draft(nil))
				l.put(f.ID, pdf)
				return late(l, f)
			}, func(l *life, f files.File) error { return errors.Join(sweep(l, f), l.verifier.Event(l.ctx, f.ID, "")) }),
			want: all(files.Ready),
		}, {
			name: "sweep a hold that is left",
			prepare: func(w *world) func() error {
				l := lifeOf(w)
				f := late(l, l.reserve(draft(nil)))
				l.records.Drop(f.ID)
				return func() error { return sweep(l, f) }
			},
			want: (*world).wantNothing, broken: true,
		},
		{name: "purge", prepare: ending(func(l *life) files.File {
			f := ready(l)
			_, err := l.records.End(l.ctx, f, files.Ending{State: files.Deleted, At: l.clock.Now()})
			wantErr(l.t, err, nil)
			return f
		}, func(*life, files.File) error { return nil }), want: all(files.Deleted)},
		{
			name: "usage",
			prepare: ending(func(l *life) files.File { return late(l, ready(l)) }, func(l *life, _ files.File) error {
				u, err := l.meter.Usage(l.ctx, alice)
				if err == nil && u != (files.Usage{}) {
					err = errors.New("something is still counted")
				}
				return err
			}),
			want: all(files.Expired),
		}, {
			name: "list",
			prepare: ending(ready, func(l *life, _ files.File) error {
				_, _, err := l.lister.List(l.ctx, alice, files.Filter{}, files.Position{}, 20)
				return err
			}),
			want: all(files.Ready),
		},
	}
}
