package main

import (
	"context"

	"claimcheck.dev/claimcheck/shared/httpapi"
)

func endpoint() *httpapi.Endpoint {
	return &httpapi.Endpoint{
		Do: func(context.Context, *httpapi.Request) (*httpapi.Response, error) {
			return httpapi.OK(map[string]string{"status": "ok"})
		},
	}
}
