package sniff

import (
	"bytes"
	"encoding/binary"
)

// signatures are those that the library does not have, or has in a form too
// narrow for real files. They are tried before the library.
var signatures = []struct {
	offset int
	magic  string
	kind   string
}{
	// Tar comes first: the library finds a PDF in a tar whose first member is one.
	{257, "ustar", "application/x-tar"},
	{0, "%!PS", "application/postscript"},
	{0, "\x04%!PS", "application/postscript"},
	{0, "\xc5\xd0\xd3\xc6", "application/postscript"},
	{0, "{\\rt", "application/rtf"},
	{0, "\xdb\xa5\x2d\x00", "application/msword"},       // Word 2
	{0, "\x31\xbe\x00\x00", "application/msword"},       // Write, Word for DOS
	{0, "\xfe\x37\x00", "application/msword"},           // Word for Macintosh
	{0, "\x09\x00\x04\x00", "application/vnd.ms-excel"}, // Excel 2 to 4, before OLE2
	{0, "\x09\x02\x06\x00", "application/vnd.ms-excel"},
	{0, "\x09\x04\x06\x00", "application/vnd.ms-excel"},
	{0, "\x09\x08\x08\x00\x00\x05", "application/vnd.ms-excel"},
	{0, "\x09\x08\x10\x00\x00\x06", "application/vnd.ms-excel"},
	{0, "HWP Document File V", "application/x-hwp"},
	{0, "!BDN", "application/x-pst"},
	{0, "fLaC", "audio/flac"},
	{0, "MP+", "audio/musepack"},
	{0, "MAC ", "audio/ape"},
	{0, "wvpk", "audio/x-wavpack"},
	{0, "caff\x00", "audio/x-caf"},
	{0, "\x0b\x77", "audio/ac3"},
	{0, "TTA1", "audio/x-tta"},
	{0, "riff\x2e\x91\xcf\x11", "audio/x-w64"},
	{0, "\x7f\xfe\x80\x01", "audio/vnd.dts"},
	{0, "RF64\xff\xff\xff\xffWAVE", "audio/wav"},
	{0, "\xff\x4f\xff\x51", "image/x-jp2-codestream"},
	{0, "\x76\x2f\x31\x01", "image/x-exr"},
	{0, "DDS |", "image/vnd.ms-dds"},
	{0, "\xabKTX 11\xbb\r\n\x1a\n", "image/ktx"},
	{0, "\xabKTX 20\xbb\r\n\x1a\n", "image/ktx2"},
	{0, "\xd7\xcd\xc6\x9a", "image/wmf"},
	{0, "\x01\x00\x09\x00\x00\x03", "image/wmf"},
	{40, " EMF\x00\x00\x01\x00", "image/emf"},
	{0, "FUJIFILMCCD-RAW ", "image/x-fuji-raf"},
	{0, "IIRO", "image/x-olympus-orf"},
	{0, "IIRS", "image/x-olympus-orf"},
	{0, "IIU\x00", "image/x-panasonic-rw2"},
	{0, "MM\x00\x2b", "image/tiff"}, // BigTIFF
	{0, "II\x2b\x00", "image/tiff"},
	{0, "#?RGBE\n", "image/vnd.radiance"},
	{0, ".ra\xfd", "audio/x-pn-realaudio"},
	{0, "Cr24\x02\x00\x00\x00", "application/x-chrome-extension"},
	{0, "Cr24\x03\x00\x00\x00", "application/x-chrome-extension"},
	{0, "ARROW1\x00", "application/vnd.apache.arrow.file"},
	{0, "PARE", "application/vnd.apache.parquet"}, // encrypted footer
	{0, "Obj\x01", "application/vnd.apache.avro"},
	{0, "\x89HDF\r\n\x1a\n", "application/x-hdf5"},
	{0, "CDF\x01", "application/x-netcdf"},
	{0, "CDF\x02", "application/x-netcdf"},
	{0, "CDF\x05", "application/x-netcdf"},
	{0, "\x93NUMPY", "application/x-npy"},
	{0, "\x0a\x0d\x0d\x0a", "application/x-pcapng"},
	{0, "dex\n0", "application/vnd.android.dex"},
	{0, "\x04\x22\x4d\x18", "application/x-lz4"},
	{0, "\x89LZO\x00\r\n\x1a\n", "application/x-lzop"},
	{0, "\x1f\x9d", "application/x-compress"},
	{0, "\x60\xea", "application/x-arj"},
	{0, "MSCF", "application/vnd.ms-cab-compressed"},
	{0, "OTTO\x00", "font/otf"},
	{0, "true\x00", "font/ttf"},
	{0, "typ1\x00", "font/ttf"},
	{0, "ttcf\x00", "font/collection"},
	{0, "\x00\x01\x00\x00Standard ", "application/x-msaccess"},
}

// matchSignature returns the media type of the first own signature in head.
func matchSignature(head []byte) string {
	for _, s := range signatures {
		if len(head) >= s.offset+len(s.magic) && string(head[s.offset:s.offset+len(s.magic)]) == s.magic {
			return s.kind
		}
	}
	switch {
	case isRIFF(head):
		return riffKind(string(head[8:12]))
	case len(head) >= 12 && string(head[:4]) == "FORM" && (string(head[8:12]) == "AIFF" || string(head[8:12]) == "AIFC"):
		return "audio/aiff"
	case isBitmapCore(head):
		return "image/bmp"
	case isSFNT(head):
		return "font/ttf"
	case isADTS(head):
		return "audio/aac"
	case isTransportStream(head):
		return "video/mp2t"
	case len(head) >= 128 && head[0] == 10 && head[1] <= 5 && head[2] <= 1 && head[3] <= 8 && head[64] == 0:
		return "image/x-pcx"
	case isNetpbm(head):
		return netpbmKinds[head[1]-'1']
	case isLHA(head):
		return "application/x-lzh-compressed"
	case bytes.HasPrefix(head, []byte("ID3")) && len(head) >= 10 && head[3] < 0x10 && head[6]|head[7]|head[8]|head[9] < 0x80:
		return id3Kind(head)
	}
	return ""
}

func isRIFF(head []byte) bool {
	return len(head) >= 12 && (string(head[:4]) == "RIFF" || string(head[:4]) == "RIFX")
}

func riffKind(form string) string {
	switch form {
	case "WAVE":
		return "audio/wav"
	case "AVI ":
		return "video/x-msvideo"
	case "WEBP":
		return "image/webp"
	case "RMID":
		return "audio/midi"
	}
	return ""
}

// isBitmapCore knows the bitmaps of OS/2 1.x, whose header is 12 bytes long.
func isBitmapCore(head []byte) bool {
	return len(head) >= 26 && string(head[:2]) == "BM" &&
		binary.LittleEndian.Uint32(head[14:]) == 12 && binary.LittleEndian.Uint16(head[22:]) == 1
}

// isSFNT knows TrueType by its version, a believable number of tables and the
// tag of the first: the library has a list of tags, to which tools add theirs.
func isSFNT(head []byte) bool {
	if len(head) < 28 || string(head[:4]) != "\x00\x01\x00\x00" || head[4] != 0 || head[5] == 0 {
		return false
	}
	for _, c := range head[12:16] {
		if c < ' ' || c > '~' {
			return false
		}
	}
	// The first table lies behind the directory.
	return binary.BigEndian.Uint32(head[20:]) >= 12+16*uint32(head[5])
}

// isIcon checks what the library leaves out: that the first image of an icon or
// cursor lies behind the directory.
func isIcon(head []byte) bool {
	if len(head) < 22 {
		return false
	}
	count := uint32(binary.LittleEndian.Uint16(head[4:]))
	return count > 0 && binary.LittleEndian.Uint32(head[18:]) >= 6+16*count && binary.LittleEndian.Uint32(head[14:]) > 0
}

// isADTS finds two consecutive AAC frames; one sync word alone is left to the
// library, which knows half of its forms.
func isADTS(head []byte) bool {
	if len(head) < 7 || head[0] != 0xff || head[1]&0xf6 != 0xf0 {
		return false
	}
	n := int(head[3]&3)<<11 | int(head[4])<<3 | int(head[5])>>5
	return n >= 7 && (len(head) < n+2 || head[n] == 0xff && head[n+1] == head[1])
}

// isTransportStream finds the sync byte of MPEG-TS packets, which are 188 bytes
// long, or 192 with a time code before each (M2TS). It is the first letter of
// GIF, too.
func isTransportStream(head []byte) bool {
	if bytes.HasPrefix(head, []byte("GIF8")) {
		return false
	}
	for _, shape := range [...]struct{ first, step int }{{0, 188}, {4, 192}} {
		packets := 0
		for at := shape.first; at < len(head) && head[at] == 0x47; at += shape.step {
			packets++
		}
		if packets >= 3 && shape.first+packets*shape.step >= len(head) {
			return true
		}
	}
	return false
}

var netpbmKinds = [...]string{
	"image/x-portable-bitmap", "image/x-portable-graymap", "image/x-portable-pixmap",
	"image/x-portable-bitmap", "image/x-portable-graymap", "image/x-portable-pixmap",
	"image/x-portable-arbitrarymap",
}

// isNetpbm looks for the magic number and, after blanks and comments, the digit
// that a width starts with, or the header line of PAM.
func isNetpbm(head []byte) bool {
	if len(head) < 4 || head[0] != 'P' || head[1] < '1' || head[1] > '7' {
		return false
	}
	if head[1] == '7' {
		return head[2] == '\n' && bytes.Contains(head, []byte("\nWIDTH ")) && bytes.Contains(head, []byte("\nHEIGHT "))
	}
	rest := head[2:]
	if !isBlank(rest[0]) {
		return false
	}
	for {
		rest = bytes.TrimLeft(rest, " \t\r\n")
		if len(rest) == 0 || rest[0] != '#' {
			break
		}
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			break
		}
		rest = rest[end:]
	}
	width := len(rest) - len(bytes.TrimLeft(rest, "0123456789"))
	rest = rest[width:]
	if width == 0 || len(rest) == 0 || !isBlank(rest[0]) {
		return false
	}
	rest = bytes.TrimLeft(rest, " \t\r\n")
	return len(rest) > 0 && '0' <= rest[0] && rest[0] <= '9'
}

func isBlank(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// isLHA matches the method field "-lh5-", "-lz4-" after the two bytes of size
// and checksum.
func isLHA(head []byte) bool {
	return len(head) > 21 && head[2] == '-' && head[3] == 'l' && (head[4] == 'h' || head[4] == 'z') && head[6] == '-' && head[20] <= 3
}

// id3Kind looks behind an ID3v2 tag, which can precede other audio than MP3.
// A tag that reaches beyond the head, or is followed by filling, says only that
// the file is audio.
func id3Kind(head []byte) string {
	size := int(head[6])<<21 | int(head[7])<<14 | int(head[8])<<7 | int(head[9])
	body := 10 + size
	if body+4 > len(head) {
		return id3Only
	}
	switch rest := head[body:]; {
	case bytes.HasPrefix(rest, []byte("fLaC")):
		return "audio/flac"
	case bytes.HasPrefix(rest, []byte("MAC ")):
		return "audio/ape"
	case isADTS(rest):
		return "audio/aac"
	case rest[0] == 0xff && rest[1]&0xe0 == 0xe0:
		return "audio/mpeg"
	}
	return id3Only
}

// id3Only is the finding for a tag with unseen audio behind it.
const id3Only = "audio/x-id3-tagged"
