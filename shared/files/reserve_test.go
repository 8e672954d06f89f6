package files_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
)

func TestReserve(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, err := w.uploads.Reserve(w.ctx, alice, draft(pdf), nil)
	wantErr(t, err, nil)
	if r.Upload == nil || r.Upload.Method != "PUT" || !r.Upload.ExpiresAt.Equal(filestest.Now.Add(15*time.Minute)) {
		t.Errorf("the upload is %+v", r.Upload)
	}
	if stored := w.file(r.File.ID); stored.Charged != int64(len(pdf)) || !stored.Counted {
		t.Errorf("it is charged %d bytes, counted %v", stored.Charged, stored.Counted)
	}
	unsized := w.reserve(draft(nil))
	if unsized.Size != files.SizeUnknown || unsized.Charged != limits.MaxFileBytes {
		t.Errorf("without a size it has %d and is charged %d", unsized.Size, unsized.Charged)
	}
	w.check()
}

// TestUploadEnds: the presigned upload ends with the reservation, or with the credentials that signed it.
func TestUploadEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.reserve(draft(pdf))
	for _, c := range []struct{ at, session, want time.Duration }{
		{0, 0, 15 * time.Minute},
		{45 * time.Minute, 0, time.Hour},
		{50 * time.Minute, 0, time.Hour},
		{50 * time.Minute, 51 * time.Minute, 51 * time.Minute},
	} {
		w.clock.Set(filestest.Now.Add(c.at))
		w.signer.Ends = time.Time{}
		if c.session > 0 {
			w.signer.Ends = filestest.Now.Add(c.session)
		}
		r, err := w.renewer.Get(w.ctx, alice, f.ID)
		wantErr(t, err, nil)
		if got := r.Upload.ExpiresAt.Sub(filestest.Now); got != c.want {
			t.Errorf("asked after %v it ends after %v, want %v", c.at, got, c.want)
		}
	}
}

func TestRenew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	waiting, ready := w.reserve(draft(pdf)), w.upload(pdf)
	rejected := w.reserve(draft(nil))
	w.put(rejected.ID, bad)
	wantErr(t, w.verifier.Event(w.ctx, rejected.ID, ""), nil)

	get := func(c files.Caller, id string) (files.Reservation, error) { return w.renewer.Get(w.ctx, c, id) }
	for _, c := range []struct {
		id     string
		state  files.State
		upload bool
	}{{waiting.ID, files.Reserved, true}, {ready.ID, files.Ready, false}, {rejected.ID, files.Rejected, false}} {
		r, err := get(alice, c.id)
		if err != nil || r.File.State != c.state || (r.Upload != nil) != c.upload {
			t.Errorf("a file that is %s: %s, upload %v, %v", c.state, r.File.State, r.Upload != nil, err)
		}
	}
	for _, c := range []files.Caller{
		{Account: "acme", Actor: "bob", Scopes: files.Scopes},
		{Account: "other", Actor: "alice", Scopes: files.Scopes},
	} {
		_, err := get(c, waiting.ID)
		wantErr(t, err, files.ErrFileNotFound)
	}
	for _, id := range []string{files.NewID(), "", "f_", "../" + waiting.ID} {
		_, err := get(alice, id)
		wantErr(t, err, files.ErrFileNotFound)
	}
	w.clock.Advance(limits.ReservationTTL)
	_, err := get(alice, waiting.ID)
	wantErr(t, err, files.ErrUploadExpired)
	w.clock.Advance(limits.FileTTL)
	_, err = get(alice, ready.ID)
	wantErr(t, err, files.ErrFileExpired)
}

// fill reserves until a limit is met and returns the error.
func (w *world) fill(d files.Draft) (n int, limit *files.LimitError) {
	w.t.Helper()
	for ; n < 100; n++ {
		if _, err := w.uploads.Reserve(w.ctx, alice, d, nil); err != nil {
			return n, as[*files.LimitError](w.t, err)
		}
	}
	w.t.Fatal("there is no limit")
	return 0, nil
}

func TestLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.uploads.Limits.AccountMaxLiveBytes = 8000 // a quarter of it holds two files of unknown size
	w.clock.Set(filestest.Now.Add(300 * time.Millisecond))
	n, limit := w.fill(draft(nil))
	if n != 2 || limit.Kind != files.LimitUnsized || limit.Max != 2000 || limit.RetryAfter != time.Hour-300*time.Millisecond {
		t.Errorf("without sizes: %d, then %+v", n, *limit)
	}
	n, limit = w.fill(draft(pdf))
	if n != 1 || limit.Kind != files.LimitReservations || limit.Max != 3 {
		t.Errorf("with sizes: %d, then %+v", n, *limit)
	}
	bob := files.Caller{Account: "acme", Actor: "bob", Scopes: files.Scopes}
	_, err := w.uploads.Reserve(w.ctx, bob, draft(pdf), nil)
	wantErr(t, err, nil)
	w.check()
}

// TestBytesToTheLimit: exactly full is allowed, one byte more isn't; each way a file ends makes room.
func TestBytesToTheLimit(t *testing.T) {
	t.Parallel()
	full := func() *world {
		w := newWorld(t)
		w.uploads.Limits.AccountMaxLiveBytes = 2000
		w.uploads.Limits.ActorMaxReservations = 10
		w.reserve(draft(nil, func(d *files.Draft) { d.Size = size(1000) }))
		w.upload(make([]byte, 999))
		w.upload([]byte("x"))
		_, err := w.uploads.Reserve(w.ctx, alice, draft([]byte("x")), nil)
		limit := as[*files.LimitError](t, err)
		if limit.Kind != files.LimitBytes || limit.Max != 2000 || limit.Bytes != 1 || limit.RetryAfter != time.Hour {
			t.Errorf("one byte more: %+v", *limit)
		}
		w.check()
		return w
	}
	big := func(w *world) files.File {
		for _, f := range w.records.Snapshot(t).Files {
			if f.Size == 999 {
				return f
			}
		}
		panic("no big file")
	}
	for name, free := range map[string]func(w *world){
		"delete": func(w *world) {
			_, err := w.records.End(w.ctx, big(w), files.Ending{State: files.Deleted, At: w.clock.Now()})
			wantErr(t, err, nil)
		},
		"spend": func(w *world) {
			_, err := w.records.End(w.ctx, big(w), files.Ending{State: files.Spent, At: w.clock.Now()})
			wantErr(t, err, nil)
		},
		"reject": func(w *world) {
			for _, f := range w.records.Snapshot(t).Files {
				if f.State == files.Reserved {
					w.put(f.ID, []byte("BAD"))
					wantErr(t, w.verifier.Event(w.ctx, f.ID, ""), nil)
				}
			}
		},
		"expire": func(w *world) { w.clock.Set(filestest.Now.Add(limits.ReservationTTL)) },
	} {
		w := full()
		free(w)
		if _, err := w.uploads.Reserve(w.ctx, alice, draft(make([]byte, 900)), nil); err != nil {
			t.Errorf("after %s: %v", name, err)
		}
		filestest.CheckInvariants(t, w.records.Snapshot(t))
	}
	w := full()
	w.clock.Set(filestest.Now.Add(limits.ReservationTTL - time.Nanosecond))
	_, err := w.uploads.Reserve(w.ctx, alice, draft([]byte("x")), nil)
	if limit := as[*files.LimitError](t, err); limit.RetryAfter != time.Second {
		t.Errorf("a moment before the end: %+v", *limit)
	}
}

// TestQuotaClearsAtTheSecond: without any background process, and for more files than one round clears.
func TestQuotaClearsAtTheSecond(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.uploads.Limits.ActorMaxReservations = 60
	for i := range 60 {
		w.clock.Set(filestest.Now.Add(time.Duration(i%2) * time.Second))
		w.reserve(draft([]byte("x")))
	}
	w.clock.Set(filestest.Now.Add(limits.ReservationTTL - time.Second))
	if n, limit := w.fill(draft([]byte("x"))); n != 0 || limit.RetryAfter != time.Second {
		t.Errorf("a second before: %d fit, %+v", n, limit)
	}
	w.clock.Advance(time.Second)
	if n, limit := w.fill(draft([]byte("x"))); n != 30 || limit.RetryAfter != time.Second {
		t.Errorf("at the end of half of them: %d fit, %+v", n, limit)
	}
	w.clock.Advance(time.Second)
	if n, _ := w.fill(draft([]byte("x"))); n != 30 {
		t.Errorf("at the end of the others: %d fit", n)
	}
	w.check()
}

// TestLimitBesideAnotherCaller: the holds that ended may be cleared by somebody else between an attempt and the search
// for them. The room is there then, so no limit may be reported.
func TestLimitBesideAnotherCaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var ended []files.File
	for range limits.ActorMaxReservations {
		ended = append(ended, w.reserve(draft(pdf)))
	}
	w.clock.Advance(limits.ReservationTTL)
	w.faults = &filestest.Faults{}
	w.faults.Do(filestest.Step{Op: "EndedHolds", N: 1}, filestest.Before, func() {
		for _, f := range ended {
			wantErr(t, w.records.Release(w.ctx, "acme", f.ID, w.clock.Now()), nil)
		}
	})
	w.hook(w.faults.Hook)
	_, err := w.uploads.Reserve(w.ctx, alice, draft(pdf), nil)
	wantErr(t, err, nil)
	if w.faults.Fired() != 1 {
		t.Error("nobody came in between")
	}
	w.check()
}

func TestParallelReserves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.uploads.Limits.ActorMaxReservations = 50
	old := make([]files.File, 50)
	for i := range old {
		old[i] = w.reserve(draft([]byte("x")))
	}
	w.clock.Advance(limits.ReservationTTL) // all fifty have to be cleared by whoever comes
	var wg sync.WaitGroup
	errs := make([]error, 160)
	for i := range errs {
		wg.Go(func() { _, errs[i] = w.uploads.Reserve(w.ctx, alice, draft([]byte("x")), nil) })
	}
	wg.Wait()
	made := 0
	for _, err := range errs {
		if err == nil {
			made++
		} else if e := as[*files.LimitError](t, err); e.Kind != files.LimitReservations || e.RetryAfter < time.Second {
			t.Errorf("%+v", *e)
		}
	}
	if made != 50 {
		t.Errorf("%d of 160 reserves succeeded, want 50", made)
	}
	w.check()
}

func TestIdempotentReserve(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	reserve := func(digest string) (files.Reservation, error) {
		idem := &files.Idempotency{Account: "acme", Actor: "alice", Route: "POST /v1/uploads", Key: "k", Digest: digest}
		return w.uploads.Reserve(w.ctx, alice, draft(pdf), idem)
	}
	first, err := reserve("d")
	wantErr(t, err, nil)
	w.clock.Advance(50 * time.Minute)
	again, err := reserve("d")
	wantErr(t, err, nil)
	if again.File.ID != first.File.ID || again.Upload == nil || !again.Upload.ExpiresAt.Equal(again.File.UploadBy) {
		t.Errorf("the repeat: %+v", again)
	}
	_, err = reserve("other")
	wantErr(t, err, files.ErrIdempotencyMismatch)
	w.put(first.File.ID, pdf)
	wantErr(t, w.verifier.Event(w.ctx, first.File.ID, ""), nil)
	if again, err = reserve("d"); err != nil || again.File.State != files.Ready || again.Upload != nil {
		t.Errorf("the repeat after verification: %+v, %v", again, err)
	}
	w.clock.Set(filestest.Now.Add(files.IdempotencyWindow - time.Second))
	if again, err = reserve("d"); err != nil || again.File.ID != first.File.ID {
		t.Errorf("the repeat at the end of the window: %v", err)
	}
	w.clock.Advance(time.Second) // the file and the window end together
	if again, err = reserve("d"); err != nil || again.File.ID == first.File.ID {
		t.Errorf("after the window: %s, %v", again.File.ID, err)
	}
	w.clock.Advance(limits.ReservationTTL)
	_, err = reserve("d")
	wantErr(t, err, files.ErrUploadExpired)
	if n := len(w.records.Snapshot(t).Files); n != 2 {
		t.Errorf("there are %d files, want 2", n)
	}
}

func TestIdempotentParallelReserve(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := make([]string, 20)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			idem := &files.Idempotency{Account: "acme", Actor: "alice", Route: "r", Key: "k", Digest: "d"}
			r, err := w.uploads.Reserve(w.ctx, alice, draft(pdf), idem)
			wantErr(t, err, nil)
			ids[i] = r.File.ID
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("got %s and %s", id, ids[0])
		}
	}
	w.check()
}

// TestEndedHoldsKeepComing: a caller does not work for others for ever.
func TestEndedHoldsKeepComing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.uploads.Records = endless{w.records}
	_, err := w.uploads.Reserve(w.ctx, alice, draft(pdf), nil)
	wantErr(t, err, files.ErrTryAgain)
	if errors.As(err, new(*files.LimitError)) {
		t.Errorf("%v is reported as a limit", err)
	}
}

// endless always meets a limit, and always finds a full page of ended holds.
type endless struct{ *filestest.Records }

func (endless) Create(context.Context, files.File, files.Quota, *files.Idempotency, time.Time) (files.File, bool, error) {
	return files.File{}, false, &files.LimitError{Kind: files.LimitBytes}
}

func (endless) EndedHolds(_ context.Context, _ string, _ time.Time, limit int) ([]string, error) {
	ids := make([]string, limit)
	for i := range ids {
		ids[i] = fmt.Sprint("f_", i)
	}
	return ids, nil
}
