package main

import (
	"context"
	"fmt"
	"time"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/httpapi"
)

func endpoint(auth httpapi.Authenticator, keys access.Keys, now func() time.Time) *httpapi.Endpoint {
	return &httpapi.Endpoint{
		Auth:  auth,
		Scope: files.KeysManage,
		Do: func(ctx context.Context, r *httpapi.Request) (*httpapi.Response, error) {
			id := r.PathID()
			if !access.ValidKeyID(id) {
				return nil, access.ErrKeyNotFound
			}
			if err := keys.RevokeKey(ctx, r.Caller.Account, id, now()); err != nil {
				return nil, fmt.Errorf("revoking %s: %w", id, err)
			}
			return httpapi.NoContent()
		},
	}
}
