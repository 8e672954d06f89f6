package lambda

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// instance is one process and the Runtime API server that only it talks to. The
// listener identifies the instance, so AWS_LAMBDA_RUNTIME_API stays a plain
// host:port.
type instance struct {
	cfg      *Config
	cmd      *exec.Cmd
	server   *http.Server
	out      *lineWriter
	ready    chan struct{} // closed by the first request for an event
	asked    chan struct{} // one token per later request
	initFail chan []byte   // the runtime's own report of a failed init
	events   chan *invocation
	exited   chan struct{} // closed when the process is gone
	exit     string        // how it ended, after exited
	reaper   *time.Timer

	mu      sync.Mutex
	started bool
	current *invocation
	killed  bool
}

// invocation is one event on its way through an instance.
type invocation struct {
	id       string
	event    []byte
	deadline time.Time
	fault    Fault
	result   chan Result // buffered, the first result wins
}

// InitError says why an instance never asked for an event.
type InitError struct {
	Label  string
	Reason string
	// Output is the last of what the function printed.
	Output string
	report []byte
}

func (e *InitError) Error() string {
	text := fmt.Sprintf("function %s did not start: %s", e.Label, e.Reason)
	if e.Output != "" {
		text += "\n    " + strings.ReplaceAll(strings.TrimRight(e.Output, "\n"), "\n", "\n    ")
	}
	return text
}

// result is what Lambda tells the caller of a function that did not start.
func (e *InitError) result(id string) Result {
	if e.report != nil {
		return Result{e.report, "Unhandled"}
	}
	return failure("Runtime.ExitError", "RequestId: "+id+" Error: "+e.Reason)
}

func failure(kind, message string) Result {
	body, _ := json.Marshal(map[string]string{"errorType": kind, "errorMessage": message}) // strings always encode
	return Result{body, "Unhandled"}
}

// requestID makes a random UUID, the form of Lambda's request ids.
func requestID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func taskRoot(binary string) string { return filepath.Dir(binary) }

func newInstance(cfg *Config) (*instance, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("opening the Runtime API of %s: %w", cfg.Label, err)
	}
	in := &instance{
		cfg: cfg, ready: make(chan struct{}), asked: make(chan struct{}, 1), initFail: make(chan []byte, 1),
		events: make(chan *invocation), exited: make(chan struct{}),
		out: &lineWriter{to: cfg.Log, prefix: "[" + cfg.Label + "] "},
	}
	in.server = &http.Server{Handler: in.runtimeAPI()}
	go in.server.Serve(listener)

	in.cmd = exec.Command(cfg.Binary)
	in.cmd.Dir = taskRoot(cfg.Binary)
	in.cmd.Env = cfg.environment(listener.Addr().String())
	in.cmd.Stdout, in.cmd.Stderr = in.out, in.out
	in.cmd.WaitDelay = 2 * time.Second // for children that keep the pipes open
	if err := start(in.cmd); err != nil {
		in.server.Close()
		return nil, &InitError{Label: cfg.Label, Reason: err.Error()}
	}
	go func() {
		err := in.cmd.Wait()
		in.exit = "Runtime exited without providing a reason"
		if err != nil {
			in.exit = "Runtime exited with error: " + in.cmd.ProcessState.String()
		}
		in.out.flush()
		close(in.exited)
		in.server.Close()
	}()
	return in, nil
}

// waitReady waits for the first request for an event.
func (in *instance) waitReady(ctx context.Context, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	fail := func(reason string, report []byte) error {
		return &InitError{Label: in.cfg.Label, Reason: reason, Output: in.out.tail(), report: report}
	}
	select {
	case <-in.ready:
		return nil
	case report := <-in.initFail:
		return fail("the runtime reported an error during init", report)
	case <-in.exited:
		select {
		case report := <-in.initFail:
			return fail(in.exit, report)
		default:
			return fail(in.exit, nil)
		}
	case <-timer.C:
		return fail(fmt.Sprintf("no request for an event within %s", limit), nil)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// handle gives the event to the process and waits for its end. healthy says
// whether the instance can take another.
func (in *instance) handle(id string, event []byte, timeout time.Duration, fault Fault) (res Result, healthy bool) {
	inv := &invocation{
		id: id, event: event, fault: fault, deadline: time.Now().Add(timeout), result: make(chan Result, 1),
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-in.asked: // left by a process that asked twice
	default:
	}
	in.mu.Lock()
	in.current = inv
	in.mu.Unlock()
	defer func() {
		in.mu.Lock()
		in.current = nil
		in.mu.Unlock()
	}()

	crashed := func() (Result, bool) {
		return failure("Runtime.ExitError", "RequestId: "+id+" Error: "+in.exit), false
	}
	timedOut := func() (Result, bool) {
		in.kill()
		return failure("Sandbox.Timedout", fmt.Sprintf("RequestId: %s Error: Task timed out after %.2f seconds", id, timeout.Seconds())), false
	}
	select {
	case in.events <- inv:
	case <-in.exited:
		return crashed()
	case <-timer.C:
		return timedOut()
	}
	select {
	case res = <-inv.result:
	case <-in.exited:
		select {
		case res = <-inv.result: // it answered and then went
			return res, false
		default:
			return crashed()
		}
	case <-timer.C:
		return timedOut()
	}
	// An event is over when the process asks for another: one that answers and
	// exits, as after a panic, must not be given the next.
	select {
	case <-in.asked:
		return res, true
	case <-in.exited:
	case <-timer.C:
	}
	return res, false
}

func (in *instance) alive() bool {
	select {
	case <-in.exited:
		return false
	default:
		return true
	}
}

// kill ends the process and everything it started, and waits for it.
func (in *instance) kill() {
	in.mu.Lock()
	first := !in.killed
	in.killed = true
	in.mu.Unlock()
	if first && in.alive() {
		killGroup(in.cmd)
	}
	<-in.exited
}
