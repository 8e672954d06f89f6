package sniff

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"testing"
	"unicode/utf16"
)

func deflate(t testing.TB, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.DefaultCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// utf16Bytes encodes text with a byte order mark.
func utf16Bytes(order binary.AppendByteOrder, text string) []byte {
	out := order.AppendUint16(nil, 0xfeff)
	for _, unit := range utf16.Encode([]rune(text)) {
		out = order.AppendUint16(out, unit)
	}
	return out
}

// utf32Bytes encodes text with a byte order mark.
func utf32Bytes(order binary.AppendByteOrder, text string) []byte {
	out := order.AppendUint32(nil, 0xfeff)
	for _, r := range text {
		out = order.AppendUint32(out, uint32(r))
	}
	return out
}

// oleFile writes a compound file: header, allocation table, directory, then
// content. Streams named in nested lie in a storage below the root.
func oleFile(class uint32, streams, nested []string, content []byte) []byte {
	le := binary.LittleEndian
	header := make([]byte, 512)
	copy(header, oleMagic)
	le.PutUint16(header[24:], 0x3e)
	le.PutUint16(header[26:], 3)
	le.PutUint16(header[28:], 0xfffe)
	le.PutUint16(header[30:], 9)
	le.PutUint16(header[32:], 6)
	le.PutUint32(header[44:], 1)
	le.PutUint32(header[48:], 1) // directory
	le.PutUint32(header[56:], 4096)
	le.PutUint32(header[60:], 0xfffffffe)
	le.PutUint32(header[68:], 0xfffffffe)
	for at := 80; at < 512; at += 4 {
		le.PutUint32(header[at:], 0xffffffff)
	}
	const none = 0xffffffff
	var directory []byte
	entry := func(name string, kind byte, left, right, child uint32) {
		e := make([]byte, oleDirEntry)
		units := utf16.Encode([]rune(name))
		for i, u := range units {
			le.PutUint16(e[2*i:], u)
		}
		le.PutUint16(e[64:], uint16(2*len(units)+2))
		e[66] = kind
		le.PutUint32(e[68:], left)
		le.PutUint32(e[72:], right)
		le.PutUint32(e[76:], child)
		directory = append(directory, e...)
	}
	entry("Root Entry", 5, none, none, 1)
	le.PutUint32(directory[80:], class)
	// The root's children form a list to the right; the first is the storage.
	next := uint32(2 + len(nested))
	entry("Storage", 1, none, next, 2)
	for i, name := range nested {
		right := uint32(none)
		if i+1 < len(nested) {
			right = uint32(3 + i)
		}
		entry(name, 2, none, right, none)
	}
	for i, name := range streams {
		right := uint32(none)
		if i+1 < len(streams) {
			right = next + uint32(i) + 1
		}
		entry(name, 2, none, right, none)
	}
	for len(directory)%512 != 0 {
		directory = append(directory, 0)
	}
	table := bytes.Repeat([]byte{0xff}, 512)
	le.PutUint32(table, 0xfffffffd)
	sectors := len(directory) / 512
	for i := range sectors {
		le.PutUint32(table[4*(1+i):], uint32(2+i))
	}
	le.PutUint32(table[4*sectors:], 0xfffffffe)
	return bytes.Join([][]byte{header, table, directory, content}, nil)
}

// ftyp writes the first box of an ISO base media file and some of the next.
func ftyp(major string, compatible ...string) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(16+4*len(compatible)))
	out = append(out, "ftyp"+major+"\x00\x00\x00\x00"...)
	for _, brand := range compatible {
		out = append(out, brand...)
	}
	return append(out, "\x00\x00\x00\x08free\x00\x00\x10\x00mdat"...)
}
