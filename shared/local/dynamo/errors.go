package dynamo

import (
	"fmt"
	"net/http"
	"strings"
)

// apiError is an answer of the service other than success. Code is the short
// name that clients switch on.
type apiError struct {
	status  int
	code    string
	message string
	item    document             // ConditionalCheckFailedException with ALL_OLD
	reasons []cancellationReason // TransactionCanceledException
}

func (e *apiError) Error() string { return e.code + ": " + e.message }

// cancellationReason explains one action of a cancelled transaction.
type cancellationReason struct {
	Code    string   `json:"Code"`
	Message string   `json:"Message,omitempty"`
	Item    document `json:"Item,omitempty"`
}

// typeName is the __type of an error on the wire: the short code behind the
// namespace AWS puts it in.
func (e *apiError) typeName() string {
	switch e.code {
	case "ValidationException":
		return "com.amazon.coral.validate#" + e.code
	case "SerializationException", "UnknownOperationException":
		return "com.amazon.coral.service#" + e.code
	}
	return "com.amazonaws.dynamodb.v20120810#" + e.code
}

// body is the JSON document of the error.
func (e *apiError) body() map[string]any {
	out := map[string]any{"__type": e.typeName(), "message": e.message}
	if e.item != nil {
		out["Item"] = e.item
	}
	if e.reasons != nil {
		out["CancellationReasons"] = e.reasons
	}
	return out
}

func clientError(code, format string, args ...any) *apiError {
	message := format
	if len(args) > 0 {
		message = fmt.Sprintf(format, args...)
	}
	return &apiError{status: http.StatusBadRequest, code: code, message: message}
}

func invalid(format string, args ...any) *apiError {
	return clientError("ValidationException", format, args...)
}

func invalidParameter(format string, args ...any) *apiError {
	return invalid("One or more parameter values were invalid: "+format, args...)
}

func malformed(format string, args ...any) *apiError {
	return clientError("SerializationException", format, args...)
}

// unsupported refuses a parameter that DynamoDB has and this server does not.
func unsupported(what string) *apiError {
	return invalid("%s is not supported by this local server; see the package documentation of shared/local/dynamo for its scope", what)
}

func internalError(message string) *apiError {
	return &apiError{status: http.StatusInternalServerError, code: "InternalServerError", message: message}
}

func errTableNotFound() *apiError {
	return clientError("ResourceNotFoundException", "Requested resource not found")
}

func errConditionFailed(old document, returnOld bool) *apiError {
	e := clientError("ConditionalCheckFailedException", "The conditional request failed")
	if returnOld {
		e.item = old
	}
	return e
}

// errCancelled builds the answer for a transaction that was not performed; the
// reasons stand in the order of the actions.
func errCancelled(reasons []cancellationReason) *apiError {
	codes := make([]string, len(reasons))
	for i, r := range reasons {
		codes[i] = r.Code
	}
	e := clientError("TransactionCanceledException",
		"Transaction cancelled, please refer cancellation reasons for specific reasons [%s]", strings.Join(codes, ", "))
	e.reasons = reasons
	return e
}

// constraints collects violations of the declared shape of a request, which
// DynamoDB reports together.
type constraints struct {
	violations []string
}

func (c *constraints) add(quoted, field, rule string) {
	c.violations = append(c.violations,
		fmt.Sprintf("Value %s at '%s' failed to satisfy constraint: %s", quoted, field, rule))
}

func (c *constraints) err() error {
	switch n := len(c.violations); n {
	case 0:
		return nil
	case 1:
		return invalid("%s", "1 validation error detected: "+c.violations[0])
	default:
		return invalid("%d validation errors detected: %s", n, strings.Join(c.violations, "; "))
	}
}

// tableKeys checks the table names that are the keys of RequestItems.
func (c *constraints) tableKeys(names []string) {
	var each constraints
	for _, name := range names {
		if !each.name("", name, 1) {
			c.add("'{"+name+"=...}'", "requestItems", "Map keys must satisfy constraint: [Member must have length less than or equal to 255, "+
				"Member must have length greater than or equal to 1, Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+]")
		}
	}
}

// name checks the length and alphabet of a table or index name. minimum is 1
// for requests and 3 where a table is made.
func (c *constraints) name(field, v string, minimum int) bool {
	before := len(c.violations)
	switch {
	case len(v) < minimum:
		c.add("'"+v+"'", field, fmt.Sprintf("Member must have length greater than or equal to %d", minimum))
	case len(v) > 255:
		c.add("'"+v+"'", field, "Member must have length less than or equal to 255")
	}
	if strings.ContainsFunc(v, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '.' && r != '-'
	}) {
		c.add("'"+v+"'", field, "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+")
	}
	return len(c.violations) == before
}

func (c *constraints) required(field string) {
	c.add("null", field, "Member must not be null")
}

func (c *constraints) enum(field string, v *string, allowed ...string) {
	if v == nil {
		return
	}
	for _, a := range allowed {
		if *v == a {
			return
		}
	}
	c.add("'"+*v+"'", field, "Member must satisfy enum value set: ["+strings.Join(allowed, ", ")+"]")
}

func (c *constraints) atLeast(field string, v *int64, minimum int64) {
	if v != nil && *v < minimum {
		c.add(fmt.Sprintf("'%d'", *v), field, fmt.Sprintf("Member must have value greater than or equal to %d", minimum))
	}
}
