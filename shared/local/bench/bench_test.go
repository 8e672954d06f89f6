package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// These tests run everything once, briefly. They look at answers and counts, never at times: how long something takes
// says something about the machine.

const root = "../../.."

// built is the folder with the programs, made once for all tests; withNode tells whether the Node peer is among them.
var (
	built    string
	withNode bool
)

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if err := supported(); err != nil {
		println("skipping the benchmark's tests:", err.Error())
		return 0
	}
	var err error
	if built, err = os.MkdirTemp("", "claimcheck-bench-"); err != nil {
		println(err.Error())
		return 1
	}
	defer os.RemoveAll(built)
	ctx := context.Background()
	if err := buildGo(ctx, root, built); err != nil {
		println(err.Error())
		return 1
	}
	// Node.js, its packages and a registry to have them from are not things that a test may depend on.
	if existing, err := filepath.Abs(filepath.Join(root, ".local", "bench", node)); err == nil {
		_, missing := os.Stat(filepath.Join(existing, nodeBundle))
		of, _ := os.ReadFile(filepath.Join(existing, "index.js"))
		now, _ := os.ReadFile("peers/node/index.js")
		_, none := exec.LookPath("node")
		withNode = missing == nil && none == nil && bytes.Equal(of, now) && os.Symlink(existing, filepath.Join(built, node)) == nil
	}
	return m.Run()
}

func setUp(t *testing.T) (*standIns, []program, *requests) {
	t.Helper()
	s, err := serveStandIns(root, t.TempDir(), noise(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	list, err := programs(root, built, s, withNode)
	if err != nil {
		t.Fatal(err)
	}
	events, err := newRequests(root)
	if err != nil {
		t.Fatal(err)
	}
	return s, list, events
}

// TestSpeed runs the measurement and checks that every program has done the work that it is measured for.
func TestSpeed(t *testing.T) {
	t.Parallel()
	s, all, events := setUp(t)
	for _, p := range all {
		figures, err := measureSpeed(t.Context(), []program{p}, s, signals{}, events, rounds{cold: 1, throttled: 1, warm: 1, events: 5}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		const starts = 4
		const requests = 3 + warmUp + 5 // under a key of their own each, then 5 under one key
		got := s.taken()
		want := map[string]int{"AssumeRole": starts, "GetItem": requests + 5, "TransactWriteItems": requests + 5, "Put": 2 * (requests + 5), "Update": 2 * (requests + 5)}
		switch p.name {
		case ours:
			want["GetItem"] = starts + requests + 1 // the connection is opened by one, a key is remembered
		case floor:
			want = map[string]int{}
		}
		delete(got, "connections") // depends on what overtakes what
		if list(got) != list(want) {
			t.Errorf("%s: asked %s, want %s", p.name, list(got), list(want))
		}
		f := figures[0]
		for name, n := range map[string][2]int{
			"init": {len(f.init), 1}, "cold": {len(f.cold), 1}, "quota": {len(f.quota), 1}, "throttled": {len(f.throttled), 1},
			"warm": {len(f.warm), 5}, "warmCPU": {len(f.warmCPU), 1}, "knownCPU": {len(f.knownCPU), 1}, "peak": {len(f.peak), 1},
		} {
			if n[0] != n[1] {
				t.Errorf("%s: %d figures of %s, want %d", p.name, n[0], name, n[1])
			}
		}
	}
}

// TestCompareVerification: the function verifies every object it is told of, and the peer reads the whole one.
func TestCompareVerification(t *testing.T) {
	t.Parallel()
	s, _, _ := setUp(t)
	c, err := compareVerification(t.Context(), root, built, s, rounds{warm: 2, events: 5}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	got := s.taken()
	const verified, read = warmUp + 2*5, 1 + 2
	for what, want := range map[string]int{
		"GetItem": 1 + verified, "TransactWriteItems": verified, "Update": 2 * verified, "Put": verified, "Delete": verified, "CopyObject": verified, "DeleteObject": verified, "GetObject": verified + read,
	} { // one GetItem opens the connection
		if got[what] != want {
			t.Errorf("%s: %d, want %d", what, got[what], want)
		}
	}
	if len(c.verify) != 2 || len(c.stream) != 2 {
		t.Errorf("%d and %d figures, want 2 of each", len(c.verify), len(c.stream))
	}
	for _, answer := range []string{`{"batchItemFailures":[{"itemIdentifier":"1"}]}`, `x`} {
		if checkVerified([]byte(answer)) == nil {
			t.Errorf("%s passes for a verification", answer)
		}
	}
}

// shippedFunction starts the function as shipped, with changes to its environment.
func shippedFunction(t *testing.T, p program, env map[string]string) *process {
	t.Helper()
	all := maps.Clone(p.env)
	maps.Copy(all, env)
	maps.DeleteFunc(all, func(_, v string) bool { return v == "" })
	proc, err := begin(t.Context(), p.name, p.command, all)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proc.stop)
	return proc
}

func reserveOnce(t *testing.T, p program, proc *process, event []byte) []byte {
	t.Helper()
	body, _, err := proc.invoke(t.Context(), event)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.check(body); err != nil {
		t.Fatal(err)
	}
	return body
}

// TestStartIsWarm: the first request needs no connection and no session of its own.
func TestStartIsWarm(t *testing.T) {
	t.Parallel()
	s, all, events := setUp(t)
	proc := shippedFunction(t, all[0], nil)
	if got := list(s.taken()); got != "AssumeRole 1, GetItem 1, connections 2" {
		t.Errorf("the start asked %s", got)
	}
	reserveOnce(t, all[0], proc, events.next())
	if got := list(s.taken()); got != "GetItem 1, Put 2, TransactWriteItems 1, Update 2" {
		t.Errorf("the first request asked %s", got)
	}
}

// TestLostConnections: what the start has opened may be gone by the time of a request.
func TestLostConnections(t *testing.T) {
	t.Parallel()
	s, all, events := setUp(t)
	proc := shippedFunction(t, all[0], nil)
	for range 3 {
		s.taken()
		s.hangUp()
		reserveOnce(t, all[0], proc, events.next())
		if n := s.taken()["connections"]; n != 1 {
			t.Errorf("%d connections, want 1 again", n)
		}
	}
}

// TestSessionsEnd: a session that a URL would outlive is replaced before it signs one.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	s, all, events := setUp(t)
	s.setLife(10 * time.Minute) // URLs last 15
	proc := shippedFunction(t, all[0], nil)
	for range 3 {
		s.taken()
		reserveOnce(t, all[0], proc, events.next())
		if n := s.taken()["AssumeRole"]; n != 1 {
			t.Errorf("%d sessions for a request, want 1", n)
		}
	}
	s.setLife(time.Hour)
	for i, want := range []int{1, 0, 0} {
		s.taken()
		reserveOnce(t, all[0], proc, events.next())
		if n := s.taken()["AssumeRole"]; n != want {
			t.Errorf("request %d with long sessions: %d, want %d", i, n, want)
		}
	}
}

// TestRootsDoNotFit: services whose authority the function does not carry are found trustworthy by the system's.
func TestRootsDoNotFit(t *testing.T) {
	t.Parallel()
	s, all, events := setUp(t)
	proc := shippedFunction(t, all[0], map[string]string{"AWS_CA_BUNDLE": "", "SSL_CERT_FILE": s.Everything})
	reserveOnce(t, all[0], proc, events.next())
	if got := list(s.taken()); !strings.HasPrefix(got, "AssumeRole 1, GetItem 2, Put 2, TransactWriteItems 1") {
		t.Errorf("asked %s", got)
	}
}

// TestFailures: a program that is broken is reported with what it said, and one that answers wrongly is not measured.
func TestFailures(t *testing.T) {
	t.Parallel()
	s, all, events := setUp(t)
	p := all[0]
	p.env = maps.Clone(p.env)
	delete(p.env, "TABLE_NAME")
	_, err := measureSpeed(t.Context(), []program{p}, s, signals{}, events, rounds{cold: 1}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "TABLE_NAME is missing") {
		t.Errorf("without a variable: %v", err)
	}
	for _, answer := range []string{`{"statusCode":401}`, `x`, `{"statusCode":201,"body":"{}"}`} {
		if p.check([]byte(answer)) == nil {
			t.Errorf("%s passes for a reservation", answer)
		}
	}
	if err := command(t.Context(), []string{"speed", "-node", "maybe"}, io.Discard, io.Discard); !errors.Is(err, errUsage) {
		t.Errorf("an unknown choice: %v", err)
	}
}

// TestStack counts what a file asks of AWS on its way, and puts the whole report together.
func TestStack(t *testing.T) {
	t.Parallel()
	l, err := openLab(t.Context(), root, t.TempDir(), shortUploads)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.close(); err != nil {
			t.Error(err)
		}
	})
	r := &results{where: observe(), noNode: "left out"}
	if r.steps, err = l.handOff(t.Context(), []byte("a report\n"), false, byTime); err != nil {
		t.Fatal(err)
	}
	if r.again, err = l.handOff(t.Context(), []byte("a report\n"), true, onRequest); err != nil {
		t.Fatal(err)
	}
	if all := sum(r.steps); r.steps[0].write != 8 || r.again[0].write != 10 || all.write != 22 || all.index != 7 || all.objectBytes > 2*headBytes {
		t.Errorf("reserve %g, with a key %g, the whole life %g and %g of indexes, %d bytes", r.steps[0].write, r.again[0].write, all.write, all.index, all.objectBytes)
	}
	// DELETE removes the bytes itself, and the deletion queue makes sure.
	if expired, deleted := list(sum(r.steps).s3), list(sum(r.again).s3); expired != "CopyObject 1, DeleteObject 2, GetObject 2, PutObject 1" ||
		deleted != "CopyObject 1, DeleteObject 3, GetObject 2, PutObject 1" {
		t.Errorf("a file that expires takes %s of S3, one that is deleted %s", expired, deleted)
	}
	objects, err := samples(8 << 20)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range objects {
		v, err := l.verify(t.Context(), s, 1)
		if err != nil {
			t.Fatal(err)
		}
		if v.read == 0 || v.read > s.limit {
			t.Errorf("%s: %d bytes read to verify, the limit is %d", s.name, v.read, s.limit)
		}
		r.verified = append(r.verified, v)
	}
	load, err := l.measureLoad(t.Context(), 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	if load.done != 2 || load.errors != 0 || len(load.latency) != len(routes) {
		t.Errorf("%d hand-offs, %d errors, latencies of %d routes: %v", load.done, load.errors, len(load.latency), load.examples)
	}
	if text := loadReport([]loaded{load}, r.where); !strings.Contains(text, "| 2 | ") {
		t.Errorf("the report of the load:\n%s", text)
	}

	one := func(name string, n float64) *figures {
		s := series{n}
		return &figures{
			program: program{name: name}, init: s, first: s, initCPU: s, cold: s, quotaFirst: s, quota: s, throttled: s,
			warm: s, knownCPU: s, warmCPU: s, peak: s, size: n,
		}
	}
	r.figures = []*figures{one(ours, 1), one(typ, 2), one(floor, .5)}
	r.compared = compared{verify: series{3}, stream: series{200}}
	r.verified = append(r.verified, verified{sample: sample{name: size(bigObject)}, cpu: series{4}})
	text := r.report("speed.svg")
	if strings.Contains(text, "NaN") {
		t.Errorf("the report has figures that are none:\n%s", text)
	}
	for _, part := range []string{
		"| peak memory | 1.0 MiB | typ 2.0 MiB | <= 0.7x | 0.500x | met |", "| not measured |", "0.500x | NOT MET |", "No Node.js rows: left out",
		"NOT MET: start + first reserve, wall, share of 128 MB, against typ 2.0 ms: a Go program with a fixed answer takes 0.5 ms.",
		"| CPU to verify 100 MiB | 3.00 ms | streaming 200.00 ms | <= 0.01x | 0.015x | NOT MET |",
		"| … by an instance that has been at rest | 4.00 ms | streaming 200.00 ms |  | 0.020x | reported |",
		"5 requests of AWS at 0.50 ms each, for which the goal leaves 0.30 ms.",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("the report does not say %q:\n%s", part, text)
		}
	}
	if chart := r.chart(); strings.Count(chart, "<rect") != 12 || strings.Contains(chart, "NaN") {
		t.Errorf("the chart:\n%s", chart)
	}
}

func TestSeries(t *testing.T) {
	t.Parallel()
	s := series{5, 1, 4, 2, 3}
	for q, want := range map[float64]float64{0: 1, .25: 2, .5: 3, .75: 4, .99: 5, 1: 5} {
		if got := s.at(q); got != want {
			t.Errorf("at(%g) = %g, want %g", q, got, want)
		}
	}
	if !math.IsNaN(series(nil).median()) {
		t.Error("the median of nothing is a number")
	}
}

// TestPrices: what is computed follows the bytes.
func TestPrices(t *testing.T) {
	t.Parallel()
	if got, want := dollars(billOurs(spent{write: 8, s3: map[string]int{"PutObject": 1, "DeleteObject": 9}})), 8*.625+5+2+1+5*.005*13.3334+2.4+1; math.Abs(got-want) > 1e-6 {
		t.Errorf("ours %g, want %g", got, want)
	}
	if small, big := dollars(billProxy(1_000_000)), dollars(billProxy(100_000_000)); big < 20*small {
		t.Errorf("1 MB %g, 100 MB %g", small, big)
	}
}
