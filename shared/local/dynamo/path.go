package dynamo

import (
	"fmt"
	"slices"
	"strings"
)

// step is one element of a document path: a map member, or a list index when
// name is empty and isIndex is set.
type step struct {
	name    string
	index   int
	isIndex bool
}

// path leads from an item to an attribute or to something nested in it.
type path []step

// String is the notation that DynamoDB uses in its messages: [a, [0], b].
func (p path) String() string {
	parts := make([]string, len(p))
	for i, s := range p {
		if s.isIndex {
			parts[i] = fmt.Sprintf("[%d]", s.index)
		} else {
			parts[i] = s.name
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// find follows the path; nil means that nothing is there.
func (p path) find(item document) value {
	var v value = item
	for _, s := range p {
		switch c := v.(type) {
		case document:
			if s.isIndex {
				return nil
			}
			v = c[s.name]
		case list:
			if !s.isIndex || s.index >= len(c) {
				return nil
			}
			v = c[s.index]
		default:
			return nil
		}
	}
	return v
}

// clash reports how two paths of one expression collide: "overlap" when one
// contains the other, "conflict" when they need the same value to be both a
// list and a map, "" when they can live together.
func (p path) clash(o path) string {
	for i := range min(len(p), len(o)) {
		if p[i].isIndex != o[i].isIndex {
			return "conflict"
		}
		if p[i] != o[i] {
			return ""
		}
	}
	return "overlap"
}

// pathTree is a set of paths without clashes, as a tree. Leaves of an update
// carry the action to take there.
type pathTree struct {
	leaf   bool
	action *updateAction
	fields map[string]*pathTree
	elems  map[int]*pathTree
}

// insert adds a path and returns its leaf.
func (t *pathTree) insert(p path) *pathTree {
	for _, s := range p {
		var next *pathTree
		if s.isIndex {
			if t.elems == nil {
				t.elems = make(map[int]*pathTree)
			}
			if next = t.elems[s.index]; next == nil {
				next = new(pathTree)
				t.elems[s.index] = next
			}
		} else {
			if t.fields == nil {
				t.fields = make(map[string]*pathTree)
			}
			if next = t.fields[s.name]; next == nil {
				next = new(pathTree)
				t.fields[s.name] = next
			}
		}
		t = next
	}
	t.leaf = true
	return t
}

// pick returns the parts of v that the tree names, or nil when there are none.
// Chosen list elements close up, in order.
func (t *pathTree) pick(v value) value {
	if v == nil || t.leaf {
		return v
	}
	switch v := v.(type) {
	case document:
		out := make(document)
		for name, sub := range t.fields {
			if picked := sub.pick(v[name]); picked != nil {
				out[name] = picked
			}
		}
		if len(out) > 0 {
			return out
		}
	case list:
		var out list
		for _, i := range t.indexes() {
			if i < len(v) {
				if picked := t.elems[i].pick(v[i]); picked != nil {
					out = append(out, picked)
				}
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// project is pick for a whole item: an item without any of the attributes is
// an empty item.
func (t *pathTree) project(item document) document {
	if t == nil {
		return item
	}
	if d, ok := t.pick(item).(document); ok {
		return d
	}
	return document{}
}

func (t *pathTree) indexes() []int {
	out := make([]int, 0, len(t.elems))
	for i := range t.elems {
		out = append(out, i)
	}
	slices.Sort(out)
	return out
}
