package lambda

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
)

// runtimeAPI serves the version 2018-06-01 of the Runtime API to one process.
func (in *instance) runtimeAPI() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", in.next)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", in.response)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/error", in.failed)
	mux.HandleFunc("POST /2018-06-01/runtime/init/error", in.initError)
	return mux
}

// next blocks until there is an event.
func (in *instance) next(w http.ResponseWriter, r *http.Request) {
	in.mu.Lock()
	if !in.started {
		in.started = true
		close(in.ready)
	} else {
		select {
		case in.asked <- struct{}{}:
		default:
		}
	}
	in.mu.Unlock()
	select {
	case inv := <-in.events:
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Lambda-Runtime-Aws-Request-Id", inv.id)
		h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(inv.deadline.UnixMilli(), 10))
		h.Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:"+in.cfg.Region+":"+in.cfg.AccountID+":function:"+in.cfg.Name)
		h.Set("Lambda-Runtime-Trace-Id", traceID(inv))
		h.Set("Content-Length", strconv.Itoa(len(inv.event)))
		w.Write(inv.event)
		if inv.fault == KillOnDelivery {
			http.NewResponseController(w).Flush()
			go in.kill()
		}
	case <-r.Context().Done():
	}
}

// traceID is an unsampled X-Ray header: nothing collects traces here.
func traceID(inv *invocation) string {
	hex := bytes.ReplaceAll([]byte(inv.id), []byte("-"), nil)
	return "Root=1-" + string(hex[:8]) + "-" + string(hex[8:]) + ";Sampled=0"
}

// running is the invocation the process may answer to.
func (in *instance) running(r *http.Request) *invocation {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.current != nil && in.current.id == r.PathValue("id") {
		return in.current
	}
	return nil
}

func (in *instance) response(w http.ResponseWriter, r *http.Request) {
	in.answer(w, r, "")
}

func (in *instance) failed(w http.ResponseWriter, r *http.Request) {
	in.answer(w, r, "Unhandled")
}

func (in *instance) answer(w http.ResponseWriter, r *http.Request, functionError string) {
	inv := in.running(r)
	if inv == nil {
		reply(w, http.StatusBadRequest, "InvalidRequestID", "Invalid request ID")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxPayload))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		inv.finish(failure("Function.ResponseSizeTooLarge", "Response payload size exceeded maximum allowed payload size ("+strconv.Itoa(MaxPayload)+" bytes)."))
		reply(w, http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "Exceeded maximum allowed payload size ("+strconv.Itoa(MaxPayload)+" bytes).")
		return
	}
	if err != nil {
		return // the process went away while it answered; its exit is the result
	}
	if inv.fault != NoFault {
		in.kill() // for KillOnDelivery the kill is under way
		return
	}
	inv.finish(Result{body, functionError})
	reply(w, http.StatusAccepted, "", "")
}

func (inv *invocation) finish(res Result) {
	select {
	case inv.result <- res:
	default: // a second answer to one event
	}
}

func (in *instance) initError(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxPayload))
	if err == nil {
		select {
		case in.initFail <- body:
		default:
		}
	}
	reply(w, http.StatusAccepted, "", "")
}

// reply answers the process as the service does; kind is empty after a success.
func reply(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if kind == "" {
		io.WriteString(w, `{"status":"OK"}`)
		return
	}
	json.NewEncoder(w).Encode(map[string]string{"errorType": kind, "errorMessage": message})
}
