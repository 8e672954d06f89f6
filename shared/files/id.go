package files

import (
	"crypto/rand"
	"strings"
)

const (
	idAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789"
	idRandom   = 26 // characters; log2(36^26) is 134 bits
	filePrefix = "f_"
)

// NewID returns a fresh random file id.
func NewID() string { return filePrefix + RandomText(idRandom) }

// RandomText returns n random characters of [a-z0-9], without modulo bias.
func RandomText(n int) string {
	const fair = 256 - 256%len(idAlphabet)
	out := make([]byte, 0, n)
	buf := make([]byte, n+n/4)
	for len(out) < n {
		rand.Read(buf) // never fails since Go 1.24
		for _, b := range buf {
			if int(b) < fair && len(out) < n {
				out = append(out, idAlphabet[int(b)%len(idAlphabet)])
			}
		}
	}
	return string(out)
}

// ValidID reports whether id has the form of a file id.
func ValidID(id string) bool {
	rest, ok := strings.CutPrefix(id, filePrefix)
	return ok && ValidRandomText(rest, idRandom)
}

// ValidRandomText reports whether s is n characters of [a-z0-9].
func ValidRandomText(s string, n int) bool {
	if len(s) != n {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// ParseHandle returns the file id inside a handle with the given prefix, such as claim://.
func ParseHandle(prefix, handle string) (id string, ok bool) {
	id, ok = strings.CutPrefix(handle, prefix)
	return id, ok && ValidID(id)
}
