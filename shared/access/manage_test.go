package access_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
)

var now = time.Date(2026, 3, 14, 9, 26, 53, 500, time.UTC)

func TestIssue(t *testing.T) {
	t.Parallel()
	const (
		name   = "must be 1 to 128 characters of letters, digits and . _ - @ :, beginning with a letter or digit"
		scopes = "there are files:read, files:write, files:delete, keys:manage, agents:manage, calls:write, runs:read, runs:write"
	)
	for what, c := range map[string]struct {
		account string
		grant   access.Grant
		within  []files.Scope
		scopes  []files.Scope
		bad     []string // "field: message"
	}{
		"scopes in any order":     {"acme", access.Grant{Actor: "ada", Scopes: []string{"runs:read", "files:read", "runs:read"}}, files.Scopes, []files.Scope{"files:read", "runs:read"}, nil},
		"no scopes":               {"acme", access.Grant{Actor: "ada", Scopes: []string{}}, nil, []files.Scope{}, nil},
		"a role":                  {"acme", access.Grant{Actor: "ada", Role: "viewer"}, files.Scopes, []files.Scope{"files:read", "runs:read"}, nil},
		"exactly the creator's":   {"acme", access.Grant{Actor: "ada", Role: "viewer"}, []files.Scope{"runs:read", "files:read"}, []files.Scope{"files:read", "runs:read"}, nil},
		"more than the creator's": {"acme", access.Grant{Actor: "ada", Scopes: []string{"files:read", "files:delete"}}, []files.Scope{"files:read", "keys:manage"}, nil, []string{"forbidden"}},
		"role over the creator's": {"acme", access.Grant{Actor: "ada", Role: "owner"}, files.Scopes[1:], nil, []string{"forbidden"}},
		"neither":                 {"acme", access.Grant{Actor: "ada"}, files.Scopes, nil, []string{"scopes: must be given, or a role instead"}},
		"both":                    {"acme", access.Grant{Actor: "ada", Role: "viewer", Scopes: []string{}}, files.Scopes, nil, []string{"role: can't be given together with scopes"}},
		"unknown role":            {"acme", access.Grant{Actor: "ada", Role: "root"}, files.Scopes, nil, []string{"role: must be one of viewer, member, builder, admin, owner"}},
		"role in capitals":        {"acme", access.Grant{Actor: "ada", Role: "Owner"}, files.Scopes, nil, []string{"role: must be one of viewer, member, builder, admin, owner"}},
		"unknown scope":           {"acme", access.Grant{Actor: "ada", Scopes: []string{"files:*"}}, files.Scopes, nil, []string{`scopes: "files:*" is not a scope; ` + scopes}},
		"everything at once": {"", access.Grant{Actor: "a b", Scopes: []string{"files:read "}, ExpiresAt: now}, nil, nil,
			[]string{"account: " + name, "actor: " + name, `scopes: "files:read " is not a scope; ` + scopes, "expires_at: must be in the future"}},
		"expired":            {"acme", access.Grant{Actor: "ada", Scopes: []string{}, ExpiresAt: now.Add(-time.Hour)}, nil, nil, []string{"expires_at: must be in the future"}},
		"within this second": {"acme", access.Grant{Actor: "ada", Scopes: []string{}, ExpiresAt: now.Add(time.Millisecond)}, nil, nil, []string{"expires_at: must be in the future"}},
		"after all numbers":  {"acme", access.Grant{Actor: "ada", Scopes: []string{}, ExpiresAt: time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600))}, nil, nil, []string{"expires_at: must be before the year 10000"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			k, text, err := access.Issue(c.account, c.grant, c.within, now)
			var invalid *files.ValidationError
			var bad []string
			switch {
			case errors.As(err, &invalid):
				for _, f := range invalid.Fields {
					bad = append(bad, f.Field+": "+f.Message)
				}
			case errors.Is(err, files.ErrForbidden):
				bad = []string{"forbidden"}
			case err != nil:
				t.Fatal(err)
			}
			if !slices.Equal(bad, c.bad) {
				t.Errorf("refused with %q, want %q", bad, c.bad)
			}
			if !slices.Equal(k.Scopes, c.scopes) {
				t.Errorf("scopes %v, want %v", k.Scopes, c.scopes)
			}
			if c.bad != nil && (text != "" || !reflect.DeepEqual(k, access.Key{})) {
				t.Errorf("refused, and still made %+v", k)
			}
			if c.bad == nil && (k.Account != c.account || k.Actor != c.grant.Actor || !strings.HasPrefix(text, "ck_"+k.ID+"_")) {
				t.Errorf("made %+v", k)
			}
		})
	}
}

func TestExpiryIsInWholeSeconds(t *testing.T) {
	t.Parallel()
	end := now.Add(time.Hour).In(time.FixedZone("", 7200))
	k, _, err := access.Issue("acme", access.Grant{Actor: "ada", Scopes: []string{}, ExpiresAt: end}, nil, now)
	if want := time.Date(2026, 3, 14, 10, 26, 53, 0, time.UTC); err != nil || k.ExpiresAt != want {
		t.Errorf("got %v, %v, want %v", k.ExpiresAt, err, want)
	}
	forever, _, err := access.Issue("acme", access.Grant{Actor: "ada", Scopes: []string{}}, nil, now)
	if err != nil || !forever.ExpiresAt.IsZero() || !forever.Valid(now.AddDate(1000, 0, 0)) {
		t.Errorf("got %v, %v, want a key without an end", forever.ExpiresAt, err)
	}
}

// The contract says what each role has.
func TestRoles(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"viewer":  "files:read runs:read",
		"member":  "files:read files:write calls:write runs:read runs:write",
		"builder": "files:read files:write files:delete agents:manage calls:write runs:read runs:write",
		"admin":   "files:read files:write files:delete keys:manage agents:manage calls:write runs:read runs:write",
		"owner":   "files:read files:write files:delete keys:manage agents:manage calls:write runs:read runs:write",
	}
	if len(access.RoleNames) != len(want) {
		t.Errorf("roles %v", access.RoleNames)
	}
	var below []files.Scope
	for _, role := range access.RoleNames {
		k, _, err := access.Issue("acme", access.Grant{Actor: "ada", Role: role}, files.Scopes, now)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range k.Scopes {
			got = append(got, string(s))
		}
		if strings.Join(got, " ") != want[role] {
			t.Errorf("%s has %v, want %s", role, got, want[role])
		}
		for _, s := range below {
			if !slices.Contains(k.Scopes, s) {
				t.Errorf("%s lacks %s, which the role below it has", role, s)
			}
		}
		below = k.Scopes
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"a", "A", "0", "ada", "contract-reader", "ada@example.com", "team:ada", "a.b_c-d@e:f", strings.Repeat("a", 128)} {
		if !access.ValidName(s) {
			t.Errorf("%q is refused", s)
		}
	}
	for _, s := range []string{"", " ", "a b", "-a", "_a", ".", ".a", "@a", ":a", "a#b", "a/b", "a\x00", "a\n", "é", "аda", "a\u200b", strings.Repeat("a", 129), "a\xff", "a,b", "a'b", "a%b", "a+b", "a=b"} {
		if access.ValidName(s) {
			t.Errorf("%q is accepted", s)
		}
	}
}

func TestValidity(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		key   access.Key
		valid bool
	}{
		{access.Key{}, true},
		{access.Key{ExpiresAt: now.Add(1)}, true},
		{access.Key{ExpiresAt: now}, false},
		{access.Key{RevokedAt: now.Add(time.Hour)}, false},
		{access.Key{ExpiresAt: now.Add(time.Hour), RevokedAt: now.Add(-time.Hour)}, false},
	} {
		if got := c.key.Valid(now); got != c.valid {
			t.Errorf("%d: %v", i, got)
		}
	}
	for id, valid := range map[string]bool{"6b3z8d1m5j2g9u4s": true, "": false, "6b3z8d1m5j2g9u4": false, "6b3z8d1m5j2g9u4s0": false, "6B3Z8D1M5J2G9U4S": false, "6b3z8d1m5j2g9u4_": false} {
		if access.ValidKeyID(id) != valid {
			t.Errorf("%q: valid is %v", id, !valid)
		}
	}
}
