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

// TestClaimAndRelease: the tool fails, and the same handle works again without uploading.
func TestClaimAndRelease(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	f := l.ready(once)
	lent := l.claim(alice, f.ID, "call-1")
	now := l.clock.Now()
	if !lent.New || lent.File.State != files.Claimed || lent.File.Claim.Holder != "call-1" || lent.File.Claim.Actor != "alice" {
		t.Errorf("lent %+v", lent)
	}
	if got, want := lent.File.Claim.LeaseUntil, now.Add(lease); !got.Equal(want) {
		t.Errorf("the lease ends at %v, want %v", got, want)
	}
	if !lent.Link.ExpiresAt.Equal(lent.File.Claim.LeaseUntil) || lent.Link.URL == "" {
		t.Errorf("the link is %+v, want one for the time of the lease", lent.Link)
	}
	released, err := l.claims.Release(l.ctx, alice, lent.File.Claim.ID)
	if err != nil || released.State != files.Ready {
		t.Fatalf("released: %s, %v", released.State, err)
	}
	again := l.claim(bob, f.ID, "call-2")
	if !again.New || again.File.Claim.ID == lent.File.Claim.ID {
		t.Errorf("the second claim is %+v", again.File.Claim)
	}
	l.wantUsage(int64(len(pdf)), 1, 0)
	l.check()
}

// TestClaimAndCommit: a commit spends the file for everyone.
func TestClaimAndCommit(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	f := l.ready(once)
	claim := l.claim(alice, f.ID, "call-1").File.Claim.ID
	for range 2 {
		spent, err := l.claims.Commit(l.ctx, alice, claim)
		if err != nil || spent.State != files.Spent || spent.Claim.ID != claim {
			t.Fatalf("committed: %s, %v", spent.State, err)
		}
	}
	l.wantGone(f, files.Spent)
	l.wantUsage(0, 0, 0)
	for _, c := range []files.Caller{alice, bob} {
		_, err := l.claimer.Claim(l.ctx, c, f.ID, "call-1", nil, nil)
		wantErr(t, err, files.ErrFileSpent)
		_, err = l.reader.Link(l.ctx, c, f.ID, nil)
		wantErr(t, err, files.ErrFileSpent)
		_, err = files.Show(l.ctx, l.records, c, f.ID, l.clock.Now())
		wantErr(t, err, files.ErrFileSpent)
	}
	_, err := l.claims.Release(l.ctx, alice, claim)
	wantErr(t, err, files.ErrFileSpent)
	_, err = l.claims.Extend(l.ctx, alice, claim, nil)
	wantErr(t, err, files.ErrFileSpent)
	l.check()
}

// TestReadingNeedsAClaim: nothing but a claim links a single-use file, claimed or not, and linking never spends it.
func TestReadingNeedsAClaim(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	f := l.ready(once)
	refuse := func() {
		t.Helper()
		_, err := l.reader.Link(l.ctx, alice, f.ID, nil)
		wantErr(t, err, files.ErrClaimRequired)
		_, err = l.reader.Content(l.ctx, alice, f.ID, "GET")
		wantErr(t, err, files.ErrClaimRequired)
		_, err = l.reader.Resolve(l.ctx, alice, "claim://", []string{"claim://" + f.ID})
		wantErr(t, err, files.ErrClaimRequired)
	}
	refuse()
	l.claim(alice, f.ID, "call-1")
	refuse()
	l.wantState(f.ID, files.Claimed)
}

// TestHolders: one holder is an actor and a text; who has the file already gets the same claim.
func TestHolders(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	f := l.ready(once)
	first := l.claim(alice, f.ID, "call-1")
	l.clock.Advance(time.Minute)
	again := l.claim(alice, f.ID, "call-1")
	if again.New || again.File.Claim != first.File.Claim || !again.Link.ExpiresAt.Equal(first.Link.ExpiresAt) {
		t.Errorf("claimed again it is %+v until %v, want %+v", again.File.Claim, again.Link.ExpiresAt, first.File.Claim)
	}
	for _, c := range []struct {
		caller files.Caller
		holder string
	}{{alice, "call-2"}, {bob, "call-1"}} {
		_, err := l.claimer.Claim(l.ctx, c.caller, f.ID, c.holder, nil, nil)
		if refused := as[*files.ClaimedError](t, err); refused.RetryAfter != lease-time.Minute {
			t.Errorf("%s of %s may try again after %v, want %v", c.holder, c.caller.Actor, refused.RetryAfter, lease-time.Minute)
		}
	}
	l.clock.Set(first.File.Claim.LeaseUntil.Add(-time.Millisecond))
	_, err := l.claimer.Claim(l.ctx, bob, f.ID, "call-2", nil, nil)
	if refused := as[*files.ClaimedError](t, err); refused.RetryAfter != time.Second {
		t.Errorf("just before the end: try again after %v, want a second", refused.RetryAfter)
	}
}

// TestLostLease: the holder dies, another one takes over, and a late commit does not touch it.
func TestLostLease(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	f := l.ready(once)
	old := l.claim(alice, f.ID, "call-1").File.Claim
	l.clock.Set(old.LeaseUntil)
	current := l.claim(alice, f.ID, "call-2").File.Claim
	if current.ID == old.ID {
		t.Fatal("the second claim has the id of the first")
	}
	lost := func(want error) {
		t.Helper()
		before := l.file(f.ID)
		_, err := l.claims.Commit(l.ctx, alice, old.ID)
		wantErr(t, err, want)
		_, err = l.claims.Release(l.ctx, alice, old.ID)
		wantErr(t, err, want)
		_, err = l.claims.Extend(l.ctx, alice, old.ID, nil)
		wantErr(t, err, want)
		if after := l.file(f.ID); after.State != before.State || after.Claim != before.Claim {
			t.Errorf("it was %s by %+v and is %s by %+v", before.State, before.Claim, after.State, after.Claim)
		}
	}
	lost(files.ErrLeaseLost)
	_, err := l.claims.Commit(l.ctx, alice, current.ID)
	wantErr(t, err, nil)
	lost(files.ErrLeaseLost)
	l.check()
}

// TestLateCommit: as long as nobody else has claimed the file, a lease that is over can still be committed, released
// and extended.
func TestLateCommit(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(l *life, claim string) (files.File, error){
		"commit":  func(l *life, claim string) (files.File, error) { return l.claims.Commit(l.ctx, alice, claim) },
		"release": func(l *life, claim string) (files.File, error) { return l.claims.Release(l.ctx, alice, claim) },
		"extend":  func(l *life, claim string) (files.File, error) { return l.claims.Extend(l.ctx, alice, claim, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			f := l.ready(once)
			claim := l.claim(alice, f.ID, "call-1").File.Claim
			l.clock.Set(claim.LeaseUntil.Add(time.Minute))
			got, err := end(l, claim.ID)
			want := map[string]files.State{"commit": files.Spent, "release": files.Ready, "extend": files.Claimed}[name]
			if err != nil || got.State != want {
				t.Fatalf("%s, %v; want %s", got.State, err, want)
			}
			l.wantState(f.ID, want)
			l.check()
		})
	}
}

func TestReleaseTwice(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	f := l.ready(once)
	claim := l.claim(alice, f.ID, "call-1").File.Claim.ID
	for range 2 {
		if got, err := l.claims.Release(l.ctx, alice, claim); err != nil || got.State != files.Ready {
			t.Fatalf("%s, %v", got.State, err)
		}
	}
	// It is nobody's now: the claim can't be used any more.
	_, err := l.claims.Commit(l.ctx, alice, claim)
	wantErr(t, err, files.ErrLeaseLost)
	_, err = l.claims.Extend(l.ctx, alice, claim, nil)
	wantErr(t, err, files.ErrLeaseLost)
	l.wantState(f.ID, files.Ready)
	l.check()
}

// TestLeases: how long they are, and that none outlives its file.
func TestLeases(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	for _, c := range []struct {
		life    int64
		seconds *int64
		want    time.Duration // 0: refused
	}{
		{7200, nil, lease},
		{7200, size(1), time.Second},
		{7200, size(300), lease},
		{7200, size(301), 0},
		{7200, size(0), 0},
		{7200, size(-1), 0},
		{60, nil, time.Minute},
		{60, size(59), 59 * time.Second},
		{60, size(61), time.Minute},
	} {
		f := l.ready(once, living(c.life))
		lent, err := l.claimer.Claim(l.ctx, alice, f.ID, "call-1", c.seconds, nil)
		if c.want == 0 {
			bad := as[*files.ValidationError](t, err)
			if bad.Fields[0].Field != "lease_seconds" {
				t.Errorf("refused for %v", bad)
			}
			l.wantState(f.ID, files.Ready)
			_, err := l.claims.Extend(l.ctx, alice, l.claim(alice, f.ID, "call-1").File.Claim.ID, c.seconds)
			as[*files.ValidationError](t, err)
		} else {
			if err != nil || !lent.File.Claim.LeaseUntil.Equal(f.CreatedAt.Add(c.want)) {
				t.Errorf("a lease on %d seconds of life: until %v, %v; want %v", c.life, lent.File.Claim.LeaseUntil, err, c.want)
			}
			extended, err := l.claims.Extend(l.ctx, alice, lent.File.Claim.ID, c.seconds)
			if err != nil || extended.Claim != lent.File.Claim {
				t.Errorf("extended at once: %+v, %v; want %+v", extended.Claim, err, lent.File.Claim)
			}
		}
		wantErr(t, l.deleter.Delete(l.ctx, alice, f.ID), nil)
	}
}

func TestExtend(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	f := l.ready(once, living(600))
	claim := l.claim(alice, f.ID, "call-1").File.Claim
	for _, step := range []struct {
		after   time.Duration
		seconds *int64
		want    time.Duration // since the beginning
	}{
		{4 * time.Minute, nil, 9 * time.Minute},
		{time.Minute, size(10), 5*time.Minute + 10*time.Second}, // also shorter
		{time.Second, nil, 10 * time.Minute},                    // the end of the file
	} {
		l.clock.Advance(step.after)
		got, err := l.claims.Extend(l.ctx, alice, claim.ID, step.seconds)
		if err != nil || !got.Claim.LeaseUntil.Equal(f.CreatedAt.Add(step.want)) {
			t.Errorf("extended to %v, %v; want %v", got.Claim.LeaseUntil.Sub(f.CreatedAt), err, step.want)
		}
		if _, err := l.claimer.Claim(l.ctx, bob, f.ID, "call-2", nil, nil); err == nil {
			t.Error("another holder got the file under the lease")
		}
	}
}

// TestManyClaims: a hundred at once, and one winner.
func TestManyClaims(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	f := l.ready(once)
	var wg sync.WaitGroup
	errs, lent := make([]error, 100), make([]files.Lent, 100)
	for i := range errs {
		wg.Go(func() { lent[i], errs[i] = l.claimer.Claim(l.ctx, alice, f.ID, fmt.Sprint("call-", i), nil, nil) })
	}
	wg.Wait()
	won := 0
	for i, err := range errs {
		var refused *files.ClaimedError
		switch {
		case err == nil && lent[i].New:
			won++
			if got := l.file(f.ID).Claim; got != lent[i].File.Claim {
				t.Errorf("the record names %+v, the winner has %+v", got, lent[i].File.Claim)
			}
		case !errors.As(err, &refused):
			t.Errorf("claim %d: %v", i, err)
		}
	}
	if won != 1 {
		t.Errorf("%d claims won, want 1", won)
	}
}

// TestSpentOnce: commits, releases and takeovers at once spend the file once at most.
func TestSpentOnce(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	f := l.ready(once)
	claim := l.claim(alice, f.ID, "call-1").File.Claim.ID
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := l.claims.Commit(l.ctx, alice, claim); err != nil && !errors.Is(err, files.ErrLeaseLost) && !errors.Is(err, files.ErrFileSpent) {
				t.Errorf("committing: %v", err)
			}
		})
		wg.Go(func() {
			if _, err := l.claims.Release(l.ctx, alice, claim); err != nil && !errors.Is(err, files.ErrFileSpent) {
				t.Errorf("releasing: %v", err)
			}
		})
	}
	wg.Wait()
	l.check()
	if s := l.file(f.ID).State; s != files.Spent && s != files.Ready {
		t.Errorf("it is %s", s)
	}
}

// TestUnknownClaims: what a claim id that isn't the current one is answered.
func TestUnknownClaims(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	f := l.ready(once)
	idle := l.ready(once) // never claimed
	claim := l.claim(alice, f.ID, "call-1").File.Claim.ID
	of := func(id string) string { return "c_" + id[len("f_"):] + files.RandomText(26) }
	for name, c := range map[string]struct {
		caller files.Caller
		claim  string
		want   error
	}{
		"empty":            {alice, "", files.ErrClaimNotFound},
		"a file id":        {alice, f.ID, files.ErrClaimNotFound},
		"cut":              {alice, claim[:len(claim)-1], files.ErrClaimNotFound},
		"longer":           {alice, claim + "a", files.ErrClaimNotFound},
		"upper case":       {alice, claim[:len(claim)-1] + "A", files.ErrClaimNotFound},
		"no such file":     {alice, of(files.NewID()), files.ErrClaimNotFound},
		"another account":  {stranger, claim, files.ErrClaimNotFound},
		"another claim":    {alice, of(f.ID), files.ErrLeaseLost},
		"of an idle file":  {alice, of(idle.ID), files.ErrLeaseLost},
		"of another actor": {bob, of(f.ID), files.ErrLeaseLost},
	} {
		_, err := l.claims.Commit(l.ctx, c.caller, c.claim)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: commit: %v, want %v", name, err, c.want)
		}
		if _, err = l.claims.Release(l.ctx, c.caller, c.claim); !errors.Is(err, c.want) {
			t.Errorf("%s: release: %v, want %v", name, err, c.want)
		}
		if _, err = l.claims.Extend(l.ctx, c.caller, c.claim, nil); !errors.Is(err, c.want) {
			t.Errorf("%s: extend: %v, want %v", name, err, c.want)
		}
	}
	if got := l.file(f.ID); got.State != files.Claimed || got.Claim.ID != claim {
		t.Errorf("the claim changed to %+v, %s", got.Claim, got.State)
	}
	l.wantState(idle.ID, files.Ready)
}

// TestClaimRefused: what can't be claimed, and why.
func TestClaimRefused(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	plain, single := l.ready(), l.ready(once)
	waiting := l.reserve(draft(pdf, once))
	rejected := l.reserve(draft(nil, once))
	l.put(rejected.ID, bad)
	viewer := files.Caller{Account: "acme", Actor: "alice", Scopes: []files.Scope{files.FilesRead}}
	for name, c := range map[string]struct {
		caller     files.Caller
		id, holder string
		want       error
	}{
		"not single use":  {alice, plain.ID, "call-1", files.ErrNotSingleUse},
		"not uploaded":    {alice, waiting.ID, "call-1", files.ErrNotUploaded},
		"another account": {stranger, single.ID, "call-1", files.ErrFileNotFound},
		"malformed":       {alice, "f_x", "call-1", files.ErrFileNotFound},
		"missing":         {alice, files.NewID(), "call-1", files.ErrFileNotFound},
		"may only read":   {viewer, single.ID, "call-1", files.ErrForbidden},
	} {
		if _, err := l.claimer.Claim(l.ctx, c.caller, c.id, c.holder, nil, nil); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	for _, holder := range []string{"", string(make([]byte, 256))} {
		_, err := l.claimer.Claim(l.ctx, alice, single.ID, holder, nil, nil)
		if bad := as[*files.ValidationError](t, err); bad.Fields[0].Field != "holder" {
			t.Errorf("a holder of %d bytes: %v", len(holder), err)
		}
	}
	_, err := l.claimer.Claim(l.ctx, alice, rejected.ID, "call-1", nil, nil)
	as[*files.RejectedError](t, err)
	wantErr(t, l.deleter.Delete(l.ctx, alice, plain.ID), nil)
	_, err = l.claimer.Claim(l.ctx, alice, plain.ID, "call-1", nil, nil)
	wantErr(t, err, files.ErrFileDeleted)
	l.wantState(single.ID, files.Ready)
	l.check()
}

// TestClaimVerifies: a claim needs no event before it.
func TestClaimVerifies(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	f := l.reserve(draft(pdf, once))
	l.put(f.ID, pdf)
	lent := l.claim(bob, f.ID, "call-1")
	if lent.File.State != files.Claimed || lent.Link.URL == "" {
		t.Errorf("lent %+v", lent)
	}
	l.check()
}

// TestClaimsOfExpiredFiles: a file takes its lease with it.
func TestClaimsOfExpiredFiles(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	f := l.ready(once, living(60))
	claim := l.claim(alice, f.ID, "call-1").File.Claim.ID
	l.clock.Set(f.ExpiresAt)
	_, err := l.claimer.Claim(l.ctx, alice, f.ID, "call-1", nil, nil)
	wantErr(t, err, files.ErrFileExpired)
	_, err = l.claims.Commit(l.ctx, alice, claim)
	wantErr(t, err, files.ErrFileExpired)
	_, err = l.claims.Release(l.ctx, alice, claim)
	wantErr(t, err, files.ErrFileExpired)
	_, err = l.claims.Extend(l.ctx, alice, claim, nil)
	wantErr(t, err, files.ErrFileExpired)
	l.wantState(f.ID, files.Claimed) // nothing was written
}

// TestClaimIdempotency: one key, one claim, whatever becomes of it.
func TestClaimIdempotency(t *testing.T) {
	t.Parallel()
	idem := func(digest string) *files.Idempotency {
		return &files.Idempotency{Account: "acme", Actor: "alice", Route: "POST /v1/files/{id}/claims", Key: "k", Digest: digest}
	}
	claim := func(l *life, id, digest string) (files.Lent, error) {
		return l.claimer.Claim(l.ctx, alice, id, "call-1", nil, idem(digest))
	}
	l := newLife(t)
	f := l.ready(once)
	first, err := claim(l, f.ID, "d")
	if err != nil || !first.New {
		t.Fatalf("new %v, %v", first.New, err)
	}
	again, err := claim(l, f.ID, "d")
	if err != nil || again.New || again.File.Claim != first.File.Claim || again.Link.URL == "" {
		t.Errorf("the repeat: %+v, %v", again, err)
	}
	_, err = claim(l, f.ID, "other")
	wantErr(t, err, files.ErrIdempotencyMismatch)
	_, err = l.claims.Release(l.ctx, alice, first.File.Claim.ID)
	wantErr(t, err, nil)
	_, err = claim(l, f.ID, "d")
	wantErr(t, err, files.ErrLeaseLost) // not a new claim behind the client's back
	l.wantState(f.ID, files.Ready)
	second := l.claim(alice, f.ID, "call-1")
	_, err = claim(l, f.ID, "d")
	wantErr(t, err, files.ErrLeaseLost)
	_, err = l.claims.Commit(l.ctx, alice, second.File.Claim.ID)
	wantErr(t, err, nil)
	_, err = claim(l, f.ID, "d")
	wantErr(t, err, files.ErrFileSpent)
	l.clock.Advance(files.IdempotencyWindow)
	g := l.ready(once)
	if lent, err := claim(l, g.ID, "d"); err != nil || !lent.New {
		t.Errorf("after the window: new %v, %v", lent.New, err)
	}
	l.purge()
	l.check()
}

// TestClaimVanishes: the record may go between the first read and the write.
func TestClaimVanishes(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"Spend", "Unclaim", "Extend"} {
		l := newLife(t)
		f := l.ready(once)
		claim := l.claim(alice, f.ID, "call-1").File.Claim.ID
		l.faults.Do(filestest.Step{Op: op, N: 1}, filestest.Before, func() { l.records.Drop(f.ID) })
		err := map[string]func() error{
			"Spend":   func() error { _, err := l.claims.Commit(l.ctx, alice, claim); return err },
			"Unclaim": func() error { _, err := l.claims.Release(l.ctx, alice, claim); return err },
			"Extend":  func() error { _, err := l.claims.Extend(l.ctx, alice, claim, nil); return err },
		}[op]()
		if !errors.Is(err, files.ErrClaimNotFound) || errors.Is(err, files.ErrFileNotFound) {
			t.Errorf("%s: %v, want ErrClaimNotFound", op, err)
		}
	}
}

// TestClaimRaces: a holder whose lease is over commits, while others claim the file, commit and release, in every order
// of their steps. It is spent once at most, by the claim that the record names, and nobody is told otherwise.
func TestClaimRaces(t *testing.T) {
	t.Parallel()
	runs := filestest.Explore(t, 4, func() ([]filestest.Actor, func() []string) {
		l := newLife(t)
		f := l.ready(once)
		old := l.claim(alice, f.ID, "call-1").File.Claim
		l.clock.Set(old.LeaseUntil)
		l.hook(filestest.Yield)
		var committed, wrong []string
		commit := func(ctx context.Context, claim string) {
			switch spent, err := l.claims.Commit(ctx, alice, claim); {
			case err == nil && spent.State == files.Spent && spent.Claim.ID == claim:
				committed = append(committed, claim)
			case !errors.Is(err, files.ErrLeaseLost):
				wrong = append(wrong, fmt.Sprintf("committing: %s, %v", spent.State, err))
			}
		}
		claim := func(ctx context.Context, holder string) (string, bool) {
			lent, err := l.claimer.Claim(ctx, alice, f.ID, holder, nil, nil)
			var held *files.ClaimedError
			if err != nil && !errors.As(err, &held) && !errors.Is(err, files.ErrFileSpent) {
				wrong = append(wrong, fmt.Sprintf("%s: %v", holder, err))
			}
			return lent.File.Claim.ID, err == nil
		}
		actors := []filestest.Actor{
			{Name: "old", Run: func(ctx context.Context) { commit(ctx, old.ID) }},
			{Name: "new", Run: func(ctx context.Context) {
				if id, ok := claim(ctx, "call-2"); ok {
					commit(ctx, id)
				}
			}},
			{Name: "other", Run: func(ctx context.Context) {
				if id, ok := claim(ctx, "call-3"); ok {
					if _, err := l.claims.Release(ctx, alice, id); err != nil {
						wrong = append(wrong, fmt.Sprintf("releasing under a lease: %v", err))
					}
				}
			}},
		}
		return actors, func() []string {
			l.hook(nil)
			s := l.records.Snapshot(t)
			switch end := s.Files[f.ID]; {
			case len(committed) > 1:
				wrong = append(wrong, fmt.Sprintf("it was spent %d times", len(committed)))
			case len(committed) == 1 && (end.State != files.Spent || end.Claim.ID != committed[0]):
				wrong = append(wrong, fmt.Sprintf("a commit succeeded, and it is %s by another claim", end.State))
			case len(committed) == 0 && end.State != files.Ready:
				wrong = append(wrong, fmt.Sprintf("nobody committed, and it is %s", end.State))
			}
			return append(append(wrong, s.Violations()...), s.ObjectViolations(l.store.Objects())...)
		}
	})
	t.Logf("%d orders", runs)
}
