// Package names decides which file names are accepted, what is kept of them, and how they are written into a
// Content-Disposition header. A name is only shown to people and offered when saving; it never enters a storage key.
package names

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxBytes is the longest name that is kept, in bytes of UTF-8: what common file systems take.
const MaxBytes = 255

// Refusals of Clean; their texts are meant for the caller who sent the name.
var (
	ErrEncoding = errors.New("must be valid UTF-8")
	ErrEmpty    = errors.New("must name a file: it is empty, . or .. once folders are taken off")
	ErrControl  = errors.New("must not contain control, bidirectional or zero-width characters")
)

// Clean returns the name to keep for s: the last segment behind both kinds of separator, in Unicode form NFC, at most
// MaxBytes long with its extension kept. Cleaning a clean name changes nothing. The errors are ErrEncoding, ErrEmpty
// and ErrControl.
func Clean(s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", ErrEncoding
	}
	if strings.ContainsFunc(s, hidden) {
		return "", ErrControl
	}
	s = norm.NFC.String(s)
	s = strings.TrimSpace(s[strings.LastIndexAny(s, `/\`)+1:])
	s = strings.TrimSpace(shorten(s, MaxBytes))
	if s == "" || s == "." || s == ".." {
		return "", ErrEmpty
	}
	return s, nil
}

// hidden reports characters that a person can't see or that change how the others are read: controls, formats (bidi
// marks, zero-width characters, byte order marks), line and paragraph separators, and unassigned stand-ins.
func hidden(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs) || unicode.Is(unicode.Noncharacter_Code_Point, r) || fillers[r]
}

// fillers are letters and marks by category that show nothing.
var fillers = map[rune]bool{
	'\u034f': true,                                                 // combining grapheme joiner
	'\u115f': true, '\u1160': true, '\u3164': true, '\uffa0': true, // Hangul fillers
	'\u17b4': true, '\u17b5': true, // Khmer inherent vowels
	'\ufffd': true, // what is left of bytes that could not be read
}

// shorten cuts s to at most max bytes, from the stem if there is room, so that the extension stays.
func shorten(s string, max int) string {
	if len(s) <= max {
		return s
	}
	ext := ""
	if i := strings.LastIndexByte(s, '.'); i > 0 && len(s)-i <= max/2 {
		ext = s[i:]
	}
	stem := s[:len(s)-len(ext)]
	return cut(stem, max-len(ext)) + ext
}

// cut returns at most max bytes of s, ending between characters: combining marks are not parted from their base.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	end := max
	for end > 0 {
		if utf8.RuneStart(s[end]) {
			if r, _ := utf8.DecodeRuneInString(s[end:]); !unicode.Is(unicode.M, r) {
				break
			}
		}
		end--
	}
	if end == 0 { // marks all the way: better parted than empty
		for end = max; !utf8.RuneStart(s[end]); end-- {
		}
	}
	return strings.TrimRightFunc(s[:end], unicode.IsSpace)
}
