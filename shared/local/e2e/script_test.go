package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// patience bounds how long a script waits for what must happen by itself, and goneWithin for the bytes of what ended:
// the contract says two minutes.
const (
	patience   = 30 * time.Second
	goneWithin = 2 * time.Minute
)

// TestScripts runs every script of testdata.
func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range scripts {
		name := strings.TrimSuffix(filepath.Base(path), ".txt")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := stackFor(t, paramsOf(t, path))
			key, err := r.mint(name, "owner", "-role", "owner")
			if err != nil {
				t.Fatal(err)
			}
			testscript.Run(t, testscript.Params{
				Files: []string{path},
				Cmds:  commands,
				Setup: func(env *testscript.Env) error {
					env.Setenv("URL", r.url)
					env.Setenv("KEY", key)
					env.Values[stackKey{}] = r
					return nil
				},
			})
		})
	}
}

type stackKey struct{}

func paramsOf(t *testing.T, path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	params, _ := strings.CutPrefix(first, "# params: ")
	if params == first {
		return ""
	}
	return params
}

// commands of the scripts. After each request the status line and headers are in $WORK/headers, the body in
// $WORK/body and on stdout.
//
//	call STATUS METHOD PATH [JSON|@FILE] [Header:Value …]  an API request with $KEY; Authorization: replaces or, empty, drops it
//	put STATUS FILE [Header:Value …]     the presigned upload of the last reservation; an empty value drops a header
//	fetch STATUS URL [METHOD] [Header:Value …]   a plain request that follows no redirect
//	get VAR PATH       sets $VAR to a member of the last body, such as upload.url or files.0.id
//	is PATH VALUE      compares a member of the last body; null and missing differ
//	header NAME VALUE  compares a header of the last answer; VALUE - means that it isn't there
//	take VAR NAME      sets $VAR to a header of the last answer
//	becomes PATH VALUE URLPATH   repeats GET URLPATH until a member has the value
//	waitfor STATUS METHOD URLPATH   repeats a request until it has the status
//	mint VAR ACCOUNT ACTOR FLAG VALUE   makes a key with `claimcheck-local key`
//	stored N PREFIX    waits until the object store holds N objects whose key starts with PREFIX
//	make FILE SIZE     writes a file of SIZE bytes that looks like nothing known
//	sha VAR FILE       sets $VAR to the SHA-256 of a file, in hex
var commands = map[string]func(*testscript.TestScript, bool, []string){
	"call":    call,
	"put":     put,
	"fetch":   fetch,
	"get":     get,
	"is":      is,
	"header":  header,
	"take":    take,
	"becomes": becomes,
	"waitfor": waitfor,
	"mint":    mint,
	"stored":  stored,
	"make":    makeFile,
	"sha":     sha,
}

func need(ts *testscript.TestScript, neg bool, args []string, n int, usage string) {
	if neg || len(args) < n {
		ts.Fatalf("usage: %s", usage)
	}
}

// plain follows no redirect and keeps no cookies.
var plain = &http.Client{
	Timeout:       2 * time.Minute,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// send makes a request and keeps its answer for the commands that look at it.
func send(ts *testscript.TestScript, req *http.Request, want string) {
	status := exchange(ts, req)
	if strconv.Itoa(status) != want {
		ts.Fatalf("%s %s: status %d, want %s\n%s", req.Method, req.URL.Path, status, want, ts.ReadFile("body"))
	}
}

func exchange(ts *testscript.TestScript, req *http.Request) int {
	resp, err := plain.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ts.Check(err)
	var head bytes.Buffer
	resp.Header.Write(&head)
	ts.Check(os.WriteFile(ts.MkAbs("headers"), head.Bytes(), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("body"), body, 0o600))
	if len(body) < 64<<10 {
		fmt.Fprintf(ts.Stdout(), "%s\n", body)
	}
	return resp.StatusCode
}

// setHeaders applies arguments of the form Name:Value; an empty value drops the header.
func setHeaders(ts *testscript.TestScript, req *http.Request, args []string) {
	for _, a := range args {
		name, value, ok := strings.Cut(a, ":")
		if !ok {
			ts.Fatalf("%q is not Name:Value", a)
		}
		switch {
		case value == "":
			req.Header.Del(name)
		case strings.EqualFold(name, "Content-Length"):
			n, err := strconv.ParseInt(value, 10, 64)
			ts.Check(err)
			req.ContentLength = n
		default:
			req.Header.Set(name, value)
		}
	}
}

func newRequest(ts *testscript.TestScript, method, url string, body []byte) *http.Request {
	req, err := http.NewRequest(method, url, bytes.NewReader(body))
	ts.Check(err)
	if body == nil {
		req.Body, req.ContentLength, req.GetBody = nil, 0, nil
	}
	return req
}

func call(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 3, "call STATUS METHOD PATH [JSON|@FILE] [Header:Value …]")
	var body []byte
	rest := args[3:]
	if len(rest) > 0 {
		switch {
		case strings.HasPrefix(rest[0], "@"):
			body = []byte(ts.ReadFile(rest[0][1:]))
			rest = rest[1:]
		case strings.HasPrefix(rest[0], "{") || strings.HasPrefix(rest[0], "[") || rest[0] == "":
			body = []byte(rest[0])
			rest = rest[1:]
		}
	}
	req := newRequest(ts, args[1], ts.Getenv("URL")+args[2], body)
	req.Header.Set("Authorization", "Bearer "+ts.Getenv("KEY"))
	setHeaders(ts, req, rest)
	send(ts, req, args[0])
	if req.Header.Get("Authorization") != "" && args[0] == "201" && bytes.Contains([]byte(ts.ReadFile("body")), []byte(`"upload":{`)) {
		ts.Check(os.WriteFile(ts.MkAbs("reservation"), []byte(ts.ReadFile("body")), 0o600))
	}
}

func put(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "put STATUS FILE [Header:Value …]")
	var reservation struct {
		Upload struct {
			Method, URL string
			Headers     map[string]string
		}
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("reservation")), &reservation))
	req := newRequest(ts, reservation.Upload.Method, reservation.Upload.URL, []byte(ts.ReadFile(args[1])))
	for name, value := range reservation.Upload.Headers {
		if name != "Content-Length" { // net/http sends the length of the body
			req.Header.Set(name, value)
		}
	}
	setHeaders(ts, req, args[2:])
	send(ts, req, args[0])
}

func fetch(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "fetch STATUS URL [METHOD] [Header:Value …]")
	method, rest := "GET", args[2:]
	if len(rest) > 0 && !strings.Contains(rest[0], ":") {
		method, rest = rest[0], rest[1:]
	}
	req := newRequest(ts, method, args[1], nil)
	setHeaders(ts, req, rest)
	send(ts, req, args[0])
}

// member finds a value in the last body by a dotted path. A path segment may hold dots when written in brackets:
// _meta.[dev.claimcheck/files].
func member(ts *testscript.TestScript, path string) (any, bool) {
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile("body")))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		ts.Fatalf("the last body is not JSON: %v", err)
	}
	for path != "" {
		var name string
		if rest, ok := strings.CutPrefix(path, "["); ok {
			name, path, _ = strings.Cut(rest, "]")
			path = strings.TrimPrefix(path, ".")
		} else {
			name, path, _ = strings.Cut(path, ".")
		}
		switch node := v.(type) {
		case map[string]any:
			var ok bool
			if v, ok = node[name]; !ok {
				return nil, false
			}
		case []any:
			if name == "length" {
				v = json.Number(strconv.Itoa(len(node)))
				continue
			}
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(node) {
				return nil, false
			}
			v = node[i]
		default:
			return nil, false
		}
	}
	return v, true
}

func text(v any, found bool) string {
	switch v := v.(type) {
	case string:
		return v
	case nil:
		if found {
			return "null"
		}
		return "(missing)"
	default:
		b, _ := json.Marshal(v)
		return string(b)
	}
}

func get(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "get VAR PATH")
	v, ok := member(ts, args[1])
	if !ok {
		ts.Fatalf("the last body has no %s:\n%s", args[1], ts.ReadFile("body"))
	}
	ts.Setenv(args[0], text(v, ok))
}

func is(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: is PATH VALUE")
	}
	if got := text(member(ts, args[0])); (got == args[1]) == neg {
		ts.Fatalf("%s is %q, want %q (negated: %v)\n%s", args[0], got, args[1], neg, ts.ReadFile("body"))
	}
}

func header(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "header NAME VALUE")
	if got := lastHeader(ts, args[0]); got != args[1] {
		ts.Fatalf("header %s is %q, want %q", args[0], got, args[1])
	}
}

func take(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "take VAR NAME")
	ts.Setenv(args[0], lastHeader(ts, args[1]))
}

// lastHeader is a header of the last answer, - when it isn't there.
func lastHeader(ts *testscript.TestScript, name string) string {
	for line := range strings.SplitSeq(ts.ReadFile("headers"), "\n") {
		if n, value, ok := strings.Cut(line, ":"); ok && strings.EqualFold(n, name) {
			return strings.TrimSpace(value)
		}
	}
	return "-"
}

// until repeats ask until it says true.
func until(ts *testscript.TestScript, what string, ask func() bool) {
	for deadline := time.Now().Add(patience); !ask(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			ts.Fatalf("%s did not happen within %s; the last answer:\n%s", what, patience, ts.ReadFile("body"))
		}
	}
}

func ask(ts *testscript.TestScript, method, path string) int {
	req := newRequest(ts, method, ts.Getenv("URL")+path, nil)
	req.Header.Set("Authorization", "Bearer "+ts.Getenv("KEY"))
	return exchange(ts, req)
}

func becomes(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 3, "becomes PATH VALUE URLPATH")
	until(ts, args[0]+" = "+args[1], func() bool {
		return ask(ts, "GET", args[2]) < 300 && text(member(ts, args[0])) == args[1]
	})
}

func waitfor(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 3, "waitfor STATUS METHOD URLPATH")
	until(ts, "status "+args[0], func() bool { return strconv.Itoa(ask(ts, args[1], args[2])) == args[0] })
}

func mint(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 5, "mint VAR ACCOUNT ACTOR FLAG VALUE")
	key, err := ts.Value(stackKey{}).(*running).mint(args[1], args[2], args[3:]...)
	ts.Check(err)
	ts.Setenv(args[0], key)
}

func stored(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "stored N PREFIX")
	folder := filepath.Join(ts.Value(stackKey{}).(*running).data, "s3", "objects")
	for deadline := time.Now().Add(goneWithin); ; time.Sleep(100 * time.Millisecond) {
		n, err := countKeys(folder, args[1])
		ts.Check(err)
		if strconv.Itoa(n) == args[0] {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%d objects start with %s after %s, want %s", n, args[1], goneWithin, args[0])
		}
	}
}

// countKeys looks into the folder of the local S3, where each object is described by one JSON file.
func countKeys(folder, prefix string) (int, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if os.IsNotExist(err) {
			continue // deleted while we looked
		}
		if err != nil {
			return 0, err
		}
		var object struct{ Key string }
		if err := json.Unmarshal(text, &object); err == nil && strings.HasPrefix(object.Key, prefix) {
			n++
		}
	}
	return n, nil
}

func makeFile(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "make FILE SIZE")
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), bytes.Repeat([]byte{0x07, 0xa5, 0x5a, 0xe1}, n/4+1)[:n], 0o600))
}

func sha(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 2, "sha VAR FILE")
	sum := sha256.Sum256([]byte(ts.ReadFile(args[1])))
	ts.Setenv(args[0], hex.EncodeToString(sum[:]))
}
