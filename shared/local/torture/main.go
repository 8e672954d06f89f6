// Command torture runs the whole local stack under faults and checks that nothing acknowledged is ever contradicted.
//
// Many callers reserve, upload, read, claim, commit and delete at once, while the local engines fail as a seeded plan
// says: DynamoDB collides, throttles, fails and loses replies; S3 fails, slows down, cuts connections and loses replies;
// functions are killed; notifications come late, twice and out of order (plan.go). Every caller knows what it was told
// and compares each answer with it (file.go, quota.go). At the end the faults stop, the queues are drained, and what the
// stack holds is checked from outside the service (settle.go, inspect.go): ledger, counters and live files agree, no
// object is there without a record nor the reverse, and when all files have ended nothing is left.
//
// A seed decides what each caller does and how the dice of the fault plans fall. Which request meets which fault also
// depends on how the machine runs them, so a failing seed may need more than one run to fail again.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// options of a run.
type options struct {
	root    string
	steps   int
	callers int
	// functions is a folder of built functions to start from, "" to build them.
	functions string
	data      string
	progress  io.Writer
}

func main() {
	root := flag.String("root", "../..", "folder of the project, with template.yaml")
	seeds := flag.Int("seeds", 10, "how many seeds to run, from 1 on")
	seed := flag.Uint64("seed", 0, "run this one seed")
	steps := flag.Int("steps", 20_000, "steps of all callers together, for each seed")
	callers := flag.Int("callers", 12, "callers at a time")
	much := flag.Int("many", 0, "instead, measure sweeping and reconciling with so many files")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *much > 0 {
		if err := many(ctx, *root, *much, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, "torture:", err)
			os.Exit(1)
		}
		return
	}
	list := []uint64{*seed}
	if *seed == 0 {
		list = nil
		for n := range *seeds {
			list = append(list, uint64(n+1))
		}
	}
	if err := runAll(ctx, options{root: *root, steps: *steps, callers: *callers, progress: os.Stderr}, list); err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		os.Exit(1)
	}
}

// runAll runs one seed after another, each on a fresh stack; a process has one at a time.
func runAll(ctx context.Context, o options, seeds []uint64) error {
	dir, err := os.MkdirTemp("", "claimcheck-torture-")
	if err != nil {
		return err
	}
	failed := 0
	for _, seed := range seeds {
		o.data = filepath.Join(dir, fmt.Sprint("seed-", seed))
		err := run(ctx, o, seed)
		if ctx.Err() != nil {
			os.RemoveAll(dir)
			return ctx.Err()
		}
		if err != nil {
			failed++
			fmt.Fprintf(o.progress, "seed %d: FAILED: %v\nThe data and the log of its stack are in %s. To run it again:\n    %s\n", seed, err, o.data, replay(o, seed))
			continue
		}
		if o.functions == "" {
			o.functions = filepath.Join(dir, "functions")
			if err := os.Rename(filepath.Join(o.data, "functions"), o.functions); err != nil {
				return err
			}
		}
		os.RemoveAll(o.data)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d seeds failed", failed, len(seeds))
	}
	return os.RemoveAll(dir)
}

func replay(o options, seed uint64) string {
	return fmt.Sprintf("make torture SEED=%d STEPS=%d", seed, o.steps)
}

// run runs one seed in o.data, which must not exist.
func run(ctx context.Context, o options, seed uint64) (err error) {
	if err := os.MkdirAll(o.data, 0o700); err != nil {
		return err
	}
	if o.functions != "" {
		if err := os.CopyFS(filepath.Join(o.data, "functions"), os.DirFS(o.functions)); err != nil {
			return err
		}
	}
	p := newPlan(seed)
	w, err := openWorld(ctx, o.root, o.data, tight, p)
	if err != nil {
		return err
	}
	defer func() {
		if closing := w.close(); err == nil {
			err = closing
		}
	}()
	began := time.Now()
	p.begin()
	counts := w.drive(ctx, o, seed)
	p.heal()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := w.report(); err != nil { // what is left may be unfit to come to rest
		return err
	}
	out, err := w.settle(ctx)
	if err != nil {
		return err
	}
	var did []string
	for i, d := range deeds {
		did = append(did, fmt.Sprintf("%s %d", d.name, counts[i].Load()))
	}
	fmt.Fprintf(o.progress, "seed %d: %d steps and %d faults in %s; %d dead letters sent back; %s\n",
		seed, o.steps, p.injected(), time.Since(began).Round(time.Second), out.deadLetters, strings.Join(did, ", "))
	return w.report()
}

// drive lets the callers do their steps.
func (w *world) drive(ctx context.Context, o options, seed uint64) []atomic.Int64 {
	var (
		counts = make([]atomic.Int64, len(deeds))
		left   atomic.Int64
		all    sync.WaitGroup
	)
	left.Store(int64(o.steps))
	work, stop := context.WithCancel(ctx)
	defer stop()
	for n := range o.callers {
		who := w.callers[n%len(w.callers)]
		c := &caller{
			world: w, who: who, acc: w.accounts[who.account], name: fmt.Sprintf("caller-%d", n),
			rng: rand.New(rand.NewPCG(seed, uint64(n))), counts: counts,
		}
		all.Go(func() {
			for left.Add(-1) >= 0 && work.Err() == nil && len(w.broken()) == 0 {
				c.step()
			}
		})
	}
	var around sync.WaitGroup
	around.Go(func() { w.operate(work, seed) })
	around.Go(func() {
		for tick := time.NewTicker(5 * time.Second); ; {
			select {
			case <-tick.C:
				fmt.Fprintf(o.progress, "seed %d: %d of %d steps\n", seed, max(0, o.steps-int(left.Load())), o.steps)
			case <-work.Done():
				tick.Stop()
				return
			}
		}
	})
	all.Wait()
	stop()
	around.Wait()
	return counts
}

// operate does what goes on beside the callers: time passes for the queues, schedules run, an operator sends dead
// letters back.
func (w *world) operate(ctx context.Context, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 999))
	jumps := 0
	for {
		select {
		case <-time.After(time.Duration(300+rng.IntN(1200)) * time.Millisecond):
		case <-ctx.Done():
			return
		}
		for _, acc := range w.accounts {
			acc.forget()
		}
		switch n := rng.IntN(10); {
		case n < 4 && jumps < 200: // in all less than a day: nothing that matters is collected by TTL
			jumps++
			w.later()
		case n < 8:
			w.stack.Trigger(ctx, "sweep-expired") // may fail: the next one goes on
		case n < 9:
			w.stack.Trigger(ctx, "reconcile")
		default:
			for _, name := range w.stack.Queues().DeadLetterQueues() {
				if _, err := w.stack.Queues().Redrive(name, ""); err != nil {
					w.fail("redriving: %v", err)
				}
			}
		}
	}
}
