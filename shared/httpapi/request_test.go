package httpapi

import (
	"encoding/base64"
	"reflect"
	"strings"
	"testing"

	"claimcheck.dev/claimcheck/shared/files"
)

func TestQueries(t *testing.T) {
	t.Parallel()
	known := []string{"filename", "single_use", "ttl_seconds"}
	for raw, want := range map[string][]string{
		"":                               nil,
		"filename=a.txt&ttl_seconds=5":   nil,
		"filename=a+b%2Bc%26d%3De.txt":   nil,
		"filename":                       nil,
		"&&filename=a&":                  nil,
		"colour=red":                     {"colour: is not a parameter of this route"},
		"filename=a&filename=b":          {"filename: must be given once"},
		"single_use=true&single_use":     {"single_use: must be given once"},
		"Filename=a":                     {"Filename: is not a parameter of this route"},
		"=x":                             {": is not a parameter of this route"},
		"z=1&colour=2&filename=1":        {"colour: is not a parameter of this route", "z: is not a parameter of this route"},
		"filename=%zz":                   {"query: is not a valid query string"},
		"filename=%":                     {"query: is not a valid query string"},
		"filename=a;b&ttl_seconds=5":     nil,
		"ttl_seconds=5;filename=a":       nil,
		"colour;red":                     {"colour;red: is not a parameter of this route"},
		"filename=%ff.txt":               {"filename: must be UTF-8, percent-encoded"},
		"%ff=1":                          {"\uFFFD: is not a parameter of this route"},
		strings.Repeat("q", 200) + "=1":  {strings.Repeat("q", 100) + "…: is not a parameter of this route"},
		"filename=" + "%F0%9F%98%80.txt": nil,
	} {
		r := &Request{event: Event{RawQueryString: raw}}
		if got := fieldErrors(t, r.parseQuery(known)); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %q, want %q", raw, got, want)
		}
	}
}

func TestQueryValues(t *testing.T) {
	t.Parallel()
	r := &Request{event: Event{RawQueryString: "name=a+b%2B%26.txt&empty=&bare&n=007&neg=-5&half=1.5&huge=99999999999999999999&plus=%2B5&space=+5&hex=0x10&yes=true&no=false&one=1&TRUE=TRUE&type=text/plain;charset=utf-8"}}
	if err := r.parseQuery(strings.Split("name empty bare n neg half huge plus space hex yes no one TRUE type", " ")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"name": "a b+&.txt", "empty": "", "bare": "", "type": "text/plain;charset=utf-8"} {
		if got, given := r.Query(name); got != want || !given {
			t.Errorf("%s: got %q, %v", name, got, given)
		}
	}
	if got, given := r.Query("missing"); got != "" || given {
		t.Errorf("missing: got %q, %v", got, given)
	}
	for name, want := range map[string]any{
		"n": int64(7), "neg": int64(-5), "missing": nil,
		"half": "must be a whole number, written in digits", "plus": "must be a whole number, written in digits", "space": "must be a whole number, written in digits",
		"hex": "must be a whole number, written in digits", "empty": "must be a whole number, written in digits", "huge": "is out of range",
	} {
		var bad files.ValidationError
		var got any
		if n := r.QueryInt(name, &bad); n != nil {
			got = *n
		}
		if len(bad.Fields) > 0 {
			got = bad.Fields[0].Message
		}
		if got != want {
			t.Errorf("QueryInt(%s): got %v, want %v", name, got, want)
		}
	}
	for name, want := range map[string]any{"yes": true, "no": false, "missing": false, "one": "must be true or false", "TRUE": "must be true or false", "bare": "must be true or false"} {
		var bad files.ValidationError
		var got any = r.QueryBool(name, &bad)
		if len(bad.Fields) > 0 {
			got = bad.Fields[0].Message
		}
		if got != want {
			t.Errorf("QueryBool(%s): got %v, want %v", name, got, want)
		}
	}
}

func TestBodiesAsTheGatewayHandsThemOver(t *testing.T) {
	t.Parallel()
	binary := "\x00\xff\xfe{"
	for _, c := range []struct {
		event Event
		body  string
		exact bool
	}{
		{Event{Body: "text"}, "text", false},
		{Event{Body: base64.StdEncoding.EncodeToString([]byte(binary)), IsBase64Encoded: true}, binary, true},
		{Event{IsBase64Encoded: true}, "", true},
		{Event{}, "", false},
	} {
		body, exact, err := (&Request{event: c.event}).Body()
		if string(body) != c.body || exact != c.exact || err != nil {
			t.Errorf("got %q, %v, %v, want %q, %v", body, exact, err, c.body, c.exact)
		}
	}
	if _, _, err := (&Request{event: Event{Body: "%%", IsBase64Encoded: true}}).Body(); err == nil {
		t.Error("a body that isn't base64 was read")
	}
	// JSON is read whatever its Content-Type, so it may come in either form.
	o, err := (&Request{event: Event{Body: base64.StdEncoding.EncodeToString([]byte(`{"a":"é"}`)), IsBase64Encoded: true}}).JSON(MaxJSON)
	if err != nil || o.String("a") != "é" {
		t.Errorf("JSON in base64: %v", err)
	}
}

func TestIdempotency(t *testing.T) {
	t.Parallel()
	base := Event{RouteKey: "POST /v1/files", Headers: map[string]string{"idempotency-key": "k-1"}, RawQueryString: "b=2&a=1", Body: "bytes", PathParameters: map[string]string{"id": "f_1"}}
	read := func(t *testing.T, e Event, also ...string) files.Idempotency {
		t.Helper()
		r := &Request{event: e, Caller: files.Caller{Account: "acme", Actor: "ada"}}
		if err := r.parseQuery([]string{"a", "b"}); err != nil {
			t.Fatal(err)
		}
		idem, err := r.Idempotency(also...)
		if err != nil {
			t.Fatal(err)
		}
		return *idem
	}
	first := read(t, base)
	if first.Account != "acme" || first.Actor != "ada" || first.Route != "POST /v1/files" || first.Key != "k-1" || len(first.Digest) != 64 {
		t.Errorf("got %+v", first)
	}
	change := func(f func(e *Event)) Event { e := base; f(&e); return e }
	same := map[string]Event{
		"other order of the query": change(func(e *Event) { e.RawQueryString = "a=1&b=2" }),
		"other headers":            change(func(e *Event) { e.Headers = map[string]string{"idempotency-key": "k-1", "user-agent": "x"} }),
		"body in base64": change(func(e *Event) {
			e.Body, e.IsBase64Encoded = base64.StdEncoding.EncodeToString([]byte("bytes")), true
		}),
	}
	for name, e := range same {
		if read(t, e).Digest != first.Digest {
			t.Errorf("%s: another digest", name)
		}
	}
	other := map[string]files.Idempotency{
		"other body":                  read(t, change(func(e *Event) { e.Body = "Bytes" })),
		"other query":                 read(t, change(func(e *Event) { e.RawQueryString = "a=1" })),
		"query moved into the body":   read(t, change(func(e *Event) { e.RawQueryString, e.Body = "", "a=1&b=2bytes" })),
		"other path":                  read(t, change(func(e *Event) { e.PathParameters = map[string]string{"id": "f_2"} })),
		"what the route adds":         read(t, base, "text/plain"),
		"something else that it adds": read(t, base, "text/html"),
	}
	seen := map[string]string{first.Digest: "the first"}
	for name, idem := range other {
		if before := seen[idem.Digest]; before != "" {
			t.Errorf("%s: the digest of %s", name, before)
		}
		seen[idem.Digest] = name
	}

	none := &Request{event: change(func(e *Event) { e.Headers = nil })}
	if idem, err := none.Idempotency(); idem != nil || err != nil {
		t.Errorf("without the header: %v, %v", idem, err)
	}
	for _, key := range []string{"", strings.Repeat("k", 256), "a\tb", "é", "a\x7f", "a\nb"} {
		r := &Request{event: change(func(e *Event) { e.Headers = map[string]string{"idempotency-key": key} })}
		_, err := r.Idempotency()
		if got := fieldErrors(t, err); len(got) != 1 || !strings.HasPrefix(got[0], "Idempotency-Key: must be") {
			t.Errorf("key %q: got %q", key, got)
		}
	}
	if read(t, change(func(e *Event) { e.Headers = map[string]string{"idempotency-key": strings.Repeat(" ~", 127) + "k"} })).Key == "" {
		t.Error("a key of 255 printable characters was dropped")
	}
}
