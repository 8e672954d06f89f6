package dynamo

import (
	"encoding/base64"
	"encoding/json"
	"errors"
)

// documentReader reads back what appendDocument wrote. Opening a folder is
// mostly this, so it does not go through decoded JSON as requests do; it takes
// JSON in the form in which this package writes it, and nothing else.
type documentReader struct {
	src    []byte
	broken bool
}

var errBadDocument = errors.New("not an item as this package writes it")

// UnmarshalJSON reads an item of the journal.
func (d *document) UnmarshalJSON(raw []byte) error {
	r := documentReader{src: raw}
	out := r.document()
	if r.broken || len(r.src) > 0 {
		return errBadDocument
	}
	*d = out
	return nil
}

// accept consumes the text if it comes next.
func (r *documentReader) accept(text string) bool {
	if len(r.src) >= len(text) && string(r.src[:len(text)]) == text {
		r.src = r.src[len(text):]
		return true
	}
	return false
}

func (r *documentReader) expect(text string) {
	if !r.accept(text) {
		r.broken = true
	}
}

// string reads a JSON string.
func (r *documentReader) string() string {
	r.expect(`"`)
	if r.broken {
		return ""
	}
	escaped := false
	for i := 0; i < len(r.src); i++ {
		switch r.src[i] {
		case '\\':
			escaped = true
			i++
		case '"':
			text := r.src[:i]
			r.src = r.src[i+1:]
			if !escaped {
				return string(text)
			}
			var out string
			quoted := append(append([]byte{'"'}, text...), '"')
			if json.Unmarshal(quoted, &out) != nil {
				r.broken = true
			}
			return out
		}
	}
	r.broken = true
	return ""
}

// list reads elements up to the closing bracket.
func (r *documentReader) list(open, end string, element func()) {
	r.expect(open)
	for first := true; !r.broken && !r.accept(end); first = false {
		if !first {
			r.expect(",")
		}
		element()
	}
}

func (r *documentReader) document() document {
	out := make(document)
	r.list("{", "}", func() {
		name := r.string()
		r.expect(":")
		out[name] = r.value()
	})
	return out
}

// value reads {"KIND":...}.
func (r *documentReader) value() value {
	r.expect("{")
	k := kind(r.string())
	r.expect(":")
	var out value
	switch k {
	case kindBool:
		out = boolean(r.accept("true"))
		if out == boolean(false) {
			r.expect("false")
		}
	case kindNull:
		r.expect("true")
		out = null{}
	case kindL:
		l := list{}
		r.list("[", "]", func() { l = append(l, r.value()) })
		out = l
	case kindM:
		out = r.document()
	case kindSS, kindNS, kindBS:
		s := set{of: k}
		r.list("[", "]", func() { s.members = append(s.members, r.scalar(k.elementKind())) })
		out = s
	default:
		out = r.scalar(k)
	}
	r.expect("}")
	return out
}

func (r *documentReader) scalar(k kind) value {
	raw := r.string()
	switch k {
	case kindS:
		return text(raw)
	case kindN:
		n, err := parseDecimal(raw)
		r.broken = r.broken || err != nil
		return n
	case kindB:
		b, err := base64.StdEncoding.DecodeString(raw)
		r.broken = r.broken || err != nil
		return blob(b)
	}
	r.broken = true
	return nil
}
