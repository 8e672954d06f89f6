package files_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
)

func TestLink(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.upload(pdf)
	for _, c := range []struct {
		at, session time.Duration
		ttl         *int64
		want        time.Duration
	}{
		{0, 0, nil, 15 * time.Minute},
		{0, 0, size(1), time.Second},
		{0, 0, size(900), 15 * time.Minute},
		{0, time.Minute, nil, time.Minute},
		{24*time.Hour - time.Minute, 0, nil, 24 * time.Hour},
		{24*time.Hour - time.Minute, 0, size(10), 24*time.Hour - 50*time.Second},
	} {
		w.clock.Set(filestest.Now.Add(c.at))
		w.signer.Ends = time.Time{}
		if c.session > 0 {
			w.signer.Ends = filestest.Now.Add(c.session)
		}
		link, err := w.reader.Link(w.ctx, alice, f.ID, c.ttl)
		wantErr(t, err, nil)
		if got := link.ExpiresAt.Sub(filestest.Now); got != c.want || link.URL == "" || link.File.ID != f.ID {
			t.Errorf("asked after %v it ends after %v, want %v", c.at, got, c.want)
		}
	}
	for _, ttl := range []int64{0, -1, 901, 1 << 62} {
		_, err := w.reader.Link(w.ctx, alice, f.ID, &ttl)
		if bad := as[*files.ValidationError](t, err); bad.Fields[0].Field != "ttl_seconds" {
			t.Errorf("%d seconds: %v", ttl, err)
		}
	}
}

func TestContent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.upload(pdf)
	link, err := w.reader.Content(w.ctx, alice, f.ID, "HEAD")
	wantErr(t, err, nil)
	if got := link.ExpiresAt.Sub(filestest.Now); got != files.ContentTTL {
		t.Errorf("it ends after %v", got)
	}
	w.reader.LinkTTL = time.Minute
	if link, err = w.reader.Content(w.ctx, alice, f.ID, "GET"); err != nil || link.ExpiresAt.Sub(filestest.Now) != time.Minute {
		t.Errorf("with short links it ends at %v, %v", link.ExpiresAt, err)
	}
}

var errRejected = errors.New("any *files.RejectedError")

// TestExits: every way to a file asks the same question.
func TestExits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	plain := w.upload(pdf)
	single := w.upload(pdf, func(d *files.Draft) { d.SingleUse = true })
	rejected := w.reserve(draft(nil))
	w.put(rejected.ID, bad)
	wantErr(t, w.verifier.Event(w.ctx, rejected.ID, ""), nil)
	deleted := w.upload(pdf)
	_, err := w.records.End(w.ctx, deleted, files.Ending{State: files.Deleted, At: w.clock.Now()})
	wantErr(t, err, nil)

	blind := files.Caller{Account: "acme", Actor: "alice", Scopes: []files.Scope{files.FilesWrite}}
	stranger := files.Caller{Account: "other", Actor: "alice", Scopes: files.Scopes}
	for _, c := range []struct {
		name   string
		caller files.Caller
		id     string
		want   error
	}{
		{"reader", alice, plain.ID, nil},
		{"without scope", blind, plain.ID, files.ErrForbidden},
		{"stranger", stranger, plain.ID, files.ErrFileNotFound},
		{"missing", alice, files.NewID(), files.ErrFileNotFound},
		{"malformed", alice, "f_../../secret", files.ErrFileNotFound},
		{"single use", alice, single.ID, files.ErrClaimRequired},
		{"deleted", alice, deleted.ID, files.ErrFileDeleted},
		{"deleted, to a stranger", stranger, deleted.ID, files.ErrFileNotFound},
		{"rejected", alice, rejected.ID, errRejected},
	} {
		for exit, ask := range map[string]func() error{
			"link":    func() error { _, err := w.reader.Link(w.ctx, c.caller, c.id, nil); return err },
			"content": func() error { _, err := w.reader.Content(w.ctx, c.caller, c.id, "GET"); return err },
			"resolve": func() error {
				_, err := w.reader.Resolve(w.ctx, c.caller, "claim://", []string{"claim://" + plain.ID, "claim://" + c.id})
				return err
			},
		} {
			err := ask()
			if errors.As(err, new(*files.RejectedError)) {
				err = errRejected
			}
			if !errors.Is(err, c.want) {
				t.Errorf("%s by %s: %v, want %v", c.name, exit, err, c.want)
			}
		}
	}
	w.clock.Set(plain.ExpiresAt.Add(-time.Second))
	_, err = w.reader.Link(w.ctx, alice, plain.ID, nil)
	wantErr(t, err, nil)
	w.clock.Set(plain.ExpiresAt)
	_, err = w.reader.Link(w.ctx, alice, plain.ID, nil)
	wantErr(t, err, files.ErrFileExpired)
}

func TestShow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.reserve(draft(nil))
	show := func(c files.Caller, id string) (files.File, error) {
		return files.Show(w.ctx, w.records, c, id, w.clock.Now())
	}
	got, err := show(files.Caller{Account: "acme", Actor: "bob"}, f.ID)
	if err != nil || got.ID != f.ID {
		t.Errorf("a colleague sees %+v, %v", got, err)
	}
	_, err = show(files.Caller{Account: "other", Actor: "alice"}, f.ID)
	wantErr(t, err, files.ErrFileNotFound)
	w.put(f.ID, bad)
	wantErr(t, w.verifier.Event(w.ctx, f.ID, ""), nil)
	if got, err = show(alice, f.ID); err != nil || got.Reason == nil || got.Reason.Code != files.CodeTypeMismatch {
		t.Errorf("rejected it is %+v, %v", got, err)
	}
	g := w.reserve(draft(nil))
	w.clock.Advance(limits.ReservationTTL)
	_, err = show(alice, g.ID)
	wantErr(t, err, files.ErrUploadExpired)
}

func TestResolve(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.uploads.Limits.AccountMaxLiveBytes = 1 << 20
	var handles []string
	for i := range files.MaxHandles {
		handles = append(handles, "claim://"+w.upload(fmt.Appendf(nil, "file %d", i)).ID)
	}
	links, err := w.reader.Resolve(w.ctx, alice, "claim://", handles)
	wantErr(t, err, nil)
	for i, l := range links {
		if "claim://"+l.File.ID != handles[i] || !strings.Contains(l.URL, l.File.ID) {
			t.Errorf("handle %d leads to %s", i, l.File.ID)
		}
	}
	_, err = w.reader.Resolve(w.ctx, alice, "claim://", append(handles, handles[0]))
	as[*files.ValidationError](t, err)
	missing := "claim://" + files.NewID()
	_, err = w.reader.Resolve(w.ctx, alice, "claim://", []string{handles[0], missing, "claim://nonsense"})
	wantErr(t, err, files.ErrFileNotFound)
	if h := as[*files.HandleError](t, err); h.Handle != missing {
		t.Errorf("the handle named is %s, want the first that can't be read", h.Handle)
	}
	if links, err = w.reader.Resolve(w.ctx, alice, "claim://", nil); err != nil || len(links) != 0 {
		t.Errorf("nothing resolves to %v, %v", links, err)
	}
}
