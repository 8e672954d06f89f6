package template

import (
	"fmt"
	"strconv"

	"gopkg.in/yaml.v3"
)

// fields reads the properties of one mapping and remembers which were read, so
// that done can report the rest.
type fields struct {
	d     *document
	id    string // logical id, for messages
	path  string // type and property path, as in the cloud-only table
	node  *yaml.Node
	taken map[string]bool
}

// fields opens the properties of a resource, laid over the globals.
func (d *document) fields(r *resource) *fields {
	return d.mapping(r.id, r.kind, r.line, merged(d.globals[r.kind], r.props))
}

func (d *document) mapping(id, path string, line int, n *yaml.Node) *fields {
	f := &fields{d: d, id: id, path: path, taken: map[string]bool{}}
	f.node = d.shallow(n)
	if f.node == nil {
		f.node = &yaml.Node{Kind: yaml.MappingNode, Line: line}
	}
	if f.node.Kind != yaml.MappingNode {
		d.failf(f.node.Line, "%s of %s must be a mapping", path, id)
	}
	return f
}

// raw is a property as written, nil when absent.
func (f *fields) raw(key string) *yaml.Node {
	f.taken[key] = true
	return child(f.node, key)
}

// has says whether a property stands there, without counting it as read.
func (f *fields) has(key string) bool { return child(f.node, key) != nil }

// line is where a property stands, or the mapping when it is absent.
func (f *fields) line(key string) int {
	for k := range pairs(f.node) {
		if k.Value == key {
			return k.Line
		}
	}
	return f.node.Line
}

// value is a property with everything in it resolved; nil when absent.
func (f *fields) value(key string) *yaml.Node {
	n := f.raw(key)
	if n == nil {
		return nil
	}
	return f.d.resolve(n)
}

func (f *fields) str(key string) string {
	n := f.value(key)
	if n == nil {
		return ""
	}
	if n.Kind != yaml.ScalarNode {
		f.d.failf(n.Line, "%s.%s of %s must be a string", f.path, key, f.id)
		return ""
	}
	return n.Value
}

// required is str, and a problem when the property is missing.
func (f *fields) required(key string) string {
	if !f.has(key) {
		f.d.failf(f.node.Line, "%s needs %s.%s", f.id, f.path, key)
		return ""
	}
	return f.str(key)
}

// number is a whole number, or def when the property is absent.
func (f *fields) number(key string, def int) int {
	n := f.value(key)
	if n == nil {
		return def
	}
	v, err := strconv.Atoi(n.Value)
	if err != nil {
		f.d.failf(n.Line, "%s.%s of %s is %q but must be a whole number", f.path, key, f.id, n.Value)
		return def
	}
	return v
}

func (f *fields) flag(key string, def bool) bool {
	n := f.value(key)
	if n == nil {
		return def
	}
	v, err := strconv.ParseBool(n.Value)
	if err != nil {
		f.d.failf(n.Line, "%s.%s of %s is %q but must be true or false", f.path, key, f.id, n.Value)
		return def
	}
	return v
}

// strings is a list of strings; a single string counts as a list of one.
func (f *fields) strings(key string) []string {
	n := f.value(key)
	if n == nil {
		return nil
	}
	if n.Kind == yaml.ScalarNode {
		return []string{n.Value}
	}
	var out []string
	for _, item := range n.Content {
		out = append(out, item.Value)
	}
	return out
}

// sub opens a nested mapping; absent ones are empty.
func (f *fields) sub(key string) *fields {
	return f.d.mapping(f.id, f.path+"."+key, f.node.Line, f.raw(key))
}

// items opens a list of mappings.
func (f *fields) items(key string) []*fields {
	n := f.raw(key)
	if n == nil {
		return nil
	}
	n = f.d.shallow(n)
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		f.d.failf(n.Line, "%s.%s of %s must be a list", f.path, key, f.id)
		return nil
	}
	var out []*fields
	for _, item := range n.Content {
		if v := f.d.shallow(item); v != nil {
			out = append(out, f.d.mapping(f.id, f.path+"."+key, v.Line, v))
		}
	}
	return out
}

// want checks a property that only one of the given values is honoured for.
func (f *fields) want(key, why string, values ...string) {
	if !f.has(key) {
		return
	}
	got := f.str(key)
	for _, v := range values {
		if got == v {
			return
		}
	}
	f.d.failf(f.line(key), "%s.%s of %s is %q: the local stack honours %q only (%s)", f.path, key, f.id, got, values, why)
}

// done reports the properties that nobody read: cloud-only ones are noted,
// any other is a problem.
func (f *fields) done() {
	for k := range pairs(f.node) {
		if f.taken[k.Value] {
			continue
		}
		path := f.path + "." + k.Value
		if reason, ok := cloudOnly(path); ok {
			f.d.skipped = append(f.d.skipped, Skipped{k.Line, fmt.Sprintf("%s.%s", f.id, k.Value), path, reason})
			continue
		}
		f.d.failf(k.Line, "property %s of %s is not honoured by the local stack: implement it there, or list it in the cloud-only table with the reason", path, f.id)
	}
}
