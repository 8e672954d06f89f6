package content_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"claimcheck.dev/claimcheck/shared/local/content"
	"claimcheck.dev/claimcheck/shared/local/s3"
)

var policy = map[string]string{
	"X-Content-Type-Options":  "nosniff",
	"Content-Security-Policy": "default-src 'none'; sandbox",
}

func serve(t *testing.T, origin string) *httptest.Server {
	t.Helper()
	u, err := url.Parse(origin)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(content.New(content.Options{Origin: u, Headers: policy}))
	t.Cleanup(server.Close)
	return server
}

// recorder is an origin that keeps the last request.
type recorder struct {
	*httptest.Server
	last *http.Request
}

func record(t *testing.T, answer http.HandlerFunc) *recorder {
	t.Helper()
	r := &recorder{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.last = request
		answer(w, request)
	}))
	t.Cleanup(r.Close)
	return r
}

func do(t *testing.T, method, target string, header http.Header) (*http.Response, []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(request.Header, header)
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, body
}

func wantPolicy(t *testing.T, h http.Header) {
	t.Helper()
	for name, value := range policy {
		if got := h.Values(name); len(got) != 1 || got[0] != value {
			t.Errorf("%s: %q, want %q once", name, got, value)
		}
	}
}

func TestRequestIsPassedOn(t *testing.T) {
	t.Parallel()
	origin := record(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	host := serve(t, origin.URL)
	do(t, http.MethodGet, host.URL+"/b/k", http.Header{
		"Authorization": {"Bearer ck_key_secret"}, "Cookie": {"session=1"}, "Range": {"bytes=0-3"}, "If-Range": {`"e"`},
		"If-None-Match": {`"n"`}, "If-Match": {`"m"`}, "If-Modified-Since": {"Thu, 01 Jan 2026 00:00:00 GMT"}, "Accept-Encoding": {"br"},
		"Connection": {"X-Hop"}, "X-Hop": {"1"},
	})
	got := origin.last
	if got.Host != strings.TrimPrefix(origin.URL, "http://") {
		t.Errorf("the origin got the host %s, want its own", got.Host)
	}
	for name, want := range map[string]string{
		"Authorization": "", "Cookie": "", "X-Hop": "",
		"Range": "bytes=0-3", "If-Range": `"e"`, "If-None-Match": `"n"`, "If-Match": `"m"`,
		"If-Modified-Since": "Thu, 01 Jan 2026 00:00:00 GMT", "Accept-Encoding": "br",
	} {
		if value := got.Header.Get(name); value != want {
			t.Errorf("%s: the origin got %q, want %q", name, value, want)
		}
	}
}

// TestTargetIsVerbatim writes request lines as no client library would.
func TestTargetIsVerbatim(t *testing.T) {
	t.Parallel()
	origin := record(t, func(http.ResponseWriter, *http.Request) {})
	host := serve(t, origin.URL)
	for _, target := range []string{
		"/b/files/x?a=1&b=%2F&c=a+b&d=a%20b",
		"/b/files/%2F..%2f/%7e?X=1&X=2&&=&x",
		"/b/files/a%C3%A4'()*!?q='()*!",
		"/b/./files//x?",
		"//b/k?x",
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(host.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, "GET "+target+" HTTP/1.1\r\nHost: viewer.example\r\nConnection: close\r\n\r\n")
		io.Copy(io.Discard, conn)
		conn.Close()
		if got := origin.last.RequestURI; got != target {
			t.Errorf("the origin got %s, want %s", got, target)
		}
	}
}

func TestAnswerHasPolicy(t *testing.T) {
	t.Parallel()
	origin := record(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src *")
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Content-Type", "application/pdf")
		w.Header().Set("Cache-Control", "private, no-store")
		if r.URL.Path == "/denied" {
			w.WriteHeader(http.StatusForbidden)
		}
		io.WriteString(w, "body")
	})
	host := serve(t, origin.URL)
	for path, want := range map[string]int{"/b/k": 200, "/denied": 403} {
		response, body := do(t, http.MethodGet, host.URL+path, nil)
		if response.StatusCode != want || string(body) != "body" {
			t.Errorf("%s: %d %q, want %d", path, response.StatusCode, body, want)
		}
		wantPolicy(t, response.Header)
		h := response.Header
		if h.Get("Set-Cookie") != "" || h.Get("Content-Type") != "application/pdf" || h.Get("Cache-Control") != "private, no-store" {
			t.Errorf("%s: headers %v", path, h)
		}
	}
}

func TestOnlyGetAndHead(t *testing.T) {
	t.Parallel()
	origin := record(t, func(http.ResponseWriter, *http.Request) {})
	host := serve(t, origin.URL)
	for _, method := range []string{"PUT", "POST", "DELETE", "PATCH", "OPTIONS"} {
		response, _ := do(t, method, host.URL+"/b/k", nil)
		if response.StatusCode != http.StatusMethodNotAllowed || response.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d, Allow %q", method, response.StatusCode, response.Header.Get("Allow"))
		}
		wantPolicy(t, response.Header)
	}
	if origin.last != nil {
		t.Errorf("the origin got a %s", origin.last.Method)
	}
}

func TestOriginDown(t *testing.T) {
	t.Parallel()
	origin := record(t, func(http.ResponseWriter, *http.Request) {})
	host := serve(t, origin.URL)
	origin.Close()
	response, _ := do(t, http.MethodGet, host.URL+"/b/k?X-Amz-Signature=secret", nil)
	if response.StatusCode != http.StatusBadGateway {
		t.Errorf("%d, want 502", response.StatusCode)
	}
	wantPolicy(t, response.Header)
}

func TestCutOffBodyIsNotWhole(t *testing.T) {
	t.Parallel()
	origin := record(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.Write(make([]byte, 64<<10)) // more than the host buffers
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	response, err := http.Get(serve(t, origin.URL).URL + "/b/k")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err == nil {
		t.Errorf("a body cut off by the origin ended normally after %d bytes", len(body))
	}
}

// TestPresignedLink follows a link as a client does: signed for the S3 host,
// with the host replaced.
func TestPresignedLink(t *testing.T) {
	const bucket, key, id, secret = "content-test", "files/f_1/0123", "AKIACONTENT", "secret"
	server, err := s3.Start(context.Background(), s3.Options{
		Dir: t.TempDir(), Bucket: bucket, Region: "eu-central-1",
		Lookup: func(string, string) (s3.Account, error) { return s3.Account{SecretAccessKey: secret}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	host := serve(t, server.URL())
	c := awss3.New(awss3.Options{
		Region: "eu-central-1", BaseEndpoint: aws.String(server.URL()), UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(id, secret, ""),
	})
	data := make([]byte, 1<<20)
	rand.Read(data)
	stored, err := c.PutObject(t.Context(), &awss3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String(key), Body: bytes.NewReader(data)})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := awss3.NewPresignClient(c).PresignGetObject(t.Context(), &awss3.GetObjectInput{
		Bucket: aws.String(bucket), Key: aws.String(key),
		ResponseContentDisposition: aws.String(`attachment; filename="a b.pdf"; filename*=UTF-8''%C3%A4.pdf`),
	})
	if err != nil {
		t.Fatal(err)
	}
	link := strings.Replace(signed.URL, server.URL(), host.URL, 1)

	response, body := do(t, http.MethodGet, link, http.Header{"Authorization": {"Bearer ck_key_secret"}})
	if response.StatusCode != 200 || !bytes.Equal(body, data) {
		t.Fatalf("the link: %d, %d bytes", response.StatusCode, len(body))
	}
	wantPolicy(t, response.Header)
	if got := response.Header.Get("Content-Disposition"); got != `attachment; filename="a b.pdf"; filename*=UTF-8''%C3%A4.pdf` {
		t.Errorf("Content-Disposition %s", got)
	}
	response, body = do(t, http.MethodGet, link, http.Header{"Range": {"bytes=-10"}})
	if response.StatusCode != 206 || !bytes.Equal(body, data[len(data)-10:]) {
		t.Errorf("a range: %d, %d bytes", response.StatusCode, len(body))
	}
	if response, _ = do(t, http.MethodGet, link, http.Header{"If-None-Match": {aws.ToString(stored.ETag)}}); response.StatusCode != 304 {
		t.Errorf("If-None-Match: %d, want 304", response.StatusCode)
	}
	if response, _ = do(t, http.MethodGet, link, http.Header{"Range": {"bytes=9999999-"}}); response.StatusCode != 416 {
		t.Errorf("a range beyond the end: %d, want 416", response.StatusCode)
	}
	for _, bad := range []struct{ method, link string }{{http.MethodHead, link}, {http.MethodGet, link + "0"}} {
		if response, _ = do(t, bad.method, bad.link, nil); response.StatusCode != 403 {
			t.Errorf("%s of another request than was signed: %d, want 403", bad.method, response.StatusCode)
		}
		wantPolicy(t, response.Header)
	}

	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("curl is not installed")
	}
	path := filepath.Join(t.TempDir(), "file")
	if out, err := exec.Command(curl, "-sS", "--fail", "-H", "Authorization: Bearer ck_key_secret", "-o", path, link).CombinedOutput(); err != nil {
		t.Fatalf("curl: %v: %s", err, out)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, data) {
		t.Errorf("curl got %d bytes: %v", len(got), err)
	}
}
