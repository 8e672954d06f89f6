package s3

import (
	"crypto/rand"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// host is the HTTP server in front of the gateway: it is what clients talk
// to, and it answers what S3 answers and the gateway does not.
type host struct {
	bucket    string
	cors      *CORS
	meter     *meter
	exchanges *exchanges
	gateway   http.RoundTripper
}

func newHost(bucket, socket string, cors *CORS, m *meter, e *exchanges) *host {
	return &host{bucket: bucket, cors: cors, meter: m, exchanges: e, gateway: unixTransport(socket)}
}

func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request := h.describe(r)
	h.meter.add(func(c *Counters) { c.Requests[request.Operation]++ })
	if r.ContentLength == 0 {
		h.serve(w, r, request)
		return
	}
	body := &upload{ReadCloser: r.Body}
	r.Body = body
	// Otherwise the server would take in most of an upload before it sends the
	// first byte of a refusal.
	if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
		writeError(w, r, http.StatusInternalServerError, "InternalError", "The connection cannot carry an upload.")
		return
	}
	h.serve(w, r, request)
	body.finish(w, r)
}

func (h *host) serve(w http.ResponseWriter, r *http.Request, request Request) {
	fault := h.meter.fault(request)
	if fault.Delay > 0 {
		select {
		case <-time.After(fault.Delay):
		case <-r.Context().Done():
		}
	}
	switch fault.Kind {
	case Error500:
		writeError(w, r, http.StatusInternalServerError, "InternalError", "We encountered an internal error. Please try again.")
		return
	case Error503SlowDown:
		writeError(w, r, http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate.")
		return
	case CutConnection:
		panic(http.ErrAbortHandler) // net/http closes the connection
	}

	if r.Method == http.MethodOptions {
		h.cors.preflight(w, r)
		return
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if rule := h.cors.rule(origin, r.Method, nil); rule != nil {
			rule.allow(w.Header(), origin)
		}
	}
	if h.refuse(w, r, request) {
		return
	}
	h.forward(w, r, request, fault.Kind == LostReply)
}

// describe names the operation, by the same parts of a request that S3 goes by.
func (h *host) describe(r *http.Request) Request {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	query := r.URL.Query()
	object := key != ""
	operation := "Other"
	switch {
	case r.Method == http.MethodOptions:
		operation = "Preflight"
	case r.Method == http.MethodPut && object && r.Header.Get("X-Amz-Copy-Source") != "":
		operation = "CopyObject"
	case r.Method == http.MethodPut && object && !hasSubresource(query):
		operation = "PutObject"
	case r.Method == http.MethodGet && object && !hasSubresource(query):
		operation = "GetObject"
	case r.Method == http.MethodHead && object:
		operation = "HeadObject"
	case r.Method == http.MethodHead && bucket != "":
		operation = "HeadBucket"
	case r.Method == http.MethodDelete && object && !hasSubresource(query):
		operation = "DeleteObject"
	case r.Method == http.MethodPost && query.Has("delete"):
		operation = "DeleteObjects"
	case r.Method == http.MethodGet && query.Get("list-type") == "2":
		operation = "ListObjectsV2"
	}
	return Request{Operation: operation, Bucket: bucket, Key: key, Presigned: presigned(r)}
}

// hasSubresource tells whether a request is about something of an object, not
// the object: ?tagging, ?acl, the parts of a multipart upload and so on.
func hasSubresource(query url.Values) bool {
	for _, name := range []string{"acl", "attributes", "legal-hold", "partNumber", "retention", "select", "tagging", "torrent", "uploadId", "uploads"} {
		if query.Has(name) {
			return true
		}
	}
	return false
}

// presigned tells whether a request carries its signature in the query.
func presigned(r *http.Request) bool {
	query := r.URL.Query()
	return query.Has("X-Amz-Signature") || query.Has("X-Amz-Algorithm") || query.Has("X-Amz-Credential")
}

// refuse answers what the gateway would let pass.
func (h *host) refuse(w http.ResponseWriter, r *http.Request, request Request) bool {
	switch {
	case request.Presigned && r.Header.Get("Authorization") != "":
		// S3 repeats the header's value here; a key is not ours to repeat.
		writeError(w, r, http.StatusBadRequest, "InvalidArgument",
			"Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, Signature query string "+
				"parameter or the Authorization header should be specified")
	case request.Bucket == "":
		// The gateway has its administration and the list of buckets here.
		writeError(w, r, http.StatusForbidden, "AccessDenied", "Access Denied")
	case r.ContentLength < 0:
		writeError(w, r, http.StatusNotImplemented, "NotImplemented",
			"A header you provided implies functionality that is not implemented: Transfer-Encoding")
	case request.Operation == "PutObject" && r.ContentLength == 0 && r.Header.Get("Content-Length") == "":
		writeError(w, r, http.StatusLengthRequired, "MissingContentLength", "You must provide the Content-Length HTTP header.")
	case r.Method == http.MethodPost && request.Key == "" && request.Operation != "DeleteObjects":
		// Browser forms (authType POST): the bucket policy refuses them all,
		// because a form can overwrite.
		writeError(w, r, http.StatusForbidden, "AccessDenied", "Access Denied")
	case r.Method == http.MethodPatch || r.Method == http.MethodConnect || r.Method == http.MethodTrace:
		writeError(w, r, http.StatusMethodNotAllowed, "MethodNotAllowed", "The specified method is not allowed against this resource.")
	default:
		return false
	}
	return true
}

// forward passes the request to the gateway and its answer back.
func (h *host) forward(w http.ResponseWriter, r *http.Request, request Request, loseReply bool) {
	x := newExchange(r)
	id := rand.Text()
	h.exchanges.m.Store(id, x)
	defer h.exchanges.m.Delete(id)

	out := verbatim(r)
	out.Header.Set(exchangeHeader, id)
	refused := make(chan struct{})
	defer close(refused)
	if request.Operation == "PutObject" && r.ContentLength > 0 {
		out.Body = &gate{r.Body, heldBack, x, refused}
	}
	answer, err := h.gateway.RoundTrip(out)
	if err != nil {
		if r.Context().Err() != nil {
			panic(http.ErrAbortHandler) // the client has gone
		}
		writeError(w, r, http.StatusInternalServerError, "InternalError", "We encountered an internal error. Please try again.")
		return
	}
	defer answer.Body.Close()
	if loseReply {
		io.Copy(io.Discard, answer.Body)
		panic(http.ErrAbortHandler)
	}
	for name, values := range answer.Header {
		if name != "Connection" && !strings.HasPrefix(name, "Access-Control-") {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(answer.StatusCode)
	n, err := io.Copy(w, answer.Body)
	if request.Operation == "GetObject" && answer.StatusCode < 300 {
		h.meter.add(func(c *Counters) {
			if r.Header.Get("Range") != "" {
				c.RangedBytes += n
			} else {
				c.ReadBytes += n
			}
		})
	}
	if err != nil {
		panic(http.ErrAbortHandler) // the length promised was not sent
	}
}

// upload is the body of a request, and remembers how far it was read.
type upload struct {
	io.ReadCloser
	begun, ended atomic.Bool
}

func (u *upload) Read(p []byte) (int, error) {
	u.begun.Store(true)
	n, err := u.ReadCloser.Read(p)
	if err != nil {
		u.ended.Store(true)
	}
	return n, err
}

// finish sends the answer to a refused upload and then takes what the client
// is still sending, up to a bound: many clients read an answer only after they
// have written everything.
func (u *upload) finish(w http.ResponseWriter, r *http.Request) {
	const (
		patience = 10 * time.Second
		most     = 32 << 20
	)
	if u.ended.Load() || !u.begun.Load() && r.Header.Get("Expect") != "" {
		return // nothing more comes: a client that asked first was told no
	}
	c := http.NewResponseController(w)
	if c.Flush() == nil && c.SetReadDeadline(time.Now().Add(patience)) == nil {
		io.CopyN(io.Discard, u, most)
		c.SetReadDeadline(time.Time{})
	}
}

// verbatim makes a request for the gateway of one that was received: the
// signature covers the path and query as they were sent, and the host.
func verbatim(r *http.Request) *http.Request {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	if !strings.HasPrefix(path, "/") {
		path = r.URL.EscapedPath() // a request line with a whole URL in it
	}
	// An opaque path is sent as it is, not escaped anew. It does not start
	// with two slashes: without a bucket the request was refused.
	out := (&http.Request{
		Method:        r.Method,
		URL:           &url.URL{Scheme: "http", Host: "gateway", Opaque: path, RawQuery: r.URL.RawQuery, ForceQuery: r.URL.ForceQuery},
		Host:          r.Host,
		Header:        r.Header.Clone(),
		Body:          http.NoBody,
		ContentLength: r.ContentLength,
	}).WithContext(r.Context())
	if r.ContentLength != 0 {
		out.Body = r.Body
	}
	for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Upgrade", "Expect", exchangeHeader} {
		out.Header.Del(name)
	}
	if strings.HasPrefix(out.Header.Get("Content-Type"), "multipart/form-data") && out.Header.Get("Content-Encoding") == "" {
		// A file of this type is a file. The gateway would take it for a form,
		// unless the body has an encoding (storedEncoding drops it again).
		out.Header.Set("Content-Encoding", "identity")
	}
	return out
}

// writeError answers in S3's form.
func writeError(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	requestID := rand.Text()[:16]
	body, err := xml.Marshal(struct {
		XMLName   xml.Name `xml:"Error"`
		Code      string
		Message   string
		RequestID string `xml:"RequestId"`
	}{Code: code, Message: message, RequestID: requestID})
	if err != nil {
		panic(errors.Join(errors.New("encoding an error"), err)) // strings always encode
	}
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("X-Amz-Request-Id", requestID)
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		io.WriteString(w, xml.Header)
		w.Write(body)
	}
}
