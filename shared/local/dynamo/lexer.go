package dynamo

import "strings"

// tokenKind classifies the words of the expression language.
type tokenKind uint8

const (
	tokenEnd       tokenKind = iota
	tokenWord                // an attribute name, keyword or function name
	tokenName                // #placeholder
	tokenValue               // :placeholder
	tokenNumber              // digits, as in a list index
	tokenSymbol              // = <> < <= > >= ( ) [ ] , . + -
	tokenUnknown             // a character the language does not have
	maxExpression  = 4096    // bytes
	endOfInputText = "<EOF>"
)

// token is a piece of an expression; start and end are byte offsets.
type token struct {
	kind       tokenKind
	text       string
	start, end int
}

// is reports whether the token is this symbol.
func (t token) is(symbol string) bool { return t.kind == tokenSymbol && t.text == symbol }

// keyword reports whether the token is this keyword; keywords ignore case.
func (t token) keyword(upper string) bool {
	return t.kind == tokenWord && strings.EqualFold(t.text, upper)
}

// keywords can never be attribute names or function names.
var keywords = []string{"AND", "OR", "NOT", "BETWEEN", "IN", "SET", "REMOVE", "ADD", "DELETE"}

func (t token) anyKeyword() bool {
	for _, k := range keywords {
		if t.keyword(k) {
			return true
		}
	}
	return false
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || isDigit(c)
}

// lex splits an expression into tokens; the last one is always tokenEnd.
func lex(src string) []token {
	var out []token
	for i := 0; ; {
		for i < len(src) && strings.IndexByte(" \t\r\n", src[i]) >= 0 {
			i++
		}
		if i >= len(src) {
			return append(out, token{kind: tokenEnd, text: endOfInputText, start: len(src), end: len(src)})
		}
		t := lexOne(src, i)
		out = append(out, t)
		i = t.end
	}
}

func lexOne(src string, start int) token {
	c := src[start]
	end := start + 1
	kind := tokenUnknown
	switch {
	case isDigit(c):
		kind = tokenNumber
		for end < len(src) && isDigit(src[end]) {
			end++
		}
	case isWordByte(c):
		kind = tokenWord
		for end < len(src) && isWordByte(src[end]) {
			end++
		}
	case c == '#' || c == ':':
		for end < len(src) && isWordByte(src[end]) {
			end++
		}
		if end > start+1 {
			kind = tokenName
			if c == ':' {
				kind = tokenValue
			}
		}
	case c == '<' || c == '>':
		kind = tokenSymbol
		if end < len(src) && (src[end] == '=' || c == '<' && src[end] == '>') {
			end++
		}
	case strings.IndexByte("=()[],.+-", c) >= 0:
		kind = tokenSymbol
	}
	return token{kind: kind, text: src[start:end], start: start, end: end}
}

// reserved reports whether an attribute name must go through a #placeholder.
func reserved(name string) bool { return reservedWords[strings.ToUpper(name)] }
