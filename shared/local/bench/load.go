package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// The routes of a hand-off as clients see it, in order.
var routes = []string{"POST /v1/uploads", "PUT to S3", "POST /v1/uploads/{id}/complete", "POST /v1/resolve", "GET by the link"}

// loaded is what a number of callers got done together.
type loaded struct {
	callers  int
	took     time.Duration
	done     int
	latency  map[string]series // by route, in ms
	errors   int
	examples []string
	spent    spent
}

// measureLoad lets callers hand files over at once, each the next as soon as one is through, until the period is over.
func (l *lab) measureLoad(ctx context.Context, callers int, period time.Duration) (loaded, error) {
	keys := make([]string, callers)
	for i := range keys {
		var err error
		if keys[i], err = l.mint(ctx, fmt.Sprintf("caller-%d", i)); err != nil {
			return loaded{}, err
		}
	}
	all := loaded{callers: callers, latency: map[string]series{}}
	body := []byte(strings.Repeat("claimcheck\n", 93)) // about 1 KiB
	before := l.count()
	begin := time.Now()
	stop := begin.Add(period)
	var mu sync.Mutex
	var work sync.WaitGroup
	for _, key := range keys {
		work.Go(func() {
			for first := true; (first || time.Now().Before(stop)) && ctx.Err() == nil; first = false {
				times, err := l.once(ctx, key, body)
				mu.Lock()
				for route, ms := range times {
					all.latency[route] = append(all.latency[route], ms)
				}
				if err != nil {
					all.errors++
					if len(all.examples) < 3 {
						all.examples = append(all.examples, err.Error())
					}
				} else {
					all.done++
				}
				mu.Unlock()
			}
		})
	}
	work.Wait()
	all.took = time.Since(begin)
	if err := l.settle(ctx, "what the load left to do", func(spent) bool { return true }); err != nil {
		return all, err
	}
	all.spent = l.count().since(before)
	if all.done == 0 {
		return all, fmt.Errorf("no hand-off of %d callers succeeded: %s", callers, strings.Join(all.examples, "; "))
	}
	return all, ctx.Err()
}

// once hands one file over and returns how long each route took, as far as it came.
func (l *lab) once(ctx context.Context, key string, body []byte) (map[string]float64, error) {
	times := map[string]float64{}
	var s slot
	var link string
	for i, do := range []func() error{
		func() (err error) {
			s, err = l.reserve(ctx, key, "report.txt", "text/plain", len(body))
			return err
		},
		func() error { return l.upload(ctx, s, body) },
		func() error { return l.call(ctx, 200, "POST", "/v1/uploads/"+s.ID+"/complete", key, nil, nil, nil) },
		func() (err error) { link, err = l.resolve(ctx, key, s); return err },
		func() error { return l.download(ctx, link, body) },
	} {
		begin := time.Now()
		if err := do(); err != nil {
			return times, fmt.Errorf("%s: %w", routes[i], err)
		}
		times[routes[i]] = milliseconds(time.Since(begin))
	}
	return times, nil
}

// mint makes a key of an account of its own, so that one caller's quota is not another's.
func (l *lab) mint(ctx context.Context, actor string) (string, error) {
	r, err := l.stack.Invoke(ctx, "issue-key", fmt.Appendf(nil, `{"account":%q,"actor":%q,"role":"owner"}`, "bench-"+actor, actor))
	if err != nil {
		return "", fmt.Errorf("making a key: %w", err)
	}
	var answer struct{ Key string }
	if err := json.Unmarshal(r.Payload, &answer); err != nil || r.FunctionError != "" || answer.Key == "" {
		return "", errors.New("making a key: issue-key answered without one")
	}
	return answer.Key, nil
}

// loadReport is the Markdown of a run.
func loadReport(runs []loaded, where conditions) string {
	var w strings.Builder
	fmt.Fprintf(&w, "# Load on the local stack\n\n%s\n", where.text())
	fmt.Fprintf(&w, `
One hand-off is reserve, upload, complete, resolve and download of 1 KiB, over HTTP. API gateway, functions (four instances each),
DynamoDB, S3 and the callers share this machine: the figures show how the service behaves when callers queue, not what AWS would do.

`)
	fmt.Fprintf(&w, "| callers | hand-offs/s | hand-offs | errors |\n|---:|---:|---:|---:|\n")
	for _, r := range runs {
		fmt.Fprintf(&w, "| %d | %.1f | %d | %d |\n", r.callers, float64(r.done)/r.took.Seconds(), r.done, r.errors)
	}
	fmt.Fprintf(&w, "\n| route, ms |")
	for _, r := range runs {
		fmt.Fprintf(&w, " %d: p50 | p95 | p99 |", r.callers)
	}
	fmt.Fprintf(&w, "\n|---|%s\n", strings.Repeat("---:|---:|---:|", len(runs)))
	for _, route := range routes {
		fmt.Fprintf(&w, "| `%s` |", route)
		for _, r := range runs {
			s := r.latency[route]
			fmt.Fprintf(&w, " %.1f | %.1f | %.1f |", s.median(), s.at(.95), s.at(.99))
		}
		fmt.Fprintln(&w)
	}
	fmt.Fprintf(&w, "\n| per hand-off, counted | S3 requests | DynamoDB requests | write units | of indexes | read units |\n|---|---:|---:|---:|---:|---:|\n")
	for _, r := range runs {
		n := float64(r.done)
		fmt.Fprintf(&w, "| %d callers | %.2f | %.2f | %.2f | %.2f | %.2f |\n", r.callers,
			float64(total(r.spent.s3))/n, float64(total(r.spent.dynamo))/n, r.spent.write/n, r.spent.index/n, r.spent.read/n)
	}
	fmt.Fprintf(&w, `
Here the client asks for the verification (`+"`complete`"+`) while the event of the upload asks for it too, and nothing is deleted: for the
whole way of one file see the report of `+"`make bench`"+`.
`)
	for _, r := range runs {
		for _, e := range r.examples {
			fmt.Fprintf(&w, "\n%d callers, an error: %s", r.callers, e)
		}
	}
	return w.String()
}

// runLoad measures 1, 8 and 32 callers.
func runLoad(ctx context.Context, l *lab, period time.Duration, progress io.Writer) ([]loaded, error) {
	var runs []loaded
	for _, callers := range []int{1, 8, 32} {
		fmt.Fprintf(progress, "%d callers for %v\n", callers, period)
		r, err := l.measureLoad(ctx, callers, period)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, nil
}
