package dynamo

import "maps"

// updateVerb is a section of an UpdateExpression.
type updateVerb string

const (
	verbSet    updateVerb = "SET"
	verbRemove updateVerb = "REMOVE"
	verbAdd    updateVerb = "ADD"
	verbDelete updateVerb = "DELETE"
)

// updateAction is one change of an update expression.
type updateAction struct {
	verb  updateVerb
	path  path
	value updateOperand // nil for REMOVE
}

// updateExpression is a parsed UpdateExpression: a pure function from the old
// image of an item to the new one.
type updateExpression struct {
	actions []*updateAction
	tree    *pathTree
	heads   map[string]bool // attributes that it writes
}

var (
	errUpdateType  = invalid("An operand in the update expression has an incorrect data type")
	errUpdatePath  = invalid("The document path provided in the update expression is invalid for update")
	errUpdateUnset = invalid("The provided expression refers to an attribute that does not exist in the item")
)

// updateOperand is a value on the right of an update action. It is computed
// from the old image only, so SET a=b, b=a swaps.
type updateOperand interface {
	compute(old document) (value, error)
}

type (
	sum struct {
		left, right updateOperand
		minus       bool
	}
	fallback struct { // if_not_exists
		path path
		or   updateOperand
	}
	concat struct{ left, right updateOperand } // list_append
)

func (l literal) compute(document) (value, error) { return l.value, nil }

func (a attribute) compute(old document) (value, error) {
	if v := a.path.find(old); v != nil {
		return v, nil
	}
	return nil, errUpdateUnset
}

func (f fallback) compute(old document) (value, error) {
	if v := f.path.find(old); v != nil {
		return v, nil
	}
	return f.or.compute(old)
}

func (s sum) compute(old document) (value, error) {
	left, err := s.left.compute(old)
	if err != nil {
		return nil, err
	}
	right, err := s.right.compute(old)
	if err != nil {
		return nil, err
	}
	l, ok1 := left.(decimal)
	r, ok2 := right.(decimal)
	if !ok1 || !ok2 {
		return nil, errUpdateType
	}
	if s.minus {
		r = r.negate()
	}
	return addNumbers(l, r)
}

func addNumbers(l, r decimal) (value, error) {
	n, err := l.add(r)
	if err != nil {
		return nil, invalid("%s", err.Error())
	}
	return n, nil
}

func (c concat) compute(old document) (value, error) {
	left, err := c.left.compute(old)
	if err != nil {
		return nil, err
	}
	right, err := c.right.compute(old)
	if err != nil {
		return nil, err
	}
	l, ok1 := left.(list)
	r, ok2 := right.(list)
	if !ok1 || !ok2 {
		return nil, errUpdateType
	}
	out := make(list, 0, len(l)+len(r))
	return append(append(out, l...), r...), nil
}

// apply returns the item after the update; old is left as it is.
func (u *updateExpression) apply(old document) (document, error) {
	if len(u.actions) == 0 {
		return old, nil
	}
	v, err := u.tree.update(old, old)
	if err != nil {
		return nil, err
	}
	return v.(document), nil
}

// update rebuilds the part of an item below one node of the tree. at is the
// value there now, nil when there is none; a nil result removes it.
func (t *pathTree) update(at value, old document) (value, error) {
	switch {
	case t.action != nil:
		return t.action.result(at, old)
	case t.fields != nil:
		d, ok := at.(document)
		if !ok {
			return nil, errUpdatePath
		}
		return t.updateMap(d, old)
	default:
		l, ok := at.(list)
		if !ok {
			return nil, errUpdatePath
		}
		return t.updateList(l, old)
	}
}

func (t *pathTree) updateMap(d document, old document) (value, error) {
	out := maps.Clone(d)
	for _, name := range sortedKeys(t.fields) {
		v, err := t.fields[name].update(d[name], old)
		if err != nil {
			return nil, err
		}
		if v == nil {
			delete(out, name)
		} else {
			out[name] = v
		}
	}
	return out, nil
}

// updateList applies all actions to the elements as they were numbered before
// the update: removed elements close up, and elements past the end are appended
// in the order of their indexes.
func (t *pathTree) updateList(l list, old document) (value, error) {
	out := make(list, 0, len(l)+len(t.elems))
	for i, v := range l {
		if sub := t.elems[i]; sub != nil {
			var err error
			if v, err = sub.update(v, old); err != nil {
				return nil, err
			}
		}
		if v != nil {
			out = append(out, v)
		}
	}
	for _, i := range t.indexes() {
		if i < len(l) {
			continue
		}
		v, err := t.elems[i].update(nil, old)
		if err != nil {
			return nil, err
		}
		if v != nil {
			out = append(out, v)
		}
	}
	return out, nil
}

// result is what the action leaves at its path.
func (a *updateAction) result(at value, old document) (value, error) {
	if a.verb == verbRemove {
		return nil, nil
	}
	v, err := a.value.compute(old)
	if err != nil || a.verb == verbSet {
		return v, err
	}
	if at == nil {
		if a.verb == verbDelete {
			return nil, nil
		}
		return v, nil
	}
	if at.kind() != v.kind() {
		return nil, errUpdateType
	}
	switch v := v.(type) {
	case decimal:
		return addNumbers(at.(decimal), v)
	case set:
		if a.verb == verbAdd {
			return at.(set).union(v), nil
		}
		if rest, some := at.(set).minus(v); some {
			return rest, nil
		}
		return nil, nil
	}
	return nil, errUpdateType
}
