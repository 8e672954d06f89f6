// Command difftest sends random operations to this repository's local DynamoDB
// and to dynalite, and reports the first one that they answer differently.
//
//	go run ./dynamo/difftest -n 4000 -seed 7 -cache ../../.local/difftest
//
// It installs dynalite from npm into the cache folder on first use and runs it
// on a loopback port, with its data in memory. Operations, and so the outcome,
// depend only on the seed, which is printed. Dynalite has no transactions and
// no streams; those have tests of their own. Where the two differ on purpose,
// the generator keeps away
// or the table of rewordings in compare.go says so.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"claimcheck.dev/claimcheck/shared/local/dynamo"
)

func main() {
	n := flag.Int("n", 4000, "how many operations to send")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "seed of the random operations")
	cache := flag.String("cache", ".local/difftest", "folder to install dynalite in; made if need be")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *n, *seed, *cache); err != nil {
		fmt.Fprintln(os.Stderr, "difftest:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, n int, seed uint64, cache string) (err error) {
	fmt.Printf("difftest: %d operations, seed %d\n", n, seed)
	ours, closeOurs, err := startOurs()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeOurs()) }()
	theirs, stopTheirs, err := startDynalite(ctx, cache)
	if err != nil {
		return err
	}
	defer stopTheirs()

	g := newGenerator(seed)
	for _, op := range g.tables() {
		if err := check(ctx, ours, theirs, op); err != nil {
			return err
		}
	}
	for _, name := range []string{textTable, numberTable} {
		if err := waitForTable(ctx, theirs, name); err != nil {
			return err
		}
	}
	for i := range n {
		op := g.next()
		if err := check(ctx, ours, theirs, op); err != nil {
			return fmt.Errorf("operation %d of seed %d: %w", i+1, seed, err)
		}
	}
	fmt.Printf("difftest: no difference in %d operations\n", n)
	return nil
}

// startOurs serves an in-memory server on a loopback port.
func startOurs() (url string, stop func() error, err error) {
	server, err := dynamo.Open(dynamo.Options{})
	if err != nil {
		return "", nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	h := &http.Server{Handler: server, ReadHeaderTimeout: time.Minute}
	go func() { _ = h.Serve(listener) }() // ends with Close
	return "http://" + listener.Addr().String(), h.Close, nil
}

// check sends one operation to both and compares the answers.
func check(ctx context.Context, ours, theirs string, op operation) error {
	a, err := op.send(ctx, ours)
	if err != nil {
		return fmt.Errorf("the local server did not answer %s %s: %w", op.name, op.body, err)
	}
	b, err := op.send(ctx, theirs)
	if err != nil {
		return fmt.Errorf("dynalite did not answer %s %s: %w", op.name, op.body, err)
	}
	if x, y := a.canonical(op), b.canonical(op); x != y {
		return fmt.Errorf("the answers differ\n%s %s\nlocal:    %s\ndynalite: %s", op.name, op.body, x, y)
	}
	return nil
}
