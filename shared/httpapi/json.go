package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"claimcheck.dev/claimcheck/shared/files"
)

var (
	errInteger = errors.New("must be a whole number, written in digits")
	errRange   = errors.New("is out of range")

	errSurrogate = errors.New("must not contain unpaired surrogates")
)

// Object is a JSON object whose members are taken one by one. Every problem is collected, so a client learns of all
// of them at once; Err also reports the members that nobody took.
type Object struct {
	bad     files.ValidationError
	members map[string]json.RawMessage
	order   []string
	taken   map[string]bool
}

// parseObject reads one JSON object strictly: valid UTF-8, no repeated names at any depth, nothing after it.
func parseObject(data []byte) (*Object, error) {
	if !utf8.Valid(data) {
		return nil, files.Invalid("body", "must be JSON in UTF-8")
	}
	if err := checkJSON(data); err != nil {
		return nil, err
	}
	o := &Object{members: map[string]json.RawMessage{}, taken: map[string]bool{}}
	if !bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
		return nil, files.Invalid("body", "must be a JSON object")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.Token() // the opening brace; checkJSON has read it all
	for dec.More() {
		name, _ := dec.Token()
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, files.Invalid("body", "must be valid JSON")
		}
		o.order = append(o.order, name.(string))
		o.members[name.(string)] = raw
	}
	return o, nil
}

// checkJSON walks a whole document, looking for syntax errors, repeated names and trailing data.
func checkJSON(data []byte) error {
	invalid := files.Invalid("body", "must be valid JSON")
	if !json.Valid(data) { // also bounds the nesting depth
		return invalid
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	type level struct {
		names map[string]bool // nil in arrays
		key   bool            // the next token is a member name
	}
	var stack []level
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return invalid
		}
		switch t := tok.(type) {
		case json.Delim:
			switch t {
			case '{':
				stack = append(stack, level{names: map[string]bool{}, key: true})
				continue
			case '[':
				stack = append(stack, level{})
				continue
			}
			stack = stack[:len(stack)-1]
		case string:
			if top := len(stack) - 1; top >= 0 && stack[top].key {
				if stack[top].names[t] {
					return files.Invalid(printable(t), "appears twice in one object")
				}
				stack[top].names[t] = true
				stack[top].key = false
				continue
			}
		}
		if top := len(stack) - 1; top >= 0 && stack[top].names != nil {
			stack[top].key = true
		}
	}
}

func (o *Object) take(name string) (json.RawMessage, bool) {
	o.taken[name] = true
	raw, ok := o.members[name]
	if ok && string(raw) == "null" {
		o.bad.Add(name, "must not be null; leave it out instead")
		return nil, false
	}
	return raw, ok
}

// Has reports whether the member was sent.
func (o *Object) Has(name string) bool { _, ok := o.members[name]; return ok }

// Err returns every problem found, members that nobody took included, or nil.
func (o *Object) Err() error {
	for _, name := range o.order {
		if !o.taken[name] {
			o.bad.Add(printable(name), "is not a field of this request")
		}
	}
	return o.bad.Err()
}

// String returns a member that is a string, "" when it wasn't sent.
func (o *Object) String(name string) string {
	raw, ok := o.take(name)
	if !ok {
		return ""
	}
	s, err := decodeString(raw)
	if err != nil {
		o.bad.Add(name, err.Error())
	}
	return s
}

// Required is String for a member that must be sent.
func (o *Object) Required(name string) string {
	if o.missing(name) {
		return ""
	}
	return o.String(name)
}

// missing reports, and records, that a member that must be sent wasn't, or is null.
func (o *Object) missing(name string) bool {
	raw, sent := o.members[name]
	switch {
	case !sent:
		o.bad.Add(name, "is required")
	case string(raw) == "null":
		o.bad.Add(name, "is required and must not be null")
	default:
		return false
	}
	o.taken[name] = true
	return true
}

// Optional is String for a member that, when sent, must not be empty.
func (o *Object) Optional(name string) string {
	before := len(o.bad.Fields)
	s := o.String(name)
	if raw, sent := o.members[name]; sent && s == "" && len(raw) > 0 && len(o.bad.Fields) == before {
		o.bad.Add(name, "must not be empty; leave it out instead")
	}
	return s
}

func decodeString(raw json.RawMessage) (string, error) {
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", errors.New("must be a string")
	}
	if !pairedSurrogates(raw) {
		return "", errSurrogate
	}
	return s, nil
}

// pairedSurrogates reports whether every \u escape of a surrogate in raw, valid JSON, is one half of a pair. An unpaired
// one decodes to U+FFFD without an error, so something else than was sent would be stored.
func pairedSurrogates(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++ // at the escaped character
		if raw[i] != 'u' {
			continue
		}
		r := escaped(raw[i+1:])
		i += 4
		if !utf16.IsSurrogate(r) {
			continue
		}
		if i+6 >= len(raw) || raw[i+1] != '\\' || raw[i+2] != 'u' || utf16.DecodeRune(r, escaped(raw[i+3:])) == utf8.RuneError {
			return false
		}
		i += 6
	}
	return true
}

// escaped is the value of the four hex digits at the start of b.
func escaped(b []byte) rune {
	n, _ := strconv.ParseUint(string(b[:4]), 16, 16)
	return rune(n)
}

// Int returns a member that is a whole number, nil when it wasn't sent.
func (o *Object) Int(name string) *int64 {
	raw, ok := o.take(name)
	if !ok {
		return nil
	}
	n, err := parseInteger(string(raw))
	if err != nil {
		o.bad.Add(name, err.Error())
		return nil
	}
	return &n
}

// Bool returns a member that is true or false; false when it wasn't sent.
func (o *Object) Bool(name string) bool {
	raw, ok := o.take(name)
	if ok && string(raw) != "true" && string(raw) != "false" {
		o.bad.Add(name, "must be true or false")
	}
	return string(raw) == "true"
}

// Time returns a member that is an RFC 3339 time, in whole seconds UTC; the zero time when it wasn't sent. Times that
// can't be told from that, or have no four-digit year in UTC and so could never be shown again, are out of range.
func (o *Object) Time(name string) time.Time {
	if !o.Has(name) {
		o.taken[name] = true
		return time.Time{}
	}
	before := len(o.bad.Fields)
	s := o.String(name)
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		if len(o.bad.Fields) == before {
			o.bad.Add(name, "must be a time such as 2026-01-31T12:00:00Z (RFC 3339)")
		}
		return time.Time{}
	}
	t = t.UTC().Truncate(time.Second)
	if t.IsZero() || t.Year() < 0 || t.Year() > 9999 {
		o.bad.Add(name, errRange.Error())
		return time.Time{}
	}
	return t
}

// Strings returns a member that is an array of strings, nil when it wasn't sent.
func (o *Object) Strings(name string) []string {
	raw, ok := o.take(name)
	if !ok {
		return nil
	}
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		o.bad.Add(name, "must be an array of strings")
		return nil
	}
	out := make([]string, 0, len(items))
	for i, item := range items {
		s, err := decodeString(item)
		if err != nil {
			o.bad.Add(fmt.Sprintf("%s[%d]", name, i), err.Error())
		}
		out = append(out, s)
	}
	return out
}

// StringMap returns a member that is an object of strings; nil when it wasn't sent.
func (o *Object) StringMap(name string) map[string]string {
	raw, ok := o.take(name)
	if !ok {
		return nil
	}
	var items map[string]json.RawMessage
	if raw[0] != '{' || json.Unmarshal(raw, &items) != nil {
		o.bad.Add(name, "must be an object of strings")
		return nil
	}
	out := make(map[string]string, len(items))
	if !pairedSurrogates(raw) {
		o.bad.Add(name, errSurrogate.Error())
		return nil
	}
	for _, k := range sortedKeys(items) {
		s, err := decodeString(items[k])
		if err != nil {
			o.bad.Add(name+"."+printable(k), err.Error())
		}
		out[k] = s
	}
	return out
}

// Raw returns a member that is an object, as it was sent; nil, with the problem recorded, when it isn't there.
func (o *Object) Raw(name string) json.RawMessage {
	if o.missing(name) {
		return nil
	}
	raw, _ := o.take(name)
	if raw[0] != '{' {
		o.bad.Add(name, "must be an object")
		return nil
	}
	return raw
}
