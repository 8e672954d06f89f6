package access

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
)

// Keys is where key records live.
type Keys interface {
	KeyReader
	// PutKey stores a new key.
	PutKey(ctx context.Context, k Key) error
	// ListKeys returns the keys of an account, newest first, revoked ones too.
	ListKeys(ctx context.Context, account string) ([]Key, error)
	// RevokeKey ends a key of the account at now. A revoked one stays as it is; a missing or foreign one is
	// ErrKeyNotFound.
	RevokeKey(ctx context.Context, account, id string, now time.Time) error
}

// Grant is what a new key shall be allowed to do: scopes, or a role that stands for them.
type Grant struct {
	Actor     string
	Scopes    []string // nil when not given; an empty list makes a key that may do nothing
	Role      string   // "" when not given
	ExpiresAt time.Time
}

// Issue makes a key for account after checking g; within says which scopes the new key may have at the most. The
// errors are *files.ValidationError and files.ErrForbidden.
func Issue(account string, g Grant, within []files.Scope, now time.Time) (Key, string, error) {
	var bad files.ValidationError
	if !ValidName(account) {
		bad.Add("account", nameMessage)
	}
	if !ValidName(g.Actor) {
		bad.Add("actor", nameMessage)
	}
	scopes := g.scopes(&bad)
	expires := g.ExpiresAt.UTC().Truncate(time.Second)
	switch {
	case expires.IsZero():
	case !expires.After(now):
		bad.Add("expires_at", "must be in the future")
	case expires.Year() > 9999: // RFC 3339 could not show it
		bad.Add("expires_at", "must be before the year 10000")
	}
	if err := bad.Err(); err != nil {
		return Key{}, "", err
	}
	for _, s := range scopes {
		if !slices.Contains(within, s) {
			return Key{}, "", fmt.Errorf("granting %s: %w", s, files.ErrForbidden)
		}
	}
	k, text := NewKey(account, g.Actor, scopes, now, expires)
	return k, text, nil
}

func (g Grant) scopes(bad *files.ValidationError) []files.Scope {
	switch {
	case g.Role != "" && g.Scopes != nil:
		bad.Add("role", "can't be given together with scopes")
	case g.Role != "":
		if r, ok := roles[g.Role]; ok {
			return r
		}
		bad.Add("role", "must be one of "+strings.Join(RoleNames, ", "))
	case g.Scopes == nil:
		bad.Add("scopes", "must be given, or a role instead")
	}
	out := make([]files.Scope, 0, len(g.Scopes))
	for _, s := range g.Scopes {
		if !slices.Contains(files.Scopes, files.Scope(s)) {
			bad.Add("scopes", fmt.Sprintf("%q is not a scope; there are %s", s, scopeList()))
			continue
		}
		out = append(out, files.Scope(s))
	}
	return sortScopes(out)
}

func scopeList() string {
	names := make([]string, len(files.Scopes))
	for i, s := range files.Scopes {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}

const nameMessage = "must be 1 to 128 characters of letters, digits and . _ - @ :, beginning with a letter or digit"

// ValidName reports whether s may name an account or an actor. The characters are safe in table keys and in role
// session names.
func ValidName(s string) bool {
	if s == "" || len(s) > 128 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || !strings.ContainsRune("._-@:", rune(c))) {
			return false
		}
	}
	return true
}
