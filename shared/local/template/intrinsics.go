package template

import (
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// call splits an intrinsic function, in its short (!Sub) or long (Fn::Sub) form,
// into its name and argument.
func call(n *yaml.Node) (name string, arg *yaml.Node, ok bool) {
	if strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!") {
		plain := *n
		plain.Tag = ""
		if n.Kind == yaml.ScalarNode {
			plain.Tag = "!!str"
		}
		return n.Tag[1:], &plain, true
	}
	if n.Kind == yaml.MappingNode && len(n.Content) == 2 {
		key := n.Content[0].Value
		if key == "Ref" || key == "Condition" {
			return key, n.Content[1], true
		}
		if strings.HasPrefix(key, "Fn::") {
			return key[len("Fn::"):], n.Content[1], true
		}
	}
	return "", nil, false
}

func isIntrinsic(n *yaml.Node) bool {
	_, _, ok := call(n)
	return ok
}

// resolve evaluates every intrinsic function under n. It returns nil for
// AWS::NoValue, and for what could not be resolved (the problem is recorded).
func (d *document) resolve(n *yaml.Node) *yaml.Node {
	n = d.shallow(n)
	if n == nil || n.Kind == yaml.ScalarNode {
		return n
	}
	out := *n
	out.Content = nil
	if n.Kind == yaml.SequenceNode {
		for _, item := range n.Content {
			if v := d.resolve(item); v != nil {
				out.Content = append(out.Content, v)
			}
		}
		return &out
	}
	for k, v := range pairs(n) {
		if v := d.resolve(v); v != nil {
			out.Content = append(out.Content, k, v)
		}
	}
	return &out
}

// shallow evaluates the intrinsic function at n itself and leaves what is below.
func (d *document) shallow(n *yaml.Node) *yaml.Node {
	n = follow(n)
	if n == nil {
		return nil
	}
	name, arg, ok := call(n)
	if !ok {
		return n
	}
	arg = follow(arg)
	switch name {
	case "Ref":
		return d.ref(n.Line, arg.Value)
	case "GetAtt":
		return d.getAtt(n.Line, arg)
	case "Sub":
		return d.sub(n.Line, arg)
	case "Join":
		return d.join(n.Line, arg)
	case "Select":
		return d.selectItem(n.Line, arg)
	case "Split":
		return d.split(n.Line, arg)
	case "FindInMap":
		return d.findInMap(n.Line, arg)
	case "If":
		if arg.Kind != yaml.SequenceNode || len(arg.Content) != 3 {
			d.failf(n.Line, "If takes a condition, a value if true and a value if false")
			return nil
		}
		if d.isTrue(arg.Content[0]) {
			return d.shallow(arg.Content[1])
		}
		return d.shallow(arg.Content[2])
	case "Equals", "And", "Or", "Not", "Condition":
		return scalar(n.Line, strconv.FormatBool(d.isTrue(n)))
	}
	d.failf(n.Line, "intrinsic function %s is not honoured by the local stack: implement it there or write the value another way", name)
	return nil
}

// isTrue evaluates a condition: a name, or one of the condition functions.
func (d *document) isTrue(n *yaml.Node) bool {
	n = follow(n)
	name, arg, ok := call(n)
	if !ok || name == "Condition" {
		if ok {
			n = follow(arg)
		}
		return d.namedCondition(n)
	}
	arg = follow(arg)
	switch name {
	case "Equals":
		if len(arg.Content) != 2 {
			d.failf(n.Line, "Equals takes two values")
			return false
		}
		a, b := d.resolve(arg.Content[0]), d.resolve(arg.Content[1])
		return a != nil && b != nil && a.Value == b.Value
	case "Not":
		if len(arg.Content) != 1 {
			d.failf(n.Line, "Not takes one condition")
			return false
		}
		return !d.isTrue(arg.Content[0])
	case "And", "Or":
		for _, c := range arg.Content {
			if d.isTrue(c) == (name == "Or") {
				return name == "Or"
			}
		}
		return name == "And"
	}
	d.failf(n.Line, "%s is not a condition", name)
	return false
}

func (d *document) namedCondition(n *yaml.Node) bool {
	c := d.conditions[n.Value]
	switch {
	case c == nil:
		d.failf(n.Line, "unknown condition %q", n.Value)
		return false
	case c.state == 1:
		d.failf(n.Line, "condition %s refers to itself", n.Value)
		return false
	case c.state == 0:
		c.state = 1
		c.value = d.isTrue(c.node)
		c.state = 2
	}
	return c.value
}

var placeholder = regexp.MustCompile(`\$\{(!?)([^}]*)\}`)

func (d *document) sub(line int, arg *yaml.Node) *yaml.Node {
	text, vars := arg, (*yaml.Node)(nil)
	if arg.Kind == yaml.SequenceNode && len(arg.Content) == 2 {
		text, vars = arg.Content[0], arg.Content[1]
	}
	if text.Kind != yaml.ScalarNode {
		d.failf(line, "Sub takes a string, or a list of a string and its variables")
		return nil
	}
	failed := false
	out := placeholder.ReplaceAllStringFunc(text.Value, func(match string) string {
		parts := placeholder.FindStringSubmatch(match)
		name := strings.TrimSpace(parts[2])
		if parts[1] == "!" {
			return "${" + name + "}" // ${!Literal} is CloudFormation's escape
		}
		var value *yaml.Node
		if v := child(vars, name); v != nil {
			value = d.resolve(v)
		} else if id, attr, ok := strings.Cut(name, "."); ok {
			value = d.getAtt(line, list(line, []string{id, attr}))
		} else {
			value = d.ref(line, name)
		}
		if value == nil || value.Kind != yaml.ScalarNode {
			failed = true
			return ""
		}
		return value.Value
	})
	if failed {
		return nil
	}
	return scalar(line, out)
}

func (d *document) join(line int, arg *yaml.Node) *yaml.Node {
	if arg.Kind != yaml.SequenceNode || len(arg.Content) != 2 {
		d.failf(line, "Join takes a delimiter and a list")
		return nil
	}
	items := d.resolve(arg.Content[1])
	if items == nil || items.Kind != yaml.SequenceNode {
		d.failf(line, "Join takes a delimiter and a list")
		return nil
	}
	var parts []string
	for _, item := range items.Content {
		parts = append(parts, item.Value)
	}
	return scalar(line, strings.Join(parts, arg.Content[0].Value))
}

func (d *document) selectItem(line int, arg *yaml.Node) *yaml.Node {
	if arg.Kind != yaml.SequenceNode || len(arg.Content) != 2 {
		d.failf(line, "Select takes an index and a list")
		return nil
	}
	index, items := d.resolve(arg.Content[0]), d.resolve(arg.Content[1])
	if index == nil || items == nil {
		return nil
	}
	i, err := strconv.Atoi(index.Value)
	if err != nil || items.Kind != yaml.SequenceNode || i < 0 || i >= len(items.Content) {
		d.failf(line, "Select has no item %q in a list of %d", index.Value, len(items.Content))
		return nil
	}
	return items.Content[i]
}

func (d *document) split(line int, arg *yaml.Node) *yaml.Node {
	if arg.Kind != yaml.SequenceNode || len(arg.Content) != 2 {
		d.failf(line, "Split takes a delimiter and a string")
		return nil
	}
	text := d.resolve(arg.Content[1])
	if text == nil {
		return nil
	}
	return list(line, strings.Split(text.Value, arg.Content[0].Value))
}

func (d *document) findInMap(line int, arg *yaml.Node) *yaml.Node {
	n := d.mappings
	if arg.Kind != yaml.SequenceNode || len(arg.Content) != 3 {
		d.failf(line, "FindInMap takes a mapping and two keys")
		return nil
	}
	for _, key := range arg.Content {
		k := d.resolve(key)
		if k == nil {
			return nil
		}
		if n = child(n, k.Value); n == nil {
			d.failf(line, "FindInMap finds no %q", k.Value)
			return nil
		}
	}
	return n
}
