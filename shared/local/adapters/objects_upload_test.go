package adapters_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/objects/keys"
)

var pdf = []byte("%PDF-1.7\n1 0 obj<<>>endobj\n")

// staged returns what lies in staging for id, or nil.
func (w *world) staged(t *testing.T, id string) []byte {
	t.Helper()
	s, err := w.store.Open(t.Context(), id)
	if errors.Is(err, files.ErrNotUploaded) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Head.Close()
	head, err := io.ReadAll(s.Head)
	if err != nil {
		t.Fatal(err)
	}
	return head
}

func testUpload(t *testing.T, w *world) {
	for _, contentType := range []string{"application/pdf", "application/octet-stream", "text/plain", "text/plain; charset=utf-8", "text/plain;  charset=\"utf-8\""} {
		f := reserve(pdf)
		f.ContentType = contentType
		before := time.Now().Truncate(time.Second)
		w.upload(t, f, pdf)
		if n := w.stagedEvents(f.ID); n != 1 {
			t.Errorf("%s: %d events, want 1", contentType, n)
		}
		s, err := w.store.Open(t.Context(), f.ID)
		if err != nil {
			t.Fatal(err)
		}
		head, err := io.ReadAll(s.Head)
		s.Head.Close()
		if err != nil || !bytes.Equal(head, pdf) || s.Size != int64(len(pdf)) || s.ETag == "" {
			t.Errorf("%s: opened %d bytes of %d, ETag %s, %v", contentType, len(head), s.Size, s.ETag, err)
		}
		if s.Modified.Before(before) || s.Modified.After(time.Now()) {
			t.Errorf("%s: modified at %v", contentType, s.Modified)
		}
		f = w.seal(t, f)
		got := fetch(t, "GET", w.signLink(t, f, "GET"))
		if got.status != http.StatusOK || got.header.Get("Content-Type") != contentType || !bytes.Equal(got.body, pdf) {
			t.Errorf("%s: served %d as %q", contentType, got.status, got.header.Get("Content-Type"))
		}
	}
}

// testDeviations: S3 refuses whatever differs from the reservation, stores nothing, and the reservation still works.
func testDeviations(t *testing.T, w *world) {
	f := reserve(pdf)
	f.SHA256 = digest(pdf)
	signed := w.signUpload(t, f)
	tests := []struct {
		name   string
		body   []byte
		change []string
	}{
		{"no type", pdf, []string{"Content-Type", ""}},
		{"another type", pdf, []string{"Content-Type", "text/html"}},
		{"a parameter", pdf, []string{"Content-Type", "application/pdf; charset=utf-8"}},
		{"a byte more", append(bytes.Clone(pdf), 'x'), nil},
		{"a byte less", pdf[1:], nil},
		{"empty", nil, nil},
		{"no condition", pdf, []string{"If-None-Match", ""}},
		{"another condition", pdf, []string{"If-None-Match", `"x"`}},
		{"no digest", pdf, []string{"X-Amz-Checksum-Sha256", ""}},
		{"another digest", pdf, []string{"X-Amz-Checksum-Sha256", "n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg="}},
		{"metadata", pdf, []string{"X-Amz-Meta-Note", "smuggled"}},
		{"an ACL", pdf, []string{"X-Amz-Acl", "public-read"}},
		{"tags", pdf, []string{"X-Amz-Tagging", "a=b"}},
		{"a redirect", pdf, []string{"X-Amz-Website-Redirect-Location", "https://example.com"}},
	}
	for _, tt := range tests {
		if got := send(t, signed, tt.body, tt.change...); got.status != http.StatusForbidden {
			t.Errorf("%s: %d, want 403", tt.name, got.status)
		}
	}
	if got := send(t, signed, pdf, "Authorization", "Bearer ck_x_y"); got.status != http.StatusBadRequest {
		t.Errorf("a key beside the signature: %d, want 400", got.status)
	}
	for _, method := range []string{"GET", "HEAD", "DELETE", "POST"} {
		other := signed
		other.Method = method
		if got := send(t, other, nil); got.status < 400 {
			t.Errorf("%s: %d", method, got.status)
		}
	}
	if body := w.staged(t, f.ID); body != nil || w.stagedEvents(f.ID) != 0 {
		t.Errorf("%q is stored, %d events", body, w.stagedEvents(f.ID))
	}
	if got := send(t, signed, pdf); got.status != http.StatusOK {
		t.Errorf("the upload itself: %d %s", got.status, got.body)
	}
	if got := send(t, signed, pdf); got.status != http.StatusPreconditionFailed {
		t.Errorf("a second upload: %d, want 412", got.status)
	}
	if n := w.stagedEvents(f.ID); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
}

// testDigest: the right length with the wrong bytes is refused by S3 when a digest was declared.
func testDigest(t *testing.T, w *world) {
	f := reserve(pdf)
	f.SHA256 = digest(pdf)
	signed := w.signUpload(t, f)
	wrong := bytes.ToUpper(pdf)
	if got := send(t, signed, wrong); got.status != http.StatusBadRequest {
		t.Errorf("wrong bytes: %d, want 400", got.status)
	}
	if body := w.staged(t, f.ID); body != nil || w.stagedEvents(f.ID) != 0 {
		t.Errorf("%q is stored, %d events", body, w.stagedEvents(f.ID))
	}
	if got := send(t, signed, pdf); got.status != http.StatusOK {
		t.Errorf("right bytes: %d %s", got.status, got.body)
	}
	if f = w.seal(t, f); f.SHA256 != digest(pdf) {
		t.Errorf("sealed as %s, want %s", f.SHA256, digest(pdf))
	}
}

// testUnsized: without a declared size any length passes; what is too long is for verification to refuse.
func testUnsized(t *testing.T, w *world) {
	for _, size := range []int{1, 4095, 4096, 4097, 1 << 20} {
		body := bytes.Repeat([]byte{'z'}, size)
		f := reserve(body)
		f.Size = files.SizeUnknown
		signed := w.signUpload(t, f)
		if _, ok := signed.Headers["Content-Length"]; ok {
			t.Fatal("a length was signed that nobody declared")
		}
		if got := send(t, signed, body); got.status != http.StatusOK {
			t.Errorf("%d bytes: %d %s", size, got.status, got.body)
		}
		s, err := w.store.Open(t.Context(), f.ID)
		if err != nil {
			t.Fatal(err)
		}
		head, err := io.ReadAll(s.Head)
		s.Head.Close()
		if err != nil || s.Size != int64(size) || len(head) != min(size, files.HeadBytes) {
			t.Errorf("%d bytes: opened with size %d and a head of %d, %v", size, s.Size, len(head), err)
		}
	}
}

// testRace: of many different uploads at once one wins, and every later read gives exactly its bytes.
func testRace(t *testing.T, w *world) {
	const parallel = 50
	f := reserve(make([]byte, 1024))
	signed := w.signUpload(t, f)
	var wg sync.WaitGroup
	statuses := make([]int, parallel)
	body := func(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%03d ", i), 256) }
	for i := range parallel {
		wg.Go(func() { statuses[i] = send(t, signed, body(i)).status })
	}
	wg.Wait()
	winner := -1
	for i, status := range statuses {
		switch status {
		case http.StatusOK:
			if winner >= 0 {
				t.Errorf("both %d and %d were stored", winner, i)
			}
			winner = i
		case http.StatusPreconditionFailed, http.StatusConflict:
		default:
			t.Errorf("upload %d: %d", i, status)
		}
	}
	if winner < 0 {
		t.Fatal("nothing was stored")
	}
	f = w.seal(t, f)
	if f.SHA256 != digest(body(winner)) {
		t.Errorf("the digest is not that of upload %d", winner)
	}
	if got := fetch(t, "GET", w.signLink(t, f, "GET")); !bytes.Equal(got.body, body(winner)) {
		t.Errorf("served %d bytes other than those of upload %d", len(got.body), winner)
	}
}

// testReplay: a presigned PUT works again once the staged object is gone. It never reaches sealed bytes.
func testReplay(t *testing.T, w *world) {
	f := reserve(pdf)
	signed := w.signUpload(t, f)
	w.upload(t, f, pdf)
	first, err := w.store.Open(t.Context(), f.ID)
	if err != nil {
		t.Fatal(err)
	}
	first.Head.Close()
	sealed := w.seal(t, f)
	if err := w.store.Discard(t.Context(), f.ID); err != nil {
		t.Fatal(err)
	}
	if got := send(t, signed, bytes.ToUpper(pdf)); got.status != http.StatusOK {
		t.Fatalf("the replay: %d %s; the case needs it to succeed", got.status, got.body)
	}

	// A verifier that opened the first version and is late.
	if _, err := w.store.Tail(t.Context(), f.ID, first.ETag, 4); !errors.Is(err, files.ErrStagedChanged) {
		t.Errorf("Tail of the first version: %v, want ErrStagedChanged", err)
	}
	again, err := w.store.Seal(t.Context(), f, first.ETag)
	if err != nil || again.Object != sealed.Sealed || again.SHA256 != digest(pdf) {
		t.Errorf("Seal of the first version: %+v, %v; want the copy that exists", again, err)
	}
	if err := w.store.Remove(t.Context(), sealed.Sealed); err != nil {
		t.Fatal(err)
	}
	if got, err := w.store.Seal(t.Context(), f, first.ETag); !errors.Is(err, files.ErrStagedChanged) {
		t.Errorf("Seal of the first version without a copy: %+v, %v; want ErrStagedChanged", got, err)
	}

	// A verifier of the replay has a key of its own.
	second := w.seal(t, f)
	if second.Sealed == sealed.Sealed || second.SHA256 != digest(bytes.ToUpper(pdf)) {
		t.Errorf("the replay was sealed as %s with %s", second.Sealed, second.SHA256)
	}
}

// testSanitisation: what a client sends along unsigned does not survive sealing.
func testSanitisation(t *testing.T, w *world) {
	f := reserve(pdf)
	got := send(t, w.signUpload(t, f), pdf,
		"Content-Encoding", "gzip", "Cache-Control", "public, max-age=31536000", "Content-Disposition", "inline",
		"Content-Language", "de", "Expires", "Wed, 21 Oct 2099 07:28:00 GMT")
	if got.status != http.StatusOK {
		t.Fatalf("%d %s; the case needs it to succeed", got.status, got.body)
	}
	f = w.seal(t, f)
	got = fetch(t, "GET", w.signLink(t, f, "GET"), "Accept-Encoding", "gzip")
	if got.status != http.StatusOK || !bytes.Equal(got.body, pdf) {
		t.Fatalf("served %d %q", got.status, got.body)
	}
	for _, name := range []string{"Content-Encoding", "Content-Language", "Expires"} {
		if v := got.header.Get(name); v != "" {
			t.Errorf("%s: %s", name, v)
		}
	}
	if v := got.header.Get("Cache-Control"); v != keys.CacheControl {
		t.Errorf("Cache-Control: %s", v)
	}
	if v := got.header.Get("Content-Disposition"); !strings.HasPrefix(v, "attachment") {
		t.Errorf("Content-Disposition: %s", v)
	}
}
