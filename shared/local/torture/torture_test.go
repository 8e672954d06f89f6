package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTorture runs a few short seeds; `make torture` runs more and longer.
func TestTorture(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	o := options{root: "../../..", steps: 600, callers: 12, progress: testLog{t}}
	for _, seed := range []uint64{1, 2} {
		o.data = filepath.Join(t.TempDir(), "data")
		if err := run(ctx, o, seed); err != nil {
			log, _ := os.ReadFile(filepath.Join(o.data, "stack.log"))
			lines := strings.Split(string(log), "\n")
			t.Fatalf("seed %d: %v\nTo run it again:\n    %s\nThe end of the log:\n%s", seed, err, replay(o, seed), strings.Join(lines[max(0, len(lines)-60):], "\n"))
		}
		o.functions = filepath.Join(o.data, "functions")
	}
}

type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// sound is a picture with one ready file and one reservation, and nothing wrong.
func sound() *picture {
	bytes := []byte("bytes")
	return &picture{
		files: map[string]row{
			"f_1": {"state": "ready", "account": "a", "sealed": "files/f_1/e", "sha256": sum(bytes), "size": "5", "charged": "5", "upload_by": "50", "expires_at": "100"},
			"f_2": {"state": "reserved", "account": "a", "counted": "true", "charged": "7", "upload_by": "50", "expires_at": "100"},
			"f_3": {"state": "deleted", "account": "a", "charged": "9", "expires_at": "100"},
		},
		holds: []row{
			{"pk": "hold#a", "sk": "000000000100#f_1", "actor": "x", "bytes": "5"},
			{"pk": "hold#a", "sk": "000000000050#f_2", "actor": "x", "bytes": "7", "counted": "true"},
		},
		counters: map[string]row{
			"account#a usage":   {"bytes": "12", "files": "2"},
			"account#a actor#x": {"reservations": "1"},
		},
		objects: map[string]object{"files/f_1/e": {Key: "files/f_1/e", Size: 5, digest: sum(bytes)}},
	}
}

// TestInvariants breaks a sound picture in every way that must be noticed.
func TestInvariants(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, want string
		break_     func(*picture)
	}{
		{"nothing", "", func(*picture) {}},
		{"hold missing", "f_1 is ready but nothing holds its quota", func(p *picture) { p.holds = p.holds[1:] }},
		{"hold of an ended file", "f_3 is deleted but its quota is still held", func(p *picture) {
			p.holds = append(p.holds, row{"pk": "hold#a", "sk": "000000000100#f_3", "bytes": "9"})
		}},
		{"hold of no file", "there is a hold of f_9", func(p *picture) {
			p.holds = append(p.holds, row{"pk": "hold#a", "sk": "000000000100#f_9", "bytes": "0"})
		}},
		{"two holds", "f_1 has two holds", func(p *picture) { p.holds = append(p.holds, p.holds[0]) }},
		{"hold at another time", "the hold of f_2", func(p *picture) { p.holds[1]["sk"] = "000000000100#f_2" }},
		{"hold that still counts", "counts as a reservation", func(p *picture) { p.holds[0]["counted"] = "true" }},
		{"bytes drifted", "the counters of account#a usage", func(p *picture) { p.counters["account#a usage"]["bytes"] = "13" }},
		{"reservations drifted", "the counters of account#a actor#x", func(p *picture) { p.counters["account#a actor#x"]["reservations"] = "0" }},
		{"counters missing", "there are no counters of account#a usage", func(p *picture) { delete(p.counters, "account#a usage") }},
		{"object lost", "does not exist", func(p *picture) { p.objects = nil }},
		{"object changed", "other bytes than were verified", func(p *picture) {
			p.objects["files/f_1/e"] = object{Key: "files/f_1/e", Size: 5, digest: sum([]byte("bites"))}
		}},
		{"orphan", "files/f_3/x", func(p *picture) { p.objects["files/f_3/x"] = object{Key: "files/f_3/x"} }},
		{"staged orphan", "staging/f_3", func(p *picture) { p.objects["staging/f_3"] = object{Key: "staging/f_3"} }},
	}
	for _, test := range tests {
		p := sound()
		test.break_(p)
		bad, orphans := p.bytesAtRest(time.Unix(10, 0))
		got := strings.Join(append(append(p.ledger(), bad...), orphans...), "; ")
		if test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s: found %q, want %q", test.name, got, test.want)
		}
	}
}

// TestContradictions gives the model answers that contradict what was acknowledged.
func TestContradictions(t *testing.T) {
	t.Parallel()
	now := time.Now()
	digest, size := sum([]byte("good")), int64(4)
	ready := fileObject{ID: "f_1", State: "ready", SHA256: &digest, SizeBytes: &size}
	other := sum([]byte("other"))
	fresh := func() *file {
		f := &file{id: "f_1", owner: &identity{actor: "x"}, size: 4, kind: anyType, good: []byte("good"), bad: []byte("evil"), uploadBy: now.Add(time.Minute), expires: now.Add(time.Hour)}
		f.tried.puts = map[string]time.Time{digest: now, other: now}
		return f
	}
	at := answer{status: 200, start: now, end: now.Add(time.Second)}
	refusal := func(code string) answer { return answer{status: 410, code: code, start: at.start, end: at.end} }
	tests := []struct {
		name   string
		before facts
		answer func(*file, facts) string
		wrong  bool
	}{
		{"ready", facts{}, func(f *file, b facts) string { return f.shown(b, ready, at) }, false},
		{"ready after deletion", facts{deleted: true}, func(f *file, b facts) string { return f.shown(b, ready, at) }, true},
		{"ready after it was spent", facts{spent: "c_1"}, func(f *file, b facts) string { return f.shown(b, ready, at) }, true},
		{"ready after rejection", facts{rejected: true}, func(f *file, b facts) string { return f.shown(b, ready, at) }, true},
		{"another digest", facts{digest: other}, func(f *file, b facts) string { return f.shown(b, ready, at) }, true},
		{"bytes nobody sent", facts{}, func(f *file, b facts) string { f.tried.puts = nil; return f.shown(b, ready, at) }, true},
		{"other bytes than declared", facts{}, func(f *file, b facts) string { f.sha = other; return f.shown(b, ready, at) }, true},
		{"reserved again", facts{digest: digest}, func(f *file, b facts) string { return f.shown(b, fileObject{ID: "f_1", State: "reserved"}, at) }, true},
		{"shown after its expiry", facts{}, func(f *file, b facts) string { f.expires = now; return f.shown(b, ready, at) }, true},
		{"deleted by somebody", facts{}, func(f *file, b facts) string { f.tried.deleted = true; return f.refused(b, refusal("file_deleted")) }, false},
		{"deleted by nobody", facts{}, func(f *file, b facts) string { return f.refused(b, refusal("file_deleted")) }, true},
		{"spent by nobody", facts{}, func(f *file, b facts) string { return f.refused(b, refusal("file_spent")) }, true},
		{"expired too early", facts{digest: digest}, func(f *file, b facts) string { return f.refused(b, refusal("file_expired")) }, true},
		{"expired in time", facts{digest: digest}, func(f *file, b facts) string { f.expires = now; return f.refused(b, refusal("file_expired")) }, false},
		{"acknowledged bytes not there", facts{staged: true}, func(f *file, b facts) string { return f.refused(b, refusal("not_uploaded")) }, true},
		{"rejected without cause", facts{}, func(f *file, b facts) string { return f.refused(b, refusal("file_rejected")) }, true},
		{"not found", facts{}, func(f *file, b facts) string { return f.refused(b, refusal("file_not_found")) }, true},
		{"two holders", facts{digest: digest}, func(f *file, b facts) string {
			f.single = true
			first := &claim{who: f.owner, holder: "a", start: now.Add(-2 * time.Second), end: now.Add(-time.Second), id: "c_1", surely: now.Add(time.Minute)}
			second := &claim{who: f.owner, holder: "b", start: now}
			f.claims = []*claim{first, second}
			return f.claimAcknowledged(b, second, "c_2", now.Add(time.Minute), at)
		}, true},
	}
	for _, test := range tests {
		if why := test.answer(fresh(), test.before); (why != "") != test.wrong {
			t.Errorf("%s: %q", test.name, why)
		}
	}
}

// TestBounds checks that limits exceeded and limits that were not are noticed.
func TestBounds(t *testing.T) {
	t.Parallel()
	who := &identity{"a", "x", ""}
	acc := &account{name: "a"}
	for n := range 3 {
		f := &file{id: fmt.Sprint(n), owner: who, size: 100, charged: 100, uploadBy: time.Now().Add(time.Minute), expires: time.Now().Add(time.Hour)}
		acc.files, acc.counting = append(acc.files, f), append(acc.counting, f)
	}
	least, most := acc.bounds("x", time.Now(), nil)
	if want := (held{300, 3, 3, 0}); least != want || most != want {
		t.Errorf("at least %+v, at most %+v, want %+v", least, most, want)
	}
	at := &attempt{who: who, size: 100}
	refused := answer{status: 429, code: "too_many_reservations"}
	if l := (limits{maxLive: 1000, reservations: 3}); l.overLimit(least) != "" || l.falseLimit(most, at, refused) != "" {
		t.Error("a full limit counts as exceeded, or its refusal as false")
	}
	if l := (limits{maxLive: 1000, reservations: 2}); l.overLimit(least) == "" {
		t.Error("three reservations under a limit of two were not noticed")
	}
	if l := (limits{maxLive: 299, reservations: 9}); l.overLimit(least) == "" {
		t.Error("300 bytes under a limit of 299 were not noticed")
	}
	if l := (limits{maxLive: 1000, reservations: 4}); l.falseLimit(most, at, refused) == "" {
		t.Error("a refusal with room left was not noticed")
	}
}
