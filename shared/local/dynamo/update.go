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
	index int           // its place in the expression
}

// updateExpression is a parsed UpdateExpression: a pure function from the old
// image of an item to the new one.
type updateExpression struct {
	actions  []*updateAction
	tree     *pathTree
	writes   map[string]bool // attributes that it changes
	mentions mentions
}

var (
	errUpdateType  = invalid("An operand in the update expression has an incorrect data type")
	errUpdatePath  = invalid("The document path provided in the update expression is invalid for update")
	errUpdateIndex = invalid("The update expression attempted to update the secondary index key to unsupported type")
	errUpdateUnset = invalid("The provided expression refers to an attribute that does not exist in the item")
)

// updateOperand is a value on the right of an update action. It is computed
// from the old image only, so SET a=b, b=a swaps.
type updateOperand interface {
	compute(old document) (value, error)
	// staticKind is the kind when it is known without an item, or "".
	staticKind() kind
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

// computeAs computes an operand that must be of type T.
func computeAs[T value](o updateOperand, old document) (T, error) {
	var none T
	v, err := o.compute(old)
	if err != nil {
		return none, err
	}
	t, ok := v.(T)
	if !ok {
		return none, errUpdateType
	}
	return t, nil
}

func (s sum) compute(old document) (value, error) {
	l, err := computeAs[decimal](s.left, old)
	if err != nil {
		return nil, err
	}
	r, err := computeAs[decimal](s.right, old)
	if err != nil {
		return nil, err
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
	l, err := computeAs[list](c.left, old)
	if err != nil {
		return nil, err
	}
	r, err := computeAs[list](c.right, old)
	if err != nil {
		return nil, err
	}
	out := make(list, 0, len(l)+len(r))
	return append(append(out, l...), r...), nil
}

func (sum) staticKind() kind        { return kindN }
func (concat) staticKind() kind     { return kindL }
func (f fallback) staticKind() kind { return f.or.staticKind() }

// apply returns the item after the update; old is left as it is. All operands
// are computed before anything is placed. indexKeys are the attributes whose
// kind an index fixes.
func (u *updateExpression) apply(old document, indexKeys map[string]kind) (document, error) {
	values := make([]value, len(u.actions))
	for i, a := range u.actions {
		if a.value == nil {
			continue
		}
		var err error
		if values[i], err = a.value.compute(old); err != nil {
			return nil, err
		}
	}
	for i, a := range u.actions {
		if err := a.check(old, values[i], indexKeys); err != nil {
			return nil, err
		}
	}
	v, err := u.tree.update(old, values)
	if err != nil {
		return nil, err
	}
	return v.(document), nil
}

// check reports, before anything changes, whether the action fits the item: what
// contains its target must be there, and ADD and DELETE need a target of their
// operand's type, or none.
func (a *updateAction) check(old document, v value, indexKeys map[string]kind) error {
	last := a.path[len(a.path)-1]
	switch a.path[:len(a.path)-1].find(old).(type) {
	case document:
		if last.isIndex {
			return errUpdatePath
		}
	case list:
		if !last.isIndex {
			return errUpdatePath
		}
	default:
		return errUpdatePath
	}
	switch a.verb {
	case verbSet:
		if k, indexed := indexKeys[last.name]; indexed && len(a.path) == 1 && v.kind() != k {
			return errUpdateIndex
		}
	case verbAdd, verbDelete:
		if at := a.path.find(old); at != nil && at.kind() != v.kind() {
			return errUpdateType
		}
	}
	return nil
}

// update rebuilds the part of an item below one node of the tree. at is the
// value there now, nil when there is none; a nil result removes it. values are
// the operands of the actions.
func (t *pathTree) update(at value, values []value) (value, error) {
	switch {
	case t.action != nil:
		return t.action.result(at, values[t.action.index])
	case t.fields != nil:
		return t.updateMap(at.(document), values)
	default:
		return t.updateList(at.(list), values)
	}
}

func (t *pathTree) updateMap(d document, values []value) (value, error) {
	out := maps.Clone(d)
	for _, name := range sortedKeys(t.fields) {
		v, err := t.fields[name].update(d[name], values)
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
func (t *pathTree) updateList(l list, values []value) (value, error) {
	out := make(list, 0, len(l)+len(t.elems))
	for i, v := range l {
		if sub := t.elems[i]; sub != nil {
			var err error
			if v, err = sub.update(v, values); err != nil {
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
		v, err := t.elems[i].update(nil, values)
		if err != nil {
			return nil, err
		}
		if v != nil {
			out = append(out, v)
		}
	}
	return out, nil
}

// result is what the action leaves at its path, where at is now; check has
// passed.
func (a *updateAction) result(at, v value) (value, error) {
	switch {
	case a.verb == verbRemove:
		return nil, nil
	case a.verb == verbSet:
		return v, nil
	case at == nil && a.verb == verbAdd:
		return v, nil
	case at == nil:
		return nil, nil
	}
	if n, ok := v.(decimal); ok {
		return addNumbers(at.(decimal), n)
	}
	if a.verb == verbAdd {
		return at.(set).union(v.(set)), nil
	}
	if rest, some := at.(set).minus(v.(set)); some {
		return rest, nil
	}
	return nil, nil
}
