package main

import (
	"strings"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
	"claimcheck.dev/claimcheck/shared/functiontest"
	"claimcheck.dev/claimcheck/shared/httpapi"
)

var suite = functiontest.Suite{
	Sample: "create-link", Scope: files.FilesRead,
	Endpoint: func(f *functiontest.Fakes, auth *access.Authenticator) *httpapi.Endpoint {
		return endpoint(auth, f.Reader())
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
	body := functiontest.Body
	ready := func(t *testing.T, f *fakes) { f.Ready(t) }
	suite.Run(t, map[string]functiontest.Case{
		"linked":            {Setup: ready},
		"linked-by-default": {Setup: ready, Change: []func(*httpapi.Event){body("")}},
		"linked-by-another": {Setup: func(t *testing.T, f *fakes) { f.Ready(t, func(file *files.File) { file.Actor = "bob" }) }},
		"ends-with-file":    {Setup: func(t *testing.T, f *fakes) { f.Ready(t); f.Clock.Advance(24*time.Hour - time.Minute) }},
		"ends-with-credentials": {Setup: func(t *testing.T, f *fakes) {
			f.Ready(t)
			f.Links.Ends = f.Clock.Now().Add(30 * time.Second)
		}},
		// The event that would have verified it never came.
		"verified-on-demand": {Setup: func(t *testing.T, f *fakes) { f.Stage(t, f.Reserve(t).ID, functiontest.PDF) }},
		"rejected-on-demand": {Setup: func(t *testing.T, f *fakes) { f.Stage(t, f.Reserve(t).ID, make([]byte, len(functiontest.PDF))) }},
		"ttl-too-long":       {Setup: ready, Change: []func(*httpapi.Event){body(`{"ttl_seconds":901}`)}},
		"ttl-zero":           {Setup: ready, Change: []func(*httpapi.Event){body(`{"ttl_seconds":0}`)}},
		"ttl-no-number":      {Setup: ready, Change: []func(*httpapi.Event){body(`{"ttl_seconds":"300","until":1}`)}},
		"body-too-large":     {Setup: ready, Change: []func(*httpapi.Event){body(strings.Repeat(" ", httpapi.MaxJSON+1))}},
		"not-uploaded":       {Setup: func(t *testing.T, f *fakes) { f.Reserve(t) }},
		"claim-required":     {Setup: func(t *testing.T, f *fakes) { f.Ready(t, func(file *files.File) { file.SingleUse = true }) }},
		"upload-expired":     {Setup: func(t *testing.T, f *fakes) { f.Reserve(t); f.Clock.Advance(time.Hour) }},
		"file-rejected":      {Setup: func(t *testing.T, f *fakes) { f.Verified(t, make([]byte, len(functiontest.PDF))) }},
		"file-expired":       {Setup: func(t *testing.T, f *fakes) { f.Ready(t); f.Clock.Advance(24 * time.Hour) }},
		"file-deleted":       {Setup: func(t *testing.T, f *fakes) { f.End(t, f.Ready(t), files.Deleted) }},
		"file-spent":         {Setup: func(t *testing.T, f *fakes) { f.End(t, f.Ready(t), files.Spent) }},
		"signer-is-away": {Setup: func(t *testing.T, f *fakes) {
			f.Ready(t)
			f.Faults.Fail(filestest.Step{Op: "SignLink", N: 1}, filestest.Before)
		}},
	})
}
