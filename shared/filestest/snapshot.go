package filestest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
)

// Snapshot is everything a table holds about files and quotas.
type Snapshot struct {
	Files    map[string]files.File // by id
	Holds    []Hold
	Accounts map[string]AccountUsage // by name
	Actors   map[ActorID]ActorUsage
}

// Hold is the quota that one live file holds.
type Hold struct {
	ID       string // of the file
	Account  string
	Actor    string
	Deadline time.Time
	Bytes    int64
	Counted  bool  // is a reservation of its actor
	Unsized  int64 // the part of Bytes that stands for an unknown size
}

// AccountUsage is the counters of an account.
type AccountUsage struct {
	Bytes int64
	Files int64
}

// ActorID names an actor.
type ActorID struct{ Account, Actor string }

// ActorUsage is the counters of an actor.
type ActorUsage struct {
	Reservations int64
	Unsized      int64
}

// holdOf is the hold that a live file must have.
func holdOf(f files.File) Hold {
	h := Hold{ID: f.ID, Account: f.Account, Actor: f.Actor, Deadline: f.Deadline(), Bytes: f.Charged}
	if f.State == files.Reserved && f.Counted {
		h.Counted = true
		if f.Size == files.SizeUnknown {
			h.Unsized = f.Charged
		}
	}
	return h
}

// CheckInvariants reports every way in which s breaks the rules of the ledger: one hold for each live file, with its
// values, and counters that are the sums of the holds.
func CheckInvariants(t testing.TB, s Snapshot) {
	t.Helper()
	for _, v := range s.Violations() {
		t.Error(v)
	}
}

// Violations lists what CheckInvariants reports.
func (s Snapshot) Violations() []string {
	var bad []string
	report := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	holds := map[string]Hold{}
	accounts, actors := map[string]AccountUsage{}, map[ActorID]ActorUsage{}
	for _, h := range s.Holds {
		if _, twice := holds[h.ID]; twice {
			report("%s has two holds", h.ID)
		}
		holds[h.ID] = h
		a := accounts[h.Account]
		accounts[h.Account] = AccountUsage{a.Bytes + h.Bytes, a.Files + 1}
		if h.Counted {
			id := ActorID{h.Account, h.Actor}
			c := actors[id]
			actors[id] = ActorUsage{c.Reservations + 1, c.Unsized + h.Unsized}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.Files)) {
		f := s.Files[id]
		h, held := holds[id]
		delete(holds, id)
		switch {
		case f.ID != id:
			report("%s is stored as %s", f.ID, id)
		case f.State.Live() && !held:
			report("%s is %s but has no hold", id, f.State)
		case !f.State.Live() && held:
			report("%s is %s but has a hold", id, f.State)
		case held && h != holdOf(f):
			report("the hold of %s is %+v, want %+v", id, h, holdOf(f))
		}
		if f.State.Live() != f.EndedAt.IsZero() {
			report("%s is %s and ended at %v", id, f.State, f.EndedAt)
		}
		if verified := f.State == files.Ready || f.State == files.Claimed || f.State == files.Spent; verified {
			if f.VerifiedAt.IsZero() || f.Sealed == "" || f.SHA256 == "" || f.Size != f.Charged {
				report("%s is %s without what verification sets: %+v", id, f.State, f)
			}
		}
		if f.State == files.Rejected && f.Reason == nil {
			report("%s is rejected without a reason", id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(holds)) {
		report("there is a hold of %s, which doesn't exist", id)
	}
	compareCounters(s.Accounts, accounts, report)
	compareCounters(s.Actors, actors, report)
	return bad
}

// compareCounters reports differences; a counter that is missing is zero.
func compareCounters[K, V comparable](got, want map[K]V, report func(string, ...any)) {
	for k, w := range want {
		if got[k] != w {
			report("the counters of %v are %+v, the holds add up to %+v", k, got[k], w)
		}
	}
	var zero V
	for k, g := range got {
		if _, known := want[k]; !known && g != zero {
			report("the counters of %v are %+v, and there are no holds", k, g)
		}
	}
}

// CheckObjects reports every way in which the objects don't fit the records once everything is at rest: a sealed
// object that no live record names, a live record whose object is missing or another, staged bytes of a file that isn't
// reserved.
func CheckObjects(t testing.TB, s Snapshot, o Objects) {
	t.Helper()
	for _, v := range s.ObjectViolations(o) {
		t.Error(v)
	}
}

// Objects is everything an object store holds.
type Objects struct {
	Staged map[string][]byte // by id
	Sealed map[string][]byte // by name
}

// ObjectViolations lists what CheckObjects reports.
func (s Snapshot) ObjectViolations(o Objects) []string {
	var bad []string
	report := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	named := map[string]bool{}
	for _, id := range slices.Sorted(maps.Keys(s.Files)) {
		f := s.Files[id]
		if f.State != files.Ready && f.State != files.Claimed {
			continue
		}
		named[f.Sealed] = true
		body, ok := o.Sealed[f.Sealed]
		sum := sha256.Sum256(body)
		switch {
		case !ok:
			report("%s names the object %s, which doesn't exist", id, f.Sealed)
		case int64(len(body)) != f.Size || hex.EncodeToString(sum[:]) != f.SHA256:
			report("%s names the object %s, which has other bytes than were verified", id, f.Sealed)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Sealed)) {
		if !named[name] {
			report("no live record names the object %s", name)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(o.Staged)) {
		if f, ok := s.Files[id]; !ok || f.State != files.Reserved {
			report("bytes are staged for %s, which is %q", id, f.State)
		}
	}
	return bad
}
