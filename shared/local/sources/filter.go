package sources

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Filter decides which records of a source a function sees: those that match at
// least one pattern. The empty filter matches everything.
type Filter struct{ patterns []map[string]any }

// NewFilter checks patterns of the event filtering syntax: objects that mirror
// the record, whose leaves are lists of values or of one of prefix, suffix,
// exists, numeric, anything-but, equals-ignore-case. Anything else is an error, so
// that no pattern is silently taken for a match.
func NewFilter(patterns []string) (Filter, error) {
	var f Filter
	for _, text := range patterns {
		var p map[string]any
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			return Filter{}, fmt.Errorf("filter pattern %s is not a JSON object", text)
		}
		if err := check(p); err != nil {
			return Filter{}, fmt.Errorf("filter pattern %s: %w", text, err)
		}
		f.patterns = append(f.patterns, p)
	}
	return f, nil
}

func check(pattern map[string]any) error {
	for key, value := range pattern {
		if key == "$or" {
			return errors.New("$or is not honoured by the local stack")
		}
		switch v := value.(type) {
		case map[string]any:
			if err := check(v); err != nil {
				return err
			}
		case []any:
			for _, rule := range v {
				if err := checkRule(rule); err != nil {
					return fmt.Errorf("%s: %w", key, err)
				}
			}
		default:
			return fmt.Errorf("%s must be an object or a list", key)
		}
	}
	return nil
}

func checkRule(rule any) error {
	op, ok := rule.(map[string]any)
	if !ok {
		if _, isList := rule.([]any); isList {
			return errors.New("a list in a list means nothing")
		}
		return nil
	}
	if len(op) != 1 {
		return errors.New("a rule has one operator")
	}
	for name, arg := range op {
		switch name {
		case "prefix", "suffix", "equals-ignore-case":
			if _, ok := arg.(string); !ok {
				return fmt.Errorf("%s takes a string", name)
			}
		case "exists":
			if _, ok := arg.(bool); !ok {
				return errors.New("exists takes true or false")
			}
		case "numeric":
			return checkNumeric(arg)
		case "anything-but":
			if inner, ok := arg.(map[string]any); ok {
				if _, isPrefix := inner["prefix"].(string); !isPrefix || len(inner) != 1 {
					return errors.New("anything-but takes values or a prefix")
				}
			}
		default:
			return fmt.Errorf("operator %s is not honoured by the local stack", name)
		}
	}
	return nil
}

func checkNumeric(arg any) error {
	list, ok := arg.([]any)
	if !ok || len(list) == 0 || len(list)%2 != 0 {
		return errors.New("numeric takes pairs of an operator and a number")
	}
	for i := 0; i < len(list); i += 2 {
		op, _ := list[i].(string)
		_, isNumber := list[i+1].(float64)
		if !strings.Contains(" = < <= > >= ", " "+op+" ") || !isNumber {
			return errors.New("numeric takes pairs of an operator and a number")
		}
	}
	return nil
}

// Match decides on a record in JSON.
func (f Filter) Match(record []byte) bool {
	if len(f.patterns) == 0 {
		return true
	}
	var v any
	if json.Unmarshal(record, &v) != nil {
		return false
	}
	return f.match(v)
}

// MatchMessage decides on a queue message by its body, which is matched as an
// object when it is one and as a string otherwise.
func (f Filter) MatchMessage(body string) bool {
	if len(f.patterns) == 0 {
		return true
	}
	var v any
	if json.Unmarshal([]byte(body), &v) != nil {
		v = body
	}
	return f.match(map[string]any{"body": v})
}

func (f Filter) match(record any) bool {
	for _, p := range f.patterns {
		if matchObject(p, record) {
			return true
		}
	}
	return false
}

func matchObject(pattern map[string]any, value any) bool {
	object, _ := value.(map[string]any)
	for key, want := range pattern {
		got, present := object[key]
		switch w := want.(type) {
		case map[string]any:
			if !matchObject(w, got) {
				return false
			}
		case []any:
			if !matchAny(w, got, present) {
				return false
			}
		}
	}
	return true
}

func matchAny(rules []any, value any, present bool) bool {
	values, isList := value.([]any)
	if !isList {
		values = []any{value}
	}
	for _, rule := range rules {
		if op, ok := rule.(map[string]any); ok {
			if exists, ok := op["exists"].(bool); ok {
				if exists == present {
					return true
				}
				continue
			}
		}
		if !present {
			continue
		}
		for _, v := range values {
			if matchRule(rule, v) {
				return true
			}
		}
	}
	return false
}

func matchRule(rule, value any) bool {
	op, ok := rule.(map[string]any)
	if !ok {
		return rule == value
	}
	text, isText := value.(string)
	for name, arg := range op {
		switch name {
		case "prefix":
			return isText && strings.HasPrefix(text, arg.(string))
		case "suffix":
			return isText && strings.HasSuffix(text, arg.(string))
		case "equals-ignore-case":
			return isText && strings.EqualFold(text, arg.(string))
		case "numeric":
			number, isNumber := value.(float64)
			return isNumber && matchNumeric(arg.([]any), number)
		case "anything-but":
			switch a := arg.(type) {
			case map[string]any:
				return isText && !strings.HasPrefix(text, a["prefix"].(string))
			case []any:
				for _, v := range a {
					if v == value {
						return false
					}
				}
				return true
			default:
				return a != value
			}
		}
	}
	return false
}

func matchNumeric(pairs []any, number float64) bool {
	for i := 0; i < len(pairs); i += 2 {
		limit, ok := pairs[i+1].(float64), false
		switch pairs[i] {
		case "=":
			ok = number == limit
		case "<":
			ok = number < limit
		case "<=":
			ok = number <= limit
		case ">":
			ok = number > limit
		case ">=":
			ok = number >= limit
		}
		if !ok {
			return false
		}
	}
	return true
}
