package dynamo

import (
	"errors"
	"strings"
)

// expressionInput is every expression parameter that one request, or one action
// of a transaction, may carry. Operations leave what they do not have at nil.
type expressionInput struct {
	update, condition, keyCondition, filter, projection *string
	names                                               map[string]string
	values                                              *attributes
}

// expressions are the parsed forms; absent ones are nil.
type expressions struct {
	update             *updateExpression
	condition          condition
	keyCondition       condition
	filter             condition
	filterMentions     mentions
	projection         *pathTree
	projectionMentions mentions
}

// expressionMember names an expression parameter and whether its text may
// refer to values.
type expressionMember struct {
	name      string
	source    func(*expressionInput) **string
	hasValues bool
}

var (
	updateMember = expressionMember{"UpdateExpression", func(in *expressionInput) **string { return &in.update }, true}
	condMember   = expressionMember{"ConditionExpression", func(in *expressionInput) **string { return &in.condition }, true}
	keyMember    = expressionMember{"KeyConditionExpression", func(in *expressionInput) **string { return &in.keyCondition }, true}
	filterMember = expressionMember{"FilterExpression", func(in *expressionInput) **string { return &in.filter }, true}
	projMember   = expressionMember{"ProjectionExpression", func(in *expressionInput) **string { return &in.projection }, false}
)

// readExpressions decodes the expression parameters that an operation has.
func (d *decoder) readExpressions(o object, members ...expressionMember) expressionInput {
	var in expressionInput
	values := false
	for _, m := range members {
		*m.source(&in) = d.string(o, m.name)
		values = values || m.hasValues
	}
	in.names = d.stringMap(o, "ExpressionAttributeNames")
	if values {
		in.values = d.attributes(o, "ExpressionAttributeValues")
	}
	return in
}

// checkParameters refuses placeholders without an expression, and the
// parameters that expressions replaced. DynamoDB still accepts those; this
// server does not, and says so.
func (in *expressionInput) checkParameters(o object, members []expressionMember, legacy ...string) error {
	var given, old, valued []string
	hasValued := false
	for _, m := range members {
		present := *m.source(in) != nil
		if present {
			given = append(given, m.name)
		}
		if m.hasValues {
			valued = append(valued, m.name)
			hasValued = hasValued || present
		}
	}
	for _, name := range legacy {
		if o[name] != nil {
			old = append(old, name)
		}
	}
	switch {
	case len(old) > 0 && len(given) > 0:
		return invalid("Can not use both expression and non-expression parameters in the same request: "+
			"Non-expression parameters: {%s} Expression parameters: {%s}", strings.Join(old, ", "), strings.Join(given, ", "))
	case len(old) > 0:
		return unsupported("The legacy parameter " + old[0])
	case in.names != nil && len(given) == 0:
		return invalid("ExpressionAttributeNames can only be specified when using expressions")
	case in.values != nil && !hasValued:
		verb := "is"
		if len(valued) > 1 {
			verb = "are"
		}
		return invalid("ExpressionAttributeValues can only be specified when using expressions: %s %s null",
			strings.Join(valued, " and "), verb)
	}
	return nil
}

// compile parses all expressions and checks the placeholders.
func (in *expressionInput) compile() (*expressions, error) {
	vars, err := in.placeholders()
	if err != nil {
		return nil, err
	}
	out := new(expressions)
	wrap := func(name string, err error) error {
		if err == nil {
			return nil
		}
		return invalid("Invalid %s: %s", name, err.Error())
	}
	if in.update != nil {
		out.update, err = parseUpdate(*in.update, vars)
		if err != nil {
			return nil, wrap("UpdateExpression", err)
		}
	}
	if in.condition != nil {
		if out.condition, _, err = parseCondition(*in.condition, vars); err != nil {
			return nil, wrap("ConditionExpression", err)
		}
	}
	if in.keyCondition != nil {
		if out.keyCondition, _, err = parseCondition(*in.keyCondition, vars); err != nil {
			return nil, wrap("KeyConditionExpression", err)
		}
	}
	if in.filter != nil {
		if out.filter, out.filterMentions, err = parseCondition(*in.filter, vars); err != nil {
			return nil, wrap("FilterExpression", err)
		}
	}
	if in.projection != nil {
		if out.projection, out.projectionMentions, err = parseProjection(*in.projection, vars); err != nil {
			return nil, wrap("ProjectionExpression", err)
		}
	}
	return out, vars.checkUsed()
}

// placeholders checks the maps of names and values themselves.
func (in *expressionInput) placeholders() (*placeholders, error) {
	if in.names != nil && len(in.names) == 0 {
		return nil, invalid("ExpressionAttributeNames must not be empty")
	}
	for _, key := range sortedKeys(in.names) {
		if !isPlaceholder('#', key) {
			return nil, invalid("ExpressionAttributeNames contains invalid key: Syntax error; key: %q", key)
		}
		if in.names[key] == "" {
			return nil, invalid("ExpressionAttributeNames contains invalid value for key: %s", key)
		}
	}
	vars := &placeholders{names: in.names, usedNames: make(map[string]bool), usedValues: make(map[string]bool)}
	if in.values == nil {
		return vars, nil
	}
	vars.values = in.values.doc
	if len(in.values.doc) == 0 && in.values.invalid == nil {
		return nil, invalid("ExpressionAttributeValues must not be empty")
	}
	for _, key := range sortedKeys(vars.values) {
		if !isPlaceholder(':', key) {
			return nil, invalid("ExpressionAttributeValues contains invalid key: Syntax error; key: %q", key)
		}
	}
	var e *apiError
	if errors.As(in.values.invalid, &e) {
		if !isPlaceholder(':', in.values.badName) {
			return nil, invalid("ExpressionAttributeValues contains invalid key: Syntax error; key: %q", in.values.badName)
		}
		return nil, invalid("ExpressionAttributeValues contains invalid value: %s for key %s", e.message, in.values.badName)
	}
	return vars, nil
}

func isPlaceholder(sigil byte, key string) bool {
	if len(key) < 2 || key[0] != sigil {
		return false
	}
	for i := 1; i < len(key); i++ {
		if !isWordByte(key[i]) {
			return false
		}
	}
	return true
}

// checkUsed refuses placeholders that no expression refers to.
func (p *placeholders) checkUsed() error {
	if unused := missingFrom(p.usedNames, sortedKeys(p.names)); unused != nil {
		return invalid("Value provided in ExpressionAttributeNames unused in expressions: keys: {%s}", strings.Join(unused, ", "))
	}
	if unused := missingFrom(p.usedValues, sortedKeys(p.values)); unused != nil {
		return invalid("Value provided in ExpressionAttributeValues unused in expressions: keys: {%s}", strings.Join(unused, ", "))
	}
	return nil
}

func missingFrom(used map[string]bool, keys []string) []string {
	var out []string
	for _, k := range keys {
		if !used[k] {
			out = append(out, k)
		}
	}
	return out
}
