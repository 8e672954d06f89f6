package filestest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
)

func testRecordsOf(t *tableTest) {
	want := map[string]files.File{}
	var ids []string
	for i := range 130 {
		f := NewFile()
		if i%13 != 0 {
			want[f.ID] = t.create(f)
		}
		ids = append(ids, f.ID)
	}
	ids = append(ids, ids...) // several objects of one file are asked for together
	for _, n := range []int{0, 1, 100, 101, len(ids)} {
		got, err := t.Records.Records(t.ctx, ids[:n])
		t.wantErr(err, nil)
		for i, id := range ids[:n] {
			f, ok := got[id]
			w, exists := want[id]
			if ok != exists || ok && differs(f, w) != "" {
				t.Fatalf("of %d, number %d: there %v, want %v; %s", n, i, ok, exists, differs(f, w))
			}
		}
		if n == len(ids) && len(got) != len(want) {
			t.Errorf("%d records, want %d", len(got), len(want))
		}
	}
}

func testWalk(t *tableTest) {
	want := map[string]files.File{}
	for i := range 150 { // with their holds and counters more rows than a page has
		f := t.create(NewFile(By(fmt.Sprint("account#", i%3), "alice")))
		var err error
		switch i % 4 {
		case 1:
			f, err = t.Records.MarkReady(t.ctx, f, VerifiedAs(f, 1000))
		case 2:
			_, err = t.Records.End(t.ctx, f, files.Ending{State: files.Deleted, At: Now})
		}
		t.wantErr(err, nil)
		if i%4 != 2 {
			want[f.ID] = f
		}
	}
	f := t.claimed(lease("alice", time.Minute))
	want[f.ID] = f
	t.wantErr(t.Records.SetWatermark(t.ctx, Now), nil) // rows of other kinds
	t.wantErr(t.Records.SetProgress(t.ctx, files.Progress{Phase: "p", From: "f"}), nil)
	var accounts []string
	got := map[string]files.File{}
	for next, n := "", 0; n < 1000; n++ {
		page, after, err := t.Records.Walk(t.ctx, next)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range page.Files {
			got[f.ID] = f
		}
		accounts = append(accounts, page.Accounts...)
		if after == "" {
			break
		}
		next = after
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the walk found %d files, want %d", len(got), len(want))
	}
	slices.Sort(accounts)
	if want := []string{"account#0", "account#1", "account#2", "acme"}; !slices.Equal(accounts, want) {
		t.Errorf("the walk found the accounts %q, want %q", accounts, want)
	}
}

func testHolds(t *tableTest) {
	has := func(f files.File, want bool) {
		t.Helper()
		got, err := t.Records.HasHold(t.ctx, f)
		if err != nil || got != want {
			t.Errorf("a hold of what is %s: %v, %v; want %v", f.State, got, err, want)
		}
	}
	reserved := t.create(NewFile())
	for _, f := range []files.File{reserved, t.create(NewFile(Unsized(5000))), t.create(NewFile(Inline)), t.ready(NewFile()), t.claimed(lease("alice", time.Minute))} {
		has(f, true)
		t.wantErr(t.Records.RestoreHold(t.ctx, f), nil) // nothing to do
		t.DropHold(t, f)
		has(f, false)
		t.SetAccount(t, "acme", t.sums("acme"))
		t.SetActor(t, ActorID{"acme", "alice"}, t.actorSums("acme", "alice"))
		parallel(4, func(int) {
			for {
				err := t.Records.RestoreHold(t.ctx, f)
				if !errors.Is(err, files.ErrTryAgain) {
					t.wantErr(err, nil)
					return
				}
			}
		})
		has(f, true)
	}
	// A record that has moved on is not held as it was.
	ready, err := t.Records.MarkReady(t.ctx, reserved, VerifiedAs(reserved, 1000))
	t.wantErr(err, nil)
	if reserved.Deadline().Equal(ready.Deadline()) {
		t.Fatal("the test needs a hold that moves")
	}
	has(reserved, false)
	has(ready, true)
	t.wantErr(t.Records.RestoreHold(t.ctx, NewFile()), files.ErrStateChanged)
	ended, err := t.Records.End(t.ctx, ready, files.Ending{State: files.Deleted, At: Now})
	t.wantErr(err, nil)
	t.wantErr(t.Records.RestoreHold(t.ctx, ready), files.ErrStateChanged)
	t.want(ended)
}

// testUnheld: a live file without its hold is not changed by what would have to end or move the hold.
func testUnheld(t *tableTest) {
	reserved, ready, claimed := t.create(NewFile(Unsized(5000))), t.ready(NewFile()), t.claimed(lease("alice", time.Minute))
	for _, f := range []files.File{reserved, ready, claimed} {
		t.DropHold(t, f)
		for op, do := range map[string]func() error{
			"End": func() error {
				_, err := t.Records.End(t.ctx, f, files.Ending{State: files.Deleted, At: Now})
				return err
			},
			"MarkReady": func() error { _, err := t.Records.MarkReady(t.ctx, f, VerifiedAs(f, 1000)); return err },
			"Spend":     func() error { _, err := t.Records.Spend(t.ctx, f, f.Claim.ID, Now); return err },
		} {
			applies := op == "End" || op == "MarkReady" && f.State == files.Reserved || op == "Spend" && f.State == files.Claimed
			if err := do(); err == nil || errors.Is(err, files.ErrStateChanged) == applies || errors.Is(err, files.ErrTryAgain) {
				t.Errorf("%s of what is %s, unheld: %v", op, f.State, err)
			}
			t.want(f)
		}
	}
	t.SetAccount(t, "acme", AccountUsage{})
	t.SetActor(t, ActorID{"acme", "alice"}, ActorUsage{})
	for _, f := range []files.File{reserved, ready, claimed} {
		t.wantErr(t.Records.RestoreHold(t.ctx, f), nil)
		_, err := t.Records.End(t.ctx, f, files.Ending{State: files.Deleted, At: Now})
		t.wantErr(err, nil)
	}
	t.wantUsage("acme", AccountUsage{}, "alice", ActorUsage{})
}

// audit audits acme, at rest.
func (t *tableTest) audit() files.Audit {
	t.Helper()
	a, err := t.Records.Audit(t.ctx, "acme")
	if err != nil || !a.Stable || a.Account != "acme" {
		t.Fatalf("audited: %+v, %v", a, err)
	}
	return a
}

func testAudit(t *tableTest) {
	want := files.Ledger{Actors: map[string]files.ActorLedger{}}
	check := func() {
		t.Helper()
		a := t.audit()
		if !reflect.DeepEqual(a.Held, want) || !reflect.DeepEqual(a.Counted, want) || a.Drifted() {
			t.Errorf("audited %+v, want %+v", a, want)
		}
	}
	check()
	f := t.create(NewFile(Unsized(5000)))
	t.create(NewFile(By("acme", "bob#1"), Sized(10)))
	t.create(NewFile(By("acme", "bob#1"), Sized(10)))
	t.create(NewFile(By("other", "alice")))
	want.Bytes, want.Files = 5020, 3
	want.Actors["alice"] = files.ActorLedger{Reservations: 1, Unsized: 5000}
	want.Actors["bob#1"] = files.ActorLedger{Reservations: 2}
	check()
	_, err := t.Records.MarkReady(t.ctx, f, VerifiedAs(f, 100))
	t.wantErr(err, nil)
	delete(want.Actors, "alice") // what counts nothing is left out
	want.Bytes = 120
	check()
	t.ready(NewFile(Inline, Sized(5)))
	want.Bytes, want.Files = 125, 4
	check()
}

func testAuditMany(t *tableTest) {
	want := files.Ledger{Actors: map[string]files.ActorLedger{}}
	for i := range 150 {
		actor := fmt.Sprint("actor", i%30)
		t.create(NewFile(By("acme", actor), Unsized(100+int64(i))))
		want.Bytes += 100 + int64(i)
		want.Files++
		l := want.Actors[actor]
		want.Actors[actor] = files.ActorLedger{Reservations: l.Reservations + 1, Unsized: l.Unsized + 100 + int64(i)}
	}
	if a := t.audit(); !reflect.DeepEqual(a.Held, want) || !reflect.DeepEqual(a.Counted, want) {
		t.Errorf("audited %+v", a)
	}
}

func testCorrect(t *tableTest) {
	t.create(NewFile(Unsized(5000)))
	t.create(NewFile(By("acme", "bob"), Sized(10)))
	t.create(NewFile(By("other", "alice")))
	for _, spoil := range []func(){
		func() {},
		func() { t.SetAccount(t, "acme", AccountUsage{Bytes: 1, Files: 9}) },
		func() { t.SetAccount(t, "acme", AccountUsage{}) },
		func() { t.SetActor(t, ActorID{"acme", "alice"}, ActorUsage{Reservations: 2, Unsized: 5000}) },
		func() { t.SetActor(t, ActorID{"acme", "alice"}, ActorUsage{}) },
		func() { t.SetActor(t, ActorID{"acme", "carol"}, ActorUsage{Reservations: -1, Unsized: 3}) },
		func() {
			t.SetAccount(t, "acme", AccountUsage{Bytes: -1, Files: 2})
			for i := range 120 { // more than one transaction takes
				t.SetActor(t, ActorID{"acme", fmt.Sprint("actor", i)}, ActorUsage{Reservations: int64(i + 1)})
			}
		},
	} {
		spoil()
		a := t.audit()
		t.wantErr(t.Records.Correct(t.ctx, a), nil)
		CheckInvariants(t, t.Snapshot(t))
		if after := t.audit(); after.Drifted() || !reflect.DeepEqual(after.Counted, a.Held) {
			t.Errorf("corrected to %+v, want %+v", after.Counted, a.Held)
		}
	}
}

// testCorrectMoved: what happens between an audit and its correction makes the correction void, also when it leaves
// the sums as they were.
func testCorrectMoved(t *tableTest) {
	f := t.create(NewFile())
	g := t.create(NewFile(Unsized(5000)))
	spoilt := AccountUsage{Bytes: 7000, Files: 7}
	for name, move := range map[string]func() error{
		"another file of the same size": func() error {
			t.create(NewFile())
			_, err := t.Records.End(t.ctx, f, files.Ending{State: files.Deleted, At: Now})
			return err
		},
		"verification": func() error {
			_, err := t.Records.MarkReady(t.ctx, g, VerifiedAs(g, 5000))
			return err
		},
	} {
		t.SetAccount(t, "acme", spoilt)
		t.SetActor(t, ActorID{"acme", "alice"}, ActorUsage{Reservations: 5, Unsized: 5000})
		a := t.audit()
		t.wantErr(move(), nil)
		before := t.Snapshot(t)
		if err := t.Records.Correct(t.ctx, a); !errors.Is(err, files.ErrStateChanged) {
			t.Errorf("%s: corrected all the same: %v", name, err)
		}
		after := t.Snapshot(t)
		if !reflect.DeepEqual(before.Accounts, after.Accounts) || !reflect.DeepEqual(before.Actors, after.Actors) {
			t.Errorf("%s: counters changed from %+v to %+v", name, before.Accounts, after.Accounts)
		}
	}
	t.wantErr(t.Records.Correct(t.ctx, t.audit()), nil)
}

func testProgress(t *tableTest) {
	for _, want := range []files.Progress{{}, {Phase: "objects"}, {Phase: "records", From: `{"pk":"é","sk":"x"}`}, {Phase: "records"}, {}} {
		if want != (files.Progress{}) {
			t.wantErr(t.Records.SetProgress(t.ctx, want), nil)
		}
		if got, err := t.Records.Progress(t.ctx); want != (files.Progress{}) && (err != nil || got != want) {
			t.Errorf("the progress is %+v, %v; want %+v", got, err, want)
		}
	}
	t.wantErr(t.Records.SetProgress(t.ctx, files.Progress{}), nil)
	if got, err := t.Records.Progress(t.ctx); err != nil || got != (files.Progress{}) {
		t.Errorf("the progress is %+v, %v; want none", got, err)
	}
}
