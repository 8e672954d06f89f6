package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/httpapi"
)

// request is the event: whose key it shall be and what it may do.
type request struct {
	Account   string    `json:"account"`
	Actor     string    `json:"actor"`
	Scopes    []string  `json:"scopes"`
	Role      string    `json:"role"`
	ExpiresAt time.Time `json:"expires_at"`
}

type issuer struct {
	keys access.Keys
	now  func() time.Time
}

func (i issuer) issue(ctx context.Context, event json.RawMessage) (httpapi.KeyObject, error) {
	var req request
	dec := json.NewDecoder(bytes.NewReader(event))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&req); err != nil {
		return httpapi.KeyObject{}, fmt.Errorf("the event must be {account, actor, scopes or role, expires_at?}: %w", err)
	}
	grant := access.Grant{Actor: req.Actor, Scopes: req.Scopes, Role: req.Role, ExpiresAt: req.ExpiresAt}
	k, text, err := access.Issue(req.Account, grant, files.Scopes, i.now())
	if err != nil {
		return httpapi.KeyObject{}, err
	}
	if err := i.keys.PutKey(ctx, k); err != nil {
		return httpapi.KeyObject{}, fmt.Errorf("storing the key: %w", err)
	}
	return httpapi.NewKeyObject(k, text), nil
}
