package files_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
)

func TestInline(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		body   []byte
		change func(*files.Draft)
		check  func(t *testing.T, err error)
	}{
		{"small", []byte("x"), func(*files.Draft) {}, nil},
		{"the largest", make([]byte, 1000), func(*files.Draft) {}, nil},
		{"with its digest", pdf, func(d *files.Draft) { d.SHA256 = sha(pdf) }, nil},
		{"container", pdf, func(d *files.Draft) { d.ContentType = "application/zip" }, nil},
		{"too large", make([]byte, 1001), func(*files.Draft) {}, func(t *testing.T, err error) {
			if e := as[*files.TooLargeError](t, err); e.Max != 1000 || e.Detail == "" {
				t.Errorf("%+v", e)
			}
		}},
		{"empty", nil, func(*files.Draft) {}, func(t *testing.T, err error) { wantErr(t, err, files.ErrEmptyFile) }},
		{"wrong digest", pdf, func(d *files.Draft) { d.SHA256 = sha(other) }, func(t *testing.T, err error) {
			if e := as[*files.FailedVerificationError](t, err); e.Reason.Code != files.CodeChecksumMismatch {
				t.Errorf("%+v", e)
			}
		}},
		{"wrong type", bad, func(*files.Draft) {}, func(t *testing.T, err error) {
			e := as[*files.FailedVerificationError](t, err)
			if e.Reason.Code != files.CodeTypeMismatch || e.Reason.Declared != "application/pdf" || e.Reason.Detected != "application/x-bad" {
				t.Errorf("%+v", e)
			}
		}},
		{"bad name", pdf, func(d *files.Draft) { d.Filename = ".." }, func(t *testing.T, err error) { as[*files.ValidationError](t, err) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			f, err := w.inline.Create(w.ctx, alice, draft(nil, c.change), c.body, nil)
			if c.check != nil {
				c.check(t, err)
				w.wantNothing()
				return
			}
			if err != nil || f.State != files.Ready || f.Size != int64(len(c.body)) || f.SHA256 != sha(c.body) {
				t.Errorf("got %+v, %v", f, err)
			}
			w.check()
		})
	}
}

// TestInlineCounts: an inline file needs bytes of the account, but is no reservation of its actor.
func TestInlineCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.inline.Limits.AccountMaxLiveBytes = 10
	for range 10 {
		_, err := w.inline.Create(w.ctx, alice, draft(nil), []byte("x"), nil)
		wantErr(t, err, nil)
	}
	_, err := w.inline.Create(w.ctx, alice, draft(nil), []byte("x"), nil)
	if limit := as[*files.LimitError](t, err); limit.Kind != files.LimitBytes || limit.RetryAfter != limits.FileTTL {
		t.Errorf("%+v", *limit)
	}
	w.check()
	w.clock.Advance(limits.FileTTL)
	_, err = w.inline.Create(w.ctx, alice, draft(nil), []byte("x"), nil)
	wantErr(t, err, nil)
}

func TestIdempotentInline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	idem := &files.Idempotency{Account: "acme", Actor: "alice", Route: "POST /v1/files", Key: "k", Digest: "d"}
	var wg sync.WaitGroup
	ids := make([]string, 20)
	for i := range ids {
		wg.Go(func() {
			f, err := w.inline.Create(w.ctx, alice, draft(nil), pdf, idem)
			wantErr(t, err, nil)
			ids[i] = f.ID
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("got %s and %s", id, ids[0])
		}
	}
	w.check()
	w.clock.Advance(limits.FileTTL - time.Second)
	f, err := w.inline.Create(w.ctx, alice, draft(nil), pdf, idem)
	if err != nil || f.ID != ids[0] {
		t.Errorf("a second before the end: %s, %v", f.ID, err)
	}
}

// TestInlineStartedOver: the first request died between its reservation and the bytes; its repeat finishes the job, but
// not once the reservation is over.
func TestInlineStartedOver(t *testing.T) {
	t.Parallel()
	idem := &files.Idempotency{Account: "acme", Actor: "alice", Route: "r", Key: "k", Digest: "d"}
	for at, want := range map[time.Duration]error{limits.ReservationTTL - time.Second: nil, limits.ReservationTTL: files.ErrUploadExpired} {
		w := newWorld(t)
		dead := filestest.NewFile(filestest.Inline, filestest.Sized(int64(len(pdf))))
		_, _, err := w.records.Create(w.ctx, dead, filestest.Roomy, idem, w.clock.Now())
		wantErr(t, err, nil)
		w.clock.Advance(at)
		f, err := w.inline.Create(w.ctx, alice, draft(nil), pdf, idem)
		wantErr(t, err, want)
		if err == nil && (f.ID != dead.ID || f.State != files.Ready) {
			t.Errorf("got %+v", f)
		}
		w.check()
	}
}

// TestInlineRaces: two requests under one idempotency key, one of which fails at some step and takes its reservation
// back. Whoever gets an answer has the file.
func TestInlineRaces(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"", "PutSealed", "MarkReady"} {
		for _, when := range []filestest.When{filestest.Before, filestest.After} {
			t.Run(fmt.Sprintf("%s %s", when, op), func(t *testing.T) {
				t.Parallel()
				filestest.Explore(t, 3, func() ([]filestest.Actor, func() []string) { return inlineRace(t, op, when) })
			})
		}
	}
}

func inlineRace(t *testing.T, op string, when filestest.When) ([]filestest.Actor, func() []string) {
	w := newWorld(t)
	faults := &filestest.Faults{}
	faults.Fail(filestest.Step{Op: op, N: 1}, when)
	w.hook(func(ctx context.Context, o string, at filestest.When) error {
		if err := filestest.Yield(ctx, o, at); err != nil {
			return err
		}
		return faults.Hook(ctx, o, at)
	})
	idem := &files.Idempotency{Account: "acme", Actor: "alice", Route: "r", Key: "k", Digest: "d"}
	var answered []files.File
	var wrong []string
	request := func(name string) filestest.Actor {
		return filestest.Actor{Name: name, Run: func(ctx context.Context) {
			f, err := w.inline.Create(ctx, alice, draft(nil), pdf, idem)
			if err != nil {
				wantErr(t, err, files.ErrTryAgain)
				return
			}
			answered = append(answered, f)
		}}
	}
	return []filestest.Actor{request("first"), request("second")}, func() []string {
		w.hook(nil)
		if _, err := w.inline.Create(w.ctx, alice, draft(nil), pdf, idem); err != nil {
			wrong = append(wrong, fmt.Sprintf("the last repeat: %v", err))
		}
		s := w.records.Snapshot(t)
		for _, f := range answered {
			if s.Files[f.ID].State != files.Ready {
				wrong = append(wrong, fmt.Sprintf("%s was answered and is %q", f.ID, s.Files[f.ID].State))
			}
		}
		if len(s.Files) != 1 {
			wrong = append(wrong, fmt.Sprintf("there are %d files", len(s.Files)))
		}
		wrong = append(wrong, s.Violations()...)
		return append(wrong, s.ObjectViolations(w.store.Objects())...)
	}
}

// TestInlineAfterItsEnd: a request that stores its bytes after a repeat of it was faster, and the file has ended since,
// takes them back.
func TestInlineAfterItsEnd(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	idem := &files.Idempotency{Account: "acme", Actor: "alice", Route: "POST /v1/files", Key: "k", Digest: "d"}
	l.faults.Do(filestest.Step{Op: "PutSealed", N: 1}, filestest.Before, func() {
		f, err := l.inline.Create(l.ctx, alice, draft(pdf), pdf, idem)
		wantErr(t, err, nil)
		wantErr(t, l.deleter.Delete(l.ctx, alice, f.ID), nil)
		l.purge()
	})
	_, err := l.inline.Create(l.ctx, alice, draft(pdf), pdf, idem)
	wantErr(t, err, files.ErrFileDeleted)
	if n := len(l.store.Objects().Sealed); n != 0 {
		t.Errorf("%d objects are left", n)
	}
	l.check()
}
