package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// canonical is an answer in a form in which equal answers are equal text: sets
// and pages of unordered results are sorted, and error types lose their
// namespace.
func (a answer) canonical(op operation) string {
	if a.status != 200 {
		return a.outcome()
	}
	switch op.name {
	case "CreateTable":
		return "200"
	case "Scan":
		sortList(a.body["Items"])
	case "Query":
		sortTies(a.body["Items"])
	case "BatchGetItem":
		responses, _ := a.body["Responses"].(map[string]any)
		for _, items := range responses {
			sortList(items)
		}
	case "UpdateItem":
		// Nothing to return is {} or absent.
		if m, ok := a.body["Attributes"].(map[string]any); ok && len(m) == 0 {
			delete(a.body, "Attributes")
		}
	}
	// DynamoDB charges at least half a unit for a page; dynalite charges nothing
	// for an empty one.
	if c, ok := a.body["ConsumedCapacity"].(map[string]any); ok && a.body["ScannedCount"] == 0.0 {
		delete(c, "CapacityUnits")
	}
	sortSets(a.body)
	text, err := json.Marshal(a.body)
	if err != nil {
		return err.Error()
	}
	return "200 " + string(text)
}

// sortTies sorts the items with equal sort keys: an index has no order for them.
func sortTies(v any) {
	items, _ := v.([]any)
	key := func(i int) string {
		item, _ := items[i].(map[string]any)
		return fmt.Sprint(item["sk"])
	}
	for i := 0; i < len(items); {
		j := i + 1
		for j < len(items) && key(j) == key(i) {
			j++
		}
		sortList(items[i:j])
		i = j
	}
}

func sortList(v any) {
	items, _ := v.([]any)
	for _, item := range items {
		sortSets(item)
	}
	slices.SortFunc(items, func(a, b any) int {
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		return strings.Compare(string(x), string(y))
	})
}

func sortSets(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, e := range v {
			if l, ok := e.([]any); ok && (name == "SS" || name == "NS" || name == "BS") {
				slices.SortFunc(l, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
				continue
			}
			sortSets(e)
		}
	case []any:
		for _, e := range v {
			sortSets(e)
		}
	}
}

// rewordings drop the parts of messages that depend on how each server reads or
// lists things, and keep which rule was broken.
var rewordings = []struct {
	pattern     *regexp.Regexp
	replacement string
}{
	// The token and its surroundings come out of dynalite's parser generator.
	{regexp.MustCompile(`Syntax error; .*$`), "Syntax error"},
	// Placeholders have no order.
	{regexp.MustCompile(`(unused in expressions: keys: )\{.*\}$`), "${1}..."},
	// There can be several such pairs.
	{regexp.MustCompile(`(Two document paths (conflict|overlap) with each other); .*$`), "$1"},
	// The service says "are not valid".
	{regexp.MustCompile(`One or more parameter values were invalid: (The AttributeValue for a key attribute cannot contain)`), "One or more parameter values are not valid. $1"},
	// The service shows the request in Java's notation; neither server does.
	{regexp.MustCompile(`Value '.*' at '(requestItems|transactItems)'`), "Value at '$1'"},
	// Dynalite does not name the set of types.
	{regexp.MustCompile(`, typeSet: ALLOWED_FOR_\w+_OPERAND$`), ""},
}

func canonicalMessage(message string) string {
	for _, r := range rewordings {
		message = r.pattern.ReplaceAllString(message, r.replacement)
	}
	return message
}

// outcome is the status and, of an error, its type and message.
func (a answer) outcome() string {
	if a.status == 200 {
		return "200"
	}
	kind, _ := a.body["__type"].(string)
	kind = kind[strings.Index(kind, "#")+1:]
	message, _ := a.body["message"].(string)
	if message == "" {
		message, _ = a.body["Message"].(string)
	}
	return fmt.Sprintf("%d %s: %s", a.status, kind, canonicalMessage(message))
}
