package conventions

import (
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// schemas checks JSON values against the schemas of an OpenAPI document. It knows the keywords that the document uses
// and fails on any other, so that nothing is believed checked that isn't. Stricter than JSON Schema in one point: an
// object may only have members that its schema names, so that nothing goes out undescribed.
type schemas struct{ doc map[string]any }

// annotations are the keywords that constrain nothing.
var annotations = []string{"description", "title", "examples", "default", "discriminator"}

// resolve follows a $ref inside the document.
func (s schemas) resolve(ref string) (any, error) {
	var v any = s.doc
	for step := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		m, _ := v.(map[string]any)
		if v = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]; v == nil {
			return nil, fmt.Errorf("%s leads nowhere", ref)
		}
	}
	return v, nil
}

// check reports everything about v that schema doesn't allow.
func (s schemas) check(schema, v any) []string {
	bad, described := s.apply(schema, v, "")
	if obj, ok := v.(map[string]any); ok {
		for name := range obj {
			if !described[name] {
				bad = append(bad, "/"+name+" isn't described")
			}
		}
	}
	return bad
}

// apply returns what is wrong with v and which of its members some part of schema describes.
func (s schemas) apply(schema, v any, path string) (bad []string, described map[string]bool) {
	described = map[string]bool{}
	m, ok := schema.(map[string]any)
	if !ok {
		return []string{fmt.Sprintf("%s: the schema is %T", path, schema)}, described
	}
	fail := func(format string, args ...any) { bad = append(bad, path+": "+fmt.Sprintf(format, args...)) }
	include := func(b []string, d map[string]bool) {
		bad = append(bad, b...)
		for k := range d {
			described[k] = true
		}
	}
	for keyword, want := range m {
		switch keyword {
		case "$ref":
			target, err := s.resolve(want.(string))
			if err != nil {
				fail("%v", err)
				continue
			}
			include(s.apply(target, v, path))
		case "allOf":
			for _, part := range want.([]any) {
				include(s.apply(part, v, path))
			}
		case "oneOf":
			include(s.oneOf(want.([]any), v, path))
		case "type":
			if !slices.ContainsFunc(asList(want), func(t any) bool { return isType(t.(string), v) }) {
				fail("%v is no %v", v, want)
			}
		case "const":
			if !reflect.DeepEqual(v, want) {
				fail("%v isn't %v", v, want)
			}
		case "enum":
			if !slices.ContainsFunc(want.([]any), func(e any) bool { return reflect.DeepEqual(e, v) }) {
				fail("%v isn't one of %v", v, want)
			}
		default:
			s.typed(m, keyword, want, v, path, fail, include)
		}
	}
	return bad, described
}

// typed applies a keyword that only constrains values of one type.
func (s schemas) typed(m map[string]any, keyword string, want, v any, path string, fail func(string, ...any), include func([]string, map[string]bool)) {
	switch v := v.(type) {
	case string:
		applyText(keyword, want, v, fail)
	case float64:
		if n, ok := want.(float64); ok && (keyword == "minimum" && v < n || keyword == "maximum" && v > n) {
			fail("%v is out of bounds", v)
		}
	case []any:
		switch keyword {
		case "items":
			for i, e := range v {
				include(s.nested(want, e, fmt.Sprintf("%s/%d", path, i)), nil)
			}
		case "minItems":
			if float64(len(v)) < want.(float64) {
				fail("has only %d items", len(v))
			}
		case "uniqueItems":
			for i, e := range v {
				if slices.ContainsFunc(v[:i], func(o any) bool { return reflect.DeepEqual(o, e) }) {
					fail("repeats %v", e)
				}
			}
		}
	case map[string]any:
		include(s.object(m, keyword, want, v, path))
	}
	if !known(keyword) {
		fail("keyword %s isn't implemented", keyword)
	}
}

func (s schemas) object(m map[string]any, keyword string, want any, v map[string]any, path string) (bad []string, described map[string]bool) {
	described = map[string]bool{}
	props, _ := m["properties"].(map[string]any)
	switch keyword {
	case "required":
		for _, name := range want.([]any) {
			if _, ok := v[name.(string)]; !ok {
				bad = append(bad, path+"/"+name.(string)+" is missing")
			}
		}
	case "properties":
		for name, schema := range props {
			if e, ok := v[name]; ok {
				described[name] = true
				bad = append(bad, s.nested(schema, e, path+"/"+name)...)
			}
		}
	case "additionalProperties":
		for name, e := range v {
			if _, ok := props[name]; ok {
				continue
			}
			described[name] = true
			if want == false {
				bad = append(bad, path+"/"+name+" isn't allowed")
			} else {
				bad = append(bad, s.nested(want, e, path+"/"+name)...)
			}
		}
	case "propertyNames":
		for name := range v {
			bad = append(bad, s.nested(want, name, path+"/"+name)...)
		}
	case "minProperties", "maxProperties":
		if n := float64(len(v)); keyword[:3] == "min" && n < want.(float64) || keyword[:3] == "max" && n > want.(float64) {
			bad = append(bad, fmt.Sprintf("%s: has %d members", path, len(v)))
		}
	}
	return bad, described
}

// nested is check for a value inside another one. An object without properties is free.
func (s schemas) nested(schema, v any, path string) []string {
	bad, described := s.apply(schema, v, path)
	obj, _ := v.(map[string]any)
	if m, _ := schema.(map[string]any); m["type"] == "object" && m["properties"] == nil && m["additionalProperties"] == nil {
		return bad
	}
	for name := range obj {
		if !described[name] {
			bad = append(bad, path+"/"+name+" isn't described")
		}
	}
	return bad
}

func (s schemas) oneOf(options []any, v any, path string) (bad []string, described map[string]bool) {
	fits := 0
	var all []string
	for _, o := range options {
		b, d := s.apply(o, v, path)
		if len(b) == 0 {
			fits++
			described = d
		}
		all = append(all, b...)
	}
	if fits != 1 {
		return []string{fmt.Sprintf("%s: fits %d of %d alternatives: %s", path, fits, len(options), strings.Join(all, "; "))}, nil
	}
	return nil, described
}

func known(keyword string) bool {
	return slices.Contains(annotations, keyword) || slices.Contains([]string{
		"pattern", "minLength", "maxLength", "format", "minimum", "maximum", "items", "minItems", "uniqueItems",
		"required", "properties", "additionalProperties", "propertyNames", "minProperties", "maxProperties",
	}, keyword)
}

func applyText(keyword string, want any, v string, fail func(string, ...any)) {
	switch keyword {
	case "pattern":
		if !regexp.MustCompile(want.(string)).MatchString(v) {
			fail("%q doesn't match %s", v, want)
		}
	case "minLength", "maxLength":
		if n := float64(utf8.RuneCountInString(v)); keyword == "minLength" && n < want.(float64) || keyword == "maxLength" && n > want.(float64) {
			fail("%q has %v characters", v, n)
		}
	case "format":
		switch want {
		case "date-time":
			if _, err := time.Parse(time.RFC3339, v); err != nil {
				fail("%v", err)
			}
		case "uri":
			if u, err := url.Parse(v); err != nil || !u.IsAbs() {
				fail("%q isn't a URI", v)
			}
		default:
			fail("format %v isn't implemented for strings", want)
		}
	}
}

func asList(v any) []any {
	if l, ok := v.([]any); ok {
		return l
	}
	return []any{v}
}

func isType(t string, v any) bool {
	switch v := v.(type) {
	case nil:
		return t == "null"
	case string:
		return t == "string"
	case bool:
		return t == "boolean"
	case float64:
		return t == "number" || t == "integer" && v == float64(int64(v))
	case []any:
		return t == "array"
	case map[string]any:
		return t == "object"
	}
	return false
}

// jsonValue is v as encoding/json reads it into an any.
func jsonValue(text []byte) (any, error) {
	var v any
	err := json.Unmarshal(text, &v)
	return v, err
}
