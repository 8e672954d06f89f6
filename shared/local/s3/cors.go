package s3

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// CORS is a bucket's cross-origin configuration, as in CloudFormation's
// CorsConfiguration.
type CORS struct{ Rules []CORSRule }

// CORSRule allows some cross-origin requests. Origins and headers may have
// one * each.
type CORSRule struct {
	AllowedOrigins []string
	AllowedMethods []string
	AllowedHeaders []string
	ExposedHeaders []string
	MaxAge         int // seconds; 0 sends none
}

// rule returns the first rule that allows the request, as S3 picks it.
func (c *CORS) rule(origin, method string, headers []string) *CORSRule {
	if c == nil || origin == "" {
		return nil
	}
	for i := range c.Rules {
		r := &c.Rules[i]
		if !slices.ContainsFunc(r.AllowedOrigins, func(p string) bool { return matches(p, origin) }) ||
			!slices.Contains(r.AllowedMethods, method) {
			continue
		}
		if !slices.ContainsFunc(headers, func(h string) bool { return !r.allowsHeader(h) }) {
			return r
		}
	}
	return nil
}

func (r *CORSRule) allowsHeader(name string) bool {
	return slices.ContainsFunc(r.AllowedHeaders, func(p string) bool {
		return matches(strings.ToLower(p), strings.ToLower(name))
	})
}

// matches compares with a pattern that may have one *.
func matches(pattern, s string) bool {
	head, tail, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == s
	}
	return len(s) >= len(head)+len(tail) && strings.HasPrefix(s, head) && strings.HasSuffix(s, tail)
}

const varyCORS = "Origin, Access-Control-Request-Headers, Access-Control-Request-Method"

// allow adds the headers that let a browser's script see the answer.
func (r *CORSRule) allow(h http.Header, origin string) {
	if slices.Contains(r.AllowedOrigins, "*") {
		h.Set("Access-Control-Allow-Origin", "*")
	} else {
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Allow-Credentials", "true")
	}
	h.Set("Access-Control-Allow-Methods", strings.Join(r.AllowedMethods, ", "))
	if len(r.ExposedHeaders) > 0 {
		h.Set("Access-Control-Expose-Headers", strings.Join(r.ExposedHeaders, ", "))
	}
	if r.MaxAge > 0 {
		h.Set("Access-Control-Max-Age", strconv.Itoa(r.MaxAge))
	}
	h.Set("Vary", varyCORS)
}

// preflight answers OPTIONS. Preflights carry no signature, on S3 neither.
func (c *CORS) preflight(w http.ResponseWriter, r *http.Request) {
	origin, method := r.Header.Get("Origin"), r.Header.Get("Access-Control-Request-Method")
	switch {
	case origin == "":
		writeError(w, r, http.StatusBadRequest, "BadRequest", "Insufficient information. Origin request header needed.")
		return
	case method == "":
		writeError(w, r, http.StatusBadRequest, "BadRequest", "Invalid Access-Control-Request-Method: null")
		return
	case c == nil || len(c.Rules) == 0:
		writeError(w, r, http.StatusForbidden, "AccessForbidden", "CORSResponse: CORS is not enabled for this bucket.")
		return
	}
	var headers []string
	for _, h := range strings.Split(r.Header.Get("Access-Control-Request-Headers"), ",") {
		if h = strings.ToLower(strings.TrimSpace(h)); h != "" {
			headers = append(headers, h)
		}
	}
	rule := c.rule(origin, method, headers)
	if rule == nil {
		writeError(w, r, http.StatusForbidden, "AccessForbidden", "CORSResponse: This CORS request is not allowed. "+
			"This is usually because the evaluation of Origin, request method / Access-Control-Request-Method or "+
			"Access-Control-Request-Headers are not whitelisted by the resource's CORS spec.")
		return
	}
	rule.allow(w.Header(), origin)
	if len(headers) > 0 {
		w.Header().Set("Access-Control-Allow-Headers", strings.Join(headers, ", "))
	}
	w.WriteHeader(http.StatusOK)
}
