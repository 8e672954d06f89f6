// Command deploytest proves without an AWS account that the project deploys: `make
// deploy-test`. It needs Go, make, and a virtual environment with the SAM CLI (whose
// Python also brings the SAM translator and boto3) and MiniStack.
//
// In a copy of the files that git tracks, which is what a fresh clone has:
//
//  1. sam validate and sam build, the real ones. Every function must come out, for
//     arm64, byte for byte what `make build` makes. Then a package under shared/ that all
//     functions import is edited and everything built again: nothing may be stale.
//  2. The built template becomes CloudFormation (translate.py) and must keep the rules in
//     policy.go.
//  3. It is created as a stack on an emulator (create.py), once for each set of
//     parameters that the end-to-end scripts ask for; what the stack says of itself is read back.
//  4. The end-to-end scripts run on the local engines, with the names and the
//     environments of those stacks instead of what our own reading of the template gives.
//  5. Every call that a function made then must be allowed by its own role in the
//     CloudFormation template, and every permission there must have been used or stand in a list of
//     exceptions with the reason.
//
// The emulator is MiniStack. moto was tried too: its CloudFormation knows neither
// API Gateway v2, EventBridge Scheduler, CloudFront, bucket and queue policies nor
// alarms, and ends CreateStack with an internal error. MiniStack creates all resources of
// the template, resolves every reference we read back and refuses a template that has to be uploaded first, as AWS
// does. It leaves out properties (TTL, point-in-time recovery, lifecycle rules,
// routes of an OpenAPI body), so those are checked on the translated template only.
package main

import (
	"context"
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
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var w world
	flag.StringVar(&w.root, "root", ".", "folder of the project")
	flag.StringVar(&w.venv, "venv", ".venv", "virtual environment with the SAM CLI, and one for the emulator in it")
	flag.StringVar(&w.dir, "work", ".local/deploytest", "folder to work in, emptied first")
	flag.Parse()
	if err := w.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "deploy-test:", err)
		os.Exit(1)
	}
}

// world is where everything is.
type world struct {
	root, venv, dir string // absolute
	copy            string // of the project
	template        *template
	stacks          []created
}

// step is one part of the test. It returns what it saw, for the summary.
type step struct {
	name string
	run  func(context.Context) (string, error)
}

func (w *world) run(ctx context.Context) error {
	for _, path := range []*string{&w.root, &w.venv, &w.dir} {
		var err error
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if err := w.tools(ctx); err != nil {
		return err
	}
	w.copy = filepath.Join(w.dir, "project")
	if err := os.RemoveAll(w.dir); err != nil {
		return fmt.Errorf("emptying the working folder: %w", err)
	}
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return fmt.Errorf("making the working folder: %w", err)
	}
	return report(ctx, os.Stdout, []step{
		{"a clean copy of the project", w.copyProject},
		{"sam validate --lint", w.validate},
		{"sam build makes every function", w.build},
		{"an edit under shared/ is never shipped stale", w.rebuild},
		{"CloudFormation keeps the rules", w.translate},
		{"the emulator creates the stack", w.create},
		{"end-to-end scripts on what the stack says", w.endToEnd},
		{"roles allow what functions do, and no more", w.permissions},
	})
}

// tools finds out at once whether something is missing.
func (w *world) tools(ctx context.Context) error {
	for name, advice := range map[string]string{
		"go": "install Go from https://go.dev/dl/", "make": "install make", "git": "install git",
	} {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("%s is missing: %s", name, advice)
		}
	}
	for _, name := range []string{"bin/python", "bin/sam", "emulator/bin/python"} {
		if _, err := os.Stat(filepath.Join(w.venv, name)); err != nil {
			return fmt.Errorf("%s has no %s: run `make deploy-test`, which makes it", w.venv, name)
		}
	}
	for python, modules := range map[string]string{"bin/python": "boto3, samtranslator", "emulator/bin/python": "ministack"} {
		cmd := w.command(ctx, w.root, filepath.Join(w.venv, python), "-c", "import sys; assert sys.version_info >= (3, 10), 'Python 3.10 or newer is needed'; import "+modules)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s does not work, remove it and run `make deploy-test`: %w: %s", w.venv, err, lastLine(out))
		}
	}
	return nil
}

// report runs the steps in order, and says of each how it went. A step that fails
// ends the run: the next ones stand on it.
func report(ctx context.Context, out io.Writer, steps []step) error {
	began := time.Now()
	for i, s := range steps {
		at := time.Now()
		seen, err := s.run(ctx)
		took := time.Since(at).Round(100 * time.Millisecond)
		if err != nil {
			fmt.Fprintf(out, "FAILED  %s (%s)\n", s.name, took)
			if ctx.Err() != nil {
				return errors.New("interrupted")
			}
			return fmt.Errorf("%s: %w\n%d of %d steps passed", s.name, err, i, len(steps))
		}
		fmt.Fprintf(out, "ok      %s: %s (%s)\n", s.name, seen, took)
	}
	fmt.Fprintf(out, "deploy-test: all %d steps passed in %s\n", len(steps), time.Since(began).Round(time.Second))
	return nil
}

// python is a command of the virtual environment's Python.
func (w *world) python(ctx context.Context, args ...string) *exec.Cmd {
	return w.command(ctx, w.dir, filepath.Join(w.venv, "bin", "python"), args...)
}

// command is a command that cannot reach an account of whoever runs this, and knows
// nothing of the make above it.
func (w *world) command(ctx context.Context, folder, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = folder
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "AWS_") && !strings.HasPrefix(v, "MAKE") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "AWS_DEFAULT_REGION="+region, "SAM_CLI_TELEMETRY=0", "AWS_EC2_METADATA_DISABLED=true", "PYTHONDONTWRITEBYTECODE=1")
	return cmd
}

// region is where everything pretends to be.
const region = "us-east-1"

// output runs a command and returns what it printed; an error carries the end of that.
func output(cmd *exec.Cmd) (string, error) {
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, tail(string(out), 40))
	}
	return string(out), nil
}

// tail are the last lines of a text.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

func lastLine(text []byte) string { return tail(string(text), 1) }
