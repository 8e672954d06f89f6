package adapters_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
	"claimcheck.dev/claimcheck/shared/local/dynamo"
)

// TestLifeCosts counts what the whole life of a file costs, and what the work beside it does.
func TestLifeCosts(t *testing.T) {
	t.Parallel()
	e := openTable(t)
	ctx, now := t.Context(), filestest.Now
	var life float64
	spent := func() (u dynamo.TableUnits, requests map[string]int64) {
		c := e.Counters()
		e.ResetCounters()
		return c.Tables[tableName], c.Requests
	}
	// want checks the units of the last step and that it was one request.
	want := func(what string, write, read float64) {
		t.Helper()
		u, requests := spent()
		life += u.Write
		if u.Write != write || u.Read != read {
			t.Errorf("%s: %v write units and %v read units, want %v and %v", what, u.Write, u.Read, write, read)
		}
		n := int64(0)
		for _, r := range requests {
			n += r
		}
		if n != 1 {
			t.Errorf("%s: %v, want one request", what, requests)
		}
	}
	check := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	claim := func(id string, idem *files.Idempotency) (f files.File, err error) {
		f, _, _, err = e.table.Claim(ctx, id, leaseOf("somebody@example.com"), idem, now)
		return f, err
	}
	f := filestest.NewFile(filestest.Once, func(f *files.File) {
		f.Filename = "Master services agreement ACME 2026 (signed, final).pdf"
		f.SHA256 = strings.Repeat("ab", 32)
		f.Account, f.Actor = "account-0123456789", "somebody@example.com"
		f.Metadata = map[string]string{"contract": "2026-0117", "origin": "outlook-addin"}
	})
	spent()
	f, _, err := e.table.Create(ctx, f, filestest.Roomy, nil, now)
	check(f, err)
	want("reserving", 8, 0)
	f, err = e.table.MarkReady(ctx, f, filestest.VerifiedAs(f, 1000))
	check(f, err)
	want("verifying", 8, 0)
	f, err = claim(f.ID, nil)
	check(f, err)
	want("claiming", 1, 0)
	f, err = e.table.Extend(ctx, f.ID, f.Claim.ID, now.Add(time.Hour))
	check(f, err)
	want("extending", 1, 0)
	f, err = e.table.Spend(ctx, f, f.Claim.ID, now)
	check(f, err)
	want("committing", 6, 0)
	if life > 24 {
		t.Errorf("the whole life cost %v write units, want 24 at most", life)
	}
	_, err = e.table.End(ctx, f, files.Ending{State: files.Deleted, At: now})
	check(f, err)
	want("deleting what is spent", 2, 0)

	held := e.made(t, files.Claimed)
	spent()
	if _, err := claim(held.ID, nil); !errors.Is(err, files.ErrStateChanged) {
		t.Errorf("claiming what is claimed: %v", err)
	}
	want("a claim that is refused", 1, 0)
	check(e.table.Unclaim(ctx, held.ID, held.Claim.ID))
	want("releasing", 1, 0)
	check(claim(held.ID, claimKey("k")))
	if u, _ := spent(); u.Write != 4 || u.Read != 1 {
		t.Errorf("claiming by a key: %v write units and %v read units, want 4 and 1", u.Write, u.Read)
	}

	check(e.table.Usage(ctx, "acme", "alice"))
	want("usage", 0, 2)
	for range 40 {
		e.made(t, files.Reserved)
	}
	spent()
	_, _, err = e.table.Files(ctx, "acme", files.Position{}, 20)
	check(nil, err)
	u, requests := spent()
	if len(requests) != 1 || requests["Query"] != 1 || u.Write != 0 {
		t.Errorf("a page of a list: %v and %v write units, want one query", requests, u.Write)
	}
	_, _, err = e.table.Due(ctx, now, now, "")
	check(nil, err)
	if _, requests := spent(); len(requests) != 1 || requests["Query"] != 8 {
		t.Errorf("a minute without anything due: %v, want a query for each of eight shards", requests)
	}
}
