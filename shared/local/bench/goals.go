package main

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"
)

// results are all that `bench speed` found.
type results struct {
	where    conditions
	figures  []*figures
	noNode   string // why there is no row of Node
	verified []verified
	compared compared
	steps    []step // of a hand-off
	again    []step // of one with an Idempotency-Key that is deleted
}

func (r *results) of(name string) *figures {
	for _, f := range r.figures {
		if f.name == name {
			return f
		}
	}
	return nil
}

// goal is a line of the table 'To reach'.
type goal struct {
	what    string
	value   string
	against string
	limit   string
	ratio   float64 // NaN for a goal that is a number
	verdict string
	why     string // this run's figures that explain the value, for a goal that is missed
}

const (
	met      = "met"
	missed   = "NOT MET"
	unknown  = "not measured"
	reported = "reported"
)

func judge(ok bool) string {
	if ok {
		return met
	}
	return missed
}

// relative is a goal that bounds the ratio of two figures of one run.
func relative(what, form string, value float64, against string, other, limit float64) goal {
	g := goal{
		what: what, value: fmt.Sprintf(form, value), against: against + " " + fmt.Sprintf(form, other),
		limit: fmt.Sprintf("<= %gx", limit), ratio: value / other,
	}
	g.verdict = judge(g.ratio <= limit)
	return g
}

// because adds what explains the value.
func (g goal) because(why string) goal {
	g.why = why
	return g
}

// report makes a goal a figure that is only reported.
func (g goal) report() goal {
	g.limit, g.verdict = "", reported
	return g
}

// absolute is a goal that bounds a number.
func absolute(what string, value float64, unit string, limit float64) goal {
	return goal{
		what: what, value: fmt.Sprintf("%g%s", value, unit), limit: fmt.Sprintf("<= %g%s", limit, unit), ratio: math.NaN(),
		verdict: judge(value <= limit),
	}
}

// The bounds of the table 'To reach'. Ratios are between medians of one run.
const (
	maxColdTyp   = 0.13
	maxColdNode  = 0.010
	maxCPUTyp    = 0.58
	maxWarmTyp   = 0.75
	maxPeakTyp   = 0.70
	maxSizeTyp   = 0.35
	maxVerifyCPU = 0.01
	maxS3        = 6
	maxReserve   = 8
	maxRepeat    = 10 // with an Idempotency-Key
	maxLife      = 24
)

// goals is the table, in its order.
func (r *results) goals() []goal {
	us, other := r.of(ours), r.of(typ)
	const cold = "start + first reserve, wall, share of 128 MB"
	list := []goal{relative(cold, "%.1f ms", us.quota.median(), typ, other.quota.median(), maxColdTyp).because(r.whyCold())}
	if n := r.of(node); n != nil {
		list = append(list, relative(cold, "%.1f ms", us.quota.median(), node, n.quota.median(), maxColdNode).because(r.whyCold()))
	} else {
		list = append(list, goal{what: cold, against: node, limit: fmt.Sprintf("<= %gx", maxColdNode), ratio: math.NaN(), verdict: unknown})
	}
	// The peers with half of what makes the difference, for comparison.
	for _, early := range []string{typEarly, nodeEarly} {
		if f := r.of(early); f != nil {
			list = append(list, relative("… the peer's session fetched at its start", "%.1f ms", us.quota.median(), early, f.quota.median(), 1).report())
		}
	}
	list = append(list,
		r.besideTyp("CPU of start + first reserve", "%.2f ms", func(f *figures) float64 { return f.cold.median() }, maxCPUTyp),
		r.besideTyp("CPU of a later reserve, key known", "%.2f ms", func(f *figures) float64 { return f.knownCPU.median() }, maxWarmTyp),
		r.besideTyp("… key new to the instance", "%.2f ms", func(f *figures) float64 { return f.warmCPU.median() }, 1).report(),
		r.besideTyp("peak memory", "%.1f MiB", func(f *figures) float64 { return f.peak.median() }, maxPeakTyp),
		r.besideTyp("size of the binary", "%.1f MiB", func(f *figures) float64 { return f.size }, maxSizeTyp),
	)
	for _, v := range r.verified {
		list = append(list, absolute("bytes read to verify "+v.name, float64(v.read), "", float64(v.limit)))
	}
	if len(r.compared.verify) > 0 {
		name := size(bigObject)
		list = append(list, relative("CPU to verify "+name, "%.2f ms", r.compared.verify.median(), "streaming", r.compared.stream.median(), maxVerifyCPU).because(r.whyVerify()))
		for _, v := range r.verified {
			if v.name == name {
				list = append(list, relative("… by an instance that has been at rest", "%.2f ms", v.cpu.median(), "streaming", r.compared.stream.median(), 1).report())
			}
		}
	}
	whole := sum(r.steps)
	return append(list,
		absolute("S3 requests of a whole life", float64(total(whole.s3)), "", maxS3),
		goal{what: "… of a file that is deleted on request", value: fmt.Sprint(total(sum(r.again).s3)), ratio: math.NaN(), verdict: reported},
		absolute("write units of a reserve", r.steps[0].write, "", maxReserve),
		absolute("… with Idempotency-Key", r.again[0].write, "", maxRepeat),
		absolute("write units of a whole life", whole.write, "", maxLife),
		goal{what: "index writes of a whole life", value: fmt.Sprintf("%g units", whole.index), ratio: math.NaN(), verdict: reported},
	)
}

// whyCold takes the start and the first request apart.
func (r *results) whyCold() string {
	us, least := r.of(ours), r.of(floor)
	if least == nil {
		return ""
	}
	return fmt.Sprintf("a Go program with a fixed answer takes %.1f ms. This one's start takes %.1f ms more than that one's, for connections to DynamoDB and STS "+
		"with a handshake each, the session and the rehearsal; its first request takes %.1f ms, a fixed answer %.1f ms. The request needs %.2f ms of CPU time, and "+
		"what goes over the share waits for the next period",
		least.quota.median(), us.init.median()-least.init.median(), us.quotaFirst.median(), least.quotaFirst.median(), us.cold.median()-us.initCPU.median())
}

// whyVerify spreads the CPU time of a verification over its requests.
func (r *results) whyVerify() string {
	least := r.of(floor)
	if least == nil {
		return ""
	}
	requests := 0
	for _, s := range r.steps {
		if s.name == stepVerify {
			requests = total(s.dynamo) + total(s.s3) - s.s3["PutObject"]
		}
	}
	event := least.knownCPU.median()
	each := func(ms float64) float64 { return (ms - event) / float64(requests) }
	return fmt.Sprintf("the size of the object makes no difference. An event with a fixed answer takes %.2f ms; the rest are %d requests of AWS at %.2f ms each, "+
		"for which the goal leaves %.2f ms",
		event, requests, each(r.compared.verify.median()), each(maxVerifyCPU*r.compared.stream.median()))
}

// besideTyp is a goal that bounds a figure by that of typ. What any Go program has of it explains it.
func (r *results) besideTyp(what, form string, figure func(*figures) float64, limit float64) goal {
	g := relative(what, form, figure(r.of(ours)), typ, figure(r.of(typ)), limit)
	if least := r.of(floor); least != nil {
		g.why = fmt.Sprintf(form+" of it are what a Go program with a fixed answer takes", figure(least))
	}
	return g
}

// reasons lists why goals are missed, a line each.
func reasons(goals []goal) []string {
	var lines []string
	for _, g := range goals {
		if g.verdict == missed && g.why != "" {
			lines = append(lines, fmt.Sprintf("%s, against %s: %s.", g.what, g.against, g.why))
		}
	}
	return lines
}

// writeGoals prints the table for a terminal.
func writeGoals(w io.Writer, goals []goal) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "WHAT\tVALUE\tAGAINST\tGOAL\tRATIO\t")
	for _, g := range goals {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", g.what, g.value, g.against, g.limit, g.ratioText(), g.verdict)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, line := range reasons(goals) {
		if _, err := fmt.Fprintf(w, "\n%s: %s\n", missed, line); err != nil {
			return err
		}
	}
	return nil
}

func (g goal) ratioText() string {
	if math.IsNaN(g.ratio) {
		return ""
	}
	return fmt.Sprintf("%.3fx", g.ratio)
}
