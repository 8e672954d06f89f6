package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/url"
	"testing"
	"unicode/utf8"

	"claimcheck.dev/claimcheck/shared/files"
)

func FuzzParseObject(f *testing.F) {
	for _, seed := range []string{
		`{"filename":"a.pdf","size_bytes":12,"metadata":{"a":"b"}}`, `{"a":1,"\u0061":1}`, `{"m":[{"b":[],"b":{}}]}`, `[]`, `null`, `{"a":"\ud83d\ude00"}`,
		`{"\ud800":"\udc00"}`, "\uFEFF{}", "{\"a\":\"\xff\"}", `{"a":1e400,"b":-0,"c":99999999999999999999}`, `{"a":[[[[[[1]]]]]]}x`, `{"t":"9999-12-31T23:59:59-01:00"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		o, err := parseObject(body)
		var invalid *files.ValidationError
		if err != nil {
			if !errors.As(err, &invalid) || len(invalid.Fields) == 0 {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		var plain map[string]any
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.UseNumber()
		if err := dec.Decode(&plain); err != nil || !utf8.Valid(body) {
			t.Fatalf("accepted what isn't an object: %v", err)
		}
		if len(plain) != len(o.order) || len(o.members) != len(o.order) {
			t.Fatalf("%d members of %d", len(o.order), len(plain))
		}
		for _, name := range o.order {
			take(t, o, name, plain[name])
		}
	})
}

// take takes a member in every way there is; what is taken without a problem must be what was sent.
func take(t *testing.T, o *Object, name string, plain any) {
	t.Helper()
	clean := func(do func()) bool {
		before := len(o.bad.Fields)
		do()
		return len(o.bad.Fields) == before
	}
	var s string
	if clean(func() { s = o.String(name) }) && s != plain {
		t.Errorf("%q: String %q of %v", name, s, plain)
	}
	if clean(func() { o.Int(name) }) {
		if _, ok := plain.(json.Number); !ok {
			t.Errorf("%q: Int of %v", name, plain)
		}
	}
	var b bool
	if clean(func() { b = o.Bool(name) }) && b != plain {
		t.Errorf("%q: Bool %v of %v", name, b, plain)
	}
	if clean(func() {
		if at := o.Time(name); !at.IsZero() {
			if _, err := at.MarshalJSON(); err != nil {
				t.Errorf("%q: Time can't be shown: %v", name, err)
			}
		}
	}) {
		if _, ok := plain.(string); !ok {
			t.Errorf("%q: Time of %v", name, plain)
		}
	}
	o.Strings(name)
	var m map[string]string
	if clean(func() { m = o.StringMap(name) }) {
		if obj, ok := plain.(map[string]any); !ok || len(obj) != len(m) {
			t.Errorf("%q: StringMap %v of %v", name, m, plain)
		}
	}
	o.Optional(name)
	o.Raw(name)
}

// Whatever is sent, the answer is JSON and never a 500.
func FuzzServe(f *testing.F) {
	f.Add(`{"filename":"a"}`, "limit=5&cursor=x", false, "k-1", "f_1")
	f.Add(`{"a":"\ud800"}`, "%zz=%ff;", true, "\x00", "../x")
	f.Add("eyJhIjoxfQ==", "limit=1&limit=2", true, "", "")
	e := &Endpoint{
		Auth: keyring{}, Query: []string{"limit", "yes"}, Log: slog.New(slog.NewJSONHandler(io.Discard, nil)),
		Do: func(_ context.Context, r *Request) (*Response, error) {
			o, err := r.JSON(MaxJSON)
			if err != nil {
				return nil, err
			}
			out := map[string]any{"a": o.String("a"), "n": o.Int("n"), "m": o.StringMap("m"), "t": o.Time("t"), "s": o.Strings("s")}
			var bad files.ValidationError
			out["limit"], out["yes"] = r.QueryInt("limit", &bad), r.QueryBool("yes", &bad)
			if err := errors.Join(bad.Err(), o.Err()); err != nil {
				return nil, err
			}
			if _, err := r.Idempotency(); err != nil {
				return nil, err
			}
			return OK(out)
		},
	}
	f.Fuzz(func(t *testing.T, body, query string, base64 bool, key, id string) {
		if base64 {
			body = jsonBase64(body)
		}
		ev := newEvent("POST", map[string]string{"authorization": "Bearer " + testKey, "idempotency-key": key})
		ev.Body, ev.IsBase64Encoded, ev.RawQueryString, ev.PathParameters["id"] = body, base64, query, id
		a, err := e.Serve(context.Background(), ev)
		if err != nil || a.StatusCode != 200 && a.StatusCode != 400 && a.StatusCode != 413 {
			t.Fatalf("got %d %s, %v", a.StatusCode, a.Body, err)
		}
		if !json.Valid([]byte(a.Body)) || !utf8.ValidString(a.Body) {
			t.Fatalf("the answer isn't JSON: %q", a.Body)
		}
	})
}

// jsonBase64 is s as the gateway sends binary bodies.
func jsonBase64(s string) string {
	b, _ := json.Marshal([]byte(s))
	return string(b[1 : len(b)-1])
}

func FuzzParseQuery(f *testing.F) {
	for _, seed := range []string{"", "limit=5", "a=b&a=c", "%zz", "a;b", "%ff=%ff", "=", "&&", "limit=+5", "limit=%00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		r := &Request{event: Event{RawQueryString: raw}}
		err := r.parseQuery([]string{"limit"})
		var invalid *files.ValidationError
		if err != nil && !errors.As(err, &invalid) {
			t.Fatalf("refused with %v", err)
		}
		if err != nil {
			return
		}
		q, err := url.ParseQuery(raw)
		if err != nil || len(q) > 1 || len(q["limit"]) > 1 {
			t.Fatalf("accepted %q: %v, %v", raw, q, err)
		}
		if got, given := r.Query("limit"); got != q.Get("limit") || given != q.Has("limit") || !utf8.ValidString(got) {
			t.Fatalf("limit is %q, %v", got, given)
		}
	})
}
