package filestest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
)

// TestLifecycle checks records against the contracts of files.ClaimRecords, files.LeaseRecords, files.ListRecords,
// files.UsageRecords, files.SweepRecords and files.ReconcileRecords. Open returns new and empty ones each time.
func TestLifecycle(t *testing.T, open func(t *testing.T) Table) {
	for name, test := range map[string]func(*tableTest){
		"claim":                testClaim,
		"claim refused":        testClaimRefused,
		"claim lease over":     testClaimLeaseOver,
		"claim parallel":       testClaimParallel,
		"claim idempotency":    testClaimIdempotency,
		"claim key parallel":   testClaimKeyParallel,
		"unclaim":              testUnclaim,
		"extend":               testExtend,
		"spend":                testSpend,
		"spend parallel":       testSpendParallel,
		"end claimed":          testEndClaimed,
		"list":                 testList,
		"list apart":           testListApart,
		"usage":                testUsage,
		"due":                  testDue,
		"due pages":            testDuePages,
		"watermark":            testWatermark,
		"records":              testRecordsOf,
		"walk":                 testWalk,
		"holds":                testHolds,
		"unheld":               testUnheld,
		"audit":                testAudit,
		"audit of many":        testAuditMany,
		"correct":              testCorrect,
		"correct what moved":   testCorrectMoved,
		"progress":             testProgress,
		"same life as in fake": testLifeModel,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := open(t)
			tt := &tableTest{T: t, Table: table, ctx: t.Context()}
			test(tt)
			CheckInvariants(t, table.Snapshot(t))
		})
	}
}

// Once makes a file one for a single use.
func Once(f *files.File) { f.SingleUse = true }

// lease is a claim of actor's, with a lease from Now on.
func lease(actor string, d time.Duration) files.Claim {
	return files.Claim{ID: "c_" + files.RandomText(52), Actor: actor, Holder: "call é-1", LeaseUntil: Now.Add(d)}
}

// claimed stores a file that c holds.
func (t *tableTest) claimed(c files.Claim, change ...func(*files.File)) files.File {
	t.Helper()
	f := t.ready(NewFile(append(change, Once)...))
	got, _, _, err := t.Records.Claim(t.ctx, f.ID, c, nil, Now)
	t.wantErr(err, nil)
	return got
}

// wantFound: a refusal that comes with the record as it is.
func (t *tableTest) wantFound(got files.File, err error, want files.File) {
	t.Helper()
	t.wantErr(err, files.ErrStateChanged)
	if diff := differs(got, want); diff != "" {
		t.Errorf("the refusal came with another record: %s", diff)
	}
	t.want(want)
}

func testClaim(t *tableTest) {
	f := t.ready(NewFile(Once))
	c := lease("alice", time.Minute)
	got, id, repeated, err := t.Records.Claim(t.ctx, f.ID, c, nil, Now.Add(999*time.Millisecond))
	f.State, f.Claim = files.Claimed, c
	if diff := differs(got, f); err != nil || id != "" || repeated || diff != "" {
		t.Errorf("claimed: %q, %v, %v, %s", id, repeated, err, diff)
	}
	t.want(f)
	t.wantUsage("acme", AccountUsage{Bytes: 1000, Files: 1}, "alice", ActorUsage{})
}

func testClaimRefused(t *tableTest) {
	c := lease("bob", time.Minute)
	claim := func(f files.File, now time.Time) {
		t.Helper()
		got, id, repeated, err := t.Records.Claim(t.ctx, f.ID, c, nil, now)
		if id != "" || repeated {
			t.Errorf("refused with %q, %v", id, repeated)
		}
		t.wantFound(got, err, f)
	}
	claim(t.create(NewFile(Once)), Now)
	claim(t.ready(NewFile()), Now)
	held := t.claimed(lease("alice", time.Minute))
	claim(held, Now)
	claim(held, Now.Add(time.Minute-time.Nanosecond))
	spent, err := t.Records.Spend(t.ctx, held, held.Claim.ID, Now)
	t.wantErr(err, nil)
	claim(spent, Now)
	f := t.ready(NewFile(Once))
	claim(f, f.ExpiresAt)
	claim(f, f.ExpiresAt.Add(time.Hour))
	deleted, err := t.Records.End(t.ctx, f, files.Ending{State: files.Deleted, At: Now})
	t.wantErr(err, nil)
	claim(deleted, Now)
	_, _, _, err = t.Records.Claim(t.ctx, files.NewID(), c, nil, Now)
	t.wantErr(err, files.ErrFileNotFound)
	last := t.ready(NewFile(Once))
	_, _, _, err = t.Records.Claim(t.ctx, last.ID, c, nil, last.ExpiresAt.Add(-time.Nanosecond))
	t.wantErr(err, nil)
}

func testClaimLeaseOver(t *tableTest) {
	f := t.claimed(lease("alice", time.Minute))
	c := lease("alice", time.Hour)
	got, _, _, err := t.Records.Claim(t.ctx, f.ID, c, nil, f.Claim.LeaseUntil)
	t.wantErr(err, nil)
	first := f.Claim.ID
	f.Claim = c
	t.want(f)
	if diff := differs(got, f); diff != "" {
		t.Errorf("claimed again: %s", diff)
	}
	// The first claim can do nothing any more.
	got, err = t.Records.Spend(t.ctx, f, first, Now)
	t.wantFound(got, err, f)
	got, err = t.Records.Unclaim(t.ctx, f.ID, first)
	t.wantFound(got, err, f)
	got, err = t.Records.Extend(t.ctx, f.ID, first, Now.Add(2*time.Hour))
	t.wantFound(got, err, f)
}

func testClaimParallel(t *tableTest) {
	f := t.ready(NewFile(Once))
	errs, claims := make([]error, 100), make([]files.Claim, 100)
	parallel(len(errs), func(i int) {
		claims[i] = lease(fmt.Sprint("actor", i), time.Minute)
		var got files.File
		got, _, _, errs[i] = t.Records.Claim(t.ctx, f.ID, claims[i], nil, Now)
		if got.State != files.Claimed || (errs[i] == nil) != (got.Claim == claims[i]) {
			t.Errorf("claim %d came back with %s of %+v, %v", i, got.State, got.Claim, errs[i])
		}
	})
	t.wantOneWinner(errs)
	got, err := t.Records.File(t.ctx, f.ID)
	t.wantErr(err, nil)
	for i, err := range errs {
		if err == nil && got.Claim != claims[i] {
			t.Errorf("the record names %+v, the winner was %+v", got.Claim, claims[i])
		}
	}
}

func testClaimIdempotency(t *tableTest) {
	f := t.ready(NewFile(Once))
	c := lease("alice", time.Minute)
	claim := func(id string, i *files.Idempotency, at time.Duration) (files.File, string, bool, error) {
		return t.Records.Claim(t.ctx, id, lease("alice", at+time.Minute), i, Now.Add(at))
	}
	got, id, repeated, err := t.Records.Claim(t.ctx, f.ID, c, idempotency("k", "d"), Now)
	f.State, f.Claim = files.Claimed, c
	if diff := differs(got, f); err != nil || id != "" || repeated || diff != "" {
		t.Fatalf("the first: %q, %v, %v, %s", id, repeated, err, diff)
	}
	again := func() {
		t.Helper()
		got, id, repeated, err := claim(f.ID, idempotency("k", "d"), 0)
		if diff := differs(got, f); err != nil || id != c.ID || !repeated || diff != "" {
			t.Errorf("the repeat: %q, %v, %v, %s; want %q", id, repeated, err, diff, c.ID)
		}
	}
	again()
	_, _, _, err = claim(f.ID, idempotency("k", "other"), 0)
	t.wantErr(err, files.ErrIdempotencyMismatch)
	f, err = t.Records.Unclaim(t.ctx, f.ID, c.ID)
	t.wantErr(err, nil)
	again() // whatever has become of the file
	t.want(f)
	f, err = t.Records.End(t.ctx, f, files.Ending{State: files.Deleted, At: Now})
	t.wantErr(err, nil)
	again()

	// What was refused is not remembered.
	held := t.claimed(lease("bob", time.Minute))
	found, _, repeated, err := claim(held.ID, idempotency("k2", "d"), 0)
	if repeated {
		t.Error("a refusal was a repeat")
	}
	t.wantFound(found, err, held)
	if _, _, repeated, err := claim(held.ID, idempotency("k2", "d"), time.Minute); err != nil || repeated {
		t.Errorf("after the refusal: repeated %v, %v", repeated, err)
	}
	_, _, _, err = claim(files.NewID(), idempotency("k3", "d"), 0)
	t.wantErr(err, files.ErrFileNotFound)

	// The window ends.
	g := t.ready(NewFile(Once, until(time.Hour, 72*time.Hour)))
	_, _, _, err = claim(g.ID, idempotency("k4", "d"), 0)
	t.wantErr(err, nil)
	if _, _, repeated, err := claim(g.ID, idempotency("k4", "d"), files.IdempotencyWindow-time.Second); err != nil || !repeated {
		t.Errorf("at the end of the window: repeated %v, %v", repeated, err)
	}
	if _, _, repeated, err := claim(g.ID, idempotency("k4", "d"), files.IdempotencyWindow); err != nil || repeated {
		t.Errorf("after the window: repeated %v, %v", repeated, err)
	}
}

func testClaimKeyParallel(t *tableTest) {
	f := t.ready(NewFile(Once))
	const n = 20
	ids, errs := make([]string, n), make([]error, n)
	parallel(n, func(i int) {
		c := lease("alice", time.Minute)
		for {
			_, id, repeated, err := t.Records.Claim(t.ctx, f.ID, c, idempotency("k", "d"), Now)
			ids[i], errs[i] = c.ID, err
			if repeated {
				ids[i] = id
			}
			if !errors.Is(err, files.ErrTryAgain) {
				return
			}
		}
	})
	got, err := t.Records.File(t.ctx, f.ID)
	t.wantErr(err, nil)
	for i := range n {
		if errs[i] != nil || ids[i] != got.Claim.ID {
			t.Errorf("request %d: %q, %v; want %q", i, ids[i], errs[i], got.Claim.ID)
		}
	}
}

func testUnclaim(t *tableTest) {
	f := t.claimed(lease("alice", time.Minute))
	got, err := t.Records.Unclaim(t.ctx, f.ID, lease("alice", 0).ID)
	t.wantFound(got, err, f)
	f.State = files.Ready
	for range 2 {
		got, err := t.Records.Unclaim(t.ctx, f.ID, f.Claim.ID)
		if diff := differs(got, f); err != nil || diff != "" {
			t.Errorf("released: %v, %s", err, diff)
		}
		t.want(f)
	}
	got, err = t.Records.Extend(t.ctx, f.ID, f.Claim.ID, Now.Add(time.Hour))
	t.wantFound(got, err, f)
	got, err = t.Records.Spend(t.ctx, f, f.Claim.ID, Now)
	t.wantFound(got, err, f)
	_, err = t.Records.Unclaim(t.ctx, files.NewID(), f.Claim.ID)
	t.wantErr(err, files.ErrFileNotFound)
	t.wantUsage("acme", AccountUsage{Bytes: 1000, Files: 1}, "alice", ActorUsage{})
	again, _, _, err := t.Records.Claim(t.ctx, f.ID, lease("bob", time.Minute), nil, Now)
	t.wantErr(err, nil)
	got, err = t.Records.Unclaim(t.ctx, f.ID, f.Claim.ID) // not theirs any more
	t.wantFound(got, err, again)
}

func testExtend(t *tableTest) {
	f := t.claimed(lease("alice", time.Minute))
	for _, d := range []time.Duration{time.Hour, time.Hour, time.Second} {
		f.Claim.LeaseUntil = Now.Add(d)
		got, err := t.Records.Extend(t.ctx, f.ID, f.Claim.ID, f.Claim.LeaseUntil)
		if diff := differs(got, f); err != nil || diff != "" {
			t.Errorf("extended: %v, %s", err, diff)
		}
		t.want(f)
	}
	got, err := t.Records.Extend(t.ctx, f.ID, lease("alice", 0).ID, Now.Add(time.Hour))
	t.wantFound(got, err, f)
	_, err = t.Records.Extend(t.ctx, files.NewID(), f.Claim.ID, Now.Add(time.Hour))
	t.wantErr(err, files.ErrFileNotFound)
}

func testSpend(t *tableTest) {
	f := t.claimed(lease("alice", time.Minute))
	keep := t.ready(NewFile())
	at := Now.Add(time.Hour) // the lease is over, and nobody took it
	got, err := t.Records.Spend(t.ctx, f, lease("alice", 0).ID, at)
	t.wantFound(got, err, f)
	got, err = t.Records.Spend(t.ctx, f, f.Claim.ID, at.Add(time.Millisecond))
	before := f
	f.State, f.EndedAt = files.Spent, at
	if diff := differs(got, f); err != nil || diff != "" {
		t.Errorf("spent: %v, %s", err, diff)
	}
	t.want(f)
	got, err = t.Records.Spend(t.ctx, before, f.Claim.ID, at)
	t.wantFound(got, err, f)
	missing := NewFile(Once)
	_, err = t.Records.Spend(t.ctx, missing, f.Claim.ID, at)
	t.wantErr(err, files.ErrFileNotFound)
	t.wantUsage("acme", AccountUsage{Bytes: 1000, Files: 1}, "alice", ActorUsage{})
	t.want(keep)
}

func testSpendParallel(t *tableTest) {
	f := t.claimed(lease("alice", time.Minute))
	errs := make([]error, 8)
	parallel(len(errs), func(i int) {
		var got files.File
		got, errs[i] = t.Records.Spend(t.ctx, f, f.Claim.ID, Now)
		if got.State != files.Spent || got.Claim != f.Claim {
			t.Errorf("spending came back with %s of %+v, %v", got.State, got.Claim, errs[i])
		}
	})
	t.wantOneWinner(errs)
	t.wantUsage("acme", AccountUsage{}, "alice", ActorUsage{})
}

func testEndClaimed(t *tableTest) {
	for _, state := range []files.State{files.Expired, files.Deleted} {
		f := t.claimed(lease("alice", time.Minute))
		got, err := t.Records.End(t.ctx, f, files.Ending{State: state, At: Now})
		f.State, f.EndedAt = state, Now
		if diff := differs(got, f); err != nil || diff != "" {
			t.Errorf("ended as %s: %v, %s", state, err, diff)
		}
		t.want(f)
	}
	f := t.claimed(lease("alice", time.Minute))
	t.wantErr(t.Records.Release(t.ctx, "acme", f.ID, f.ExpiresAt), nil)
	f.State, f.EndedAt = files.Expired, f.ExpiresAt
	t.want(f)
	t.wantUsage("acme", AccountUsage{}, "alice", ActorUsage{})
}
