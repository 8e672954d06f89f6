package main

import (
	"context"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/httpapi"
)

type answer struct {
	Claim          string    `json:"claim"`
	LeaseExpiresAt time.Time `json:"lease_expires_at"`
}

func endpoint(auth httpapi.Authenticator, claims *files.Claims) *httpapi.Endpoint {
	return &httpapi.Endpoint{
		Auth:  auth,
		Scope: files.FilesWrite,
		Do: func(ctx context.Context, r *httpapi.Request) (*httpapi.Response, error) {
			body, err := r.JSON(httpapi.MaxJSON)
			if err != nil {
				return nil, err
			}
			lease := body.Int("lease_seconds")
			if err := body.Err(); err != nil {
				return nil, err
			}
			f, err := claims.Extend(ctx, r.Caller, r.PathID(), lease)
			if err != nil {
				return nil, err
			}
			return httpapi.OK(answer{r.PathID(), f.Claim.LeaseUntil.UTC()})
		},
	}
}
