package conventions

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/httpapi"
)

var openapiFile = filepath.Join(root, "functions", "openapi", "openapi.json")

func loadOpenAPI(t *testing.T) schemas {
	t.Helper()
	text, err := os.ReadFile(openapiFile)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonValue(text)
	if err != nil {
		t.Fatal(err)
	}
	return schemas{v.(map[string]any)}
}

// operation is one method of one path in the document.
type operation struct {
	route string // as API Gateway writes it: POST /v1/uploads
	body  map[string]any
	path  map[string]any // what holds for every method of the path
}

func (s schemas) operations() []operation {
	var out []operation
	for path, item := range s.doc["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			if slices.Contains([]string{"get", "head", "post", "put", "patch", "delete"}, method) {
				out = append(out, operation{strings.ToUpper(method) + " " + path, op.(map[string]any), item.(map[string]any)})
			}
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].route < out[j].route })
	return out
}

func (s schemas) operation(t *testing.T, route string) operation {
	t.Helper()
	for _, op := range s.operations() {
		if op.route == route {
			return op
		}
	}
	t.Fatalf("openapi.json doesn't describe %s", route)
	return operation{}
}

// deref follows v while it is a reference.
func (s schemas) deref(t *testing.T, v any) map[string]any {
	t.Helper()
	for {
		m, ok := v.(map[string]any)
		if !ok {
			t.Fatalf("%v is no object", v)
		}
		ref, ok := m["$ref"].(string)
		if !ok {
			return m
		}
		var err error
		if v, err = s.resolve(ref); err != nil {
			t.Fatal(err)
		}
	}
}

// routeFolders are the routes of the template and the folders of the functions that serve them.
func routeFolders(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, f := range load(t).resources(t, function) {
		for _, e := range events(f) {
			if e.kind == "HttpApi" && str(e.props, "Path") != "" {
				out[str(e.props, "Method")+" "+str(e.props, "Path")] = folderOf(f.id)
			}
		}
	}
	return out
}

func TestOpenAPIHasTheRoutesOfTheTemplate(t *testing.T) {
	t.Parallel()
	doc, inTemplate := loadOpenAPI(t), routeFolders(t)
	for _, op := range doc.operations() {
		if inTemplate[op.route] == "" {
			t.Errorf("openapi.json describes %s, which template.yaml doesn't route", op.route)
		}
		delete(inTemplate, op.route)
	}
	for route := range inTemplate {
		t.Errorf("openapi.json lacks %s", route)
	}
}

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
	case sel.Sel.Name == "JSON" && recv != nil && recv.Name == "r":
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

func keysOf(m map[string]any) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
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

// Every refusal of every route is a problem of that status, with the headers that go with it.
func TestOpenAPIResponses(t *testing.T) {
	t.Parallel()
	doc := loadOpenAPI(t)
	for _, op := range doc.operations() {
		for status, r := range op.body["responses"].(map[string]any) {
			r := doc.deref(t, r)
			headers, _ := r["headers"].(map[string]any)
			for name, when := range map[string]bool{
				"X-Request-Id": true, "WWW-Authenticate": status == "401",
				"Retry-After": status == "429" || status == "503",
			} {
				if when && headers[name] == nil {
					t.Errorf("%s: %s lacks the header %s", op.route, status, name)
				}
			}
			content, _ := r["content"].(map[string]any)
			if status[0] < '4' || strings.HasPrefix(op.route, "HEAD ") {
				continue
			}
			if len(content) != 1 || content["application/problem+json"] == nil {
				t.Errorf("%s: %s isn't problem+json", op.route, status)
				continue
			}
			for _, p := range doc.problems(t, at(content, "application/problem+json", "schema")) {
				if got := fmt.Sprint(at(p, "properties", "status", "const")); got != status {
					t.Errorf("%s: %s has a problem of status %s", op.route, status, got)
				}
			}
		}
		if at(op.body, "responses", "500") == nil {
			t.Errorf("%s: lacks 500", op.route)
		}
		security, _ := op.body["security"].([]any)
		if len(security) == 0 {
			continue
		}
		wanted := []string{"400", "401", "503"}
		if len(list(security[0], "key")) > 0 {
			wanted = append(wanted, "403")
		}
		for _, want := range wanted {
			if at(op.body, "responses", want) == nil {
				t.Errorf("%s: lacks %s", op.route, want)
			}
		}
	}
}

// problems are the alternatives of a problem schema.
func (s schemas) problems(t *testing.T, schema any) []map[string]any {
	t.Helper()
	m := s.deref(t, schema)
	options, ok := m["oneOf"].([]any)
	if !ok {
		return []map[string]any{m}
	}
	var out []map[string]any
	for _, o := range options {
		out = append(out, s.deref(t, o))
	}
	return out
}

func TestOpenAPIDescribesTheObjects(t *testing.T) {
	t.Parallel()
	doc := loadOpenAPI(t)
	for name, typ := range map[string]reflect.Type{
		"File": reflect.TypeFor[httpapi.FileObject](), "Reason": reflect.TypeFor[httpapi.ReasonObject](),
		"Upload": reflect.TypeFor[httpapi.UploadObject](), "UploadRequest": reflect.TypeFor[httpapi.UploadRequest](),
		"Link": reflect.TypeFor[httpapi.LinkObject](), "Key": reflect.TypeFor[httpapi.KeyObject](),
	} {
		schema, ok := at(doc.doc, "components", "schemas", name).(map[string]any)
		if !ok {
			t.Errorf("no schema %s", name)
			continue
		}
		props := schema["properties"].(map[string]any)
		var fields, always []string
		for f := range typ.Fields() {
			tag, omit, _ := strings.Cut(f.Tag.Get("json"), ",")
			fields = append(fields, tag)
			if omit == "" {
				always = append(always, tag)
			}
			if p, ok := props[tag]; ok {
				doc.checkField(t, name+"."+tag, p, f.Type, omit != "")
			}
		}
		if got := keysOf(props); !sameSet(got, fields) {
			t.Errorf("schema %s has the properties %v, %v has %v", name, got, typ, fields)
		}
		if got := list(schema, "required"); !sameSet(got, always) {
			t.Errorf("schema %s requires %v, %v always has %v", name, got, typ, always)
		}
	}
}

// checkField holds the schema of a property against the type of the field.
func (s schemas) checkField(t *testing.T, name string, schema any, typ reflect.Type, omitted bool) {
	t.Helper()
	nullable := typ.Kind() == reflect.Pointer && !omitted
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	samples := map[reflect.Kind]any{reflect.String: "", reflect.Int64: 5.0, reflect.Bool: true, reflect.Map: map[string]any{}, reflect.Slice: []any{}, reflect.Struct: map[string]any{}}
	sample := samples[typ.Kind()]
	if typ == reflect.TypeFor[time.Time]() {
		sample = "2026-01-14T09:30:01Z"
	}
	typeErrors := func(v any) (bad []string) {
		b, _ := s.apply(schema, v, "")
		for _, msg := range b {
			if strings.Contains(msg, " is no ") {
				bad = append(bad, msg)
			}
		}
		return bad
	}
	if bad := typeErrors(sample); len(bad) > 0 {
		t.Errorf("%s is a %v: %v", name, typ, bad)
	}
	if got := len(typeErrors(nil)) == 0; got != nullable {
		t.Errorf("%s: may be null is %v, for the field it is %v", name, got, nullable)
	}
}

func TestOpenAPIListsAreThoseOfTheDomain(t *testing.T) {
	t.Parallel()
	doc := loadOpenAPI(t)
	schema := func(keys ...string) []string {
		return list(doc.doc, append([]string{"components", "schemas"}, keys...)...)
	}
	for _, c := range []struct {
		what      string
		got, want []string
	}{
		{"Scope", schema("Scope", "enum"), texts(files.Scopes)},
		{"State", schema("State", "enum"), texts(files.States)},
		{"Purpose", schema("Purpose", "enum"), texts(files.Purposes)},
		{"CreateKey.role", schema("CreateKey", "properties", "role", "enum"), access.RoleNames},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s lists %v, the code has %v", c.what, c.got, c.want)
		}
	}
}

func texts[S ~string](in []S) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = string(s)
	}
	return out
}

// unreferenced is reached by words alone: the default route has no path to describe.
const unreferenced = "responses/RouteNotFound"

func TestOpenAPIReferencesMeet(t *testing.T) {
	t.Parallel()
	doc := loadOpenAPI(t)
	used := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, e := range v {
				if ref, ok := e.(string); ok && k == "$ref" {
					used[strings.TrimPrefix(ref, "#/components/")] = true
					if _, err := doc.resolve(ref); err != nil {
						t.Error(err)
					}
				}
				walk(e)
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(doc.doc)
	for kind, all := range at(doc.doc, "components").(map[string]any) {
		for name, c := range all.(map[string]any) {
			// The status table is described as a whole, whether or not a route answers with each of it.
			problem := at(c, "properties", "code", "const") != nil
			if ref := kind + "/" + name; kind != "securitySchemes" && !problem && used[ref] == (ref == unreferenced) {
				t.Errorf("component %s: referred to is %v", ref, used[ref])
			}
		}
	}
	ids := map[string]string{}
	for _, op := range doc.operations() {
		id, _ := op.body["operationId"].(string)
		if id == "" || ids[id] != "" {
			t.Errorf("%s: operationId %q is missing or taken by %s", op.route, id, ids[id])
		}
		ids[id] = op.route
	}
}

func TestOpenAPIExamplesFitTheirSchemas(t *testing.T) {
	t.Parallel()
	doc := loadOpenAPI(t)
	seen := 0
	var walk func(v any, path string)
	walk = func(v any, path string) {
		switch v := v.(type) {
		case map[string]any:
			if examples, ok := v["examples"].([]any); ok {
				for i, e := range examples {
					seen++
					for _, bad := range doc.check(v, e) {
						t.Errorf("%s: example %d: %s", path, i, bad)
					}
				}
			}
			if e, ok := v["example"]; ok && v["schema"] != nil {
				seen++
				for _, bad := range doc.check(v["schema"], e) {
					t.Errorf("%s: example: %s", path, bad)
				}
			}
			for k, e := range v {
				walk(e, path+"/"+k)
			}
		case []any:
			for i, e := range v {
				walk(e, path+"/"+strconv.Itoa(i))
			}
		}
	}
	walk(doc.doc, "")
	if seen < 15 {
		t.Errorf("found only %d examples", seen)
	}
}

// The golden answers of the handler tests are what the service says. The document must allow each of them, so it can't
// promise anything else.
func TestOpenAPIAllowsTheGoldenAnswers(t *testing.T) {
	t.Parallel()
	doc := loadOpenAPI(t)
	paths, err := filepath.Glob(filepath.Join(root, "functions", "*", "testdata", "*.golden.json"))
	if err != nil || len(paths) < 20 {
		t.Fatalf("found %d golden answers: %v", len(paths), err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var golden struct {
			Route   string            `json:"route"`
			Status  int               `json:"status"`
			Headers map[string]string `json:"headers"`
			Body    any               `json:"body"`
		}
		if err := json.Unmarshal(text, &golden); err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		name := strings.TrimPrefix(filepath.ToSlash(path), "../../")
		var response map[string]any
		switch golden.Route {
		case "": // no HTTP answer
			continue
		case "$default":
			response = doc.deref(t, map[string]any{"$ref": "#/components/responses/RouteNotFound"})
		default:
			r := at(doc.operation(t, golden.Route).body, "responses", strconv.Itoa(golden.Status))
			if r == nil {
				t.Errorf("%s: openapi.json has no %d for %s", name, golden.Status, golden.Route)
				continue
			}
			response = doc.deref(t, r)
		}
		doc.checkAnswer(t, name, response, golden.Headers, golden.Body)
	}
}

// everywhere are the headers that stand on every answer and are described once, in words.
var everywhere = []string{"Content-Type", "Cache-Control", "X-Content-Type-Options"}

func (s schemas) checkAnswer(t *testing.T, name string, response map[string]any, headers map[string]string, body any) {
	t.Helper()
	described, _ := response["headers"].(map[string]any)
	for h := range headers {
		if described[h] == nil && !slices.Contains(everywhere, h) {
			t.Errorf("%s: the header %s isn't described", name, h)
		}
	}
	for h, d := range described {
		if d := s.deref(t, d); d["required"] == true && headers[h] == "" {
			t.Errorf("%s: the header %s is missing", name, h)
		}
	}
	content, _ := response["content"].(map[string]any)
	if body == nil || body == "" {
		if len(content) > 0 {
			t.Errorf("%s: the body is missing", name)
		}
		return
	}
	mediaType, _, _ := strings.Cut(headers["Content-Type"], ";")
	schema := at(content, mediaType, "schema")
	if schema == nil {
		t.Errorf("%s: %s isn't described", name, headers["Content-Type"])
		return
	}
	for _, bad := range s.check(schema, body) {
		t.Errorf("%s: %s", name, bad)
	}
}
