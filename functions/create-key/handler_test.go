package main

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/cryptotest"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
	"claimcheck.dev/claimcheck/shared/functiontest"
	"claimcheck.dev/claimcheck/shared/httpapi"
)

var suite = functiontest.Suite{
	Sample: "create-key", Scope: files.KeysManage,
	Endpoint: func(f *functiontest.Fakes, auth *access.Authenticator) *httpapi.Endpoint {
		return endpoint(auth, f.Keys, f.Clock.Now)
	},
}

func TestRefusals(t *testing.T) { suite.Refusals(t) }

// The key that is used here has the scope keys:manage alone, so it can give no other.
func TestAnswers(t *testing.T) {
	t.Parallel()
	body := functiontest.Body
	onlyOne := func(t *testing.T, f *functiontest.Fakes, _ httpapi.Answer) {
		if list, err := f.Keys.ListKeys(t.Context(), "acme"); err != nil || len(list) != 1 {
			t.Errorf("there are %d keys, %v: the refused one was stored", len(list), err)
		}
	}
	cases := map[string]functiontest.Case{
		"more-than-creator": {},
		"no-actor":          functiontest.Change(body(`{"scopes":[]}`)),
		"invalid-fields":    functiontest.Change(body(`{"actor":1,"scopes":["keys:manage",2],"role":"","expires_at":"tomorrow","account":"globex"}`)),
		"invalid-values":    functiontest.Change(body(`{"actor":"a b","scopes":["files:*"],"expires_at":"2026-03-14T09:26:53Z"}`)),
		"scopes-and-role":   functiontest.Change(body(`{"actor":"bob","scopes":[],"role":"viewer"}`)),
		"neither":           functiontest.Change(body(`{"actor":"bob"}`)),
		"expires-too-late":  functiontest.Change(body(`{"actor":"bob","scopes":[],"expires_at":"9999-12-31T23:59:59-01:00"}`)),
		"expires-never":     functiontest.Change(body(`{"actor":"bob","scopes":[],"expires_at":"0001-01-01T00:00:00Z"}`)),
		"body-too-large":    functiontest.Change(body(strings.Repeat(" ", httpapi.MaxJSON+1))),
		"store-is-away": {Setup: func(_ *testing.T, f *functiontest.Fakes) {
			f.Faults.Fail(filestest.Step{Op: "PutKey", N: 2}, filestest.Before)
		}, Change: []func(*httpapi.Event){body(`{"actor":"bob","scopes":[]}`)}},
	}
	for name, c := range cases {
		c.After = onlyOne
		cases[name] = c
	}
	suite.Run(t, cases)
}

// Not parallel: keys come from the random source of the process, which is made a fixed one.
func TestMade(t *testing.T) {
	for name, body := range map[string]string{
		"created":         `{"actor":"contract-reader","role":"member"}`,
		"created-to-end":  `{"actor":"contract-reader","scopes":["runs:read","files:read","files:read"],"expires_at":"2026-12-31T23:59:59.9+01:00"}`,
		"created-for-all": `{"actor":"boss@acme.test","role":"owner"}`,
		"created-for-nil": `{"actor":"0","scopes":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			cryptotest.SetGlobalRandom(t, 1)
			f := functiontest.New(t)
			auth := f.Auth(t, files.Scopes...)
			ev := functiontest.Event(t, "create-key", functiontest.Body(body))
			a := f.Serve(t, suite.Endpoint(f, auth), ev)
			functiontest.Golden(t, name, ev, a)

			var made httpapi.KeyObject
			if err := json.Unmarshal([]byte(a.Body), &made); err != nil {
				t.Fatal(err)
			}
			caller, err := auth.Caller(t.Context(), "Bearer "+made.Key)
			if err != nil || caller.Account != "acme" || caller.Actor != made.Actor || caller.KeyID != made.ID || len(caller.Scopes) != len(made.Scopes) {
				t.Errorf("the key speaks for %+v, %v", caller, err)
			}
		})
	}
}
