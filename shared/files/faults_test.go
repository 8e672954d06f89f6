package files_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
)

var pdf = []byte("%PDF-1.7 some bytes")

// scenario is something a caller does until it succeeds. Its repeat is the caller's, or the queue's.
type scenario struct {
	name string
	// prepare sets the stage and returns what to do; that is what meets the fault.
	prepare func(w *world) (do func() error)
	// want checks the world after do has succeeded.
	want func(w *world)
	// refused: a failed do must leave nothing at all, before it is repeated.
	refused bool
	// broken: the stage breaks the rules, and do is to mend it.
	broken bool
}

func scenarios() []scenario {
	idem := func() *files.Idempotency {
		return &files.Idempotency{Account: "acme", Actor: "alice", Route: "r", Key: "k", Digest: "d"}
	}
	only := func(state files.State) func(w *world) {
		return func(w *world) {
			w.t.Helper()
			s := w.records.Snapshot(w.t)
			if len(s.Files) != 1 {
				w.t.Errorf("there are %d files, want 1", len(s.Files))
			}
			for id := range s.Files {
				w.wantState(id, state)
			}
		}
	}
	// staged has body uploaded for a new reservation and returns what the news of it starts.
	staged := func(d files.Draft, body []byte) func(w *world) func() error {
		return func(w *world) func() error {
			f := w.reserve(d)
			w.put(f.ID, body)
			return func() error { return w.verifier.Event(w.ctx, f.ID, "") }
		}
	}
	return []scenario{
		{
			name: "reserve",
			prepare: func(w *world) func() error {
				return func() error { _, err := w.uploads.Reserve(w.ctx, alice, draft(pdf), nil); return err }
			},
			want: only(files.Reserved), refused: true,
		}, {
			name: "reserve with a key",
			prepare: func(w *world) func() error {
				return func() error { _, err := w.uploads.Reserve(w.ctx, alice, draft(nil), idem()); return err }
			},
			want: only(files.Reserved),
		}, {
			name: "reserve at the limit",
			prepare: func(w *world) func() error {
				for range limits.ActorMaxReservations {
					w.reserve(draft(pdf))
				}
				w.clock.Advance(limits.ReservationTTL)
				return func() error { _, err := w.uploads.Reserve(w.ctx, alice, draft(pdf), nil); return err }
			},
			want: func(w *world) {
				live := 0
				for _, f := range w.records.Snapshot(w.t).Files {
					if f.At(w.clock.Now()).Live() {
						live++
					}
				}
				if live != 1 {
					w.t.Errorf("%d files are live by the clock, want 1", live)
				}
			},
		}, {
			name: "renew",
			prepare: func(w *world) func() error {
				f := w.reserve(draft(pdf))
				return func() error { _, err := w.renewer.Get(w.ctx, alice, f.ID); return err }
			},
			want: only(files.Reserved),
		}, {
			name: "inline",
			prepare: func(w *world) func() error {
				return func() error { _, err := w.inline.Create(w.ctx, alice, draft(nil), pdf, nil); return err }
			},
			want: only(files.Ready), refused: true,
		}, {
			name: "inline with a key",
			prepare: func(w *world) func() error {
				return func() error { _, err := w.inline.Create(w.ctx, alice, draft(nil), pdf, idem()); return err }
			},
			want: only(files.Ready),
		},
		{name: "event", prepare: staged(draft(pdf), pdf), want: only(files.Ready)},
		{name: "event unsized", prepare: staged(draft(nil), pdf), want: only(files.Ready)},
		{name: "event of a container", prepare: staged(draft(pdf, func(d *files.Draft) { d.ContentType = "application/zip" }), pdf), want: only(files.Ready)},
		{name: "event of the wrong size", prepare: staged(draft(pdf), pdf[1:]), want: only(files.Rejected)},
		{name: "event of too many bytes", prepare: staged(draft(nil), make([]byte, 1001)), want: only(files.Rejected)},
		{name: "event of the wrong type", prepare: staged(draft(nil), []byte("BAD")), want: only(files.Rejected)},
		{
			name:    "event of the wrong digest",
			prepare: staged(draft(pdf, func(d *files.Draft) { d.SHA256 = fmt.Sprintf("%064d", 0) }), pdf),
			want:    only(files.Rejected),
		}, {
			name: "event too late",
			prepare: func(w *world) func() error {
				f := w.reserve(draft(pdf))
				w.clock.Advance(limits.ReservationTTL + time.Second)
				w.put(f.ID, pdf)
				return func() error { return w.verifier.Event(w.ctx, f.ID, "") }
			},
			want: only(files.Expired),
		}, {
			name: "event of a replay",
			prepare: func(w *world) func() error {
				f := w.upload(pdf)
				w.put(f.ID, []byte("replayed"))
				return func() error { return w.verifier.Event(w.ctx, f.ID, "") }
			},
			want: only(files.Ready),
		}, {
			name: "event of a stranger",
			prepare: func(w *world) func() error {
				w.put("stranger", pdf)
				id := files.NewID()
				w.put(id, pdf)
				return func() error {
					return errors.Join(w.verifier.Event(w.ctx, "stranger", ""), w.verifier.Event(w.ctx, id, ""))
				}
			},
			want: (*world).wantNothing,
		}, {
			name: "complete",
			prepare: func(w *world) func() error {
				f := w.reserve(draft(pdf))
				w.put(f.ID, pdf)
				return func() error {
					_, err := w.complete.Complete(w.ctx, alice, f.ID)
					// The event of the upload comes too, before or after.
					return errors.Join(err, w.verifier.Event(w.ctx, f.ID, ""))
				}
			},
			want: only(files.Ready),
		}, {
			name: "link",
			prepare: func(w *world) func() error {
				f := w.upload(pdf)
				return func() error { _, err := w.reader.Link(w.ctx, alice, f.ID, nil); return err }
			},
			want: only(files.Ready),
		}, {
			name: "resolve what waits",
			prepare: func(w *world) func() error {
				f := w.reserve(draft(pdf))
				w.put(f.ID, pdf)
				return func() error {
					_, err := w.reader.Resolve(w.ctx, alice, "claim://", []string{"claim://" + f.ID})
					return errors.Join(err, w.verifier.Event(w.ctx, f.ID, ""))
				}
			},
			want: only(files.Ready),
		},
	}
}

// TestFaults runs every scenario once undisturbed, to learn its steps, and then once for each step and side: the step
// fails before or after it took effect, the caller tries again, and in the end everything is as if nothing had happened.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, s := range slices.Concat(scenarios(), lifeScenarios()) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			steps := s.learn(t)
			if len(steps) == 0 {
				t.Fatal("it takes no steps")
			}
			for _, step := range steps {
				for _, when := range []filestest.When{filestest.Before, filestest.After} {
					if step.Op == "Head" && when == filestest.After {
						continue // reading has no effect to hide
					}
					t.Run(fmt.Sprintf("%s %s", when, step), func(t *testing.T) { s.disturb(t, step, when) })
				}
			}
		})
	}
}

// start sets the stage in a new world; steps are counted from there.
func (s scenario) start(t *testing.T) (*world, func() error) {
	w := newWorld(t)
	do := s.prepare(w)
	w.faults = &filestest.Faults{}
	w.hook(w.faults.Hook)
	return w, do
}

func (s scenario) learn(t *testing.T) []filestest.Step {
	w, do := s.start(t)
	if err := do(); err != nil {
		t.Fatalf("undisturbed: %v", err)
	}
	w.check()
	s.want(w)
	return w.faults.Steps()
}

func (s scenario) disturb(t *testing.T, step filestest.Step, when filestest.When) {
	w, do := s.start(t)
	w.faults.Fail(step, when)
	err := do()
	if w.faults.Fired() != 1 {
		if when == filestest.After && err == nil {
			return // the step was refused, so there is no effect to hide
		}
		t.Fatal("the fault did not happen")
	}
	if err != nil {
		wantErr(t, err, files.ErrTryAgain)
		if !s.broken {
			filestest.CheckInvariants(t, w.records.Snapshot(t))
		}
		if s.refused {
			w.wantNothing()
		}
		if err := do(); err != nil {
			t.Fatalf("the repeat: %v", err)
		}
	}
	w.check()
	s.want(w)
}
