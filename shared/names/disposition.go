package names

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Disposition returns the value of a Content-Disposition header that makes a
// client save a download under a name: an ASCII fallback for old clients, and
// the exact name as filename* (RFC 6266, RFC 8187). The value is one line of
// printable ASCII for any name; one that Clean did not return loses its path
// separators and control characters. Without a
// usable name it is "attachment".
func Disposition(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || isRefused(r) {
			return '_'
		}
		return r
	}, name) // invalid UTF-8 becomes U+FFFD on the way
	if name == "" || name == "." || name == ".." {
		return "attachment"
	}
	return `attachment; filename="` + fallback(name) + `"; filename*=UTF-8''` + extValue(name)
}

// fallback spells name in ASCII: letters lose their accents and what has no
// ASCII form becomes an underscore. So do the characters that clients disagree
// on inside a quoted string: quotes, backslashes and percent signs, which some
// decode.
func fallback(name string) string {
	var out strings.Builder
	accented := false // a mark here belongs to a letter and goes unwritten
	for _, r := range norm.NFD.String(name) {
		switch {
		case accented && unicode.Is(unicode.M, r):
			continue
		case r >= utf8.RuneSelf, r == '"', r == '\\', r == '%':
			r = '_'
		}
		out.WriteRune(r)
		accented = r == '_' || unicode.IsLetter(r)
	}
	return out.String()
}

// extValue encodes name as the ext-value of RFC 8187, after the charset.
func extValue(name string) string {
	const hex = "0123456789ABCDEF"
	var out strings.Builder
	for i := range len(name) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("!#$&+-.^_`|~", c) >= 0:
			out.WriteByte(c)
		default:
			out.WriteByte('%')
			out.WriteByte(hex[c>>4])
			out.WriteByte(hex[c&15])
		}
	}
	return out.String()
}
