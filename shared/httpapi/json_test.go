package httpapi

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
)

// fieldErrors is what a refusal says of each field, "field: message".
func fieldErrors(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var invalid *files.ValidationError
	if !errors.As(err, &invalid) {
		t.Fatalf("got %v (%T), want a ValidationError", err, err)
	}
	out := make([]string, len(invalid.Fields))
	for i, f := range invalid.Fields {
		out[i] = f.Field + ": " + f.Message
	}
	return out
}

func TestBodiesThatAreNoStrictObject(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return `{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}` }
	for name, c := range map[string]struct{ body, want string }{
		"prose":                    {"please reserve", "body: must be valid JSON"},
		"blank":                    {"  \n", "body: must be valid JSON"},
		"cut off":                  {`{"filename":"a.pdf"`, "body: must be valid JSON"},
		"array":                    {`[{"filename":"a"}]`, "body: must be a JSON object"},
		"string":                   {`"filename"`, "body: must be a JSON object"},
		"number":                   {`12`, "body: must be a JSON object"},
		"true":                     {`true`, "body: must be a JSON object"},
		"null":                     {`null`, "body: must be a JSON object"},
		"trailing object":          {`{"a":1}{"b":2}`, "body: must be valid JSON"},
		"trailing text":            {`{"a":1} x`, "body: must be valid JSON"},
		"trailing comma":           {`{"a":1,}`, "body: must be valid JSON"},
		"trailing NUL":             {"{}\x00", "body: must be valid JSON"},
		"comment":                  {`{"a":1 /* one */}`, "body: must be valid JSON"},
		"single quotes":            {`{'a':1}`, "body: must be valid JSON"},
		"bare NaN":                 {`{"a":NaN}`, "body: must be valid JSON"},
		"leading zero":             {`{"a":01}`, "body: must be valid JSON"},
		"raw control character":    {"{\"a\":\"x\ny\"}", "body: must be valid JSON"},
		"raw NUL":                  {"{\"a\":\"\x00\"}", "body: must be valid JSON"},
		"byte order mark":          {"\uFEFF{}", "body: must be valid JSON"},
		"UTF-16":                   {"\xff\xfe{\x00}\x00", "body: must be JSON in UTF-8"},
		"invalid UTF-8":            {"{\"a\":\"\xe9t\xe9\"}", "body: must be JSON in UTF-8"},
		"overlong UTF-8":           {"{\"a\":\"\xc0\xaf\"}", "body: must be JSON in UTF-8"},
		"encoded surrogate":        {"{\"a\":\"\xed\xa0\x80\"}", "body: must be JSON in UTF-8"},
		"repeated name":            {`{"a":1,"a":1}`, "a: appears twice in one object"},
		"repeated name, escaped":   {`{"a":1,"\u0061":2}`, "a: appears twice in one object"},
		"repeated name, deep":      {`{"m":[{"x":{"b":[],"b":{}}}]}`, "b: appears twice in one object"},
		"repeated name after deep": {`{"a":{"a":[1,{"a":2}]},"b":1,"a":0}`, "a: appears twice in one object"},
		"nesting bomb":             {deep(10_001), "body: must be valid JSON"},
		"object bomb":              {strings.Repeat(`{"a":`, 10_001) + "1" + strings.Repeat("}", 10_001), "body: must be valid JSON"},
		"unclosed bomb":            {strings.Repeat("[", MaxJSON), "body: must be valid JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parseObject([]byte(c.body))
			if got := fieldErrors(t, err); !reflect.DeepEqual(got, []string{c.want}) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	for name, body := range map[string]string{
		"empty":                          `{}`,
		"space around":                   " \t\r\n{ }\n",
		"same name in different objects": `{"a":{"a":{"a":[{"a":1},{"a":2}]}},"b":{"a":1}}`,
		"deep but bounded":               deep(9_000),
		"name that looks like a value":   `{"a":"b","b":"a"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := parseObject([]byte(body)); err != nil {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

func TestBodySizes(t *testing.T) {
	t.Parallel()
	padded := func(n int) string { return `{"a":"` + strings.Repeat("x", n-len(`{"a":""}`)) + `"}` }
	for _, c := range []struct {
		body string
		fits bool
	}{{"", true}, {padded(MaxJSON), true}, {padded(MaxJSON + 1), false}, {padded(1 << 20), false}, {strings.Repeat("{", 1<<20), false}} {
		r := &Request{event: Event{Body: c.body}}
		_, err := r.JSON(MaxJSON)
		var tooLarge *requestTooLarge
		if c.fits && err != nil || !c.fits && !errors.As(err, &tooLarge) {
			t.Errorf("%d bytes: got %v", len(c.body), err)
		}
	}
}

// Each way to take a member, over values it accepts and refuses. want is the value or, for refusals, the problem.
func TestMembers(t *testing.T) {
	t.Parallel()
	type get = func(o *Object) any
	str := get(func(o *Object) any { return o.String("x") })
	required := get(func(o *Object) any { return o.Required("x") })
	optional := get(func(o *Object) any { return o.Optional("x") })
	integer := get(func(o *Object) any {
		if n := o.Int("x"); n != nil {
			return *n
		}
		return nil
	})
	boolean := get(func(o *Object) any { return o.Bool("x") })
	when := get(func(o *Object) any {
		if at := o.Time("x"); !at.IsZero() {
			return at.Format(time.RFC3339Nano)
		}
		return nil
	})
	many := get(func(o *Object) any { return o.Strings("x") })
	dict := get(func(o *Object) any { return o.StringMap("x") })
	raw := get(func(o *Object) any { return string(o.Raw("x")) })

	const (
		null     = "x: must not be null; leave it out instead"
		aString  = "x: must be a string"
		aNumber  = "x: must be a whole number, written in digits"
		outside  = "x: is out of range"
		pairs    = "x: must not contain unpaired surrogates"
		aTime    = "x: must be a time such as 2026-01-31T12:00:00Z (RFC 3339)"
		notEmpty = "x: must not be empty; leave it out instead"
		strs     = "x: must be an array of strings"
		dicts    = "x: must be an object of strings"
	)
	type problems []string
	for _, c := range []struct {
		how   string
		get   get
		value string // "" when the member isn't sent
		want  any
	}{
		{"String", str, ``, ""}, {"String", str, `"a\u00e9\n"`, "aé\n"}, {"String", str, `"\u0000"`, "\x00"}, {"String", str, `""`, ""},
		{"String", str, `null`, problems{null}}, {"String", str, `5`, problems{aString}}, {"String", str, `["a"]`, problems{aString}},
		{"String", str, `"\ud83d\ude00"`, "😀"}, {"String", str, `"\uD83D\uDE00!"`, "😀!"}, {"String", str, `"\ufffd�"`, "��"},
		{"String", str, `"\\ud800"`, `\ud800`}, {"String", str, `"\ud800"`, problems{pairs}}, {"String", str, `"\udc00"`, problems{pairs}},
		{"String", str, `"\ud800\ud800\udc00"`, problems{pairs}}, {"String", str, `"\ud83dx"`, problems{pairs}}, {"String", str, `"\ud83d\n"`, problems{pairs}},
		{"String", str, `"�\ud800"`, problems{pairs}}, {"String", str, `"\ufffd\udfff"`, problems{pairs}}, {"String", str, `"\\ufffd\ud800"`, problems{pairs}},
		{"String", str, `"\ud83d\u0041"`, problems{pairs}}, {"String", str, `"\ude00\ud83d"`, problems{pairs}},

		{"Required", required, ``, problems{"x: is required"}}, {"Required", required, `null`, problems{"x: is required and must not be null"}}, {"Required", required, `""`, ""}, {"Required", required, `"a"`, "a"},
		{"Optional", optional, ``, ""}, {"Optional", optional, `""`, problems{notEmpty}}, {"Optional", optional, `"a"`, "a"}, {"Optional", optional, `null`, problems{null}}, {"Optional", optional, `{}`, problems{aString}},

		{"Int", integer, ``, nil}, {"Int", integer, `12`, int64(12)}, {"Int", integer, `0`, int64(0)}, {"Int", integer, `-1`, int64(-1)}, {"Int", integer, `-0`, int64(0)},
		{"Int", integer, `9223372036854775807`, int64(9223372036854775807)}, {"Int", integer, `9223372036854775808`, problems{outside}},
		{"Int", integer, strings.Repeat("9", 5000), problems{outside}}, {"Int", integer, "-" + strings.Repeat("9", 500), problems{outside}},
		{"Int", integer, `1.5`, problems{aNumber}}, {"Int", integer, `1.0`, problems{aNumber}}, {"Int", integer, `9e15`, problems{aNumber}}, {"Int", integer, `1E2`, problems{aNumber}},
		{"Int", integer, `"12"`, problems{aNumber}}, {"Int", integer, `true`, problems{aNumber}}, {"Int", integer, `[1]`, problems{aNumber}}, {"Int", integer, `{}`, problems{aNumber}}, {"Int", integer, `null`, problems{null}},

		{"Bool", boolean, ``, false}, {"Bool", boolean, `true`, true}, {"Bool", boolean, `false`, false}, {"Bool", boolean, `"true"`, problems{"x: must be true or false"}}, {"Bool", boolean, `1`, problems{"x: must be true or false"}}, {"Bool", boolean, `null`, problems{null}},

		{"Time", when, ``, nil}, {"Time", when, `"2026-01-31T12:00:00Z"`, "2026-01-31T12:00:00Z"}, {"Time", when, `"2026-01-31T12:00:00.9+02:00"`, "2026-01-31T10:00:00Z"},
		{"Time", when, `"2026-01-31"`, problems{aTime}}, {"Time", when, `"2026-13-31T12:00:00Z"`, problems{aTime}}, {"Time", when, `""`, problems{aTime}}, {"Time", when, `1770000000`, problems{aString}}, {"Time", when, `null`, problems{null}},
		{"Time", when, `"0001-01-01T00:00:00Z"`, problems{outside}}, {"Time", when, `"0000-12-31T23:00:00-01:00"`, problems{outside}},
		{"Time", when, `"9999-12-31T23:59:59-01:00"`, problems{outside}}, {"Time", when, `"0000-01-01T00:00:00+10:00"`, problems{outside}}, {"Time", when, `"9999-12-31T23:59:59Z"`, "9999-12-31T23:59:59Z"},

		{"Strings", many, ``, []string(nil)}, {"Strings", many, `[]`, []string{}}, {"Strings", many, `["a","b"]`, []string{"a", "b"}}, {"Strings", many, `["a",1,null]`, problems{"x[1]: must be a string", "x[2]: must be a string"}},
		{"Strings", many, `"a"`, problems{strs}}, {"Strings", many, `{"a":1}`, problems{strs}}, {"Strings", many, `null`, problems{null}}, {"Strings", many, `["\ud800"]`, problems{"x[0]: must not contain unpaired surrogates"}},

		{"StringMap", dict, ``, map[string]string(nil)}, {"StringMap", dict, `{}`, map[string]string{}}, {"StringMap", dict, `{"a":"1"}`, map[string]string{"a": "1"}},
		{"StringMap", dict, `{"a":1,"b":null}`, problems{"x.a: must be a string", "x.b: must be a string"}}, {"StringMap", dict, `[]`, problems{dicts}}, {"StringMap", dict, `"a"`, problems{dicts}}, {"StringMap", dict, `null`, problems{null}},
		{"StringMap", dict, `{"\ud800":"a"}`, problems{pairs}}, {"StringMap", dict, `{"�\ud800":"a"}`, problems{pairs}}, {"StringMap", dict, `{"a":"\udc00"}`, problems{pairs}}, {"StringMap", dict, `{"\ud83d\ude00":"a"}`, map[string]string{"😀": "a"}},

		{"Raw", raw, `{"deep":[1]}`, `{"deep":[1]}`}, {"Raw", raw, ``, problems{"x: is required"}}, {"Raw", raw, `[1]`, problems{"x: must be an object"}}, {"Raw", raw, `"a"`, problems{"x: must be an object"}}, {"Raw", raw, `null`, problems{"x: is required and must not be null"}},
	} {
		body := `{}`
		if c.value != "" {
			body = `{ "x" : ` + c.value + ` }`
		}
		t.Run(fmt.Sprintf("%s(%.40s)", c.how, c.value), func(t *testing.T) {
			t.Parallel()
			o, err := parseObject([]byte(body))
			if err != nil {
				t.Fatal(err)
			}
			got := c.get(o)
			if bad := fieldErrors(t, o.Err()); len(bad) > 0 {
				got = problems(bad)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %#v, want %#v", got, c.want)
			}
		})
	}
}

func TestEveryProblemIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 100)
	o, err := parseObject([]byte(`{"size_bytes":"12","single_use":1,"ttl":3,"` + long + `":true,"filename":"a"}`))
	if err != nil {
		t.Fatal(err)
	}
	o.Required("filename")
	o.Int("size_bytes")
	o.Bool("single_use")
	o.Required("sha256")
	got := fieldErrors(t, o.Err())
	want := []string{
		"size_bytes: must be a whole number, written in digits",
		"single_use: must be true or false",
		"sha256: is required",
		"ttl: is not a field of this request",
		strings.Repeat("é", 50) + "…: is not a field of this request",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
