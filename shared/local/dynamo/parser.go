//lint:file-ignore ST1005 the messages are DynamoDB's own, word for word

package dynamo

import (
	"errors"
	"fmt"
	"strconv"
)

// placeholders are the names and values that the expressions of one request
// refer to, and a record of which have been used.
type placeholders struct {
	names      map[string]string
	values     document
	usedNames  map[string]bool
	usedValues map[string]bool
}

// Problems of an expression that parses. DynamoDB reports one of them: the
// earliest in this order, except that of the last few the first relation that
// has any comes first; see closeRelation.
type problemRank int

const (
	rankParens problemRank = iota
	rankFunction
	rankMisuse
	rankReserved
	rankSection
	rankUndefined
	rankUndefinedValue // in an update; elsewhere values rank with names
	rankOverlap
	rankConflict
	rankActionOperand
	rankCount
	rankDistinct
	rankOperand
	ranks
)

const (
	maxOperators = 300
	maxListIndex = 1 << 30
)

// parser reads one expression. After a syntax error every further token reads
// as the end of the text, so that all parsing functions finish by themselves.
type parser struct {
	src       string
	tokens    []token
	pos       int
	vars      *placeholders
	syntax    string
	problems  [ranks]string
	wrong     string // the problem of the first wrong relation
	operators int
	update    bool // this is an update expression
	mentions  mentions
}

// mentions are the attributes of an item that an expression refers to.
type mentions struct {
	heads  map[string]bool // all of them
	nested map[string]bool // those that it looks into
}

func newParser(src string, vars *placeholders) *parser {
	p := &parser{src: src, vars: vars, mentions: mentions{make(map[string]bool), make(map[string]bool)}}
	if len(src) <= maxExpression {
		p.tokens = lex(src)
	}
	return p
}

// err is the outcome after parsing.
func (p *parser) err() error {
	switch {
	case p.src == "":
		return errors.New("The expression can not be empty;")
	case len(p.src) > maxExpression:
		return fmt.Errorf("Expression size has exceeded the maximum allowed size; expression size: %d", len(p.src))
	case p.syntax != "":
		return fmt.Errorf("Syntax error; %s", p.syntax)
	case p.operators > maxOperators:
		return fmt.Errorf("The expression contains too many operators; operator count: %d", p.operators)
	}
	for rank, problem := range p.problems {
		if problemRank(rank) >= rankUndefined && p.wrong != "" {
			problem = p.wrong
		}
		if problem != "" {
			return errors.New(problem)
		}
	}
	return nil
}

func (p *parser) problem(rank problemRank, format string, args ...any) {
	if p.problems[rank] == "" {
		p.problems[rank] = fmt.Sprintf(format, args...)
	}
}

// closeRelation is called at the end of each comparison or boolean function of
// a condition. What is wrong with the first wrong one outranks what is wrong
// with later ones.
func (p *parser) closeRelation() {
	for _, problem := range p.problems[rankUndefined:] {
		if problem != "" && p.wrong == "" {
			p.wrong = problem
		}
	}
}

func (p *parser) peek() token {
	if p.syntax != "" || p.pos >= len(p.tokens) {
		return token{kind: tokenEnd, text: endOfInputText}
	}
	return p.tokens[p.pos]
}

func (p *parser) next() token {
	t := p.peek()
	if t.kind != tokenEnd {
		p.pos++
	}
	return t
}

// unexpected records that the current token cannot stand where it does.
func (p *parser) unexpected() {
	if p.syntax != "" || p.pos >= len(p.tokens) {
		return
	}
	t := p.tokens[p.pos]
	from, to := t.start, t.end
	if p.pos > 0 {
		from = p.tokens[p.pos-1].start
	}
	if p.pos+1 < len(p.tokens) {
		to = p.tokens[p.pos+1].end
	}
	p.syntax = fmt.Sprintf("token: %q, near: %q", t.text, p.src[from:to])
}

func (p *parser) accept(symbol string) bool {
	if p.peek().is(symbol) {
		p.next()
		return true
	}
	return false
}

func (p *parser) acceptKeyword(word string) bool {
	if p.peek().keyword(word) {
		p.next()
		return true
	}
	return false
}

func (p *parser) expect(symbol string) {
	if !p.accept(symbol) {
		p.unexpected()
	}
}

func (p *parser) expectEnd() {
	if p.peek().kind != tokenEnd {
		p.unexpected()
	}
}

// startsPath reports whether the next token can begin a path.
func (p *parser) startsPath() bool {
	t := p.peek()
	return t.kind == tokenName || t.kind == tokenWord && !t.anyKeyword()
}

// path reads name{.name}{[index]}.
func (p *parser) path() path {
	first := p.member()
	out := path{first}
	p.mentions.heads[first.name] = true
	for p.syntax == "" {
		if len(out) == 2 {
			p.mentions.nested[first.name] = true
		}
		switch {
		case p.accept("."):
			out = append(out, p.member())
		case p.accept("["):
			t := p.peek()
			if t.kind != tokenNumber {
				p.unexpected()
				return out
			}
			p.next()
			i, err := strconv.Atoi(t.text)
			if err != nil || i > maxListIndex {
				p.problem(rankOperand, "List index is not within the allowable range; index: [%s]", t.text)
				i = 0
			}
			out = append(out, step{index: i, isIndex: true})
			p.expect("]")
		default:
			return out
		}
	}
	return out
}

func (p *parser) member() step {
	if !p.startsPath() {
		p.unexpected()
		return step{}
	}
	t := p.next()
	if t.kind == tokenWord {
		if reserved(t.text) {
			p.problem(rankReserved, "Attribute name is a reserved keyword; reserved keyword: %s", t.text)
		}
		return step{name: t.text}
	}
	name, ok := p.vars.names[t.text]
	if !ok {
		p.problem(rankUndefined, "An expression attribute name used in the document path is not defined; attribute name: %s", t.text)
	}
	p.vars.usedNames[t.text] = true
	return step{name: name}
}

// literal reads a :placeholder.
func (p *parser) literal() literal {
	t := p.next()
	v, ok := p.vars.values[t.text]
	if !ok {
		rank := rankUndefined
		if p.update {
			rank = rankUndefinedValue
		}
		p.problem(rank, "An expression attribute value used in expression is not defined; attribute value: %s", t.text)
	}
	p.vars.usedValues[t.text] = true
	return literal{v}
}

// checkPaths reports clashes between the paths of one expression.
func (p *parser) checkPaths(paths []path) {
	for i, a := range paths {
		for _, b := range paths[:i] {
			switch b.clash(a) {
			case "overlap":
				p.problem(rankOverlap, "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: %s, path two: %s", b, a)
			case "conflict":
				p.problem(rankConflict, "Two document paths conflict with each other; must remove or rewrite one of these paths; path one: %s, path two: %s", b, a)
			}
		}
	}
}

// parseProjection reads path{, path}.
func parseProjection(src string, vars *placeholders) (*pathTree, mentions, error) {
	p := newParser(src, vars)
	var paths []path
	for {
		paths = append(paths, p.path())
		if !p.accept(",") {
			break
		}
	}
	p.expectEnd()
	p.checkPaths(paths)
	if err := p.err(); err != nil {
		return nil, mentions{}, err
	}
	tree := new(pathTree)
	for _, path := range paths {
		tree.insert(path)
	}
	return tree, p.mentions, nil
}
