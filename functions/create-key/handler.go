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
			body, err := r.JSON(httpapi.MaxJSON)
			if err != nil {
				return nil, err
			}
			grant := access.Grant{
				Actor:     body.Required("actor"),
				Scopes:    body.Strings("scopes"),
				Role:      body.Optional("role"),
				ExpiresAt: body.Time("expires_at"),
			}
			if err := body.Err(); err != nil {
				return nil, err
			}
			k, text, err := access.Issue(r.Caller.Account, grant, r.Caller.Scopes, now())
			if err != nil {
				return nil, err
			}
			if err := keys.PutKey(ctx, k); err != nil {
				return nil, fmt.Errorf("storing the key: %w", err)
			}
			return httpapi.Created(httpapi.NewKeyObject(k, text))
		},
	}
}
