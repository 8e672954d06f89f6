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
	Sample: "commit-claim", Scope: files.FilesWrite,
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

// gone holds after a commit: the bytes went with it, and their quota came free.
func gone(t *testing.T, f *functiontest.Fakes, _ httpapi.Answer) {
	t.Helper()
	s, o := f.Records.Snapshot(t), f.Store.Objects()
	if s.Files[functiontest.FileID].State != files.Spent || len(o.Sealed)+len(o.Staged) > 0 || len(s.Holds) > 0 {
		t.Errorf("left behind: %+v, %+v", s, o)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	type fakes = functiontest.Fakes
	suite.Run(t, map[string]functiontest.Case{
		"committed":        {Setup: func(t *testing.T, f *fakes) { f.Lend(t, "ada", "call-123") }, After: gone},
		"committed-before": {Setup: func(t *testing.T, f *fakes) { f.End(t, f.Lend(t, "ada", "call-123"), files.Spent) }},
		"after-the-lease": {Setup: func(t *testing.T, f *fakes) {
			f.Lend(t, "ada", "call-123")
			f.Clock.Advance(time.Hour)
		}, Change: []func(*httpapi.Event){functiontest.Body("{}")}, After: gone},
		"lease-lost":     {Setup: func(t *testing.T, f *fakes) { f.Ready(t, functiontest.SingleUse) }},
		"unknown-field":  functiontest.Change(functiontest.Body(`{"state":"spent"}`)),
		"body-too-large": functiontest.Change(functiontest.Body(strings.Repeat(" ", httpapi.MaxJSON+1))),
		"file-expired":   {Setup: func(t *testing.T, f *fakes) { f.Lend(t, "ada", "call-123"); f.Clock.Advance(24 * time.Hour) }},
		"file-deleted":   {Setup: func(t *testing.T, f *fakes) { f.End(t, f.Lend(t, "ada", "call-123"), files.Deleted) }},
	})
}
