package main

import (
	"context"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/httpapi"
)

// endpoint asks for no scope by itself: the scope that is needed depends on who made the file.
func endpoint(auth httpapi.Authenticator, deleter *files.Deleter) *httpapi.Endpoint {
	return &httpapi.Endpoint{
		Auth: auth,
		Do: func(ctx context.Context, r *httpapi.Request) (*httpapi.Response, error) {
			if err := deleter.Delete(ctx, r.Caller, r.PathID()); err != nil {
				return nil, err
			}
			return httpapi.NoContent()
		},
	}
}
