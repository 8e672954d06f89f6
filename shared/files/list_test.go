package files_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
)

// stored creates a ready file of 10 bytes with the given change, straight in the records.
func (l *life) stored(change ...func(*files.File)) files.File {
	l.t.Helper()
	change = append([]func(*files.File){filestest.Sized(10), func(f *files.File) { f.CreatedAt = l.clock.Now().Truncate(time.Second) }}, change...)
	f := filestest.NewFile(change...)
	f, _, err := l.records.Create(l.ctx, f, filestest.Roomy, nil, l.clock.Now())
	wantErr(l.t, err, nil)
	f, err = l.records.MarkReady(l.ctx, f, filestest.VerifiedAs(f, 10))
	wantErr(l.t, err, nil)
	return f
}

// ids returns the ids of a list.
func ids(list []files.File) []string {
	out := []string{}
	for _, f := range list {
		out = append(out, f.ID)
	}
	return out
}

// pages follows the cursor from page to page, with something in between.
func (l *life) pages(c files.Caller, q files.Filter, limit int, between func(page []files.File)) []string {
	l.t.Helper()
	var all []string
	at := &files.Position{}
	for n := 0; at != nil; n++ {
		if n > 100 {
			l.t.Fatal("the list has no end")
		}
		page, next, err := l.lister.List(l.ctx, c, q, *at, limit)
		if err != nil {
			l.t.Fatal(err)
		}
		if len(page) > limit {
			l.t.Errorf("a page of %d, want %d at most", len(page), limit)
		}
		all = append(all, ids(page)...)
		if between != nil {
			between(page)
		}
		at = next
	}
	return all
}

// TestListOrder: newest first, those of one second in a fixed order, each exactly once, whatever the size of pages.
func TestListOrder(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	var want []string
	for i := range 23 {
		if i%4 == 0 {
			l.clock.Advance(time.Second)
		}
		want = append(want, l.stored().ID)
	}
	l.stored(filestest.By("other", "alice"))
	created := map[string]time.Time{}
	for id, f := range l.records.Snapshot(t).Files {
		created[id] = f.CreatedAt
	}
	slices.SortFunc(want, func(a, b string) int {
		if c := created[b].Compare(created[a]); c != 0 {
			return c
		}
		if a > b {
			return -1
		}
		return 1
	})
	for _, limit := range []int{1, 2, 5, 22, 23, 24, 100} {
		if got := l.pages(alice, files.Filter{}, limit, nil); !slices.Equal(got, want) {
			t.Errorf("by %d: %v, want %v", limit, got, want)
		}
	}
	if got := l.pages(files.Caller{Account: "nobody", Actor: "alice", Scopes: files.Scopes}, files.Filter{}, 10, nil); len(got) != 0 {
		t.Errorf("an empty account lists %v", got)
	}
}

// TestListLastPage: a full page that is the last one has no cursor.
func TestListLastPage(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	for range 4 {
		l.stored()
	}
	_, next, err := l.lister.List(l.ctx, alice, files.Filter{}, files.Position{}, 4)
	if err != nil || next != nil {
		t.Errorf("the cursor behind everything is %v, %v", next, err)
	}
	_, next, err = l.lister.List(l.ctx, alice, files.Filter{}, files.Position{}, 3)
	if err != nil || next == nil {
		t.Errorf("there is no cursor before the end: %v", err)
	}
}

// TestListWhileItChanges: files that go or come while the pages are read move no other file out of sight, or into it twice.
func TestListWhileItChanges(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	all := map[string]bool{}
	for range 40 {
		l.clock.Advance(time.Second)
		all[l.stored().ID] = true
	}
	gone := map[string]bool{}
	got := l.pages(alice, files.Filter{}, 4, func(page []files.File) {
		for _, f := range page { // also the one that the cursor names, record and all
			wantErr(t, l.deleter.Delete(l.ctx, alice, f.ID), nil)
			l.records.Drop(f.ID)
			gone[f.ID] = true
		}
		l.clock.Advance(time.Second)
		l.stored() // newer: before the cursor
	})
	seen := map[string]bool{}
	for _, id := range got {
		if !all[id] || seen[id] {
			t.Errorf("%s is new, or came twice", id)
		}
		seen[id] = true
	}
	if len(got) != len(all) {
		t.Errorf("%d files were listed, want %d", len(got), len(all))
	}
}

// TestListFilters: filters narrow the list; what they leave out costs no more than a short page.
func TestListFilters(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	byName := map[string]string{}
	add := func(name string, f files.File) { byName[f.ID] = name }
	add("plain", l.stored())
	add("run", l.stored(func(f *files.File) { f.Purpose, f.Run = files.UserUpload, "r_1" }))
	add("bob's", l.stored(filestest.By("acme", "bob"), func(f *files.File) { f.Purpose, f.Run = files.UserUpload, "r_1" }))
	add("output", l.stored(func(f *files.File) { f.Purpose, f.Run = files.AgentOutput, "r_1" }))
	add("fixture", l.stored(func(f *files.File) { f.Purpose = files.Fixture }))
	add("bob's plain", l.stored(filestest.By("acme", "bob")))
	add("reserved", l.reserve(draft(pdf)))
	single := l.ready(once)
	add("claimed", single)
	l.claim(alice, single.ID, "call-1")
	rejected := l.reserve(draft(nil))
	add("rejected", rejected)
	l.put(rejected.ID, bad)
	wantErr(t, l.verifier.Event(l.ctx, rejected.ID, ""), nil)
	deleted := l.stored()
	add("deleted", deleted)
	wantErr(t, l.deleter.Delete(l.ctx, alice, deleted.ID), nil)
	add("short", l.stored(func(f *files.File) {
		f.UploadBy, f.ExpiresAt = f.CreatedAt.Add(time.Minute), f.CreatedAt.Add(time.Minute)
	}))

	list := func(c files.Caller, q files.Filter) []string {
		t.Helper()
		names := []string{}
		for _, id := range l.pages(c, q, 2, nil) {
			names = append(names, byName[id])
		}
		slices.Sort(names)
		return names
	}
	states := func(s ...files.State) files.Filter { return files.Filter{States: s} }
	check := func(what string, got []string, want ...string) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	check("live", list(alice, files.Filter{}), "bob's plain", "claimed", "plain", "reserved", "run", "short")
	check("bob's", list(bob, files.Filter{}), "bob's", "bob's plain", "claimed", "plain", "reserved", "short")
	check("ready", list(alice, states(files.Ready)), "bob's plain", "plain", "run", "short")
	check("claimed", list(alice, states(files.Claimed)), "claimed")
	check("ended", list(alice, states(files.Rejected, files.Deleted)), "deleted", "rejected")
	check("expired", list(alice, states(files.Expired)))
	check("uploads", list(alice, files.Filter{Purpose: files.Upload}), "bob's plain", "claimed", "plain", "reserved", "short")
	check("the run's", list(alice, files.Filter{Run: "r_1"}), "run")
	check("no run's", list(alice, files.Filter{Run: "r_2"}))
	check("the run's deleted", list(alice, files.Filter{Run: "r_1", States: []files.State{files.Deleted}}))
	check("a stranger's", list(stranger, states(files.States...)))

	// The clock decides: the lease of one file ends, then its life and that of another.
	l.clock.Advance(lease)
	check("after the lease", list(alice, states(files.Ready)), "bob's plain", "claimed", "plain", "run")
	check("after a minute", list(alice, states(files.Expired)), "short")
	l.clock.Advance(limits.SingleUseTTL)
	check("after two hours", list(alice, files.Filter{}), "bob's plain", "plain", "run")
	check("expired by then", list(alice, states(files.Expired)), "claimed", "reserved", "short")
}

// TestListManyDead: live files behind many that have ended are found, page by short page.
func TestListManyDead(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	old := l.stored()
	l.clock.Advance(time.Second)
	for range 450 {
		wantErr(t, l.deleter.Delete(l.ctx, alice, l.stored().ID), nil)
	}
	before := l.calls("Files")
	if got := l.pages(alice, files.Filter{}, 20, nil); !slices.Equal(got, []string{old.ID}) {
		t.Errorf("found %v, want %s", got, old.ID)
	}
	if n := l.calls("Files") - before; n > 3 {
		t.Errorf("it took %d queries to pass 451 records", n)
	}
}

// TestUsage: what is held, to the second, without any process in the background.
func TestUsage(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.wantUsage(0, 0, 0)
	waiting := l.reserve(draft(nil))
	ready := l.ready(living(7200))
	l.reserve(draft(pdf, living(60)))
	n := int64(len(pdf))
	l.wantUsage(limits.MaxFileBytes+2*n, 3, 2)
	if u, err := l.meter.Usage(l.ctx, bob); err != nil || u.Reservations != 0 || u.Files != 3 {
		t.Errorf("bob's usage: %+v, %v", u, err)
	}
	if u, err := l.meter.Usage(l.ctx, stranger); err != nil || u != (files.Usage{}) {
		t.Errorf("a stranger's usage: %+v, %v", u, err)
	}
	for _, step := range []struct {
		at                         time.Time
		bytes, files, reservations int64
	}{
		{l.clock.Now().Add(time.Minute - time.Millisecond), limits.MaxFileBytes + 2*n, 3, 2},
		{l.clock.Now().Add(time.Minute), limits.MaxFileBytes + n, 2, 1},
		{waiting.UploadBy.Add(-time.Millisecond), limits.MaxFileBytes + n, 2, 1},
		{waiting.UploadBy, n, 1, 0},
		{ready.ExpiresAt.Add(-time.Millisecond), n, 1, 0},
		{ready.ExpiresAt, 0, 0, 0},
	} {
		l.clock.Set(step.at)
		l.wantUsage(step.bytes, step.files, step.reservations)
	}
	l.purge()
	l.check()
}

// TestUsageOfMany: more ended holds than are released at a time.
func TestUsageOfMany(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	for range 130 {
		l.stored(func(f *files.File) { f.ExpiresAt = f.CreatedAt.Add(time.Hour) })
	}
	l.clock.Advance(time.Hour)
	l.wantUsage(0, 0, 0)
}

// TestReleasingTakesNoAnswerTime: with too many ended holds to release in one request, the caller is told to repeat it
// while there is still time to say so.
func TestReleasingTakesNoAnswerTime(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	for range limits.ActorMaxReservations {
		l.reserve(draft(pdf))
	}
	l.clock.Advance(limits.ReservationTTL)
	late, cancel := context.WithTimeout(l.ctx, time.Second)
	defer cancel()
	_, err := l.meter.Usage(late, alice)
	wantErr(t, err, files.ErrTryAgain)
	_, err = l.uploads.Reserve(late, alice, draft(pdf), nil)
	wantErr(t, err, files.ErrTryAgain)
	soon, cancel := context.WithTimeout(l.ctx, time.Minute)
	defer cancel()
	_, err = l.uploads.Reserve(soon, alice, draft(pdf), nil)
	wantErr(t, err, nil)
	l.wantUsage(int64(len(pdf)), 1, 1)
	l.check()
}
