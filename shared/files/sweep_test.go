package files_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
)

// TestSweep: what is due ends with its quota, the deletion queue then removes its bytes, and nothing else goes.
func TestSweep(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.sweep()
	short, claimed, long := l.ready(living(60)), l.ready(once, living(60)), l.ready()
	l.claim(alice, claimed.ID, "call-1")
	unsent := l.reserve(draft(pdf, living(60)))
	l.clock.Advance(time.Minute)
	if swept := l.sweep(); swept != (files.Swept{Ended: 3}) {
		t.Errorf("swept %+v, want 3 files", swept)
	}
	for _, f := range []files.File{short, claimed, unsent} {
		l.wantGone(f, files.Expired)
	}
	l.wantState(long.ID, files.Ready)
	if swept := l.sweep(); swept != (files.Swept{}) {
		t.Errorf("swept again: %+v, want nothing", swept)
	}
	l.check()
	l.wantUsage(int64(len(pdf)), 1, 0)
}

// TestSweepPages: more files than a page holds, in one minute.
func TestSweepPages(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	n := 3*filestest.PageSize + 1
	for range n {
		l.ready(living(60))
	}
	l.clock.Advance(time.Hour)
	if swept := l.sweep(); swept.Ended != n {
		t.Errorf("swept %+v, want %d files", swept, n)
	}
	l.check()
}

// TestSweepCatchesUp: minutes that nobody swept are not forgotten, and swept minutes are not read again for ever.
func TestSweepCatchesUp(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.sweep()
	var all []files.File
	for _, seconds := range []int64{1, 59, 60, 200, 3600, 3601, 7000, 80000} {
		all = append(all, l.ready(living(seconds)))
	}
	l.clock.Advance(82000 * time.Second)
	if swept := l.sweep(); swept.Ended != len(all) || swept.Behind {
		t.Errorf("swept %+v, want %d files", swept, len(all))
	}
	for _, f := range all {
		l.wantGone(f, files.Expired)
	}
	l.check()
	l.sweep()
	before := len(l.faults.Steps())
	l.clock.Advance(time.Minute)
	_, err := l.sweeper.Sweep(l.ctx)
	wantErr(t, err, nil)
	if n := len(l.faults.Steps()) - before; n > 8 {
		t.Errorf("a sweep of nothing took %d steps", n)
	}
}

// TestFirstSweep: files may have ended before the first sweep ever.
func TestFirstSweep(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	f := l.ready(living(1))
	l.clock.Advance(90 * time.Minute)
	l.sweep()
	l.wantGone(f, files.Expired)
}

// TestSweepFailures: a file that can't be ended keeps no other alive, and is ended once it can be.
func TestSweepFailures(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.sweep()
	for range 2 * filestest.PageSize {
		l.ready(living(60))
	}
	later := l.ready(living(150))
	l.clock.Advance(3 * time.Minute)
	l.faults.Fail(filestest.Step{Op: "End", N: 2}, filestest.Before)
	swept, err := l.sweeper.Sweep(l.ctx)
	wantErr(t, err, files.ErrTryAgain)
	if swept.Ended != 2*filestest.PageSize {
		t.Errorf("swept %+v, want all but one", swept)
	}
	l.purge()
	l.wantGone(later, files.Expired)
	l.clock.Advance(50 * time.Minute)
	if swept := l.sweep(); swept.Ended != 1 {
		t.Errorf("swept %+v, want the one that failed", swept)
	}
	l.check()
}

// poisoned makes every End of one file fail.
type poisoned struct {
	*filestest.Records
	id string
}

func (p poisoned) End(ctx context.Context, f files.File, e files.Ending) (files.File, error) {
	if f.ID == p.id {
		return files.File{}, errors.New("poisoned")
	}
	return p.Records.End(ctx, f, e)
}

// TestPoison: a file that can never be ended does not make each sweep longer than the one before.
func TestPoison(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.sweep()
	bad := l.ready(living(60))
	l.sweeper.Records = poisoned{l.records, bad.ID}
	for range 10 {
		l.clock.Advance(12 * time.Hour)
		swept, err := l.sweeper.Sweep(l.ctx)
		if err == nil && swept.Ended > 0 {
			t.Fatal("the poisoned file was ended")
		}
	}
	before := len(l.faults.Steps())
	_, err := l.sweeper.Sweep(l.ctx)
	wantErr(t, err, nil)
	if n := len(l.faults.Steps()) - before; n > 10 {
		t.Errorf("a sweep takes %d steps because of one file", n)
	}
}

// TestSweepInTime: bytes that came in time count, though the news of them was lost; those that came late do not.
func TestSweepInTime(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.sweep()
	in := l.reserve(draft(pdf))
	l.put(in.ID, pdf)
	wrong := l.reserve(draft(nil))
	l.put(wrong.ID, bad)
	late := l.reserve(draft(pdf))
	l.clock.Set(in.UploadBy.Add(time.Second))
	l.put(late.ID, pdf)
	if swept := l.sweep(); swept.Ended != 2 {
		t.Errorf("swept %+v, want two", swept)
	}
	l.wantState(in.ID, files.Ready)
	l.wantGone(wrong, files.Rejected)
	l.wantGone(late, files.Expired)
	l.check()
	l.clock.Set(in.ExpiresAt)
	l.sweep()
	l.wantGone(l.file(in.ID), files.Expired)
	l.check()
}

// TestSweepLeftHold: a hold whose record is gone is released.
func TestSweepLeftHold(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.sweep()
	f := l.reserve(draft(pdf))
	l.records.Drop(f.ID)
	l.clock.Set(f.UploadBy)
	if swept := l.sweep(); swept.Ended != 0 {
		t.Errorf("swept %+v, want no file", swept)
	}
	l.check()
	if u := l.records.Snapshot(t).Accounts["acme"]; u != (filestest.AccountUsage{}) {
		t.Errorf("the account still counts %+v", u)
	}
}

// TestSweepBesideOthers: a file that moves under the sweep is looked at again.
func TestSweepBesideOthers(t *testing.T) {
	t.Parallel()
	t.Run("released", func(t *testing.T) {
		t.Parallel()
		l := newLife(t)
		l.sweep()
		f := l.ready(once, living(60))
		claim := l.claim(alice, f.ID, "call-1").File.Claim.ID
		l.clock.Set(f.ExpiresAt)
		l.faults.Do(filestest.Step{Op: "End", N: 1}, filestest.Before, func() {
			if _, err := l.records.Unclaim(l.ctx, f.ID, claim); err != nil { // checked before the end, written after it
				t.Error(err)
			}
		})
		l.sweep()
		l.wantGone(f, files.Expired)
	})
	t.Run("deleted", func(t *testing.T) {
		t.Parallel()
		l := newLife(t)
		l.sweep()
		f := l.ready(living(60))
		l.clock.Set(f.ExpiresAt)
		l.faults.Do(filestest.Step{Op: "End", N: 1}, filestest.Before, func() { wantErr(t, l.deleter.Delete(l.ctx, alice, f.ID), nil) })
		l.sweep()
		l.wantGone(f, files.Deleted)
	})
}

// TestSweepOutOfTime: a sweep that runs out of time goes on in the next one, and that is no error.
func TestSweepOutOfTime(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.sweep()
	n := 4 * filestest.PageSize
	for range n {
		l.ready(living(60))
	}
	l.clock.Advance(10 * time.Minute)
	l.sweeper.Reserve = time.Hour
	ctx, cancel := context.WithTimeout(l.ctx, time.Minute)
	defer cancel()
	if swept, err := l.sweeper.Sweep(ctx); err != nil || !swept.Behind || swept.Ended != 0 {
		t.Errorf("without any time: %+v, %v", swept, err)
	}
	ctx, stop := context.WithCancel(l.ctx)
	defer stop()
	l.faults.Do(filestest.Step{Op: "Due", N: l.calls("Due") + 5}, filestest.After, stop)
	if swept, err := l.sweeper.Sweep(ctx); err != nil || !swept.Behind || swept.Ended == 0 || swept.Ended == n {
		t.Errorf("stopped half-way: %+v, %v", swept, err)
	}
	for range 10 {
		if swept := l.sweep(); !swept.Behind {
			break
		}
	}
	l.check()
	l.wantUsage(0, 0, 0)
}

// calls counts the calls of op so far.
func (l *life) calls(op string) int {
	n := 0
	for _, s := range l.faults.Steps() {
		if s.Op == op {
			n++
		}
	}
	return n
}
