package functiontest

import (
	"fmt"
	"testing"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
	"claimcheck.dev/claimcheck/shared/httpapi"
)

// Suite is one function that serves a route and asks for a key.
type Suite struct {
	Sample   string        // its name
	Scope    files.Scope   // that it needs, "" when any key will do
	Scopes   []files.Scope // of the key that is used; nil: Scope alone
	Endpoint func(f *Fakes, auth *access.Authenticator) *httpapi.Endpoint
}

func (s Suite) auth(t testing.TB, f *Fakes) *access.Authenticator {
	if s.Scopes == nil && s.Scope != "" {
		return f.Auth(t, s.Scope)
	}
	return f.Auth(t, s.Scopes...)
}

// Case is one event and the state in which it arrives. The answer is the golden file of the case's name.
type Case struct {
	Setup  func(t *testing.T, f *Fakes)
	Change []func(*httpapi.Event)
	After  func(t *testing.T, f *Fakes, a httpapi.Answer)
}

// Change is a Case that differs from the sample event alone.
func Change(change ...func(*httpapi.Event)) Case { return Case{Change: change} }

// Nothing is an After: whatever was refused left nothing behind.
func Nothing(t *testing.T, f *Fakes, _ httpapi.Answer) {
	t.Helper()
	s, objects := f.Records.Snapshot(t), f.Store.Objects()
	if len(s.Files) > 0 || len(s.Holds) > 0 || len(objects.Staged) > 0 || len(objects.Sealed) > 0 {
		t.Errorf("something was left: %+v, %+v", s, objects)
	}
}

// Run answers every case.
func (s Suite) Run(t *testing.T, cases map[string]Case) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := New(t)
			s.run(t, f, name, c)
		})
	}
}

func (s Suite) run(t *testing.T, f *Fakes, name string, c Case) {
	t.Helper()
	e := s.Endpoint(f, s.auth(t, f))
	if c.Setup != nil {
		c.Setup(t, f)
	}
	ev := Event(t, s.Sample, c.Change...)
	a := f.Serve(t, e, ev)
	Golden(t, name, ev, a)
	filestest.CheckInvariants(t, f.Records.Snapshot(t))
	if c.After != nil {
		c.After(t, f, a)
	}
}

// Refusals are those of every route with a key.
func (s Suite) Refusals(t *testing.T) {
	s.Run(t, map[string]Case{
		"no-key":            Change(Header("authorization", "")),
		"mandate":           Change(Header("mandate", "eyJhbGciOiJFUzI1NiJ9.e30.c2ln")),
		"unknown-parameter": Change(Query("colour=red")),
		"try-again": {Setup: func(_ *testing.T, f *Fakes) {
			f.Faults.Fail(filestest.Step{Op: "Key", N: 1}, filestest.Before)
		}},
	})
	if s.Scope == "" {
		return
	}
	t.Run("no-scope", func(t *testing.T) {
		t.Parallel()
		f := New(t)
		var others []files.Scope
		for _, o := range files.Scopes {
			if o != s.Scope {
				others = append(others, o)
			}
		}
		ev := Event(t, s.Sample)
		Golden(t, "no-scope", ev, f.Serve(t, s.Endpoint(f, f.Auth(t, others...)), ev))
	})
}

// NotFound asks for missing, foreign and malformed ids. All get the same answer, which is the golden file not-found.
// Setup makes what the id of the sample event names, once for acme's ada and once for somebody else.
func (s Suite) NotFound(t *testing.T, setup func(t *testing.T, f *Fakes, account, actor string), others ...string) {
	strangers := map[string][2]string{"foreign": {"globex", "ada"}}
	for _, o := range others {
		strangers["of "+o] = [2]string{"acme", o}
	}
	check := func(name string, setup func(t *testing.T, f *Fakes), change ...func(*httpapi.Event)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := New(t)
			e := s.Endpoint(f, s.auth(t, f))
			setup(t, f)
			ev := Event(t, s.Sample, change...)
			Golden(t, "not-found", ev, f.Serve(t, e, ev))
		})
	}
	check("missing", func(*testing.T, *Fakes) {})
	for name, who := range strangers {
		check(name, func(t *testing.T, f *Fakes) { setup(t, f, who[0], who[1]) })
	}
	for i, id := range []string{
		"", "f_", "F_7X2K9Q4M1C8V5B3N6Z0A2S4D1F", FileID[:27], FileID + "0", FileID[2:], "claim://" + FileID, " " + FileID, FileID + "\x00", FileID + "/", FileID + "%20",
		"../" + FileID, "..", "'; drop table files; --", "f_7x2k9q4m1c8v5b3n6z0a2s4d1é", "6b3z8d1m5j2g9u4", "6b3z8d1m5j2g9u4s0", "6B3Z8D1M5J2G9U4S", KeyID + "_" + Secret,
	} {
		check(fmt.Sprintf("malformed %d", i), func(t *testing.T, f *Fakes) { setup(t, f, "acme", "ada") }, ID(id))
	}
}
