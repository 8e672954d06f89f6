package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

const usage = `bench measures this service; make bench and make load run it.

  bench speed [-root .] [-out .local/bench] [-runs 40] [-node auto|required|off]
      Start, first and later requests of reserve-upload next to its peers; verification; requests and cost of a
      hand-off. Prints what was to be reached, and writes speed.md and speed.svg into -out.

  bench load [-root .] [-out .local/bench] [-seconds 10]
      Hand-offs per second and latencies on the local stack with 1, 8 and 32 callers. Prints load.md into -out too.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil:
	case errors.Is(err, errUsage), errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// errUsage says that the usage was shown instead of doing anything.
var errUsage = errors.New("wrong usage")

type options struct {
	root, out, node string
	runs            int
	seconds         int
}

func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 || args[0] != "speed" && args[0] != "load" {
		fmt.Fprint(stderr, usage)
		return errUsage
	}
	var o options
	set := flag.NewFlagSet("bench "+args[0], flag.ContinueOnError)
	set.SetOutput(stderr)
	set.StringVar(&o.root, "root", ".", "folder of the project")
	set.StringVar(&o.out, "out", ".local/bench", "folder for built programs and reports")
	set.StringVar(&o.node, "node", "auto", "the Node.js peer: auto (if it can be had), required or off")
	set.IntVar(&o.runs, "runs", 40, "starts of each program")
	set.IntVar(&o.seconds, "seconds", 10, "how long each number of callers is kept up")
	if err := set.Parse(args[1:]); err != nil {
		return errUsage // the flag set has said why
	}
	if set.NArg() > 0 || o.runs < 1 || o.seconds < 1 || o.node != "auto" && o.node != "required" && o.node != "off" {
		set.Usage()
		return errUsage
	}
	var err error
	if o.root, err = filepath.Abs(o.root); err == nil {
		o.out, err = filepath.Abs(o.out)
	}
	if err == nil {
		err = os.MkdirAll(o.out, 0o755)
	}
	if err != nil {
		return fmt.Errorf("making the folder for reports: %w", err)
	}
	if args[0] == "load" {
		return runLoadCommand(ctx, o, stdout, stderr)
	}
	return runSpeed(ctx, o, stdout, stderr)
}

const (
	bigObject   = 100 << 20
	verifyTimes = 5
	// answerPause is how long DynamoDB's stand-in waits with its answer to a later request.
	answerPause = time.Millisecond
)

func runSpeed(ctx context.Context, o options, stdout, stderr io.Writer) error {
	if err := supported(); err != nil {
		return err
	}
	r := &results{where: observe()}
	fmt.Fprintln(stderr, "building the programs")
	if err := buildGo(ctx, o.root, o.out); err != nil {
		return err
	}
	withNode := o.node != "off"
	if withNode {
		var missing errNoNode
		err := buildNode(ctx, o.root, o.out)
		switch {
		case errors.As(err, &missing) && o.node == "auto":
			r.noNode, withNode = err.Error(), false
			fmt.Fprintln(stderr, "bench: going on without Node.js:", err)
		case err != nil:
			return err
		}
	} else {
		r.noNode = "they were switched off."
	}

	// The stack first: its schedules are a minute old before they ask for anything that would be counted.
	fmt.Fprintln(stderr, "counting what a hand-off and verifications take, on the local stack")
	if err := r.countOnStack(ctx, o); err != nil {
		return err
	}

	standIns, err := serveStandIns(o.root, o.out, noise(bigObject))
	if err != nil {
		return err
	}
	defer standIns.close()
	list, err := programs(o.root, o.out, standIns, withNode)
	if err != nil {
		return err
	}
	events, err := newRequests(o.root)
	if err != nil {
		return err
	}
	q := newQuota()
	defer q.close()
	r.where.quota, r.where.authorities = q.describe(), standIns.Authorities
	r.where.rounds = rounds{cold: o.runs, throttled: max(1, o.runs/8), warm: max(1, o.runs/4), events: 200}
	if r.figures, err = measureSpeed(ctx, list, standIns, q, events, r.where.rounds, stderr); err != nil {
		return err
	}
	if r.compared, err = compareVerification(ctx, o.root, o.out, standIns, r.where.rounds, stderr); err != nil {
		return err
	}

	const chart = "speed.svg"
	if err := errors.Join(
		os.WriteFile(filepath.Join(o.out, chart), []byte(r.chart()), 0o644),
		os.WriteFile(filepath.Join(o.out, "speed.md"), []byte(r.report(chart)), 0o644),
	); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if err := writeGoals(stdout, r.goals()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "\nAll figures, and how they were taken: %s\n", filepath.Join(o.out, "speed.md"))
	return err
}

// countOnStack fills in what the local stack tells.
func (r *results) countOnStack(ctx context.Context, o options) (err error) {
	l, err := openLab(ctx, o.root, o.out, shortUploads)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	body := []byte("a report\n")
	if r.steps, err = l.handOff(ctx, body, false, byTime); err != nil {
		return err
	}
	if r.again, err = l.handOff(ctx, body, true, onRequest); err != nil {
		return err
	}
	objects, err := samples(bigObject)
	if err != nil {
		return err
	}
	// The first verifications of an instance are dearer than later ones.
	if _, err := l.verify(ctx, objects[0], verifyTimes); err != nil {
		return err
	}
	for _, s := range objects {
		v, err := l.verify(ctx, s, verifyTimes)
		if err != nil {
			return err
		}
		r.verified = append(r.verified, v)
	}
	return nil
}

func runLoadCommand(ctx context.Context, o options, stdout, stderr io.Writer) (err error) {
	where := observe()
	fmt.Fprintln(stderr, "starting the local stack")
	l, err := openLab(ctx, o.root, o.out, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	runs, err := runLoad(ctx, l, time.Duration(o.seconds)*time.Second, stderr)
	if err != nil {
		return err
	}
	text := loadReport(runs, where)
	if err := os.WriteFile(filepath.Join(o.out, "load.md"), []byte(text), 0o644); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	_, err = io.WriteString(stdout, text)
	return err
}
