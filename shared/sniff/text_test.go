package sniff

import (
	"encoding/binary"
	"strings"
	"testing"
)

func TestTextPasses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("été, 合同, 😀\n", 400)
	for name, data := range map[string]string{
		"nothing":               "",
		"one line":              "a",
		"only a BOM":            "\xef\xbb\xbf",
		"form feed, VT, escape": "page\x0cone\x0btwo \x1b[31mred\x1b[0m b\bb\n",
		"DOS end of file":       "dir\r\n\x1a",
		"unit separators":       "a\x1fb\x1fc\x1e" + strings.Repeat("more of it ", 20),
		"UTF-8, cut":            long[:HeadBytes],
		"UTF-8, cut elsewhere":  long[:HeadBytes-1],
		"Latin-1":               "caf\xe9, na\xefve, \xa33\n",
		"Windows-1252":          "\x93quoted\x94 \x80 5\n",
		"Windows-1251":          "\xff\xe2\xeb\xe5\xed\xe8\xe5 " + strings.Repeat("\xff\xe2\xed\xee \xef\xee ", 20),
		"Shift-JIS":             "\x93\xfa\x96{\x8c\xea\x82\xcc\x83e\x83L\x83X\x83g\n",
		"GBK":                   "\xba\xcf\xcd\xac\xce\xc4\xb1\xbe\n",
		"UTF-16LE":              string(utf16Bytes(binary.LittleEndian, "name;été\n1;😀\n")),
		"UTF-16BE":              string(utf16Bytes(binary.BigEndian, "name;été\n1;😀\n")),
		"UTF-16LE, odd":         string(utf16Bytes(binary.LittleEndian, "abc")) + "d",
		"UTF-32LE":              string(utf32Bytes(binary.LittleEndian, "name;été\n")),
		"UTF-32BE":              string(utf32Bytes(binary.BigEndian, "name;été\n")),
		"UTF-16LE, long":        string(utf16Bytes(binary.LittleEndian, long)),
		"shebang":               "#!/bin/sh\necho\n",
		"PostScript":            "%!PS-Adobe-3.0\nshowpage\n",
		"RTF":                   `{\rtf1\ansi hello}`,
		// Letters that open a binary format, opening prose.
		"BM":             "BMW built the car in 1936, they say. (((0\n",
		"GIF":            "GIF89a is the format of 1989.\n",
		"GIF87a":         "GIF87a came first.\n",
		"ID3":            "ID3 tags hold titles.\n",
		"MZ in Latin-1":  "MZ f\xfcr Mark Zbikowski\n",
		"MThd, cut":      "MThd été " + long[:HeadBytes-12],
		"MZ":             "MZ are the initials of Mark Zbikowski.\n",
		"RIFF":           "RIFF, the WAVE of the future, is a format.\n",
		"RIFF WAVE":      "RIFF1234WAVEfmt is how it starts.\n",
		"FORM AIFF":      "FORM1234AIFF is how it starts.\n",
		"II*":            "II* means little-endian.\n",
		"MM":             "MM* means big-endian.\n",
		"PK":             "PK is a pair of initials. PKZIP was the program.\n",
		"Rar!":           "Rar! is what the archives say.\n",
		"BZh":            "BZh91AY&SY is how bzip2 begins.\n",
		"PAR1":           "PAR1 marks Parquet, at both ends.\n",
		"OggS":           "OggS marks pages.\n",
		"fLaC":           "fLaC is short for what you think.\n",
		"MThd":           "MThd begins a MIDI file.\n",
		"8BPS":           "8BPS is Photoshop.\n",
		"FLV":            "FLV is dead.\n",
		"FWS":            "FWS and CWS were Flash.\n",
		"wOFF":           "wOFF, wOF2: fonts.\n",
		"OTTO":           "OTTO is a name and a font.\n",
		"ttcf":           "ttcf is a collection.\n",
		"!<arch>":        "!<arch>\nthis is no archive at all\n",
		"SIMPLE":         "SIMPLE  =                    T / a header card\n",
		"ftyp":           "1234ftypisom is what a box looks like.\n",
		"moov":           "A movie moov box, or mdat, is a box.\n",
		"moov fifth":     "the moov box\n",
		"glTF":           "glTF is a format.\n",
		"SQLite":         "SQLite format 3 is the header.\n",
		"Cr24":           "Cr24 is an extension.\n",
		"070707":         "0707071234 is my phone number.\n",
		"Obj":            "Objects in the mirror.\n",
		"DICM":           strings.Repeat("x", 128) + "DICM in prose.\n",
		"ustar":          strings.Repeat("x", 257) + "ustar is the magic of tar.\n",
		"GIMP":           "I like to work with GIMP\n",
		"AC1015":         "AC1015 is a flight.\n",
		"zlib":           "x \x01 marks the spot, with a control character in it, but only one\n",
		"EMF":            strings.Repeat("x", 40) + " EMF is a metafile.\n",
		"true":           "true\n",
		"wvpk":           "wvpk, TTA1, caff: audio.\n",
		"PCX-like":       "\n\x05\x01 a line feed and controls\n",
		"-lh5-":          "ab-lh5- is a method of LHA. And so it goes on.\n",
		"P6":             "P6\n# no image\nbut words\n",
		"PDF in prose":   "A file starts with %PDF-1.7 and so on.\n",
		"PDF in a block": "How PDF works\n\n    %PDF-1.7\n\nis the first line.\n",
		"PDF far away":   strings.Repeat("x\n", 600) + "%PDF-1.7\n1 0 obj\n",
		"script of ps":   "%!PS\n1 2 add =\n",
		"mail":           "From: a@example.com\nTo: b@example.com\nSubject: x\n\nbody\n",
	} {
		for _, declared := range []string{"text/plain", "text/csv", "text/markdown; charset=utf-8", "application/json", "application/vnd.api+json", "image/svg+xml", "application/x-yaml", "application/vnd.ms-excel"} {
			if got := (object{data: []byte(data), size: HeadBytes + int64(len(data))}).check(t, declared); !got.OK {
				t.Errorf("%s refused as %s, detected %q", name, declared, got.Detected)
			}
		}
	}
}

func TestBinaryIsNoText(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"NUL":               "text\x00text",
		"NUL behind a BOM":  "\xef\xbb\xbftext\x00text",
		"UTF-16 without it": "t\x00e\x00x\x00t\x00",
		"UTF-16 with NUL":   string(utf16Bytes(binary.LittleEndian, "a\x00b")),
		"UTF-32 too high":   string(utf32Bytes(binary.LittleEndian, "ab")) + "\xff\xff\xff\xff",
		"PNG":               "\x89PNG\r\n\x1a\n",
		"JPEG":              "\xff\xd8\xff\xe0JFIF and text",
		"GIF":               "GIF89a\x01\x02\x80ff\xff\xff",
		"ELF":               "\x7fELF\x02\x01\x01",
		"EXE":               "MZ\x90\x03",
		"ZIP":               "PK\x03\x04" + strings.Repeat("a", 100),
		"gzip":              "\x1f\x8b\x08abc",
		"7z":                "7z\xbc\xaf\x27\x1c",
		"xz":                "\xfd7zXZ\x00",
		"zstd":              "\x28\xb5\x2f\xfdabc",
		"OLE2":              oleMagic + "abc",
		"PDF":               "%PDF-1.4\n1 0 obj\n",
		"PDF, ASCII only":   "%PDF-1.0\nplain words",
		"PDF behind a BOM":  "\xef\xbb\xbf%PDF-1.7\n",
		"PDF behind blanks": "\r\n  %PDF-1.7\n",
		"PDF behind junk":   "HTTP/1.1 200 OK\r\n\r\n%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<<>>\n",
		"class":             "\xca\xfe\xba\xbe\x01\x01\x01\x41",
		"PNG behind a BOM":  "\xef\xbb\xbf\x89PNG\r\n\x1a\n",
		"ZIP behind a BOM":  "\xef\xbb\xbfPK\x03\x04",
	} {
		for _, declared := range []string{"text/plain", "application/json", "image/svg+xml", "application/vnd.acme+yaml", "text/x-acme"} {
			if got := whole(data).check(t, declared); got.OK {
				t.Errorf("%s accepted as %s, detected %q", name, declared, got.Detected)
			}
		}
	}
}

func TestKindsOfText(t *testing.T) {
	t.Parallel()
	const bom = "\xef\xbb\xbf"
	svg := `<svg xmlns="http://www.w3.org/2000/svg"/>`
	longJSON := `{"list": [` + strings.Repeat(`{"a": "b"}, `, 1000)
	for _, c := range []struct{ data, want string }{
		{"words\n", "text/plain"},
		{"a,b\n1,2\n3,4\n", "text/csv"},
		{bom + "a,b\n1,2\n3,4\n", "text/csv"},
		{`{"a": 1}`, "application/json"},
		{bom + `{"a": 1}`, "application/json"},
		{longJSON, "application/json"},
		{bom + longJSON, "application/json"},
		{string(utf16Bytes(binary.LittleEndian, `{"a": 1}`)), "application/json"},
		{string(utf16Bytes(binary.BigEndian, longJSON)), "application/json"},
		{"{\"a\":1}\n{\"a\":2}\n", "application/x-ndjson"},
		{svg, "image/svg+xml"},
		{bom + svg, "image/svg+xml"},
		{"<svg onload='x()'/>", "image/svg+xml"},
		{"<?xml version='1.0'?>\n<!-- a --><!DOCTYPE svg [<!ENTITY a 'b'> ]>\n<svg:svg/>", "image/svg+xml"},
		{"<?xml version='1.0'?><a><svg/></a>", "image/svg+xml"}, // the library's guess
		{"<?xml version='1.0'?><a/>", "text/xml"},
		{bom + "<?xml version='1.0'?><a/>", "text/xml"},
		{string(utf16Bytes(binary.LittleEndian, "<?xml version='1.0'?><a/>")), "text/xml"},
		{"<!DOCTYPE html><html><svg/></html>", "text/html"},
		{"<!-- hello -->\n<html>", "text/html"},
		{bom + "\n<HTML>", "text/html"},
		{"<!-- hello -->\n<svg/>", "image/svg+xml"},
		{"#!/bin/sh\n", "text/x-shellscript"},
		{"BEGIN:VCARD\nVERSION:4.0\n", "text/vcard"},
		{"WEBVTT\n\n", "text/vtt"},
		{`{\rtf1 x}`, "application/rtf"},
		{"%!PS-Adobe-3.0\n", "application/postscript"},
		{"page\x0btwo\n", "text/plain"},
		{"{\"a\":\x0b 1}", "application/json"},
		{"GIF89a is a format.\n", "text/plain"},
		{strings.Repeat("\x01\x02", 9), ""},
	} {
		if got := whole(c.data).check(t, "application/octet-stream"); got.Detected != c.want {
			t.Errorf("%.40q detected as %q, want %q", c.data, got.Detected, c.want)
		}
	}
}

func TestPDF(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		data     string
		ok       bool
		detected string
	}{
		"at the start":       {"%PDF-1.7\n", true, "application/pdf"},
		"behind a BOM":       {"\xef\xbb\xbf%PDF-1.7\n", true, "application/pdf"},
		"behind NULs":        {strings.Repeat("\x00", 128) + "%PDF-1.7\n", true, "application/pdf"},
		"behind junk":        {"\x00junk\xff" + "%PDF-1.7\n", true, "application/pdf"},
		"behind text":        {"junk\n%PDF-1.7\nwords", true, "application/pdf"},
		"just within 1024":   {strings.Repeat("x", 1019) + "%PDF-1.7\n", true, "application/pdf"},
		"beyond 1024":        {strings.Repeat("x", 1020) + "%PDF-1.7\n", false, "text/plain"},
		"in a tar":           {tarOf("a.pdf", "%PDF-1.7\n"), false, "application/x-tar"},
		"in a PNG's comment": {"\x89PNG\r\n\x1a\n\x00\x00\x00\x20tEXt%PDF-1.7\n1 0 obj", false, "image/png"},
		"prose":              {"not a document at all", false, "text/plain"},
		"another program's":  {"%!PS-Adobe-3.0\n", false, "application/postscript"},
	} {
		got := whole(c.data).check(t, "application/pdf")
		if got.OK != c.ok || got.Detected != c.detected {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := whole(tarOf("a.pdf", "%PDF-1.7\n1 0 obj")).check(t, "application/x-tar"); !got.OK {
		t.Errorf("tar of a PDF: %+v", got)
	}
}
