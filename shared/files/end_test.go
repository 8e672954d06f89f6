package files_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
)

// inEveryState makes a file of alice's in each state and hands it to do.
func inEveryState(t *testing.T, do func(t *testing.T, l *life, f files.File)) {
	t.Helper()
	for _, state := range files.States {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			var f files.File
			switch state {
			case files.Reserved:
				f = l.reserve(draft(nil))
				l.put(f.ID, pdf)
			case files.Rejected:
				f = l.reserve(draft(nil))
				l.put(f.ID, bad)
				wantErr(t, l.verifier.Event(l.ctx, f.ID, ""), nil)
			default:
				f = l.ready(once, living(600))
			}
			switch state {
			case files.Claimed:
				l.claim(alice, f.ID, "call-1")
			case files.Spent:
				_, err := l.claims.Commit(l.ctx, alice, l.claim(alice, f.ID, "call-1").File.Claim.ID)
				wantErr(t, err, nil)
			case files.Expired:
				l.clock.Set(f.ExpiresAt)
				l.sweep()
			case files.Deleted:
				wantErr(t, l.deleter.Delete(l.ctx, alice, f.ID), nil)
			}
			l.wantState(f.ID, state)
			do(t, l, l.file(f.ID))
		})
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	inEveryState(t, func(t *testing.T, l *life, f files.File) {
		for range 2 {
			wantErr(t, l.deleter.Delete(l.ctx, alice, f.ID), nil)
			l.wantGone(f, files.Deleted)
			l.wantUsage(0, 0, 0)
			_, err := files.Show(l.ctx, l.records, alice, f.ID, l.clock.Now())
			wantErr(t, err, files.ErrFileDeleted)
		}
		l.check()
		// The upload that still comes is removed, and the file stays deleted.
		l.put(f.ID, pdf)
		wantErr(t, l.verifier.Event(l.ctx, f.ID, ""), nil)
		l.wantGone(f, files.Deleted)
		l.check()
	})
}

// TestDeleteExpired: what the clock has ended can still be deleted, before any sweep.
func TestDeleteExpired(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	f, g := l.ready(living(60)), l.reserve(draft(pdf))
	l.clock.Advance(2 * time.Hour)
	for _, f := range []files.File{f, g} {
		wantErr(t, l.deleter.Delete(l.ctx, alice, f.ID), nil)
		l.wantGone(f, files.Deleted)
	}
	l.check()
}

func TestWhoMayDelete(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	f := l.ready()
	scoped := func(actor string, s ...files.Scope) files.Caller {
		return files.Caller{Account: "acme", Actor: actor, Scopes: s}
	}
	for _, c := range []struct {
		caller files.Caller
		want   error
	}{
		{stranger, files.ErrFileNotFound},
		{scoped("alice"), files.ErrForbidden},
		{scoped("alice", files.FilesRead), files.ErrForbidden},
		{scoped("bob", files.FilesRead, files.FilesWrite), files.ErrForbidden},
		{scoped("alice", files.FilesWrite), nil},
		{scoped("bob", files.FilesDelete), nil},
	} {
		if err := l.deleter.Delete(l.ctx, c.caller, f.ID); !errors.Is(err, c.want) {
			t.Errorf("%s of %s with %v: %v, want %v", c.caller.Actor, c.caller.Account, c.caller.Scopes, err, c.want)
		}
		if c.want == nil {
			l.wantGone(f, files.Deleted)
			f = l.ready()
		}
		l.wantState(f.ID, files.Ready)
	}
	for _, id := range []string{"", "f_x", files.NewID()} {
		wantErr(t, l.deleter.Delete(l.ctx, alice, id), files.ErrFileNotFound)
	}
}

// TestDeleteWhatMoves: a file that changes between the read and the write is deleted all the same, as it is then.
func TestDeleteWhatMoves(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]func(l *life, f files.File) error{
		"verified": func(l *life, f files.File) error { return l.verifier.Event(l.ctx, f.ID, "") },
		"claimed": func(l *life, f files.File) error {
			_, err := l.claimer.Claim(l.ctx, alice, f.ID, "call-1", nil, nil)
			return err
		},
		"deleted": func(l *life, f files.File) error { return l.deleter.Delete(l.ctx, alice, f.ID) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			f := l.reserve(draft(pdf, once))
			l.put(f.ID, pdf)
			l.faults.Do(filestest.Step{Op: "End", N: 1}, filestest.Before, func() { wantErr(t, move(l, f), nil) })
			wantErr(t, l.deleter.Delete(l.ctx, alice, f.ID), nil)
			l.wantGone(l.file(f.ID), files.Deleted)
			l.check()
		})
	}
}

// TestFailedCleaning: the end of a file counts although S3 fails; the deletion queue removes the bytes.
func TestFailedCleaning(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]struct {
		ops []string
		do  func(l *life) (files.File, error)
	}{
		"delete": {[]string{"Remove"}, func(l *life) (files.File, error) {
			f := l.ready()
			return f, l.deleter.Delete(l.ctx, alice, f.ID)
		}},
		"cancel": {[]string{"Purge"}, func(l *life) (files.File, error) {
			f := l.reserve(draft(nil))
			l.put(f.ID, pdf)
			return f, l.deleter.Delete(l.ctx, alice, f.ID)
		}},
		"commit": {[]string{"Remove"}, func(l *life) (files.File, error) {
			f := l.ready(once)
			_, err := l.claims.Commit(l.ctx, alice, l.claim(alice, f.ID, "call-1").File.Claim.ID)
			return f, err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			failing := true
			l.hook(func(_ context.Context, op string, when filestest.When) error {
				if failing && when == filestest.Before && slices.Contains(end.ops, op) {
					return filestest.ErrInjected
				}
				return nil
			})
			f, err := end.do(l)
			wantErr(t, err, nil)
			if s := l.file(f.ID); s.State.Live() {
				t.Errorf("it is %s", s.State)
			}
			if !slices.Equal(*l.unclean, []string{f.ID}) {
				t.Errorf("reported were %v, want %s", *l.unclean, f.ID)
			}
			filestest.CheckInvariants(t, l.records.Snapshot(t))
			failing = false
			l.purge()
			l.check()
		})
	}
}

// TestCleaningOutlivesTheCaller: a client that hangs up does not leave bytes behind.
func TestCleaningOutlivesTheCaller(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	f := l.ready()
	ctx, hangUp := context.WithCancel(l.ctx)
	l.hook(func(ctx context.Context, op string, when filestest.When) error {
		if op == "End" && when == filestest.After {
			hangUp()
		}
		if op == "Remove" {
			return ctx.Err()
		}
		return nil
	})
	wantErr(t, l.deleter.Delete(ctx, alice, f.ID), nil)
	l.wantGone(f, files.Deleted)
	if len(*l.unclean) > 0 {
		t.Errorf("not cleaned: %v", *l.unclean)
	}
}

// TestPurge: the deletion queue removes what ended files left, and never what is in use. Of a verified file one request
// does; of any other a killed verifier may have left copies that no record names.
func TestPurge(t *testing.T) {
	t.Parallel()
	inEveryState(t, func(t *testing.T, l *life, f files.File) {
		var asked []string
		l.hook(func(_ context.Context, op string, when filestest.When) error {
			if when == filestest.Before && op != "File" {
				asked = append(asked, op)
			}
			return nil
		})
		want := []string{"Remove", "Remove"}
		switch {
		case f.State.Live():
			want = nil
		case f.Sealed == "":
			want = []string{"Purge", "Purge"}
			l.store.Leave(f.ID, "leftover", pdf, l.clock.Now())
		}
		for range 2 {
			wantErr(t, l.purger.Purge(l.ctx, f.ID), nil)
		}
		if !slices.Equal(asked, want) {
			t.Errorf("of a file that is %s and was %q it asked for %v, want %v", f.State, f.Sealed, asked, want)
		}
		o := l.store.Objects()
		left := len(o.Staged) + len(o.Sealed)
		if f.State.Live() != (left > 0) {
			t.Errorf("of a file that is %s, %d objects are left", f.State, left)
		}
	})
	l := newLife(t)
	gone := l.ready()
	l.records.Drop(gone.ID) // by TTL
	keep := l.ready()
	for _, id := range []string{gone.ID, keep.ID, "", "f_x", "../f", files.NewID()} {
		wantErr(t, l.purger.Purge(l.ctx, id), nil)
	}
	o := l.store.Objects()
	if o.Sealed[gone.Sealed] != nil || o.Sealed[keep.Sealed] == nil {
		t.Errorf("of the removed record %d bytes are left, of the other %d", len(o.Sealed[gone.Sealed]), len(o.Sealed[keep.Sealed]))
	}
}

// TestDeleteRaces: a deletion against a verifier, a claim and its commit, in every order of their steps.
func TestDeleteRaces(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		name     string
		switches int
		actors   func(l *life, id string, wrong *[]string) []filestest.Actor
	}{
		{"verifier", -1, func(l *life, id string, wrong *[]string) []filestest.Actor {
			return []filestest.Actor{l.deleting(id, wrong), {Name: "verifier", Run: func(ctx context.Context) { l.verifier.Event(ctx, id, "") }}}
		}},
		{"claim and commit", 3, func(l *life, id string, wrong *[]string) []filestest.Actor {
			return []filestest.Actor{l.deleting(id, wrong), l.spending(id, "call-1", wrong), l.spending(id, "call-2", wrong)}
		}},
		{"sweep", 3, func(l *life, id string, wrong *[]string) []filestest.Actor {
			l.clock.Advance(limits.ReservationTTL)
			return []filestest.Actor{l.deleting(id, wrong), {Name: "release", Run: func(ctx context.Context) {
				if err := l.records.Release(ctx, "acme", id, l.clock.Now()); err != nil {
					*wrong = append(*wrong, err.Error())
				}
			}}, {Name: "verifier", Run: func(ctx context.Context) { l.verifier.Event(ctx, id, "") }}}
		}},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			runs := filestest.Explore(t, r.switches, func() ([]filestest.Actor, func() []string) {
				l := newLife(t)
				f := l.reserve(draft(pdf, once))
				l.put(f.ID, pdf)
				var wrong []string
				actors := r.actors(l, f.ID, &wrong)
				l.hook(filestest.Yield)
				return actors, func() []string {
					l.hook(nil)
					l.purge() // the ends that the stream has told of
					if err := l.verifier.Event(l.ctx, f.ID, ""); err != nil {
						wrong = append(wrong, err.Error())
					}
					s := l.records.Snapshot(t)
					if s.Files[f.ID].State.Live() {
						wrong = append(wrong, "it is still "+string(s.Files[f.ID].State))
					}
					return append(append(wrong, s.Violations()...), s.ObjectViolations(l.store.Objects())...)
				}
			})
			t.Logf("%d orders", runs)
		})
	}
}

// deleting deletes a file, which must go well whatever others do, short of changing it without end.
func (l *life) deleting(id string, wrong *[]string) filestest.Actor {
	return filestest.Actor{Name: "delete", Run: func(ctx context.Context) {
		if err := l.deleter.Delete(ctx, alice, id); err != nil {
			*wrong = append(*wrong, "deleting: "+err.Error())
		}
	}}
}

// spending claims a file and commits the claim. Nobody may fail in another way than by losing.
func (l *life) spending(id, holder string, wrong *[]string) filestest.Actor {
	return filestest.Actor{Name: holder, Run: func(ctx context.Context) {
		var claimed *files.ClaimedError
		lent, err := l.claimer.Claim(ctx, alice, id, holder, nil, nil)
		if err == nil {
			_, err = l.claims.Commit(ctx, alice, lent.File.Claim.ID)
		}
		if err != nil && !errors.Is(err, files.ErrFileDeleted) && !errors.Is(err, files.ErrFileSpent) && !errors.As(err, &claimed) {
			*wrong = append(*wrong, holder+": "+err.Error())
		}
	}}
}
