package dynamo

import (
	"fmt"
	"slices"
	"strings"
)

const maxInOperands = 100

// term is what a part of a condition turned out to be: a condition or an
// operand. After a syntax error it may be neither.
type term struct {
	cond     condition
	op       operand
	function string // its name, when the term is a function call
	parens   bool   // the term is enclosed in parentheses
}

// parseCondition reads a condition.
func parseCondition(src string, vars *placeholders) (condition, mentions, error) {
	p := newParser(src, vars)
	c := p.asCondition(p.disjunction())
	p.expectEnd()
	return c, p.mentions, p.err()
}

func (p *parser) disjunction() term {
	t := p.conjunction()
	for p.acceptKeyword("OR") {
		p.operators++
		left := p.asCondition(t)
		t = term{cond: either{left, p.asCondition(p.conjunction())}}
	}
	return t
}

func (p *parser) conjunction() term {
	t := p.inversion()
	for p.acceptKeyword("AND") {
		p.operators++
		left := p.asCondition(t)
		t = term{cond: both{left, p.asCondition(p.inversion())}}
	}
	return t
}

func (p *parser) inversion() term {
	if p.acceptKeyword("NOT") {
		p.operators++
		return term{cond: negation{p.asCondition(p.inversion())}}
	}
	return p.relation()
}

// relation reads an operand alone, or with what it is compared to.
func (p *parser) relation() term {
	t := p.comparison()
	if t.cond != nil && !t.parens {
		p.closeRelation()
	}
	return t
}

func (p *parser) comparison() term {
	first := p.primary()
	t := p.peek()
	switch {
	case t.kind == tokenSymbol && slices.Contains([]string{"=", "<>", "<", "<=", ">", ">="}, t.text):
		p.next()
		p.operators++
		left, right := p.asOperand(first), p.asOperand(p.primary())
		p.checkDistinct(t.text, left, right)
		if t.text != "=" && t.text != "<>" {
			p.checkOrdered(t.text, left, right)
		}
		return term{cond: comparison{t.text, left, right}}
	case t.keyword("BETWEEN"):
		p.next()
		p.operators++
		of, low := p.asOperand(first), p.asOperand(p.primary())
		if !p.acceptKeyword("AND") {
			p.unexpected()
		}
		high := p.asOperand(p.primary())
		p.checkBounds(of, low, high)
		return term{cond: between{of, low, high}}
	case t.keyword("IN"):
		p.next()
		p.operators++
		return p.membership(p.asOperand(first))
	}
	return first
}

func (p *parser) membership(of operand) term {
	p.expect("(")
	m := membership{of: of}
	for {
		m.in = append(m.in, p.asOperand(p.primary()))
		if !p.accept(",") {
			break
		}
	}
	p.expect(")")
	if len(m.in) > maxInOperands {
		p.problem(rankCount, "Incorrect number of operands for operator or function; operator or function: IN, number of operands: %d", len(m.in)+1)
	}
	return term{cond: m}
}

// primary reads a path, a placeholder, a function call or something in
// parentheses.
func (p *parser) primary() term {
	t := p.peek()
	switch {
	case p.accept("("):
		inner := p.disjunction()
		p.expect(")")
		if inner.parens {
			p.problem(rankParens, "The expression has redundant parentheses;")
		}
		inner.parens = true
		return inner
	case t.kind == tokenValue:
		return term{op: p.literal()}
	case t.kind == tokenWord && !t.anyKeyword() && p.tokens[p.pos+1].is("("):
		return p.call()
	case p.startsPath():
		return term{op: attribute{p.path()}}
	}
	p.unexpected()
	return term{}
}

func (p *parser) call() term {
	name := p.next().text
	p.operators++
	p.expect("(")
	var args []operand
	for {
		args = append(args, p.asOperand(p.primary()))
		if !p.accept(",") {
			break
		}
	}
	p.expect(")")
	t := p.checkedCall(name, args)
	t.function = name
	return t
}

// operandCounts are the functions of the condition language.
var operandCounts = map[string]int{
	"attribute_exists": 1, "attribute_not_exists": 1, "attribute_type": 2,
	"begins_with": 2, "contains": 2, "size": 1,
}

func (p *parser) checkedCall(name string, args []operand) term {
	count, known := operandCounts[name]
	switch {
	case name == "if_not_exists" || name == "list_append":
		p.misused(name) // they belong to updates
		return term{cond: never{}}
	case !known:
		p.problem(rankFunction, "Invalid function name; function: %s", name)
		return term{cond: never{}}
	case count != len(args):
		p.wrongCount(name, len(args))
		if name == "size" {
			return term{op: literal{}}
		}
		return term{cond: never{}}
	}
	if count == 2 {
		p.checkDistinct(name, args[0], args[1])
	}
	switch name {
	case "attribute_exists", "attribute_not_exists":
		a, ok := args[0].(attribute)
		if !ok {
			p.problem(rankOperand, "Operator or function requires a document path; operator or function: %s", name)
		}
		return term{cond: existence{a.path, name == "attribute_exists"}}
	case "attribute_type":
		return term{cond: typeTest{args[0], p.typeName(args[1])}}
	case "begins_with":
		for _, a := range args {
			if k := a.staticKind(); k != "" && k != kindS && k != kindB {
				p.wrongKind(name, k)
			}
		}
		return term{cond: prefixTest{args[0], args[1]}}
	case "contains":
		return term{cond: containmentTest{args[0], args[1]}}
	}
	switch k := args[0].staticKind(); k {
	case kindN, kindBool, kindNull:
		p.wrongKind(name, k)
	}
	return term{op: size{args[0]}}
}

// typeName is the second operand of attribute_type, which must be a known
// string.
func (p *parser) typeName(o operand) kind {
	k := o.staticKind()
	if k != kindS {
		if k == "" {
			k = "{NS,SS,L,BS,N,M,B,BOOL,NULL,S}"
		}
		p.wrongKind("attribute_type", k)
		return ""
	}
	name := kind(o.in(nil).(text))
	if !slices.Contains(allKinds, name) {
		p.problem(rankOperand, "Invalid attribute type name found; type: %s, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}", name)
	}
	return name
}

func (p *parser) wrongCount(name string, n int) {
	p.problem(rankCount, "Incorrect number of operands for operator or function; operator or function: %s, number of operands: %d", name, n)
}

func (p *parser) wrongKind(name string, k kind) {
	p.problem(rankOperand, "Incorrect operand type for operator or function; operator or function: %s, operand type: %s", name, k)
}

// checkDistinct refuses to compare a path with itself.
func (p *parser) checkDistinct(name string, left, right operand) {
	l, ok1 := left.(attribute)
	r, ok2 := right.(attribute)
	if ok1 && ok2 && slices.Equal(l.path, r.path) {
		p.problem(rankDistinct, "The first operand must be distinct from the remaining operands for this operator or function; operator: %s, first operand: %s", name, l.path)
	}
}

// checkOrdered refuses values that have no order.
func (p *parser) checkOrdered(name string, operands ...operand) {
	for _, o := range operands {
		switch k := o.staticKind(); k {
		case "", kindS, kindN, kindB:
		default:
			p.wrongKind(name, k)
		}
	}
}

func (p *parser) checkBounds(of, low, high operand) {
	p.checkOrdered("BETWEEN", of, low, high)
	l, ok1 := low.(literal)
	h, ok2 := high.(literal)
	if !ok1 || !ok2 || l.value == nil || h.value == nil {
		return
	}
	problem := ""
	if order, ok := compare(l.value, h.value); !ok {
		problem = "The BETWEEN operator requires same data type for lower and upper bounds"
	} else if order > 0 {
		problem = "The BETWEEN operator requires upper bound to be greater than or equal to lower bound"
	}
	if problem != "" {
		p.problem(rankOperand, "%s; lower bound operand: AttributeValue: %s, upper bound operand: AttributeValue: %s",
			problem, described(l.value), described(h.value))
	}
}

// described is a value as messages show it: {N:3}.
func described(v value) string {
	shown := string(appendScalar(nil, v))
	return fmt.Sprintf("{%s:%s}", v.kind(), strings.Trim(shown, `"`))
}

func (p *parser) asCondition(t term) condition {
	switch {
	case t.cond != nil:
		return t.cond
	case t.function != "":
		p.misused(t.function)
	default:
		p.unexpected()
	}
	return never{}
}

func (p *parser) asOperand(t term) operand {
	switch {
	case t.op != nil:
		return t.op
	case t.function != "":
		p.misused(t.function)
	default:
		p.unexpected()
	}
	return literal{}
}

func (p *parser) misused(function string) {
	p.problem(rankMisuse, "The function is not allowed to be used this way in an expression; function: %s", function)
}
