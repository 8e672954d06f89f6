package stack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"claimcheck.dev/claimcheck/shared/local/sources"
)

// check finds what the template asks for and this machine or this stack does not
// have, before anything is built.
func (s *Stack) check() error {
	if len(s.template.Functions) == 0 {
		return fmt.Errorf("%s declares no function", filepath.Join(s.opt.Root, "template.yaml"))
	}
	if len(s.template.Buckets) > 1 {
		return fmt.Errorf("the template has %d buckets: the local S3 serves one", len(s.template.Buckets))
	}
	for _, fn := range s.template.Functions {
		folder := filepath.Join(s.opt.Root, "functions", fn.Folder)
		if !exists(folder) {
			return fmt.Errorf("template.yaml:%d: %s is built from %s, which does not exist", fn.Line, fn.ID, folder)
		}
		patterns := map[string][]string{}
		for _, q := range fn.Queues {
			patterns[q.ID] = q.Filters
		}
		for _, st := range fn.Streams {
			patterns[st.ID] = st.Filters
		}
		for id, list := range patterns {
			filter, err := sources.NewFilter(list)
			if err != nil {
				return fmt.Errorf("template.yaml:%d: %s: %w", fn.Line, fn.ID, err)
			}
			s.filters[id] = filter
		}
	}
	return nil
}

// BuildFlags are those by which functions ship: GO_BUILD in the Makefile, to which shared/conventions holds them.
var BuildFlags = []string{"-trimpath", "-buildvcs=false", "-tags", "lambda.norpc,nethttpomithttp2", "-ldflags=-s -w"}

// BuildCommand is the command, run with the given go tool, that compiles every function of the project at root for
// this machine into the folder out. What is up to date there is left alone.
func BuildCommand(ctx context.Context, tool, root, out string) *exec.Cmd {
	args := append([]string{"build", "-o", out + string(filepath.Separator)}, BuildFlags...)
	cmd := exec.CommandContext(ctx, tool, append(args, "./functions/...")...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	return cmd
}

// build compiles every function with one command: the source and the flags that
// ship, for this machine.
func (s *Stack) build(ctx context.Context) error {
	tool, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf("the go command is not in PATH: install Go from https://go.dev/dl/")
	}
	out := s.file("functions")
	if err := os.MkdirAll(out, 0o700); err != nil {
		return fmt.Errorf("making the folder for built functions: %w", err)
	}
	s.logf("building %d functions", len(s.template.Functions))
	began := time.Now()
	cmd := BuildCommand(ctx, tool, s.opt.Root, out)
	cmd.Stdout, cmd.Stderr = s.log, s.log
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("the functions do not build (%w); the compiler's messages are above", err)
	}
	for _, fn := range s.template.Functions {
		if !exists(filepath.Join(out, fn.Folder)) {
			return fmt.Errorf("template.yaml:%d: functions/%s holds no main package", fn.Line, fn.Folder)
		}
	}
	s.logf("built in %s", time.Since(began).Round(100*time.Millisecond))
	return nil
}
