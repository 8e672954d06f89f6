// Package httpapi translates between API Gateway HTTP API events (payload format 2.0) and the domain: strict requests
// in, JSON or problem+json out. It holds the one table that gives every domain error its status and code.
package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
)

// Event and Answer are what API Gateway sends and expects.
type (
	Event  = events.APIGatewayV2HTTPRequest
	Answer = events.APIGatewayV2HTTPResponse
)

// Authenticator tells who an Authorization header speaks for; every refusal is files.ErrUnauthorized.
type Authenticator interface {
	Caller(ctx context.Context, authorization string) (files.Caller, error)
}

// Endpoint serves one route: it authenticates, checks the scope and the query, runs Do and turns its result or error
// into an answer. Its Serve is what lambda.Start takes.
type Endpoint struct {
	Auth  Authenticator // nil: open to everybody
	Scope files.Scope   // "" when any key will do
	Query []string      // the query parameters the route knows; any other is refused
	Do    func(ctx context.Context, r *Request) (*Response, error)
	Log   *slog.Logger // nil: JSON lines on stderr
}

// Serve answers one event. It never returns an error: whatever goes wrong becomes a problem document.
func (e *Endpoint) Serve(ctx context.Context, ev Event) (answer Answer, _ error) {
	start := time.Now()
	r := &Request{event: ev}
	var cause error
	defer func() {
		if p := recover(); p != nil {
			cause = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			answer = problemAnswer(r, cause)
		}
		e.log(ctx, r, answer.StatusCode, cause, time.Since(start))
	}()
	resp, err := e.run(ctx, r)
	if err == nil {
		answer, err = resp.answer(r)
	}
	if err != nil {
		cause = err
		answer = problemAnswer(r, err)
	}
	return answer, nil
}

func (e *Endpoint) run(ctx context.Context, r *Request) (*Response, error) {
	if e.Auth == nil {
		return e.Do(ctx, r)
	}
	if r.Header("mandate") != "" {
		// To go on as the key's own account would act for somebody the caller did not mean.
		return nil, fmt.Errorf("a mandate was sent: %w", files.ErrUnauthorized)
	}
	caller, err := e.Auth.Caller(ctx, r.Header("authorization"))
	if err != nil {
		return nil, err
	}
	r.Caller = caller
	if e.Scope != "" && !caller.Has(e.Scope) {
		return nil, &scopeError{e.Scope}
	}
	if err := r.parseQuery(e.Query); err != nil {
		return nil, err
	}
	return e.Do(ctx, r)
}

// scopeError is files.ErrForbidden with the scope that is missing.
type scopeError struct{ scope files.Scope }

func (e *scopeError) Error() string { return "the key lacks the scope " + string(e.scope) }
func (e *scopeError) Unwrap() error { return files.ErrForbidden }

var defaultLog = slog.New(slog.NewJSONHandler(os.Stderr, nil))

// log writes one line per request. It names ids, never bodies, URLs, headers or query strings.
func (e *Endpoint) log(ctx context.Context, r *Request, status int, cause error, took time.Duration) {
	log := e.Log
	if log == nil {
		log = defaultLog
	}
	attrs := []slog.Attr{
		slog.String("request_id", r.id()),
		slog.String("route", r.event.RouteKey),
		slog.Int("status", status),
		slog.Float64("took_ms", float64(took.Microseconds())/1000),
	}
	if r.Caller.Account != "" {
		attrs = append(attrs, slog.String("account", r.Caller.Account), slog.String("actor", r.Caller.Actor), slog.String("key", r.Caller.KeyID))
	}
	if id := r.event.PathParameters["id"]; id != "" {
		attrs = append(attrs, slog.String("id", loggable(id)))
	}
	level := slog.LevelInfo
	if cause != nil {
		attrs = append(attrs, slog.String("code", classify(cause).code))
	}
	if status >= 500 {
		level = slog.LevelError
		attrs = append(attrs, slog.String("error", cause.Error()))
	}
	log.LogAttrs(ctx, level, "request", attrs...)
}

// loggable is id if it could be one of ours, the id of a file, a claim or a key. Whatever else a client put in that place
// could be a secret.
func loggable(id string) string {
	rest, prefixed := strings.CutPrefix(id, "f_")
	if !prefixed {
		rest, prefixed = strings.CutPrefix(id, "c_")
	}
	if access.ValidKeyID(id) || prefixed && len(rest) <= 60 && files.ValidRandomText(rest, len(rest)) {
		return id
	}
	return "(malformed)"
}
