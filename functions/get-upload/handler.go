package main

import (
	"context"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/httpapi"
)

func endpoint(auth httpapi.Authenticator, renewer *files.Renewer, prefix string, maxFileBytes int64) *httpapi.Endpoint {
	return &httpapi.Endpoint{
		Auth:  auth,
		Scope: files.FilesWrite,
		Do: func(ctx context.Context, r *httpapi.Request) (*httpapi.Response, error) {
			reservation, err := renewer.Get(ctx, r.Caller, r.PathID())
			if err != nil {
				return nil, err
			}
			return httpapi.OK(httpapi.NewUploadObject(prefix, reservation, maxFileBytes, renewer.Now()))
		},
	}
}
