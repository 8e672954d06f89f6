package main

import (
	"fmt"
	"strconv"
	"strings"
)

// expression collects the placeholders of the expressions of one request.
type expression struct {
	*generator
	names  map[string]string
	values object
}

func (g *generator) newExpression() *expression {
	return &expression{generator: g, names: make(map[string]string), values: make(object)}
}

// addTo puts the placeholders into the request, rarely with one too many or one
// too few.
func (e *expression) addTo(body object) {
	if e.chance(80) {
		e.values[":unused"] = e.anyValue()
	}
	if e.chance(80) {
		e.names["#unused"] = "a"
	}
	if e.chance(80) {
		clear(e.values)
	}
	if len(e.names) > 0 {
		body["ExpressionAttributeNames"] = e.names
	}
	if len(e.values) > 0 {
		body["ExpressionAttributeValues"] = e.values
	}
}

func (e *expression) bind(v object) string {
	name := ":v" + strconv.Itoa(len(e.values))
	e.values[name] = v
	return name
}

func (e *expression) name(plain string) string {
	if e.chance(3) {
		name := "#n_" + strings.NewReplacer("-", "_").Replace(plain)
		e.names[name] = plain
		return name
	}
	return plain
}

// path is an attribute or something in it.
func (e *expression) path() string {
	p := e.name(pick(e.generator, "a", "b", "c", "d", "l", "m", "n", "s", "zz"))
	if e.chance(60) {
		p = pick(e.generator, "status", "pk", "sk", "#undefined", "size")
	}
	for e.chance(3) {
		if e.chance(2) {
			p += fmt.Sprintf("[%d]", e.IntN(4))
		} else {
			p += "." + pick(e.generator, "a", "b", "c")
		}
	}
	return p
}

func (e *expression) projection() string {
	paths := []string{e.path()}
	for range e.IntN(3) {
		paths = append(paths, e.path())
	}
	return strings.Join(paths, ", ")
}

func (e *expression) operand() string {
	switch e.IntN(8) {
	case 0:
		return "size(" + e.path() + ")"
	case 1, 2, 3:
		return e.bind(e.valueOf(flat...))
	default:
		return e.path()
	}
}

// flat are the kinds that dynalite compares by their contents; it never finds two
// lists or maps equal.
var flat = []string{"S", "N", "B", "SS", "NS", "BS"}

// operandOf is operand with placeholders of these kinds only: DynamoDB refuses
// others where an order is needed, and dynalite does not.
func (e *expression) operandOf(kinds ...string) string {
	switch e.IntN(8) {
	case 0:
		return "size(" + e.path() + ")"
	case 1:
		return e.bind(e.valueOf(kinds...))
	default:
		return e.path()
	}
}

// condition compares with placeholders, because dynalite takes two absent
// attributes for equal, and does not stack NOT, which it cannot parse.
func (e *expression) condition(depth int) string {
	if depth > 0 && e.chance(2) {
		switch e.IntN(5) {
		case 0:
			return "NOT " + e.condition(0)
		case 1:
			return "(" + e.condition(depth-1) + ")"
		case 2, 3:
			return e.condition(depth-1) + pick(e.generator, " AND ", " and ") + e.condition(depth-1)
		default:
			return e.condition(depth-1) + " OR " + e.condition(depth-1)
		}
	}
	switch e.IntN(12) {
	case 0:
		return "attribute_exists(" + e.path() + ")"
	case 1:
		return "attribute_not_exists(" + e.path() + ")"
	case 2:
		return "attribute_type(" + e.path() + ", " + e.bind(object{"S": pick(e.generator, "S", "N", "B", "L", "M", "SS", "NS", "BOOL", "NULL", "X")}) + ")"
	case 3:
		return "begins_with(" + e.path() + ", " + e.bind(e.valueOf("S")) + ")" // dynalite reads binary prefixes as UTF-8
	case 4:
		return "contains(" + e.path() + ", " + e.operand() + ")"
	case 5:
		return e.operand() + " IN (" + e.bind(e.valueOf(flat...)) + ", " + e.bind(e.valueOf(flat...)) + ")"
	case 6:
		return e.operandOf("S", "N", "B") + " BETWEEN " + e.bind(e.valueOf("S", "N", "B")) + " AND " + e.bind(e.valueOf("S", "N", "B"))
	case 7:
		if e.chance(6) {
			return pick(e.generator, "", "a", "a =", "= :v", "nofunc(a)", "size(a)", "attribute_exists(:v0)", "begins_with(a)", "a = b = c", "(a", "!", "attribute_exists(a) = b")
		}
		fallthrough
	default:
		if e.chance(2) {
			return e.operand() + pick(e.generator, " = ", " = ", " <> ") + e.bind(e.valueOf(flat...))
		}
		return e.operandOf("S", "N", "B") + pick(e.generator, " < ", "<=", " > ", ">=") + e.bind(e.valueOf("S", "N", "B"))
	}
}

// valueOf is a value of one of the kinds.
func (e *expression) valueOf(kinds ...string) object {
	switch pick(e.generator, kinds...) {
	case "S":
		return object{"S": e.text()}
	case "B":
		return object{"B": e.bytes()}
	case "N":
		return object{"N": e.number()}
	case "SS":
		return object{"SS": e.distinct(3, e.text)}
	case "BS":
		return object{"BS": e.distinct(3, e.bytes)}
	case "NS":
		return object{"NS": e.distinct(3, e.small)}
	default:
		return object{"L": []object{e.value(1), e.value(1)}}
	}
}

// update copies from a path only in an action of its own and to an attribute of
// its own: dynalite lets the copy share what a second action then changes, and
// falls over a value that contains itself.
func (e *expression) update() string {
	if e.chance(60) {
		return pick(e.generator, "", "SET", "SET a", "SET a = b + c + d", "ADD a b", "MOVE a", "SET a = :v0,", "REMOVE a REMOVE b")
	}
	if e.chance(4) {
		return "SET " + e.name("e") + " = " + e.copied()
	}
	var sections []string
	for range pick(e.generator, 1, 1, 2) {
		verb := pick(e.generator, "SET", "SET", "SET", "REMOVE", "ADD", "DELETE", "set")
		var actions []string
		for range 1 + e.IntN(3) {
			actions = append(actions, e.action(verb))
		}
		sections = append(sections, verb+" "+strings.Join(actions, ", "))
	}
	return strings.Join(sections, " ")
}

func (e *expression) action(verb string) string {
	switch verb {
	case "REMOVE":
		return e.path()
	case "ADD":
		return e.name(pick(e.generator, "n", "s", "c", "d", "m.a")) + " " + e.bind(e.valueOf("N", "N", "SS", "NS", "BS", "S"))
	case "DELETE":
		return e.name(pick(e.generator, "s", "c", "d", "m.a")) + " " + e.bind(e.valueOf("SS", "NS", "BS", "N"))
	}
	if e.chance(3) {
		return e.path() + " = " + e.term() + pick(e.generator, " + ", " - ", "-") + e.term()
	}
	return e.path() + " = " + e.bind(e.anyValue())
}

// term is one side of a sum.
func (e *expression) term() string {
	if e.chance(3) {
		return "if_not_exists(" + e.path() + ", " + e.bind(object{"N": e.small()}) + ")"
	}
	if e.chance(2) {
		return e.name("n")
	}
	return e.bind(object{"N": e.small()})
}

func (e *expression) copied() string {
	switch e.IntN(3) {
	case 0:
		return e.path()
	case 1:
		return "if_not_exists(" + e.path() + ", " + e.operandForUpdate() + ")"
	default:
		return "list_append(" + e.operandForUpdate() + ", " + e.bind(e.valueOf("L", "L", "L", "S")) + ")"
	}
}

func (e *expression) operandForUpdate() string {
	if e.chance(2) {
		return e.path()
	}
	return e.bind(e.anyValue())
}
