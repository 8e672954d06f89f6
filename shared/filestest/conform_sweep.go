package filestest

import (
	"reflect"
	"slices"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
)

// madeAt sets when a file was made.
func madeAt(d time.Duration) func(*files.File) {
	return func(f *files.File) { f.CreatedAt = Now.Add(d) }
}

func testList(t *tableTest) {
	var want []files.File
	for i := range 11 {
		f := t.create(NewFile(madeAt(time.Duration(i/3) * time.Second)))
		switch i % 4 {
		case 1:
			var err error
			f, err = t.Records.MarkReady(t.ctx, f, VerifiedAs(f, 1000))
			t.wantErr(err, nil)
		case 2:
			var err error
			f, err = t.Records.End(t.ctx, f, files.Ending{State: files.Deleted, At: Now})
			t.wantErr(err, nil)
		}
		want = append(want, f)
	}
	slices.SortFunc(want, newestFirst)
	for _, limit := range []int{1, 3, 10, 11, 12, 100} {
		var at files.Position
		var got []files.File
		for more := true; more; {
			page, next, err := t.Records.Files(t.ctx, "acme", at, limit)
			t.wantErr(err, nil)
			if len(page) > limit || next && len(page) == 0 {
				t.Fatalf("a page of %d behind %v, more %v", len(page), at, next)
			}
			got = append(got, page...)
			if more = next; more {
				at = files.Position{CreatedAt: page[len(page)-1].CreatedAt, ID: page[len(page)-1].ID}
			}
			if more != (len(got) < len(want)) {
				t.Errorf("after %d of %d by %d: more %v", len(got), len(want), limit, more)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("by %d: %d files, want %d", limit, len(got), len(want))
		}
		for i := range got {
			if diff := differs(got[i], want[i]); diff != "" {
				t.Errorf("by %d, at %d: %s", limit, i, diff)
			}
		}
	}
	// A place is one whether or not there is a file.
	behind := want[5]
	t.Drop(t, behind.ID)
	t.DropHold(t, behind)
	page, _, err := t.Records.Files(t.ctx, "acme", files.Position{CreatedAt: behind.CreatedAt, ID: behind.ID}, 1)
	if err != nil || len(page) != 1 || page[0].ID != want[6].ID {
		t.Errorf("behind a file that is gone: %v, %v; want %s", page, err, want[6].ID)
	}
	if behind.State.Live() {
		t.SetAccount(t, "acme", t.sums("acme"))
		t.SetActor(t, ActorID{"acme", "alice"}, t.actorSums("acme", "alice"))
	}
}

// sums adds up the holds of an account.
func (t *tableTest) sums(account string) (u AccountUsage) {
	for _, h := range t.Snapshot(t).Holds {
		if h.Account == account {
			u.Bytes += h.Bytes
			u.Files++
		}
	}
	return u
}

func (t *tableTest) actorSums(account, actor string) (u ActorUsage) {
	for _, h := range t.Snapshot(t).Holds {
		if h.Account == account && h.Actor == actor && h.Counted {
			u.Reservations++
			u.Unsized += h.Unsized
		}
	}
	return u
}

// testListApart: accounts whose names begin alike, or hold separators, have lists of their own.
func testListApart(t *tableTest) {
	made := map[string]string{}
	for _, account := range []string{"acme", "acme2", "acme#x", "files#acme", "a"} {
		made[account] = t.create(NewFile(By(account, "alice"))).ID
	}
	for account, id := range made {
		page, more, err := t.Records.Files(t.ctx, account, files.Position{}, 10)
		if err != nil || more || len(page) != 1 || page[0].ID != id {
			t.Errorf("the list of %s: %v, more %v, %v; want %s", account, page, more, err, id)
		}
	}
	page, more, err := t.Records.Files(t.ctx, "nobody", files.Position{}, 10)
	if err != nil || more || len(page) != 0 {
		t.Errorf("the list of nobody: %v, more %v, %v", page, more, err)
	}
}

func testUsage(t *tableTest) {
	want := func(account, actor string, want files.Usage) {
		t.Helper()
		got, err := t.Records.Usage(t.ctx, account, actor)
		if err != nil || got != want {
			t.Errorf("the usage of %s in %s: %+v, %v; want %+v", actor, account, got, err, want)
		}
	}
	want("acme", "alice", files.Usage{})
	f := t.create(NewFile(Unsized(5000)))
	t.create(NewFile(By("acme", "bob")))
	t.create(NewFile(Inline))
	want("acme", "alice", files.Usage{LiveBytes: 7000, Files: 3, Reservations: 1})
	want("acme", "bob", files.Usage{LiveBytes: 7000, Files: 3, Reservations: 1})
	want("acme", "nobody", files.Usage{LiveBytes: 7000, Files: 3})
	want("other", "alice", files.Usage{})
	_, err := t.Records.End(t.ctx, f, files.Ending{State: files.Deleted, At: Now})
	t.wantErr(err, nil)
	want("acme", "alice", files.Usage{LiveBytes: 2000, Files: 2})
}

// due reads all pages of a minute.
func (t *tableTest) due(minute, now time.Time) map[string]files.Hold {
	t.Helper()
	out := map[string]files.Hold{}
	for next, n := "", 0; ; n++ {
		page, after, err := t.Records.Due(t.ctx, minute, now, next)
		t.wantErr(err, nil)
		for _, h := range page {
			if _, twice := out[h.ID]; twice {
				t.Errorf("%s is due twice", h.ID)
			}
			out[h.ID] = h
		}
		if after == "" || n > 1000 || err != nil {
			return out
		}
		next = after
	}
}

func testDue(t *tableTest) {
	start := Now.Truncate(time.Minute).Add(10 * time.Minute)
	at := func(second time.Duration, change ...func(*files.File)) files.File {
		return t.create(NewFile(append(change, func(f *files.File) { f.UploadBy = start.Add(second * time.Second) })...))
	}
	before, first, mid, last, after := at(-1), at(0), at(30, By("other", "bob")), at(59), at(60)
	ready := t.ready(NewFile(until(time.Hour, start.Add(30*time.Second).Sub(Now))))
	claimed := t.claimed(lease("alice", time.Minute), until(time.Hour, start.Add(31*time.Second).Sub(Now)))
	for _, w := range []struct {
		minute, now time.Duration
		want        []files.File
	}{
		{0, -time.Second, nil},
		{0, 0, []files.File{first}},
		{0, 29*time.Second + 999*time.Millisecond, []files.File{first}},
		{0, 30 * time.Second, []files.File{first, mid, ready}},
		{0, time.Minute, []files.File{first, mid, ready, claimed, last}},
		{45 * time.Second, time.Hour, []files.File{first, mid, ready, claimed, last}}, // the same minute
		{-time.Minute, time.Hour, []files.File{before}},
		{time.Minute, time.Hour, []files.File{after}},
		{2 * time.Minute, time.Hour, nil},
	} {
		want := map[string]files.Hold{}
		for _, f := range w.want {
			want[f.ID] = files.Hold{Account: f.Account, ID: f.ID, Deadline: f.Deadline()}
		}
		if got := t.due(start.Add(w.minute), start.Add(w.now)); !reflect.DeepEqual(got, want) {
			t.Errorf("of the minute %v, at %v: %v, want %v", w.minute, w.now, got, want)
		}
	}
	_, err := t.Records.End(t.ctx, first, files.Ending{State: files.Deleted, At: Now})
	t.wantErr(err, nil)
	if got := t.due(start, start.Add(time.Second)); len(got) != 0 {
		t.Errorf("what has ended is due: %v", got)
	}
}

// testDuePages: many in one minute, which end while the pages are read.
func testDuePages(t *tableTest) {
	const n = 300
	made := map[string]bool{}
	for range n {
		made[t.create(NewFile(func(f *files.File) { f.UploadBy = Now.Add(time.Hour) })).ID] = true
	}
	now := Now.Add(2 * time.Hour)
	seen := 0
	for next := ""; ; {
		page, after, err := t.Records.Due(t.ctx, Now.Add(time.Hour), now, next)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range page {
			if !made[h.ID] {
				t.Errorf("%s is due, or due again", h.ID)
			}
			delete(made, h.ID)
			seen++
			t.wantErr(t.Records.Release(t.ctx, h.Account, h.ID, now), nil)
		}
		if after == "" {
			break
		}
		next = after
	}
	if seen != n {
		t.Errorf("%d holds were due, want %d", seen, n)
	}
}

func testWatermark(t *tableTest) {
	want := func(want time.Time) {
		t.Helper()
		got, err := t.Records.Watermark(t.ctx)
		if err != nil || !got.Equal(want) {
			t.Errorf("the watermark is %v, %v; want %v", got, err, want)
		}
	}
	want(time.Time{})
	minute := Now.Truncate(time.Minute)
	for _, step := range []struct{ set, want time.Duration }{{0, 0}, {time.Minute, time.Minute}, {0, time.Minute}, {time.Minute, time.Minute}, {time.Hour, time.Hour}} {
		t.wantErr(t.Records.SetWatermark(t.ctx, minute.Add(step.set)), nil)
		want(minute.Add(step.want))
	}
}
