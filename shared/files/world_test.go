package files_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
)

// Small limits, so that tests can reach them.
var limits = files.Limits{
	MaxFileBytes:         1000,
	AccountMaxLiveBytes:  8000,
	ActorMaxReservations: 3,
	FileTTL:              24 * time.Hour,
	SingleUseTTL:         2 * time.Hour,
	ReservationTTL:       time.Hour,
}

// world is the domain over fakes, all under one hook.
type world struct {
	t        testing.TB
	ctx      context.Context
	faults   *filestest.Faults
	clock    *filestest.Clock
	records  *filestest.Records
	store    *filestest.Store
	signer   *filestest.Signer
	uploads  *files.Uploads
	renewer  *files.Renewer
	inline   *files.Inline
	verifier *files.Verifier
	complete *files.Completer
	reader   *files.Reader
}

func newWorld(t testing.TB) *world {
	w := &world{
		t: t, ctx: context.Background(),
		faults:  &filestest.Faults{},
		clock:   filestest.NewClock(),
		records: filestest.NewRecords(),
	}
	w.store = filestest.NewStore(w.clock)
	w.signer = &filestest.Signer{}
	w.hook(w.faults.Hook)
	w.uploads = &files.Uploads{
		Records: w.records, Signer: w.signer, Limits: limits, URLTTL: 15 * time.Minute, Now: w.clock.Now, NewID: files.NewID,
	}
	w.renewer = &files.Renewer{Records: w.records, Signer: w.signer, URLTTL: 15 * time.Minute, Now: w.clock.Now}
	w.inline = &files.Inline{
		Records: w.records, Objects: w.store, CheckType: checkType, Limits: limits, Now: w.clock.Now, NewID: files.NewID,
	}
	w.verifier = &files.Verifier{
		Records: w.records, Stage: w.store, CheckType: checkType, MaxFileBytes: limits.MaxFileBytes, Now: w.clock.Now,
	}
	w.complete = &files.Completer{Verifier: w.verifier, Now: w.clock.Now}
	w.reader = &files.Reader{Verifier: w.verifier, Signer: w.signer, LinkTTL: 15 * time.Minute, Now: w.clock.Now}
	return w
}

// hook puts h around every operation of the fakes.
func (w *world) hook(h filestest.Hook) { w.records.Hook, w.store.Hook, w.signer.Hook = h, h, h }

// checkType refuses bytes that begin with BAD. For a ZIP container it looks at the end too.
func checkType(ctx context.Context, declared string, head []byte, _ int64, tail func(context.Context, int64) ([]byte, error)) (string, bool, error) {
	if declared == "application/zip" {
		if _, err := tail(ctx, files.TailBytes); err != nil {
			return "", false, err
		}
	}
	if bytes.HasPrefix(head, []byte("BAD")) {
		return "application/x-bad", false, nil
	}
	return "application/pdf", true, nil
}

var alice = files.Caller{Account: "acme", Actor: "alice", Scopes: files.Scopes}

func size(n int64) *int64 { return &n }

// draft asks for a file of the size of body, or of unknown size for nil.
func draft(body []byte, change ...func(*files.Draft)) files.Draft {
	d := files.Draft{Filename: "report.pdf", ContentType: "application/pdf"}
	if body != nil {
		d.Size = size(int64(len(body)))
	}
	for _, c := range change {
		c(&d)
	}
	return d
}

func (w *world) reserve(d files.Draft) files.File {
	w.t.Helper()
	r, err := w.uploads.Reserve(w.ctx, alice, d, nil)
	if err != nil {
		w.t.Fatalf("reserving: %v", err)
	}
	return r.File
}

func (w *world) put(id string, body []byte) {
	w.t.Helper()
	if err := w.store.Put(w.ctx, id, body); err != nil {
		w.t.Fatalf("uploading %s: %v", id, err)
	}
}

// upload makes a ready file of body.
func (w *world) upload(body []byte, change ...func(*files.Draft)) files.File {
	w.t.Helper()
	f := w.reserve(draft(body, change...))
	w.put(f.ID, body)
	f, err := w.complete.Complete(w.ctx, alice, f.ID)
	if err != nil {
		w.t.Fatalf("completing %s: %v", f.ID, err)
	}
	return f
}

func (w *world) file(id string) files.File {
	w.t.Helper()
	f, ok := w.records.Snapshot(w.t).Files[id]
	if !ok {
		w.t.Fatalf("there is no file %s", id)
	}
	return f
}

func (w *world) wantState(id string, want files.State) {
	w.t.Helper()
	if f := w.file(id); f.State != want {
		w.t.Errorf("%s is %s, want %s", id, f.State, want)
	}
}

// wantNothing: not a record, not a byte, nothing counted.
func (w *world) wantNothing() {
	w.t.Helper()
	w.check()
	s, o := w.records.Snapshot(w.t), w.store.Objects()
	if len(s.Files)+len(s.Holds)+len(o.Sealed)+len(o.Staged) > 0 {
		w.t.Errorf("something is left: %d records, %d holds, %d sealed and %d staged objects", len(s.Files), len(s.Holds), len(o.Sealed), len(o.Staged))
	}
}

// check holds everything against the rules; all must be at rest.
func (w *world) check() {
	w.t.Helper()
	s := w.records.Snapshot(w.t)
	filestest.CheckInvariants(w.t, s)
	filestest.CheckObjects(w.t, s, w.store.Objects())
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}

// as wants an error of type E and returns it.
func as[E error](t testing.TB, err error) E {
	t.Helper()
	var e E
	if !errors.As(err, &e) {
		t.Fatalf("got error %v, want a %T", err, e)
	}
	return e
}
