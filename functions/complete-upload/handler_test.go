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
	Sample: "complete-upload", Scope: files.FilesWrite,
	Endpoint: func(f *functiontest.Fakes, auth *access.Authenticator) *httpapi.Endpoint {
		completer := f.Completer()
		completer.Verifier.MaxFileBytes = 1000
		return endpoint(auth, completer, functiontest.Prefix)
	},
}

func TestRefusals(t *testing.T) { suite.Refusals(t) }

// Only the creating actor may ask: to another one of the account the upload doesn't exist.
func TestNotFound(t *testing.T) {
	t.Parallel()
	suite.NotFound(t, func(t *testing.T, f *functiontest.Fakes, account, actor string) {
		file := f.Reserve(t, func(file *files.File) { file.Account, file.Actor = account, actor })
		f.Stage(t, file.ID, functiontest.PDF)
	}, "bob")
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	type fakes = functiontest.Fakes
	// uploaded reserves a changed file and stages body for it.
	uploaded := func(body []byte, change ...func(*files.File)) func(*testing.T, *fakes) {
		return func(t *testing.T, f *fakes) { f.Stage(t, f.Reserve(t, change...).ID, body) }
	}
	// bytesGone holds after every refused upload, and repeats the request: it must be answered the same way.
	bytesGone := func(t *testing.T, f *fakes, first httpapi.Answer) {
		t.Helper()
		if o := f.Store.Objects(); len(o.Staged)+len(o.Sealed) > 0 {
			t.Errorf("bytes of a rejected file were left: %v", o)
		}
		e := endpoint(&access.Authenticator{Keys: f.Keys, Now: f.Clock.Now}, f.Completer(), functiontest.Prefix)
		if again := f.Serve(t, e, functiontest.Event(t, "complete-upload")); again.Body != first.Body && !strings.Contains(first.Body, "max_size_bytes") {
			t.Errorf("at first %s\nthen %s", first.Body, again.Body)
		}
	}
	suite.Run(t, map[string]functiontest.Case{
		"ready":        {Setup: uploaded(functiontest.PDF)},
		"ready-before": {Setup: func(t *testing.T, f *fakes) { f.Ready(t) }},
		"ready-from-unsized": {Setup: uploaded(functiontest.PDF, func(f *files.File) { f.Size, f.Charged = files.SizeUnknown, 1000 }),
			Change: []func(*httpapi.Event){functiontest.Body("{}")}},
		"unknown-field":     functiontest.Change(functiontest.Body(`{"sha256":"x"}`)),
		"not-json":          functiontest.Change(functiontest.Body(`done`)),
		"body-too-large":    functiontest.Change(functiontest.Body(strings.Repeat(" ", httpapi.MaxJSON+1))),
		"not-uploaded":      {Setup: func(t *testing.T, f *fakes) { f.Reserve(t) }},
		"size-mismatch":     {Setup: uploaded(functiontest.PDF[1:]), After: bytesGone},
		"empty-upload":      {Setup: uploaded(nil), After: bytesGone},
		"type-mismatch":     {Setup: uploaded(functiontest.PDF, func(f *files.File) { f.ContentType = "image/png" }), After: bytesGone},
		"type-unknown":      {Setup: uploaded([]byte{0, 1, 2, 3}, func(f *files.File) { f.Size, f.Charged = 4, 4 }), After: bytesGone},
		"checksum-mismatch": {Setup: uploaded(functiontest.PDF, func(f *files.File) { f.SHA256 = strings.Repeat("0", 64) }), After: bytesGone},
		"file-too-large":    {Setup: uploaded(make([]byte, 1001), func(f *files.File) { f.Size, f.Charged = files.SizeUnknown, 1000 }), After: bytesGone},
		"upload-expired":    {Setup: func(t *testing.T, f *fakes) { f.Reserve(t); f.Clock.Advance(time.Hour) }},
		"uploaded-late": {Setup: func(t *testing.T, f *fakes) {
			f.Reserve(t)
			f.Clock.Advance(time.Hour + time.Second)
			f.Stage(t, functiontest.FileID, functiontest.PDF)
		}, After: bytesGone},
		"file-expired": {Setup: func(t *testing.T, f *fakes) { f.Ready(t); f.Clock.Advance(24 * time.Hour) }},
		"file-deleted": {Setup: func(t *testing.T, f *fakes) { f.End(t, f.Ready(t), files.Deleted) }},
		"file-spent":   {Setup: func(t *testing.T, f *fakes) { f.End(t, f.Ready(t), files.Spent) }},
		"store-is-away": {Setup: func(t *testing.T, f *fakes) {
			uploaded(functiontest.PDF)(t, f)
			f.Faults.Fail(filestest.Step{Op: "Open", N: 1}, filestest.Before)
		}, After: func(t *testing.T, f *fakes, _ httpapi.Answer) {
			if got := f.Records.Snapshot(t).Files[functiontest.FileID].State; got != files.Reserved {
				t.Errorf("the file is %s: a failing store is no verdict", got)
			}
		}},
	})
}
