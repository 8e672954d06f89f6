// Package s3 is an S3 on loopback for the local stack and for tests: one
// bucket, kept in a directory, that answers the requests this service and its
// clients make the way S3 in the cloud answers them.
//
// Three layers serve a request. The host (host.go) is the HTTP server clients
// talk to; it counts, injects faults, answers CORS preflights, and refuses
// what S3 refuses and the next layer does not, such as an Authorization header
// beside a presigned query. Behind it, on a Unix socket, runs versitygw, an S3
// gateway, embedded: it parses requests and checks signatures, so a URL that
// passes here was signed the way S3 checks it. Its storage is the bucket
// (bucket.go, copy.go, list.go): it applies the policies of the template
// (policy.go) and keeps objects in a store (store.go).
//
// The storage is ours and not the gateway's own posix backend because that
// one changes the working directory of the process, publishes metadata and
// bytes in separate steps (a kill between them leaves a key that can neither
// be read nor written under If-None-Match), and stores a body that was cut off
// as if it were whole.
//
// The gateway runs once per process, so a process can have one Server at a
// time; stacks side by side are processes. What is not implemented (multipart
// uploads, versions, tags, bucket configuration) answers 501.
package s3

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/versity/versitygw/embedgw"
	"github.com/versity/versitygw/s3api"
)

// Options configure a Server.
type Options struct {
	// Dir keeps the objects. It is created when needed and used by one process
	// at a time.
	Dir string
	// Bucket is the name of the one bucket, at least 3 characters.
	Bucket string
	// Region is the region requests are signed for; us-east-1 when empty.
	Region string
	// Listen is the address to serve on; 127.0.0.1:0, a free port, when empty.
	Listen string
	// Lookup finds the account of a pair of credentials; sessionToken is empty
	// for those that have none. Its errors are those of package sts:
	// ErrUnknownKey, ErrInvalidToken, ErrExpiredToken.
	Lookup func(accessKeyID, sessionToken string) (Account, error)
	// OnObjectCreated is called once an object can be read, before the request
	// that stored it is answered, and at Start for objects whose event was not
	// delivered because the process was killed. It may call the server.
	OnObjectCreated func(ObjectCreated)
	// Faults is the first fault plan; nil for none.
	Faults func(Request) Fault
	// CORS is the bucket's cross-origin configuration; nil for none.
	CORS *CORS
	// Wrap stands around the whole server, to watch requests; nil for nothing.
	Wrap func(http.Handler) http.Handler
}

// Server is a running S3.
type Server struct {
	url     string
	meter   *meter
	stop    context.CancelFunc
	stopped chan struct{}
	err     error // of stopping; set before stopped is closed
}

// URL is where the server answers: http://127.0.0.1:PORT, without a slash.
func (s *Server) URL() string { return s.url }

// Counters returns what was counted since Start or ResetCounters.
func (s *Server) Counters() Counters { return s.meter.snapshot() }

// ResetCounters sets all counters to zero.
func (s *Server) ResetCounters() { s.meter.reset() }

// SetFaults replaces the fault plan; nil ends all faults. The plan is called
// for every request, concurrently.
func (s *Server) SetFaults(plan func(Request) Fault) { s.meter.setPlan(plan) }

// Close stops the server and releases its directory. Requests under way get
// two seconds.
func (s *Server) Close() error {
	s.stop()
	<-s.stopped
	return s.err
}

// Start starts a server and returns once it answers. It runs until Close, or
// until ctx ends.
func Start(ctx context.Context, o Options) (*Server, error) {
	if o.Lookup == nil {
		return nil, errors.New("starting S3: Options.Lookup is missing; without it no request can be authenticated")
	}
	if len(o.Bucket) < 3 {
		return nil, fmt.Errorf("starting S3: the bucket name %q is too short; S3 wants at least 3 characters", o.Bucket)
	}
	if o.Region == "" {
		o.Region = "us-east-1"
	}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	store, err := openStore(o.Dir)
	if err != nil {
		return nil, err
	}
	s := &Server{meter: &meter{plan: o.Faults}, stopped: make(chan struct{})}
	b := &bucket{
		name: o.Bucket, store: store, lookup: o.Lookup, created: o.OnObjectCreated,
		written: func(n int64) { s.meter.add(func(c *Counters) { c.WrittenBytes += n }) },
	}
	requests := new(exchanges)
	gateway, err := startGateway(o, b, requests)
	if err != nil {
		store.close()
		return nil, err
	}
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting S3: %w", err), gateway.close(), closed(store))
	}
	s.url = "http://" + listener.Addr().String()
	var handler http.Handler = newHost(o.Bucket, gateway.socket, o.CORS, s.meter, requests)
	if o.Wrap != nil {
		handler = o.Wrap(handler)
	}
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(discard{}, "", 0), // cut connections are part of the plan
	}
	ctx, s.stop = context.WithCancel(ctx)
	go server.Serve(listener)
	go func() {
		defer close(s.stopped)
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if server.Shutdown(grace) != nil {
			server.Close()
		}
		s.err = errors.Join(gateway.close(), closed(store))
	}()

	if o.OnObjectCreated != nil {
		events, err := store.pendingEvents()
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		for _, event := range events {
			b.deliver(event)
		}
	}
	return s, nil
}

func closed(s *store) error { s.close(); return nil }

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// gateway is the embedded versitygw.
type gateway struct {
	socket string
	temp   string // the directory of the socket when it is not the store's
	stop   context.CancelFunc
	done   chan error
}

// startGateway runs the gateway on a Unix socket and returns once it accepts.
func startGateway(o Options, b *bucket, e *exchanges) (*gateway, error) {
	g := &gateway{socket: filepath.Join(o.Dir, "gateway.sock"), done: make(chan error, 1)}
	if dir, err := filepath.Abs(o.Dir); err == nil {
		g.socket = filepath.Join(dir, "gateway.sock")
	}
	// A socket's path fits in about 100 bytes.
	if len(g.socket) > 100 {
		temp, err := os.MkdirTemp("", "claimcheck-s3-")
		if err != nil {
			return nil, fmt.Errorf("starting S3: %w", err)
		}
		g.temp, g.socket = temp, filepath.Join(temp, "gateway.sock")
	}
	if err := os.Remove(g.socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("starting S3: removing the socket of an earlier run: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	g.stop = stop
	listening := make(chan struct{})
	go func() {
		g.done <- embedgw.RunVersityGW(ctx, b, &embedgw.Config{
			// The root account passes all checks; nobody knows its secret.
			RootUserAccess:    "root",
			RootUserSecret:    rand.Text(),
			Region:            o.Region,
			Ports:             []string{g.socket},
			SocketPerm:        "0600",
			MaxConnections:    4096,
			MaxRequests:       4096,
			MultipartMaxParts: 10000,
			Quiet:             true,
			IAMService:        accounts{o.Lookup},
			S3Options: []s3api.Option{
				s3api.WithOnListen(func() { close(listening) }),
				s3api.WithMiddleware("/", e.middleware),
			},
		})
	}()
	select {
	case <-listening:
		return g, nil
	case err := <-g.done:
		stop()
		os.RemoveAll(g.temp)
		return nil, fmt.Errorf("starting S3: %w", err)
	}
}

func (g *gateway) close() error {
	g.stop()
	err := <-g.done
	os.Remove(g.socket)
	if g.temp != "" {
		os.RemoveAll(g.temp)
	}
	if err != nil {
		return fmt.Errorf("stopping S3: %w", err)
	}
	return nil
}
