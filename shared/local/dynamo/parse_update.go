package dynamo

// parseUpdate reads the SET, REMOVE, ADD and DELETE sections of an update
// expression, each at most once and in any order.
func parseUpdate(src string, vars *placeholders) (*updateExpression, error) {
	p := newParser(src, vars)
	p.update = true
	u := &updateExpression{tree: new(pathTree), writes: make(map[string]bool)}
	seen := make(map[updateVerb]bool)
	for p.peek().kind != tokenEnd || len(seen) == 0 {
		verb := p.section()
		if verb == "" {
			p.unexpected()
			break
		}
		if seen[verb] {
			p.problem(rankSection, "The %q section can only be used once in an update expression;", string(verb))
		}
		seen[verb] = true
		for {
			a := p.action(verb)
			a.index = len(u.actions)
			u.actions = append(u.actions, a)
			if !p.accept(",") {
				break
			}
		}
	}
	paths := make([]path, len(u.actions))
	for i, a := range u.actions {
		paths[i] = a.path
	}
	p.checkPaths(paths)
	if err := p.err(); err != nil {
		return nil, err
	}
	for _, a := range u.actions {
		u.tree.insert(a.path).action = a
		u.writes[a.path[0].name] = true
	}
	u.mentions = p.mentions
	return u, nil
}

func (p *parser) section() updateVerb {
	for _, verb := range []updateVerb{verbSet, verbRemove, verbAdd, verbDelete} {
		if p.acceptKeyword(string(verb)) {
			return verb
		}
	}
	return ""
}

func (p *parser) action(verb updateVerb) *updateAction {
	p.operators++
	a := &updateAction{verb: verb, path: p.path()}
	switch verb {
	case verbSet:
		p.expect("=")
		a.value = p.sum()
	case verbAdd, verbDelete:
		if p.peek().kind != tokenValue {
			p.unexpected()
			break
		}
		l := p.literal()
		a.value = l
		p.checkSectionOperand(verb, l)
	}
	return a
}

// wireNames are kinds as the messages about ADD and DELETE spell them.
var wireNames = map[kind]string{
	kindS: "STRING", kindN: "NUMBER", kindB: "BINARY", kindNull: "NULL",
	kindBool: "BOOLEAN", kindL: "LIST", kindM: "MAP",
}

// checkSectionOperand: ADD takes numbers and sets, DELETE takes sets.
func (p *parser) checkSectionOperand(verb updateVerb, l literal) {
	k := l.staticKind()
	if name, scalar := wireNames[k]; scalar && (verb != verbAdd || k != kindN) {
		p.problem(rankActionOperand, "Incorrect operand type for operator or function; operator: %s, operand type: %s, typeSet: ALLOWED_FOR_%s_OPERAND", verb, name, verb)
	}
}

// sum reads operand, operand + operand or operand - operand; there is no longer
// chain.
func (p *parser) sum() updateOperand {
	left := p.updatePrimary()
	for _, symbol := range []string{"+", "-"} {
		if p.accept(symbol) {
			p.operators++
			right := p.updatePrimary()
			p.checkNumber(symbol, left)
			p.checkNumber(symbol, right)
			return sum{left: left, right: right, minus: symbol == "-"}
		}
	}
	return left
}

func (p *parser) checkNumber(symbol string, o updateOperand) {
	if l, ok := o.(literal); ok && l.value != nil && l.value.kind() != kindN {
		p.wrongKind(symbol, l.value.kind())
	}
}

// updatePrimary reads a path, a placeholder, a function call or a sum in
// parentheses.
func (p *parser) updatePrimary() updateOperand {
	t := p.peek()
	switch {
	case p.accept("("):
		inner := p.sum()
		p.expect(")")
		return inner
	case t.kind == tokenValue:
		return p.literal()
	case t.kind == tokenWord && !t.anyKeyword() && p.tokens[p.pos+1].is("("):
		return p.updateCall()
	case p.startsPath():
		return attribute{p.path()}
	}
	p.unexpected()
	return literal{}
}

func (p *parser) updateCall() updateOperand {
	name := p.next().text
	p.operators++
	p.expect("(")
	var args []updateOperand
	for {
		args = append(args, p.updatePrimary())
		if !p.accept(",") {
			break
		}
	}
	p.expect(")")
	if _, other := operandCounts[name]; other {
		p.misused(name) // they belong to conditions
		return literal{}
	}
	if name != "if_not_exists" && name != "list_append" {
		p.problem(rankFunction, "Invalid function name; function: %s", name)
		return literal{}
	}
	if len(args) != 2 {
		p.wrongCount(name, len(args))
		return literal{}
	}
	if name == "if_not_exists" {
		a, ok := args[0].(attribute)
		if !ok {
			p.problem(rankOperand, "Operator or function requires a document path; operator or function: if_not_exists")
		}
		return fallback{path: a.path, or: args[1]}
	}
	for _, a := range args {
		if l, ok := a.(literal); ok && l.value != nil && l.value.kind() != kindL {
			p.wrongKind(name, l.value.kind())
		}
	}
	return concat{args[0], args[1]}
}
