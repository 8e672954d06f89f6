package stack

import (
	"net/http"
	"strconv"
	"strings"

	"claimcheck.dev/claimcheck/shared/local/template"
)

// withCORS lays the CorsConfig of a response headers policy over the answers of
// the content host, as CloudFront does: for requests that name an allowed Origin.
// The Origin itself goes no further, so the bucket's own CORS rules do not reach
// downloads, here as there.
func withCORS(c *template.CORS, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		if origin != "" && c != nil {
			for _, allowed := range c.Origins {
				if allowed == "*" || strings.EqualFold(allowed, origin) {
					w = &corsWriter{ResponseWriter: w, cors: c, origin: allowed}
					break
				}
			}
		}
		bare := r.Clone(r.Context())
		bare.Header.Del("Origin")
		next.ServeHTTP(w, bare)
	})
}

// corsWriter sets the CORS headers just before an answer is sent, over whatever
// the handler has set.
type corsWriter struct {
	http.ResponseWriter
	cors   *template.CORS
	origin string
	done   bool
}

func (w *corsWriter) WriteHeader(status int) {
	if !w.done {
		w.done = true
		h := w.Header()
		set := func(name string, values []string) {
			h.Del(name)
			if len(values) > 0 {
				h.Set(name, strings.Join(values, ", "))
			}
		}
		set("Access-Control-Allow-Origin", []string{w.origin})
		if w.origin != "*" {
			h.Add("Vary", "Origin")
		}
		set("Access-Control-Expose-Headers", w.cors.Expose)
		set("Access-Control-Allow-Credentials", nil)
		if w.cors.Credentials {
			set("Access-Control-Allow-Credentials", []string{"true"})
		}
		if w.cors.MaxAgeSeconds > 0 {
			set("Access-Control-Max-Age", []string{strconv.Itoa(w.cors.MaxAgeSeconds)})
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *corsWriter) Write(p []byte) (int, error) {
	if !w.done {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController through.
func (w *corsWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
