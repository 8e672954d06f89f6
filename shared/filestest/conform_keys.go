package filestest

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
)

// TestKeys checks a key store against the contract of access.Keys. Open returns new and empty ones each time.
func TestKeys(t *testing.T, open func(t *testing.T) access.Keys) {
	for name, test := range map[string]func(t *testing.T, s access.Keys){
		"read back": testKeysReadBack,
		"twice":     testKeysTwice,
		"list":      testKeysList,
		"revoke":    testKeysRevoke,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func putKey(t *testing.T, s access.Keys, account, actor string, scopes []files.Scope, created, expires time.Time) access.Key {
	t.Helper()
	k, _ := access.NewKey(account, actor, scopes, created, expires)
	if err := s.PutKey(t.Context(), k); err != nil {
		t.Fatalf("storing a key: %v", err)
	}
	return k
}

func wantKey(t *testing.T, s access.Keys, want access.Key) {
	t.Helper()
	got, err := s.Key(t.Context(), want.ID)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func wantKeyErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}

func testKeysReadBack(t *testing.T, s access.Keys) {
	wantKey(t, s, putKey(t, s, "acme", "alice", files.Scopes, Now, time.Time{}))
	wantKey(t, s, putKey(t, s, "acme", "alice", []files.Scope{}, Now, Now.Add(time.Hour)))
	_, err := s.Key(t.Context(), files.RandomText(16))
	wantKeyErr(t, err, access.ErrKeyNotFound)
}

func testKeysTwice(t *testing.T, s access.Keys) {
	k := putKey(t, s, "acme", "alice", files.Scopes, Now, time.Time{})
	other, _ := access.NewKey("other", "bob", files.Scopes, Now, time.Time{})
	other.ID = k.ID
	if err := s.PutKey(t.Context(), other); err == nil {
		t.Error("a second key was stored under the same id")
	}
	wantKey(t, s, k)
}

func testKeysList(t *testing.T, s access.Keys) {
	list := func(account string) []string {
		t.Helper()
		keys, err := s.ListKeys(t.Context(), account)
		if err != nil {
			t.Fatalf("listing keys: %v", err)
		}
		ids := []string{}
		for _, k := range keys {
			wantKey(t, s, k)
			ids = append(ids, k.ID)
		}
		return ids
	}
	if got := list("acme"); len(got) != 0 {
		t.Errorf("an account without keys has %v", got)
	}
	middle := putKey(t, s, "acme", "alice", nil, Now, time.Time{})
	old := putKey(t, s, "acme", "bob", nil, Now.Add(-1000*24*time.Hour), Now.Add(-time.Hour))
	putKey(t, s, "other", "alice", nil, Now, time.Time{})
	recent := putKey(t, s, "acme", "alice", nil, Now.Add(time.Second), time.Time{})
	wantKeyErr(t, s.RevokeKey(t.Context(), "acme", middle.ID, Now), nil)
	if got, want := list("acme"), []string{recent.ID, middle.ID, old.ID}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v: newest first, with the expired and the revoked", got, want)
	}
}

func testKeysRevoke(t *testing.T, s access.Keys) {
	k := putKey(t, s, "acme", "alice", files.Scopes, Now, time.Time{})
	wantKeyErr(t, s.RevokeKey(t.Context(), "other", k.ID, Now), access.ErrKeyNotFound)
	wantKeyErr(t, s.RevokeKey(t.Context(), "acme", files.RandomText(16), Now), access.ErrKeyNotFound)
	wantKey(t, s, k)
	k.RevokedAt = Now.Add(time.Minute)
	for _, at := range []time.Duration{time.Minute, time.Hour} { // the second time changes nothing
		wantKeyErr(t, s.RevokeKey(t.Context(), "acme", k.ID, Now.Add(at)), nil)
		wantKey(t, s, k)
	}
}
