package conventions

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// root is the repository, seen from this package.
var root = filepath.Join("..", "..")

// Resource types that tests ask for.
const (
	function  = "AWS::Serverless::Function"
	table     = "AWS::DynamoDB::Table"
	bucket    = "AWS::S3::Bucket"
	queue     = "AWS::SQS::Queue"
	logGroup  = "AWS::Logs::LogGroup"
	alarm     = "AWS::CloudWatch::Alarm"
	distrib   = "AWS::CloudFront::Distribution"
	cachePol  = "AWS::CloudFront::CachePolicy"
	headerPol = "AWS::CloudFront::ResponseHeadersPolicy"
)

// tree is template.yaml with mappings as map[string]any, lists as []any and every intrinsic as the string that !Sub
// would need for it: `!Ref Table` is "${Table}", `!GetAtt Table.Arn` is "${Table.Arn}". Conditions keep their branches:
// `!If [C, a, b]` is a map with the one key "Fn::If".
type tree map[string]any

func load(t *testing.T) tree {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	m, ok := plain(t, doc.Content[0]).(map[string]any)
	if !ok {
		t.Fatal("template.yaml is not a mapping")
	}
	return m
}

// plain drops YAML's tags in favour of the strings described at tree.
func plain(t *testing.T, n *yaml.Node) any {
	t.Helper()
	switch n.Tag {
	case "!Ref", "!GetAtt":
		return "${" + n.Value + "}"
	case "!Sub":
		if n.Kind != yaml.ScalarNode {
			t.Fatalf("line %d: write !Sub with one string, so that policies can be compared", n.Line)
		}
		return n.Value
	}
	var v any
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			m[n.Content[i].Value] = plain(t, n.Content[i+1])
		}
		v = m
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			list = append(list, plain(t, c))
		}
		v = list
	case yaml.AliasNode:
		t.Fatalf("line %d: CloudFormation knows no YAML aliases", n.Line)
	default:
		if err := n.Decode(&v); err != nil || strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!") {
			v = n.Value
		}
	}
	if strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!") {
		return map[string]any{"Fn::" + n.Tag[1:]: v}
	}
	return v
}

// at walks keys and returns what is there, nil when any step is missing.
func at(v any, keys ...string) any {
	for _, k := range keys {
		switch m := v.(type) {
		case map[string]any:
			v = m[k]
		case tree:
			v = m[k]
		default:
			return nil
		}
	}
	return v
}

// str is at as text; "" when absent.
func str(v any, keys ...string) string {
	if v = at(v, keys...); v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// num is at as a whole number; -1 when absent or not one.
func num(v any, keys ...string) int {
	if n, ok := at(v, keys...).(int); ok {
		return n
	}
	return -1
}

// list is at as a list of strings; a single value is a list of one.
func list(v any, keys ...string) []string {
	v = at(v, keys...)
	if v == nil {
		return nil
	}
	many, ok := v.([]any)
	if !ok {
		many = []any{v}
	}
	out := make([]string, len(many))
	for i, e := range many {
		out[i] = fmt.Sprint(e)
	}
	return out
}

// maps is at as a list of mappings.
func maps(v any, keys ...string) []map[string]any {
	var out []map[string]any
	many, _ := at(v, keys...).([]any)
	for _, e := range many {
		if m, ok := e.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

// resource is one entry of Resources. Functions have the globals filled in, as SAM does.
type resource struct {
	id, kind string
	whole    map[string]any
	props    map[string]any
}

// resources are the resources of one type in the order of their names, and at least one.
func (tr tree) resources(t *testing.T, kind string) []resource {
	t.Helper()
	all, _ := tr["Resources"].(map[string]any)
	var out []resource
	for id, body := range all {
		if str(body, "Type") != kind {
			continue
		}
		whole, _ := body.(map[string]any)
		props, _ := whole["Properties"].(map[string]any)
		if kind == function {
			props = merged(at(tr, "Globals", "Function"), props)
		}
		out = append(out, resource{id, kind, whole, props})
	}
	if len(out) == 0 {
		t.Fatalf("template.yaml has no %s: the rules about it check nothing", kind)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].id < out[j].id })
	return out
}

// one is the resource with that id.
func (tr tree) one(t *testing.T, kind, id string) resource {
	t.Helper()
	for _, r := range tr.resources(t, kind) {
		if r.id == id {
			return r
		}
	}
	t.Fatalf("template.yaml has no %s %s", kind, id)
	return resource{}
}

// merged lays over over base, mapping by mapping; lists are joined, as SAM's globals are.
func merged(base any, over map[string]any) map[string]any {
	out := map[string]any{}
	if b, ok := base.(map[string]any); ok {
		for k, v := range b {
			out[k] = v
		}
	}
	for k, v := range over {
		switch below := out[k].(type) {
		case map[string]any:
			if m, ok := v.(map[string]any); ok {
				v = merged(below, m)
			}
		case []any:
			if l, ok := v.([]any); ok {
				v = append(append([]any{}, below...), l...)
			}
		}
		out[k] = v
	}
	return out
}

// unref is the logical id in "${Id}" or "${Id.Attribute}".
func unref(s string) string {
	s = strings.TrimSuffix(strings.TrimPrefix(s, "${"), "}")
	id, _, _ := strings.Cut(s, ".")
	return id
}
