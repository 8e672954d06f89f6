package main

import (
	"strings"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/functiontest"
	"claimcheck.dev/claimcheck/shared/httpapi"
)

var suite = functiontest.Suite{
	Sample: "get-file", Scope: files.FilesRead,
	Endpoint: func(f *functiontest.Fakes, auth *access.Authenticator) *httpapi.Endpoint {
		return endpoint(auth, f.Records, functiontest.Prefix, f.Clock.Now)
	},
}

func TestRefusals(t *testing.T) { suite.Refusals(t) }

func TestNotFound(t *testing.T) {
	t.Parallel()
	suite.NotFound(t, func(t *testing.T, f *functiontest.Fakes, account, actor string) {
		f.Ready(t, func(file *files.File) {
			file.Account, file.Actor = account, actor
			if actor == "bob" { // his alone
				file.Purpose = files.UserUpload
			}
		})
	}, "bob")
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	type fakes = functiontest.Fakes
	suite.Run(t, map[string]functiontest.Case{
		"ready":            {Setup: func(t *testing.T, f *fakes) { f.Ready(t) }},
		"of-another-actor": {Setup: func(t *testing.T, f *fakes) { f.Ready(t, func(file *files.File) { file.Actor = "bob" }) }},
		"reserved":         {Setup: func(t *testing.T, f *fakes) { f.Reserve(t) }},
		"reserved-bare": {Setup: func(t *testing.T, f *fakes) {
			f.Reserve(t, func(file *files.File) { file.Size, file.Metadata, file.SingleUse = files.SizeUnknown, nil, true })
		}},
		"rejected":       {Setup: func(t *testing.T, f *fakes) { f.Verified(t, make([]byte, len(functiontest.PDF))) }},
		"rejected-known": {Setup: func(t *testing.T, f *fakes) { f.Verified(t, []byte("GIF89a"+strings.Repeat("\x00", 42))) }},
		"upload-expired": {Setup: func(t *testing.T, f *fakes) { f.Reserve(t); f.Clock.Advance(time.Hour) }},
		"last-moment":    {Setup: func(t *testing.T, f *fakes) { f.Ready(t); f.Clock.Advance(24*time.Hour - 1) }},
		"file-expired":   {Setup: func(t *testing.T, f *fakes) { f.Ready(t); f.Clock.Advance(24 * time.Hour) }},
		"file-deleted":   {Setup: func(t *testing.T, f *fakes) { f.End(t, f.Ready(t), files.Deleted) }},
		"file-spent":     {Setup: func(t *testing.T, f *fakes) { f.End(t, f.Ready(t), files.Spent) }},
	})
}
