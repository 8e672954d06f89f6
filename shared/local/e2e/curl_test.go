package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// api sends an API request with the stack's own key and decodes the answer.
func (r *running) api(t *testing.T, method, path string, body, answer any) int {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(method, r.url+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.key)
	resp, err := plain.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if answer != nil {
		if err := json.NewDecoder(resp.Body).Decode(answer); err != nil {
			t.Fatalf("%s %s: %d: %v", method, path, resp.StatusCode, err)
		}
	}
	return resp.StatusCode
}

type slot struct{ ID, File, Curl, State, Filename, SHA256 string }

// upload reserves a slot and runs the returned curl line in a folder that holds the file and nothing else.
func upload(t *testing.T, r *running, name string, content []byte, sized bool) slot {
	t.Helper()
	request := map[string]any{"filename": name}
	if sized {
		request["size_bytes"] = len(content)
	}
	var s slot
	if status := r.api(t, "POST", "/v1/uploads", request, &s); status != 201 {
		t.Fatalf("reserving %q: status %d", name, status)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, s.Filename), content, 0o600); err != nil {
		t.Fatal(err)
	}
	sh := exec.Command("sh", "-c", s.Curl)
	sh.Dir = dir
	if out, err := sh.CombinedOutput(); err != nil {
		t.Fatalf("the curl line of %q: %v\n%s", name, err, out)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 || entries[0].Name() != s.Filename {
		t.Fatalf("the curl line of %q left %v: %v", name, entries, err)
	}
	if status := r.api(t, "POST", "/v1/uploads/"+s.ID+"/complete", struct{}{}, &s); status != 200 || s.State != "ready" {
		t.Fatalf("completing %q: %d %s", name, status, s.State)
	}
	if sum := sha256.Sum256(content); s.SHA256 != hex.EncodeToString(sum[:]) {
		t.Fatalf("%q was stored with the digest %s", name, s.SHA256)
	}
	return s
}

func needCurl(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
}

// TestCurlLine pastes the returned line into a shell, for names that mean something to shells and to curl.
func TestCurlLine(t *testing.T) {
	t.Parallel()
	needCurl(t)
	r := stackFor(t, "")
	for _, name := range []string{
		"plain.pdf", "with space.txt", `'; rm -rf ~ #`, "a[1-2].txt", "{a,b}.txt", "-", "-o", "@x", "$(touch x)", "`touch y`",
		"$HOME", `back"quote.txt`, "don't (final)*.md", "a;b&c|d>e.txt", "%41.txt", "~", "!!", "Capture d’écran à 18.28.png", "合同.pdf", "😀.txt", " lead.txt",
	} {
		upload(t, r, name, []byte("content of "+name), len(name)%2 == 0)
	}
}

// TestLargeFile hands over 100 MiB, the default limit, with and without a declared size, and reads it back through a link.
func TestLargeFile(t *testing.T) {
	t.Parallel()
	needCurl(t)
	r := stackFor(t, "")
	content := bytes.Repeat([]byte("claimcheck 16 B\n"), 100<<20/16)
	for _, sized := range []bool{true, false} {
		s := upload(t, r, "large.bin", content, sized)
		var link struct{ URL string }
		if status := r.api(t, "POST", "/v1/files/"+s.ID+"/links", struct{}{}, &link); status != 201 {
			t.Fatalf("linking: status %d", status)
		}
		resp, err := plain.Get(link.URL)
		if err != nil {
			t.Fatal(err)
		}
		h := sha256.New()
		if _, err := io.Copy(h, resp.Body); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := hex.EncodeToString(h.Sum(nil)); got != s.SHA256 {
			t.Errorf("read back with the digest %s, stored with %s", got, s.SHA256)
		}
	}
}
