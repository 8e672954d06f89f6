// Package names holds the rules for the names of files: what a client may call
// a file (Clean) and how a download tells its name (Disposition).
//
// A name is for people. It never becomes part of a path or of an object's key.
package names

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxBytes is the longest name that Clean returns, in bytes of UTF-8: what the
// common file systems allow.
const MaxBytes = 255

// maxExtension is the longest ending that Clean takes for an extension worth
// keeping when it shortens a name.
const maxExtension = 32

// The errors of Clean, besides *CharacterError. Their texts are for people and
// complete "filename ...".
var (
	// ErrEmpty is for names with nothing visible in their last segment.
	ErrEmpty = errors.New("must not be empty: give the file a name such as report.pdf")
	// ErrDots is for "." and "..", which name folders.
	ErrDots = errors.New("must not be . or ..: give the file a name such as report.pdf")
	// ErrEncoding is for names that are not UTF-8.
	ErrEncoding = errors.New("must be valid UTF-8")
	// ErrMarks is for names with a character under so many combining marks that
	// Unicode's stream-safe format would break it up.
	ErrMarks = errors.New("must not put more than 30 combining marks on one character")
)

// CharacterError is for names with a character that is refused anywhere in a
// name because it is invisible or changes how the rest reads.
type CharacterError struct {
	Rune   rune
	Offset int // in bytes from the start of the name as given
}

func (e *CharacterError) Error() string {
	kind := "an invisible character"
	switch {
	case unicode.Is(unicode.Cc, e.Rune), unicode.Is(unicode.Zl, e.Rune), unicode.Is(unicode.Zp, e.Rune):
		kind = "a control character"
	case unicode.Is(unicode.Bidi_Control, e.Rune):
		kind = "a character that changes the direction of text"
	}
	return fmt.Sprintf("must not contain %s (%U at byte %d): remove it", kind, e.Rune, e.Offset)
}

// Clean returns the name under which a file is kept: the last segment of s,
// after slashes and backslashes alike, in Unicode's normal form C, and at most
// MaxBytes long with its extension kept. Spaces, leading dots and names that
// only some systems reserve stay as they are. Clean of its own result returns
// the same.
//
// It refuses names with control, bidirectional or zero-width characters
// (*CharacterError), even in the part that is dropped, and names that are not
// UTF-8 (ErrEncoding), empty or blank (ErrEmpty), "." or ".." (ErrDots), or
// piled up beyond reason (ErrMarks).
func Clean(s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", ErrEncoding
	}
	for i, r := range s {
		if isRefused(r) {
			return "", &CharacterError{Rune: r, Offset: i}
		}
	}
	name := norm.NFC.String(s[strings.LastIndexAny(s, `/\`)+1:])
	if strings.ContainsRune(name, graphemeJoiner) {
		return "", ErrMarks
	}
	name = shorten(name)
	switch {
	case strings.TrimSpace(name) == "":
		return "", ErrEmpty
	case name == ".", name == "..":
		return "", ErrDots
	}
	return name, nil
}

// graphemeJoiner is what the norm package puts behind 30 combining marks. It is
// among the refused characters, so it can have come from nowhere else.
const graphemeJoiner = '\u034f'

// isRefused reports whether r may not be in a name: controls, line separators,
// what is no character, and what has no appearance of its own. Variation
// selectors pick the look of the character before them and are fine.
func isRefused(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return r < ' ' || r == 0x7f
	case unicode.Is(unicode.Cf, r):
		// A few signs that enclose the digits after them count as format
		// characters; they are visible.
		return !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
	}
	return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point)
}

// shorten cuts the middle out of a name that is too long, so that its extension
// stays.
func shorten(name string) string {
	if len(name) <= MaxBytes {
		return name
	}
	ext := extension(name)
	return cut(name[:len(name)-len(ext)], MaxBytes-len(ext)) + ext
}

// extension returns the ending of name from its last dot, with the one before it
// for compressed archives (.tar.gz), or "" when that is no extension: a name
// that starts with the dot, or an ending as long as prose.
func extension(name string) string {
	ext := path.Ext(name)
	if len(ext) < 2 || len(ext) > maxExtension || len(ext) == len(name) || strings.ContainsFunc(ext, unicode.IsSpace) {
		return ""
	}
	stem := name[:len(name)-len(ext)]
	if inner := path.Ext(stem); strings.EqualFold(inner, ".tar") && len(inner) < len(stem) {
		return inner + ext
	}
	return ext
}

// cut returns at most n bytes of s without separating a character from the
// marks that combine with it. A character with more marks than fit loses some.
func cut(s string, n int) string {
	end := n
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	for at := end; at > 0; {
		next, _ := utf8.DecodeRuneInString(s[at:])
		if !joins(next) {
			return s[:at]
		}
		_, size := utf8.DecodeLastRuneInString(s[:at])
		at -= size
	}
	return s[:end]
}

// joins reports whether r belongs to the character before it: combining marks,
// variation selectors, skin tones, and the later letters of a Hangul syllable.
func joins(r rune) bool {
	return unicode.Is(unicode.M, r) || 0x1f3fb <= r && r <= 0x1f3ff || 0x1161 <= r && r <= 0x11ff
}
