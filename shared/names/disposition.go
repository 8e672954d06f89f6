package names

import (
	"strings"

	"golang.org/x/text/unicode/norm"
)

// Disposition is the Content-Disposition value that saves a download under name (RFC 6266): an ASCII fallback for old
// clients and, when that says less than the name, the exact name as filename* (RFC 8187). It is one line whatever name
// holds.
func Disposition(name string) string {
	fallback := asciiName(name)
	value := `attachment; filename="` + fallback + `"`
	if fallback != name {
		value += "; filename*=UTF-8''" + extValue(name)
	}
	return value
}

// asciiName is name for clients that read nothing but ASCII: accents dropped, the rest replaced. Quotes and backslashes
// would need escapes that clients read differently, and some decode %XX, so these are replaced too.
func asciiName(name string) string {
	var b strings.Builder
	replaced := false // a run of unreadable characters becomes one underscore
	for _, r := range norm.NFD.String(name) {
		switch {
		case r >= 0x300 && r <= 0x36f: // combining accents
		case r < ' ' || r > '~' || strings.ContainsRune(`"\%/`, r):
			if !replaced {
				b.WriteByte('_')
			}
			replaced = true
		default:
			b.WriteRune(r)
			replaced = false
		}
	}
	if s := b.String(); s != "" {
		return s
	}
	return "_"
}

// extValue percent-encodes everything but the attr-char of RFC 8187, section 3.2.1.
func extValue(s string) string {
	const upperHex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if alnum || strings.IndexByte("!#$&+-.^_`|~", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(upperHex[c>>4])
		b.WriteByte(upperHex[c&15])
	}
	return b.String()
}
