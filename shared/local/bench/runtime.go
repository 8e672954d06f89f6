package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// runtimeAPI is Lambda's Runtime API for one process, with a clock at both ends of each event
// (https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html).
type runtimeAPI struct {
	address string
	server  *http.Server
	asked   chan time.Time // one for each request for an event
	events  chan []byte
	sent    chan time.Time
	answers chan answer
	count   int
}

// answer is what a process made of an event.
type answer struct {
	at     time.Time
	body   []byte
	failed bool // the process reported an error
}

func serveRuntimeAPI() (*runtimeAPI, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("opening the Runtime API: %w", err)
	}
	api := &runtimeAPI{
		address: listener.Addr().String(),
		asked:   make(chan time.Time, 1), events: make(chan []byte),
		sent: make(chan time.Time, 1), answers: make(chan answer, 1),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", api.next)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", func(w http.ResponseWriter, r *http.Request) { api.answer(w, r, false) })
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/error", func(w http.ResponseWriter, r *http.Request) { api.answer(w, r, true) })
	api.server = &http.Server{Handler: mux}
	go api.server.Serve(listener)
	return api, nil
}

func (api *runtimeAPI) next(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	select {
	case api.asked <- now:
	case <-r.Context().Done():
		return
	}
	select {
	case event := <-api.events:
		api.count++ // one request at a time
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Lambda-Runtime-Aws-Request-Id", fmt.Sprintf("00000000-0000-4000-8000-%012d", api.count))
		h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(time.Minute).UnixMilli(), 10))
		h.Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:000000000000:function:bench")
		h.Set("Content-Length", strconv.Itoa(len(event)))
		api.sent <- time.Now()
		w.Write(event)
	case <-r.Context().Done():
	}
}

func (api *runtimeAPI) answer(w http.ResponseWriter, r *http.Request, failed bool) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the process has gone
	}
	a := answer{time.Now(), body, failed}
	w.WriteHeader(http.StatusAccepted)
	io.WriteString(w, `{"status":"OK"}`)
	select {
	case api.answers <- a:
	case <-r.Context().Done():
	}
}

func (api *runtimeAPI) close() { api.server.Close() }
