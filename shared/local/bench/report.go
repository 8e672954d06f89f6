package main

import (
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// conditions is where and how a run was made.
type conditions struct {
	begin         time.Time
	loadBefore    string
	quota         string
	authorities   int
	rounds        rounds
	node, machine string
}

func observe() conditions {
	c := conditions{begin: time.Now(), machine: machine()}
	c.loadBefore, _ = load()
	if version, err := exec.Command("node", "--version").Output(); err == nil {
		c.node = strings.TrimSpace(string(version))
	}
	return c
}

func (c conditions) text() string {
	var w strings.Builder
	fmt.Fprintf(&w, "%s, %s, %s/%s, %d CPUs (%s)", c.begin.UTC().Format("2 January 2006 15:04 UTC"), runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), c.machine)
	if c.node != "" {
		fmt.Fprintf(&w, ", Node.js %s", c.node)
	}
	if after, ok := load(); ok {
		fmt.Fprintf(&w, "; load average %s before, %s after", c.loadBefore, after)
	}
	return w.String() + "."
}

// report is the Markdown of a run, next to chart.
func (r *results) report(chart string) string {
	var w strings.Builder
	fmt.Fprintf(&w, "# Speed and cost, measured\n\n%s\n", r.where.text())
	fmt.Fprintf(&w, "\n![%s](%s)\n\n## To reach\n\n| what | value | against | goal | ratio | |\n|---|---:|---:|---:|---:|---|\n", "start, CPU time and memory of the programs", chart)
	for _, g := range r.goals() {
		fmt.Fprintf(&w, "| %s | %s | %s | %s | %s | %s |\n", g.what, g.value, g.against, g.limit, g.ratioText(), g.verdict)
	}
	for _, line := range reasons(r.goals()) {
		fmt.Fprintf(&w, "\n%s: %s\n", missed, line)
	}
	if r.noNode != "" {
		fmt.Fprintf(&w, "\nNo Node.js rows: %s\n", firstLine(r.noNode))
	}

	fmt.Fprintf(&w, "\n## Programs\n\nMedians, with the quartiles around them in brackets. Times in ms, memory in MiB.\n\n|  |")
	for _, f := range r.figures {
		fmt.Fprintf(&w, " %s |", f.name)
	}
	fmt.Fprintf(&w, "\n|---|%s\n|  |", strings.Repeat("---:|", len(r.figures)))
	for _, f := range r.figures {
		fmt.Fprintf(&w, " %s |", f.what)
	}
	fmt.Fprintln(&w)
	for _, row := range []struct {
		what string
		of   func(*figures) series
	}{
		{"start to first `next`", func(f *figures) series { return f.init }},
		{"first request", func(f *figures) series { return f.first }},
		{"CPU of the start", func(f *figures) series { return f.initCPU }},
		{"CPU of start + first request", func(f *figures) series { return f.cold }},
		{"first request, share of 128 MB", func(f *figures) series { return f.quotaFirst }},
		{"start + that", func(f *figures) series { return f.quota }},
		{"start + first request, both with the share", func(f *figures) series { return f.throttled }},
		{"CPU of a later request, known key", func(f *figures) series { return f.knownCPU }},
		{"CPU of a later request, new key", func(f *figures) series { return f.warmCPU }},
		{"peak memory", func(f *figures) series { return f.peak }},
	} {
		fmt.Fprintf(&w, "| %s |", row.what)
		for _, f := range r.figures {
			s := row.of(f)
			fmt.Fprintf(&w, " %.2f (%.2f–%.2f) |", s.median(), s.at(.25), s.at(.75))
		}
		fmt.Fprintln(&w)
	}
	fmt.Fprintf(&w, "| a later request, new key, p50 / p99 |")
	for _, f := range r.figures {
		fmt.Fprintf(&w, " %.2f / %.2f |", f.warm.median(), f.warm.at(.99))
	}
	fmt.Fprintf(&w, "\n| size of the program, MiB |")
	for _, f := range r.figures {
		fmt.Fprintf(&w, " %.1f |", f.size)
	}
	fmt.Fprintf(&w, "\n\n%s", r.method())

	fmt.Fprintf(&w, "\n## Verification\n\n| object | bytes of it read | CPU of the function, ms |\n|---|---:|---:|\n")
	for _, v := range r.verified {
		fmt.Fprintf(&w, "| %s, on the local stack, after a while at rest | %d | %.2f |\n", v.name, v.read, v.cpu.median())
	}
	if c := r.compared; len(c.verify) > 0 {
		fmt.Fprintf(&w, "| %s, one event after the other | %d | %.2f (%.2f–%.2f) |\n", size(bigObject), headBytes, c.verify.median(), c.verify.at(.25), c.verify.at(.75))
		fmt.Fprintf(&w, "| %s, downloaded and hashed by a peer | all | %.2f (%.2f–%.2f) |\n", size(bigObject), c.stream.median(), c.stream.at(.25), c.stream.at(.75))
		fmt.Fprintf(&w, "\nThe last two took turns, over TLS and against stand-ins that answer at once: %d times %d later events of verify-upload after %d to warm up, and one\ndownload.\n",
			len(c.verify), r.where.rounds.events, warmUp)
	}

	fmt.Fprintf(&w, "\n## Requests of a hand-off\n\nCounted by the local engines. A write unit in a transaction counts twice, as DynamoDB bills it.\n\n"+
		"| step | S3 | DynamoDB | write units | of indexes | read units |\n|---|---|---|---:|---:|---:|\n")
	for _, s := range append(r.steps, step{"**together**", sum(r.steps)}) {
		fmt.Fprintf(&w, "| %s | %s | %s | %g | %g | %g |\n", s.name, list(s.s3), list(s.dynamo), s.write, s.index, s.read)
	}
	fmt.Fprintf(&w, "\nThe file ends by its time; what the sweep asks for whether or not something is due is left out. With an Idempotency-Key the reserve\n"+
		"takes %g write units. A file that is deleted on request takes %s at its end: the request removes the bytes, the deletion queue makes sure.\n\n## Cost\n\n",
		r.again[0].write, list(r.again[len(r.again)-1].s3))
	writeBill(&w, sum(r.steps))
	return w.String()
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// method says what the figures of the programs mean.
func (r *results) method() string {
	n := r.where.rounds
	return fmt.Sprintf(`The programs took turns: %d starts each at full speed and as many with the share, %d with the share throughout, and %d processes
with %d later requests of either kind after %d to warm up. DynamoDB and STS are stand-ins over TLS on loopback; they answer at once,
and to later requests after %v (two calls under a new key, so that much of the wall time is theirs), since the SDK for Go drops
a connection whose answer overtakes the end of its request. The presign session stands in every program: %s fetches it during its
start, the peers with their first request, as their SDK does by itself; those called early fetch it during their start too. The share of 128 MB is %s, applied from
the first request on, because Lambda gives a whole CPU during init; the row with the share throughout shows the programs without that. %s
trusts the stand-ins' authority beside as many others as it carries for AWS; %s has the %d of this system to read, Node.js its own.
%s has the template's environment, and with it GOMAXPROCS=1; the peers set nothing of the kind.
%s remembers a key for 60 seconds and %s reads it for each request: both rows are given. %s and %s are built as their names say in
shared/local/bench/peers; the size of Node.js itself is not counted.
`, n.cold, n.throttled, n.warm, n.events, warmUp, answerPause, ours, r.where.quota, ours, typ, r.where.authorities, ours, ours, typ, typ, node)
}
