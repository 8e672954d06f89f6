package sniff

import (
	"errors"
	"fmt"
	"strings"
)

// maxTypeBytes bounds a declared type: it travels in an HTTP header and is
// stored with the file.
const maxTypeBytes = 255

// ParseType validates a media type as the API accepts it: type "/" subtype
// with optional parameters, as in RFC 9110 section 8.3.1, in printable ASCII,
// at most 255 bytes, no wildcards. It returns the string to store, sign and
// serve: what was given, without surrounding spaces and trailing semicolons.
// Errors are messages for people that complete "content_type ...".
func ParseType(s string) (string, error) {
	s = strings.Trim(s, " ")
	for strings.HasSuffix(s, ";") {
		s = strings.TrimRight(s, "; ")
	}
	if s == "" {
		return "", errors.New("must not be empty: give a media type such as application/pdf, or leave it out")
	}
	if len(s) > maxTypeBytes {
		return "", fmt.Errorf("must be at most %d bytes long", maxTypeBytes)
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return "", errors.New("must be printable ASCII without control characters")
		}
	}
	full, params, _ := strings.Cut(s, ";")
	major, minor, slash := strings.Cut(strings.TrimRight(full, " "), "/")
	if !slash || !isToken(major) || !isToken(minor) {
		return "", errors.New("must be one media type such as application/pdf or text/csv; charset=utf-8")
	}
	if major == "*" || minor == "*" {
		return "", errors.New("must name one media type: wildcards are for Accept headers")
	}
	if err := checkParameters(params); err != nil {
		return "", err
	}
	return s, nil
}

// checkParameters validates what follows the first semicolon.
func checkParameters(rest string) error {
	var names []string
	for rest != "" {
		rest = strings.TrimLeft(rest, " ")
		if after, empty := strings.CutPrefix(rest, ";"); empty {
			rest = after
			continue
		}
		name, value, equals := strings.Cut(rest, "=")
		if !equals || !isToken(name) {
			return errors.New("has a parameter that is not name=value")
		}
		n := valueLen(value)
		if n == 0 {
			return fmt.Errorf("has a parameter %s whose value is neither a token nor a quoted string", name)
		}
		for _, earlier := range names {
			// RFC 9110 gives a repeated parameter no meaning and readers disagree.
			if strings.EqualFold(earlier, name) {
				return fmt.Errorf("has the parameter %s twice", name)
			}
		}
		names = append(names, name)
		rest = strings.TrimLeft(value[n:], " ")
		if rest == "" {
			return nil
		}
		after, more := strings.CutPrefix(rest, ";")
		if !more {
			return fmt.Errorf("has text after the parameter %s: separate parameters with semicolons", name)
		}
		rest = after
	}
	return nil
}

// valueLen returns the length of the token or quoted string that s starts
// with, or 0.
func valueLen(s string) int {
	if !strings.HasPrefix(s, `"`) {
		n := 0
		for n < len(s) && isTokenByte(s[n]) {
			n++
		}
		return n
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return 0
}

func isToken(s string) bool {
	for i := range len(s) {
		if !isTokenByte(s[i]) {
			return false
		}
	}
	return s != ""
}

// isTokenByte reports whether c is a tchar of RFC 9110 section 5.6.2.
func isTokenByte(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// Base returns the lower-cased type/subtype of a media type, without its
// parameters.
func Base(s string) string {
	full, _, _ := strings.Cut(s, ";")
	return strings.ToLower(strings.TrimSpace(full))
}
