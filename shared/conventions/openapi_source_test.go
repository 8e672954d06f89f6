package conventions

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"claimcheck.dev/claimcheck/shared/files"
)

// handlerFacts is what the source of a function says of its endpoint.
type handlerFacts struct {
	open   bool     // no Auth
	scope  string   // name of the constant in package files
	query  []string // known query parameters
	fields []string // members taken from the JSON body
	json   bool     // reads a JSON body
	idem   bool     // heeds Idempotency-Key
}

var fieldMethods = []string{"Required", "Optional", "String", "Int", "Bool", "Time", "Strings", "StringMap", "Raw"}

func readHandler(t *testing.T, folder string) handlerFacts {
	t.Helper()
	facts := handlerFacts{open: true}
	paths, err := filepath.Glob(filepath.Join(root, "functions", folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if sel, ok := n.Type.(*ast.SelectorExpr); ok && sel.Sel.Name == "Endpoint" {
					facts.endpoint(n)
				}
			case *ast.CallExpr:
				facts.call(n)
			}
			return true
		})
	}
	return facts
}

func (f *handlerFacts) endpoint(lit *ast.CompositeLit) {
	for _, e := range lit.Elts {
		kv := e.(*ast.KeyValueExpr)
		switch kv.Key.(*ast.Ident).Name {
		case "Auth":
			f.open = false
		case "Scope":
			f.scope = kv.Value.(*ast.SelectorExpr).Sel.Name
		case "Query":
			for _, q := range kv.Value.(*ast.CompositeLit).Elts {
				f.query = append(f.query, unquote(q))
			}
		}
	}
}

func (f *handlerFacts) call(c *ast.CallExpr) {
	sel, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	switch recv, _ := sel.X.(*ast.Ident); {
	case (sel.Sel.Name == "JSON" || sel.Sel.Name == "NoFields") && recv != nil && recv.Name == "r":
		f.json = true
	case sel.Sel.Name == "Idempotency" && recv != nil && recv.Name == "r":
		f.idem = true
	case slices.Contains(fieldMethods, sel.Sel.Name) && recv != nil && recv.Name == "body":
		f.fields = append(f.fields, unquote(c.Args[0]))
	}
}

func unquote(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok {
		return ""
	}
	s, _ := strconv.Unquote(lit.Value)
	return s
}

// scopeConstants gives the value of each constant of package files that is a scope.
func scopeConstants(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "shared", "files", "caller.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 && fmt.Sprint(v.Type) == "Scope" {
			out[v.Names[0].Name] = unquote(v.Values[0])
		}
		return true
	})
	if len(out) != len(files.Scopes) {
		t.Fatalf("found %d scopes in the source, there are %d", len(out), len(files.Scopes))
	}
	return out
}

func TestOpenAPIAgreesWithTheHandlers(t *testing.T) {
	t.Parallel()
	doc, scopes := loadOpenAPI(t), scopeConstants(t)
	for route, folder := range routeFolders(t) {
		op, facts := doc.operation(t, route), readHandler(t, folder)

		want := []any{}
		if !facts.open {
			want = []any{map[string]any{"key": asAny(nonEmpty(scopes[facts.scope]))}}
		}
		if got := op.body["security"]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: security is %v, functions/%s wants %v", route, got, folder, want)
		}

		var query, path, header []string
		both, _ := op.body["parameters"].([]any)
		shared, _ := op.path["parameters"].([]any)
		for _, p := range append(slices.Clone(both), shared...) {
			switch p := doc.deref(t, p); p["in"] {
			case "query":
				query = append(query, p["name"].(string))
			case "path":
				path = append(path, "{"+p["name"].(string)+"}")
			case "header":
				header = append(header, p["name"].(string))
			}
		}
		if !sameSet(query, facts.query) {
			t.Errorf("%s: query parameters %v, functions/%s reads %v", route, query, folder, facts.query)
		}
		if inRoute := regexp.MustCompile(`\{[^}]*\}`).FindAllString(route, -1); !sameSet(path, inRoute) {
			t.Errorf("%s: path parameters %v, want %v", route, path, inRoute)
		}

		if got := slices.Contains(header, "Idempotency-Key"); got != facts.idem {
			t.Errorf("%s: takes an Idempotency-Key %v, functions/%s heeds one %v", route, got, folder, facts.idem)
		}

		request, _ := at(op.body, "requestBody", "content", "application/json", "schema").(map[string]any)
		if (request != nil) != facts.json {
			t.Errorf("%s: has a JSON body %v, functions/%s reads one %v", route, request != nil, folder, facts.json)
		}
		if request == nil {
			continue
		}
		schema := doc.deref(t, request)
		if schema["additionalProperties"] != false && schema["maxProperties"] != 0.0 {
			t.Errorf("%s: unknown members are refused, the schema allows them", route)
		}
		props, _ := schema["properties"].(map[string]any)
		if !sameSet(keysOf(props), facts.fields) {
			t.Errorf("%s: members %v, functions/%s reads %v", route, keysOf(props), folder, facts.fields)
		}
	}
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

func asAny(in []string) []any {
	out := make([]any, len(in))
	for i, s := range in {
		out[i] = s
	}
	return out
}

func sameSet(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}

// statusTable reads the pairs of status and code out of the source of the one table that makes problems.
func statusTable(t *testing.T) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "shared", "httpapi", "problem.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	pairs := map[string]bool{}
	add := func(status, code ast.Expr) {
		if s, ok := status.(*ast.BasicLit); ok && unquote(code) != "" {
			pairs[s.Value+" "+unquote(code)] = true
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit: // problem{status: 404, code: "file_not_found", …}
			var status, code ast.Expr
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					switch fmt.Sprint(kv.Key) {
					case "status":
						status = kv.Value
					case "code":
						code = kv.Value
					}
				}
			}
			if status != nil && code != nil {
				add(status, code)
			}
		case *ast.AssignStmt: // p.status, p.code, p.title = 403, "storage_quota_exceeded", …
			if len(n.Lhs) >= 2 && len(n.Rhs) == len(n.Lhs) && selects(n.Lhs[0], "status") && selects(n.Lhs[1], "code") {
				add(n.Rhs[0], n.Rhs[1])
			}
		}
		return true
	})
	for _, code := range []string{files.CodeSizeMismatch, files.CodeChecksumMismatch, files.CodeTypeMismatch, files.CodeFileTooLarge} {
		pairs["422 "+code] = true // verification takes its codes from the domain
	}
	if len(pairs) < 20 {
		t.Fatalf("found only %d codes in the source of package httpapi: %v", len(pairs), pairs)
	}
	return pairs
}

func selects(e ast.Expr, field string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == field
}

func TestOpenAPIHasTheStatusTable(t *testing.T) {
	t.Parallel()
	doc, table := loadOpenAPI(t), statusTable(t)
	described := map[string]bool{}
	for name, s := range at(doc.doc, "components", "schemas").(map[string]any) {
		if code, ok := at(s, "properties", "code", "const").(string); ok {
			pair := fmt.Sprintf("%v %s", at(s, "properties", "status", "const"), code)
			described[pair] = true
			if !table[pair] {
				t.Errorf("schema %s is of problem %q, which package httpapi doesn't make", name, pair)
			}
		}
	}
	for pair := range table {
		if !described[pair] {
			t.Errorf("no schema describes problem %q", pair)
		}
	}
}
