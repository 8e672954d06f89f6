package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A server that keeps no promise: every fact must be found not to hold, and nothing printed may be a secret.
func TestNothingHolds(t *testing.T) {
	t.Parallel()
	const secret = "ck_aaaaaaaaaaaaaaaa_secret"
	revoked := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "DELETE" && strings.HasPrefix(r.URL.Path, "/v1/keys/") {
			revoked = r.URL.Path
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Location", "http://"+r.Host+"/place?X-Amz-Signature=presigned")
		if r.Method == "POST" {
			w.WriteHeader(http.StatusCreated)
		}
		w.Write([]byte(`{"id":"f_x","state":"ready","url":"http://` + r.Host + `/x?X-Amz-Signature=presigned",
			"upload":{"method":"PUT","url":"http://` + r.Host + `/staging/f_x?X-Amz-Signature=presigned","headers":{"If-None-Match":"*"}}}`))
	}))
	defer server.Close()
	var out bytes.Buffer
	err := command(t.Context(), []string{"-url", server.URL, "-revoke"}, secret, &out)
	if err == nil || !strings.Contains(err.Error(), "do not hold") {
		t.Errorf("got %v", err)
	}
	for line := range strings.Lines(out.String()) {
		// What a server that says yes to everything does right.
		yes := strings.Contains(line, "exactly the headers") || strings.Contains(line, "4 MiB") || strings.Contains(line, "the event alone") ||
			strings.Contains(line, "one Idempotency-Key") || strings.HasPrefix(line, "not checked")
		if strings.HasPrefix(line, "held") && !yes {
			t.Errorf("held: %s", line)
		}
	}
	for _, s := range []string{"presigned", "secret"} {
		if strings.Contains(out.String()+err.Error(), s) {
			t.Errorf("the report tells a secret:\n%s", &out)
		}
	}
	if revoked != "/v1/keys/aaaaaaaaaaaaaaaa" {
		t.Errorf("revoked %q", revoked)
	}
}

func TestWhatIsAsked(t *testing.T) {
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "env"), []byte("CLAIMCHECK_URL=http://127.0.0.1:1\nCLAIMCHECK_KEY=ck_a_b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	found := target{}
	if err := found.fromData(data); err != nil || found.url != "http://127.0.0.1:1" || found.key != "ck_a_b" {
		t.Errorf("read %q, %v", found.url, err)
	}
	t.Setenv("PATH", data)
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "say -stack NAME"},
		{[]string{"-url", "http://127.0.0.1:1"}, "KEY is not set"},
		{[]string{"-data", filepath.Join(data, "none")}, "start one with `make run`"},
		{[]string{"-stack", "s"}, "aws is missing"},
	} {
		if err := command(t.Context(), test.args, "", &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: got %v, want %s", test.args, err, test.want)
		}
	}
}
