package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
	"claimcheck.dev/claimcheck/shared/functiontest"
	"claimcheck.dev/claimcheck/shared/httpapi"
)

var suite = functiontest.Suite{
	Sample: "list-files", Scope: files.FilesRead,
	Endpoint: func(f *functiontest.Fakes, auth *access.Authenticator) *httpapi.Endpoint {
		return endpoint(auth, &files.Lister{Records: f.Records, Now: f.Clock.Now}, functiontest.Prefix)
	},
}

func TestRefusals(t *testing.T) { suite.Refusals(t) }

// id is that of the n-th file.
func id(n int) string { return fmt.Sprintf("f_%026d", n) }

// many reserves n files, one a second, the last of them the newest.
func many(n int) func(*testing.T, *functiontest.Fakes) {
	return func(t *testing.T, f *functiontest.Fakes) {
		for i := range n {
			f.Reserve(t, func(file *files.File) { file.ID = id(i) })
			f.Clock.Advance(time.Second)
		}
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	type fakes = functiontest.Fakes
	query := functiontest.Query
	mixed := func(t *testing.T, f *fakes) {
		f.Ready(t)
		f.Clock.Advance(time.Second)
		f.Reserve(t, func(file *files.File) { file.ID = id(1) })
		f.Reserve(t, func(file *files.File) { file.ID, file.Account = id(2), "globex" })
		f.Reserve(t, func(file *files.File) { file.ID, file.Actor, file.Purpose = id(3), "bob", files.UserUpload })
		f.Verified(t, make([]byte, len(functiontest.PDF)), func(file *files.File) { file.ID = id(4) })
	}
	suite.Run(t, map[string]functiontest.Case{
		"nothing":         {},
		"ready":           {Setup: mixed},
		"live":            {Setup: mixed, Change: []func(*httpapi.Event){query("")}},
		"every-state":     {Setup: mixed, Change: []func(*httpapi.Event){query("state=reserved,ready,claimed,spent,rejected,expired,deleted")}},
		"own-uploads":     {Setup: mixed, Change: []func(*httpapi.Event){query("purpose=user_upload")}},
		"of-no-run":       {Setup: mixed, Change: []func(*httpapi.Event){query("run=r_1")}},
		"first-page":      {Setup: many(3), Change: []func(*httpapi.Event){query("limit=2")}},
		"expired-by-now":  {Setup: func(t *testing.T, f *fakes) { mixed(t, f); f.Clock.Advance(24 * time.Hour) }, Change: []func(*httpapi.Event){query("state=expired")}},
		"invalid-values":  functiontest.Change(query("limit=0&cursor=x&state=lost&purpose=fun&run=")),
		"limit-too-large": functiontest.Change(query("limit=101")),
		"limit-no-number": functiontest.Change(query("limit=ten")),
		"records-are-away": {Setup: func(_ *testing.T, f *fakes) {
			f.Faults.Fail(filestest.Step{Op: "Files", N: 1}, filestest.Before)
		}},
	})
}

// get returns the ids of one page and the cursor of the next.
func get(t *testing.T, f *functiontest.Fakes, e *httpapi.Endpoint, raw string) (ids []string, next *string) {
	t.Helper()
	a := f.Serve(t, e, functiontest.Event(t, "list-files", functiontest.Query(raw)))
	var p struct {
		Files []struct{ ID string }
		Next  *string `json:"next_cursor"`
	}
	if err := json.Unmarshal([]byte(a.Body), &p); err != nil || a.StatusCode != 200 {
		t.Fatalf("%s: got %d %s", raw, a.StatusCode, a.Body)
	}
	for _, file := range p.Files {
		ids = append(ids, file.ID)
	}
	return ids, p.Next
}

// Following the cursor shows every file once, newest first, also when files come and go between two pages.
func TestPages(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1, 2, 7, 100} {
		f := functiontest.New(t)
		e := suite.Endpoint(f, f.Auth(t, suite.Scope))
		many(23)(t, f)
		var got []string
		raw := fmt.Sprint("limit=", limit)
		for page := 0; ; page++ {
			ids, next := get(t, f, e, raw)
			got = append(got, ids...)
			if next == nil {
				break
			}
			if page == 0 {
				f.Reserve(t, func(file *files.File) { file.ID = id(100) }) // newer than the cursor: not shown
				f.End(t, f.Records.Snapshot(t).Files[ids[len(ids)-1]], files.Deleted)
			}
			raw = fmt.Sprint("limit=", limit, "&cursor=", url.QueryEscape(*next))
		}
		var want []string
		for i := 22; i >= 0; i-- {
			want = append(want, id(i))
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: got %v", limit, got)
		}
	}
}

func TestCursors(t *testing.T) {
	t.Parallel()
	at := files.Position{CreatedAt: time.Unix(1_700_000_000, 0).UTC(), ID: id(7)}
	good := encodeCursor("acme", at)
	if got, ok := decodeCursor("acme", good); !ok || got != at {
		t.Errorf("got %+v, %v, want %+v", got, ok, at)
	}
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	mark := accountMark("acme")
	for _, bad := range []string{
		"", "x", good + "=", good + "A", good[1:], encode(`{}`), encode(`[]`), encode(`null`),
		encode(`{"a":"` + mark + `","t":-1,"i":"` + id(1) + `"}`), encode(`{"a":"` + mark + `","t":99999999999999,"i":"` + id(1) + `"}`),
		encode(`{"a":"` + mark + `","t":1,"i":"../x"}`), encode(`{"a":"` + mark + `","t":1.5,"i":"` + id(1) + `"}`), encode(`{"a":"","t":1,"i":"` + id(1) + `"}`),
	} {
		if got, ok := decodeCursor("acme", bad); ok {
			t.Errorf("%q: taken for %+v", bad, got)
		}
	}
	if _, ok := decodeCursor("globex", good); ok {
		t.Error("a cursor of another account was taken")
	}
}

func FuzzCursor(f *testing.F) {
	f.Add(encodeCursor("acme", files.Position{CreatedAt: time.Unix(1, 0), ID: id(1)}))
	f.Add("e30")
	f.Fuzz(func(t *testing.T, s string) {
		p, ok := decodeCursor("acme", s)
		if ok && (!files.ValidID(p.ID) || p.CreatedAt.Unix() <= 0) {
			t.Errorf("%q: taken for %+v", s, p)
		}
	})
}
