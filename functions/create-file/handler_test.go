package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
	"claimcheck.dev/claimcheck/shared/functiontest"
	"claimcheck.dev/claimcheck/shared/httpapi"
)

var suite = functiontest.Suite{
	Sample: "create-file", Scope: files.FilesWrite,
	Endpoint: func(f *functiontest.Fakes, auth *access.Authenticator) *httpapi.Endpoint {
		return endpoint(auth, f.Inline(), functiontest.Prefix)
	},
}

func TestRefusals(t *testing.T) { suite.Refusals(t) }

type change = func(*httpapi.Event)

// binary is a body as the gateway hands over what it doesn't take for text.
func binary(body []byte) change {
	return func(ev *httpapi.Event) { ev.Body, ev.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true }
}

// text is a body as the gateway hands over what it takes for text: whatever isn't UTF-8 is replaced.
func text(body []byte) change {
	return func(ev *httpapi.Event) {
		ev.Body, ev.IsBase64Encoded = strings.ToValidUTF8(string(body), "\uFFFD"), false
	}
}

func contentType(v string) change { return functiontest.Header("content-type", v) }
func reprDigest(v string) change  { return functiontest.Header("repr-digest", v) }
func query(v string) change       { return functiontest.Query(v) }

// digestOf is the Repr-Digest of body.
func digestOf(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

const maxInline = 4 << 20

func TestAnswers(t *testing.T) {
	t.Parallel()
	nothing := functiontest.Nothing
	suite.Run(t, map[string]functiontest.Case{
		"created":            {},
		"created-by-default": functiontest.Change(query(""), contentType("")),
		"created-as-sent":    functiontest.Change(query("filename=a.pdf"), contentType("application/pdf"), binary(functiontest.PDF)),
		"created-single-use": functiontest.Change(query("filename=C%3A%5Cdir%5Crapport-%C3%A9t%C3%A9.md&single_use=true&ttl_seconds=60")),
		"created-with-digest": functiontest.Change(binary([]byte("abc")),
			reprDigest("sha-512=:AAAA:, sha-256=:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=:;q=1")),
		"form-default":      functiontest.Change(query(""), contentType("application/x-www-form-urlencoded")),
		"multipart":         {Change: []change{contentType("multipart/form-data; boundary=x"), binary([]byte("--x--"))}, After: nothing},
		"text-undigested":   {Change: []change{contentType("text/plain"), text([]byte("plain"))}, After: nothing},
		"invalid-fields":    {Change: []change{query("filename=..&content_type=&single_use=yes&ttl_seconds=soon")}, After: nothing},
		"invalid-values":    {Change: []change{query("filename=..&content_type=nonsense&ttl_seconds=86401")}, After: nothing},
		"invalid-type-sent": {Change: []change{query("filename=a"), contentType("nonsense")}, After: nothing},
		"invalid-digest":    {Change: []change{reprDigest("sha-256=ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=")}, After: nothing},
		"empty-file":        {Change: []change{binary(nil)}, After: nothing},
		"too-large":         {Change: []change{binary(make([]byte, maxInline+1))}, After: nothing},
		"checksum-mismatch": {Change: []change{reprDigest(digestOf([]byte("other bytes")))}, After: nothing},
		"type-mismatch":     {Change: []change{query("filename=a.png&content_type=image/png"), binary(functiontest.PDF)}, After: nothing},
		"text-that-is-not":  {Change: []change{query("content_type=text/plain"), binary([]byte("\x7fELF\x02\x01\x01\x00"))}, After: nothing},
		"quota-exceeded": {Setup: func(t *testing.T, f *functiontest.Fakes) {
			f.Reserve(t, func(file *files.File) {
				file.ID, file.Size, file.Charged = "f_00000000000000000000000000", 2147483648-30, 2147483648-30
			})
		}},
		"store-is-away": {Setup: func(_ *testing.T, f *functiontest.Fakes) {
			f.Faults.Fail(filestest.Step{Op: "PutSealed", N: 1}, filestest.Before)
		}, After: nothing},
		"records-are-away": {Setup: func(_ *testing.T, f *functiontest.Fakes) {
			f.Faults.Fail(filestest.Step{Op: "MarkReady", N: 1}, filestest.Before)
		}, After: nothing},
	})
}

// serve sends one body and returns the status with the code, and what is stored.
func serve(t *testing.T, changes ...change) (got string, stored []byte, contentType string) {
	t.Helper()
	f := functiontest.New(t)
	a := f.Serve(t, suite.Endpoint(f, f.Auth(t, suite.Scope)), functiontest.Event(t, "create-file", changes...))
	var doc struct {
		Code        string
		ContentType string `json:"content_type"`
		SHA256      string
	}
	if err := json.Unmarshal([]byte(a.Body), &doc); err != nil {
		t.Fatal(err)
	}
	for _, body := range f.Store.Objects().Sealed {
		stored = body
		if sum := fmt.Sprintf("%x", sha256.Sum256(body)); sum != doc.SHA256 {
			t.Errorf("the answer says %s, stored is %s", doc.SHA256, sum)
		}
	}
	return strings.TrimSpace(fmt.Sprint(a.StatusCode, " ", doc.Code)), stored, doc.ContentType
}

// The gateway damages text that isn't UTF-8. Such bytes are refused, or arrive whole: never stored damaged.
func TestTextIsStoredWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	const refused = "415 unsupported_media_type"
	utf8, latin1 := []byte("déjà vu"), []byte("d\xe9j\xe0 vu")
	utf16 := []byte("\xff\xfed\x00\xe9\x00j\x00\xe0\x00")
	bom := []byte("\xef\xbb\xbfdéjà vu")
	for name, c := range map[string]struct {
		body    []byte
		changes []change
		want    string
		typ     string
	}{
		"utf-8, undigested":            {utf8, []change{contentType("text/plain"), text(utf8)}, refused, ""},
		"utf-8 with its digest":        {utf8, []change{contentType("text/plain"), text(utf8), reprDigest(digestOf(utf8))}, "201", "text/plain"},
		"charset kept":                 {utf8, []change{contentType("text/plain; charset=utf-8"), text(utf8), reprDigest(digestOf(utf8))}, "201", "text/plain; charset=utf-8"},
		"byte order mark":              {bom, []change{contentType("text/csv"), text(bom), reprDigest(digestOf(bom))}, "201", "text/csv"},
		"latin-1 damaged":              {latin1, []change{contentType("text/plain; charset=iso-8859-1"), text(latin1), reprDigest(digestOf(latin1))}, refused, ""},
		"latin-1 damaged, undigested":  {latin1, []change{contentType("text/plain"), text(latin1)}, refused, ""},
		"latin-1 as octet-stream":      {latin1, []change{contentType("application/octet-stream"), binary(latin1), query("content_type=text/plain%3B+charset%3Diso-8859-1")}, "201", "text/plain; charset=iso-8859-1"},
		"utf-16 damaged":               {utf16, []change{contentType("text/plain"), text(utf16), reprDigest(digestOf(utf16))}, refused, ""},
		"utf-16 as octet-stream":       {utf16, []change{contentType("application/octet-stream"), binary(utf16), query("content_type=text/plain")}, "201", "text/plain"},
		"utf-16 in base64 after all":   {utf16, []change{contentType("text/plain"), binary(utf16), reprDigest(digestOf(utf16))}, "201", "text/plain"},
		"in base64, undigested":        {utf8, []change{contentType("text/plain"), binary(utf8)}, refused, ""},
		"digest of other bytes":        {utf8, []change{contentType("text/plain"), text(utf8), reprDigest(digestOf(latin1))}, refused, ""},
		"digest of another algorithm":  {utf8, []change{contentType("text/plain"), text(utf8), reprDigest("sha-512=:AAAA:")}, refused, ""},
		"query type over text":         {utf8, []change{contentType("text/plain"), text(utf8), query("content_type=application/octet-stream")}, refused, ""},
		"json":                         {[]byte("{}"), []change{contentType("application/json"), text([]byte("{}"))}, refused, ""},
		"json with its digest":         {[]byte("{}"), []change{contentType("application/json"), text([]byte("{}")), reprDigest(digestOf([]byte("{}")))}, "201", "application/json"},
		"ld+json":                      {[]byte("{}"), []change{contentType("application/ld+json"), text([]byte("{}"))}, refused, ""},
		"svg":                          {[]byte("<svg/>"), []change{contentType("image/svg+xml"), text([]byte("<svg/>"))}, refused, ""},
		"xml":                          {[]byte("<a/>"), []change{contentType("Application/XML; charset=utf-8"), text([]byte("<a/>"))}, refused, ""},
		"javascript":                   {[]byte("a()"), []change{contentType("application/javascript"), text([]byte("a()"))}, refused, ""},
		"a type nobody foresaw, text":  {utf8, []change{contentType("application/x-acme"), text(utf8)}, refused, ""},
		"form, handed over as text":    {utf8, []change{contentType("application/x-www-form-urlencoded"), text(utf8)}, refused, ""},
		"form, with its digest":        {utf8, []change{contentType("application/x-www-form-urlencoded"), text(utf8), reprDigest(digestOf(utf8))}, "201", "application/octet-stream"},
		"form with a charset":          {utf8, []change{contentType("Application/X-WWW-Form-Urlencoded; charset=utf-8"), binary(utf8)}, "201", "application/octet-stream"},
		"multipart in another case":    {utf8, []change{contentType("Multipart/Mixed; boundary=a"), binary(utf8)}, refused, ""},
		"multipart with a digest":      {utf8, []change{contentType("multipart/form-data"), binary(utf8), reprDigest(digestOf(utf8)), query("content_type=text/plain")}, refused, ""},
		"the event's body isn't valid": {nil, []change{func(ev *httpapi.Event) { ev.Body, ev.IsBase64Encoded = "%%", true }}, "500 internal_error", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, stored, typ := serve(t, append([]change{query("filename=a"), reprDigest("")}, c.changes...)...)
			if got != c.want || typ != c.typ {
				t.Errorf("got %s %q, want %s %q", got, typ, c.want, c.typ)
			}
			if c.want == "201" && !bytes.Equal(stored, c.body) || c.want != "201" && stored != nil {
				t.Errorf("stored %q", stored)
			}
		})
	}
}

// A type may stand in a query as people write it, without percent-encoding.
func TestTypesInQueries(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"text/plain;charset=utf-8":         "text/plain;charset=utf-8",
		"text/plain;%20charset=utf-8":      "text/plain; charset=utf-8",
		"text/plain;+charset=utf-8":        "text/plain; charset=utf-8",
		"image/svg+xml":                    "image/svg+xml",
		"image/svg%2Bxml;charset=utf-8":    "image/svg+xml;charset=utf-8",
		"application/ld+json;+profile=a+b": "",
		"application/+json":                "",
		"text+plain":                       "",
	} {
		got, _, typ := serve(t, query("filename=a&content_type="+typed), binary([]byte("<svg/>")))
		if typ != want || want == "" && got != "400 invalid_request" {
			t.Errorf("%s: got %s %q, want %q", typed, got, typ, want)
		}
	}
}

func TestReprDigests(t *testing.T) {
	t.Parallel()
	const abc, hex = "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	const zero = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	for header, want := range map[string]string{
		"":                                      "",
		"sha-512=:AAAA:":                        "",
		"sha-256=:" + abc + ":":                 hex,
		"SHA-256=:" + abc + ":":                 hex,
		" sha-512=:AAAA:,sha-256=:" + abc + ":": hex,
		"sha-256=:" + abc + ":;p=1, md5=:AAAA:": hex,
		"sha-256=:" + strings.TrimRight(abc, "=") + ":":    hex,
		"sha-256=:" + zero + ":, sha-256=:" + abc + ":":    hex,
		"sha-256 = :" + abc + ": ;p=1":                     hex,
		"sha-256":                                          "bad",
		"sha-256=":                                         "bad",
		"sha-256=" + abc:                                   "bad",
		"sha-256=:" + abc:                                  "bad",
		"sha-256=::":                                       "bad",
		"sha-256=:" + hex + ":":                            "bad",
		"sha-256=:!!!!:":                                   "bad",
		"sha-256=:" + abc + abc + ":":                      "bad",
		"sha-256=\"" + abc + "\"":                          "bad",
		"sha-256=:" + zero + ":, sha-256=:nothing at all:": "bad",
	} {
		got, err := parseReprDigest(header)
		if err != nil {
			got = "bad"
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", header, got, want)
		}
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]string{0: "400 empty_file", 1: "201", maxInline - 1: "201", maxInline: "201", maxInline + 1: "413 file_too_large"} {
		body := bytes.Repeat([]byte{7}, size)
		got, stored, _ := serve(t, query("filename=a"), binary(body))
		if got != want || want == "201" && !bytes.Equal(stored, body) {
			t.Errorf("%d bytes: got %s, want %s; %d are stored", size, got, want, len(stored))
		}
	}
}

func TestRepeats(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		golden  string
		between func(*testing.T, *functiontest.Fakes)
		change  []change
	}{
		"same":        {"created", nil, nil},
		"other order": {"created", nil, []change{query("content_type=text%2Fplain&filename=notes%20for%20Ada.txt")}},
		"other bytes": {"idempotency-mismatch", nil, []change{binary([]byte("other"))}},
		"other name":  {"idempotency-mismatch", nil, []change{query("filename=b.txt&content_type=text%2Fplain")}},
		"after a day": {"created-anew", func(_ *testing.T, f *functiontest.Fakes) { f.Clock.Advance(24 * time.Hour) }, nil},
		"after its end": {"repeated-deleted", func(t *testing.T, f *functiontest.Fakes) {
			f.End(t, f.Records.Snapshot(t).Files[functiontest.FileID], files.Deleted)
		}, nil},
		"before its time": {"created", func(_ *testing.T, f *functiontest.Fakes) { f.Clock.Advance(24*time.Hour - 1) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := functiontest.New(t)
			e := suite.Endpoint(f, f.Auth(t, suite.Scope))
			event := functiontest.Event(t, "create-file")
			functiontest.Golden(t, "created", event, f.Serve(t, e, event))
			if c.between != nil {
				c.between(t, f)
			}
			again := functiontest.Event(t, "create-file", c.change...)
			functiontest.Golden(t, c.golden, again, f.Serve(t, e, again))
			filestest.CheckInvariants(t, f.Records.Snapshot(t))
		})
	}
	t.Run("other type", func(t *testing.T) {
		t.Parallel()
		f := functiontest.New(t)
		e := suite.Endpoint(f, f.Auth(t, suite.Scope))
		first := f.Serve(t, e, functiontest.Event(t, "create-file", query("filename=a"), contentType("image/x-one")))
		second := f.Serve(t, e, functiontest.Event(t, "create-file", query("filename=a"), contentType("image/x-two")))
		if first.StatusCode != 201 || second.StatusCode != 422 {
			t.Errorf("got %d and %d %s", first.StatusCode, second.StatusCode, second.Body)
		}
	})
}
