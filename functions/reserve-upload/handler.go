package main

import (
	"context"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/httpapi"
)

func endpoint(auth httpapi.Authenticator, uploads *files.Uploads, prefix string) *httpapi.Endpoint {
	return &httpapi.Endpoint{
		Auth:  auth,
		Scope: files.FilesWrite,
		Do: func(ctx context.Context, r *httpapi.Request) (*httpapi.Response, error) {
			draft, err := decode(r)
			if err != nil {
				return nil, err
			}
			idem, err := r.Idempotency()
			if err != nil {
				return nil, err
			}
			reservation, err := uploads.Reserve(ctx, r.Caller, draft, idem)
			if err != nil {
				return nil, err
			}
			return httpapi.Created(httpapi.NewUploadObject(prefix, reservation, uploads.Limits.MaxFileBytes, uploads.Now()))
		},
	}
}

func decode(r *httpapi.Request) (files.Draft, error) {
	body, err := r.JSON(httpapi.MaxJSON)
	if err != nil {
		return files.Draft{}, err
	}
	d := files.Draft{
		Filename:    body.Required("filename"),
		ContentType: body.Optional("content_type"),
		Size:        body.Int("size_bytes"),
		SHA256:      body.Optional("sha256"),
		SingleUse:   body.Bool("single_use"),
		TTLSeconds:  body.Int("ttl_seconds"),
		Metadata:    body.StringMap("metadata"),
	}
	return d, body.Err()
}
