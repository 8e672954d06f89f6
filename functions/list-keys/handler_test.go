package main

import (
	"strings"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
	"claimcheck.dev/claimcheck/shared/functiontest"
	"claimcheck.dev/claimcheck/shared/httpapi"
)

var suite = functiontest.Suite{
	Sample: "list-keys", Scope: files.KeysManage,
	Endpoint: func(f *functiontest.Fakes, auth *access.Authenticator) *httpapi.Endpoint {
		return endpoint(auth, f.Keys)
	},
}

func TestRefusals(t *testing.T) { suite.Refusals(t) }

func TestAnswers(t *testing.T) {
	t.Parallel()
	put := func(t *testing.T, f *functiontest.Fakes, k access.Key) {
		t.Helper()
		k.SecretHash = []byte("the hash of a secret")
		if err := f.Keys.PutKey(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}
	suite.Run(t, map[string]functiontest.Case{
		"its-own": {},
		"listed": {Setup: func(t *testing.T, f *functiontest.Fakes) {
			now := f.Clock.Now()
			put(t, f, access.Key{ID: "newer00000000000", Account: "acme", Actor: "bob", Scopes: []files.Scope{"files:read"}, CreatedAt: now, ExpiresAt: now.Add(time.Hour)})
			put(t, f, access.Key{ID: "revoked000000000", Account: "acme", Actor: "bob", CreatedAt: now.Add(-time.Minute), RevokedAt: now})
			put(t, f, access.Key{ID: "expired000000000", Account: "acme", Actor: "bob", Scopes: files.Scopes, CreatedAt: now.Add(-24 * time.Hour), ExpiresAt: now})
			put(t, f, access.Key{ID: "foreign000000000", Account: "globex", Actor: "ada", CreatedAt: now})
		}, After: func(t *testing.T, _ *functiontest.Fakes, a httpapi.Answer) {
			if strings.Contains(a.Body, "hash") || strings.Contains(a.Body, "foreign") || strings.Contains(a.Body, `"key":`) {
				t.Errorf("too much is listed: %s", a.Body)
			}
		}},
		"store-is-away": {Setup: func(_ *testing.T, f *functiontest.Fakes) {
			f.Faults.Fail(filestest.Step{Op: "ListKeys", N: 1}, filestest.Before)
		}},
	})
}
