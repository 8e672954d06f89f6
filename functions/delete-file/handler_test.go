package main

import (
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
	"claimcheck.dev/claimcheck/shared/functiontest"
	"claimcheck.dev/claimcheck/shared/httpapi"
)

func suiteWith(scopes ...files.Scope) functiontest.Suite {
	return functiontest.Suite{
		Sample: "delete-file", Scopes: scopes,
		Endpoint: func(f *functiontest.Fakes, auth *access.Authenticator) *httpapi.Endpoint {
			return endpoint(auth, f.Deleter())
		},
	}
}

func TestRefusals(t *testing.T) { suiteWith(files.FilesDelete).Refusals(t) }

func TestNotFound(t *testing.T) {
	t.Parallel()
	suiteWith(files.FilesDelete).NotFound(t, func(t *testing.T, f *functiontest.Fakes, account, actor string) {
		f.Ready(t, func(file *files.File) {
			file.Account, file.Actor = account, actor
			if actor == "bob" { // his alone
				file.Purpose = files.UserUpload
			}
		})
	}, "bob")
}

// gone holds after a deletion, whatever the file was before.
func gone(t *testing.T, f *functiontest.Fakes, _ httpapi.Answer) {
	t.Helper()
	s, o := f.Records.Snapshot(t), f.Store.Objects()
	if s.Files[functiontest.FileID].State != files.Deleted || len(o.Sealed)+len(o.Staged) > 0 || len(s.Holds) > 0 {
		t.Errorf("left behind: %+v, %+v", s, o)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	type fakes = functiontest.Fakes
	bobs := func(file *files.File) { file.Actor = "bob" }
	// Every success is the same answer, and the same end.
	for name, setup := range map[string]func(*testing.T, *fakes){
		"ready":    func(t *testing.T, f *fakes) { f.Ready(t, bobs) },
		"reserved": func(t *testing.T, f *fakes) { f.Reserve(t, bobs) },
		"uploaded": func(t *testing.T, f *fakes) { f.Stage(t, f.Reserve(t, bobs).ID, functiontest.PDF) },
		"claimed":  func(t *testing.T, f *fakes) { f.Lend(t, "bob", "call-123", bobs) },
		"rejected": func(t *testing.T, f *fakes) { f.Verified(t, make([]byte, len(functiontest.PDF)), bobs) },
		"expired":  func(t *testing.T, f *fakes) { f.Ready(t, bobs); f.Clock.Advance(24 * time.Hour) },
		"deleted before": func(t *testing.T, f *fakes) {
			f.Ready(t, bobs)
			if err := f.Deleter().Delete(t.Context(), files.Caller{Account: "acme", Actor: "bob", Scopes: files.Scopes}, functiontest.FileID); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := functiontest.New(t)
			setup(t, f)
			ev := functiontest.Event(t, "delete-file")
			a := f.Serve(t, endpoint(f.Auth(t, files.FilesDelete), f.Deleter()), ev)
			functiontest.Golden(t, "deleted", ev, a)
			gone(t, f, a)
			filestest.CheckInvariants(t, f.Records.Snapshot(t))
		})
	}
	// Without files:delete, files:write is enough for one's own.
	suiteWith(files.FilesWrite).Run(t, map[string]functiontest.Case{
		"deleted-by-creator": {Setup: func(t *testing.T, f *fakes) { f.Ready(t) }, After: gone},
		"of-another-actor":   {Setup: func(t *testing.T, f *fakes) { f.Ready(t, bobs) }},
	})
	suiteWith(files.FilesRead).Run(t, map[string]functiontest.Case{
		"may-not-write": {Setup: func(t *testing.T, f *fakes) { f.Ready(t) }},
	})
	t.Run("may-not-write, missing", func(t *testing.T) { // answered like an existing one
		t.Parallel()
		f := functiontest.New(t)
		ev := functiontest.Event(t, "delete-file")
		functiontest.Golden(t, "may-not-write", ev, f.Serve(t, endpoint(f.Auth(t, files.FilesRead), f.Deleter()), ev))
	})
	suiteWith(files.FilesDelete).Run(t, map[string]functiontest.Case{
		"records-are-away": {Setup: func(t *testing.T, f *fakes) {
			f.Ready(t)
			f.Faults.Fail(filestest.Step{Op: "End", N: 1}, filestest.Before)
		}},
		// The record ended; the deletion queue does the rest.
		"bytes-are-left": {Setup: func(t *testing.T, f *fakes) {
			f.Ready(t)
			f.Faults.Fail(filestest.Step{Op: "Remove", N: 1}, filestest.Before)
		}},
	})
}
