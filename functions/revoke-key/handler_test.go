package main

import (
	"errors"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
	"claimcheck.dev/claimcheck/shared/functiontest"
	"claimcheck.dev/claimcheck/shared/httpapi"
)

const victim = "6b3z8d1m5j2g9u4s" // of the sample event

var suite = functiontest.Suite{
	Sample: "revoke-key", Scope: files.KeysManage,
	Endpoint: func(f *functiontest.Fakes, auth *access.Authenticator) *httpapi.Endpoint {
		return endpoint(auth, f.Keys, f.Clock.Now)
	},
}

func TestRefusals(t *testing.T) { suite.Refusals(t) }

func TestNotFound(t *testing.T) {
	t.Parallel()
	suite.NotFound(t, func(t *testing.T, f *functiontest.Fakes, account, actor string) { f.AddKey(t, victim, account, actor) })
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	add := func(t *testing.T, f *functiontest.Fakes) { f.AddKey(t, victim, "acme", "bob") }
	suite.Run(t, map[string]functiontest.Case{
		"revoked": {Setup: add},
		"revoked-before": {Setup: func(t *testing.T, f *functiontest.Fakes) {
			add(t, f)
			if err := f.Keys.RevokeKey(t.Context(), "acme", victim, f.Clock.Now()); err != nil {
				t.Fatal(err)
			}
		}},
		"revoked-itself": functiontest.Change(functiontest.ID(functiontest.KeyID)),
		"store-is-away": {Setup: func(t *testing.T, f *functiontest.Fakes) {
			add(t, f)
			f.Faults.Fail(filestest.Step{Op: "RevokeKey", N: 1}, filestest.Before)
		}},
	})
}

// A revoked key is refused within a minute, wherever it was used before.
func TestRevokedWithinAMinute(t *testing.T) {
	t.Parallel()
	f := functiontest.New(t)
	e := suite.Endpoint(f, f.Auth(t, suite.Scope))
	f.AddKey(t, victim, "acme", "bob", files.KeysManage)
	elsewhere := &access.Authenticator{Keys: f.Keys, Now: f.Clock.Now} // another instance
	header := "Bearer ck_" + victim + "_" + functiontest.Secret
	if _, err := elsewhere.Caller(t.Context(), header); err != nil {
		t.Fatal(err)
	}
	if a := f.Serve(t, e, functiontest.Event(t, "revoke-key")); a.StatusCode != 204 || a.Body != "" {
		t.Fatalf("got %d %s", a.StatusCode, a.Body)
	}
	f.Clock.Advance(time.Minute)
	if _, err := elsewhere.Caller(t.Context(), header); !errors.Is(err, files.ErrUnauthorized) {
		t.Errorf("after a minute: %v", err)
	}
	if a := f.Serve(t, e, functiontest.Event(t, "revoke-key", functiontest.Key(victim))); a.StatusCode != 401 {
		t.Errorf("the revoked key still revokes: %d", a.StatusCode)
	}
}
