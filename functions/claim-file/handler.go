package main

import (
	"context"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/httpapi"
)

type claim struct {
	Claim          string             `json:"claim"`
	File           httpapi.FileObject `json:"file"`
	Link           httpapi.LinkObject `json:"link"`
	LeaseExpiresAt time.Time          `json:"lease_expires_at"`
}

func endpoint(auth httpapi.Authenticator, claims *files.Claimer, prefix string) *httpapi.Endpoint {
	return &httpapi.Endpoint{
		Auth:  auth,
		Scope: files.FilesWrite,
		Do: func(ctx context.Context, r *httpapi.Request) (*httpapi.Response, error) {
			body, err := r.JSON(httpapi.MaxJSON)
			if err != nil {
				return nil, err
			}
			holder, lease := body.Required("holder"), body.Int("lease_seconds")
			if err := body.Err(); err != nil {
				return nil, err
			}
			idem, err := r.Idempotency()
			if err != nil {
				return nil, err
			}
			got, err := claims.Claim(ctx, r.Caller, r.PathID(), holder, lease, idem)
			if err != nil {
				return nil, err
			}
			out := claim{
				Claim:          got.File.Claim.ID,
				File:           httpapi.NewFileObject(prefix, got.File, claims.Now()),
				Link:           httpapi.NewLinkObject(got.Link),
				LeaseExpiresAt: got.File.Claim.LeaseUntil.UTC(),
			}
			if got.New {
				return httpapi.Created(out)
			}
			return httpapi.OK(out)
		},
	}
}
