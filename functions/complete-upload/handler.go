package main

import (
	"context"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/httpapi"
)

func endpoint(auth httpapi.Authenticator, completer *files.Completer, prefix string) *httpapi.Endpoint {
	return &httpapi.Endpoint{
		Auth:  auth,
		Scope: files.FilesWrite,
		Do: func(ctx context.Context, r *httpapi.Request) (*httpapi.Response, error) {
			if err := r.NoFields(); err != nil {
				return nil, err
			}
			f, err := completer.Complete(ctx, r.Caller, r.PathID())
			if err != nil {
				return nil, err
			}
			return httpapi.OK(httpapi.NewFileObject(prefix, f, completer.Now()))
		},
	}
}
