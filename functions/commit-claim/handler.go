package main

import (
	"context"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/httpapi"
)

type answer struct {
	Claim string      `json:"claim"`
	State files.State `json:"state"`
}

func endpoint(auth httpapi.Authenticator, claims *files.Claims) *httpapi.Endpoint {
	return &httpapi.Endpoint{
		Auth:  auth,
		Scope: files.FilesWrite,
		Do: func(ctx context.Context, r *httpapi.Request) (*httpapi.Response, error) {
			body, err := r.JSON(httpapi.MaxJSON) // the request has no fields
			if err != nil {
				return nil, err
			}
			if err := body.Err(); err != nil {
				return nil, err
			}
			f, err := claims.Commit(ctx, r.Caller, r.PathID())
			if err != nil {
				return nil, err
			}
			return httpapi.OK(answer{r.PathID(), f.State})
		},
	}
}
