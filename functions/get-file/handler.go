package main

import (
	"context"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/httpapi"
)

func endpoint(auth httpapi.Authenticator, records files.Finder, prefix string, now func() time.Time) *httpapi.Endpoint {
	return &httpapi.Endpoint{
		Auth:  auth,
		Scope: files.FilesRead,
		Do: func(ctx context.Context, r *httpapi.Request) (*httpapi.Response, error) {
			at := now()
			f, err := files.Show(ctx, records, r.Caller, r.PathID(), at)
			if err != nil {
				return nil, err
			}
			return httpapi.OK(httpapi.NewFileObject(prefix, f, at))
		},
	}
}
