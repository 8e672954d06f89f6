package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/functiontest"
	"claimcheck.dev/claimcheck/shared/httpapi"
)

var suite = functiontest.Suite{
	Sample: "resolve", Scope: files.FilesRead,
	Endpoint: func(f *functiontest.Fakes, auth *access.Authenticator) *httpapi.Endpoint {
		return endpoint(auth, f.Reader(), functiontest.Prefix, functiontest.MetaKey)
	},
}

func TestRefusals(t *testing.T) { suite.Refusals(t) }

const handle = functiontest.Prefix + functiontest.FileID

// input is a change of the event: another input.
func input(v string) func(*httpapi.Event) { return functiontest.Body(`{"input":` + v + `}`) }

func TestAnswers(t *testing.T) {
	t.Parallel()
	type fakes = functiontest.Fakes
	change := func(c ...func(*httpapi.Event)) []func(*httpapi.Event) { return c }
	ready := func(t *testing.T, f *fakes) { f.Ready(t) }
	distinct := func(n int) string {
		handles := make([]string, n)
		for i := range handles {
			handles[i] = fmt.Sprintf(`"claim://f_%026d"`, i)
		}
		return `{"all":[` + strings.Join(handles, ",") + `]}`
	}
	suite.Run(t, map[string]functiontest.Case{
		"resolved":           {Setup: ready},
		"resolved-once":      {Setup: ready, Change: change(input(`{"a":"` + handle + `","b":[["` + handle + `"]],"c":{"d":"` + handle + `"}}`))},
		"nothing-to-resolve": {Setup: ready, Change: change(input(`{"a":"see ` + handle + `","` + handle + `":1,"b":"CLAIM://x","c":[null,true,1.5,""],"d":{}}`))},
		"two-files": {Setup: func(t *testing.T, f *fakes) {
			f.Ready(t)
			f.Ready(t, func(file *files.File) { file.ID, file.Filename = "f_00000000000000000000000000", "<b>&amp;.pdf" })
		}, Change: change(input(`["`+handle+`","claim://f_00000000000000000000000000"]`), functiontest.Body(`{"input":{"x":["`+handle+`","claim://f_00000000000000000000000000"]}}`))},
		"verified-on-demand": {Setup: func(t *testing.T, f *fakes) { f.Stage(t, f.Reserve(t).ID, functiontest.PDF) }},
		"no-input":           functiontest.Change(functiontest.Body(`{"inputs":{}}`)),
		"input-no-object":    functiontest.Change(input(`"` + handle + `"`)),
		"not-json":           functiontest.Change(functiontest.Body(`{"input":{}`)),
		"repeated-deep":      functiontest.Change(input(`{"a":[{"b":1,"b":2}]}`)),
		"body-too-large":     functiontest.Change(input(`{"a":"` + strings.Repeat("a", httpapi.MaxJSON) + `"}`)),
		"too-many-handles":   functiontest.Change(input(distinct(51))),
		"fifty-handles":      functiontest.Change(input(distinct(50))), // as many as may be, of which none exists
		"missing":            {},
		"foreign":            {Setup: func(t *testing.T, f *fakes) { f.Ready(t, func(file *files.File) { file.Account = "globex" }) }},
		"malformed":          {Setup: ready, Change: change(input(`{"a":"` + handle + `","b":"claim://f_short"}`))},
		"second-missing":     {Setup: ready, Change: change(input(`{"a":"` + handle + `","b":"claim://f_00000000000000000000000000"}`))},
		"not-uploaded":       {Setup: func(t *testing.T, f *fakes) { f.Reserve(t) }},
		"claim-required":     {Setup: func(t *testing.T, f *fakes) { f.Ready(t, func(file *files.File) { file.SingleUse = true }) }},
		"upload-expired":     {Setup: func(t *testing.T, f *fakes) { f.Reserve(t); f.Clock.Advance(time.Hour) }},
		"file-rejected":      {Setup: func(t *testing.T, f *fakes) { f.Verified(t, make([]byte, len(functiontest.PDF))) }},
		"file-expired":       {Setup: func(t *testing.T, f *fakes) { f.Ready(t); f.Clock.Advance(24 * time.Hour) }},
		"file-deleted":       {Setup: func(t *testing.T, f *fakes) { f.End(t, f.Ready(t), files.Deleted) }},
		"file-spent":         {Setup: func(t *testing.T, f *fakes) { f.End(t, f.Ready(t), files.Spent) }},
	})
}

// Missing, foreign and malformed handles differ in the handle alone.
func TestUnreadableHandlesAreAlike(t *testing.T) {
	t.Parallel()
	bodies := map[string]bool{}
	for _, h := range []string{handle, "claim://f_00000000000000000000000000", "claim://", "claim://f_", "claim://" + strings.ToUpper(functiontest.FileID), handle + "/", "claim://../../etc", "claim://\\u0000", "claim://" + handle, "claim://💥"} {
		f := functiontest.New(t)
		f.Ready(t, func(file *files.File) { file.Account = "globex" })
		a := f.Serve(t, suite.Endpoint(f, f.Auth(t, suite.Scope)), functiontest.Event(t, "resolve", input(`{"a":"`+h+`"}`)))
		var doc map[string]any
		if err := json.Unmarshal([]byte(a.Body), &doc); err != nil {
			t.Fatal(err)
		}
		if doc["code"] != "file_not_found" || doc["handle"] == nil {
			t.Errorf("%s: got %d %s", h, a.StatusCode, a.Body)
		}
		delete(doc, "handle")
		rest, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		bodies[fmt.Sprint(a.StatusCode, a.Headers, string(rest))] = true
	}
	if len(bodies) != 1 {
		t.Errorf("%d different answers: %v", len(bodies), bodies)
	}
}

func TestFindHandles(t *testing.T) {
	t.Parallel()
	for value, want := range map[string][]string{
		`{}`:                              nil,
		`{"a":"claim://1"}`:               {"claim://1"},
		`["claim://1",["claim://2"]]`:     {"claim://1", "claim://2"},
		`{"a":{"b":[{"c":"claim://1"}]}}`: {"claim://1"},
		`{"b":"claim://2","a":"claim://1","c":"claim://2"}`:                       {"claim://2", "claim://1"},
		`{"claim://1":"claim://2"}`:                                               {"claim://2"},
		`{"claim://1":{"claim://2":["claim://3"]},"claim://4":1,"x":"claim://5"}`: {"claim://3", "claim://5"},
		`{"a":[],"claim://1":{},"b":"claim://2"}`:                                 {"claim://2"},
		`{"a":1,"claim://1":null,"b":true,"claim://2":[1,2],"c":"claim://3"}`:     {"claim://3"},
		`"claim://1"`:                      {"claim://1"},
		`{"a":"\u0063laim:\/\/1"}`:         {"claim://1"},
		`{"a":" claim://1"}`:               nil,
		`{"a":"claim://1 "}`:               nil,
		`{"a":"claim://1\u00a0and more"}`:  nil,
		`{"a":"claim://1\n"}`:              nil,
		`{"a":"Claim://1"}`:                nil,
		`{"a":"claim:/1"}`:                 nil,
		`{"a":"xclaim://1"}`:               nil,
		`{"a":"claim://1,claim://2"}`:      {"claim://1,claim://2"},
		`{"a":12345678901234567890.5e400}`: nil,
		strings.Repeat("[", 5000) + `"claim://1"` + strings.Repeat("]", 5000): {"claim://1"},
	} {
		got, err := findHandles(json.RawMessage(value), "claim://")
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%.60s: got %q, %v, want %q", value, got, err, want)
		}
	}
	if got, err := findHandles(json.RawMessage(`{"a":"file+x://1","b":"claim://1"}`), "file+x://"); err != nil || !slices.Equal(got, []string{"file+x://1"}) {
		t.Errorf("another prefix: got %q, %v", got, err)
	}
}

// Against the plain way of finding them: decode all of it, then look at every value.
func FuzzFindHandles(f *testing.F) {
	for _, seed := range []string{`{"a":["claim://1",{"claim://2":"claim://3"}]}`, `[[],{},"claim://x"]`, `"claim://\ud800"`, `{"a":1e999,"b":"claim://\u00a0"}`, `{"a":{},"claim://k":{"x":[]},"claim://v":"claim://v"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		var plain any
		dec := json.NewDecoder(bytes.NewReader(value))
		dec.UseNumber()
		if !json.Valid(value) || dec.Decode(&plain) != nil {
			return // the endpoint has checked that
		}
		got, err := findHandles(value, "claim://")
		if err != nil {
			t.Fatalf("refused: %v", err)
		}
		want := map[string]bool{}
		var walk func(v any)
		walk = func(v any) {
			switch v := v.(type) {
			case string:
				if strings.HasPrefix(v, "claim://") && len(strings.Fields(v)) == 1 && strings.Fields(v)[0] == v {
					want[v] = true
				}
			case []any:
				for _, e := range v {
					walk(e)
				}
			case map[string]any:
				for _, e := range v {
					walk(e)
				}
			}
		}
		walk(plain)
		seen := map[string]bool{}
		for _, h := range got {
			if seen[h] || !utf8.ValidString(h) {
				t.Fatalf("%q came twice or isn't text", h)
			}
			seen[h] = true
		}
		for h := range want { // repeated members hide values from the plain way, so only this direction holds
			if !seen[h] {
				t.Fatalf("%q wasn't found in %s", h, value)
			}
		}
	})
}
