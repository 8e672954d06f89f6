// Package mediatype reads the Content-Type values that the API accepts.
package mediatype

import (
	"errors"
	"mime"
	"strings"
)

// OctetStream is the type of bytes about which nothing is said.
const OctetStream = "application/octet-stream"

const maxBytes = 255

var errForm = errors.New(`must be a media type such as "application/pdf" or "text/plain; charset=utf-8", 255 ASCII characters at most`)

// Parse checks a Content-Type value (RFC 9110, section 8.3) and returns it as it is to be stored, signed and served:
// trimmed, parameters kept, otherwise byte for byte. Wildcards are refused. The error is a message for the caller.
func Parse(s string) (string, error) {
	s = strings.Trim(s, " \t")
	if s == "" || len(s) > maxBytes {
		return "", errForm
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return "", errForm
		}
	}
	base, _, err := mime.ParseMediaType(s)
	if err != nil {
		return "", errForm
	}
	major, minor, ok := strings.Cut(base, "/")
	if !ok || !restricted(major) || !restricted(minor) {
		return "", errForm
	}
	return s, nil
}

// Base returns the type and subtype of s in lower case, without parameters.
func Base(s string) string {
	base, _, _ := strings.Cut(s, ";")
	return strings.ToLower(strings.Trim(base, " \t"))
}

// restricted reports whether name is a restricted-name of RFC 6838, section 4.2.
func restricted(name string) bool {
	if name == "" || len(name) > 127 {
		return false
	}
	for i := range len(name) {
		c := name[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || !strings.ContainsRune("!#$&-^_.+", rune(c))) {
			return false
		}
	}
	return true
}
