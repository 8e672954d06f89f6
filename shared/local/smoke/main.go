// Command smoke asks a running Claimcheck whether the facts it was built on hold
// where it runs: `make smoke`. What this service relies on in S3, CloudFront, API
// Gateway and DynamoDB was taken from documentation or seen on local engines, and only an
// account can say whether it is so. Every fact is printed as held or not, with what was seen.
//
// It needs nothing but the address of the API and a key with the role owner, talks
// to no AWS API (but for the outputs of a stack, through the AWS CLI), and removes the files it has made. It
// runs against the local stack too, where what only the cloud has is named as not checked.
//
// What was seen never contains a key or a presigned URL.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

const usage = `smoke says which facts hold where Claimcheck runs.

  smoke -stack NAME     a deployed stack; the AWS CLI finds its outputs
  smoke -url URL        any other
  smoke -data FOLDER    the local stack that keeps its data there, with its owner key

KEY in the environment is a key with the role owner. With -revoke it is revoked at the end.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:], os.Getenv("KEY"), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "smoke:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string, key string, out io.Writer) error {
	set := flag.NewFlagSet("smoke", flag.ContinueOnError)
	set.Usage = func() { fmt.Fprint(set.Output(), usage) }
	name, url, data := set.String("stack", "", ""), set.String("url", "", ""), set.String("data", "", "")
	revoke := set.Bool("revoke", false, "")
	if err := set.Parse(args); err != nil {
		return err
	}
	t := &target{url: strings.TrimSuffix(*url, "/"), key: key}
	switch {
	case *name != "":
		if err := t.fromStack(ctx, *name); err != nil {
			return err
		}
	case *data != "" && *url == "":
		if err := t.fromData(*data); err != nil {
			return err
		}
	}
	if t.url == "" {
		return errors.New("say -stack NAME, -url URL or -data FOLDER")
	}
	if t.key == "" {
		return errors.New("KEY is not set: make a key with `make key … ROLE=owner`")
	}
	t.cloud = strings.HasPrefix(t.url, "https://")
	err := t.check(ctx, out)
	if *revoke {
		err = errors.Join(err, t.revoke(ctx))
	}
	return err
}

// fromStack reads the outputs of a deployed stack.
func (t *target) fromStack(ctx context.Context, name string) error {
	if _, err := exec.LookPath("aws"); err != nil {
		return errors.New("aws is missing: the outputs of a stack need the AWS CLI, https://aws.amazon.com/cli; or say -url")
	}
	var complaint strings.Builder
	cmd := exec.CommandContext(ctx, "aws", "cloudformation", "describe-stacks", "--stack-name", name, "--query", "Stacks[0].Outputs", "--output", "json")
	cmd.Stderr = &complaint
	text, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("reading the outputs of stack %s: %w: %s", name, err, strings.TrimSpace(complaint.String()))
	}
	var outputs []struct{ OutputKey, OutputValue string }
	if err := json.Unmarshal(text, &outputs); err != nil {
		return fmt.Errorf("reading the outputs of stack %s: %w", name, err)
	}
	for _, o := range outputs {
		switch o.OutputKey {
		case "ApiUrl":
			t.url = o.OutputValue
		case "ContentDomain":
			t.contentHost = o.OutputValue
		}
	}
	if t.url == "" {
		return fmt.Errorf("stack %s has no output ApiUrl: is it a Claimcheck stack in this region?", name)
	}
	return nil
}

// fromData reads what `make run` wrote into its data folder.
func (t *target) fromData(folder string) error {
	text, err := os.ReadFile(filepath.Join(folder, "env"))
	if err != nil {
		return fmt.Errorf("no local stack has its data in %s: start one with `make run`", folder)
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch name {
		case "CLAIMCHECK_URL":
			t.url = value
		case "CLAIMCHECK_KEY":
			if t.key == "" {
				t.key = value
			}
		}
	}
	return nil
}
