package adapters_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
	"claimcheck.dev/claimcheck/shared/local/s3"
	"claimcheck.dev/claimcheck/shared/objects/keys"
	"claimcheck.dev/claimcheck/shared/objects/store"
)

func testStage(t *testing.T, w *world) {
	ctx := t.Context()
	body := bytes.Repeat([]byte("0123456789abcdef"), 1024)
	f := reserve(body)
	w.upload(t, f, body)
	s, err := w.store.Open(ctx, f.ID)
	if err != nil {
		t.Fatal(err)
	}
	head, err := io.ReadAll(s.Head)
	s.Head.Close()
	if err != nil || !bytes.Equal(head, body[:files.HeadBytes]) || s.Size != int64(len(body)) {
		t.Errorf("opened with %d bytes of %d, %v", len(head), s.Size, err)
	}
	for _, n := range []int64{1, 22, int64(len(body)) - 1, int64(len(body)), int64(len(body)) + 1, files.TailBytes} {
		tail, err := w.store.Tail(ctx, f.ID, s.ETag, n)
		if want := body[max(0, int64(len(body))-n):]; err != nil || !bytes.Equal(tail, want) {
			t.Errorf("Tail(%d): %d bytes, %v; want %d", n, len(tail), err, len(want))
		}
	}
	const other = `"00000000000000000000000000000000"`
	if _, err := w.store.Tail(ctx, f.ID, other, 4); !errors.Is(err, files.ErrStagedChanged) {
		t.Errorf("Tail of another version: %v", err)
	}
	if _, err := w.store.Seal(ctx, f, other); !errors.Is(err, files.ErrStagedChanged) {
		t.Errorf("Seal of another version: %v", err)
	}
	first, err := w.store.Seal(ctx, f, s.ETag)
	if err != nil || first.SHA256 != digest(body) || !keys.IsSealed(first.Object) || strings.Contains(first.Object, `"`) {
		t.Fatalf("sealed as %+v, %v", first, err)
	}
	if again, err := w.store.Seal(ctx, f, s.ETag); err != nil || again != first {
		t.Errorf("sealed again as %+v, %v; want %+v", again, err, first)
	}
	if body := w.staged(t, f.ID); body == nil {
		t.Error("sealing took the staged object away")
	}
	for range 2 {
		if err := w.store.Discard(ctx, f.ID); err != nil {
			t.Errorf("Discard: %v", err)
		}
		if err := w.store.Remove(ctx, first.Object); err != nil {
			t.Errorf("Remove: %v", err)
		}
	}
	f.Sealed = first.Object
	if got := fetch(t, "GET", w.signLink(t, f, "GET")); got.status < 400 {
		t.Errorf("the removed copy answers %d", got.status)
	}
	w.gone(t, f, s.ETag)
}

// gone checks that nothing of f is staged.
func (w *world) gone(t *testing.T, f files.File, etag string) {
	t.Helper()
	if s, err := w.store.Open(t.Context(), f.ID); !errors.Is(err, files.ErrNotUploaded) {
		t.Errorf("Open: %d bytes, %v; want ErrNotUploaded", s.Size, err)
	}
	if _, err := w.store.Tail(t.Context(), f.ID, etag, 4); !errors.Is(err, files.ErrNotUploaded) {
		t.Errorf("Tail: %v; want ErrNotUploaded", err)
	}
	if _, err := w.store.Seal(t.Context(), f, etag); !errors.Is(err, files.ErrNotUploaded) {
		t.Errorf("Seal: %v; want ErrNotUploaded", err)
	}
}

// testMissing: nothing there is ErrNotUploaded; a lack of permission never is.
func testMissing(t *testing.T, w *world) {
	const etag = `"9b2cf535f27731c974343645a3985328"`
	f := reserve(pdf)
	w.gone(t, f, etag)

	for what, s := range map[string]*store.Store{
		"without ListBucket": store.Connect(w.environment(t, narrow, ""), bucket),
		"with unknown keys":  store.Connect(w.environment(t, "AKIANOBODY0000000000", ""), bucket),
		"another bucket":     store.Connect(w.env, "claimcheck-elsewhere"),
	} {
		_, open := s.Open(t.Context(), f.ID)
		_, tail := s.Tail(t.Context(), f.ID, etag, 4)
		_, seal := s.Seal(t.Context(), f, etag)
		for op, err := range map[string]error{"Open": open, "Tail": tail, "Seal": seal} {
			if err == nil || errors.Is(err, files.ErrNotUploaded) || errors.Is(err, files.ErrTryAgain) {
				t.Errorf("%s %s: %v", op, what, err)
			}
		}
	}

	// Only an operator can stage an empty object: the signer refuses.
	empty := reserve(nil)
	client := w.client()
	_, err := client.PutObject(t.Context(), &awss3.PutObjectInput{
		Bucket: aws.String(bucket), Key: aws.String(keys.Staging(empty.ID)), IfNoneMatch: aws.String("*"),
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.store.Open(t.Context(), empty.ID)
	if err != nil || s.Size != 0 {
		t.Fatalf("an empty object opens with size %d, %v", s.Size, err)
	}
	defer s.Head.Close()
	if head, err := io.ReadAll(s.Head); err != nil || len(head) != 0 {
		t.Errorf("the head of an empty object: %q, %v", head, err)
	}
}

func (w *world) client() *awss3.Client {
	return awss3.NewFromConfig(w.env.Config(), func(o *awss3.Options) {
		o.BaseEndpoint, o.UsePathStyle = w.env.BaseEndpoint("S3"), true
	})
}

func testInline(t *testing.T, w *world) {
	for _, body := range [][]byte{pdf, bytes.Repeat([]byte{0, 1, 2, 3}, 1<<20)} {
		f := reserve(body)
		f.ContentType = "text/plain; charset=utf-8"
		first, err := w.store.PutSealed(t.Context(), f, body)
		if err != nil || first.SHA256 != digest(body) || !keys.IsSealed(first.Object) {
			t.Fatalf("stored as %+v, %v", first, err)
		}
		if again, err := w.store.PutSealed(t.Context(), f, body); err != nil || again != first {
			t.Errorf("stored again as %+v, %v; want %+v", again, err, first)
		}
		f.Sealed = first.Object
		got := fetch(t, "GET", w.signLink(t, f, "GET"))
		if got.status != http.StatusOK || !bytes.Equal(got.body, body) || got.header.Get("Content-Type") != f.ContentType {
			t.Errorf("served %d, %d bytes as %s", got.status, len(got.body), got.header.Get("Content-Type"))
		}
		if body := w.staged(t, f.ID); body != nil {
			t.Error("an inline file was staged")
		}
	}
}

// testReading: verifying costs the same few bytes and requests however large the object is.
func testReading(t *testing.T, w *world) {
	const size = 100 << 20
	f := reserve(nil)
	f.Size = size
	signed := w.signUpload(t, f)
	stream(t, signed, "PK\x03\x04 and so on", size)

	w.engine.ResetCounters()
	s, err := w.store.Open(t.Context(), f.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(s.Head); err != nil {
		t.Fatal(err)
	}
	s.Head.Close()
	sealed, err := w.store.Seal(t.Context(), f, s.ETag)
	if err != nil || sealed.SHA256 == "" || s.Size != size {
		t.Fatalf("sealed %d bytes as %+v, %v", s.Size, sealed, err)
	}
	if err := w.store.Discard(t.Context(), f.ID); err != nil {
		t.Fatal(err)
	}
	c := w.engine.Counters()
	if c.RangedBytes > files.HeadBytes || c.ReadBytes != 0 {
		t.Errorf("%d and %d bytes were read, want %d at most", c.RangedBytes, c.ReadBytes, files.HeadBytes)
	}
	total := 0
	for _, n := range c.Requests {
		total += n
	}
	if total != 3 {
		t.Errorf("%d requests, want 3: %v", total, c.Requests)
	}

	stream(t, signed, "again ", size)
	w.engine.ResetCounters()
	if s, err = w.store.Open(t.Context(), f.ID); err != nil {
		t.Fatal(err)
	}
	s.Head.Close() // an object that is too large is not read
	if tail, err := w.store.Tail(t.Context(), f.ID, s.ETag, files.TailBytes); err != nil || len(tail) != files.TailBytes {
		t.Errorf("Tail: %d bytes, %v", len(tail), err)
	}
	if c := w.engine.Counters(); c.RangedBytes > files.HeadBytes+files.TailBytes || c.ReadBytes != 0 {
		t.Errorf("%d and %d bytes were read, want %d at most", c.RangedBytes, c.ReadBytes, files.HeadBytes+files.TailBytes)
	}
}

// stream uploads size bytes without holding them.
func stream(t *testing.T, signed files.SignedRequest, pattern repeat, size int64) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), signed.Method, signed.URL, io.LimitReader(pattern, size))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range signed.Headers {
		req.Header.Set(name, value)
	}
	req.ContentLength = size
	if got := do(t, req); got.status != http.StatusOK {
		t.Fatalf("uploading: %d %s", got.status, got.body)
	}
}

// repeat is an endless reader.
type repeat string

func (r repeat) Read(p []byte) (int, error) {
	for n := 0; n < len(p); {
		n += copy(p[n:], r)
	}
	return len(p), nil
}

// testFaults: every operation against every fault. A fault that passes is not noticed; one that stays is ErrTryAgain;
// neither leaves anything that a repeat does not settle.
func testFaults(t *testing.T, w *world) {
	operations := map[string]func(context.Context, *store.Store, files.File, string) error{
		"Open": func(ctx context.Context, st *store.Store, f files.File, _ string) error {
			s, err := st.Open(ctx, f.ID)
			if err == nil {
				s.Head.Close()
			}
			return err
		},
		"Tail": func(ctx context.Context, st *store.Store, f files.File, etag string) error {
			_, err := st.Tail(ctx, f.ID, etag, 4)
			return err
		},
		"Seal": func(ctx context.Context, st *store.Store, f files.File, etag string) error {
			sealed, err := st.Seal(ctx, f, etag)
			if err == nil && sealed.SHA256 != digest(pdf) {
				err = errors.New("another digest")
			}
			return err
		},
		"PutSealed": func(ctx context.Context, st *store.Store, f files.File, _ string) error {
			_, err := st.PutSealed(ctx, f, pdf)
			return err
		},
		"Discard": func(ctx context.Context, st *store.Store, f files.File, _ string) error { return st.Discard(ctx, f.ID) },
		"Remove": func(ctx context.Context, st *store.Store, f files.File, etag string) error {
			key, err := keys.Sealed(f.ID, etag)
			if err != nil {
				return err
			}
			return st.Remove(ctx, key)
		},
		"Purge": func(ctx context.Context, st *store.Store, f files.File, _ string) error { return st.Purge(ctx, f.ID) },
		"Exists": func(ctx context.Context, st *store.Store, f files.File, etag string) error {
			key, err := keys.Sealed(f.ID, etag)
			if err == nil {
				_, err = st.Exists(ctx, key)
			}
			return err
		},
	}
	faults := map[string]s3.FaultKind{
		"500": s3.Error500, "503": s3.Error503SlowDown, "cut": s3.CutConnection, "lost": s3.LostReply,
	}
	for op, do := range operations {
		for name, kind := range faults {
			t.Run(op+" "+name, func(t *testing.T) {
				t.Parallel()
				st := store.Connect(w.env, bucket) // the SDK grants one client only so many retries
				f := reserve(pdf)
				w.upload(t, f, pdf)
				s, err := w.store.Open(t.Context(), f.ID)
				if err != nil {
					t.Fatal(err)
				}
				s.Head.Close()

				w.fail(f.ID, kind, 1)
				if err := do(t.Context(), st, f, s.ETag); err != nil {
					t.Errorf("a fault that passes: %v", err)
				}
				if left := w.fail(f.ID, s3.None, 0); left != 0 {
					t.Fatal("no fault was injected")
				}
				if op == "Discard" || op == "Purge" {
					w.upload(t, f, pdf)
				}
				w.fail(f.ID, kind, math.MaxInt)
				if err := do(t.Context(), st, f, s.ETag); !errors.Is(err, files.ErrTryAgain) {
					t.Errorf("a fault that stays: %v, want ErrTryAgain", err)
				}
				w.fail(f.ID, s3.None, 0)
				if err := do(t.Context(), st, f, s.ETag); err != nil {
					t.Errorf("after the fault: %v", err)
				}
			})
		}
	}
}

// testConformance runs the suites that the fakes of the domain's own tests pass, too.
func testConformance(t *testing.T, w *world) {
	client := w.client()
	s := filestest.ObjectStore{
		Stage:  w.store,
		Writer: w.store,
		Put: func(t testing.TB, id string, body []byte) {
			t.Helper()
			if err := w.store.Discard(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			_, err := client.PutObject(t.Context(), &awss3.PutObjectInput{
				Bucket: aws.String(bucket), Key: aws.String(keys.Staging(id)), IfNoneMatch: aws.String("*"), Body: bytes.NewReader(body),
			})
			if err != nil {
				t.Fatal(err)
			}
		},
		Read: func(t testing.TB, object string) ([]byte, bool) {
			t.Helper()
			out, err := client.GetObject(t.Context(), &awss3.GetObjectInput{Bucket: aws.String(bucket), Key: &object})
			var missing *types.NoSuchKey
			if errors.As(err, &missing) {
				return nil, false
			}
			if err != nil {
				t.Fatal(err)
			}
			defer out.Body.Close()
			body, err := io.ReadAll(out.Body)
			if err != nil {
				t.Fatal(err)
			}
			return body, true
		},
	}
	t.Run("Stage", func(t *testing.T) { filestest.TestStage(t, s) })
	t.Run("SealedWriter", func(t *testing.T) { filestest.TestSealedWriter(t, s) })
	t.Run("Bytes", func(t *testing.T) { filestest.TestBytes(t, s, w.store) })
}
