package dynamo

import (
	"encoding/base64"
	"slices"
	"strings"
)

// kind is the type of an attribute value, spelled as on the wire.
type kind string

const (
	kindS    kind = "S"
	kindN    kind = "N"
	kindB    kind = "B"
	kindBool kind = "BOOL"
	kindNull kind = "NULL"
	kindL    kind = "L"
	kindM    kind = "M"
	kindSS   kind = "SS"
	kindNS   kind = "NS"
	kindBS   kind = "BS"
)

// allKinds is the order in which a wire value's members are examined.
var allKinds = []kind{kindS, kindN, kindB, kindSS, kindNS, kindBS, kindM, kindL, kindNull, kindBool}

// value is one attribute value. Values are never changed once built: items in
// tables, indexes, stream records and answers share them.
type value interface {
	kind() kind
}

type (
	text     string
	blob     string // raw bytes
	boolean  bool
	null     struct{}
	list     []value
	document map[string]value
)

// set is a non-empty collection of distinct text, decimal or binary values.
type set struct {
	of      kind // kindSS, kindNS or kindBS
	members []value
}

func (text) kind() kind     { return kindS }
func (decimal) kind() kind  { return kindN }
func (blob) kind() kind     { return kindB }
func (boolean) kind() kind  { return kindBool }
func (null) kind() kind     { return kindNull }
func (list) kind() kind     { return kindL }
func (document) kind() kind { return kindM }
func (s set) kind() kind    { return s.of }

// elementKind is the kind of the members of a set kind.
func (k kind) elementKind() kind {
	switch k {
	case kindSS:
		return kindS
	case kindNS:
		return kindN
	case kindBS:
		return kindB
	}
	return ""
}

// equal reports whether two values are the same; sets ignore order.
func equal(a, b value) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	if a.kind() != b.kind() {
		return false
	}
	switch a := a.(type) {
	case list:
		return slices.EqualFunc(a, b.(list), equal)
	case document:
		b := b.(document)
		if len(a) != len(b) {
			return false
		}
		for name, v := range a {
			if w, ok := b[name]; !ok || !equal(v, w) {
				return false
			}
		}
		return true
	case set:
		b := b.(set)
		if len(a.members) != len(b.members) {
			return false
		}
		for _, m := range a.members {
			if !b.has(m) {
				return false
			}
		}
		return true
	}
	return a == b
}

// compare orders two values of the same scalar kind; ok is false for values
// that have no order between them.
func compare(a, b value) (order int, ok bool) {
	switch a := a.(type) {
	case text:
		if b, ok := b.(text); ok {
			return strings.Compare(string(a), string(b)), true
		}
	case blob:
		if b, ok := b.(blob); ok {
			return strings.Compare(string(a), string(b)), true
		}
	case decimal:
		if b, ok := b.(decimal); ok {
			return a.compare(b), true
		}
	}
	return 0, false
}

func (s set) has(v value) bool {
	return slices.Contains(s.members, v)
}

// union and minus return a new set; minus returns false when nothing is left,
// because DynamoDB has no empty sets.
func (s set) union(o set) set {
	members := slices.Clone(s.members)
	for _, m := range o.members {
		if !s.has(m) {
			members = append(members, m)
		}
	}
	return set{of: s.of, members: members}
}

func (s set) minus(o set) (set, bool) {
	var members []value
	for _, m := range s.members {
		if !o.has(m) {
			members = append(members, m)
		}
	}
	return set{of: s.of, members: members}, len(members) > 0
}

// sizeOf is the size of a value in bytes as DynamoDB's documentation counts it
// for the 400 KB limit and for capacity units.
func sizeOf(v value) int {
	switch v := v.(type) {
	case text:
		return len(v)
	case blob:
		return len(v)
	case decimal:
		return v.size()
	case boolean, null:
		return 1
	case list:
		n := 3
		for _, e := range v {
			n += sizeOf(e) + 1
		}
		return n
	case document:
		n := 3
		for name, e := range v {
			n += len(name) + sizeOf(e) + 1
		}
		return n
	case set:
		n := 0
		for _, m := range v.members {
			n += sizeOf(m)
		}
		return n
	}
	return 0
}

// itemSize is the size of a whole item: names and values.
func itemSize(item document) int {
	n := 0
	for name, v := range item {
		n += len(name) + sizeOf(v)
	}
	return n
}

// MarshalJSON writes the item as a JSON object of wire values.
func (d document) MarshalJSON() ([]byte, error) {
	return appendDocument(nil, d), nil
}

// appendDocument writes attributes in name order, so that equal items are equal
// bytes.
func appendDocument(b []byte, d document) []byte {
	names := make([]string, 0, len(d))
	for name := range d {
		names = append(names, name)
	}
	slices.Sort(names)
	b = append(b, '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, name)
		b = append(b, ':')
		b = appendValue(b, d[name])
	}
	return append(b, '}')
}

func appendValue(b []byte, v value) []byte {
	b = append(b, `{"`...)
	b = append(b, v.kind()...)
	b = append(b, `":`...)
	switch v := v.(type) {
	case boolean:
		if v {
			b = append(b, "true"...)
		} else {
			b = append(b, "false"...)
		}
	case null:
		b = append(b, "true"...)
	case list:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, e)
		}
		b = append(b, ']')
	case document:
		b = appendDocument(b, v)
	case set:
		b = append(b, '[')
		for i, m := range v.members {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendScalar(b, m)
		}
		b = append(b, ']')
	default:
		b = appendScalar(b, v)
	}
	return append(b, '}')
}

// appendScalar writes the JSON string for a text, number or binary value.
func appendScalar(b []byte, v value) []byte {
	switch v := v.(type) {
	case text:
		return appendString(b, string(v))
	case decimal:
		b = append(b, '"')
		b = append(b, v.String()...)
		return append(b, '"')
	case blob:
		b = append(b, '"')
		b = base64.StdEncoding.AppendEncode(b, []byte(v))
		return append(b, '"')
	}
	return append(b, "null"...)
}

// appendString writes a JSON string. The text is valid UTF-8: the JSON decoder
// it came through guarantees that.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < 0x20:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
