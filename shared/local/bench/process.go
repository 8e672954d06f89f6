package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// process is a running program and the Runtime API that it gets its events from.
type process struct {
	name   string
	cmd    *exec.Cmd
	api    *runtimeAPI
	log    *os.File
	start  time.Time
	exited chan struct{}
}

// patience bounds how long a program may take for its start or for one event.
const patience = time.Minute

// launch starts a command with exactly the given environment and the address of its Runtime API.
func launch(name string, command []string, env map[string]string) (*process, error) {
	api, err := serveRuntimeAPI()
	if err != nil {
		return nil, err
	}
	// A file, so that no goroutine of this process has to wake up for what the program prints.
	log, err := os.CreateTemp("", "claimcheck-bench-")
	if err != nil {
		api.close()
		return nil, fmt.Errorf("making a file for the output of %s: %w", name, err)
	}
	p := &process{name: name, api: api, log: log, exited: make(chan struct{}), cmd: exec.Command(command[0], command[1:]...)}
	p.cmd.Env = []string{"AWS_LAMBDA_RUNTIME_API=" + api.address}
	for k, v := range env {
		p.cmd.Env = append(p.cmd.Env, k+"="+v)
	}
	slices.Sort(p.cmd.Env)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.start = time.Now()
	if err := p.cmd.Start(); err != nil {
		api.close()
		log.Close()
		os.Remove(log.Name())
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		p.cmd.Wait() // how it ended does not matter, that it ended while it was needed does
		close(p.exited)
	}()
	return p, nil
}

// begin starts a program and waits until it asks for its first event.
func begin(ctx context.Context, name string, command []string, env map[string]string) (*process, error) {
	p, err := launch(name, command, env)
	if err != nil {
		return nil, err
	}
	if _, err := p.ready(ctx); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

// ready waits for the first request for an event and returns how long the program took to it.
func (p *process) ready(ctx context.Context) (time.Duration, error) {
	at, err := wait(ctx, p, p.api.asked, "ask for its first event")
	return at.Sub(p.start), err
}

// invoke hands over an event and returns the answer, and the time from one to the other. It returns once the program
// has asked for the next event.
func (p *process) invoke(ctx context.Context, event []byte) ([]byte, time.Duration, error) {
	select {
	case p.api.events <- event:
	case <-p.exited:
		return nil, 0, p.failure("ended before it took an event")
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	sent := <-p.api.sent
	a, err := wait(ctx, p, p.api.answers, "answer an event")
	if err != nil {
		return nil, 0, err
	}
	if a.failed {
		return nil, 0, p.failure(fmt.Sprintf("answered with an error: %.500s", a.body))
	}
	if _, err := wait(ctx, p, p.api.asked, "ask for another event"); err != nil {
		return nil, 0, err
	}
	return a.body, a.at.Sub(sent), nil
}

// cpuOfEvents hands over n events, one after the other, checks each answer and returns the CPU time of one of them, in
// ms. The wall time of each is added to wall, unless that is nil.
func (p *process) cpuOfEvents(ctx context.Context, n int, event func() []byte, check func([]byte) error, wall *series) (float64, error) {
	before, err := p.settledCPU()
	if err != nil {
		return 0, err
	}
	for range n {
		body, took, err := p.invoke(ctx, event())
		if err != nil {
			return 0, err
		}
		if err := check(body); err != nil {
			return 0, err
		}
		if wall != nil {
			add(wall, milliseconds(took))
		}
	}
	after, err := p.settledCPU()
	return milliseconds(after-before) / float64(n), err
}

func wait[T any](ctx context.Context, p *process, from <-chan T, what string) (T, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	var zero T
	select {
	case v := <-from:
		return v, nil
	case <-p.exited:
		return zero, p.failure("ended, it should " + what)
	case <-timer.C:
		return zero, p.failure(fmt.Sprintf("took over %v to %s", patience, what))
	case <-ctx.Done():
		return zero, ctx.Err()
	}
}

// failure is an error with the last that the program printed.
func (p *process) failure(what string) error {
	text, _ := os.ReadFile(p.log.Name())
	if text = bytes.TrimSpace(text); len(text) > 2000 {
		text = text[len(text)-2000:]
	}
	if len(text) == 0 {
		return errors.New(p.name + " " + what)
	}
	return fmt.Errorf("%s %s; it printed:\n    %s", p.name, what, strings.ReplaceAll(string(text), "\n", "\n    "))
}

// stop ends the program, whatever it is doing.
func (p *process) stop() {
	p.cmd.Process.Kill() // fails only when it has ended
	<-p.exited
	p.api.close()
	p.log.Close()
	os.Remove(p.log.Name())
}

// settledCPU is the CPU time spent so far, read once the program is at rest: the kernel books the time of a running thread
// only now and then.
func (p *process) settledCPU() (time.Duration, error) {
	last := time.Duration(-1)
	for range 20 {
		now, err := cpuOf(p.cmd.Process.Pid)
		if err != nil {
			return 0, p.failure(fmt.Sprintf("cannot be measured: %v", err))
		}
		if now == last {
			return now, nil
		}
		last = now
		time.Sleep(2 * time.Millisecond)
	}
	return last, nil
}
