package functiontest

import (
	"bytes"
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"claimcheck.dev/claimcheck/shared/httpapi"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Event reads events/<name>.json, the sample event of a function, and changes it.
func Event(t testing.TB, name string, change ...func(*httpapi.Event)) httpapi.Event {
	t.Helper()
	var ev httpapi.Event
	Sample(t, name, &ev)
	for _, c := range change {
		c(&ev)
	}
	return ev
}

// Sample reads events/<name>.json into v.
func Sample(t testing.TB, name string, v any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "events", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatalf("events/%s.json: %v", name, err)
	}
}

// Body is a change of an event: another body, as text.
func Body(text string) func(*httpapi.Event) {
	return func(ev *httpapi.Event) { ev.Body, ev.IsBase64Encoded = text, false }
}

// Header is a change of an event: a header more, or without it when value is "".
func Header(name, value string) func(*httpapi.Event) {
	return func(ev *httpapi.Event) {
		if ev.Headers[name] = value; value == "" {
			delete(ev.Headers, name)
		}
	}
}

// ID is a change of an event: another {id} in the path.
func ID(id string) func(*httpapi.Event) {
	return func(ev *httpapi.Event) { ev.PathParameters["id"] = id }
}

// Query is a change of an event: another query string.
func Query(raw string) func(*httpapi.Event) {
	return func(ev *httpapi.Event) { ev.RawQueryString = raw }
}

// Key is a change of an event: another key, of those whose secret is Secret.
func Key(id string) func(*httpapi.Event) { return Header("authorization", "Bearer ck_"+id+"_"+Secret) }

// Serve answers an event. One line is logged for it, which has neither the key nor anything presigned.
func (f *Fakes) Serve(t testing.TB, e *httpapi.Endpoint, ev httpapi.Event) httpapi.Answer {
	t.Helper()
	var log bytes.Buffer
	e.Log = slog.New(slog.NewJSONHandler(&log, nil))
	answer, err := e.Serve(t.Context(), ev)
	if err != nil {
		t.Fatalf("serving failed as a whole: %v", err)
	}
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("%d lines were logged, want 1:\n%s", n, log.String())
	}
	for _, secret := range []string{Secret, "X-Amz-", "https://", "Bearer"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log has %q: %s", secret, log.String())
		}
	}
	return answer
}

// golden is an answer as its file shows it.
type golden struct {
	Route   string            `json:"route"`
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    any               `json:"body,omitempty"` // JSON as it is, anything else as text
}

// Golden compares the answer to an event with testdata/<name>.golden.json.
func Golden(t testing.TB, name string, ev httpapi.Event, a httpapi.Answer) {
	t.Helper()
	g := golden{Route: ev.RouteKey, Status: a.StatusCode, Headers: a.Headers}
	if strings.Contains(a.Headers["Content-Type"], "json") && a.Body != "" {
		if !json.Valid([]byte(a.Body)) {
			t.Fatalf("the body isn't JSON: %s", a.Body)
		}
		g.Body = json.RawMessage(a.Body)
	} else if a.Body != "" {
		g.Body = a.Body
	}
	GoldenJSON(t, name, g)
}

// GoldenJSON compares v with testdata/<name>.golden.json.
func GoldenJSON(t testing.TB, name string, v any) {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name+".golden.json")
	if *update {
		if err := os.MkdirAll("testdata", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("%s: got\n%s\nwant\n%s", path, b.Bytes(), want)
	}
}
