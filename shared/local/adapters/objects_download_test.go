package adapters_test

import (
	"bytes"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/names"
	"claimcheck.dev/claimcheck/shared/objects/keys"
)

func testDownload(t *testing.T, w *world) {
	body := bytes.Repeat([]byte("0123456789"), 500)
	f := w.ready(t, body)
	link := w.signLink(t, f, "GET")
	tests := []struct {
		name   string
		rang   string
		status int
		body   []byte
		header string // Content-Range
	}{
		{"whole", "", 200, body, ""},
		{"the first byte", "bytes=0-0", 206, body[:1], "bytes 0-0/5000"},
		{"the last five", "bytes=-5", 206, body[4995:], "bytes 4995-4999/5000"},
		{"from the middle", "bytes=2500-", 206, body[2500:], "bytes 2500-4999/5000"},
		{"past the end", "bytes=4990-9999", 206, body[4990:], "bytes 4990-4999/5000"},
		{"beyond the end", "bytes=5000-", 416, nil, ""},
	}
	for _, tt := range tests {
		var headers []string
		if tt.rang != "" {
			headers = []string{"Range", tt.rang}
		}
		got := fetch(t, "GET", link, headers...)
		if got.status != tt.status || tt.body != nil && !bytes.Equal(got.body, tt.body) {
			t.Errorf("%s: %d with %d bytes, want %d with %d", tt.name, got.status, len(got.body), tt.status, len(tt.body))
		}
		if tt.header != "" && got.header.Get("Content-Range") != tt.header {
			t.Errorf("%s: Content-Range %q, want %q", tt.name, got.header.Get("Content-Range"), tt.header)
		}
		if tt.body == nil {
			continue
		}
		if got.header.Get("Content-Disposition") != names.Disposition(f.Filename) || got.header.Get("Cache-Control") != keys.CacheControl {
			t.Errorf("%s: Content-Disposition %q, Cache-Control %q", tt.name, got.header.Get("Content-Disposition"), got.header.Get("Cache-Control"))
		}
	}

	head := fetch(t, "HEAD", w.signLink(t, f, "HEAD"))
	if head.status != 200 || head.header.Get("Content-Length") != strconv.Itoa(len(body)) || len(head.body) != 0 ||
		head.header.Get("Content-Type") != "application/pdf" || head.header.Get("Content-Disposition") != names.Disposition(f.Filename) {
		t.Errorf("HEAD: %d %v", head.status, head.header)
	}
	if got := fetch(t, "HEAD", link); got.status != http.StatusForbidden {
		t.Errorf("HEAD with the signature of a GET: %d, want 403", got.status)
	}
	if got := fetch(t, "GET", w.signLink(t, f, "HEAD")); got.status != http.StatusForbidden {
		t.Errorf("GET with the signature of a HEAD: %d, want 403", got.status)
	}

	// A client that follows the redirect of content with its key: the content host drops it, S3 itself would refuse.
	if got := fetch(t, "GET", link, "Authorization", "Bearer ck_x_y"); got.status != 200 {
		t.Errorf("with a key, on the content host: %d, want 200", got.status)
	}
	direct := strings.Replace(link, w.content, strings.TrimPrefix(w.engine.URL(), "http://"), 1)
	if got := fetch(t, "GET", direct); got.status != 200 {
		t.Errorf("on S3: %d, want 200", got.status)
	}
	if got := fetch(t, "GET", direct, "Authorization", "Bearer ck_x_y"); got.status != http.StatusBadRequest {
		t.Errorf("with a key, on S3: %d, want 400", got.status)
	}
}

func testNames(t *testing.T, w *world) {
	f := w.ready(t, pdf)
	for _, name := range []string{
		"rapport-été.md", "Capture d’écran à 18.28.png", "合同.pdf", "don't (final)*.md", "a,b;c.pdf", `quo"te\.txt`,
		"100%41 + a&b=c?#.txt", "~!@$^_{}[]|.txt",
	} {
		f.Filename = name
		got := fetch(t, "GET", w.signLink(t, f, "GET"))
		if got.status != 200 || len(got.header["Content-Disposition"]) != 1 || got.header.Get("Content-Disposition") != names.Disposition(name) {
			t.Errorf("%s: %d, %q, want %q", name, got.status, got.header["Content-Disposition"], names.Disposition(name))
		}
	}
}

func testExpiry(t *testing.T, w *world) {
	f := w.ready(t, pdf)
	now := time.Now()
	for _, tt := range []struct {
		left   time.Duration
		status int
	}{{time.Minute, 200}, {-time.Second, 403}, {-time.Hour, 403}} {
		link, err := w.signer.SignLink(t.Context(), f, "GET", now.Add(-10*time.Minute), now.Add(tt.left))
		if tt.left < -10*time.Minute {
			if err == nil {
				t.Error("a link was signed that had ended before")
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := fetch(t, "GET", link.URL); got.status != tt.status {
			t.Errorf("a link with %v left: %d, want %d", tt.left, got.status, tt.status)
		}
		r := reserve(pdf)
		up, err := w.signer.SignUpload(t.Context(), r, now.Add(-10*time.Minute), now.Add(tt.left))
		if err != nil {
			t.Fatal(err)
		}
		if got := send(t, up, pdf); got.status != tt.status {
			t.Errorf("an upload with %v left: %d, want %d", tt.left, got.status, tt.status)
		}
	}
}

// testTampering alters a link in every character.
func testTampering(t *testing.T, w *world) {
	f := w.ready(t, pdf)
	link := w.signLink(t, f, "GET")
	start := strings.Index(link, bucket)
	var wg sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i := start; i < len(link); i++ {
		// Letters of escapes have a twin of the same meaning.
		other := byte('x')
		if link[i] == 'x' || link[i] == 'X' {
			other = 'y'
		}
		altered := link[:i] + string(other) + link[i+1:]
		if _, err := url.Parse(altered); err != nil {
			continue // no client would send it
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if got := fetch(t, "GET", altered); got.status < 400 || got.status >= 500 {
				t.Errorf("altered at %q: %d", link[max(0, i-12):i+1], got.status)
			}
		})
	}
	wg.Wait()
	query := link[strings.Index(link, "?")+1:]
	for _, change := range []string{"&response-content-type=text%2Fhtml", "&x=y", "&X-Amz-Expires=604800"} {
		if got := fetch(t, "GET", link+change); got.status < 400 || got.status >= 500 {
			t.Errorf("with %s: %d", change, got.status)
		}
	}
	for _, part := range strings.Split(query, "&") {
		less := strings.Replace(strings.Replace(link, part+"&", "", 1), "&"+part, "", 1)
		if got := fetch(t, "GET", less); got.status < 400 || got.status >= 500 {
			name, _, _ := strings.Cut(part, "=")
			t.Errorf("without %s: %d", name, got.status)
		}
	}
	if got := fetch(t, "GET", link); got.status != 200 {
		t.Errorf("unaltered: %d", got.status)
	}
}

// testOtherFiles: a signature opens the object it was made for and nothing else.
func testOtherFiles(t *testing.T, w *world) {
	mine, theirs := w.ready(t, pdf), w.ready(t, []byte("a secret of somebody else"))
	link := w.signLink(t, mine, "GET")
	for what, key := range map[string]string{
		"another file":      theirs.Sealed,
		"my staged object":  keys.Staging(mine.ID),
		"another version":   mine.Sealed + "x",
		"its folder":        "files/" + mine.ID + "/",
		"a detour":          mine.Sealed + "/../../" + theirs.ID,
		"the bucket's list": "",
	} {
		if got := fetch(t, "GET", strings.Replace(link, mine.Sealed, key, 1)); got.status < 400 || bytes.Contains(got.body, []byte("secret of")) {
			t.Errorf("%s: %d", what, got.status)
		}
	}
}
