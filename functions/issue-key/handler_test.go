package main

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/cryptotest"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/filestest"
	"claimcheck.dev/claimcheck/shared/functiontest"
)

// Not parallel: keys come from the random source of the process, which is made a fixed one.
func TestIssued(t *testing.T) {
	var sample json.RawMessage
	functiontest.Sample(t, "issue-key", &sample)
	for name, event := range map[string]string{
		"issued":         string(sample),
		"issued-scopes":  `{"account":"acme","actor":"bot","scopes":["files:write","files:read"],"expires_at":"2026-12-31T23:59:59Z"}`,
		"issued-nothing": `{"account":"acme","actor":"bot","scopes":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			cryptotest.SetGlobalRandom(t, 1)
			f := functiontest.New(t)
			got, err := issuer{keys: f.Keys, now: f.Clock.Now}.issue(t.Context(), json.RawMessage(event))
			if err != nil {
				t.Fatal(err)
			}
			functiontest.GoldenJSON(t, name, got)
			auth := &access.Authenticator{Keys: f.Keys, Now: f.Clock.Now}
			caller, err := auth.Caller(t.Context(), "Bearer "+got.Key)
			if err != nil || caller.Account != "acme" || caller.Actor != got.Actor || len(caller.Scopes) != len(got.Scopes) {
				t.Errorf("the key speaks for %+v, %v", caller, err)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ event, want string }{
		"empty":         {`{}`, "account: must be"},
		"null":          {`null`, "account: must be"},
		"array":         {`[]`, "the event must be {account, actor, scopes or role, expires_at?}"},
		"text":          {`"acme"`, "the event must be"},
		"unknown field": {`{"account":"acme","actor":"ada","role":"owner","scope":"x"}`, `unknown field "scope"`},
		"wrong types":   {`{"account":1}`, "the event must be"},
		"no actor":      {`{"account":"acme","role":"owner"}`, "actor: must be"},
		"bad account":   {`{"account":"a/b","actor":"ada","role":"owner"}`, "account: must be"},
		"no grant":      {`{"account":"acme","actor":"ada"}`, "scopes: must be given"},
		"two grants":    {`{"account":"acme","actor":"ada","role":"owner","scopes":[]}`, "role: can't be given together"},
		"unknown role":  {`{"account":"acme","actor":"ada","role":"root"}`, "role: must be one of"},
		"unknown scope": {`{"account":"acme","actor":"ada","scopes":["*"]}`, `"*" is not a scope`},
		"expired":       {`{"account":"acme","actor":"ada","role":"owner","expires_at":"2020-01-01T00:00:00Z"}`, "expires_at: must be in the future"},
		"bad time":      {`{"account":"acme","actor":"ada","role":"owner","expires_at":"soon"}`, "the event must be"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := functiontest.New(t)
			got, err := issuer{keys: f.Keys, now: f.Clock.Now}.issue(t.Context(), json.RawMessage(c.event))
			if err == nil || !strings.Contains(err.Error(), c.want) || got.Key != "" {
				t.Errorf("got %+v, %v, want %s", got, err, c.want)
			}
			if n := len(f.Faults.Steps()); n > 0 {
				t.Errorf("%d calls were made to the key store", n)
			}
		})
	}
	t.Run("store is away", func(t *testing.T) {
		t.Parallel()
		f := functiontest.New(t)
		f.Faults.Fail(filestest.Step{Op: "PutKey", N: 1}, filestest.Before)
		got, err := issuer{keys: f.Keys, now: f.Clock.Now}.issue(t.Context(), json.RawMessage(`{"account":"acme","actor":"ada","role":"owner"}`))
		if err == nil || got.Key != "" {
			t.Errorf("got %+v, %v: a key that isn't stored", got, err)
		}
	})
}
