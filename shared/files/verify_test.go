package files_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
)

func sha(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// TestVerify: what becomes of an upload.
func TestVerify(t *testing.T) {
	t.Parallel()
	digest := sha256.Sum256(pdf)
	for _, c := range []struct {
		name   string
		draft  files.Draft
		body   []byte
		reason string // "" for ready
	}{
		{"as declared", draft(pdf), pdf, ""},
		{"one byte less", draft(pdf), pdf[1:], files.CodeSizeMismatch},
		{"one byte more", draft(pdf), append([]byte("x"), pdf...), files.CodeSizeMismatch},
		{"one byte of unknown size", draft(nil), []byte("x"), ""},
		{"the largest of unknown size", draft(nil), make([]byte, 1000), ""},
		{"too large of unknown size", draft(nil), make([]byte, 1001), files.CodeFileTooLarge},
		{"empty of unknown size", draft(nil), nil, files.CodeSizeMismatch},
		{"empty", draft(pdf), nil, files.CodeSizeMismatch},
		{"right digest", draft(pdf, func(d *files.Draft) { d.SHA256 = base64.StdEncoding.EncodeToString(digest[:]) }), pdf, ""},
		{"wrong digest", draft(pdf, func(d *files.Draft) { d.SHA256 = sha(other) }), pdf, files.CodeChecksumMismatch},
		{"wrong type", draft(bad), bad, files.CodeTypeMismatch},
		{"container", draft(pdf, func(d *files.Draft) { d.ContentType = "application/zip" }), pdf, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			f := w.reserve(c.draft)
			_, err := w.complete.Complete(w.ctx, alice, f.ID)
			wantErr(t, err, files.ErrNotUploaded)
			w.put(f.ID, c.body)
			w.clock.Advance(10 * time.Second)
			for range 2 { // the same answer each time
				got, err := w.complete.Complete(w.ctx, alice, f.ID)
				if c.reason != "" {
					failed := as[*files.FailedVerificationError](t, err)
					if failed.Reason.Code != c.reason || failed.Reason.Detail == "" || failed.MaxFileBytes != 1000 {
						t.Errorf("it failed for %+v", failed)
					}
				} else if err != nil || got.State != files.Ready || got.Size != int64(len(c.body)) || got.SHA256 != sha(c.body) ||
					got.DetectedType != "application/pdf" || !got.VerifiedAt.Equal(filestest.Now.Add(10*time.Second)) {
					t.Errorf("got %+v, %v", got, err)
				}
				w.check()
				w.clock.Advance(time.Minute)
			}
			if c.reason != "" {
				w.wantState(f.ID, files.Rejected)
				if o := w.store.Objects(); len(o.Staged)+len(o.Sealed) > 0 {
					t.Error("the rejected bytes are still there")
				}
			}
		})
	}
}

// TestBytesRead: verification reads the first 4 KiB and, of containers, one range at the end, whatever the size; of what
// is too large it reads nothing.
func TestBytesRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		size       int
		kind       string
		head, tail int64
	}{
		{"small", 100, "application/pdf", 100, 0},
		{"large", 1 << 20, "application/pdf", files.HeadBytes, 0},
		{"small container", 100, "application/zip", 100, 100},
		{"large container", 1 << 20, "application/zip", files.HeadBytes, files.TailBytes},
		{"too large", 1<<20 + 1, "application/pdf", 0, 0},
		{"too large container", 1<<20 + 1, "application/zip", 0, 0},
	} {
		w := newWorld(t)
		w.uploads.Limits.MaxFileBytes, w.uploads.Limits.AccountMaxLiveBytes = 1<<20, 1<<30
		w.verifier.MaxFileBytes = 1 << 20
		f := w.reserve(draft(nil, func(d *files.Draft) { d.ContentType = c.kind }))
		w.put(f.ID, make([]byte, c.size))
		wantErr(t, w.verifier.Event(w.ctx, f.ID, ""), nil)
		if head, tail := w.store.BytesRead(); head != c.head || tail != c.tail {
			t.Errorf("%s: %d bytes of the head and %d of the tail were read, want %d and %d", c.name, head, tail, c.head, c.tail)
		}
		w.check()
	}
}

// TestUploadTimes: bytes that were there by upload_by count, whenever they are verified; later ones don't.
func TestUploadTimes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		put, verify time.Duration // after the reservation
		want        files.State
		err         error
	}{
		{"a second before", time.Hour - time.Second, time.Hour - time.Second, files.Ready, nil},
		{"a second before, verified late", time.Hour - time.Second, 5 * time.Hour, files.Ready, nil},
		{"in the last second", time.Hour, time.Hour, files.Ready, nil},
		{"a second after", time.Hour + time.Second, time.Hour + time.Second, files.Expired, files.ErrUploadExpired},
		{"verified a second before the file ends", time.Minute, 24*time.Hour - time.Second, files.Ready, nil},
		{"verified when the file ends", time.Minute, 24 * time.Hour, files.Expired, files.ErrUploadExpired},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			f := w.reserve(draft(pdf))
			w.clock.Set(filestest.Now.Add(c.put))
			w.put(f.ID, pdf)
			w.clock.Set(filestest.Now.Add(c.verify))
			_, err := w.complete.Complete(w.ctx, alice, f.ID)
			wantErr(t, err, c.err)
			w.wantState(f.ID, c.want)
			wantErr(t, w.verifier.Event(w.ctx, f.ID, ""), nil)
			w.check()
		})
	}
}

func TestNeverUploaded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.reserve(draft(pdf))
	for _, c := range []struct {
		at   time.Duration
		want error
	}{
		{limits.ReservationTTL - time.Second, files.ErrNotUploaded},
		{limits.ReservationTTL, files.ErrUploadExpired},
		{limits.FileTTL, files.ErrUploadExpired},
	} {
		w.clock.Set(filestest.Now.Add(c.at))
		_, err := w.complete.Complete(w.ctx, alice, f.ID)
		wantErr(t, err, c.want)
		wantErr(t, w.verifier.Event(w.ctx, f.ID, ""), nil) // an event without an object
	}
	wantErr(t, w.records.Release(w.ctx, "acme", f.ID, w.clock.Now()), nil)
	_, err := w.complete.Complete(w.ctx, alice, f.ID)
	wantErr(t, err, files.ErrUploadExpired)
}

// TestOnDemand: an upload whose event never comes is verified by whoever asks for the file.
func TestOnDemand(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(w *world, id string) error{
		"complete": func(w *world, id string) error { _, err := w.complete.Complete(w.ctx, alice, id); return err },
		"link":     func(w *world, id string) error { _, err := w.reader.Link(w.ctx, alice, id, nil); return err },
		"content":  func(w *world, id string) error { _, err := w.reader.Content(w.ctx, alice, id, "HEAD"); return err },
		"resolve": func(w *world, id string) error {
			_, err := w.reader.Resolve(w.ctx, alice, "claim://", []string{"claim://" + id})
			return err
		},
	} {
		w := newWorld(t)
		f := w.reserve(draft(pdf))
		wantErr(t, ask(w, f.ID), files.ErrNotUploaded)
		w.put(f.ID, pdf)
		if err := ask(w, f.ID); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		w.wantState(f.ID, files.Ready)
		w.check()
	}
}

func TestWhoMayComplete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.reserve(draft(pdf))
	w.put(f.ID, pdf)
	for _, c := range []struct {
		caller files.Caller
		id     string
	}{
		{files.Caller{Account: "acme", Actor: "bob", Scopes: files.Scopes}, f.ID},
		{files.Caller{Account: "other", Actor: "alice", Scopes: files.Scopes}, f.ID},
		{alice, files.NewID()},
		{alice, "not an id"},
	} {
		_, err := w.complete.Complete(w.ctx, c.caller, c.id)
		wantErr(t, err, files.ErrFileNotFound)
	}
	w.wantState(f.ID, files.Reserved)
}

func TestCompleteAfterTheEnd(t *testing.T) {
	t.Parallel()
	for end, want := range map[files.State]error{
		files.Spent: files.ErrFileSpent, files.Deleted: files.ErrFileDeleted, files.Expired: files.ErrFileExpired,
	} {
		w := newWorld(t)
		f := w.upload(pdf)
		_, err := w.records.End(w.ctx, f, files.Ending{State: end, At: w.clock.Now()})
		wantErr(t, err, nil)
		_, err = w.complete.Complete(w.ctx, alice, f.ID)
		wantErr(t, err, want)
	}
}

// restless is a stage whose object is another one each time it is looked at.
type restless struct{ *filestest.Store }

func (restless) Seal(context.Context, files.File, string) (files.Sealed, error) {
	return files.Sealed{}, files.ErrStagedChanged
}

func TestRestlessStage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.reserve(draft(pdf))
	w.put(f.ID, pdf)
	w.verifier.Stage = restless{w.store}
	wantErr(t, w.verifier.Event(w.ctx, f.ID, ""), files.ErrTryAgain)
	w.wantState(f.ID, files.Reserved)
}

// vanishing loses its object between the head and the tail.
type vanishing struct{ *filestest.Store }

func (s vanishing) Tail(ctx context.Context, id, etag string, n int64) ([]byte, error) {
	if err := s.Store.Discard(ctx, id); err != nil {
		return nil, err
	}
	return s.Store.Tail(ctx, id, etag, n)
}

func TestVanishingStage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.reserve(draft(pdf, func(d *files.Draft) { d.ContentType = "application/zip" }))
	w.put(f.ID, pdf)
	w.verifier.Stage = vanishing{w.store}
	_, err := w.complete.Complete(w.ctx, alice, f.ID)
	wantErr(t, err, files.ErrNotUploaded)
	w.wantState(f.ID, files.Reserved)
}

// TestBrokenHead: a connection that breaks while the head is read rejects nothing.
func TestBrokenHead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.reserve(draft(pdf))
	w.put(f.ID, pdf)
	w.verifier.Stage = broken{w.store}
	err := w.verifier.Event(w.ctx, f.ID, "")
	wantErr(t, err, files.ErrTryAgain)
	wantErr(t, err, io.ErrUnexpectedEOF)
	w.wantState(f.ID, files.Reserved)
}

type broken struct{ *filestest.Store }

func (s broken) Open(ctx context.Context, id string) (files.Staged, error) {
	staged, err := s.Store.Open(ctx, id)
	staged.Head = brokenHead{}
	return staged, err
}

type brokenHead struct{}

func (brokenHead) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
func (brokenHead) Close() error             { return nil }

// TestHeadIsClosed: whatever the outcome, the connection is given back.
func TestHeadIsClosed(t *testing.T) {
	t.Parallel()
	for _, body := range [][]byte{pdf, bad, make([]byte, 1001), nil} {
		w := newWorld(t)
		f := w.reserve(draft(nil))
		w.put(f.ID, body)
		s := &closing{Store: w.store}
		w.verifier.Stage = s
		wantErr(t, w.verifier.Event(w.ctx, f.ID, ""), nil)
		if s.opened != 1 || s.closed != 1 {
			t.Errorf("%d bytes: opened %d and closed %d times", len(body), s.opened, s.closed)
		}
	}
}

type closing struct {
	*filestest.Store
	opened, closed int
}

func (s *closing) Open(ctx context.Context, id string) (files.Staged, error) {
	staged, err := s.Store.Open(ctx, id)
	if err != nil {
		return staged, err
	}
	s.opened++
	staged.Head = &closingHead{staged.Head, s}
	return staged, nil
}

type closingHead struct {
	io.ReadCloser
	s *closing
}

func (h *closingHead) Close() error {
	h.s.closed++
	return h.ReadCloser.Close()
}

// TestUnknownErrors: an error that nobody knows goes up as it is, and nothing is rejected for it.
func TestUnknownErrors(t *testing.T) {
	t.Parallel()
	strange := errors.New("strange")
	for _, op := range []string{"File", "Open", "Head", "Seal", "MarkReady", "Discard"} {
		w := newWorld(t)
		f := w.reserve(draft(pdf))
		w.put(f.ID, pdf)
		w.hook(func(_ context.Context, o string, when filestest.When) error {
			if o == op && when == filestest.Before {
				return strange
			}
			return nil
		})
		wantErr(t, w.verifier.Event(w.ctx, f.ID, ""), strange)
		if s := w.file(f.ID).State; s == files.Rejected || op != "Discard" && s != files.Reserved {
			t.Errorf("after an error of %s it is %s", op, s)
		}
	}
}
