package filestest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
)

func until(uploadBy, expires time.Duration) func(*files.File) {
	return func(f *files.File) { f.UploadBy, f.ExpiresAt = Now.Add(uploadBy), Now.Add(expires) }
}

func testEndedHolds(t *tableTest) {
	ids := func(account string, at time.Duration, limit int) []string {
		t.Helper()
		got, err := t.Records.EndedHolds(t.ctx, account, Now.Add(at), limit)
		t.wantErr(err, nil)
		return got
	}
	a := t.create(NewFile(until(100*time.Second, time.Hour)))
	b := t.create(NewFile(until(50*time.Second, time.Hour)))
	c := t.ready(NewFile(until(60*time.Second, 200*time.Second)))
	t.create(NewFile(By("other", "alice"), until(time.Second, time.Hour)))
	for _, step := range []struct {
		at    time.Duration
		limit int
		want  []string
	}{
		{0, 9, nil},
		{50*time.Second - 1, 9, nil},
		{50 * time.Second, 9, []string{b.ID}},
		{50*time.Second + 1, 9, []string{b.ID}},
		{99 * time.Second, 9, []string{b.ID}},
		{100 * time.Second, 9, []string{b.ID, a.ID}},
		{199 * time.Second, 9, []string{b.ID, a.ID}}, // c waits until its expiry
		{200 * time.Second, 9, []string{b.ID, a.ID, c.ID}},
		{200 * time.Second, 2, []string{b.ID, a.ID}},
		{365 * 24 * time.Hour, 9, []string{b.ID, a.ID, c.ID}},
	} {
		if got := ids("acme", step.at, step.limit); !slices.Equal(got, step.want) {
			t.Errorf("after %v, at most %d: %v, want %v", step.at, step.limit, got, step.want)
		}
	}
	t.wantErr(t.Records.Release(t.ctx, "acme", b.ID, Now.Add(100*time.Second)), nil)
	if got, want := ids("acme", 100*time.Second, 9), []string{a.ID}; !slices.Equal(got, want) {
		t.Errorf("after a release: %v, want %v", got, want)
	}
}

func testNextEnd(t *tableTest) {
	next := func(account, actor string, kind files.LimitKind) time.Duration {
		t.Helper()
		end, err := t.Records.NextEnd(t.ctx, account, actor, kind)
		t.wantErr(err, nil)
		if end.IsZero() {
			return 0
		}
		return end.Sub(Now)
	}
	if got := next("acme", "alice", files.LimitBytes); got != 0 {
		t.Errorf("without any file: %v", got)
	}
	t.ready(NewFile(until(time.Second, 10*time.Second)))
	t.create(NewFile(By("acme", "bob"), Unsized(5), until(20*time.Second, time.Hour)))
	t.create(NewFile(Inline, until(25*time.Second, time.Hour)))
	t.create(NewFile(until(30*time.Second, time.Hour)))
	t.create(NewFile(Unsized(5), until(40*time.Second, time.Hour)))
	t.create(NewFile(By("other", "alice"), Unsized(5), until(time.Second, time.Hour)))
	for _, w := range []struct {
		actor string
		kind  files.LimitKind
		want  time.Duration
	}{
		{"alice", files.LimitBytes, 10 * time.Second},
		{"nobody", files.LimitBytes, 10 * time.Second},
		{"alice", files.LimitReservations, 30 * time.Second},
		{"alice", files.LimitUnsized, 40 * time.Second},
		{"bob", files.LimitReservations, 20 * time.Second},
		{"bob", files.LimitUnsized, 20 * time.Second},
		{"nobody", files.LimitReservations, 0},
	} {
		if got := next("acme", w.actor, w.kind); got != w.want {
			t.Errorf("%s of %s: %v, want %v", w.kind, w.actor, got, w.want)
		}
	}
}

func testRelease(t *tableTest) {
	f := t.create(NewFile(Unsized(5000)))
	g := t.ready(NewFile())
	t.wantErr(t.Records.Release(t.ctx, "acme", f.ID, f.UploadBy), nil)
	f.State, f.EndedAt = files.Expired, f.UploadBy
	t.want(f)
	t.wantUsage("acme", AccountUsage{Bytes: 1000, Files: 1}, "alice", ActorUsage{})
	t.wantErr(t.Records.Release(t.ctx, "acme", f.ID, f.UploadBy.Add(time.Minute)), nil)
	t.want(f)
	t.wantErr(t.Records.Release(t.ctx, "acme", g.ID, g.ExpiresAt), nil)
	g.State, g.EndedAt = files.Expired, g.ExpiresAt
	t.want(g)
	t.wantUsage("acme", AccountUsage{}, "alice", ActorUsage{})
}

func testReleaseNotDue(t *tableTest) {
	f := t.create(NewFile())
	t.wantErr(t.Records.Release(t.ctx, "acme", f.ID, f.UploadBy.Add(-time.Nanosecond)), nil)
	t.want(f)
	t.wantErr(t.Records.Release(t.ctx, "other", f.ID, f.UploadBy), nil) // not theirs
	t.want(f)
	g, err := t.Records.MarkReady(t.ctx, f, VerifiedAs(f, 1000))
	t.wantErr(err, nil)
	t.wantErr(t.Records.Release(t.ctx, "acme", f.ID, f.UploadBy), nil) // verified meanwhile
	t.want(g)
	t.wantUsage("acme", AccountUsage{Bytes: 1000, Files: 1}, "alice", ActorUsage{})
}

// testReleaseDropped: TTL may remove the record of a file that nobody ended.
func testReleaseDropped(t *tableTest) {
	f := t.create(NewFile(Unsized(5000)))
	g := t.create(NewFile())
	t.Drop(t, f.ID)
	at := f.UploadBy.Add(72 * time.Hour)
	if ids, err := t.Records.EndedHolds(t.ctx, "acme", f.UploadBy, 9); err != nil || !slices.Contains(ids, f.ID) {
		t.Errorf("the holds are %v, %v; want that of %s too", ids, err, f.ID)
	}
	parallel(8, func(int) { t.wantErr(t.Records.Release(t.ctx, "acme", f.ID, at), nil) })
	t.wantUsage("acme", AccountUsage{Bytes: 1000, Files: 1}, "alice", ActorUsage{Reservations: 1})
	t.want(g)
}

func testReleaseParallel(t *tableTest) {
	f := t.create(NewFile(Unsized(5000)))
	t.create(NewFile())
	parallel(8, func(int) { t.wantErr(t.Records.Release(t.ctx, "acme", f.ID, f.UploadBy), nil) })
	t.wantUsage("acme", AccountUsage{Bytes: 1000, Files: 1}, "alice", ActorUsage{Reservations: 1})
}

func readyOf(f files.File, v files.Verified) files.File {
	f.State, f.Sealed, f.SHA256 = files.Ready, v.Sealed.Object, v.Sealed.SHA256
	f.Size, f.Charged, f.DetectedType, f.VerifiedAt = v.Size, v.Size, v.DetectedType, v.At
	return f
}

func testMarkReady(t *tableTest) {
	f := t.create(NewFile())
	inline := t.create(NewFile(Inline))
	for _, f := range []files.File{f, inline} {
		v := VerifiedAs(f, 1000)
		if f.ID == inline.ID {
			v.DetectedType = ""
		}
		got, err := t.Records.MarkReady(t.ctx, f, v)
		if diff := differs(got, readyOf(f, v)); err != nil || diff != "" {
			t.Errorf("MarkReady: %v, %s", err, diff)
		}
		t.want(readyOf(f, v))
	}
	t.wantUsage("acme", AccountUsage{Bytes: 2000, Files: 2}, "alice", ActorUsage{})
}

func testMarkReadyUnsized(t *tableTest) {
	f := t.create(NewFile(Unsized(5000)))
	v := VerifiedAs(f, 17)
	_, err := t.Records.MarkReady(t.ctx, f, v)
	t.wantErr(err, nil)
	t.want(readyOf(f, v))
	t.wantUsage("acme", AccountUsage{Bytes: 17, Files: 1}, "alice", ActorUsage{})
}

// testMarkReadyInPlace: a file that lives as long as its upload may take keeps its place in the ledger.
func testMarkReadyInPlace(t *tableTest) {
	f := t.create(NewFile(Unsized(5000), until(time.Minute, time.Minute)))
	_, err := t.Records.MarkReady(t.ctx, f, VerifiedAs(f, 17))
	t.wantErr(err, nil)
	t.wantUsage("acme", AccountUsage{Bytes: 17, Files: 1}, "alice", ActorUsage{})
}

func testMarkReadyRefused(t *tableTest) {
	f := t.create(NewFile())
	ready, err := t.Records.MarkReady(t.ctx, f, VerifiedAs(f, 1000))
	t.wantErr(err, nil)
	other := VerifiedAs(f, 1000)
	other.Sealed.Object += "-other"
	for _, before := range []files.File{f, ready} {
		_, err = t.Records.MarkReady(t.ctx, before, other)
		t.wantErr(err, files.ErrStateChanged)
	}
	t.want(ready)
	ended, err := t.Records.End(t.ctx, ready, files.Ending{State: files.Deleted, At: Now})
	t.wantErr(err, nil)
	_, err = t.Records.MarkReady(t.ctx, f, other)
	t.wantErr(err, files.ErrStateChanged)
	t.want(ended)
	t.wantUsage("acme", AccountUsage{}, "alice", ActorUsage{})
}

func testMarkReadyParallel(t *tableTest) {
	f := t.create(NewFile(Unsized(5000)))
	errs := make([]error, 8)
	parallel(len(errs), func(i int) {
		v := VerifiedAs(f, int64(10+i))
		v.Sealed.Object = fmt.Sprint("sealed", i)
		_, errs[i] = t.Records.MarkReady(t.ctx, f, v)
	})
	t.wantOneWinner(errs)
	got, err := t.Records.File(t.ctx, f.ID)
	t.wantErr(err, nil)
	if want := fmt.Sprint("sealed", got.Size-10); got.Sealed != want {
		t.Errorf("the record names %s with the size of %s", got.Sealed, want)
	}
}

func (t *tableTest) wantOneWinner(errs []error) {
	t.Helper()
	won := 0
	for _, err := range errs {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, files.ErrStateChanged):
			t.Errorf("got error %v, want ErrStateChanged", err)
		}
	}
	if won != 1 {
		t.Errorf("%d of %d writers succeeded, want 1", won, len(errs))
	}
}

func testEnd(t *tableTest) {
	at := Now.Add(30 * time.Second)
	reason := &files.Reason{Code: files.CodeTypeMismatch, Detail: "Detail.", Declared: "image/png", Detected: "application/pdf"}
	for _, end := range []files.Ending{
		{State: files.Rejected, Reason: reason, At: at},
		{State: files.Rejected, Reason: &files.Reason{Code: files.CodeSizeMismatch, Detail: "Detail."}, At: at},
		{State: files.Expired, At: at.Add(999 * time.Millisecond)},
		{State: files.Deleted, At: at},
		{State: files.Spent, At: at},
	} {
		for _, f := range []files.File{t.create(NewFile()), t.create(NewFile(Unsized(5000))), t.ready(NewFile())} {
			if end.State == files.Spent && f.State == files.Reserved || end.State == files.Rejected && f.State == files.Ready {
				continue
			}
			before := f
			f.State, f.Reason, f.EndedAt = end.State, end.Reason, at
			got, err := t.Records.End(t.ctx, before, end)
			if diff := differs(got, f); err != nil || diff != "" {
				t.Errorf("ending as %s: %v, %s", end.State, err, diff)
			}
			t.want(f)
			if end.State == files.Deleted {
				continue
			}
			// What has ended can still be deleted, which keeps its reason and changes no quota.
			deleted, err := t.Records.End(t.ctx, got, files.Ending{State: files.Deleted, At: at.Add(time.Hour)})
			t.wantErr(err, nil)
			f.State, f.EndedAt = files.Deleted, at.Add(time.Hour)
			t.want(f)
			if diff := differs(deleted, f); diff != "" {
				t.Errorf("deleting what is %s: %s", end.State, diff)
			}
		}
	}
}

func testEndRefused(t *tableTest) {
	reserved := t.create(NewFile())
	ready, err := t.Records.MarkReady(t.ctx, reserved, VerifiedAs(reserved, 1000))
	t.wantErr(err, nil)
	_, err = t.Records.End(t.ctx, reserved, files.Ending{State: files.Rejected, Reason: &files.Reason{Code: "x", Detail: "y"}, At: Now})
	t.wantErr(err, files.ErrStateChanged)
	t.want(ready)
	ended, err := t.Records.End(t.ctx, ready, files.Ending{State: files.Expired, At: Now})
	t.wantErr(err, nil)
	_, err = t.Records.End(t.ctx, ready, files.Ending{State: files.Deleted, At: Now.Add(time.Hour)})
	t.wantErr(err, files.ErrStateChanged)
	t.want(ended)
	t.wantUsage("acme", AccountUsage{}, "alice", ActorUsage{})
}

func testEndParallel(t *tableTest) {
	f := t.create(NewFile(Unsized(5000)))
	errs := make([]error, 8)
	parallel(len(errs), func(i int) {
		_, errs[i] = t.Records.End(t.ctx, f, files.Ending{State: files.Deleted, At: Now})
	})
	t.wantOneWinner(errs)
	t.wantUsage("acme", AccountUsage{}, "alice", ActorUsage{})
}

func testUndo(t *tableTest) {
	keep := t.create(NewFile())
	for _, f := range []files.File{NewFile(), NewFile(Unsized(5000)), NewFile(Inline)} {
		idem := idempotency("k", "d")
		for range 2 { // the second Create is no repeat: the first one has never been
			got, repeated, err := t.Records.Create(t.ctx, f, Roomy, idem, Now)
			if err != nil || repeated {
				t.Fatalf("creating %s: repeated %v, %v", f.ID, repeated, err)
			}
			parallel(4, func(int) { t.wantErr(t.Records.Undo(t.ctx, got, idem), nil) })
			t.wantGone(f.ID)
			t.wantUsage("acme", AccountUsage{Bytes: 1000, Files: 1}, "alice", ActorUsage{Reservations: 1})
		}
	}
	t.want(keep)
}

func testUndoRefused(t *tableTest) {
	idem := idempotency("k", "d")
	f, _, err := t.Records.Create(t.ctx, NewFile(), Roomy, idem, Now)
	t.wantErr(err, nil)
	ready, err := t.Records.MarkReady(t.ctx, f, VerifiedAs(f, 1000))
	t.wantErr(err, nil)
	t.wantErr(t.Records.Undo(t.ctx, f, idem), files.ErrStateChanged)
	t.want(ready)
	if got, repeated, err := t.Records.Create(t.ctx, NewFile(), Roomy, idem, Now); err != nil || !repeated || got.ID != f.ID {
		t.Errorf("the repeat of what could not be undone: repeated %v, %v", repeated, err)
	}
}

// testModel does the same random things to the records under test and to Records, and wants the same answers.
func testModel(t *tableTest) {
	const seed, steps = 7, 300
	r := rand.New(rand.NewPCG(seed, seed))
	m := model{tableTest: t, want: NewRecords(), rand: r}
	for i := range steps {
		m.step = i
		m.one()
	}
	m.compare()
}

type model struct {
	*tableTest
	want  *Records
	rand  *rand.Rand
	step  int
	seen  []files.File
	clock time.Duration

	single []string // ids of files for a single use, for live
}

func (m *model) one() {
	m.clock += time.Duration(m.rand.IntN(30)) * time.Second
	now := Now.Add(m.clock)
	q := files.Quota{AccountMaxLiveBytes: 8000, ActorMaxReservations: 5, ActorMaxUnsizedBytes: 4000}
	account := []string{"acme", "other"}[m.rand.IntN(2)]
	actor := []string{"alice", "bob"}[m.rand.IntN(2)]
	switch n := m.rand.IntN(20); {
	case n < 8:
		f := NewFile(By(account, actor), Sized(1+m.rand.Int64N(2000)))
		if m.rand.IntN(3) == 0 {
			Unsized(1500)(&f)
		} else if m.rand.IntN(4) == 0 {
			f.Counted = false
		}
		f.CreatedAt = now
		f.UploadBy = now.Add(time.Duration(30+m.rand.IntN(90)) * time.Second)
		f.ExpiresAt = f.UploadBy.Add(time.Duration(m.rand.IntN(2)*m.rand.IntN(300)) * time.Second)
		var idem *files.Idempotency
		if m.rand.IntN(2) == 0 {
			idem = &files.Idempotency{Account: account, Actor: actor, Route: "r", Key: fmt.Sprint(m.rand.IntN(6)), Digest: fmt.Sprint(m.rand.IntN(5) / 4)}
		}
		both(m, "Create", func(r RecordsAPI) (created, error) {
			f, repeated, err := r.Create(m.ctx, f, q, idem, now)
			return created{f, repeated}, err
		})
		m.seen = append(m.seen, f)
	case n < 12 && len(m.seen) > 0:
		f := m.pick()
		v := VerifiedAs(f, 1+m.rand.Int64N(1500))
		if f.Size > 0 {
			v.Size = f.Size
		}
		v.At = now
		both(m, "MarkReady", func(r RecordsAPI) (files.File, error) { return r.MarkReady(m.ctx, f, v) })
	case n < 15 && len(m.seen) > 0:
		f := m.pick()
		end := files.Ending{State: []files.State{files.Deleted, files.Expired}[m.rand.IntN(2)], At: now}
		both(m, "End", func(r RecordsAPI) (files.File, error) { return r.End(m.ctx, f, end) })
	case n < 16 && len(m.seen) > 0:
		f := m.pick()
		both(m, "Undo", func(r RecordsAPI) (struct{}, error) { return struct{}{}, r.Undo(m.ctx, f, nil) })
	case n < 18:
		ids := both(m, "EndedHolds", func(r RecordsAPI) ([]string, error) { return r.EndedHolds(m.ctx, account, now, 3) })
		for _, id := range ids {
			both(m, "Release", func(r RecordsAPI) (struct{}, error) { return struct{}{}, r.Release(m.ctx, account, id, now) })
		}
	default:
		kind := []files.LimitKind{files.LimitBytes, files.LimitReservations, files.LimitUnsized}[m.rand.IntN(3)]
		both(m, "NextEnd", func(r RecordsAPI) (time.Time, error) { return r.NextEnd(m.ctx, account, actor, kind) })
	}
	if m.step%20 == 0 {
		m.compare()
	}
}

// pick returns a record as it is or as it once was.
func (m *model) pick() files.File {
	f := m.seen[m.rand.IntN(len(m.seen))]
	if now, err := m.want.File(m.ctx, f.ID); err == nil && m.rand.IntN(4) > 0 {
		return now
	}
	return f
}

// both does one thing to both sides and returns the answer of the model.
func both[T any](m *model, op string, do func(RecordsAPI) (T, error)) T {
	m.Helper()
	got, gotErr := do(m.Records)
	want, wantErr := do(m.want)
	if sameError(gotErr) != sameError(wantErr) {
		m.Fatalf("step %d: %s returned %v, want %v", m.step, op, gotErr, wantErr)
	}
	if gotErr == nil && !reflect.DeepEqual(got, want) {
		m.Fatalf("step %d: %s returned %+v, want %+v", m.step, op, got, want)
	}
	return want
}

// sameError is what two errors must have in common.
func sameError(err error) string {
	var l *files.LimitError
	switch {
	case err == nil:
		return "none"
	case errors.As(err, &l):
		return fmt.Sprintf("limit %+v", *l)
	case errors.Is(err, files.ErrStateChanged):
		return "state changed"
	case errors.Is(err, files.ErrIdempotencyMismatch):
		return "mismatch"
	}
	return "other"
}

func (m *model) compare() {
	m.Helper()
	got, want := m.Snapshot(m), m.want.Snapshot(m)
	CheckInvariants(m, got)
	if len(got.Files) != len(want.Files) {
		m.Fatalf("step %d: there are %d records, want %d", m.step, len(got.Files), len(want.Files))
	}
	for id, f := range want.Files {
		if diff := differs(got.Files[id], f); diff != "" {
			m.Fatalf("step %d: %s: %s", m.step, id, diff)
		}
	}
}
