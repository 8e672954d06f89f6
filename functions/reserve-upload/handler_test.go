package main

import (
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
	Sample: "reserve-upload", Scope: files.FilesWrite,
	Endpoint: func(f *functiontest.Fakes, auth *access.Authenticator) *httpapi.Endpoint {
		return endpoint(auth, f.Uploads(), functiontest.Prefix)
	},
}

func TestRefusals(t *testing.T) { suite.Refusals(t) }

// fill makes n other reservations of acme's ada.
func fill(n int, change func(*files.File)) func(*testing.T, *functiontest.Fakes) {
	return func(t *testing.T, f *functiontest.Fakes) {
		for i := range n {
			f.Reserve(t, func(file *files.File) {
				file.ID = fmt.Sprintf("f_other%021d", i)
				file.UploadBy = file.UploadBy.Add(time.Duration(i) * time.Minute)
				change(file)
			})
		}
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	body := functiontest.Body
	suite.Run(t, map[string]functiontest.Case{
		"reserved":             {},
		"reserved-unsized":     functiontest.Change(body(`{"filename":"notes.txt","content_type":"text/plain; charset=utf-8"}`)),
		"reserved-by-default":  functiontest.Change(body(`{"filename":"a"}`)),
		"reserved-single-use":  functiontest.Change(body(`{"filename":"a.bin","size_bytes":1,"single_use":true}`)),
		"reserved-for-seconds": functiontest.Change(body(`{"filename":"a.bin","size_bytes":1,"ttl_seconds":1}`)),
		"reserved-with-digest": functiontest.Change(body(`{"filename":"a.bin","size_bytes":1,"sha256":"2D711642B726B04401627CA9FBAC32F5C8530FB1903CC4DB02258717921A4881"}`)),
		"reserved-odd-name":    functiontest.Change(body(`{"filename":"C:\\dir\\'; rm -rf ~ #.txt","size_bytes":1}`)),
		"invalid-fields": {
			Change: []func(*httpapi.Event){body(`{"filename":"a\u202eb","content_type":"nonsense","size_bytes":1.5,"sha256":"` + strings.Repeat("a", 63) + `","single_use":"yes","ttl_seconds":86401,"metadata":{"a":1},"size":5}`)},
			After:  functiontest.Nothing,
		},
		"invalid-values": {
			Change: []func(*httpapi.Event){body(`{"filename":"a\u202eb","content_type":"nonsense","size_bytes":-1,"sha256":"` + strings.Repeat("a", 63) + `","ttl_seconds":86401,"metadata":{"":""}}`)},
			After:  functiontest.Nothing,
		},
		"no-body":          functiontest.Change(body("")),
		"not-json":         functiontest.Change(body("filename=a")),
		"array":            functiontest.Change(body(`[]`)),
		"repeated-member":  functiontest.Change(body(`{"filename":"a","filename":"b"}`)),
		"body-too-large":   {Change: []func(*httpapi.Event){body(`{"filename":"` + strings.Repeat("a", httpapi.MaxJSON) + `"}`)}, After: functiontest.Nothing},
		"empty-file":       {Change: []func(*httpapi.Event){body(`{"filename":"a","size_bytes":0}`)}, After: functiontest.Nothing},
		"file-too-large":   {Change: []func(*httpapi.Event){body(`{"filename":"a","size_bytes":104857601}`)}, After: functiontest.Nothing},
		"bad-idempotency":  functiontest.Change(functiontest.Header("idempotency-key", "é")),
		"too-many":         {Setup: fill(50, func(f *files.File) {})},
		"too-many-bytes":   {Setup: fill(1, func(f *files.File) { f.Size, f.Charged = 2147483648-8340111, 2147483648-8340111 })},
		"too-many-unsized": {Setup: fill(5, func(f *files.File) { f.Size, f.Charged = files.SizeUnknown, 104857600 }), Change: []func(*httpapi.Event){body(`{"filename":"a"}`)}},
		"write-failed": {
			Setup: func(_ *testing.T, f *functiontest.Fakes) {
				f.Faults.Fail(filestest.Step{Op: "Create", N: 1}, filestest.After)
			},
			Change: []func(*httpapi.Event){functiontest.Header("idempotency-key", "")}, After: functiontest.Nothing,
		},
	})
}

// A repeat under the same Idempotency-Key is answered by what became of the first request.
func TestRepeats(t *testing.T) {
	t.Parallel()
	event := functiontest.Event(t, "reserve-upload")
	end := func(state files.State) func(*testing.T, *functiontest.Fakes) {
		return func(t *testing.T, f *functiontest.Fakes) {
			f.End(t, f.Records.Snapshot(t).Files[functiontest.FileID], state)
		}
	}
	for name, c := range map[string]struct {
		golden  string
		between func(*testing.T, *functiontest.Fakes)
		change  []func(*httpapi.Event)
	}{
		"same":           {"reserved", nil, nil},
		"fresh upload":   {"repeated-later", func(_ *testing.T, f *functiontest.Fakes) { f.Clock.Advance(50 * time.Minute) }, nil},
		"other body":     {"idempotency-mismatch", nil, []func(*httpapi.Event){functiontest.Body(`{"filename":"b"}`)}},
		"after deletion": {"repeated-deleted", end(files.Deleted), nil},
		"after its time": {"repeated-expired", func(_ *testing.T, f *functiontest.Fakes) { f.Clock.Advance(time.Hour) }, nil},
		"after rejection": {"repeated-rejected", func(t *testing.T, f *functiontest.Fakes) {
			file := f.Records.Snapshot(t).Files[functiontest.FileID]
			f.Stage(t, file.ID, []byte("prose"))
			if _, err := f.Verifier().Verify(t.Context(), file); err != nil {
				t.Fatal(err)
			}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := functiontest.New(t)
			e := suite.Endpoint(f, f.Auth(t, suite.Scope))
			functiontest.Golden(t, "reserved", event, f.Serve(t, e, event))
			if c.between != nil {
				c.between(t, f)
			}
			again := functiontest.Event(t, "reserve-upload", c.change...)
			functiontest.Golden(t, c.golden, again, f.Serve(t, e, again))
			if s := f.Records.Snapshot(t); len(s.Files) != 1 {
				t.Errorf("%d files", len(s.Files))
			}
			filestest.CheckInvariants(t, f.Records.Snapshot(t))
		})
	}
	t.Run("another actor", func(t *testing.T) {
		t.Parallel()
		f := functiontest.New(t)
		e := suite.Endpoint(f, f.Auth(t, suite.Scope))
		f.AddKey(t, "0000000000000bob", "acme", "bob", files.FilesWrite)
		first := f.Serve(t, e, event)
		second := f.Serve(t, e, functiontest.Event(t, "reserve-upload", functiontest.Key("0000000000000bob")))
		if first.StatusCode != 201 || second.StatusCode != 201 || idOf(t, first) == idOf(t, second) {
			t.Errorf("got %s and %s", first.Body, second.Body)
		}
	})
}

func idOf(t *testing.T, a httpapi.Answer) string {
	t.Helper()
	var o struct{ ID string }
	if err := json.Unmarshal([]byte(a.Body), &o); err != nil {
		t.Fatal(err)
	}
	return o.ID
}

// Whatever isn't a whole number of bytes from 1 up is refused by name.
func TestSizes(t *testing.T) {
	t.Parallel()
	f := functiontest.New(t)
	e := suite.Endpoint(f, f.Auth(t, suite.Scope))
	for size, want := range map[string]string{
		`1`: "201", `104857600`: "201", `104857601`: "413 file_too_large", `9223372036854775807`: "413 file_too_large", `0`: "400 empty_file",
		`-1`: "400 size_bytes", `1.5`: "400 size_bytes", `"12"`: "400 size_bytes", `9e15`: "400 size_bytes", `null`: "400 size_bytes", `9223372036854775808`: "400 size_bytes", `[]`: "400 size_bytes", `true`: "400 size_bytes",
	} {
		a := f.Serve(t, e, functiontest.Event(t, "reserve-upload", functiontest.Header("idempotency-key", ""), functiontest.Body(`{"filename":"a","size_bytes":`+size+`}`)))
		var doc struct {
			Code   string
			Errors []struct{ Field string }
		}
		if err := json.Unmarshal([]byte(a.Body), &doc); err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(a.StatusCode)
		if len(doc.Errors) == 1 {
			got += " " + doc.Errors[0].Field
		} else if doc.Code != "" {
			got += " " + doc.Code
		}
		if got != want {
			t.Errorf("%s: got %s, want %s: %s", size, got, want, a.Body)
		}
	}
}

// Every notation of one digest signs the same header.
func TestDigestNotations(t *testing.T) {
	t.Parallel()
	f := functiontest.New(t)
	e := suite.Endpoint(f, f.Auth(t, suite.Scope))
	const hex, header = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881", "LXEWQrcmsEQBYnyp+6wy9chTD7GQPMTbAiWHF5IaSIE="
	for _, s := range []string{hex, strings.ToUpper(hex), header, header[:43], "LXEWQrcmsEQBYnyp-6wy9chTD7GQPMTbAiWHF5IaSIE=", "LXEWQrcmsEQBYnyp-6wy9chTD7GQPMTbAiWHF5IaSIE"} {
		a := f.Serve(t, e, functiontest.Event(t, "reserve-upload", functiontest.Header("idempotency-key", ""), functiontest.Body(`{"filename":"a","size_bytes":1,"sha256":"`+s+`"}`)))
		var o httpapi.UploadObject
		if err := json.Unmarshal([]byte(a.Body), &o); err != nil {
			t.Fatal(err)
		}
		if o.SHA256 == nil || *o.SHA256 != hex || o.Upload.Headers["X-Amz-Checksum-Sha256"] != header {
			t.Errorf("%s: got %s", s, a.Body)
		}
	}
}
