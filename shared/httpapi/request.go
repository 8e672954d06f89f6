package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"claimcheck.dev/claimcheck/shared/files"
)

// MaxJSON is the largest JSON body of an ordinary route, in bytes.
const MaxJSON = 64 << 10

// Request is one authenticated request.
type Request struct {
	Caller files.Caller

	event Event
	query url.Values
}

// Method is the HTTP method, in upper case.
func (r *Request) Method() string { return r.event.RequestContext.HTTP.Method }

// PathID is the {id} of the route.
func (r *Request) PathID() string { return r.event.PathParameters["id"] }

// Header returns a header by its lower-case name; API Gateway sends them so.
func (r *Request) Header(name string) string { return r.event.Headers[name] }

func (r *Request) id() string { return r.event.RequestContext.RequestID }

// parseQuery reads the raw query string: API Gateway's own map joins repeated parameters with commas. A semicolon is a
// character like others, as URLs have it today; net/url refuses it because it once separated parameters.
func (r *Request) parseQuery(known []string) error {
	q, err := url.ParseQuery(strings.ReplaceAll(r.event.RawQueryString, ";", "%3B"))
	if err != nil {
		return files.Invalid("query", "is not a valid query string")
	}
	var bad files.ValidationError
	for _, name := range sortedKeys(q) {
		switch {
		case !slices.Contains(known, name):
			bad.Add(printable(name), "is not a parameter of this route")
		case len(q[name]) > 1:
			bad.Add(name, "must be given once")
		case !utf8.ValidString(q[name][0]):
			bad.Add(name, "must be UTF-8, percent-encoded")
		}
	}
	r.query = q
	return bad.Err()
}

// Query returns a query parameter and whether it was given.
func (r *Request) Query(name string) (string, bool) { return r.query.Get(name), r.query.Has(name) }

// QueryInt returns a query parameter that is a whole number, nil when it isn't given.
func (r *Request) QueryInt(name string, bad *files.ValidationError) *int64 {
	s, ok := r.Query(name)
	if !ok {
		return nil
	}
	n, err := parseInteger(s)
	if err != nil {
		bad.Add(name, err.Error())
		return nil
	}
	return &n
}

// QueryBool returns a query parameter that is true or false; false when it isn't given.
func (r *Request) QueryBool(name string, bad *files.ValidationError) bool {
	s, ok := r.Query(name)
	if ok && s != "true" && s != "false" {
		bad.Add(name, "must be true or false")
	}
	return s == "true"
}

// Body returns the bytes of the body and whether API Gateway handed them over unharmed (text types travel as UTF-8
// strings, which changes bytes that aren't UTF-8).
func (r *Request) Body() (body []byte, exact bool, err error) {
	if !r.event.IsBase64Encoded {
		return []byte(r.event.Body), false, nil
	}
	body, err = base64.StdEncoding.DecodeString(r.event.Body)
	if err != nil {
		return nil, false, fmt.Errorf("decoding the body of the event: %w", err)
	}
	return body, true, nil
}

// JSON reads the body as one JSON object of at most max bytes. An empty body is an empty object.
func (r *Request) JSON(max int) (*Object, error) {
	body, _, err := r.Body()
	if err != nil {
		return nil, err
	}
	if len(body) > max {
		return nil, &requestTooLarge{max}
	}
	if len(body) == 0 {
		body = []byte("{}")
	}
	return parseObject(body)
}

// NoFields reads the JSON body of a route whose requests have no fields: it may be missing or an empty object.
func (r *Request) NoFields() error {
	body, err := r.JSON(MaxJSON)
	if err != nil {
		return err
	}
	return body.Err()
}

// Idempotency returns what identifies the request under its Idempotency-Key, nil when it has none. The digest covers
// the {id} of the path, the query, the body and what else the route names in also.
func (r *Request) Idempotency(also ...string) (*files.Idempotency, error) {
	key, ok := r.event.Headers["idempotency-key"]
	if !ok {
		return nil, nil
	}
	if key == "" || len(key) > 255 || strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' }) {
		return nil, files.Invalid("Idempotency-Key", "must be 1 to 255 printable ASCII characters")
	}
	body, _, err := r.Body()
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	for _, part := range append([]string{r.PathID(), r.query.Encode()}, also...) { // Encode sorts: order does not matter
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	h.Write(body)
	return &files.Idempotency{
		Account: r.Caller.Account,
		Actor:   r.Caller.Actor,
		Route:   r.event.RouteKey,
		Key:     key,
		Digest:  hex.EncodeToString(h.Sum(nil)),
	}, nil
}

type requestTooLarge struct{ max int }

func (e *requestTooLarge) Error() string { return "the request body is too large" }

// parseInteger reads a whole number in plain digits.
func parseInteger(s string) (int64, error) {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, errInteger
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, errRange
	}
	return n, nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// printable makes a name that a client chose safe to repeat in an answer.
func printable(name string) string {
	if len(name) > 100 {
		name = name[:100] + "…"
	}
	return strings.ToValidUTF8(name, "\uFFFD")
}
