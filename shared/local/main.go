// Command claimcheck-local runs the whole service on this machine from the
// project's template.yaml, and helps with a stack that runs: it makes keys and
// shows dead letters. `make run` and `make key` are the usual way to call it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"claimcheck.dev/claimcheck/shared/local/stack"
)

const usage = `claimcheck-local runs Claimcheck on this machine.

  claimcheck-local run [-root .] [-data .local] [-port 0] [-params "Name=Value …"]
                       [-deployed FILE] [-calls FILE]
      Builds every function and starts the stack that template.yaml describes. Prints
      CLAIMCHECK_URL=… and CLAIMCHECK_KEY=… on stdout when it is ready; everything else
      goes to stderr. Ctrl-C stops it. Data stays in the folder -data.

  claimcheck-local key [-data .local] -account A -actor B (-role R | -scopes "S …")
      Prints a new key of the running stack. Roles: viewer, member, builder, admin, owner.

  claimcheck-local dlq list    [-data .local]
  claimcheck-local dlq redrive [-data .local] [-queue NAME]
      Shows what ended in dead-letter queues, or sends it back to be tried again.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // a second signal ends the program at once
	}()
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case err == nil:
	case errors.Is(err, errUsage), errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "claimcheck-local:", err)
		os.Exit(1)
	}
}

// errUsage says that the usage was shown instead of doing anything.
var errUsage = errors.New("wrong usage")

func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case "run":
			return run(ctx, args[1:], stdout, stderr)
		case "key":
			return key(ctx, args[1:], stdout, stderr)
		case "dlq":
			return deadLetters(ctx, args[1:], stdout, stderr)
		case "help", "-h", "-help", "--help":
			fmt.Fprint(stdout, usage)
			return nil
		}
		fmt.Fprintf(stderr, "claimcheck-local: unknown command %q\n\n", args[0])
	}
	fmt.Fprint(stderr, usage)
	return errUsage
}

// flags makes a flag set whose errors come with the usage.
func flags(name string, stderr io.Writer) (*flag.FlagSet, *string) {
	set := flag.NewFlagSet("claimcheck-local "+name, flag.ContinueOnError)
	set.SetOutput(stderr)
	data := set.String("data", ".local", "folder that keeps the data of the stack")
	return set, data
}

// parse reads the flags and refuses what stands behind them.
func parse(set *flag.FlagSet, args []string, stderr io.Writer) error {
	if err := set.Parse(args); err != nil {
		return errUsage // the flag set has said why
	}
	if set.NArg() > 0 {
		fmt.Fprintf(stderr, "%s: unexpected %q\n", set.Name(), set.Arg(0))
		set.Usage()
		return errUsage
	}
	return nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	set, data := flags("run", stderr)
	root := set.String("root", ".", "folder of the project, with template.yaml")
	port := set.Int("port", 0, "port of the API on 127.0.0.1, 0 for a free one")
	params := set.String("params", "", `template parameters, "Name=Value Name=Value"`)
	deployed := set.String("deployed", "", "JSON file with the names and environments of a created stack, used instead of what the template says")
	record := set.String("calls", "", "file that gets what the functions did at the stores, and under which permissions")
	if err := parse(set, args, stderr); err != nil {
		return err
	}
	values, err := parameters(*params)
	if err != nil {
		return err
	}
	opt := stack.Options{Root: *root, Data: *data, Port: *port, Params: values, Log: stderr, Stdout: stdout}
	if *deployed != "" {
		if opt.Deployed, err = stack.ReadDeployed(*deployed); err != nil {
			return err
		}
	}
	if *record != "" {
		file, err := os.OpenFile(*record, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("opening the record of calls: %w", err)
		}
		defer file.Close()
		opt.Calls = file
	}
	s, err := stack.Start(ctx, opt)
	if err != nil {
		if ctx.Err() != nil {
			return nil // stopped while starting
		}
		return err
	}
	select {
	case <-ctx.Done():
		fmt.Fprintln(stderr, "[stack] stopping")
		return s.Close()
	case err := <-s.Failed():
		return errors.Join(err, s.Close())
	}
}

// parameters reads "Name=Value Name=Value". A value with spaces stands in single
// or double quotes.
func parameters(text string) (map[string]string, error) {
	out := map[string]string{}
	var word strings.Builder
	var quote rune
	inWord := false
	flush := func() error {
		if !inWord {
			return nil
		}
		name, value, ok := strings.Cut(word.String(), "=")
		if !ok || name == "" {
			return fmt.Errorf("parameter %q: write Name=Value", word.String())
		}
		out[name] = value
		word.Reset()
		inWord = false
		return nil
	}
	for _, c := range text {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, inWord = c, true
		case quote == 0 && (c == ' ' || c == '\t' || c == '\n'):
			if err := flush(); err != nil {
				return nil, err
			}
		default:
			word.WriteRune(c)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("parameters %q: a quote is not closed", text)
	}
	return out, flush()
}

func key(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	set, data := flags("key", stderr)
	account := set.String("account", "", "account that the key belongs to")
	actor := set.String("actor", "", "who uses it")
	role := set.String("role", "", "viewer, member, builder, admin or owner")
	scopes := set.String("scopes", "", `scopes instead of a role, "files:read files:write"`)
	if err := parse(set, args, stderr); err != nil {
		return err
	}
	list := strings.FieldsFunc(*scopes, func(c rune) bool { return c == ' ' || c == ',' })
	switch {
	case *account == "" || *actor == "":
		return errors.New("a key needs -account and -actor")
	case (*role == "") == (len(list) == 0):
		return errors.New("a key needs either -role or -scopes")
	}
	client, err := stack.Connect(*data)
	if err != nil {
		return err
	}
	made, err := client.IssueKey(ctx, *account, *actor, *role, list)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, made)
	return err
}

func deadLetters(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 || (args[0] != "list" && args[0] != "redrive") {
		fmt.Fprint(stderr, usage)
		return errUsage
	}
	set, data := flags("dlq "+args[0], stderr)
	queue := set.String("queue", "", "only this dead-letter queue")
	if err := parse(set, args[1:], stderr); err != nil {
		return err
	}
	client, err := stack.Connect(*data)
	if err != nil {
		return err
	}
	if args[0] == "redrive" {
		moved, err := client.Redrive(ctx, *queue)
		if err != nil {
			return err
		}
		for name, n := range moved {
			fmt.Fprintf(stdout, "%s: %d messages sent back\n", name, n)
		}
		return nil
	}
	letters, err := client.DeadLetters(ctx)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "QUEUE\tFROM\tSENT\tRECEIVED\tMESSAGE\tBODY")
	for _, l := range letters {
		if *queue == "" || *queue == l.Queue {
			fmt.Fprintf(table, "%s\t%s\t%s\t%d times\t%s\t%s\n", l.Queue, l.Source, l.Sent.UTC().Format(time.RFC3339), l.Receives, l.ID, l.Body)
		}
	}
	return table.Flush()
}
