package dynamo

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxNesting is how deep lists and maps may nest inside an attribute.
const maxNesting = 32

// object is a decoded JSON object. Requests are read member by member rather
// than into structs because encoding/json matches names without regard to
// case, and DynamoDB does not.
type object map[string]any

// parseBody decodes one request.
func parseBody(raw []byte) (object, error) {
	if !utf8.Valid(raw) {
		return nil, malformed("The request body is not valid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var body any
	if err := dec.Decode(&body); err != nil {
		return nil, malformed("The request body is not valid JSON: %v", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, malformed("The request body has text after its JSON document")
	}
	o, ok := body.(map[string]any)
	if !ok {
		return nil, malformed("Unexpected token received from parser")
	}
	return o, nil
}

// decoder reads members of an object and remembers the first one whose JSON
// type is wrong. Absent and null members read as nil.
type decoder struct {
	err error
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// wrongType records that a member is not what the API declares.
func (d *decoder) wrongType(v any, want string) {
	switch v := v.(type) {
	case map[string]any:
		d.fail(malformed("Start of structure or map found where not expected."))
	case []any:
		d.fail(malformed("Start of list found where not expected"))
	case string:
		d.fail(malformed("STRING_VALUE cannot be converted to %s", want))
	case bool:
		d.fail(malformed("%s_VALUE cannot be converted to %s", strings.ToUpper(strconv.FormatBool(v)), want))
	default:
		d.fail(malformed("NUMBER_VALUE cannot be converted to %s", want))
	}
}

func (d *decoder) string(o object, name string) *string {
	switch v := o[name].(type) {
	case nil:
		return nil
	case string:
		return &v
	default:
		d.wrongType(v, "String")
		return nil
	}
}

// text is string with absence read as "".
func (d *decoder) text(o object, name string) string {
	if s := d.string(o, name); s != nil {
		return *s
	}
	return ""
}

func (d *decoder) bool(o object, name string) *bool {
	switch v := o[name].(type) {
	case nil:
		return nil
	case bool:
		return &v
	default:
		d.wrongType(v, "Boolean")
		return nil
	}
}

func (d *decoder) flag(o object, name string) bool {
	b := d.bool(o, name)
	return b != nil && *b
}

func (d *decoder) integer(o object, name string) *int64 {
	switch v := o[name].(type) {
	case nil:
		return nil
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return &n
		}
		if f, err := v.Float64(); err == nil && f >= -1<<53 && f <= 1<<53 {
			n := int64(f)
			return &n
		}
		d.fail(malformed("NUMBER_VALUE cannot be converted to Integer"))
	default:
		d.wrongType(v, "Integer")
	}
	return nil
}

func (d *decoder) object(o object, name string) object {
	switch v := o[name].(type) {
	case nil:
		return nil
	case map[string]any:
		return v
	case []any:
		d.fail(malformed("Unrecognized collection type class java.util.LinkedHashMap"))
	default:
		d.fail(malformed("Unexpected field type"))
	}
	return nil
}

// list returns nil when the member is absent and an empty slice when it is [].
func (d *decoder) list(o object, name string) []any {
	switch v := o[name].(type) {
	case nil:
		return nil
	case []any:
		return v
	case map[string]any:
		d.fail(malformed("Start of structure or map found where not expected."))
	default:
		d.fail(malformed("Unexpected field type"))
	}
	return nil
}

// objects is a list whose elements are objects.
func (d *decoder) objects(o object, name string) []object {
	raw := d.list(o, name)
	if raw == nil {
		return nil
	}
	out := make([]object, 0, len(raw))
	for _, e := range raw {
		m, ok := e.(map[string]any)
		if !ok {
			d.fail(malformed("Unexpected value type in payload"))
			return nil
		}
		out = append(out, m)
	}
	return out
}

func (d *decoder) strings(o object, name string) []string {
	raw := d.list(o, name)
	if raw == nil {
		return nil
	}
	out := make([]string, 0, len(raw))
	for _, e := range raw {
		s, ok := e.(string)
		if !ok {
			d.wrongType(e, "String")
			return nil
		}
		out = append(out, s)
	}
	return out
}

func (d *decoder) stringMap(o object, name string) map[string]string {
	raw := d.object(o, name)
	if raw == nil {
		return nil
	}
	out := make(map[string]string, len(raw))
	for k, v := range raw {
		s, ok := v.(string)
		if !ok {
			d.wrongType(v, "String")
			return nil
		}
		out[k] = s
	}
	return out
}

// attributes is a map of attribute values as a request gave it. Values of the
// wrong JSON type fail the decoder at once; values that break DynamoDB's own
// rules are reported by the operation, because other checks come before them.
type attributes struct {
	doc     document
	invalid error
	badName string // the attribute that invalid is about
}

// attributes returns nil when the member is absent.
func (d *decoder) attributes(o object, name string) *attributes {
	raw := d.object(o, name)
	if raw == nil {
		return nil
	}
	return d.attributeMap(raw)
}

func (d *decoder) attributeMap(raw object) *attributes {
	a := &attributes{doc: make(document, len(raw))}
	for _, name := range sortedKeys(raw) {
		v, err := parseValue(raw[name], 1)
		var e *apiError
		switch {
		case err == nil:
			a.doc[name] = v
		case errors.As(err, &e) && e.code == "SerializationException":
			d.fail(err)
			return nil
		case a.invalid == nil:
			a.invalid, a.badName = err, name
		}
	}
	return a
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// parseValue reads one wire value such as {"S":"x"}.
func parseValue(raw any, depth int) (value, error) {
	o, ok := raw.(map[string]any)
	if !ok {
		return nil, malformed("Unexpected value type in payload")
	}
	var found value
	var firstErr error
	n := 0
	for _, k := range allKinds {
		member := o[string(k)]
		if member == nil {
			continue
		}
		n++
		v, err := parseMember(k, member, depth)
		if err != nil {
			var e *apiError
			if errors.As(err, &e) && e.code == "SerializationException" {
				return nil, err
			}
			if firstErr == nil {
				firstErr = err
			}
		}
		found = v
	}
	switch {
	case n == 0:
		return nil, invalid("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
	case firstErr != nil:
		return nil, firstErr
	case n > 1:
		return nil, invalid("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes")
	}
	return found, nil
}

func parseMember(k kind, raw any, depth int) (value, error) {
	switch k {
	case kindS, kindN, kindB:
		return parseScalar(k, raw)
	case kindBool:
		b, ok := raw.(bool)
		if !ok {
			return nil, scalarTypeError(raw, "Boolean")
		}
		return boolean(b), nil
	case kindNull:
		b, ok := raw.(bool)
		if !ok {
			return nil, scalarTypeError(raw, "Boolean")
		}
		if !b {
			return nil, invalidParameter("Null attribute value types must have the value of true")
		}
		return null{}, nil
	case kindL:
		return parseList(raw, depth)
	case kindM:
		return parseMap(raw, depth)
	default:
		return parseSet(k, raw)
	}
}

func scalarTypeError(raw any, want string) error {
	var d decoder
	d.wrongType(raw, want)
	return d.err
}

func parseScalar(k kind, raw any) (value, error) {
	s, ok := raw.(string)
	if !ok {
		if k == kindB {
			return nil, scalarTypeError(raw, "Blob")
		}
		return nil, scalarTypeError(raw, "String")
	}
	switch k {
	case kindS:
		return text(s), nil
	case kindN:
		n, err := parseDecimal(s)
		if err != nil {
			return nil, invalid("%s", err.Error())
		}
		return n, nil
	default:
		b, err := base64.StdEncoding.Strict().DecodeString(s)
		if err != nil {
			return nil, malformed("The text of a Binary value is not base64: %v", err)
		}
		return blob(b), nil
	}
}

var errTooDeep = invalid("Nesting Levels have exceeded supported limits")

func parseList(raw any, depth int) (value, error) {
	elements, ok := raw.([]any)
	if !ok {
		return nil, malformed("Unexpected field type")
	}
	if depth >= maxNesting {
		return nil, errTooDeep
	}
	out := make(list, 0, len(elements))
	for _, e := range elements {
		v, err := parseValue(e, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func parseMap(raw any, depth int) (value, error) {
	members, ok := raw.(map[string]any)
	if !ok {
		return nil, malformed("Unexpected field type")
	}
	if depth >= maxNesting {
		return nil, errTooDeep
	}
	out := make(document, len(members))
	for _, name := range sortedKeys(members) {
		v, err := parseValue(members[name], depth+1)
		if err != nil {
			return nil, err
		}
		out[name] = v
	}
	return out, nil
}

func parseSet(k kind, raw any) (value, error) {
	elements, ok := raw.([]any)
	if !ok {
		return nil, malformed("Unexpected field type")
	}
	if len(elements) == 0 {
		switch k {
		case kindSS:
			return nil, invalidParameter("An string set  may not be empty")
		case kindNS:
			return nil, invalidParameter("An number set  may not be empty")
		}
		return nil, invalidParameter("Binary sets should not be empty")
	}
	out := set{of: k, members: make([]value, 0, len(elements))}
	seen := make(map[value]bool, len(elements))
	repeated := false
	for _, e := range elements {
		v, err := parseScalar(k.elementKind(), e)
		if err != nil {
			return nil, err
		}
		repeated = repeated || seen[v]
		seen[v] = true
		out.members = append(out.members, v)
	}
	if !repeated {
		return out, nil
	}
	shown := make([]string, len(elements))
	for i, e := range elements {
		shown[i], _ = e.(string)
	}
	switch all := "[" + strings.Join(shown, ", ") + "]"; k {
	case kindNS:
		return nil, invalid("Input collection contains duplicates")
	case kindBS:
		return nil, invalidParameter("Input collection %sof type BS contains duplicates.", all)
	default:
		return nil, invalidParameter("Input collection %s contains duplicates.", all)
	}
}
