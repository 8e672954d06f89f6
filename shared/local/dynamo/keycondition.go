package dynamo

// keyTest is what a KeyConditionExpression says about one attribute.
type keyTest struct {
	op     string // = < <= > >= BETWEEN begins_with
	values []value
}

// mirrored operators: a < :b is :b > a.
var mirrored = map[string]string{"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

// keyTests takes a key condition apart into one test per attribute. Conditions
// that a query cannot answer from the key are errors.
func keyTests(c condition) (map[string]keyTest, error) {
	out := make(map[string]keyTest)
	if err := collectKeyTests(c, out); err != nil {
		return nil, err
	}
	if len(out) > 2 {
		return nil, invalid("Conditions can be of length 1 or 2 only")
	}
	return out, nil
}

func collectKeyTests(c condition, out map[string]keyTest) error {
	wrongOperator := func(name string) error {
		return invalid("Invalid operator used in KeyConditionExpression: %s", name)
	}
	switch c := c.(type) {
	case both:
		if err := collectKeyTests(c.left, out); err != nil {
			return err
		}
		return collectKeyTests(c.right, out)
	case comparison:
		if c.op == "<>" {
			return wrongOperator("<>")
		}
		if _, swapped := c.right.(attribute); swapped {
			if _, two := c.left.(attribute); !two {
				return addKeyTest(out, mirrored[c.op], c.right, c.left)
			}
		}
		return addKeyTest(out, c.op, c.left, c.right)
	case between:
		if _, ok := c.of.(attribute); !ok {
			return invalid("Invalid condition in KeyConditionExpression: BETWEEN operator must have the key attribute as its first operand")
		}
		return addKeyTest(out, "BETWEEN", c.of, c.low, c.high)
	case prefixTest:
		if _, ok := c.of.(attribute); !ok {
			return invalid("Invalid condition in KeyConditionExpression: begins_with operator must have the key attribute as its first operand")
		}
		return addKeyTest(out, "begins_with", c.of, c.prefix)
	case either:
		return wrongOperator("OR")
	case negation:
		return wrongOperator("NOT")
	case membership:
		return wrongOperator("IN")
	case existence:
		if c.want {
			return wrongOperator("attribute_exists")
		}
		return wrongOperator("attribute_not_exists")
	case typeTest:
		return wrongOperator("attribute_type")
	case containmentTest:
		return wrongOperator("contains")
	}
	return invalid("Invalid condition in KeyConditionExpression: No key attribute specified")
}

func addKeyTest(out map[string]keyTest, op string, first operand, rest ...operand) error {
	for _, o := range append(rest, first) {
		if _, nested := o.(size); nested {
			return invalid("KeyConditionExpressions cannot contain nested operations")
		}
	}
	a, ok := first.(attribute)
	if !ok {
		return invalid("Invalid condition in KeyConditionExpression: No key attribute specified")
	}
	test := keyTest{op: op}
	for _, o := range rest {
		l, ok := o.(literal)
		if !ok {
			return invalid("Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition")
		}
		test.values = append(test.values, l.value)
	}
	if len(a.path) > 1 {
		return invalid("KeyConditionExpressions cannot have conditions on nested attributes")
	}
	name := a.path[0].name
	if _, twice := out[name]; twice {
		return invalid("KeyConditionExpressions must only contain one condition per key")
	}
	out[name] = test
	return nil
}

// rangeFor turns the tests into a range of ordering keys under a schema.
func (s keySchema) rangeFor(tests map[string]keyTest) (keyRange, error) {
	partition, ok := tests[s.partition.name]
	if !ok {
		return keyRange{}, invalid("Query condition missed key schema element: %s", s.partition.name)
	}
	var sort *keyTest
	if len(tests) == 2 {
		if s.sort.name == "" {
			return keyRange{}, invalid("Query key condition not supported")
		}
		t, ok := tests[s.sort.name]
		if !ok {
			return keyRange{}, invalid("Query condition missed key schema element: %s", s.sort.name)
		}
		sort = &t
	}
	if partition.op != "=" {
		return keyRange{}, invalid("Query key condition not supported")
	}
	if err := checkTest(s.partition, partition); err != nil {
		return keyRange{}, err
	}
	prefix := string(partitionPrefix(partition.values[0]))
	if sort == nil {
		return keyRange{prefix, after(prefix)}, nil
	}
	if err := checkTest(s.sort, *sort); err != nil {
		return keyRange{}, err
	}
	return sort.within(prefix), nil
}

func checkTest(a keyAttribute, t keyTest) error {
	for _, v := range t.values {
		if v.kind() != a.kind {
			return invalidParameter("Condition parameter type does not match schema type")
		}
		if what := emptyKeyText(v); what != "" && t.op != "begins_with" {
			return invalid("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain %s. Key: %s", what, a.name)
		}
	}
	if t.op == "begins_with" && a.kind == kindN {
		return invalid("Query key condition not supported")
	}
	return nil
}

// within is the range of a sort key test inside one partition.
func (t keyTest) within(prefix string) keyRange {
	at := func(v value) string { return string(appendPart([]byte(prefix), sortable(v))) }
	first := t.values[0]
	switch t.op {
	case "=":
		return keyRange{at(first), after(at(first))}
	case "<":
		return keyRange{prefix, at(first)}
	case "<=":
		return keyRange{prefix, after(at(first))}
	case ">":
		return keyRange{after(at(first)), after(prefix)}
	case ">=":
		return keyRange{at(first), after(prefix)}
	case "BETWEEN":
		return keyRange{at(first), after(at(t.values[1]))}
	default: // begins_with
		low := string(appendEscaped([]byte(prefix), sortable(first)))
		return keyRange{low, after(low)}
	}
}
