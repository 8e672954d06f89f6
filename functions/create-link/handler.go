package main

import (
	"context"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/httpapi"
)

func endpoint(auth httpapi.Authenticator, reader *files.Reader) *httpapi.Endpoint {
	return &httpapi.Endpoint{
		Auth:  auth,
		Scope: files.FilesRead,
		Do: func(ctx context.Context, r *httpapi.Request) (*httpapi.Response, error) {
			body, err := r.JSON(httpapi.MaxJSON)
			if err != nil {
				return nil, err
			}
			ttl := body.Int("ttl_seconds")
			if err := body.Err(); err != nil {
				return nil, err
			}
			link, err := reader.Link(ctx, r.Caller, r.PathID(), ttl)
			if err != nil {
				return nil, err
			}
			return httpapi.Created(httpapi.NewLinkObject(link))
		},
	}
}
