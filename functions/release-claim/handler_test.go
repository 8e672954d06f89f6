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
	Sample: "release-claim", Scope: files.FilesWrite,
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
	usable := func(t *testing.T, f *fakes, _ httpapi.Answer) {
		t.Helper()
		if o := f.Store.Objects(); f.Records.Snapshot(t).Files[functiontest.FileID].State != files.Ready || len(o.Sealed) != 1 {
			t.Errorf("the file can't be used again: %+v", o)
		}
	}
	suite.Run(t, map[string]functiontest.Case{
		"released": {Setup: func(t *testing.T, f *fakes) { f.Lend(t, "ada", "call-123") }, After: usable},
		"released-before": {Setup: func(t *testing.T, f *fakes) {
			f.Lend(t, "ada", "call-123")
			if _, err := f.Records.Unclaim(t.Context(), functiontest.FileID, functiontest.ClaimID); err != nil {
				t.Fatal(err)
			}
		}, Change: []func(*httpapi.Event){functiontest.Body("{}")}, After: usable},
		"lease-lost":     {Setup: func(t *testing.T, f *fakes) { f.Ready(t, functiontest.SingleUse) }},
		"unknown-field":  functiontest.Change(functiontest.Body(`{"state":"ready"}`)),
		"body-too-large": functiontest.Change(functiontest.Body(strings.Repeat(" ", httpapi.MaxJSON+1))),
		"file-expired":   {Setup: func(t *testing.T, f *fakes) { f.Lend(t, "ada", "call-123"); f.Clock.Advance(24 * time.Hour) }},
		"file-spent":     {Setup: func(t *testing.T, f *fakes) { f.End(t, f.Lend(t, "ada", "call-123"), files.Spent) }},
	})
}
