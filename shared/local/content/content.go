// Package content is the content host of the local stack: it stands before
// the S3 host as the CloudFront distribution of the template stands before
// the bucket.
//
// Links point here. The path and query of a link are those of a presigned S3
// request and pass through byte for byte, because the signature covers them;
// the Host does not pass, because the URL was signed for the bucket's. On the
// way back the response headers policy is laid over the answer, errors
// included. What a viewer's browser or agent adds and CloudFront drops is
// dropped here too: an Authorization header, which S3 would refuse beside a
// presigned query, and cookies.
package content

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Options configure the host.
type Options struct {
	// Origin is the S3 host: scheme and host only.
	Origin *url.URL
	// Headers are set on every answer, over what the origin sent.
	Headers map[string]string
}

// New returns the host as a handler.
func New(o Options) http.Handler {
	return &host{o, &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		ResponseHeaderTimeout: 30 * time.Second, // CloudFront's origin timeout
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       time.Minute,
		DisableCompression:    true, // bodies pass as they are
	}}
}

type host struct {
	Options
	origin http.RoundTripper
}

// dropped are the headers that do not reach the origin: what CloudFront drops
// under a cache policy that forwards none of them, and those about the
// viewer's connection.
var dropped = []string{
	"Authorization", "Cookie",
	"Connection", "Expect", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		h.fail(w, http.StatusMethodNotAllowed, "This host serves downloads: use GET or HEAD.")
		return
	}
	answer, err := h.origin.RoundTrip(h.request(r))
	if err != nil {
		if r.Context().Err() != nil {
			panic(http.ErrAbortHandler) // the viewer has gone
		}
		h.fail(w, http.StatusBadGateway, "The storage behind this host does not answer. Try again.")
		return
	}
	defer answer.Body.Close()
	for name, values := range answer.Header {
		if name != "Connection" && name != "Set-Cookie" {
			w.Header()[name] = values
		}
	}
	h.policy(w.Header())
	w.WriteHeader(answer.StatusCode)
	if _, err := io.Copy(w, answer.Body); err != nil {
		// Ending normally would pass a cut-off body for a whole one.
		panic(http.ErrAbortHandler)
	}
}

// request makes the origin request of a viewer request.
func (h *host) request(r *http.Request) *http.Request {
	target := url.URL{
		Scheme: h.Origin.Scheme, Host: h.Origin.Host, Path: r.URL.Path, RawPath: r.URL.RawPath,
		RawQuery: r.URL.RawQuery, ForceQuery: r.URL.ForceQuery,
	}
	// An opaque path is sent as it is, not escaped anew; with two slashes it
	// would be taken for a host.
	if path, _, _ := strings.Cut(r.RequestURI, "?"); strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "//") {
		target.Opaque = path
	}
	out := (&http.Request{
		Method: r.Method,
		URL:    &target,
		Host:   h.Origin.Host,
		Header: r.Header.Clone(),
		Body:   http.NoBody,
	}).WithContext(r.Context())
	for _, name := range strings.Split(r.Header.Get("Connection"), ",") {
		out.Header.Del(strings.TrimSpace(name))
	}
	for _, name := range dropped {
		out.Header.Del(name)
	}
	if out.Header.Get("User-Agent") == "" {
		out.Header.Set("User-Agent", "") // or the transport adds its own
	}
	return out
}

// policy lays the response headers policy over an answer.
func (h *host) policy(header http.Header) {
	for name, value := range h.Headers {
		header.Set(name, value)
	}
}

func (h *host) fail(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	h.policy(w.Header())
	w.WriteHeader(status)
	io.WriteString(w, text+"\n")
}
