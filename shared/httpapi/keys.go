package httpapi

import (
	"time"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
)

// KeyObject is a key as the API shows it. Key, the secret text, is there only in the answer that creates it.
type KeyObject struct {
	ID        string        `json:"id"`
	Key       string        `json:"key,omitempty"`
	Account   string        `json:"account"`
	Actor     string        `json:"actor"`
	Scopes    []files.Scope `json:"scopes"`
	CreatedAt time.Time     `json:"created_at"`
	ExpiresAt *time.Time    `json:"expires_at"`
	RevokedAt *time.Time    `json:"revoked_at,omitempty"`
}

// NewKeyObject shows k, with its text where that is known.
func NewKeyObject(k access.Key, text string) KeyObject {
	o := KeyObject{ID: k.ID, Key: text, Account: k.Account, Actor: k.Actor, Scopes: k.Scopes, CreatedAt: k.CreatedAt.UTC()}
	if o.Scopes == nil {
		o.Scopes = []files.Scope{}
	}
	if !k.ExpiresAt.IsZero() {
		t := k.ExpiresAt.UTC()
		o.ExpiresAt = &t
	}
	if !k.RevokedAt.IsZero() {
		t := k.RevokedAt.UTC()
		o.RevokedAt = &t
	}
	return o
}
