package adapters_test

import (
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
)

// TestReleaseOfWhatHasEnded: a sweep is shown files by the index that another sweep has just ended. Finding that out must
// cost the same however many others of the account are due.
func TestReleaseOfWhatHasEnded(t *testing.T) {
	t.Parallel()
	e := openTable(t)
	later := filestest.Now.Add(25 * time.Hour)
	gone := e.made(t, files.Ready)
	cancelled := e.made(t, files.Reserved)
	for range 200 {
		e.made(t, files.Ready)
	}
	for _, f := range []files.File{gone, cancelled} {
		if _, err := e.table.End(t.Context(), f, files.Ending{State: files.Deleted, At: later}); err != nil {
			t.Fatal(err)
		}
		e.ResetCounters()
		if err := e.table.Release(t.Context(), f.Account, f.ID, later); err != nil {
			t.Fatal(err)
		}
		c := e.Counters()
		if u := c.Tables[tableName]; u.Write > 0 || u.Read > 3 {
			t.Errorf("releasing a file that was %s cost %v write and %v read units: %v", f.State, u.Write, u.Read, c.Requests)
		}
	}
	filestest.CheckInvariants(t, e.snapshot(t))
}
