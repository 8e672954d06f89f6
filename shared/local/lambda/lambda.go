// Package lambda runs the functions that ship, unchanged, on this machine.
//
// A function binary built with aws-lambda-go needs one thing from its
// surroundings: the Runtime API, a small HTTP server it polls for events
// (`next`) and answers to (`response`, `error`). This package is that server and
// the part of Lambda around it: a [Function] is a pool of instances, each a
// process with its own Runtime API listener. An instance handles one event at a
// time; parallel events start further instances up to a cap, callers beyond it
// wait. Instances are killed when they exceed the function's timeout, replaced
// after a crash, and stopped after a while without work.
//
// [Handler] offers the functions over Lambda's own Invoke API.
package lambda

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"
	"strconv"
	"sync"
	"time"
)

const (
	// MaxPayload is Lambda's limit for a synchronous request and for its
	// response: 6 MB and a margin of 100 bytes, as the service reports it.
	MaxPayload = 6291556

	defaultInstances = 4
	defaultInitLimit = 30 * time.Second
	defaultIdle      = 10 * time.Minute
)

// Errors of [Function.Invoke]. What the function itself does wrong is no error
// but a [Result] with FunctionError set.
var (
	// ErrThrottled: every instance stayed busy while the caller waited.
	ErrThrottled = errors.New("all instances of the function are busy")
	// ErrTooLarge: the event is over [MaxPayload].
	ErrTooLarge = errors.New("the event is over 6 MB")
	// ErrClosed: the stack is stopping.
	ErrClosed = errors.New("the function is stopped")
)

// Config describes one function.
type Config struct {
	// Name is the physical name, Label the short one that prefixes log lines.
	Name, Label string
	// Binary is the built function.
	Binary string
	// Env is the declared environment. Runtime is what this stack adds, as Lambda
	// does: region, credentials, endpoints. The variables that describe the
	// function itself are made from the other fields.
	Env, Runtime map[string]string
	MemoryMB     int
	Timeout      time.Duration
	// Instances caps the pool; 0 means 4.
	Instances int
	// InitLimit is how long an instance may take to ask for its first event
	// (0: 30 s, more than Lambda's 10 s because laptops are busy), Idle how long it is
	// kept without one (0: 10 minutes).
	InitLimit, Idle   time.Duration
	Region, AccountID string
	// Log receives what the function prints, line by line behind its label.
	Log io.Writer
	// Faults, when set, is asked before each event what shall go wrong; n counts
	// the function's events from 1.
	Faults func(function string, n int) Fault
}

// Fault is something that goes wrong on purpose.
type Fault int

const (
	// NoFault lets the event be handled.
	NoFault Fault = iota
	// KillOnDelivery kills the instance as soon as it has received the event.
	KillOnDelivery
	// KillBeforeAnswer kills the instance when it has done its work and is about
	// to answer: everything was written, nobody hears of it.
	KillBeforeAnswer
)

// Result is what came out of one event.
type Result struct {
	// Payload is the function's answer, or Lambda's error object
	// {"errorMessage": string, "errorType": string} when FunctionError is set.
	Payload []byte
	// FunctionError is empty, or "Unhandled" after an error, a crash or a timeout.
	FunctionError string
}

// Function is one function and its instances. Its methods may be called from any
// goroutine.
type Function struct {
	cfg   Config
	slots chan struct{} // one per instance that may exist
	stop  chan struct{}

	mu     sync.Mutex
	idle   []*instance // most recently used last
	all    map[*instance]bool
	count  int // events so far
	closed bool
	work   sync.WaitGroup
}

// New describes a function; nothing runs before [Function.Start] or the first event.
func New(cfg Config) *Function {
	if cfg.Instances == 0 {
		cfg.Instances = defaultInstances
	}
	if cfg.InitLimit == 0 {
		cfg.InitLimit = defaultInitLimit
	}
	if cfg.Idle == 0 {
		cfg.Idle = defaultIdle
	}
	if cfg.Log == nil {
		cfg.Log = io.Discard
	}
	return &Function{
		cfg: cfg, slots: make(chan struct{}, cfg.Instances),
		stop: make(chan struct{}), all: map[*instance]bool{},
	}
}

// Start brings one instance up, so that a function that cannot start is found now
// and not by its first caller. The error carries what the function printed.
func (f *Function) Start(ctx context.Context) error {
	select {
	case f.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-f.stop:
		return ErrClosed
	}
	defer func() { <-f.slots }()
	in, err := f.launch(ctx)
	if err != nil {
		return err
	}
	f.park(in)
	return nil
}

// Invoke hands one event to an instance and waits for the result. It waits for a
// free instance no longer than the function's timeout. When ctx ends first, the
// caller gets its error and the function goes on, as on Lambda.
func (f *Function) Invoke(ctx context.Context, event []byte) (Result, error) {
	if len(event) > MaxPayload {
		return Result{}, ErrTooLarge
	}
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return Result{}, ErrClosed
	}
	f.count++
	n := f.count
	f.work.Add(1)
	f.mu.Unlock()

	type outcome struct {
		res Result
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		defer f.work.Done()
		res, err := f.invoke(n, event)
		done <- outcome{res, err}
	}()
	select {
	case o := <-done:
		return o.res, o.err
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
}

func (f *Function) invoke(n int, event []byte) (Result, error) {
	wait := time.NewTimer(f.cfg.Timeout)
	defer wait.Stop()
	select {
	case f.slots <- struct{}{}:
	case <-wait.C:
		return Result{}, ErrThrottled
	case <-f.stop:
		return Result{}, ErrClosed
	}
	defer func() { <-f.slots }()

	fault := NoFault
	if f.cfg.Faults != nil {
		fault = f.cfg.Faults(f.cfg.Label, n)
	}
	id := requestID()
	in := f.unpark()
	if in == nil {
		var err error
		if in, err = f.launch(context.Background()); err != nil {
			var failed *InitError
			if errors.As(err, &failed) {
				fmt.Fprintf(f.cfg.Log, "[%s] %v\n", f.cfg.Label, err)
				return failed.result(id), nil
			}
			return Result{}, err
		}
	}
	res, healthy := in.handle(id, event, f.cfg.Timeout, fault)
	if healthy {
		f.park(in)
	} else {
		f.discard(in)
	}
	return res, nil
}

// launch starts an instance and waits until it asks for its first event.
func (f *Function) launch(ctx context.Context) (*instance, error) {
	in, err := newInstance(&f.cfg)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		in.kill()
		return nil, ErrClosed
	}
	f.all[in] = true
	f.mu.Unlock()
	if err := in.waitReady(ctx, f.cfg.InitLimit); err != nil {
		f.discard(in)
		return nil, err
	}
	return in, nil
}

// park puts an instance among the idle ones and sets its clock.
func (f *Function) park(in *instance) {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		f.discard(in)
		return
	}
	defer f.mu.Unlock()
	f.idle = append(f.idle, in)
	in.reaper = time.AfterFunc(f.cfg.Idle, func() {
		if f.forget(in) {
			f.discard(in)
		}
	})
}

// forget takes one instance out of the idle ones, if it is there.
func (f *Function) forget(in *instance) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, other := range f.idle {
		if other == in {
			f.idle = append(f.idle[:i], f.idle[i+1:]...)
			return true
		}
	}
	return false
}

// unpark takes the idle instance that was used last, nil if there is none alive.
func (f *Function) unpark() *instance {
	for {
		f.mu.Lock()
		if len(f.idle) == 0 {
			f.mu.Unlock()
			return nil
		}
		in := f.idle[len(f.idle)-1]
		f.idle = f.idle[:len(f.idle)-1]
		f.mu.Unlock()
		in.reaper.Stop()
		if in.alive() {
			return in
		}
		f.discard(in)
	}
}

func (f *Function) discard(in *instance) {
	in.kill()
	f.mu.Lock()
	delete(f.all, in)
	f.mu.Unlock()
}

// Instances is the number of processes that exist now.
func (f *Function) Instances() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.all)
}

// Kill kills every instance at once, whatever it is doing, as when the machine
// under it fails. Events being handled end as crashes; the next one starts anew.
func (f *Function) Kill() {
	f.mu.Lock()
	all := make([]*instance, 0, len(f.all))
	for in := range f.all {
		all = append(all, in)
	}
	f.mu.Unlock()
	for _, in := range all {
		in.kill()
	}
}

// Close stops the function: no further events, then all instances are killed.
// Events being handled get until ctx ends.
func (f *Function) Close(ctx context.Context) {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return
	}
	f.closed = true
	close(f.stop)
	f.mu.Unlock()
	finished := make(chan struct{})
	go func() { f.work.Wait(); close(finished) }()
	select {
	case <-finished:
	case <-ctx.Done():
	}
	f.Kill()
}

// environment is what an instance is started with, sorted: the declared variables
// and those that Lambda gives to an OS-only runtime.
func (c *Config) environment(api string) []string {
	env := map[string]string{}
	for k, v := range c.Env {
		env[k] = v
	}
	for k, v := range c.Runtime {
		env[k] = v
	}
	for k, v := range map[string]string{
		"AWS_REGION":                      c.Region,
		"AWS_DEFAULT_REGION":              c.Region,
		"AWS_LAMBDA_FUNCTION_NAME":        c.Name,
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": strconv.Itoa(c.MemoryMB),
		"AWS_LAMBDA_FUNCTION_VERSION":     "$LATEST",
		"AWS_LAMBDA_INITIALIZATION_TYPE":  "on-demand",
		"AWS_LAMBDA_LOG_GROUP_NAME":       "/aws/lambda/" + c.Name,
		"AWS_LAMBDA_LOG_STREAM_NAME":      "local",
		"AWS_LAMBDA_RUNTIME_API":          api,
		"LAMBDA_TASK_ROOT":                taskRoot(c.Binary),
		"LAMBDA_RUNTIME_DIR":              taskRoot(c.Binary),
		"_HANDLER":                        "bootstrap",
		"LANG":                            "en_US.UTF-8",
		"PATH":                            "/usr/local/bin:/usr/bin:/bin",
		"TZ":                              ":UTC",
	} {
		env[k] = v
	}
	out := make([]string, 0, len(env))
	for k, v := range env {
		out = append(out, k+"="+v)
	}
	sort.Strings(out)
	return out
}
