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
			link, err := reader.Content(ctx, r.Caller, r.PathID(), r.Method())
			if err != nil {
				return nil, err
			}
			return &httpapi.Response{
				Status:  302,
				Headers: map[string]string{"Location": link.URL, "X-Content-SHA256": link.File.SHA256},
				Text:    "Follow the Location header to download the file.\n",
			}, nil
		},
	}
}
