package adapters_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/awsenv"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/local/content"
	"claimcheck.dev/claimcheck/shared/local/s3"
	"claimcheck.dev/claimcheck/shared/local/sts"
	"claimcheck.dev/claimcheck/shared/objects"
	"claimcheck.dev/claimcheck/shared/objects/keys"
	"claimcheck.dev/claimcheck/shared/objects/store"
)

const (
	region   = "eu-central-1"
	bucket   = "claimcheck-adapters"
	role     = "arn:aws:iam::000000000000:role/adapters-presign"
	function = "AKIAFUNCTION00000000" // its role may list the bucket
	narrow   = "AKIANARROW0000000000" // its role may not
	secret   = "function-secret-function-secret-functio"
)

// world is the storage side of a stack: S3, STS, the content host, and what a function would make of its environment.
type world struct {
	engine  *s3.Server
	env     awsenv.Env
	signer  *objects.Signer
	store   *store.Store
	content string // host of the content domain

	mu     sync.Mutex
	events []s3.ObjectCreated
	faults map[string]*fault // by the file id in the key
}

type fault struct {
	kind s3.FaultKind
	left int // requests that will meet it
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{faults: map[string]*fault{}}
	dir := t.TempDir()
	sessions, err := sts.OpenSessions(filepath.Join(dir, "sessions.key"), nil)
	if err != nil {
		t.Fatal(err)
	}
	secretOf := func(id, token string) (string, error) {
		if token == "" && (id == function || id == narrow) {
			return secret, nil
		}
		return "", sts.ErrUnknownKey
	}
	w.engine, err = s3.Start(context.Background(), s3.Options{
		Dir: filepath.Join(dir, "s3"), Bucket: bucket, Region: region,
		Lookup: func(id, token string) (s3.Account, error) {
			if secret, err := secretOf(id, token); err == nil {
				return s3.Account{SecretAccessKey: secret, NoList: id == narrow}, nil
			}
			session, err := sessions.Find(id, token)
			return s3.Account{SecretAccessKey: session.SecretAccessKey, Role: s3.Presign}, err
		},
		OnObjectCreated: func(e s3.ObjectCreated) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, e)
		},
		Faults: w.fault,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.engine.Close(); err != nil {
			t.Error(err)
		}
	})
	tokens := httptest.NewServer(sts.New(sts.Options{Roles: []string{role}, Sessions: sessions, Secret: secretOf}))
	t.Cleanup(tokens.Close)
	origin, err := url.Parse(w.engine.URL())
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(content.New(content.Options{Origin: origin}))
	t.Cleanup(front.Close)
	w.content = front.Listener.Addr().String()

	w.env = w.environment(t, function, tokens.URL)
	w.signer = objects.Connect(w.env, objects.Config{
		Bucket: bucket, PresignRole: role, ContentDomain: w.content, LongestURL: 15 * time.Minute,
	})
	if err := w.signer.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.store = store.Connect(w.env, bucket)
	return w
}

func (w *world) environment(t *testing.T, key, tokens string) awsenv.Env {
	t.Helper()
	env, err := awsenv.Parse([]string{
		"AWS_REGION=" + region, "AWS_ACCESS_KEY_ID=" + key, "AWS_SECRET_ACCESS_KEY=" + secret,
		"AWS_LAMBDA_FUNCTION_NAME=adapters", "AWS_ENDPOINT_URL_S3=" + w.engine.URL(), "AWS_ENDPOINT_URL_STS=" + tokens,
	})
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// fault is the plan of the engine.
func (w *world) fault(r s3.Request) s3.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, f := range w.faults {
		if f.left > 0 && strings.Contains(r.Key, id) {
			f.left--
			return s3.Fault{Kind: f.kind}
		}
	}
	return s3.Fault{}
}

// fail makes the next n requests about the objects of id fail. It returns how many of the last plan are left over.
func (w *world) fail(id string, kind s3.FaultKind, n int) (left int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last := w.faults[id]; last != nil {
		left = last.left
	}
	w.faults[id] = &fault{kind, n}
	return left
}

// stagedEvents counts the events of the staged object of id.
func (w *world) stagedEvents(id string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, e := range w.events {
		if got, ok := keys.ParseStaging(e.Key); ok && got == id {
			n++
		}
	}
	return n
}

// reserve makes the record of a reservation for body, with size and type declared.
func reserve(body []byte) files.File {
	return files.File{
		ID: files.NewID(), State: files.Reserved, Filename: "report.pdf",
		ContentType: "application/pdf", Size: int64(len(body)),
	}
}

func (w *world) signUpload(t *testing.T, f files.File) files.SignedRequest {
	t.Helper()
	signed, err := w.signer.SignUpload(t.Context(), f, time.Now(), time.Now().Add(15*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func (w *world) signLink(t *testing.T, f files.File, method string) string {
	t.Helper()
	signed, err := w.signer.SignLink(t.Context(), f, method, time.Now(), time.Now().Add(15*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return signed.URL
}

// upload sends body by a fresh signature and expects it to be stored.
func (w *world) upload(t *testing.T, f files.File, body []byte) {
	t.Helper()
	if got := send(t, w.signUpload(t, f), body); got.status != http.StatusOK {
		t.Fatalf("uploading: %d %s", got.status, got.body)
	}
}

// seal seals what is staged for f and returns f as the record would name it then.
func (w *world) seal(t *testing.T, f files.File) files.File {
	t.Helper()
	staged, err := w.store.Open(t.Context(), f.ID)
	if err != nil {
		t.Fatal(err)
	}
	staged.Head.Close()
	sealed, err := w.store.Seal(t.Context(), f, staged.ETag)
	if err != nil {
		t.Fatal(err)
	}
	f.State, f.Sealed, f.SHA256, f.Size = files.Ready, sealed.Object, sealed.SHA256, staged.Size
	return f
}

// ready uploads and seals body.
func (w *world) ready(t *testing.T, body []byte) files.File {
	t.Helper()
	f := reserve(body)
	w.upload(t, f, body)
	return w.seal(t, f)
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

// send does what a client does: exactly the request that it was given, and a body. Header values in change replace
// the given ones; "" takes one away.
func send(t *testing.T, r files.SignedRequest, body []byte, change ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), r.Method, r.URL, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range r.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Del("Content-Length") // the client library sends that of the body
	for pair := range slices.Chunk(change, 2) {
		req.Header.Set(pair[0], pair[1])
		if pair[1] == "" {
			req.Header.Del(pair[0])
		}
	}
	return do(t, req)
}

func fetch(t *testing.T, method, url string, headers ...string) answer {
	t.Helper()
	return send(t, files.SignedRequest{Method: method, URL: url}, nil, headers...)
}

func do(t *testing.T, req *http.Request) answer {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, body}
}

func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// TestObjects runs everything about bytes on one S3: a process can have no second one.
func TestObjects(t *testing.T) {
	w := newWorld(t)
	t.Run("Reading", func(t *testing.T) { testReading(t, w) }) // counts requests, so it goes alone
	for name, test := range map[string]func(*testing.T, *world){
		"Upload":       testUpload,
		"Deviations":   testDeviations,
		"Digest":       testDigest,
		"Unsized":      testUnsized,
		"Race":         testRace,
		"Replay":       testReplay,
		"Stage":        testStage,
		"Conformance":  testConformance,
		"Faults":       testFaults,
		"Missing":      testMissing,
		"Inline":       testInline,
		"Download":     testDownload,
		"Names":        testNames,
		"Expiry":       testExpiry,
		"Tampering":    testTampering,
		"OtherFiles":   testOtherFiles,
		"Sanitisation": testSanitisation,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, w)
		})
	}
}
