package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"
)

// client calls the API of a stack with one key, as Go tests need it: many at once, and through faults.
type client struct{ url, key string }

// reply is an answer of the API or of the object store; status 0 says that there was none.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// into decodes the answer; code is the code of a problem.
func (r reply) into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(r.body, v); err != nil {
		t.Fatalf("status %d: %v: %s", r.status, err, r.body)
	}
}

func (r reply) code() string {
	var problem struct{ Code string }
	if json.Unmarshal(r.body, &problem) != nil {
		return ""
	}
	return problem.Code
}

func (r reply) String() string { return fmt.Sprintf("%d %s", r.status, r.body) }

func (c client) call(method, path, body string, header ...string) reply {
	return request(method, c.url+path, []byte(body), append(header, "Authorization", "Bearer "+c.key)...)
}

func request(method, url string, body []byte, header ...string) reply {
	req, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return reply{}
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := plain.Do(req)
	if err != nil {
		return reply{}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return reply{}
	}
	return reply{resp.StatusCode, resp.Header, text}
}

// reservation is the part of an upload object that a client needs.
type reservation struct {
	ID     string
	State  string
	Upload *struct {
		URL     string
		Headers map[string]string
	}
}

func (c client) reserve(t testing.TB, body string) reservation {
	t.Helper()
	var r reservation
	got := c.call("POST", "/v1/uploads", body)
	if got.status != 201 {
		t.Fatalf("reserving: %s", got)
	}
	got.into(t, &r)
	return r
}

func (r reservation) put(body []byte) reply {
	var header []string
	for name, value := range r.Upload.Headers {
		if name != "Content-Length" { // net/http sends the length of the body
			header = append(header, name, value)
		}
	}
	return request("PUT", r.Upload.URL, body, header...)
}

// file is the part of a file object that tests look at.
type file struct {
	ID, State string
	SHA256    string
	SizeBytes int64 `json:"size_bytes"`
}

// inline stores bytes in one request.
func (c client) inline(t testing.TB, query, body string) file {
	t.Helper()
	got := c.call("POST", "/v1/files?"+query, body, "Content-Type", "application/octet-stream")
	if got.status != 201 {
		t.Fatalf("storing a file: %s", got)
	}
	var f file
	got.into(t, &f)
	return f
}

// read fetches a file through a link; the status is that of the first request refused.
func (c client) read(t testing.TB, id string) reply {
	t.Helper()
	got := c.call("POST", "/v1/files/"+id+"/links", "")
	if got.status != 201 {
		return got
	}
	var link struct{ URL string }
	got.into(t, &link)
	return request("GET", link.URL, nil)
}

type usage struct {
	Account struct {
		LiveBytes int64 `json:"live_bytes"`
		Files     int64
	}
	Actor struct{ Reservations int64 }
}

func (c client) usage(t testing.TB) (u usage) {
	t.Helper()
	got := c.call("GET", "/v1/usage", "")
	if got.status != 200 {
		t.Fatalf("usage: %s", got)
	}
	got.into(t, &u)
	return u
}

// listed are all live files, by id.
func (c client) listed(t testing.TB) map[string]file {
	t.Helper()
	out := map[string]file{}
	for cursor := ""; ; {
		got := c.call("GET", "/v1/files?limit=100"+cursor, "")
		if got.status != 200 {
			t.Fatalf("list: %s", got)
		}
		var page struct {
			Files []file
			Next  *string `json:"next_cursor"`
		}
		got.into(t, &page)
		for _, f := range page.Files {
			out[f.ID] = f
		}
		if page.Next == nil {
			return out
		}
		cursor = "&cursor=" + *page.Next
	}
}

func hexSHA256(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// eventually waits for what happens by itself.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(goneWithin); !ok(); time.Sleep(30 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not happen within %s", what, goneWithin)
		}
	}
}
