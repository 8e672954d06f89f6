package apigw

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// route is a Route with its path taken apart.
type route struct {
	Route
	key      string // routeKey of events: "GET /v1/files/{id}"
	segments []string
	fallback bool // $default
	greedy   bool // the last segment is {name+}
}

func compile(r Route) (route, error) {
	if r.Path == "$default" {
		return route{Route: r, key: "$default", fallback: true}, nil
	}
	if !strings.HasPrefix(r.Path, "/") {
		return route{}, fmt.Errorf("route %s %s: the path must start with a slash or be $default", r.Method, r.Path)
	}
	c := route{Route: r, key: r.Method + " " + r.Path, segments: strings.Split(r.Path[1:], "/")}
	for i, s := range c.segments {
		if strings.HasSuffix(s, "+}") {
			if i != len(c.segments)-1 {
				return route{}, fmt.Errorf("route %s: %s must be the last segment", c.key, s)
			}
			c.greedy = true
		}
	}
	return c, nil
}

// find picks the most specific route: a full match before a greedy one, literal
// segments before variables, the method itself before ANY, $default last.
func find(routes []route, method, path string) (best route, params map[string]string, ok bool) {
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	var bestRank []int
	for _, r := range routes {
		p, rank := r.match(method, segments)
		if rank == nil || (bestRank != nil && !less(rank, bestRank)) {
			continue
		}
		best, params, bestRank, ok = r, p, rank, true
	}
	return best, params, ok
}

// match returns the path parameters and a rank (smaller is more specific), or a
// nil rank.
func (r route) match(method string, segments []string) (params map[string]string, rank []int) {
	if r.Method != method && r.Method != "ANY" {
		return nil, nil
	}
	wide := 0
	if r.Method != method {
		wide = 1
	}
	if r.fallback {
		return nil, []int{2, wide}
	}
	if len(segments) < len(r.segments) || (len(segments) > len(r.segments) && !r.greedy) {
		return nil, nil
	}
	rank = []int{0}
	if r.greedy {
		rank[0] = 1
	}
	for i, want := range r.segments {
		if !strings.HasPrefix(want, "{") || !strings.HasSuffix(want, "}") {
			if segments[i] != want {
				return nil, nil
			}
			rank = append(rank, 0)
			continue
		}
		rank = append(rank, 1)
		if params == nil {
			params = map[string]string{}
		}
		name := want[1 : len(want)-1]
		if strings.HasSuffix(name, "+") {
			params[name[:len(name)-1]] = strings.Join(segments[i:], "/")
			break
		}
		if segments[i] == "" {
			return nil, nil // a variable needs at least one character
		}
		params[name] = segments[i]
	}
	return params, append(rank, wide)
}

func less(a, b []int) bool {
	for i := range a {
		if i >= len(b) {
			return false
		}
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return len(a) < len(b)
}

// decodedPath is the path as functions see it. An HTTP API decodes percent
// encoding before it routes, so %2F separates segments; what follows a decoded
// question mark is lost.
func decodedPath(r *http.Request) string {
	path := r.URL.EscapedPath()
	if decoded, err := url.PathUnescape(path); err == nil {
		path = decoded
	}
	path, _, _ = strings.Cut(path, "?")
	if path == "" {
		path = "/"
	}
	return path
}
