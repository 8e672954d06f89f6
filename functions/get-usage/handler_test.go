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

// A key without any scope will do.
var suite = functiontest.Suite{
	Sample: "get-usage",
	Endpoint: func(f *functiontest.Fakes, auth *access.Authenticator) *httpapi.Endpoint {
		return endpoint(auth, &files.Meter{Records: f.Records, Now: f.Clock.Now}, functiontest.Limits.AccountMaxLiveBytes, functiontest.Limits.ActorMaxReservations)
	},
}

func TestRefusals(t *testing.T) { suite.Refusals(t) }

func TestAnswers(t *testing.T) {
	t.Parallel()
	type fakes = functiontest.Fakes
	some := func(t *testing.T, f *fakes) {
		f.Ready(t)
		f.Reserve(t, func(file *files.File) { file.ID = "f_00000000000000000000000000" })
		f.Reserve(t, func(file *files.File) { file.ID, file.Actor = "f_00000000000000000000000001", "bob" })
		f.Reserve(t, func(file *files.File) { file.ID, file.Account = "f_00000000000000000000000002", "globex" })
	}
	suite.Run(t, map[string]functiontest.Case{
		"nothing": {},
		"some":    {Setup: some},
		// At the second at which the reservations end, with nothing having swept them.
		"after-an-hour": {Setup: func(t *testing.T, f *fakes) { some(t, f); f.Clock.Advance(time.Hour) }},
		"records-are-away": {Setup: func(_ *testing.T, f *fakes) {
			f.Faults.Fail(filestest.Step{Op: "EndedHolds", N: 1}, filestest.Before)
		}},
	})
}
