package store_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"claimcheck.dev/claimcheck/shared/awsenv"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/objects/store"
)

// What S3 answers when all is well is tried on the local engine, in shared/local/adapters. Here it misbehaves.

const (
	id     = "f_0123456789abcdefghijklmnop"
	etag   = `"9b2cf535f27731c974343645a3985328"`
	sealed = "files/" + id + "/9b2cf535f27731c974343645a3985328"
	hexSum = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
)

var b64Sum = func() string {
	b, _ := hex.DecodeString(hexSum)
	return base64.StdEncoding.EncodeToString(b)
}()

var file = files.File{ID: id, ContentType: "application/pdf", Size: 4}

// reply is one answer of S3.
type reply struct {
	status  int
	headers map[string]string
	body    string
}

func fail(status int, code string) reply {
	return reply{status: status, body: "<Error><Code>" + code + "</Code><Message>told</Message></Error>"}
}

func copied(result string) reply {
	return reply{status: 200, body: "<CopyObjectResult><ETag>&quot;e&quot;</ETag>" + result + "</CopyObjectResult>"}
}

func checksum(c string) string { return "<ChecksumSHA256>" + c + "</ChecksumSHA256>" }

// scripted is an S3 that gives the replies of each method and path in turn, the last of them for ever.
type scripted struct {
	mu      sync.Mutex
	replies map[string][]reply
	calls   []string
	last    *http.Request
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	what := r.Method + " " + strings.TrimPrefix(r.URL.Path, "/bucket/")
	s.calls = append(s.calls, what)
	s.last = r
	queue := s.replies[what]
	if len(queue) == 0 {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	if len(queue) > 1 {
		s.replies[what] = queue[1:]
	}
	for k, v := range queue[0].headers {
		w.Header().Set(k, v)
	}
	w.WriteHeader(queue[0].status)
	io.WriteString(w, queue[0].body)
}

func connect(t *testing.T, replies map[string][]reply) (*store.Store, *scripted) {
	t.Helper()
	s := &scripted{replies: replies}
	return connectTo(t, s), s
}

func connectTo(t *testing.T, s3 http.Handler) *store.Store {
	t.Helper()
	srv := httptest.NewServer(s3)
	t.Cleanup(srv.Close)
	env, err := awsenv.Parse([]string{
		"AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=topsecret", "AWS_SESSION_TOKEN=toptoken",
		"AWS_ENDPOINT_URL_S3=" + srv.URL,
	})
	if err != nil {
		t.Fatal(err)
	}
	return store.Connect(env, "bucket")
}

// TestRefusals runs every operation against every refusal.
func TestRefusals(t *testing.T) {
	t.Parallel()
	operations := []struct {
		name string
		call string // the first request it makes
		do   func(context.Context, *store.Store) error
		// what it makes of a missing object and of a condition that doesn't hold; nil is success
		missing, changed error
	}{
		{"Open", "GET staging/" + id, func(ctx context.Context, s *store.Store) error {
			_, err := s.Open(ctx, id)
			return err
		}, files.ErrNotUploaded, errUnexplained},
		{"Tail", "GET staging/" + id, func(ctx context.Context, s *store.Store) error {
			_, err := s.Tail(ctx, id, etag, 8)
			return err
		}, files.ErrNotUploaded, files.ErrStagedChanged},
		{"Seal", "PUT " + sealed, func(ctx context.Context, s *store.Store) error {
			_, err := s.Seal(ctx, file, etag)
			return err
		}, files.ErrNotUploaded, files.ErrStagedChanged},
		{"Discard", "DELETE staging/" + id, func(ctx context.Context, s *store.Store) error { return s.Discard(ctx, id) }, nil, errUnexplained},
		{"Remove", "DELETE " + sealed, func(ctx context.Context, s *store.Store) error { return s.Remove(ctx, sealed) }, nil, errUnexplained},
		{"PutSealed", "PUT files/" + id + "/" + hexSum, func(ctx context.Context, s *store.Store) error {
			_, err := s.PutSealed(ctx, file, []byte("test"))
			return err
		}, errUnexplained, nil},
	}
	for _, op := range operations {
		for _, tt := range []struct {
			reply reply
			want  error
			calls int
		}{
			{fail(404, "NoSuchKey"), op.missing, 1},
			{fail(404, "NoSuchBucket"), errUnexplained, 1},
			{fail(412, "PreconditionFailed"), op.changed, 1},
			{fail(403, "AccessDenied"), errUnexplained, 1},
			{fail(403, "SignatureDoesNotMatch"), errUnexplained, 1},
			{fail(400, "InvalidRequest"), errUnexplained, 1},
			{fail(503, "SlowDown"), files.ErrTryAgain, 3},
			{fail(500, "InternalError"), files.ErrTryAgain, 3},
			{fail(409, "ConditionalRequestConflict"), files.ErrTryAgain, 3},
		} {
			t.Run(fmt.Sprint(op.name, tt.reply.status, tt.reply.body), func(t *testing.T) {
				t.Parallel()
				s, s3 := connect(t, map[string][]reply{op.call: {tt.reply}, "HEAD " + sealed: {fail(404, "NotFound")}})
				err := op.do(t.Context(), s)
				calls := len(slices.DeleteFunc(s3.calls, func(c string) bool { return c != op.call }))
				if calls != tt.calls {
					t.Errorf("%d requests, want %d", calls, tt.calls)
				}
				checkError(t, err, tt.want)
			})
		}
	}
}

// errUnexplained stands for an error that is none of the domain's: somebody must look at it.
var errUnexplained = errors.New("any other error")

func checkError(t *testing.T, err, want error) {
	t.Helper()
	if want != errUnexplained {
		if !errors.Is(err, want) {
			t.Errorf("error %v, want %v", err, want)
		}
	} else if err == nil {
		t.Error("no error")
	}
	for _, sentinel := range []error{files.ErrNotUploaded, files.ErrStagedChanged, files.ErrTryAgain} {
		if sentinel != want && errors.Is(err, sentinel) {
			t.Errorf("error %v must not be %v", err, sentinel)
		}
	}
	if err == nil {
		return
	}
	for _, secret := range []string{"topsecret", "toptoken", "Signature="} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%q leaks into %q", secret, err)
		}
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	s, _ := connect(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	_, err := s.Open(ctx, id)
	checkError(t, err, files.ErrTryAgain)
	checkError(t, s.Discard(ctx, id), files.ErrTryAgain)
}

func TestOpenWithoutSize(t *testing.T) {
	t.Parallel()
	for _, r := range []string{"bytes 0-3/*", "bytes 0-3", "bytes 0-3/-1", "bytes 0-3/x"} {
		s, _ := connect(t, map[string][]reply{"GET staging/" + id: {{206, map[string]string{"Content-Range": r, "ETag": etag}, "test"}}})
		if staged, err := s.Open(t.Context(), id); err == nil {
			t.Errorf("%s: size %d", r, staged.Size)
		}
	}
}

func TestOpenEmpty(t *testing.T) {
	t.Parallel()
	for _, r := range []reply{fail(416, "InvalidRange"), {200, map[string]string{"ETag": etag}, ""}} {
		s, _ := connect(t, map[string][]reply{"GET staging/" + id: {r}})
		staged, err := s.Open(t.Context(), id)
		if err != nil || staged.Size != 0 {
			t.Fatalf("%d: size %d, %v", r.status, staged.Size, err)
		}
		if head, err := io.ReadAll(staged.Head); len(head) != 0 || err != nil {
			t.Errorf("%d: head %q, %v", r.status, head, err)
		}
		staged.Head.Close()
	}
}

func TestSealTrustsNoOtherDigest(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]reply{
		"none":           copied(""),
		"composite":      copied(checksum(b64Sum) + "<ChecksumType>COMPOSITE</ChecksumType>"),
		"composite form": copied(checksum(b64Sum + "-3")),
		"short":          copied(checksum("dGVzdA==")),
		"hex":            copied(checksum(hexSum)),
		"no result":      {status: 200},
	} {
		s, _ := connect(t, map[string][]reply{"PUT " + sealed: {r}})
		got, err := s.Seal(t.Context(), file, etag)
		if err == nil {
			t.Errorf("%s: %v", name, got)
		}
		checkError(t, err, errUnexplained)
	}
	s, s3 := connect(t, map[string][]reply{"PUT " + sealed: {copied(checksum(b64Sum) + "<ChecksumType>FULL_OBJECT</ChecksumType>")}})
	got, err := s.Seal(t.Context(), file, etag)
	if err != nil || got != (files.Sealed{Object: sealed, SHA256: hexSum}) {
		t.Errorf("%v, %v", got, err)
	}
	for name, want := range map[string]string{
		"X-Amz-Copy-Source":          "bucket/staging/" + id,
		"X-Amz-Copy-Source-If-Match": etag,
		"If-None-Match":              "*",
		"X-Amz-Metadata-Directive":   "REPLACE",
		"X-Amz-Checksum-Algorithm":   "SHA256",
		"Content-Type":               "application/pdf",
		"Cache-Control":              "private, no-store",
	} {
		if got := s3.last.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestSealNeverReplaces: a copy of the same ETag is there already, from another verifier or from an attempt whose
// answer was lost. It is described, not made again; its digest is that of the bytes there.
func TestSealNeverReplaces(t *testing.T) {
	t.Parallel()
	existing := reply{status: 200, headers: map[string]string{"X-Amz-Checksum-Sha256": b64Sum, "X-Amz-Checksum-Type": "FULL_OBJECT"}}
	refused := fail(412, "PreconditionFailed")
	tests := []struct {
		name   string
		copies []reply
		head   reply
		want   error
	}{
		{"an earlier copy", []reply{refused}, existing, nil},
		{"a lost answer", []reply{fail(500, "InternalError"), refused}, existing, nil},
		{"a copy at the same time", []reply{fail(409, "ConditionalRequestConflict"), refused}, existing, nil},
		{"an error after the status", []reply{{status: 200, body: fail(0, "InternalError").body}, copied(checksum(b64Sum))}, reply{}, nil},
		{"no copy", []reply{refused}, fail(404, "NotFound"), files.ErrStagedChanged},
		{"no permission to look", []reply{refused}, fail(403, "Forbidden"), errUnexplained},
		{"looking fails", []reply{refused}, fail(503, "SlowDown"), files.ErrTryAgain},
		{"a copy without digest", []reply{refused}, reply{status: 200}, errUnexplained},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, _ := connect(t, map[string][]reply{"PUT " + sealed: tt.copies, "HEAD " + sealed: {tt.head}})
			got, err := s.Seal(t.Context(), file, etag)
			if tt.want == nil && (err != nil || got != (files.Sealed{Object: sealed, SHA256: hexSum})) {
				t.Errorf("%v, %v", got, err)
			}
			checkError(t, err, tt.want)
		})
	}
}

func TestForeignNames(t *testing.T) {
	t.Parallel()
	s, s3 := connect(t, nil)
	for _, object := range []string{"", "staging", "staging/", "files/", "logs/files/x", "/files/" + id} {
		if err := s.Remove(t.Context(), object); err == nil {
			t.Errorf("%q was removed", object)
		}
	}
	for _, tag := range []string{"", `""`, `W/"x"`, "a/b", "a b"} {
		if _, err := s.Seal(t.Context(), file, tag); err == nil {
			t.Errorf("the ETag %q was sealed", tag)
		}
	}
	if len(s3.calls) != 0 {
		t.Errorf("S3 was asked: %v", s3.calls)
	}
}
