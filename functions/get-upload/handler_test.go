package main

import (
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/functiontest"
	"claimcheck.dev/claimcheck/shared/httpapi"
)

var suite = functiontest.Suite{
	Sample: "get-upload", Scope: files.FilesWrite,
	Endpoint: func(f *functiontest.Fakes, auth *access.Authenticator) *httpapi.Endpoint {
		return endpoint(auth, f.Renewer(), functiontest.Prefix, functiontest.Limits.MaxFileBytes)
	},
}

func TestRefusals(t *testing.T) { suite.Refusals(t) }

// Only the creating actor may ask: to another one of the account the upload doesn't exist.
func TestNotFound(t *testing.T) {
	t.Parallel()
	suite.NotFound(t, func(t *testing.T, f *functiontest.Fakes, account, actor string) {
		f.Reserve(t, func(file *files.File) { file.Account, file.Actor = account, actor })
	}, "bob")
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	type fakes = functiontest.Fakes
	suite.Run(t, map[string]functiontest.Case{
		"reserved":         {Setup: func(t *testing.T, f *fakes) { f.Reserve(t) }},
		"reserved-unsized": {Setup: func(t *testing.T, f *fakes) { f.Reserve(t, func(file *files.File) { file.Size = files.SizeUnknown }) }},
		// The upload ends with the reservation, however long it could last.
		"almost-over":    {Setup: func(t *testing.T, f *fakes) { f.Reserve(t); f.Clock.Advance(59*time.Minute + 30*time.Second) }},
		"ready":          {Setup: func(t *testing.T, f *fakes) { f.Ready(t) }},
		"rejected":       {Setup: func(t *testing.T, f *fakes) { f.Verified(t, make([]byte, len(functiontest.PDF))) }},
		"upload-expired": {Setup: func(t *testing.T, f *fakes) { f.Reserve(t); f.Clock.Advance(time.Hour) }},
		"file-expired":   {Setup: func(t *testing.T, f *fakes) { f.Ready(t); f.Clock.Advance(24 * time.Hour) }},
		"file-deleted":   {Setup: func(t *testing.T, f *fakes) { f.End(t, f.Reserve(t), files.Deleted) }},
	})
}
