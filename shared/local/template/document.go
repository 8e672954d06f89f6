package template

import (
	"strings"

	"gopkg.in/yaml.v3"
)

// document is a template being read.
type document struct {
	file       string
	opt        Options
	params     map[string]*yaml.Node
	mappings   *yaml.Node
	conditions map[string]*condition
	globals    map[string]*yaml.Node
	resources  []*resource
	byID       map[string]*resource
	policies   map[string]Content // response headers policies by logical id
	policyRef  string             // the one that the distribution attaches
	problems   []problem
	skipped    []Skipped
}

type resource struct {
	id, kind  string
	line      int
	condition *yaml.Node
	props     *yaml.Node
	metadata  *yaml.Node
}

type condition struct {
	node  *yaml.Node
	state int // 0 not evaluated, 1 being evaluated, 2 done
	value bool
}

func newDocument(file string, opt Options) *document {
	return &document{
		file: file, opt: opt,
		params:     map[string]*yaml.Node{},
		conditions: map[string]*condition{},
		globals:    map[string]*yaml.Node{},
		byID:       map[string]*resource{},
		policies:   map[string]Content{},
	}
}

// open reads the top-level sections.
func (d *document) open(root *yaml.Node) {
	if root.Kind != yaml.MappingNode {
		d.failf(root.Line, "the template must be a mapping with a Resources section")
		return
	}
	sections := map[string]*yaml.Node{}
	for key, value := range pairs(root) {
		sections[key.Value] = value
		switch key.Value {
		case "AWSTemplateFormatVersion", "Transform", "Description", "Parameters", "Mappings", "Conditions", "Globals", "Resources":
		case "Metadata", "Outputs":
			reason, _ := cloudOnly(key.Value)
			d.skipped = append(d.skipped, Skipped{key.Line, key.Value, key.Value, reason})
		default:
			d.failf(key.Line, "section %s is not honoured by the local stack: implement it there or leave it out", key.Value)
		}
	}
	if n := sections["Mappings"]; n != nil {
		d.mappings = n
	}
	d.readParameters(sections["Parameters"])
	for key, value := range pairs(sections["Conditions"]) {
		d.conditions[key.Value] = &condition{node: value}
	}
	for key, value := range pairs(sections["Globals"]) {
		switch key.Value {
		case "Function":
			d.globals[kindFunction] = value
		case "HttpApi":
			d.globals[kindAPI] = value
		default:
			d.failf(key.Line, "Globals.%s is not honoured by the local stack: set the properties on the resources", key.Value)
		}
	}
	if sections["Resources"] == nil {
		d.failf(root.Line, "the template has no Resources section")
		return
	}
	for key, value := range pairs(sections["Resources"]) {
		d.readResource(key, value)
	}
}

func (d *document) readResource(key, body *yaml.Node) {
	r := &resource{id: key.Value, line: key.Line, props: &yaml.Node{Kind: yaml.MappingNode, Line: key.Line}}
	if body.Kind != yaml.MappingNode {
		d.failf(key.Line, "resource %s must be a mapping with a Type", r.id)
		return
	}
	for name, value := range pairs(body) {
		switch name.Value {
		case "Type":
			r.kind = value.Value
		case "Properties":
			r.props = value
		case "Condition":
			r.condition = value
		case "Metadata":
			r.metadata = value
		case "DependsOn", "DeletionPolicy", "UpdateReplacePolicy":
			// Order and the fate of the data at stack deletion: nothing to do locally.
		default:
			d.failf(name.Line, "attribute %s of %s is not honoured by the local stack: remove it or implement it there", name.Value, r.id)
		}
	}
	if r.kind == "" {
		d.failf(key.Line, "resource %s has no Type", r.id)
		return
	}
	d.resources = append(d.resources, r)
	d.byID[r.id] = r
}

// exists evaluates the resource's Condition.
func (d *document) exists(r *resource) bool {
	return r.condition == nil || d.isTrue(r.condition)
}

// physical is the name a resource gets when the template gives none.
func (d *document) physical(id string) string { return d.opt.StackName + "-" + id }

// pairs iterates over the keys and values of a mapping; nothing for any other node.
func pairs(n *yaml.Node) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		n = follow(n)
		if n == nil || n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

// follow replaces a YAML alias by what it stands for.
func follow(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func child(n *yaml.Node, key string) *yaml.Node {
	for k, v := range pairs(n) {
		if k.Value == key {
			return v
		}
	}
	return nil
}

// merged lays a resource's own properties over the Globals section as SAM does:
// mappings merge key by key, lists are joined with the global part first,
// anything else is replaced.
func merged(global, own *yaml.Node) *yaml.Node {
	global, own = follow(global), follow(own)
	switch {
	case global == nil:
		return own
	case own == nil:
		return global
	case isIntrinsic(global) || isIntrinsic(own) || global.Kind != own.Kind:
		return own
	case own.Kind == yaml.SequenceNode:
		both := *own
		both.Content = append(append([]*yaml.Node{}, global.Content...), own.Content...)
		return &both
	case own.Kind == yaml.MappingNode:
		both := *own
		both.Content = nil
		for k, v := range pairs(global) {
			both.Content = append(both.Content, k, merged(v, child(own, k.Value)))
		}
		for k, v := range pairs(own) {
			if child(global, k.Value) == nil {
				both.Content = append(both.Content, k, v)
			}
		}
		return &both
	}
	return own
}

func scalar(line int, value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value, Line: line}
}

func list(line int, values []string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: line}
	for _, v := range values {
		n.Content = append(n.Content, scalar(line, v))
	}
	return n
}

// lastPart is what stands behind the last separator of an ARN or path.
func lastPart(s, sep string) string {
	return s[strings.LastIndex(s, sep)+1:]
}
