package filestest_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
)

func openRecords(*testing.T) filestest.Table {
	r := filestest.NewRecords()
	return filestest.Table{
		Records:    r,
		Snapshot:   r.Snapshot,
		Drop:       func(_ testing.TB, id string) { r.Drop(id) },
		DropHold:   func(_ testing.TB, f files.File) { r.DropHold(f.ID) },
		SetAccount: func(_ testing.TB, account string, u filestest.AccountUsage) { r.SetAccount(account, u) },
		SetActor:   func(_ testing.TB, id filestest.ActorID, u filestest.ActorUsage) { r.SetActor(id, u) },
	}
}

func TestRecordsConform(t *testing.T) {
	t.Parallel()
	filestest.TestRecords(t, openRecords)
}

func TestLifecycleConforms(t *testing.T) {
	t.Parallel()
	filestest.TestLifecycle(t, openRecords)
}

func TestKeysConform(t *testing.T) {
	t.Parallel()
	filestest.TestKeys(t, func(*testing.T) access.Keys { return filestest.NewKeys() })
}

func TestStoreConforms(t *testing.T) {
	t.Parallel()
	s := filestest.NewStore(filestest.NewClock())
	objects := filestest.ObjectStore{
		Stage:  s,
		Writer: s,
		Put: func(t testing.TB, id string, body []byte) {
			if err := s.Discard(context.Background(), id); err != nil {
				t.Fatal(err)
			}
			if err := s.Put(context.Background(), id, body); err != nil {
				t.Fatal(err)
			}
		},
		Read: func(_ testing.TB, object string) ([]byte, bool) {
			body, ok := s.Objects().Sealed[object]
			return body, ok
		},
	}
	filestest.TestStage(t, objects)
	filestest.TestSealedWriter(t, objects)
	filestest.TestBytes(t, objects, s)
}

// TestViolations breaks each rule of the ledger once and wants to hear of it.
func TestViolations(t *testing.T) {
	t.Parallel()
	reserved, ready := filestest.NewFile(), filestest.NewFile()
	ready.State, ready.Sealed, ready.SHA256, ready.VerifiedAt = files.Ready, "sealed", strings.Repeat("00", 32), filestest.Now
	good := func() filestest.Snapshot {
		return filestest.Snapshot{
			Files: map[string]files.File{reserved.ID: reserved, ready.ID: ready},
			Holds: []filestest.Hold{
				{ID: reserved.ID, Account: "acme", Actor: "alice", Deadline: reserved.UploadBy, Bytes: 1000, Counted: true},
				{ID: ready.ID, Account: "acme", Actor: "alice", Deadline: ready.ExpiresAt, Bytes: 1000},
			},
			Accounts: map[string]filestest.AccountUsage{"acme": {Bytes: 2000, Files: 2}, "idle": {}},
			Actors:   map[filestest.ActorID]filestest.ActorUsage{{Account: "acme", Actor: "alice"}: {Reservations: 1}},
		}
	}
	if bad := good().Violations(); len(bad) > 0 {
		t.Errorf("a good table has violations: %v", bad)
	}
	for name, spoil := range map[string]func(*filestest.Snapshot){
		"no hold":          func(s *filestest.Snapshot) { s.Holds = s.Holds[:1] },
		"two holds":        func(s *filestest.Snapshot) { s.Holds = append(s.Holds, s.Holds[0]) },
		"wrong deadline":   func(s *filestest.Snapshot) { s.Holds[1].Deadline = ready.UploadBy },
		"wrong bytes":      func(s *filestest.Snapshot) { s.Holds[0].Bytes++ },
		"still counted":    func(s *filestest.Snapshot) { s.Holds[1].Counted = true },
		"no file":          func(s *filestest.Snapshot) { delete(s.Files, reserved.ID) },
		"another id":       func(s *filestest.Snapshot) { s.Files[ready.ID] = reserved },
		"account too high": func(s *filestest.Snapshot) { s.Accounts["acme"] = filestest.AccountUsage{Bytes: 2001, Files: 2} },
		"no account":       func(s *filestest.Snapshot) { delete(s.Accounts, "acme") },
		"left behind":      func(s *filestest.Snapshot) { s.Accounts["idle"] = filestest.AccountUsage{Files: 1} },
		"actor too low":    func(s *filestest.Snapshot) { clear(s.Actors) },
		"ended but live": func(s *filestest.Snapshot) {
			f := reserved
			f.EndedAt = filestest.Now
			s.Files[f.ID] = f
		},
		"ended and held": func(s *filestest.Snapshot) {
			f := reserved
			f.State, f.EndedAt = files.Expired, filestest.Now
			s.Files[f.ID] = f
		},
		"rejected for nothing": func(s *filestest.Snapshot) {
			f := reserved
			f.State, f.EndedAt = files.Rejected, filestest.Now
			s.Files[f.ID], s.Holds[0] = f, filestest.Hold{}
		},
		"ready without bytes": func(s *filestest.Snapshot) {
			f := ready
			f.Sealed = ""
			s.Files[f.ID] = f
		},
	} {
		s := good()
		spoil(&s)
		if len(s.Violations()) == 0 {
			t.Errorf("%s: no violation was found", name)
		}
	}
}

func TestObjectViolations(t *testing.T) {
	t.Parallel()
	f := filestest.NewFile(filestest.Sized(2))
	f.State, f.Sealed = files.Ready, "sealed"
	f.SHA256 = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a" // of {}
	waiting := filestest.NewFile()
	s := filestest.Snapshot{Files: map[string]files.File{f.ID: f, waiting.ID: waiting}}
	good := func() filestest.Objects {
		return filestest.Objects{Staged: map[string][]byte{waiting.ID: {1}}, Sealed: map[string][]byte{"sealed": []byte("{}")}}
	}
	if bad := s.ObjectViolations(good()); len(bad) > 0 {
		t.Errorf("good objects have violations: %v", bad)
	}
	for name, spoil := range map[string]func(filestest.Objects){
		"missing":         func(o filestest.Objects) { delete(o.Sealed, "sealed") },
		"other bytes":     func(o filestest.Objects) { o.Sealed["sealed"] = []byte("[]") },
		"nobody's":        func(o filestest.Objects) { o.Sealed["other"] = nil },
		"staged too long": func(o filestest.Objects) { o.Staged[f.ID] = nil },
		"staged unknown":  func(o filestest.Objects) { o.Staged["x"] = nil },
	} {
		o := good()
		spoil(o)
		if len(s.ObjectViolations(o)) == 0 {
			t.Errorf("%s: no violation was found", name)
		}
	}
}

// TestExplore counts the orders of two actors' steps: all of them, and those with few interruptions.
func TestExplore(t *testing.T) {
	t.Parallel()
	for _, w := range []struct{ switches, want int }{
		{-1, 10}, // 3 steps and 2 steps: 5 over 2
		{0, 2},
		{1, 5}, // in two pieces: a|bb|aa, aa|bb|a, b|aaa|b
	} {
		seen := map[string]bool{}
		runs := filestest.Explore(t, w.switches, func() ([]filestest.Actor, func() []string) {
			var order []string
			steps := func(name string, n int) filestest.Actor {
				return filestest.Actor{Name: name, Run: func(ctx context.Context) {
					for range n {
						if err := filestest.Yield(ctx, "step", filestest.Before); err != nil {
							t.Error(err)
						}
						order = append(order, name)
					}
				}}
			}
			return []filestest.Actor{steps("a", 3), steps("b", 2)}, func() []string {
				seen[strings.Join(order, "")] = true
				if len(order) != 5 {
					return []string{"some steps are missing"}
				}
				return nil
			}
		})
		if runs != w.want || len(seen) != w.want {
			t.Errorf("with %d switches: %d runs and %d orders, want %d", w.switches, runs, len(seen), w.want)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	var faults filestest.Faults
	r := filestest.NewRecords()
	r.Hook = faults.Hook
	between := 0
	faults.Fail(filestest.Step{Op: "Create", N: 1}, filestest.Before)
	faults.Fail(filestest.Step{Op: "Create", N: 2}, filestest.After)
	faults.Do(filestest.Step{Op: "File", N: 1}, filestest.Before, func() { between++ })
	a, b := filestest.NewFile(), filestest.NewFile()
	for _, f := range []files.File{a, b} {
		if _, _, err := r.Create(t.Context(), f, filestest.Roomy, nil, filestest.Now); err == nil {
			t.Error("a call that was to fail succeeded")
		}
	}
	if _, err := r.File(t.Context(), a.ID); err == nil {
		t.Error("what failed before took effect")
	}
	if _, err := r.File(t.Context(), b.ID); err != nil {
		t.Errorf("what failed after took no effect: %v", err)
	}
	if between != 1 || faults.Fired() != 3 {
		t.Errorf("in between %d, fired %d; want 1 and 3", between, faults.Fired())
	}
	want := []filestest.Step{{Op: "Create", N: 1}, {Op: "Create", N: 2}, {Op: "File", N: 1}, {Op: "File", N: 2}}
	if got := faults.Steps(); !slices.Equal(got, want) {
		t.Errorf("the steps were %v, want %v", got, want)
	}
}
