package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
)

// internalSentinels are errors between the domain and its adapters, which no client may ever see.
var internalSentinels = []string{"ErrStateChanged", "ErrStagedChanged"}

// declared returns the names that match in the package-level declarations of a folder, tests left out.
func declared(t *testing.T, folder string, match func(name string, spec ast.Spec) bool) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", folder, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no source in %s: %v", folder, err)
	}
	var out []string
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range g.Specs {
				var name string
				switch s := spec.(type) {
				case *ast.ValueSpec:
					name = s.Names[0].Name
				case *ast.TypeSpec:
					name = s.Name.Name
				}
				if name != "" && match(name, spec) {
					out = append(out, name)
				}
			}
		}
	}
	return out
}

func isSentinel(name string, spec ast.Spec) bool {
	_, value := spec.(*ast.ValueSpec)
	return value && strings.HasPrefix(name, "Err")
}

// Every refusal of the domain has one row, by its text, and every row is of a refusal of the domain.
func TestEverySentinelHasOneRow(t *testing.T) {
	t.Parallel()
	rows := map[string]int{}
	file, err := parser.ParseFile(token.NewFileSet(), "problem.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != "sentinels" {
			return true
		}
		for _, row := range spec.Values[0].(*ast.CompositeLit).Elts {
			switch e := row.(*ast.CompositeLit).Elts[0].(type) {
			case *ast.SelectorExpr:
				rows[e.Sel.Name]++
			case *ast.Ident:
				rows[e.Name]++
			}
		}
		return false
	})
	if len(rows) != len(sentinels) {
		t.Fatalf("found %d rows in the source, the table has %d", len(rows), len(sentinels))
	}
	want := append(declared(t, "files", isSentinel), declared(t, "access", isSentinel)...)
	want = append(want, declared(t, "httpapi", isSentinel)...)
	for _, name := range want {
		n := 1
		if slices.Contains(internalSentinels, name) {
			n = 0
		}
		if rows[name] != n {
			t.Errorf("%s has %d rows, want %d", name, rows[name], n)
		}
		delete(rows, name)
	}
	for name := range rows {
		t.Errorf("the row of %s is of no sentinel that package files, access or httpapi declares", name)
	}
	for _, a := range sentinels {
		for _, b := range sentinels {
			if a.err != b.err && a.code == b.code {
				t.Errorf("%v and %v share the code %s", a.err, b.err, a.code)
			}
		}
	}
}

// typed holds one value of every error type that the domain declares; clients must not see any of them as a 500.
var typed = map[string]error{
	"ValidationError":         files.Invalid("filename", "is required"),
	"TooLargeError":           &files.TooLargeError{Max: 5, Detail: "Send less."},
	"LimitError":              &files.LimitError{Kind: files.LimitBytes, Max: 5, RetryAfter: time.Minute},
	"RejectedError":           &files.RejectedError{File: files.File{Reason: &files.Reason{Code: files.CodeSizeMismatch, Detail: "Too short."}}},
	"HandleError":             &files.HandleError{Handle: "claim://f_x", Err: files.ErrFileNotFound},
	"FailedVerificationError": &files.FailedVerificationError{Reason: files.Reason{Code: files.CodeChecksumMismatch, Detail: "Other bytes."}},
	"ClaimedError":            &files.ClaimedError{RetryAfter: time.Second},
}

func TestEveryErrorTypeIsAProblem(t *testing.T) {
	t.Parallel()
	names := declared(t, "files", func(name string, spec ast.Spec) bool {
		typ, ok := spec.(*ast.TypeSpec)
		return ok && strings.HasSuffix(name, "Error") && name != "FieldError" && typ.Assign == 0
	})
	for _, name := range names {
		if typed[name] == nil {
			t.Errorf("no sample of files.%s in this test", name)
		}
	}
	for name, err := range typed {
		if !slices.Contains(names, name) {
			t.Errorf("package files has no %s any more", name)
		}
		for _, e := range []error{err, fmt.Errorf("reserving: %w", err), errors.Join(errors.New("also"), err)} {
			if p := classify(e); p.status == 500 {
				t.Errorf("%s is a 500", name)
			}
		}
	}
}

// document answers a request with err and returns the problem document.
func document(t *testing.T, method string, err error) (Answer, map[string]any) {
	t.Helper()
	ev := Event{}
	ev.RequestContext.RequestID = "req-1"
	ev.RequestContext.HTTP.Method = method
	a := problemAnswer(&Request{event: ev}, err)
	if method == "HEAD" {
		if a.Body != "" {
			t.Errorf("the answer to HEAD has a body: %s", a.Body)
		}
		return a, nil
	}
	var doc map[string]any
	if err := json.Unmarshal([]byte(a.Body), &doc); err != nil {
		t.Fatalf("%v: %s", err, a.Body)
	}
	return a, doc
}

func TestProblemDocuments(t *testing.T) {
	t.Parallel()
	all := map[string]error{"unknown": errors.New("boom"), "scope": &scopeError{files.FilesRead}, "body": &requestTooLarge{MaxJSON}, "media": &UnsupportedMediaTypeError{Detail: "Send bytes."}}
	for _, row := range sentinels {
		all[row.code] = fmt.Errorf("doing something: %w", row.err)
	}
	for name, err := range typed {
		all[name] = err
	}
	for name, err := range all {
		a, doc := document(t, "GET", err)
		for _, member := range []string{"type", "title", "detail", "code", "request_id"} {
			if s, _ := doc[member].(string); s == "" {
				t.Errorf("%s: %s is missing", name, member)
			}
		}
		if doc["status"] != float64(a.StatusCode) || a.StatusCode < 400 {
			t.Errorf("%s: status %v in the document of a %d", name, doc["status"], a.StatusCode)
		}
		if doc["type"] != "urn:claimcheck:problem:"+doc["code"].(string) {
			t.Errorf("%s: type %v of code %v", name, doc["type"], doc["code"])
		}
		if detail := doc["detail"].(string); !strings.HasSuffix(detail, ".") {
			t.Errorf("%s: the detail is no sentence: %s", name, detail)
		}
		if a.Headers["Content-Type"] != "application/problem+json" || a.Headers["X-Request-Id"] != "req-1" || doc["request_id"] != "req-1" || a.Headers["Cache-Control"] != "no-store" {
			t.Errorf("%s: headers %v", name, a.Headers)
		}
		wantRetry := slices.Contains([]any{"try_again", "storage_quota_exceeded", "too_many_reservations", "file_claimed"}, doc["code"])
		if got := a.Headers["Retry-After"] != ""; got != wantRetry {
			t.Errorf("%s: has Retry-After is %v, want %v", name, got, wantRetry)
		}
		if got, want := a.Headers["WWW-Authenticate"], map[bool]string{true: "Bearer"}[a.StatusCode == 401]; got != want {
			t.Errorf("%s: WWW-Authenticate is %q, want %q", name, got, want)
		}
		head, _ := document(t, "HEAD", err)
		if head.StatusCode != a.StatusCode || !reflect.DeepEqual(head.Headers, a.Headers) {
			t.Errorf("%s: HEAD answers %d %v, GET %d %v", name, head.StatusCode, head.Headers, a.StatusCode, a.Headers)
		}
	}
}

func TestProblemMembers(t *testing.T) {
	t.Parallel()
	mismatch := files.Reason{Code: files.CodeTypeMismatch, Detail: "Wrong type.", Declared: "image/png", Detected: "application/pdf"}
	unseen := mismatch
	unseen.Detected = ""
	for name, c := range map[string]struct {
		err    error
		status int
		code   string
		extra  map[string]any
	}{
		"fields": {&files.ValidationError{Fields: []files.FieldError{{Field: "a", Message: "is required"}, {Field: "b", Message: "is odd"}}}, 400, "invalid_request",
			map[string]any{"errors": []any{map[string]any{"field": "a", "message": "is required"}, map[string]any{"field": "b", "message": "is odd"}}}},
		"too large":         {&files.TooLargeError{Max: 104857600, Detail: "Less."}, 413, "file_too_large", map[string]any{"max_size_bytes": 104857600.0}},
		"body too large":    {&requestTooLarge{MaxJSON}, 413, "request_too_large", map[string]any{"max_request_bytes": 65536.0}},
		"bytes":             {&files.LimitError{Kind: files.LimitBytes, Max: 7, RetryAfter: 1}, 403, "storage_quota_exceeded", map[string]any{"max_live_bytes": 7.0}},
		"reservations":      {&files.LimitError{Kind: files.LimitReservations, Max: 50, RetryAfter: 1}, 429, "too_many_reservations", map[string]any{"max_reservations": 50.0}},
		"unsized":           {&files.LimitError{Kind: files.LimitUnsized, Max: 9, RetryAfter: 1}, 429, "too_many_reservations", map[string]any{"max_unsized_bytes": 9.0}},
		"type mismatch":     {&files.FailedVerificationError{Reason: mismatch}, 422, "type_mismatch", map[string]any{"declared": "image/png", "detected": "application/pdf"}},
		"nothing detected":  {&files.FailedVerificationError{Reason: unseen}, 422, "type_mismatch", map[string]any{"declared": "image/png", "detected": nil}},
		"upload too large":  {&files.FailedVerificationError{Reason: files.Reason{Code: files.CodeFileTooLarge, Detail: "Less."}, MaxFileBytes: 5}, 422, "file_too_large", map[string]any{"max_size_bytes": 5.0}},
		"size mismatch":     {&files.FailedVerificationError{Reason: files.Reason{Code: files.CodeSizeMismatch, Detail: "Short."}}, 422, "size_mismatch", map[string]any{}},
		"checksum mismatch": {&files.FailedVerificationError{Reason: files.Reason{Code: files.CodeChecksumMismatch, Detail: "Other."}}, 422, "checksum_mismatch", map[string]any{}},
		"rejected": {&files.RejectedError{File: files.File{Reason: &mismatch}}, 410, "file_rejected",
			map[string]any{"reason": map[string]any{"code": "type_mismatch", "detail": "Wrong type.", "declared": "image/png", "detected": "application/pdf"}}},
		"scope":           {&scopeError{files.KeysManage}, 403, "forbidden", map[string]any{"scope": "keys:manage"}},
		"bare forbidden":  {files.ErrForbidden, 403, "forbidden", map[string]any{}},
		"handle":          {&files.HandleError{Handle: "claim://f_x", Err: files.ErrFileNotFound}, 404, "file_not_found", map[string]any{"handle": "claim://f_x"}},
		"long handle":     {&files.HandleError{Handle: "claim://" + strings.Repeat("x", 200), Err: files.ErrFileNotFound}, 404, "file_not_found", map[string]any{"handle": "claim://" + strings.Repeat("x", 92) + "…"}},
		"rejected handle": {&files.HandleError{Handle: "claim://f_x", Err: &files.RejectedError{File: files.File{Reason: &files.Reason{Code: "size_mismatch", Detail: "Short."}}}}, 410, "file_rejected", map[string]any{"handle": "claim://f_x", "reason": map[string]any{"code": "size_mismatch", "detail": "Short."}}},
		"unknown":         {errors.New("dial tcp 10.0.0.1: connection refused"), 500, "internal_error", map[string]any{}},
		"between layers":  {files.ErrStateChanged, 500, "internal_error", map[string]any{}},
		"foreign key":     {fmt.Errorf("revoking: %w", access.ErrKeyNotFound), 404, "key_not_found", map[string]any{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, doc := document(t, "POST", c.err)
			if a.StatusCode != c.status || doc["code"] != c.code {
				t.Errorf("got %d %v, want %d %s", a.StatusCode, doc["code"], c.status, c.code)
			}
			for _, member := range []string{"type", "title", "status", "detail", "code", "request_id"} {
				delete(doc, member)
			}
			if !reflect.DeepEqual(doc, c.extra) {
				t.Errorf("members %v, want %v", doc, c.extra)
			}
			// The row of a sentinel is shared by all requests: nothing of this one may stay in it.
			if _, again := document(t, "POST", files.ErrFileNotFound); again["handle"] != nil {
				t.Error("the handle of one request shows in the next")
			}
		})
	}
}

// Who is told to wait for room must find some: a file over the whole quota never does.
func TestQuotaTellsWhatNeverFits(t *testing.T) {
	t.Parallel()
	for bytes, waits := range map[int64]bool{1: true, 7: true, 8: false} {
		_, doc := document(t, "POST", &files.LimitError{Kind: files.LimitBytes, Max: 7, Bytes: bytes, RetryAfter: time.Minute})
		if got := strings.Contains(fmt.Sprint(doc["detail"]), "wait until"); got != waits {
			t.Errorf("for %d bytes of 7 it says: %s", bytes, doc["detail"])
		}
	}
}

// Of an unexpected error a client learns nothing.
func TestInternalErrorsHaveFixedText(t *testing.T) {
	t.Parallel()
	first, _ := document(t, "GET", errors.New("table claimcheck-1: AccessDeniedException"))
	second, _ := document(t, "GET", fmt.Errorf("other: %w", files.ErrStagedChanged))
	if first.Body != second.Body || first.StatusCode != 500 || strings.Contains(first.Body, "Access") {
		t.Errorf("got %s and %s", first.Body, second.Body)
	}
}

func TestRetryAfterIsRoundedUp(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]string{
		time.Nanosecond: "1", 999 * time.Millisecond: "1", time.Second: "1", time.Second + 1: "2", 59*time.Second + 500*time.Millisecond: "60", 24 * time.Hour: "86400",
	} {
		a, _ := document(t, "POST", &files.LimitError{Kind: files.LimitReservations, Max: 1, RetryAfter: wait})
		if got := a.Headers["Retry-After"]; got != want {
			t.Errorf("%v: got %s, want %s", wait, got, want)
		}
	}
}
