package main

import (
	"context"
	_ "embed"
	"encoding/json"

	"claimcheck.dev/claimcheck/shared/httpapi"
)

//go:embed openapi.json
var document json.RawMessage

func endpoint() *httpapi.Endpoint {
	return &httpapi.Endpoint{
		Do: func(context.Context, *httpapi.Request) (*httpapi.Response, error) {
			return httpapi.OK(document)
		},
	}
}
