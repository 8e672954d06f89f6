package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
)

const (
	testKey       = "ck_4h8n1t6w3y9r5p2e_ujzde8gxd6ncf10epf91dhodzdoc9is0j8ht9lgm"
	testMandate   = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhY21lIn0.c2lnbmF0dXJl"
	testPresigned = "https://bucket.s3.eu-west-1.amazonaws.com/staging/f_1?X-Amz-Credential=ASIAEXAMPLE&X-Amz-Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
)

// keyring knows testKey.
type keyring struct {
	scopes []files.Scope
	err    error
}

func (k keyring) Caller(_ context.Context, authorization string) (files.Caller, error) {
	if k.err != nil {
		return files.Caller{}, k.err
	}
	if authorization != "Bearer "+testKey {
		return files.Caller{}, files.ErrUnauthorized
	}
	return files.Caller{Account: "acme", Actor: "ada", Scopes: k.scopes, KeyID: "4h8n1t6w3y9r5p2e"}, nil
}

func newEvent(method string, headers map[string]string) Event {
	ev := Event{RouteKey: method + " /v1/things/{id}", RawPath: "/v1/things/f_1", Headers: headers, PathParameters: map[string]string{"id": "f_1"}}
	ev.RequestContext.RequestID = "req-1"
	ev.RequestContext.HTTP.Method = method
	return ev
}

var signedIn = map[string]string{"authorization": "Bearer " + testKey}

func serve(t *testing.T, e *Endpoint, ev Event) (Answer, string) {
	t.Helper()
	var log bytes.Buffer
	e.Log = slog.New(slog.NewJSONHandler(&log, nil))
	a, err := e.Serve(context.Background(), ev)
	if err != nil {
		t.Fatalf("Serve failed, and the gateway would answer in its own shape: %v", err)
	}
	if lines := strings.Count(log.String(), "\n"); lines != 1 {
		t.Errorf("%d lines were logged, want 1:\n%s", lines, log.String())
	}
	return a, log.String()
}

func codeOf(t *testing.T, a Answer) string {
	t.Helper()
	var doc struct{ Code string }
	if err := json.Unmarshal([]byte(a.Body), &doc); err != nil {
		t.Fatalf("%v: %s", err, a.Body)
	}
	return doc.Code
}

func TestWhoGetsThrough(t *testing.T) {
	t.Parallel()
	reader := keyring{scopes: []files.Scope{files.FilesRead}}
	with := func(name, value string) map[string]string {
		return map[string]string{"authorization": "Bearer " + testKey, name: value}
	}
	for name, c := range map[string]struct {
		auth    Authenticator
		scope   files.Scope
		headers map[string]string
		query   string
		status  int
		code    string
	}{
		"the scope is there":             {reader, files.FilesRead, signedIn, "", 200, ""},
		"any key will do":                {keyring{}, "", signedIn, "", 200, ""},
		"no key":                         {reader, files.FilesRead, nil, "", 401, "unauthorized"},
		"another key":                    {reader, files.FilesRead, map[string]string{"authorization": "Bearer ck_x"}, "", 401, "unauthorized"},
		"no scope":                       {reader, files.FilesWrite, signedIn, "", 403, "forbidden"},
		"no scopes at all":               {keyring{}, files.FilesRead, signedIn, "", 403, "forbidden"},
		"a mandate beside the key":       {reader, files.FilesRead, with("mandate", testMandate), "", 401, "unauthorized"},
		"an unknown parameter":           {reader, files.FilesRead, signedIn, "colour=red", 400, "invalid_request"},
		"the scope before the parameter": {reader, files.FilesWrite, signedIn, "colour=red", 403, "forbidden"},
		"the key before the scope":       {reader, files.FilesWrite, nil, "colour=red", 401, "unauthorized"},
		"the key store is away":          {keyring{err: fmt.Errorf("reading: %w", files.ErrTryAgain)}, files.FilesRead, signedIn, "", 503, "try_again"},
		"the key store is broken":        {keyring{err: errors.New("boom")}, files.FilesRead, signedIn, "", 500, "internal_error"},
		"open to everybody":              {nil, "", nil, "x=1", 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			done := false
			e := &Endpoint{Auth: c.auth, Scope: c.scope, Do: func(_ context.Context, r *Request) (*Response, error) {
				done = true
				return OK(map[string]string{"actor": r.Caller.Actor})
			}}
			ev := newEvent("GET", c.headers)
			ev.RawQueryString = c.query
			a, _ := serve(t, e, ev)
			if a.StatusCode != c.status || c.code != "" && codeOf(t, a) != c.code {
				t.Errorf("got %d %s", a.StatusCode, a.Body)
			}
			if done != (c.status == 200) {
				t.Errorf("the request was carried out: %v", done)
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method string
		resp   *Response
		status int
		body   string
		header map[string]string
	}{
		"JSON":           {"GET", &Response{Status: 200, JSON: map[string]string{"url": "https://x.test/?a=1&b=<2>"}}, 200, `{"url":"https://x.test/?a=1&b=<2>"}` + "\n", map[string]string{"Content-Type": "application/json"}},
		"JSON in parts":  {"GET", &Response{Status: 201, JSON: json.RawMessage("{\n \"a\": 1 }")}, 201, `{"a":1}` + "\n", map[string]string{"Content-Type": "application/json"}},
		"nothing":        {"DELETE", &Response{Status: 204}, 204, "", map[string]string{"Content-Type": ""}},
		"text":           {"GET", &Response{Status: 302, Headers: map[string]string{"Location": "https://x.test/"}, Text: "Go.\n"}, 302, "Go.\n", map[string]string{"Location": "https://x.test/", "Content-Type": "text/plain; charset=utf-8"}},
		"text for HEAD":  {"HEAD", &Response{Status: 302, Headers: map[string]string{"Location": "https://x.test/"}, Text: "Go.\n"}, 302, "", map[string]string{"Location": "https://x.test/"}},
		"JSON for HEAD":  {"HEAD", &Response{Status: 200, JSON: 1}, 200, "", map[string]string{"Content-Type": "application/json"}},
		"not encodable":  {"GET", &Response{Status: 200, JSON: func() {}}, 500, "internal_error", nil},
		"no answer":      {"GET", nil, 500, "internal_error", nil},
		"time too late":  {"GET", &Response{Status: 200, JSON: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, 500, "internal_error", nil},
		"its own header": {"GET", &Response{Status: 200, JSON: 1, Headers: map[string]string{"Cache-Control": "max-age=60"}}, 200, "1\n", map[string]string{"Cache-Control": "max-age=60"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, _ := serve(t, &Endpoint{Do: func(context.Context, *Request) (*Response, error) { return c.resp, nil }}, newEvent(c.method, nil))
			body := a.Body
			if c.status == 500 {
				body = codeOf(t, a)
			}
			if a.StatusCode != c.status || body != c.body {
				t.Errorf("got %d %q, want %d %q", a.StatusCode, body, c.status, c.body)
			}
			for k, v := range c.header {
				if a.Headers[k] != v {
					t.Errorf("%s is %q, want %q", k, a.Headers[k], v)
				}
			}
			if a.Headers["X-Request-Id"] != "req-1" || a.Headers["X-Content-Type-Options"] != "nosniff" {
				t.Errorf("headers %v", a.Headers)
			}
		})
	}
}

// Missing, foreign and malformed ids may only differ in request_id, whatever the domain wraps around them.
func TestNotFoundIsUniform(t *testing.T) {
	t.Parallel()
	bodies := map[string]bool{}
	for _, err := range []error{files.ErrFileNotFound, fmt.Errorf("reading f_1: %w", files.ErrFileNotFound), errors.Join(files.ErrFileNotFound)} {
		for _, id := range []string{"f_1", "f_7x2k9q4m1c8v5b3n6z0a2s4d1f", "../../etc/passwd", "\x00"} {
			ev := newEvent("GET", signedIn)
			ev.PathParameters["id"] = id
			a, _ := serve(t, &Endpoint{Auth: keyring{}, Do: func(context.Context, *Request) (*Response, error) { return nil, err }}, ev)
			bodies[fmt.Sprint(a.StatusCode, a.Headers, a.Body)] = true
		}
	}
	if len(bodies) != 1 {
		t.Errorf("%d different answers: %v", len(bodies), bodies)
	}
}

func TestPanicsAreLoggedAndAnswered(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(){
		"error": func() { panic(errors.New("the cause")) },
		"text":  func() { panic("the cause") },
		"runtime": func() {
			var none []int
			_ = none[len(testKey)]
		},
	} {
		a, log := serve(t, &Endpoint{Do: func(context.Context, *Request) (*Response, error) { do(); return NoContent() }}, newEvent("GET", nil))
		plain, _ := serve(t, &Endpoint{Do: func(context.Context, *Request) (*Response, error) { return nil, errors.New("other") }}, newEvent("GET", nil))
		if a.StatusCode != 500 || a.Body != plain.Body {
			t.Errorf("%s: got %d %s", name, a.StatusCode, a.Body)
		}
		var line struct{ Level, Error, Request_id, Code string }
		if err := json.Unmarshal([]byte(log), &line); err != nil {
			t.Fatal(err)
		}
		if line.Level != "ERROR" || line.Code != "internal_error" || line.Request_id != "req-1" || !strings.Contains(line.Error, "endpoint_test.go") || !strings.Contains(line.Error, "panic: ") {
			t.Errorf("%s: the line doesn't lead to the cause: %s", name, log)
		}
	}
	head, _ := serve(t, &Endpoint{Do: func(context.Context, *Request) (*Response, error) { panic("x") }}, newEvent("HEAD", nil))
	if head.StatusCode != 500 || head.Body != "" {
		t.Errorf("HEAD: got %d %q", head.StatusCode, head.Body)
	}
}

func TestLogLines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err   error
		want  map[string]any
		never []string
	}{
		"success":  {nil, map[string]any{"level": "INFO", "status": 200.0}, []string{"code", "error"}},
		"refusal":  {files.ErrFileNotFound, map[string]any{"level": "INFO", "status": 404.0, "code": "file_not_found"}, []string{"error"}},
		"internal": {errors.New("the cause"), map[string]any{"level": "ERROR", "status": 500.0, "code": "internal_error", "error": "the cause"}, nil},
		"busy":     {fmt.Errorf("%w: the cause", files.ErrTryAgain), map[string]any{"level": "ERROR", "status": 503.0, "code": "try_again", "error": "temporarily unavailable: the cause"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ev := newEvent("GET", signedIn)
			ev.PathParameters["id"] = "f_7x2k9q4m1c8v5b3n6z0a2s4d1f"
			_, log := serve(t, &Endpoint{Auth: keyring{}, Do: func(context.Context, *Request) (*Response, error) {
				if c.err != nil {
					return nil, c.err
				}
				return OK(1)
			}}, ev)
			var line map[string]any
			if err := json.Unmarshal([]byte(log), &line); err != nil {
				t.Fatal(err)
			}
			c.want["request_id"], c.want["route"], c.want["account"], c.want["actor"], c.want["key"], c.want["id"] = "req-1", "GET /v1/things/{id}", "acme", "ada", "4h8n1t6w3y9r5p2e", "f_7x2k9q4m1c8v5b3n6z0a2s4d1f"
			for k, v := range c.want {
				if line[k] != v {
					t.Errorf("%s is %v, want %v", k, line[k], v)
				}
			}
			for _, k := range c.never {
				if _, there := line[k]; there {
					t.Errorf("%s is logged: %v", k, line[k])
				}
			}
		})
	}
}

// Wherever a client puts a secret, and whatever becomes of the request, the log doesn't have it.
func TestNoSecretIsLogged(t *testing.T) {
	t.Parallel()
	secret := strings.TrimPrefix(testKey, "ck_4h8n1t6w3y9r5p2e_")
	outcomes := map[string]func(r *Request) (*Response, error){
		"success": func(*Request) (*Response, error) { return OK(map[string]string{"key": testKey, "url": testPresigned}) },
		"redirect": func(*Request) (*Response, error) {
			return &Response{Status: 302, Headers: map[string]string{"Location": testPresigned}, Text: testPresigned}, nil
		},
		"refused": func(*Request) (*Response, error) { return nil, files.ErrFileNotFound },
		"invalid": func(r *Request) (*Response, error) {
			o, err := r.JSON(MaxJSON)
			if err == nil {
				err = o.Err()
			}
			return nil, err
		},
		"broken": func(*Request) (*Response, error) { return nil, errors.New("boom") },
		"panic":  func(*Request) (*Response, error) { panic("boom") },
	}
	for name, do := range outcomes {
		for _, s := range []string{testKey, secret, testMandate, testPresigned, "Bearer " + testKey} {
			ev := newEvent("POST", map[string]string{
				"authorization": "Bearer " + testKey, "cookie": s, "user-agent": s, "idempotency-key": s, "x-forwarded-for": s, "referer": s, "repr-digest": s, "content-type": s,
			})
			body, err := json.Marshal(map[string]string{s: s})
			if err != nil {
				t.Fatal(err)
			}
			ev.Body = string(body)
			ev.RawPath = "/v1/things/" + s
			ev.PathParameters["id"] = s
			ev.RequestContext.HTTP.UserAgent, ev.RequestContext.HTTP.Path = s, ev.RawPath
			mandated := newEvent("POST", map[string]string{"authorization": "Bearer " + testKey, "mandate": testMandate})
			stranger := newEvent("POST", map[string]string{"authorization": s})
			queried := newEvent("POST", signedIn)
			queried.RawQueryString = "X-Amz-Signature=" + s + "&" + s
			for _, e := range []Event{ev, mandated, stranger, queried} {
				_, log := serve(t, &Endpoint{Auth: keyring{}, Do: func(_ context.Context, r *Request) (*Response, error) { return do(r) }}, e)
				for _, leak := range []string{secret, "X-Amz", "5d672d79", "c2lnbmF0dXJl", "eyJ"} {
					if strings.Contains(log, leak) {
						t.Errorf("%s: the log has %q: %s", name, leak, log)
					}
				}
			}
		}
	}
}

func TestIDsInTheLog(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"f_7x2k9q4m1c8v5b3n6z0a2s4d1f":                           "f_7x2k9q4m1c8v5b3n6z0a2s4d1f",
		"c_7x2k9q4m1c8v5b3n6z0a2s4d1f7x2k9q4m1c8v5b3n6z0a2s4d1f": "c_7x2k9q4m1c8v5b3n6z0a2s4d1f7x2k9q4m1c8v5b3n6z0a2s4d1f",
		"6b3z8d1m5j2g9u4s":                                       "6b3z8d1m5j2g9u4s",
		testKey:                                                  "(malformed)", strings.TrimPrefix(testKey, "ck_4h8n1t6w3y9r5p2e_"): "(malformed)",
		testPresigned: "(malformed)", testMandate: "(malformed)", "f_A": "(malformed)", "f_\n": "(malformed)", "f_" + strings.Repeat("a", 61): "(malformed)",
	} {
		if got := loggable(id); got != want {
			t.Errorf("%q: got %q, want %q", id, got, want)
		}
	}
}
