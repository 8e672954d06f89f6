// Package apigw is an API Gateway HTTP API on loopback: it routes requests to
// functions, with events of payload format 2.0, and turns their answers into
// HTTP.
//
// It does what the service does to a request even where that hurts, because a
// function must cope with it: paths arrive decoded, text bodies go through UTF-8
// (bytes that are no UTF-8 are lost), all other bodies are base64, and what is too
// large, too slow or broken gets one of the gateway's own answers, which are not the
// functions':
//
//	413 {"message":"Request Entity Too Large"}  body over 10 MB, or event over Lambda's 6 MB
//	429 {"message":"Too Many Requests"}         throttled
//	431 {"message":"Request Header Fields Too Large"}  headers over 10,240 bytes
//	500 {"message":"Internal Server Error"}     the function failed or answered nonsense
//	503 {"message":"Service Unavailable"}       no answer within 30 s, or no free instance
//	404 {"message":"Not Found"}                 no route, and no $default route
package apigw

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"claimcheck.dev/claimcheck/shared/local/lambda"
)

// The gateway's quotas.
const (
	maxBody   = 10 << 20
	maxHeader = 10240
	timeout   = 30 * time.Second
)

// Invoker is the function behind a route; *lambda.Function is one.
type Invoker interface {
	Invoke(ctx context.Context, event []byte) (lambda.Result, error)
}

// Route sends requests to a function. Method is a method in upper case or ANY; Path
// is like /v1/files/{id}, /proxy/{rest+} or $default.
type Route struct {
	Method, Path string
	Function     Invoker
	// Timeout is the integration timeout; 0 means the gateway's 30 s.
	Timeout time.Duration
}

// CORS is the API's cross-origin configuration. While it is set the gateway
// answers preflight requests itself, as the service does.
type CORS struct {
	Origins, Methods, Headers, Expose []string
	MaxAgeSeconds                     int
	Credentials                       bool
}

// Options describes the API.
type Options struct {
	Routes []Route
	CORS   *CORS
	// Rate and Burst throttle the API: requests per second, and at once. Zero means
	// no limit.
	Rate, Burst int
	// AccountID and APIID appear in events.
	AccountID, APIID string
	// Log gets one line per request, without the query string.
	Log io.Writer
	// Now is the clock of events; nil is the real one.
	Now func() time.Time
}

// Gateway is the API as an http.Handler.
type Gateway struct {
	opt    Options
	routes []route
	bucket *tokens
}

// New checks the routes and makes a gateway.
func New(opt Options) (*Gateway, error) {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Log == nil {
		opt.Log = io.Discard
	}
	g := &Gateway{opt: opt, bucket: newTokens(opt.Rate, opt.Burst, opt.Now)}
	for _, r := range opt.Routes {
		compiled, err := compile(r)
		if err != nil {
			return nil, err
		}
		g.routes = append(g.routes, compiled)
	}
	return g, nil
}

// ServeHTTP answers one request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	lw := &logged{ResponseWriter: w}
	key := g.serve(lw, r)
	fmt.Fprintf(g.opt.Log, "[api] %s %s %d %d bytes %s (%s)\n",
		r.Method, quotePath(r.URL.EscapedPath()), lw.status, lw.bytes, time.Since(began).Round(100*time.Microsecond), key)
}

// wholeKey is a key sent where its id belongs.
var wholeKey = regexp.MustCompile(`ck_[a-z0-9]+_[a-z0-9]+`)

// quotePath keeps control characters and keys out of the log.
func quotePath(path string) string {
	q := strconv.QuoteToASCII(wholeKey.ReplaceAllLiteralString(path, "ck_..."))
	return q[1 : len(q)-1]
}

func (g *Gateway) serve(w http.ResponseWriter, r *http.Request) (key string) {
	id := gatewayRequestID()
	w.Header().Set("Apigw-Requestid", id)
	if headerBytes(r) > maxHeader {
		answer(w, r, http.StatusRequestHeaderFieldsTooLarge, "Request Header Fields Too Large")
		return "-"
	}
	if !g.bucket.take() {
		answer(w, r, http.StatusTooManyRequests, "Too Many Requests")
		return "-"
	}
	if g.opt.CORS != nil {
		if g.opt.CORS.apply(w, r) {
			return "CORS preflight"
		}
	}
	path := decodedPath(r)
	match, params, ok := find(g.routes, r.Method, path)
	if !ok {
		answer(w, r, http.StatusNotFound, "Not Found")
		return "-"
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		answer(w, r, http.StatusRequestEntityTooLarge, "Request Entity Too Large")
		return match.key
	}
	if err != nil {
		return match.key // the client went away while sending
	}
	event, err := json.Marshal(g.event(r, id, match.key, path, params, body))
	if err != nil {
		fmt.Fprintf(g.opt.Log, "[api] encoding the event: %v\n", err)
		answer(w, r, http.StatusInternalServerError, "Internal Server Error")
		return match.key
	}
	limit := match.Timeout
	if limit <= 0 || limit > timeout {
		limit = timeout
	}
	// A client that goes away does not stop the function.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), limit)
	defer cancel()
	res, err := match.Function.Invoke(ctx, event)
	switch {
	case errors.Is(err, lambda.ErrTooLarge):
		answer(w, r, http.StatusRequestEntityTooLarge, "Request Entity Too Large")
	case errors.Is(err, lambda.ErrThrottled), errors.Is(err, lambda.ErrClosed), errors.Is(err, context.DeadlineExceeded):
		answer(w, r, http.StatusServiceUnavailable, "Service Unavailable")
	case err != nil:
		fmt.Fprintf(g.opt.Log, "[api] invoking %s: %v\n", match.key, err)
		answer(w, r, http.StatusInternalServerError, "Internal Server Error")
	case res.FunctionError != "":
		fmt.Fprintf(g.opt.Log, "[api] %s failed: %s\n", match.key, res.Payload)
		answer(w, r, http.StatusInternalServerError, "Internal Server Error")
	default:
		if err := respond(w, r, res.Payload); err != nil {
			fmt.Fprintf(g.opt.Log, "[api] answer of %s: %v\n", match.key, err)
			answer(w, r, http.StatusInternalServerError, "Internal Server Error")
		}
	}
	return match.key
}

// answer is one of the gateway's own.
func answer(w http.ResponseWriter, r *http.Request, status int, message string) {
	body := `{"message":"` + message + `"}`
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		io.WriteString(w, body)
	}
}

// headerBytes counts the request line and the headers as they came over the wire.
func headerBytes(r *http.Request) int {
	n := len(r.Method) + len(r.RequestURI) + len(r.Proto) + 4
	n += len("Host: ") + len(r.Host) + 2
	for name, values := range r.Header {
		for _, v := range values {
			n += len(name) + len(v) + 4
		}
	}
	return n
}

// apply adds the CORS headers and answers a preflight; done says that it did.
func (c *CORS) apply(w http.ResponseWriter, r *http.Request) (done bool) {
	origin := r.Header.Get("Origin")
	allowed := ""
	for _, o := range c.Origins {
		if o == "*" || strings.EqualFold(o, origin) {
			allowed = o
		}
	}
	if origin == "" || allowed == "" {
		return false
	}
	if allowed != "*" {
		allowed = origin
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", allowed)
	if c.Credentials {
		h.Set("Access-Control-Allow-Credentials", "true")
	}
	set := func(name string, values []string) {
		if len(values) > 0 {
			h.Set(name, strings.Join(values, ","))
		}
	}
	set("Access-Control-Expose-Headers", c.Expose)
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	set("Access-Control-Allow-Methods", c.Methods)
	set("Access-Control-Allow-Headers", c.Headers)
	if c.MaxAgeSeconds > 0 {
		h.Set("Access-Control-Max-Age", strconv.Itoa(c.MaxAgeSeconds))
	}
	w.WriteHeader(http.StatusNoContent)
	return true
}

// logged remembers what was answered.
type logged struct {
	http.ResponseWriter
	status, bytes int
}

func (l *logged) WriteHeader(status int) {
	l.status = status
	l.ResponseWriter.WriteHeader(status)
}

func (l *logged) Write(p []byte) (int, error) {
	n, err := l.ResponseWriter.Write(p)
	l.bytes += n
	return n, err
}
