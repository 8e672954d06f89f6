package conventions

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
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

func keysOf(m map[string]any) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
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
