package sniff

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"claimcheck.dev/claimcheck/shared/mediatype"
)

// Reading of ZIP containers from two windows: the head of the object and, if
// needed, its end. Only member names and two small members are read. Nothing in
// here trusts a number in the file; damage means fewer names, never an error.

const (
	localHeader   = "PK\x03\x04"
	centralHeader = "PK\x01\x02"
	endRecord     = "PK\x05\x06"
	spanMarker    = "PK\x07\x08"
	end64Record   = "PK\x06\x06"
	end64Locator  = "PK\x06\x07"

	localHeaderLen   = 30
	centralHeaderLen = 46
	endRecordLen     = 22
	end64LocatorLen  = 20
)

// isZip reports whether head starts with a member, a span marker or the end
// record of an archive without members.
func isZip(head []byte) bool {
	for _, magic := range [...]string{localHeader, endRecord, spanMarker, "PK00PK\x03\x04"} {
		if bytes.HasPrefix(head, []byte(magic)) {
			return true
		}
	}
	return false
}

// window is a part of the object; at is the offset of its first byte.
type window struct {
	at   int64
	data []byte
}

// detectZip finds what a ZIP container holds. It asks for the tail unless the
// head settles it, or is the whole object.
func detectZip(ctx context.Context, head []byte, size int64, tail Tail) (finding, error) {
	var c contents
	windows := []window{{0, head}}
	c.readLocal(windows[0])
	if !c.settled() {
		end := windows[0]
		if size > int64(len(head)) && tail != nil {
			data, err := tail(ctx, min(size, TailBytes))
			if err != nil {
				return finding{}, fmt.Errorf("reading the end of a ZIP container: %w", err)
			}
			data = data[max(0, len(data)-TailBytes):]
			end = window{max(0, size-int64(len(data))), data}
			windows = append(windows, end)
		}
		c.readCentral(end)
		c.readMembers(windows)
	}
	return c.finding(), nil
}

// member is what a local or central header says of one member.
type member struct {
	name   []byte
	offset int64 // of the local header in the object
}

// readLocal walks the local headers at the start of the object. It stops where
// a member's size is only known behind its data: looking for the next header
// there would find those of archives stored inside.
func (c *contents) readLocal(head window) {
	at := int64(0)
	if bytes.HasPrefix(head.data, []byte(spanMarker)) || bytes.HasPrefix(head.data, []byte("PK00")) {
		at = 4
	}
	for first := true; ; first = false {
		h, ok := readLocalHeader(head, at)
		if !ok {
			return
		}
		c.add(member{h.name, at})
		if first && string(h.name) == "mimetype" {
			c.declared = mediaTypeOf(head.data[h.data:], h)
		}
		if string(h.name) == contentTypes {
			c.addContentTypes(inflate(head.data[h.data:], h, maxContentTypes))
		}
		if !h.sized {
			return
		}
		at = int64(h.data) + h.size
	}
}

// localEntry is a decoded local header.
type localEntry struct {
	name    []byte
	data    int // index in the window of the member's data
	size    int64
	sized   bool // size is known before the data
	deflate bool
	stored  bool
}

// readLocalHeader decodes the local header at an offset of the object.
func readLocalHeader(w window, offset int64) (localEntry, bool) {
	at := offset - w.at
	if at < 0 || at+localHeaderLen > int64(len(w.data)) {
		return localEntry{}, false
	}
	h := w.data[at:]
	if string(h[:4]) != localHeader {
		return localEntry{}, false
	}
	nameLen := int(binary.LittleEndian.Uint16(h[26:]))
	extraLen := int(binary.LittleEndian.Uint16(h[28:]))
	if localHeaderLen+nameLen > len(h) {
		return localEntry{}, false
	}
	method := binary.LittleEndian.Uint16(h[8:])
	entry := localEntry{
		name:    h[localHeaderLen : localHeaderLen+nameLen],
		data:    min(int(at)+localHeaderLen+nameLen+extraLen, len(w.data)),
		size:    int64(binary.LittleEndian.Uint32(h[18:])),
		sized:   true,
		deflate: method == 8,
		stored:  method == 0,
	}
	if entry.size == 0xffffffff {
		extra := h[localHeaderLen+nameLen:]
		entry.size, entry.sized = zip64Size(extra[:min(extraLen, len(extra))])
	}
	if streamed := h[6]&8 != 0; streamed && entry.size == 0 {
		entry.sized = false
	}
	return entry, true
}

// zip64Size returns the compressed size in the zip64 field of a local header,
// where it follows the uncompressed size.
func zip64Size(extra []byte) (int64, bool) {
	for len(extra) >= 4 {
		id, n := binary.LittleEndian.Uint16(extra), int(binary.LittleEndian.Uint16(extra[2:]))
		extra = extra[4:]
		if n > len(extra) {
			break
		}
		if id == 1 && n >= 16 {
			size := binary.LittleEndian.Uint64(extra[8:])
			return int64(size), size < 1<<62
		}
		extra = extra[n:]
	}
	return 0, false
}

// inflate returns up to limit bytes of the member whose data starts at data,
// as far as they lie in the window.
func inflate(data []byte, h localEntry, limit int) []byte {
	if h.sized && h.size < int64(len(data)) {
		data = data[:h.size]
	}
	switch {
	case h.stored:
		if !h.sized {
			// The data ends at a descriptor or at the next header.
			if end := bytes.Index(data, []byte("PK")); end >= 0 {
				data = data[:end]
			}
		}
		return data[:min(len(data), limit)]
	case h.deflate:
		out := make([]byte, limit)
		n, _ := io.ReadFull(flate.NewReader(bytes.NewReader(data)), out)
		return out[:n]
	}
	return nil
}

// maxDeclared is more than any media type in a member "mimetype" takes.
const maxDeclared = 255

// mediaTypeOf reads the member "mimetype" that OpenDocument, EPUB and others
// put first.
func mediaTypeOf(data []byte, h localEntry) string {
	text := string(bytes.TrimSpace(inflate(data, h, maxDeclared)))
	if canonical, err := mediatype.Parse(text); err == nil {
		return mediatype.Base(canonical)
	}
	return ""
}

// readCentral walks the central directory as far as it lies in the last bytes
// of the object.
func (c *contents) readCentral(end window) {
	start, entries, ok := centralDirectory(end)
	if !ok {
		return
	}
	rest := end.data[start:]
	for n := 0; len(rest) >= centralHeaderLen && string(rest[:4]) == centralHeader; n++ {
		nameLen := int(binary.LittleEndian.Uint16(rest[28:]))
		skip := centralHeaderLen + nameLen + int(binary.LittleEndian.Uint16(rest[30:])) + int(binary.LittleEndian.Uint16(rest[32:]))
		if skip > len(rest) {
			break
		}
		offset := int64(binary.LittleEndian.Uint32(rest[42:]))
		c.add(member{rest[centralHeaderLen : centralHeaderLen+nameLen], offset})
		c.complete = entries >= 0 && int64(n+1) >= entries
		rest = rest[skip:]
	}
}

// centralDirectory finds the directory from the end record. It returns the
// index of the first entry in the window and how many there are in all, or -1
// when the window holds only the last ones.
func centralDirectory(end window) (start int, entries int64, ok bool) {
	at := findEndRecord(end.data)
	if at < 0 {
		return 0, 0, false
	}
	record := end.data[at:]
	entries = int64(binary.LittleEndian.Uint16(record[10:]))
	size := int64(binary.LittleEndian.Uint32(record[12:]))
	stop := int64(at)
	if locator := at - end64LocatorLen; locator >= 0 && string(end.data[locator:locator+4]) == end64Locator {
		stop = int64(locator)
		offset := binary.LittleEndian.Uint64(end.data[locator+8:]) - uint64(end.at)
		if i := int64(offset); i >= 0 && i <= int64(locator)-56 && string(end.data[i:i+4]) == end64Record {
			entries = int64(min(binary.LittleEndian.Uint64(end.data[i+32:]), 1<<62))
			size = int64(min(binary.LittleEndian.Uint64(end.data[i+40:]), 1<<62))
			stop = i
		}
	}
	// The directory ends where the end records begin. Its offset says the same
	// unless something was put in front of the archive.
	if first := stop - size; first >= 0 && bytes.HasPrefix(end.data[first:], []byte(centralHeader)) {
		return int(first), entries, true
	}
	// It starts before the window: take it up at the first entry that is whole.
	if next := bytes.Index(end.data[:stop], []byte(centralHeader)); next >= 0 && stop < size {
		return next, -1, true
	}
	return 0, 0, false
}

// findEndRecord returns the index of the end record: the last one whose comment
// reaches exactly to the end, or else the last one.
func findEndRecord(data []byte) int {
	fallback := -1
	for stop := len(data); ; {
		at := bytes.LastIndex(data[:stop], []byte(endRecord))
		if at < 0 {
			return fallback
		}
		if at+endRecordLen <= len(data) {
			if at+endRecordLen+int(binary.LittleEndian.Uint16(data[at+20:])) == len(data) {
				return at
			}
			if fallback < 0 {
				fallback = at
			}
		}
		stop = at + len(endRecord) - 1
	}
}

// readMembers reads the content types of an OPC package if the member lies in
// one of the windows and the head has not shown it yet.
func (c *contents) readMembers(windows []window) {
	if c.mainType != "" || !c.has(hasContentTypes) {
		return
	}
	for _, w := range windows {
		h, ok := readLocalHeader(w, c.typesAt)
		if ok && string(h.name) == contentTypes {
			c.addContentTypes(inflate(w.data[h.data:], h, maxContentTypes))
			return
		}
	}
}
