package main

import (
	"context"
	"fmt"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/httpapi"
)

func endpoint(auth httpapi.Authenticator, keys access.Keys) *httpapi.Endpoint {
	return &httpapi.Endpoint{
		Auth:  auth,
		Scope: files.KeysManage,
		Do: func(ctx context.Context, r *httpapi.Request) (*httpapi.Response, error) {
			list, err := keys.ListKeys(ctx, r.Caller.Account)
			if err != nil {
				return nil, fmt.Errorf("listing keys: %w", err)
			}
			objects := make([]httpapi.KeyObject, len(list))
			for i, k := range list {
				objects[i] = httpapi.NewKeyObject(k, "")
			}
			return httpapi.OK(map[string]any{"keys": objects})
		},
	}
}
