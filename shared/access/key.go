// Package access decides who a request comes from: keys, their scopes and the roles that bundle scopes.
//
// A key is `ck_<id>_<secret>`, sent as `Authorization: Bearer …`. Only the SHA-256 of the secret is stored, and it is
// compared in constant time. Secrets are random and long, so a plain hash is enough.
package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"slices"
	"strings"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
)

const (
	keyPrefix = "ck_"
	keyID     = 16 // characters of [a-z0-9]
	keySecret = 40 // characters of [a-z0-9]: 206 bits
)

// ErrKeyNotFound is the answer for missing, foreign and malformed key ids alike.
var ErrKeyNotFound = errors.New("key not found")

// Key is the record of a key. The secret itself isn't stored anywhere.
type Key struct {
	ID         string
	Account    string
	Actor      string
	Scopes     []files.Scope
	SecretHash []byte // SHA-256 of the secret
	CreatedAt  time.Time
	ExpiresAt  time.Time // zero: never
	RevokedAt  time.Time // zero: not revoked
}

// Valid reports whether the key may be used at now.
func (k Key) Valid(now time.Time) bool {
	return k.RevokedAt.IsZero() && (k.ExpiresAt.IsZero() || now.Before(k.ExpiresAt))
}

func (k Key) caller() files.Caller {
	return files.Caller{Account: k.Account, Actor: k.Actor, Scopes: k.Scopes, KeyID: k.ID}
}

// NewKey makes a key record and the text that is shown once.
func NewKey(account, actor string, scopes []files.Scope, now, expires time.Time) (Key, string) {
	id, secret := files.RandomText(keyID), files.RandomText(keySecret)
	hash := sha256.Sum256([]byte(secret))
	k := Key{
		ID: id, Account: account, Actor: actor, Scopes: scopes, SecretHash: hash[:],
		CreatedAt: now.UTC().Truncate(time.Second), ExpiresAt: expires,
	}
	return k, keyPrefix + id + "_" + secret
}

// ValidKeyID reports whether id has the form of a key id.
func ValidKeyID(id string) bool { return files.ValidRandomText(id, keyID) }

// parseBearer splits an Authorization header into key id and secret.
func parseBearer(header string) (id, secret string, ok bool) {
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", "", false
	}
	rest, ok := strings.CutPrefix(strings.Trim(token, " "), keyPrefix)
	if !ok {
		return "", "", false
	}
	id, secret, _ = strings.Cut(rest, "_")
	return id, secret, ValidKeyID(id) && files.ValidRandomText(secret, keySecret)
}

// KeyReader reads keys by id.
type KeyReader interface {
	// Key returns the record of id, revoked and expired ones too, or ErrKeyNotFound.
	Key(ctx context.Context, id string) (Key, error)
}

// Roles bundle scopes.
var roles = map[string][]files.Scope{
	"viewer":  {files.FilesRead, files.RunsRead},
	"member":  {files.FilesRead, files.FilesWrite, files.CallsWrite, files.RunsRead, files.RunsWrite},
	"builder": {files.FilesRead, files.FilesWrite, files.FilesDelete, files.AgentsManage, files.CallsWrite, files.RunsRead, files.RunsWrite},
	"admin":   {files.FilesRead, files.FilesWrite, files.FilesDelete, files.KeysManage, files.AgentsManage, files.CallsWrite, files.RunsRead, files.RunsWrite},
	"owner":   files.Scopes,
}

// RoleNames lists the roles, from least to most.
var RoleNames = []string{"viewer", "member", "builder", "admin", "owner"}

// matches compares a secret with a stored hash in constant time.
func matches(secret string, hash []byte) bool {
	sum := sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(sum[:], hash) == 1
}

// sortScopes orders scopes as files.Scopes lists them and drops repeats.
func sortScopes(in []files.Scope) []files.Scope {
	out := make([]files.Scope, 0, len(in))
	for _, s := range files.Scopes {
		if slices.Contains(in, s) {
			out = append(out, s)
		}
	}
	return out
}
