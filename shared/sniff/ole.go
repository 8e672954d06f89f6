package sniff

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode/utf16"
)

// OLE2 compound files (MS-CFB) are little file systems. What one holds follows
// from the class of its root or the names of the streams right below it. The
// directory can be anywhere in the file; when it is not in the head, the sectors
// there and the library get a say, and what stays undecided is the parent.

const (
	oleMagic     = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
	oleDirEntry  = 128
	oleNoStream  = 0xffffffff
	oleGenericID = "application/x-ole-storage"
)

func isOLE(head []byte) bool { return bytes.HasPrefix(head, []byte(oleMagic)) }

// detectOLE classifies a file that isOLE.
func detectOLE(head []byte) finding {
	dir := readOLEDirectory(head)
	if kind := dir.classKind(); kind != "" {
		return binaryFinding(kind)
	}
	if kind := dir.streamKind(); kind == encryptedOffice {
		found := binaryFinding(oleGenericID)
		// Office wraps password-protected documents of every kind alike.
		found.also = []string{"docx", "docm", "xlsx", "xlsm", "xlsb", "pptx", "pptm", "vsdx", "vsdm"}
		return found
	} else if kind != "" {
		return binaryFinding(kind)
	}
	if kind := sectorKind(head); kind != "" {
		return binaryFinding(kind)
	}
	// The library also reads the application's name from the summary. Its guess
	// from an allocation table in the first sector ("xls") fits any OLE2 file.
	kind, _ := fromLibrary(head)
	if kind != "" && (kind != "application/vnd.ms-excel" || !startsWithFAT(head)) {
		return binaryFinding(kind)
	}
	return binaryFinding(oleGenericID)
}

// oleDirectory holds the directory entries that lie in the head, by number.
type oleDirectory []oleEntry

type oleEntry struct {
	raw                []byte
	left, right, child uint32
}

// name returns the entry's name, which is UTF-16 of at most 31 units.
func (e oleEntry) name() string {
	n := min(int(binary.LittleEndian.Uint16(e.raw[64:])), 64)/2 - 1
	units := make([]uint16, 0, 31)
	for i := range n {
		units = append(units, binary.LittleEndian.Uint16(e.raw[2*i:]))
	}
	return string(utf16.Decode(units))
}

// readOLEDirectory follows the directory's sectors as far as they and the
// allocation table lie in the head.
func readOLEDirectory(head []byte) oleDirectory {
	if len(head) < 512 {
		return nil
	}
	shift := binary.LittleEndian.Uint16(head[30:])
	if shift != 9 && shift != 12 {
		return nil
	}
	sectorSize := 1 << shift
	sector := func(id uint32) []byte {
		start := (int64(id) + 1) << shift
		if start+int64(sectorSize) > int64(len(head)) {
			return nil
		}
		return head[start : start+int64(sectorSize)]
	}
	next := func(id uint32) uint32 {
		perSector := uint32(sectorSize / 4)
		if id/perSector >= 109 { // the header lists the first 109 sectors of the table
			return oleNoStream
		}
		part := sector(binary.LittleEndian.Uint32(head[76+4*(id/perSector):]))
		if part == nil {
			return oleNoStream
		}
		return binary.LittleEndian.Uint32(part[4*(id%perSector):])
	}
	var dir oleDirectory
	id := binary.LittleEndian.Uint32(head[48:])
	for range HeadBytes / 512 { // a table that loops ends here
		part := sector(id)
		if part == nil {
			break
		}
		for ; len(part) >= oleDirEntry; part = part[oleDirEntry:] {
			dir = append(dir, oleEntry{
				raw:   part[:oleDirEntry],
				left:  binary.LittleEndian.Uint32(part[68:]),
				right: binary.LittleEndian.Uint32(part[72:]),
				child: binary.LittleEndian.Uint32(part[76:]),
			})
		}
		id = next(id)
	}
	return dir
}

// oleClasses maps the first field of a root's class to a type. The other fields
// add nothing: Microsoft numbered its classes by this one.
var oleClasses = map[uint32]string{
	0x00020900: "application/msword", // Word 6
	0x00020906: "application/msword", // Word 97
	0x00020907: "application/msword", // Word picture
	0x00020810: "application/vnd.ms-excel",
	0x00020811: "application/vnd.ms-excel",
	0x00020820: "application/vnd.ms-excel",
	0x00020821: "application/vnd.ms-excel",
	0x64818d10: "application/vnd.ms-powerpoint",
	0xea7bae70: "application/vnd.ms-powerpoint", // PowerPoint 95
	0x00020d0b: "application/vnd.ms-outlook",
	0x00021201: "application/vnd.ms-publisher",
	0x00021a13: "application/vnd.visio",
	0x00021a14: "application/vnd.visio",
	0x000c1082: "application/x-ms-installer", // transform
	0x000c1084: "application/x-ms-installer",
	0x000c1086: "application/x-ms-installer", // patch
	0x74b78f3a: "application/vnd.ms-project",
}

func (d oleDirectory) classKind() string {
	if len(d) == 0 {
		return ""
	}
	return oleClasses[binary.LittleEndian.Uint32(d[0].raw[80:])]
}

const encryptedOffice = "encrypted office document"

var oleStreams = map[string]string{
	"WordDocument":              "application/msword",
	"Workbook":                  "application/vnd.ms-excel",
	"Book":                      "application/vnd.ms-excel",
	"PowerPoint Document":       "application/vnd.ms-powerpoint",
	"PP40":                      "application/vnd.ms-powerpoint",
	"__properties_version1.0":   "application/vnd.ms-outlook",
	"__nameid_version1.0":       "application/vnd.ms-outlook",
	"VisioDocument":             "application/vnd.visio",
	"Quill":                     "application/vnd.ms-publisher",
	"MatOST":                    "application/vnd.ms-works",
	"\x05HwpSummaryInformation": "application/x-hwp",
	"EncryptedPackage":          encryptedOffice,
}

// installerTable starts the names of the database tables of an installer.
const installerTable = "\u4840"

// streamKind names the type from the streams right below the root. Streams of
// embedded documents lie deeper, so a flat look at the names would mistake them.
func (d oleDirectory) streamKind() string {
	if len(d) == 0 {
		return ""
	}
	queue := []uint32{d[0].child}
	for seen := 0; len(queue) > 0 && seen <= len(d); seen++ {
		id := queue[0]
		queue = queue[1:]
		if int64(id) >= int64(len(d)) {
			continue
		}
		name := d[id].name()
		if kind := oleStreams[name]; kind != "" {
			return kind
		}
		if strings.HasPrefix(name, installerTable) {
			return "application/x-ms-installer"
		}
		queue = append(queue, d[id].left, d[id].right)
	}
	return ""
}

// streamStarts are the beginnings of the main streams.
var streamStarts = [...]struct{ magic, kind string }{
	{"\xec\xa5", "application/msword"},
	{"\xdc\xa5", "application/msword"},
	{"\x09\x08\x10\x00\x00\x06", "application/vnd.ms-excel"},
	{"\x09\x08\x10\x00\x00\x05", "application/vnd.ms-excel"},
	{"\x09\x08\x08\x00\x00\x05", "application/vnd.ms-excel"},
	{"\x0f\x00\xe8\x03", "application/vnd.ms-powerpoint"},
	{"\xa0\x46\x1d\xf0", "application/vnd.ms-powerpoint"},
	{"\x00\x6e\x1e\xf0", "application/vnd.ms-powerpoint"},
}

// compObj starts a CompObj stream; the class of the document follows it.
const compObj = "\x01\x00\xfe\xff\x03\x0a\x00\x00\xff\xff\xff\xff"

// sectorKind is for files whose directory lies behind the head, as LibreOffice
// writes them: it looks for the start of a main stream at the sectors in the
// head, where writers like to put it. Two kinds are one too many, and an OLE2
// file inside the file ends the search.
func sectorKind(head []byte) string {
	found := ""
	for at := 512; at+16 <= len(head); at += 512 {
		sector, kind := head[at:], ""
		if isOLE(sector) {
			break
		}
		for _, s := range streamStarts {
			if bytes.HasPrefix(sector, []byte(s.magic)) {
				kind = s.kind
			}
		}
		if bytes.HasPrefix(sector, []byte(compObj)) {
			kind = oleClasses[binary.LittleEndian.Uint32(sector[len(compObj):])]
		}
		if kind != "" && found != "" && kind != found {
			return ""
		}
		if kind != "" {
			found = kind
		}
	}
	return found
}

// startsWithFAT reports whether the first sector is an allocation table.
func startsWithFAT(head []byte) bool {
	return len(head) >= 516 && binary.LittleEndian.Uint32(head[512:]) == 0xfffffffd
}
