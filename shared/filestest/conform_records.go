package filestest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
)

// RecordsAPI is all that the domain asks of records.
type RecordsAPI interface {
	files.Creator
	files.Finder
	files.VerifyRecords
	files.InlineRecords
	files.ClaimRecords
	files.LeaseRecords
	files.ListRecords
	files.UsageRecords
	files.SweepRecords
	files.ReconcileRecords
}

// Table is what TestRecords tests: records that are empty at first, and a way to look at all they hold without them.
type Table struct {
	Records  RecordsAPI
	Snapshot func(t testing.TB) Snapshot
	// Drop removes the record of a file and nothing else, as TTL does.
	Drop func(t testing.TB, id string)
	// DropHold removes the hold of a file, SetAccount and SetActor set counters, all behind the back of the records.
	DropHold   func(t testing.TB, f files.File)
	SetAccount func(t testing.TB, account string, u AccountUsage)
	SetActor   func(t testing.TB, id ActorID, u ActorUsage)
}

// Now is the moment around which the suites work.
var Now = NewClock().Now()

// Roomy is a quota that no suite fills by accident.
var Roomy = files.Quota{AccountMaxLiveBytes: 1 << 40, ActorMaxReservations: 1000, ActorMaxUnsizedBytes: 1 << 38}

// NewFile returns a reservation of 1000 bytes for acme's alice, made at Now, which waits an hour and lives a day.
func NewFile(change ...func(f *files.File)) files.File {
	f := files.File{
		ID: files.NewID(), Account: "acme", Actor: "alice", State: files.Reserved, Purpose: files.Upload,
		Filename: "report.pdf", ContentType: "application/pdf", Size: 1000, Charged: 1000, Counted: true,
		CreatedAt: Now, UploadBy: Now.Add(time.Hour), ExpiresAt: Now.Add(24 * time.Hour),
	}
	for _, c := range change {
		c(&f)
	}
	return f
}

// Unsized makes a file one of undeclared size, charged with n bytes.
func Unsized(n int64) func(*files.File) {
	return func(f *files.File) { f.Size, f.Charged = files.SizeUnknown, n }
}

// Sized makes a file one of n bytes.
func Sized(n int64) func(*files.File) { return func(f *files.File) { f.Size, f.Charged = n, n } }

// By sets who makes a file.
func By(account, actor string) func(*files.File) {
	return func(f *files.File) { f.Account, f.Actor = account, actor }
}

// Inline makes a file one that counts as no reservation.
func Inline(f *files.File) { f.Counted = false }

// VerifiedAs is what verification may learn of f.
func VerifiedAs(f files.File, size int64) files.Verified {
	return files.Verified{
		Sealed: files.Sealed{Object: "files/" + f.ID + "/0123456789abcdef0123456789abcdef", SHA256: strings.Repeat("5a", 32)},
		Size:   size, DetectedType: "application/pdf", At: Now.Add(time.Minute),
	}
}

// TestRecords checks records against the contracts of files.Creator, files.Finder, files.VerifyRecords and
// files.InlineRecords. Open returns new and empty ones each time.
func TestRecords(t *testing.T, open func(t *testing.T) Table) {
	for name, test := range map[string]func(*tableTest){
		"create":               testCreate,
		"create twice":         testCreateTwice,
		"missing":              testMissing,
		"limits":               testLimits,
		"limits apart":         testLimitsApart,
		"full to the byte":     testFull,
		"parallel limit":       testParallelLimit,
		"parallel bytes":       testParallelBytes,
		"idempotency":          testIdempotency,
		"idempotency window":   testIdempotencyWindow,
		"idempotency first":    testIdempotencyFirst,
		"idempotency parallel": testIdempotencyParallel,
		"ended holds":          testEndedHolds,
		"next end":             testNextEnd,
		"release":              testRelease,
		"release not due":      testReleaseNotDue,
		"release dropped":      testReleaseDropped,
		"release parallel":     testReleaseParallel,
		"mark ready":           testMarkReady,
		"mark ready unsized":   testMarkReadyUnsized,
		"mark ready in place":  testMarkReadyInPlace,
		"mark ready refused":   testMarkReadyRefused,
		"mark ready parallel":  testMarkReadyParallel,
		"end":                  testEnd,
		"end refused":          testEndRefused,
		"end parallel":         testEndParallel,
		"undo":                 testUndo,
		"undo refused":         testUndoRefused,
		"same as the model":    testModel,
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

type tableTest struct {
	*testing.T
	Table
	ctx context.Context
}

// create stores f, which must go well.
func (t *tableTest) create(f files.File) files.File {
	t.Helper()
	got, repeated, err := t.Records.Create(t.ctx, f, Roomy, nil, Now)
	if err != nil || repeated {
		t.Fatalf("creating %s: repeated %v, %v", f.ID, repeated, err)
	}
	return got
}

// ready stores f and marks it ready.
func (t *tableTest) ready(f files.File) files.File {
	t.Helper()
	got, err := t.Records.MarkReady(t.ctx, t.create(f), VerifiedAs(f, max(1, f.Size)))
	if err != nil {
		t.Fatalf("marking %s ready: %v", f.ID, err)
	}
	return got
}

func (t *tableTest) want(f files.File) {
	t.Helper()
	got, err := t.Records.File(t.ctx, f.ID)
	if err != nil {
		t.Fatalf("reading %s: %v", f.ID, err)
	}
	if diff := differs(got, f); diff != "" {
		t.Errorf("%s: %s", f.ID, diff)
	}
}

func (t *tableTest) wantGone(id string) {
	t.Helper()
	if _, err := t.Records.File(t.ctx, id); !errors.Is(err, files.ErrFileNotFound) {
		t.Errorf("reading %s: %v, want ErrFileNotFound", id, err)
	}
}

func (t *tableTest) wantErr(err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}

func (t *tableTest) wantLimit(err error, kind files.LimitKind, limit int64) {
	t.Helper()
	var l *files.LimitError
	if !errors.As(err, &l) {
		t.Fatalf("got error %v, want the limit of %s", err, kind)
	}
	if l.Kind != kind || l.Max != limit || l.RetryAfter != 0 {
		t.Errorf("got %+v, want the limit of %s at %d, without RetryAfter", *l, kind, limit)
	}
}

func (t *tableTest) wantUsage(account string, want AccountUsage, actor string, wantActor ActorUsage) {
	t.Helper()
	s := t.Snapshot(t)
	if got := s.Accounts[account]; got != want {
		t.Errorf("the counters of %s are %+v, want %+v", account, got, want)
	}
	if got := s.Actors[ActorID{account, actor}]; got != wantActor {
		t.Errorf("the counters of %s in %s are %+v, want %+v", actor, account, got, wantActor)
	}
}

// differs says how two records differ, "" when they don't. No metadata and empty metadata are the same.
func differs(got, want files.File) string {
	if len(got.Metadata) == 0 && len(want.Metadata) == 0 {
		got.Metadata, want.Metadata = nil, nil
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Sprintf("got %+v (reason %+v), want %+v (reason %+v)", got, got.Reason, want, want.Reason)
	}
	return ""
}

// parallel runs fn n times at once.
func parallel(n int, fn func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			fn(i)
		})
	}
	close(start)
	wg.Wait()
}

func testCreate(t *tableTest) {
	plain := NewFile()
	full := NewFile(Unsized(5000), func(f *files.File) {
		f.Purpose, f.Run, f.SingleUse = files.UserUpload, "r_1", true
		f.Filename, f.ContentType = "Capture d’écran 合同.pdf", "text/plain; charset=utf-8"
		f.SHA256 = strings.Repeat("ab", 32)
		f.Metadata = map[string]string{"k": "v", "empty": "", "é#:pk": "\u0000\U0001F4CE"}
	})
	for _, f := range []files.File{plain, full} {
		if diff := differs(t.create(f), f); diff != "" {
			t.Errorf("Create returned something else: %s", diff)
		}
		t.want(f)
	}
	t.wantUsage("acme", AccountUsage{Bytes: 6000, Files: 2}, "alice", ActorUsage{Reservations: 2, Unsized: 5000})
	t.create(NewFile(Inline, Sized(7)))
	t.wantUsage("acme", AccountUsage{Bytes: 6007, Files: 3}, "alice", ActorUsage{Reservations: 2, Unsized: 5000})
}

func testCreateTwice(t *tableTest) {
	f := t.create(NewFile())
	other := NewFile(Sized(5), func(o *files.File) { o.ID, o.Filename = f.ID, "other" })
	if _, _, err := t.Records.Create(t.ctx, other, Roomy, nil, Now); err == nil {
		t.Error("a second file was created under the same id")
	}
	t.want(f)
	t.wantUsage("acme", AccountUsage{Bytes: 1000, Files: 1}, "alice", ActorUsage{Reservations: 1})
}

func testMissing(t *tableTest) {
	t.create(NewFile())
	t.wantGone(files.NewID())
	_, err := t.Records.MarkReady(t.ctx, NewFile(), VerifiedAs(NewFile(), 1000))
	t.wantErr(err, files.ErrStateChanged)
	_, err = t.Records.End(t.ctx, NewFile(), files.Ending{State: files.Deleted, At: Now})
	t.wantErr(err, files.ErrStateChanged)
	t.wantErr(t.Records.Release(t.ctx, "acme", files.NewID(), Now.Add(time.Hour)), nil)
	t.wantErr(t.Records.Undo(t.ctx, NewFile(), nil), nil)
}

func testLimits(t *tableTest) {
	q := files.Quota{AccountMaxLiveBytes: 10_000, ActorMaxReservations: 3, ActorMaxUnsizedBytes: 2000}
	create := func(change ...func(*files.File)) error {
		_, _, err := t.Records.Create(t.ctx, NewFile(change...), q, nil, Now)
		return err
	}
	t.wantLimit(create(Sized(10_001)), files.LimitBytes, 10_000) // on counters that don't exist yet
	t.wantLimit(create(Unsized(2001)), files.LimitUnsized, 2000)
	t.wantErr(create(Unsized(2000)), nil)
	t.wantLimit(create(Unsized(1)), files.LimitUnsized, 2000)
	t.wantErr(create(Sized(3000)), nil)
	t.wantLimit(create(Sized(5001)), files.LimitBytes, 10_000)
	t.wantErr(create(Sized(4000)), nil)
	t.wantLimit(create(Sized(1)), files.LimitReservations, 3)
	t.wantErr(create(Sized(500), By("acme", "bob")), nil)
	t.wantErr(create(Sized(500), Inline), nil)
	t.wantLimit(create(Sized(1), Inline), files.LimitBytes, 10_000)
	t.wantErr(create(Sized(10_000), By("other", "alice")), nil) // another account, the same name
	q.ActorMaxReservations = 0
	t.wantLimit(create(By("third", "carol")), files.LimitReservations, 0)
	t.wantUsage("acme", AccountUsage{Bytes: 10_000, Files: 5}, "alice", ActorUsage{Reservations: 3, Unsized: 2000})
}

// testLimitsApart: of several limits that are met at once, those of the actor are reported first.
func testLimitsApart(t *tableTest) {
	q := files.Quota{AccountMaxLiveBytes: 1000, ActorMaxReservations: 1, ActorMaxUnsizedBytes: 1000}
	create := func(change ...func(*files.File)) error {
		_, _, err := t.Records.Create(t.ctx, NewFile(change...), q, nil, Now)
		return err
	}
	t.wantErr(create(Unsized(1000)), nil)
	t.wantLimit(create(Unsized(1000)), files.LimitReservations, 1)
	q.ActorMaxReservations = 2
	t.wantLimit(create(Unsized(1000)), files.LimitUnsized, 1000)
	t.wantLimit(create(Sized(1)), files.LimitBytes, 1000)
}

func testFull(t *tableTest) {
	q := Roomy
	q.AccountMaxLiveBytes = 1000
	for _, n := range []int64{400, 599, 1} {
		_, _, err := t.Records.Create(t.ctx, NewFile(Sized(n)), q, nil, Now)
		t.wantErr(err, nil)
	}
	_, _, err := t.Records.Create(t.ctx, NewFile(Sized(1)), q, nil, Now)
	t.wantLimit(err, files.LimitBytes, 1000)
}

func testParallelLimit(t *tableTest) {
	q := Roomy
	q.ActorMaxReservations = 50
	t.parallelCreates(160, 50, func(err error) bool {
		var l *files.LimitError
		return errors.As(err, &l) && l.Kind == files.LimitReservations
	}, func(int) files.File { return NewFile() }, q)
	t.wantUsage("acme", AccountUsage{Bytes: 50_000, Files: 50}, "alice", ActorUsage{Reservations: 50})
}

func testParallelBytes(t *tableTest) {
	q := Roomy
	q.AccountMaxLiveBytes = 20_000
	t.parallelCreates(60, 20, func(err error) bool {
		var l *files.LimitError
		return errors.As(err, &l) && l.Kind == files.LimitBytes
	}, func(i int) files.File { return NewFile(By("acme", fmt.Sprint("actor", i%7))) }, q)
}

// parallelCreates makes n files at once, of which exactly fit may succeed; the others must be refused as refused says.
func (t *tableTest) parallelCreates(n, fit int, refused func(error) bool, file func(i int) files.File, q files.Quota) {
	t.Helper()
	errs := make([]error, n)
	parallel(n, func(i int) {
		for {
			_, _, errs[i] = t.Records.Create(t.ctx, file(i), q, nil, Now)
			if !errors.Is(errs[i], files.ErrTryAgain) {
				return
			}
		}
	})
	made := 0
	for _, err := range errs {
		switch {
		case err == nil:
			made++
		case !refused(err):
			t.Errorf("got error %v, want a limit", err)
		}
	}
	if made != fit {
		t.Errorf("%d of %d files were created, want %d", made, n, fit)
	}
}

func idempotency(key, digest string) *files.Idempotency {
	return &files.Idempotency{Account: "acme", Actor: "alice", Route: "POST /v1/uploads", Key: key, Digest: digest}
}

func testIdempotency(t *tableTest) {
	create := func(i *files.Idempotency) (files.File, bool, error) {
		return t.Records.Create(t.ctx, NewFile(By(i.Account, i.Actor)), Roomy, i, Now)
	}
	first, repeated, err := create(idempotency("k1", "d1"))
	if err != nil || repeated {
		t.Fatalf("the first request: repeated %v, %v", repeated, err)
	}
	again, repeated, err := create(idempotency("k1", "d1"))
	if err != nil || !repeated || differs(again, first) != "" {
		t.Errorf("the repeat: repeated %v, %v, %s", repeated, err, differs(again, first))
	}
	_, _, err = create(idempotency("k1", "d2"))
	t.wantErr(err, files.ErrIdempotencyMismatch)
	t.wantUsage("acme", AccountUsage{Bytes: 1000, Files: 1}, "alice", ActorUsage{Reservations: 1})

	// Everything but the digest tells requests apart, and no two of them run into one another.
	for _, other := range []*files.Idempotency{
		{Account: "acme", Actor: "alice", Route: "POST /v1/uploads", Key: "k2", Digest: "d1"},
		{Account: "acme", Actor: "alice", Route: "POST /v1/files", Key: "k1", Digest: "d1"},
		{Account: "acme", Actor: "bob", Route: "POST /v1/uploads", Key: "k1", Digest: "d2"},
		{Account: "other", Actor: "alice", Route: "POST /v1/uploads", Key: "k1", Digest: "d2"},
		{Account: "acme", Actor: "a", Route: "b c", Key: "d", Digest: "d1"},
		{Account: "acme", Actor: "a b", Route: "c", Key: "d", Digest: "d1"},
		{Account: "acme", Actor: "a", Route: "b", Key: "c d", Digest: "d1"},
		{Account: "acme", Actor: `a" "b`, Route: "c", Key: "d", Digest: "d1"},
		{Account: "acme", Actor: "a", Route: `b" "c`, Key: "d", Digest: "d1"},
	} {
		if _, repeated, err := create(other); err != nil || repeated {
			t.Errorf("%+v: repeated %v, %v; want a file of its own", *other, repeated, err)
		}
	}

	// A repeat shows the file as it is now.
	ready, err := t.Records.MarkReady(t.ctx, first, VerifiedAs(first, 1000))
	t.wantErr(err, nil)
	if again, repeated, err = create(idempotency("k1", "d1")); err != nil || !repeated || differs(again, ready) != "" {
		t.Errorf("the repeat after verification: repeated %v, %v, %s", repeated, err, differs(again, ready))
	}
}

func testIdempotencyWindow(t *tableTest) {
	at := func(d time.Duration) (files.File, bool, error) {
		return t.Records.Create(t.ctx, NewFile(), Roomy, idempotency("k", "d"), Now.Add(d))
	}
	first, _, err := at(0)
	t.wantErr(err, nil)
	if f, repeated, err := at(files.IdempotencyWindow - time.Second); err != nil || !repeated || f.ID != first.ID {
		t.Errorf("a second before the end of the window: repeated %v, %v", repeated, err)
	}
	second, repeated, err := at(files.IdempotencyWindow)
	if err != nil || repeated || second.ID == first.ID {
		t.Errorf("at the end of the window: repeated %v, %v", repeated, err)
	}
	if f, repeated, err := at(files.IdempotencyWindow + time.Hour); err != nil || !repeated || f.ID != second.ID {
		t.Errorf("an hour into the second window: repeated %v, %v", repeated, err)
	}
}

// testIdempotencyFirst: a repeat is answered even when a new file would find no room.
func testIdempotencyFirst(t *tableTest) {
	q := files.Quota{AccountMaxLiveBytes: 1000, ActorMaxReservations: 1, ActorMaxUnsizedBytes: 250}
	first, _, err := t.Records.Create(t.ctx, NewFile(), q, idempotency("k", "d"), Now)
	t.wantErr(err, nil)
	f, repeated, err := t.Records.Create(t.ctx, NewFile(), q, idempotency("k", "d"), Now)
	if err != nil || !repeated || f.ID != first.ID {
		t.Errorf("the repeat at the limit: repeated %v, %v", repeated, err)
	}
	_, _, err = t.Records.Create(t.ctx, NewFile(), q, idempotency("k", "other"), Now)
	t.wantErr(err, files.ErrIdempotencyMismatch)
	// What a limit refused is not remembered.
	_, _, err = t.Records.Create(t.ctx, NewFile(), q, idempotency("new", "d"), Now)
	t.wantLimit(err, files.LimitReservations, 1)
	if _, repeated, err := t.Records.Create(t.ctx, NewFile(), Roomy, idempotency("new", "d"), Now); err != nil || repeated {
		t.Errorf("after the refusal: repeated %v, %v", repeated, err)
	}
}

func testIdempotencyParallel(t *tableTest) {
	const n = 40
	ids, errs := make([]string, n), make([]error, n)
	parallel(n, func(i int) {
		for {
			f, _, err := t.Records.Create(t.ctx, NewFile(), Roomy, idempotency("k", "d"), Now)
			ids[i], errs[i] = f.ID, err
			if !errors.Is(err, files.ErrTryAgain) {
				return
			}
		}
	})
	for i := range n {
		if errs[i] != nil || ids[i] != ids[0] {
			t.Errorf("request %d: %q, %v; want %q", i, ids[i], errs[i], ids[0])
		}
	}
	t.wantUsage("acme", AccountUsage{Bytes: 1000, Files: 1}, "alice", ActorUsage{Reservations: 1})
}
