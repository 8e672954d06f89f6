// Package stack composes the local stack: it reads the template, builds the
// functions, starts an API gateway, a Lambda, an S3 with a content host in front,
// a DynamoDB, an STS and an SQS on loopback, and connects them as the template
// says. It never imports the service: a function is started as the binary that
// ships, with the environment the template declares, and finds the servers through
// the SDK's standard endpoint variables.
//
// Everything is kept under one data folder, which one stack uses at a time:
//
//	env          CLAIMCHECK_URL and CLAIMCHECK_KEY, to be read by shells
//	stack.json   how `claimcheck-local key` and `dlq` find the running stack
//	functions/   the built functions
//	dynamo/ s3/ queues/ streams/ sessions.key   what was stored
package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"claimcheck.dev/claimcheck/shared/local/calls"
	"claimcheck.dev/claimcheck/shared/local/dynamo"
	"claimcheck.dev/claimcheck/shared/local/lambda"
	"claimcheck.dev/claimcheck/shared/local/queue"
	"claimcheck.dev/claimcheck/shared/local/s3"
	"claimcheck.dev/claimcheck/shared/local/sources"
	"claimcheck.dev/claimcheck/shared/local/sts"
	"claimcheck.dev/claimcheck/shared/local/template"
)

// Region and AccountID are where the local stack pretends to be, and StackName
// what its template is deployed as.
const (
	Region    = "us-east-1"
	AccountID = "000000000000"
	StackName = "claimcheck-local"
)

// Options says what to start.
type Options struct {
	// Root is the project: template.yaml and functions/.
	Root string
	// Data is the folder that keeps everything, made if need be.
	Data string
	// Port is the API's; 0 picks a free one.
	Port int
	// Params overrides template parameters.
	Params map[string]string
	// Log gets progress, function output and access logs; Stdout the two lines
	// CLAIMCHECK_URL=… and CLAIMCHECK_KEY=…, once the stack is ready. nil discards.
	Log, Stdout io.Writer
	// Now is the clock of the table's TTL, of queues and of schedules' events; nil is
	// the real one. It does not reach the functions. After moving it, call Wake.
	Now func() time.Time
	// Faults breaks functions on purpose, see [lambda.Config].
	Faults func(function string, n int) lambda.Fault
	// Deployed, when set, takes the names of resources and the environment of the
	// functions from a created stack.
	Deployed *Deployed
	// Calls, when set, receives what the functions and the presign role did at the
	// stores, as JSON lines of [calls.Call].
	Calls io.Writer
	// Notify says for a new object with what delays its notification is delivered: once for
	// each, so late, more than once and out of order as S3 may. nil delivers once and at once.
	Notify func(key string) []time.Duration
}

// Stack is a running stack.
type Stack struct {
	// URL is the API's, S3URL and ContentURL those of the object store and of the
	// host that links name. Key is an owner key of the account "local", empty when
	// the template has no issue-key function.
	URL, S3URL, ContentURL, Key string

	opt       Options
	log       *syncWriter
	template  *template.Template
	functions map[string]*lambda.Function // by logical id
	schedules map[string]*sources.Schedule
	dynamo    *dynamo.Server
	s3        *s3.Server
	queues    *queue.Server
	sessions  *sts.Sessions
	calls     *calls.Recorder // nil unless asked for
	filters   map[string]sources.Filter
	listen    listeners
	adminKey  string

	lock    *os.File
	api     *http.Server
	servers []*http.Server     // the API's included
	cancel  context.CancelFunc // stops sources and the sweep
	work    sync.WaitGroup
	failed  chan error
	closing sync.Once
}

// listeners are opened first: the template refers to their addresses.
type listeners struct{ api, queues, content, dynamo, sts, admin net.Listener }

// Start starts a stack and returns when it is ready. ctx limits the start only;
// [Stack.Close] stops the stack.
func Start(ctx context.Context, opt Options) (*Stack, error) {
	s := &Stack{
		opt: opt, log: &syncWriter{to: opt.Log}, failed: make(chan error, 1),
		functions: map[string]*lambda.Function{}, schedules: map[string]*sources.Schedule{},
		filters: map[string]sources.Filter{},
	}
	if s.opt.Now == nil {
		s.opt.Now = time.Now
	}
	if s.opt.Stdout == nil {
		s.opt.Stdout = io.Discard
	}
	var err error
	if s.opt.Data, err = filepath.Abs(opt.Data); err != nil {
		return nil, fmt.Errorf("finding the data folder: %w", err)
	}
	if err := s.start(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Stack) start(ctx context.Context) error {
	if err := os.MkdirAll(s.opt.Data, 0o700); err != nil {
		return fmt.Errorf("making the data folder: %w", err)
	}
	var err error
	if s.lock, err = lockFolder(s.opt.Data); err != nil {
		return err
	}
	if err := s.openListeners(); err != nil {
		return err
	}
	hosts := template.Hosts{Queues: s.listen.queues.Addr().String(), Content: s.listen.content.Addr().String()}
	s.template, err = template.Load(filepath.Join(s.opt.Root, "template.yaml"), template.Options{
		Params: s.opt.Params, Region: Region, AccountID: AccountID, StackName: StackName,
		Hosts: hosts, Names: s.opt.Deployed.names(),
	})
	if err != nil {
		return err
	}
	if s.opt.Deployed != nil {
		if err := s.opt.Deployed.apply(s.template.Functions, hosts); err != nil {
			return err
		}
	}
	if s.opt.Calls != nil {
		s.calls = calls.New(calls.Options{To: s.opt.Calls, Who: s.caller, Region: Region, AccountID: AccountID})
	}
	if err := s.check(); err != nil {
		return err
	}
	if err := s.build(ctx); err != nil {
		return err
	}
	fresh := !exists(filepath.Join(s.opt.Data, "dynamo"))
	if err := s.openStores(); err != nil {
		return err
	}
	if err := s.startFunctions(ctx); err != nil {
		return err
	}
	if err := s.startGateway(); err != nil {
		return err
	}
	background, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.startSources(background)
	s.startAdmin()
	return s.announce(ctx, fresh)
}

// openListeners opens every port. Only the API's may be asked for.
func (s *Stack) openListeners() error {
	api, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", s.opt.Port))
	if err != nil {
		if isPortInUse(err) {
			return fmt.Errorf("port %d is in use: choose another, or 0 for a free one", s.opt.Port)
		}
		return fmt.Errorf("opening port %d: %w", s.opt.Port, err)
	}
	s.listen.api = api
	for _, l := range []*net.Listener{&s.listen.queues, &s.listen.content, &s.listen.dynamo, &s.listen.sts, &s.listen.admin} {
		if *l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return fmt.Errorf("opening a port: %w", err)
		}
	}
	return nil
}

// serve answers on a listener until Close.
func (s *Stack) serve(l net.Listener, h http.Handler) *http.Server {
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute, MaxHeaderBytes: 64 << 10, ErrorLog: quietLog()}
	s.servers = append(s.servers, server)
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.fail(fmt.Errorf("serving %s: %w", l.Addr(), err))
		}
	}()
	return server
}

// fail reports that the stack can no longer do its work.
func (s *Stack) fail(err error) {
	select {
	case s.failed <- err:
	default: // one reason is enough
	}
}

// Failed receives an error when a part of the stack stopped by itself.
func (s *Stack) Failed() <-chan error { return s.failed }

// Dynamo, S3 and Queues are the stores, for fault plans, counters and a look inside. S3 is
// nil without a bucket in the template.
func (s *Stack) Dynamo() *dynamo.Server { return s.dynamo }
func (s *Stack) S3() *s3.Server         { return s.s3 }
func (s *Stack) Queues() *queue.Server  { return s.queues }

// Template is what was started.
func (s *Stack) Template() *template.Template { return s.template }

// QueueName is the name of a queue by its logical id in the template.
func (s *Stack) QueueName(id string) (string, error) {
	for _, q := range s.template.Queues {
		if q.ID == id || q.Name == id {
			return q.Name, nil
		}
	}
	return "", fmt.Errorf("the template has no queue %s", id)
}

// Function finds a function by its folder, logical id or name.
func (s *Stack) Function(name string) (*lambda.Function, error) {
	f, ok := s.template.FunctionByFolder(name)
	if !ok {
		return nil, fmt.Errorf("the template has no function %s", name)
	}
	return s.functions[f.ID], nil
}

// Invoke calls a function directly, as an operator with permission would.
func (s *Stack) Invoke(ctx context.Context, function string, event []byte) (lambda.Result, error) {
	f, err := s.Function(function)
	if err != nil {
		return lambda.Result{}, err
	}
	return f.Invoke(ctx, event)
}

// Trigger calls a function now with the event of its (first) schedule.
func (s *Stack) Trigger(ctx context.Context, function string) (lambda.Result, error) {
	f, ok := s.template.FunctionByFolder(function)
	if !ok || len(f.Schedules) == 0 {
		return lambda.Result{}, fmt.Errorf("the template has no function %s with a schedule", function)
	}
	return s.functions[f.ID].Invoke(ctx, s.schedules[f.Schedules[0].ID].Event())
}

// Sweep removes the table items whose TTL is over, as a timer does every two seconds.
func (s *Stack) Sweep() {
	if s.dynamo != nil {
		s.dynamo.Sweep(s.opt.Now())
	}
}

// Wake makes the parts that wait for a time look at the clock again.
func (s *Stack) Wake() {
	s.queues.Wake()
	s.Sweep()
}

// Close stops the stack: no new requests, what is under way gets five seconds,
// the functions are killed, the stores closed. It may be called more than once.
func (s *Stack) Close() error {
	var err error
	s.closing.Do(func() { err = s.close() })
	return err
}

func (s *Stack) close() error {
	grace, done := context.WithTimeout(context.Background(), 5*time.Second)
	defer done()
	if s.lock != nil {
		os.Remove(s.file("stack.json"))
	}
	if s.cancel != nil {
		s.cancel()
	}
	if s.api != nil {
		s.api.Shutdown(grace) // what it has begun may need all the others
	}
	var functions sync.WaitGroup
	for _, f := range s.functions {
		functions.Go(func() { f.Close(grace) })
	}
	functions.Wait()
	s.work.Wait()
	for _, server := range s.servers {
		server.Close()
	}
	for _, l := range []net.Listener{s.listen.api, s.listen.queues, s.listen.content, s.listen.dynamo, s.listen.sts, s.listen.admin} {
		if l != nil {
			l.Close()
		}
	}
	var errs []error
	if s.calls != nil {
		errs = append(errs, s.calls.Err())
	}
	if s.s3 != nil {
		errs = append(errs, s.s3.Close())
	}
	if s.dynamo != nil {
		errs = append(errs, s.dynamo.Close())
	}
	if s.queues != nil {
		errs = append(errs, s.queues.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}

// file is a path under the data folder.
func (s *Stack) file(parts ...string) string {
	return filepath.Join(append([]string{s.opt.Data}, parts...)...)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
