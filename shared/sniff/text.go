package sniff

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"
)

// What counts as text: no NUL, unless the bytes are UTF-16 or UTF-32 with a
// byte order mark, and no binary signature. Any encoding, any other control
// character and any cut in the middle of a character are fine. A signature made
// of letters ("MThd", "RIFF", "BM") does not count when everything in the head
// is evidently text; "%PDF-" at the start always does.

const utf8BOM = "\xef\xbb\xbf"

// decodeWide turns UTF-16 and UTF-32 with a byte order mark into UTF-8. It
// fails for other bytes and for those that hold a NUL character or values
// outside Unicode; an incomplete unit at the end is dropped.
func decodeWide(head []byte) ([]byte, bool) {
	var order binary.ByteOrder
	width := 2
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xfe\x00\x00")):
		order, width = binary.LittleEndian, 4
	case bytes.HasPrefix(head, []byte("\x00\x00\xfe\xff")):
		order, width = binary.BigEndian, 4
	case bytes.HasPrefix(head, []byte("\xff\xfe")):
		order = binary.LittleEndian
	case bytes.HasPrefix(head, []byte("\xfe\xff")):
		order = binary.BigEndian
	default:
		return nil, false
	}
	out := make([]byte, 0, len(head))
	for rest := head[width:]; len(rest) >= width; rest = rest[width:] {
		var unit uint32
		if width == 4 {
			unit = order.Uint32(rest)
		} else {
			unit = uint32(order.Uint16(rest))
		}
		if unit == 0 || unit > utf8.MaxRune {
			return nil, false
		}
		// Halves of surrogate pairs become U+FFFD each: only ASCII matters for
		// telling kinds of text apart.
		out = utf8.AppendRune(out, rune(unit))
	}
	return out[:min(len(out), HeadBytes)], true
}

// isControl reports whether c is a control character that text does not use.
// Backspace overstrikes in manual pages, escape colours logs, and a DOS text
// may end with 0x1A.
func isControl(c byte) bool {
	switch c {
	case '\b', '\t', '\n', '\v', '\f', '\r', 0x1a, 0x1b:
		return false
	}
	return c < ' ' || c == 0x7f
}

// isProse reports whether body is evidently text in spite of the signature of
// kind: no control characters but those of text, and either UTF-8 or, in an
// older encoding, ASCII at the start, so that the signature is letters too.
func isProse(body []byte, kind string) bool {
	for _, c := range body {
		if isControl(c) {
			return false
		}
	}
	if validUTF8(body) {
		return true
	}
	if kind == "audio/mpeg" || kind == "audio/aac" {
		// Frames open with a pattern that is also "яв" or "ÿó" in one-byte
		// encodings, and do not stay free of control characters for long.
		return len(body) >= 64
	}
	start := body[:min(len(body), 12)]
	if shortMagic[kind] {
		start = start[:min(len(start), 4)]
	}
	for _, c := range start {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// validUTF8 tolerates a character cut off at the end.
func validUTF8(b []byte) bool {
	for i := 1; i <= min(3, len(b)); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-i:]) {
				b = b[:len(b)-i]
			}
			break
		}
	}
	return utf8.Valid(b)
}

// refineText names the kind of a text without byte order mark, given what the
// library said of it ("" for nothing): "text/plain" when there is nothing more
// to say, or "" for bytes with so many control characters that they are text in
// name only.
func refineText(body []byte, cut bool, kind string) string {
	if markup := markupKind(body); markup != "" {
		return markup
	}
	if kind == "" {
		// The library gives up at the first control character.
		clean, controls := blankControls(body)
		if controls*16 > len(clean) || controls > 0 && !validUTF8(clean) {
			return ""
		}
		var isText bool
		if kind, isText = fromLibrary(clean); !isText {
			return "text/plain"
		}
		body = clean
	}
	if kind == "text/plain" && cut && len(body) < HeadBytes {
		// Fewer bytes than its limit are a whole file to the library, and half a
		// JSON document is then none. Blanks in front change no kind of text.
		padded := bytes.Repeat([]byte{' '}, HeadBytes)
		copy(padded[HeadBytes-len(body):], body)
		if full, isText := fromLibrary(padded); isText {
			kind = full
		}
	}
	return kind
}

// blankControls returns a copy of body with the control characters replaced
// that the library takes for binary data, and counts those that are not text.
func blankControls(body []byte) (clean []byte, controls int) {
	clean = bytes.Clone(body)
	for i, c := range clean {
		if isControl(c) {
			controls++
		}
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0x7f {
			clean[i] = ' '
		}
	}
	return clean, controls
}

// markupKind names XML and HTML by their root element, which the library
// guesses from what happens to come first; "" for everything else.
func markupKind(body []byte) string {
	rest, declared := body, false
	for {
		rest = bytes.TrimLeft(rest, " \t\r\n")
		var end string
		switch {
		case bytes.HasPrefix(rest, []byte("<?xml")):
			end, declared = "?>", true
		case bytes.HasPrefix(rest, []byte("<!--")):
			end = "-->"
		case bytes.HasPrefix(rest, []byte("<!DOCTYPE")), bytes.HasPrefix(rest, []byte("<!doctype")):
			if end = ">"; bytes.IndexByte(rest, '[') >= 0 && bytes.IndexByte(rest, '[') < bytes.IndexByte(rest, '>') {
				end = "]"
			}
		case bytes.HasPrefix(rest, []byte("]")):
			end = ">" // what follows an internal subset
		default:
			return rootKind(rest, declared)
		}
		at := bytes.Index(rest, []byte(end))
		if at < 0 {
			return ""
		}
		if end == "]" {
			rest = rest[at:]
		} else {
			rest = rest[at+len(end):]
		}
	}
}

func rootKind(rest []byte, declared bool) string {
	if len(rest) < 2 || rest[0] != '<' {
		return ""
	}
	name := rest[1:]
	if end := bytes.IndexAny(name, " \t\r\n/>"); end >= 0 {
		name = name[:end]
	}
	if colon := bytes.IndexByte(name, ':'); colon >= 0 {
		name = name[colon+1:]
	}
	switch {
	case string(name) == "svg":
		return "image/svg+xml"
	case bytes.EqualFold(name, []byte("html")) && !declared:
		return "text/html"
	}
	return ""
}
