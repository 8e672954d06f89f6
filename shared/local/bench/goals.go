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
	stream   series
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
	list := []goal{relative(cold, "%.1f ms", us.quota.median(), typ, other.quota.median(), maxColdTyp)}
	if n := r.of(node); n != nil {
		list = append(list, relative(cold, "%.1f ms", us.quota.median(), node, n.quota.median(), maxColdNode))
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
		relative("CPU of start + first reserve", "%.2f ms", us.cold.median(), typ, other.cold.median(), maxCPUTyp),
		relative("CPU of a later reserve, key known", "%.2f ms", us.knownCPU.median(), typ, other.knownCPU.median(), maxWarmTyp),
		relative("… key new to the instance", "%.2f ms", us.warmCPU.median(), typ, other.warmCPU.median(), 1).report(),
		relative("peak memory", "%.1f MiB", us.peak.median(), typ, other.peak.median(), maxPeakTyp),
		relative("size of the binary", "%.1f MiB", us.size, typ, other.size, maxSizeTyp),
	)
	for _, v := range r.verified {
		list = append(list, absolute("bytes read to verify "+v.name, float64(v.read), "", float64(v.limit)))
	}
	for _, v := range r.verified {
		if len(v.body) >= 100<<20 && len(r.stream) > 0 {
			list = append(list, relative("CPU to verify "+v.name, "%.2f ms", v.cpu.median(), "streaming", r.stream.median(), maxVerifyCPU))
		}
	}
	life := sum(r.steps)
	return append(list,
		absolute("S3 requests of a whole life", float64(total(life.s3)), "", maxS3),
		goal{what: "… of a file that is deleted on request", value: fmt.Sprint(total(sum(r.again).s3)), ratio: math.NaN(), verdict: reported},
		absolute("write units of a reserve", r.steps[0].write, "", maxReserve),
		absolute("… with Idempotency-Key", r.again[0].write, "", maxRepeat),
		absolute("write units of a whole life", life.write, "", maxLife),
		goal{what: "index writes of a whole life", value: fmt.Sprintf("%g units", life.index), ratio: math.NaN(), verdict: reported},
	)
}

// writeGoals prints the table for a terminal.
func writeGoals(w io.Writer, goals []goal) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "WHAT\tVALUE\tAGAINST\tGOAL\tRATIO\t")
	for _, g := range goals {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", g.what, g.value, g.against, g.limit, g.ratioText(), g.verdict)
	}
	return t.Flush()
}

func (g goal) ratioText() string {
	if math.IsNaN(g.ratio) {
		return ""
	}
	return fmt.Sprintf("%.3fx", g.ratio)
}
