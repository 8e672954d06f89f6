package conventions

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

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
