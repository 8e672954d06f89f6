package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// template is translated CloudFormation in which every reference is the text that
// Fn::Sub would need for it: {"Ref": "Table"} is "${Table}", {"Fn::GetAtt": ["Table",
// "Arn"]} is "${Table.Arn}". So policies can be compared as text, and turned into
// ARNs by [expand]. Conditions keep their branches, as {"Fn::If": […]}.
type template struct {
	// Size is that of the text, in bytes.
	Size      int
	Resources map[string]resource
	Outputs   map[string]any
}

type resource struct {
	ID   string
	Type string
	// Whole has the attributes beside Properties too.
	Whole, Properties map[string]any
}

func readTemplate(path string) (*template, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the translated template: %w", err)
	}
	return parseTemplate(text)
}

func parseTemplate(text []byte) (*template, error) {
	var whole struct {
		Resources map[string]map[string]any
		Outputs   map[string]any
	}
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, fmt.Errorf("reading the translated template: %w", err)
	}
	t := &template{Size: len(text), Resources: map[string]resource{}, Outputs: whole.Outputs}
	for id, body := range whole.Resources {
		body, _ := plain(body).(map[string]any)
		r := resource{ID: id, Whole: body}
		r.Type, _ = body["Type"].(string)
		r.Properties, _ = body["Properties"].(map[string]any)
		t.Resources[id] = r
	}
	return t, nil
}

// plain writes references as text.
func plain(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plain(e)
		}
		return out
	case map[string]any:
		if len(v) == 1 {
			if name, ok := v["Ref"].(string); ok {
				return "${" + name + "}"
			}
			switch at := v["Fn::GetAtt"].(type) {
			case string:
				return "${" + at + "}"
			case []any:
				return fmt.Sprintf("${%v.%v}", at[0], at[1])
			}
			switch sub := v["Fn::Sub"].(type) {
			case string:
				return sub
			case []any:
				text := fmt.Sprint(sub[0])
				values, _ := sub[1].(map[string]any)
				for name, value := range values {
					text = strings.ReplaceAll(text, "${"+name+"}", fmt.Sprint(plain(value)))
				}
				return text
			}
		}
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = plain(e)
		}
		return out
	}
	return v
}

// of are the resources of a type, in the order of their ids.
func (t *template) of(kind string) []resource {
	var out []resource
	for _, id := range slices.Sorted(maps.Keys(t.Resources)) {
		if t.Resources[id].Type == kind {
			out = append(out, t.Resources[id])
		}
	}
	return out
}

// at walks keys and returns what is there, nil when a step is missing.
func at(v any, keys ...string) any {
	for _, k := range keys {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[k]
	}
	return v
}

// str is at as text, empty when there is nothing.
func str(v any, keys ...string) string {
	if v = at(v, keys...); v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// list is at as a list; a single value is a list of one.
func list(v any, keys ...string) []any {
	switch v := at(v, keys...).(type) {
	case nil:
		return nil
	case []any:
		return v
	default:
		return []any{v}
	}
}

// texts is list as text.
func texts(v any, keys ...string) []string {
	var out []string
	for _, e := range list(v, keys...) {
		out = append(out, fmt.Sprint(e))
	}
	return out
}

// statement is one statement of a policy and where it stands.
type statement struct {
	owner string
	body  any
}

// grant is one action allowed on one resource.
type grant struct{ action, resource string }

// grants are all pairs that the statement allows.
func (s statement) grants() []grant {
	if str(s.body, "Effect") != "Allow" {
		return nil
	}
	var out []grant
	for _, a := range texts(s.body, "Action") {
		for _, r := range texts(s.body, "Resource") {
			out = append(out, grant{a, r})
		}
	}
	return out
}

// statements are those of the documents in a role's Policies, and of a PolicyDocument.
func statements(r resource) []statement {
	var out []statement
	documents := []any{at(r.Properties, "PolicyDocument")}
	for _, p := range list(r.Properties, "Policies") {
		documents = append(documents, at(p, "PolicyDocument"))
	}
	for _, d := range documents {
		for _, s := range list(d, "Statement") {
			out = append(out, statement{r.ID, s})
		}
	}
	return out
}

// referred is the logical id in "${Id}" or "${Id.Attribute}".
func referred(text string) string {
	id, _, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(text, "${"), "}"), ".")
	return id
}

var reference = regexp.MustCompile(`\$\{[^}]*\}`)

// expand replaces references by values; an unknown one is an error.
func expand(text string, values map[string]string) (string, error) {
	var err error
	out := reference.ReplaceAllStringFunc(text, func(ref string) string {
		v, ok := values[ref[2:len(ref)-1]]
		if !ok {
			err = fmt.Errorf("%s in %q has no value", ref, text)
		}
		return v
	})
	return out, err
}

// matches tells whether an IAM pattern covers a text: * stands for anything, ? for
// one character.
func matches(pattern, text string) bool {
	quoted := regexp.QuoteMeta(pattern)
	quoted = strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(quoted)
	return regexp.MustCompile(`^` + quoted + `$`).MatchString(text)
}
