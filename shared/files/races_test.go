package files_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
)

// arena is a world whose actors take turns at every step, around one reservation.
type arena struct {
	*world
	id       string
	accepted map[string]bool // bodies whose PUT was accepted, as text
	events   int             // not delivered yet
	wrong    []string
}

// race explores a reservation for bytes of unknown size, with first staged, under several actors. At rest, with the events of all accepted
// uploads delivered, the record must be final or name exactly one object with the bytes that were verified, and
// nothing else may be stored.
func race(t *testing.T, switches int, first []byte, digest string, actors func(a *arena) []filestest.Actor) {
	t.Helper()
	runs := filestest.Explore(t, switches, func() ([]filestest.Actor, func() []string) {
		a := &arena{world: newWorld(t), accepted: map[string]bool{}}
		a.id = a.reserve(draft(nil, func(d *files.Draft) { d.SHA256 = digest })).ID
		a.upload(a.ctx, first)
		a.events = 0 // this one is what verifiers are at work on
		a.hook(filestest.Yield)
		return actors(a), a.settle
	})
	t.Logf("%d orders", runs)
}

// upload PUTs body for the reservation; the store may refuse it.
func (a *arena) upload(ctx context.Context, body []byte) {
	switch err := a.store.Put(ctx, a.id, body); {
	case err == nil:
		a.accepted[string(body)] = true
		a.events++
	case !errors.Is(err, filestest.ErrAlreadyStaged):
		a.wrong = append(a.wrong, fmt.Sprintf("uploading: %v", err))
	}
}

// verifier handles the event of an upload.
func (a *arena) verifier(name string) filestest.Actor {
	return filestest.Actor{Name: name, Run: func(ctx context.Context) {
		switch err := a.world.verifier.Event(ctx, a.id, ""); {
		case errors.Is(err, files.ErrTryAgain):
			a.events++ // it comes again
		case err != nil:
			a.wrong = append(a.wrong, fmt.Sprintf("%s: %v", name, err))
		}
	}}
}

// completer asks to finish the upload, whose bytes are there: it may fail in no other way than by the end of the file.
func (a *arena) completer() filestest.Actor {
	return filestest.Actor{Name: "completer", Run: func(ctx context.Context) {
		f, err := a.complete.Complete(ctx, alice, a.id)
		if err != nil && !errors.Is(err, files.ErrFileDeleted) || err == nil && f.State != files.Ready {
			a.wrong = append(a.wrong, fmt.Sprintf("completing: %s, %v", f.State, err))
		}
	}}
}

// replay uploads other bytes at any moment.
func (a *arena) replay(name string, body []byte) filestest.Actor {
	return filestest.Actor{Name: name, Run: func(ctx context.Context) { a.upload(ctx, body) }}
}

// ender ends the file at any moment, whatever its state is then.
func (a *arena) ender(state files.State) filestest.Actor {
	return filestest.Actor{Name: "ender", Run: func(ctx context.Context) {
		for {
			f, err := a.records.File(ctx, a.id)
			if err != nil || !f.State.Live() {
				return
			}
			f, err = a.records.End(ctx, f, files.Ending{State: state, At: a.clock.Now()})
			if errors.Is(err, files.ErrStateChanged) {
				continue
			}
			if err == nil && f.Sealed != "" {
				err = a.store.Remove(ctx, f.Sealed)
			}
			if err != nil {
				a.wrong = append(a.wrong, fmt.Sprintf("ending: %v", err))
			}
			return
		}
	}}
}

// reader reads the file twice. Once it got bytes it must get the same bytes again, or none.
func (a *arena) reader() filestest.Actor {
	return filestest.Actor{Name: "reader", Run: func(ctx context.Context) {
		var first []byte
		for range 2 {
			link, err := a.world.reader.Link(ctx, alice, a.id, nil)
			if err != nil {
				continue
			}
			body, ok := a.store.Objects().Sealed[link.File.Sealed]
			sum := sha256.Sum256(body)
			if ok && hex.EncodeToString(sum[:]) != link.File.SHA256 {
				a.wrong = append(a.wrong, "a link leads to bytes that were not verified")
			}
			if first != nil && ok && !bytes.Equal(first, body) {
				a.wrong = append(a.wrong, "the bytes of the file changed")
			}
			first = body
		}
	}}
}

// settle delivers the events that are left and lists what is wrong then.
func (a *arena) settle() []string {
	a.hook(nil)
	for range a.events {
		if err := a.world.verifier.Event(a.ctx, a.id, ""); err != nil {
			a.wrong = append(a.wrong, fmt.Sprintf("the last event: %v", err))
		}
	}
	s, o := a.records.Snapshot(a.t), a.store.Objects()
	a.wrong = append(a.wrong, s.Violations()...)
	a.wrong = append(a.wrong, s.ObjectViolations(o)...)
	f := s.Files[a.id]
	switch {
	case f.State == files.Reserved:
		a.wrong = append(a.wrong, "it is still reserved")
	case f.State == files.Ready && !a.accepted[string(o.Sealed[f.Sealed])]:
		a.wrong = append(a.wrong, fmt.Sprintf("it has the bytes %q, which nobody uploaded", o.Sealed[f.Sealed]))
	}
	return a.wrong
}

var (
	other = []byte("other bytes")
	bad   = []byte("BAD bytes")
)

// digestOfPDF lets only the first upload pass.
func digestOfPDF() string {
	sum := sha256.Sum256(pdf)
	return hex.EncodeToString(sum[:])
}

// TestRaces: two verifiers of one upload, a replayed PUT, the end of the file, in every order of their steps.
func TestRaces(t *testing.T) {
	t.Parallel()
	const all = -1
	for _, r := range []struct {
		name     string
		switches int
		first    []byte
		digest   string
		actors   func(a *arena) []filestest.Actor
	}{
		{"two verifiers", all, pdf, "", func(a *arena) []filestest.Actor {
			return []filestest.Actor{a.verifier("A"), a.verifier("B")}
		}},
		{"complete", all, pdf, "", func(a *arena) []filestest.Actor {
			return []filestest.Actor{a.verifier("A"), a.completer(), a.replay("replay", other)}
		}},
		{"complete and delete", 3, pdf, "", func(a *arena) []filestest.Actor {
			return []filestest.Actor{a.completer(), a.verifier("A"), a.ender(files.Deleted)}
		}},
		{"replay", all, pdf, "", func(a *arena) []filestest.Actor {
			return []filestest.Actor{a.verifier("A"), a.verifier("B"), a.replay("replay", other)}
		}},
		{"replay of bad bytes", all, pdf, "", func(a *arena) []filestest.Actor {
			return []filestest.Actor{a.verifier("A"), a.verifier("B"), a.replay("replay", bad)}
		}},
		{"replay against a digest", all, pdf, digestOfPDF(), func(a *arena) []filestest.Actor {
			return []filestest.Actor{a.verifier("A"), a.verifier("B"), a.replay("replay", other)}
		}},
		{"delete", 3, pdf, "", func(a *arena) []filestest.Actor {
			return []filestest.Actor{a.verifier("A"), a.verifier("B"), a.ender(files.Deleted)}
		}},
		{"bad bytes and delete", all, bad, "", func(a *arena) []filestest.Actor {
			return []filestest.Actor{a.verifier("A"), a.ender(files.Deleted), a.replay("replay", other)}
		}},
		{"replay and delete", 2, pdf, "", func(a *arena) []filestest.Actor {
			return []filestest.Actor{a.verifier("A"), a.verifier("B"), a.replay("replay", other), a.ender(files.Deleted)}
		}},
		{"replay of bad bytes and expiry", 2, pdf, "", func(a *arena) []filestest.Actor {
			return []filestest.Actor{a.verifier("A"), a.verifier("B"), a.replay("replay", bad), a.ender(files.Expired)}
		}},
		{"two replays and a reader", 1, pdf, "", func(a *arena) []filestest.Actor {
			return []filestest.Actor{a.verifier("A"), a.verifier("B"), a.reader(), a.replay("replay 1", other), a.replay("replay 2", bad)}
		}},
		{"wrong digest", 3, pdf, fmt.Sprintf("%064d", 0), func(a *arena) []filestest.Actor {
			return []filestest.Actor{a.verifier("A"), a.verifier("B"), a.replay("replay", other)}
		}},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			race(t, r.switches, r.first, r.digest, r.actors)
		})
	}
}

// TestManyUploads: of fifty different bodies for one reservation one wins, and every later read gives exactly it.
func TestManyUploads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.reserve(draft(nil))
	done := make(chan error)
	const n = 50
	for i := range n {
		go func() {
			body := fmt.Appendf(nil, "body %02d", i)
			for range 3 {
				if err := w.store.Put(w.ctx, f.ID, body); err == nil {
					done <- w.verifier.Event(w.ctx, f.ID, "")
					return
				}
			}
			_, err := w.complete.Complete(w.ctx, alice, f.ID)
			if errors.Is(err, files.ErrNotUploaded) {
				err = nil
			}
			done <- err
		}()
	}
	for range n {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	wantErr(t, w.verifier.Event(w.ctx, f.ID, ""), nil)
	w.check()
	w.wantState(f.ID, files.Ready)
	first := w.file(f.ID)
	w.put(f.ID, []byte("much later"))
	wantErr(t, w.verifier.Event(w.ctx, f.ID, ""), nil)
	w.check()
	if again := w.file(f.ID); again.Sealed != first.Sealed || again.SHA256 != first.SHA256 {
		t.Errorf("the file changed from %s to %s", first.Sealed, again.Sealed)
	}
}

// TestReplayAfterTheEnd: whatever became of a file, a replayed upload is removed and changes nothing.
func TestReplayAfterTheEnd(t *testing.T) {
	t.Parallel()
	for _, end := range []files.State{files.Ready, files.Spent, files.Deleted, files.Expired, files.Rejected} {
		t.Run(string(end), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var f files.File
			if end == files.Rejected {
				f = w.reserve(draft(nil))
				w.put(f.ID, bad)
				wantErr(t, w.verifier.Event(w.ctx, f.ID, ""), nil)
			} else if f = w.upload(pdf); end != files.Ready {
				_, err := w.records.End(w.ctx, f, files.Ending{State: end, At: w.clock.Now()})
				wantErr(t, err, nil)
				wantErr(t, w.store.Remove(w.ctx, f.Sealed), nil)
			}
			before := w.file(f.ID)
			for _, body := range [][]byte{pdf, other, bad} {
				w.clock.Advance(10 * time.Minute)
				w.put(f.ID, body)
				for range 2 {
					wantErr(t, w.verifier.Event(w.ctx, f.ID, ""), nil)
				}
			}
			w.check()
			if after := w.file(f.ID); after.State != end || after.Sealed != before.Sealed || after.SHA256 != before.SHA256 {
				t.Errorf("it was %+v and is %+v", before, after)
			}
		})
	}
}

// TestKilledAfterCopying: a verifier copied the bytes of a file that was deleted and purged meanwhile, and was killed
// before it could find out. The event comes again, and the copy goes.
func TestKilledAfterCopying(t *testing.T) {
	t.Parallel()
	for _, recorded := range []bool{true, false} {
		w := newWorld(t)
		f := w.reserve(draft(nil))
		w.put(f.ID, pdf)
		staged, err := w.store.Open(w.ctx, f.ID)
		wantErr(t, err, nil)
		if recorded {
			_, err = w.records.End(w.ctx, f, files.Ending{State: files.Deleted, At: w.clock.Now()})
		} else {
			err = w.records.Undo(w.ctx, f, nil)
		}
		wantErr(t, err, nil)
		_, err = w.store.Seal(w.ctx, f, staged.ETag)
		wantErr(t, err, nil)
		wantErr(t, w.verifier.Event(w.ctx, f.ID, ""), nil)
		if o := w.store.Objects(); len(o.Staged)+len(o.Sealed) > 0 {
			t.Errorf("with a record %v: %d staged and %d sealed objects are left", recorded, len(o.Staged), len(o.Sealed))
		}
	}
}

// TestCopyOfReplay: a verifier that is told of other bytes than those that were verified, and ends or fails once it has
// copied them, leaves nothing behind when the event of those bytes has been delivered.
func TestCopyOfReplay(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]struct {
		op   string
		when filestest.When
	}{"copied": {"Seal", filestest.After}, "not removed": {"Remove", filestest.Before}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			f := l.reserve(draft(nil))
			l.put(f.ID, pdf)
			wantErr(t, l.verifier.Event(l.ctx, f.ID, etagOf(pdf)), nil)
			replayed := append([]byte("%PDF-1.7 other"), pdf...)
			l.put(f.ID, replayed)
			l.faults.Fail(filestest.Step{Op: at.op, N: l.calls(at.op) + 1}, at.when)
			_, err := l.verifier.Verify(l.ctx, f) // as read before it was ready
			wantErr(t, err, filestest.ErrInjected)
			if n := len(l.store.Objects().Sealed); n != 2 {
				t.Fatalf("%d copies, want 2: the test is of none", n)
			}
			for range 2 {
				wantErr(t, l.verifier.Event(l.ctx, f.ID, etagOf(replayed)), nil)
				wantErr(t, l.verifier.Event(l.ctx, f.ID, etagOf(pdf)), nil) // late: this one is in use
			}
			o := l.store.Objects()
			if len(o.Sealed) != 1 || len(o.Staged) != 0 || !bytes.Equal(o.Sealed[l.file(f.ID).Sealed], pdf) {
				t.Errorf("%d copies and %d staged objects are left", len(o.Sealed), len(o.Staged))
			}
			wantErr(t, l.deleter.Delete(l.ctx, alice, f.ID), nil)
			l.purge()
			l.check()
		})
	}
}

// etagOf is the ETag of an object as S3 tells it in an event.
func etagOf(body []byte) string {
	sum := md5.Sum(body)
	return hex.EncodeToString(sum[:])
}
