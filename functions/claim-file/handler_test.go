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
	Sample: "claim-file", Scope: files.FilesWrite, Scopes: []files.Scope{files.FilesRead, files.FilesWrite},
	Endpoint: func(f *functiontest.Fakes, auth *access.Authenticator) *httpapi.Endpoint {
		return endpoint(auth, f.Claimer(), functiontest.Prefix)
	},
}

func TestRefusals(t *testing.T) { suite.Refusals(t) }

func TestNotFound(t *testing.T) {
	t.Parallel()
	suite.NotFound(t, func(t *testing.T, f *functiontest.Fakes, account, actor string) {
		f.Ready(t, functiontest.SingleUse, func(file *files.File) {
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
	ready := func(t *testing.T, f *fakes) { f.Ready(t, functiontest.SingleUse) }
	suite.Run(t, map[string]functiontest.Case{
		"claimed":            {Setup: ready},
		"claimed-by-default": {Setup: ready, Change: []func(*httpapi.Event){body(`{"holder":"call-123"}`)}},
		"claimed-already":    {Setup: func(t *testing.T, f *fakes) { f.Lend(t, "ada", "call-123"); f.Clock.Advance(time.Minute) }},
		"claimed-after-lease": {Setup: func(t *testing.T, f *fakes) {
			f.Lend(t, "bob", "call-123")
			f.Clock.Advance(5 * time.Minute)
		}},
		"ends-with-file":     {Setup: func(t *testing.T, f *fakes) { ready(t, f); f.Clock.Advance(24*time.Hour - time.Minute) }},
		"verified-on-demand": {Setup: func(t *testing.T, f *fakes) { f.Stage(t, f.Reserve(t, functiontest.SingleUse).ID, functiontest.PDF) }},
		// Holders are an actor's own: another one's call-123 is another holder.
		"held-by-another-actor": {Setup: func(t *testing.T, f *fakes) { f.Lend(t, "bob", "call-123"); f.Clock.Advance(1500 * time.Millisecond) }},
		"held-by-another-call":  {Setup: func(t *testing.T, f *fakes) { f.Lend(t, "ada", "call-122") }},
		"no-holder":             {Setup: ready, Change: []func(*httpapi.Event){body(`{}`)}},
		"empty-holder":          {Setup: ready, Change: []func(*httpapi.Event){body(`{"holder":""}`)}},
		"long-holder":           {Setup: ready, Change: []func(*httpapi.Event){body(`{"holder":"` + strings.Repeat("h", 256) + `"}`)}},
		"lease-too-long":        {Setup: ready, Change: []func(*httpapi.Event){body(`{"holder":"a","lease_seconds":301}`)}},
		"lease-zero":            {Setup: ready, Change: []func(*httpapi.Event){body(`{"holder":"a","lease_seconds":0}`)}},
		"invalid-fields":        {Setup: ready, Change: []func(*httpapi.Event){body(`{"holder":1,"lease_seconds":"1","ttl_seconds":1}`)}},
		"body-too-large":        {Setup: ready, Change: []func(*httpapi.Event){body(strings.Repeat(" ", httpapi.MaxJSON+1))}},
		"not-single-use":        {Setup: func(t *testing.T, f *fakes) { f.Ready(t) }},
		"not-uploaded":          {Setup: func(t *testing.T, f *fakes) { f.Reserve(t, functiontest.SingleUse) }},
		"upload-expired":        {Setup: func(t *testing.T, f *fakes) { f.Reserve(t, functiontest.SingleUse); f.Clock.Advance(time.Hour) }},
		"file-rejected": {Setup: func(t *testing.T, f *fakes) {
			f.Verified(t, make([]byte, len(functiontest.PDF)), functiontest.SingleUse)
		}},
		"file-expired": {Setup: func(t *testing.T, f *fakes) { ready(t, f); f.Clock.Advance(24 * time.Hour) }},
		"file-deleted": {Setup: func(t *testing.T, f *fakes) { f.End(t, f.Ready(t, functiontest.SingleUse), files.Deleted) }},
		"file-spent":   {Setup: func(t *testing.T, f *fakes) { f.End(t, f.Lend(t, "ada", "call-123"), files.Spent) }},
	})
}
