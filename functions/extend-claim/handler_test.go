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
	Sample: "extend-claim", Scope: files.FilesWrite,
	Endpoint: func(f *functiontest.Fakes, auth *access.Authenticator) *httpapi.Endpoint {
		return endpoint(auth, f.Claims())
	},
}

func TestRefusals(t *testing.T) { suite.Refusals(t) }

func TestNotFound(t *testing.T) {
	t.Parallel()
	suite.NotFound(t, func(t *testing.T, f *functiontest.Fakes, account, actor string) {
		f.Lend(t, actor, "call-123", func(file *files.File) {
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
	body := functiontest.Body
	lent := func(t *testing.T, f *fakes) { f.Lend(t, "ada", "call-123"); f.Clock.Advance(time.Minute) }
	suite.Run(t, map[string]functiontest.Case{
		"extended":            {Setup: lent},
		"extended-by-default": {Setup: lent, Change: []func(*httpapi.Event){body("")}},
		"ends-with-file": {Setup: func(t *testing.T, f *fakes) {
			f.Lend(t, "ada", "call-123", func(file *files.File) {
				file.ExpiresAt = file.CreatedAt.Add(2 * time.Minute)
				file.UploadBy = file.ExpiresAt
			})
			f.Clock.Advance(time.Minute)
		}},
		"lease-too-long": {Setup: lent, Change: []func(*httpapi.Event){body(`{"lease_seconds":301}`)}},
		"invalid-fields": {Setup: lent, Change: []func(*httpapi.Event){body(`{"lease_seconds":1.5,"holder":"x"}`)}},
		"body-too-large": functiontest.Change(body(strings.Repeat(" ", httpapi.MaxJSON+1))),
		"lease-lost":     {Setup: func(t *testing.T, f *fakes) { f.Ready(t, functiontest.SingleUse) }},
		"file-expired":   {Setup: func(t *testing.T, f *fakes) { f.Lend(t, "ada", "call-123"); f.Clock.Advance(24 * time.Hour) }},
		"file-spent":     {Setup: func(t *testing.T, f *fakes) { f.End(t, f.Lend(t, "ada", "call-123"), files.Spent) }},
	})
}
