package dynamo

import (
	"slices"
	"strings"
	"unicode/utf16"
)

// condition is a parsed ConditionExpression, FilterExpression or
// KeyConditionExpression, or a part of one.
type condition interface {
	holds(item document) bool
}

// operand is something a condition compares. Its value is nil when the item
// has nothing there.
type operand interface {
	in(item document) value
	// staticKind is the kind when it is known without an item, or "".
	staticKind() kind
}

type (
	attribute struct{ path path }
	literal   struct{ value value }
	// size is the size function; DynamoDB defines it for everything but
	// numbers, booleans and null.
	size struct{ of operand }
)

func (a attribute) in(item document) value { return a.path.find(item) }
func (attribute) staticKind() kind         { return "" }
func (l literal) in(document) value        { return l.value }
func (size) staticKind() kind              { return kindN }

func (l literal) staticKind() kind {
	if l.value == nil {
		return ""
	}
	return l.value.kind()
}

func (s size) in(item document) value {
	n := 0
	switch v := s.of.in(item).(type) {
	case text:
		// The service is written in Java: a string's length is in UTF-16 units.
		n = len(utf16.Encode([]rune(string(v))))
	case blob:
		n = len(v)
	case list:
		n = len(v)
	case document:
		n = len(v)
	case set:
		n = len(v.members)
	default:
		return nil
	}
	return wholeNumber(n)
}

// wholeNumber is a count as a number; counts fit the type, so parsing cannot
// fail.
func wholeNumber(n int) decimal {
	digits := []byte{}
	for ; n > 0; n /= 10 {
		digits = append(digits, byte('0'+n%10))
	}
	slices.Reverse(digits)
	d, _ := normalize(false, string(digits), len(digits))
	return d
}

type (
	both       struct{ left, right condition }
	either     struct{ left, right condition }
	negation   struct{ of condition }
	comparison struct {
		op          string
		left, right operand
	}
	between    struct{ of, low, high operand }
	membership struct {
		of operand
		in []operand
	}
	existence struct {
		path path
		want bool
	}
	typeTest struct {
		of   operand
		want kind
	}
	prefixTest      struct{ of, prefix operand }
	containmentTest struct{ of, member operand }
	// never stands in for a part that had a problem; it is not evaluated.
	never struct{}
)

func (c both) holds(item document) bool     { return c.left.holds(item) && c.right.holds(item) }
func (c either) holds(item document) bool   { return c.left.holds(item) || c.right.holds(item) }
func (c negation) holds(item document) bool { return !c.of.holds(item) }
func (never) holds(document) bool           { return false }

func (c comparison) holds(item document) bool {
	l, r := c.left.in(item), c.right.in(item)
	switch c.op {
	case "=":
		return l != nil && equal(l, r)
	case "<>":
		// An absent attribute differs from everything, even from another one:
		// unlike the other operators, <> holds for it.
		return l == nil || r == nil || !equal(l, r)
	}
	order, ok := compare(l, r)
	if !ok {
		return false
	}
	switch c.op {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	default:
		return order >= 0
	}
}

func (c between) holds(item document) bool {
	v := c.of.in(item)
	low, ok1 := compare(v, c.low.in(item))
	high, ok2 := compare(v, c.high.in(item))
	return ok1 && ok2 && low >= 0 && high <= 0
}

func (c membership) holds(item document) bool {
	v := c.of.in(item)
	return v != nil && slices.ContainsFunc(c.in, func(o operand) bool { return equal(v, o.in(item)) })
}

func (c existence) holds(item document) bool { return (c.path.find(item) != nil) == c.want }

func (c typeTest) holds(item document) bool {
	v := c.of.in(item)
	return v != nil && v.kind() == c.want
}

func (c prefixTest) holds(item document) bool {
	switch v := c.of.in(item).(type) {
	case text:
		p, ok := c.prefix.in(item).(text)
		return ok && strings.HasPrefix(string(v), string(p))
	case blob:
		p, ok := c.prefix.in(item).(blob)
		return ok && strings.HasPrefix(string(v), string(p))
	}
	return false
}

func (c containmentTest) holds(item document) bool {
	m := c.member.in(item)
	if m == nil {
		return false
	}
	switch v := c.of.in(item).(type) {
	case text:
		m, ok := m.(text)
		return ok && strings.Contains(string(v), string(m))
	case blob:
		m, ok := m.(blob)
		return ok && strings.Contains(string(v), string(m))
	case set:
		return m.kind() == v.of.elementKind() && v.has(m)
	case list:
		return slices.ContainsFunc(v, func(e value) bool { return equal(e, m) })
	}
	return false
}
