package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/httpapi"
	"claimcheck.dev/claimcheck/shared/records"
)

// rehearse returns a step for startup.Warm that serves a made-up event, from its JSON to that of the answer, without a
// trace: its records take everything as done. The first real request then finds the code read in and the types known. At
// 128 MB an instance has a whole CPU while it starts and a fourteenth of one from then on, in slices of 1.4 ms every
// 20 ms: unrehearsed, the first request would run over its slice and wait for the next.
func rehearse(uploads files.Uploads, table *records.Table, prefix string) func(context.Context) error {
	return func(ctx context.Context) error {
		uploads.Records = table.Rehearsal()
		e := endpoint(rehearser{}, &uploads, prefix)
		e.Log = slog.New(slog.NewJSONHandler(io.Discard, nil))
		var status int
		_, err := lambda.NewHandler(func(ctx context.Context, ev httpapi.Event) (httpapi.Answer, error) {
			answer, err := e.Serve(ctx, ev)
			status = answer.StatusCode
			return answer, err
		}).Invoke(ctx, []byte(madeUp))
		if err == nil && status != 201 {
			err = fmt.Errorf("answered %d", status)
		}
		if err != nil {
			return fmt.Errorf("rehearsing a request: %w", err)
		}
		return nil
	}
}

const madeUp = `{"version":"2.0","routeKey":"POST /v1/uploads","rawPath":"/v1/uploads","headers":{"content-type":"application/json"},` +
	`"requestContext":{"requestId":"rehearsal","http":{"method":"POST","path":"/v1/uploads"}},` +
	`"body":"{\"filename\":\"rehearsal.pdf\",\"content_type\":\"application/pdf\",\"size_bytes\":1,\"metadata\":{\"a\":\"b\"}}"}`

// rehearser may do everything, in an account that does not exist.
type rehearser struct{}

func (rehearser) Caller(context.Context, string) (files.Caller, error) {
	return files.Caller{Account: "rehearsal", Actor: "rehearsal", Scopes: files.Scopes, KeyID: "rehearsal"}, nil
}
