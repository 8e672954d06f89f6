package sniff

import (
	"archive/tar"
	"bytes"
	"strings"
	"testing"
)

// tarOf writes an archive of one file in the oldest format, which has no magic.
func tarOf(name, content string) string {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o644, Format: tar.FormatUSTAR}); err != nil {
		panic(err)
	}
	if _, err := w.Write([]byte(content)); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	data := out.Bytes()
	sum := 0
	copy(data[257:], make([]byte, 8))
	copy(data[148:], "        ")
	for _, b := range data[:512] {
		sum += int(b)
	}
	copy(data[148:], octal(sum))
	return string(data)
}

func octal(n int) string {
	digits := make([]byte, 6)
	for i := range digits {
		digits[5-i] = '0' + byte(n>>(3*i)&7)
	}
	return string(digits) + "\x00 "
}

func TestOLE(t *testing.T) {
	t.Parallel()
	const doc, xls, ppt, msg = "application/msword", "application/vnd.ms-excel", "application/vnd.ms-powerpoint", "application/vnd.ms-outlook"
	const generic = "application/x-ole-storage"
	// The library takes some numbers at the start of an allocation table for xls.
	likeExcel := farDirectory("x")
	likeExcel[516] = 0x10
	const fib = "\xec\xa5\xc1\x00 and more"
	for name, c := range map[string]struct {
		data     []byte
		detected string
		accepted string
		refused  string
	}{
		"doc":                         {oleFile(0, []string{"1Table", "WordDocument"}, nil, nil), doc, generic, xls + " " + ppt + " " + msg + " application/zip text/plain"},
		"doc by class":                {oleFile(0x00020906, nil, nil, nil), doc, generic, xls + " " + ppt},
		"xls":                         {oleFile(0, []string{"Workbook"}, nil, nil), xls, generic, doc + " text/csv"},
		"old xls":                     {oleFile(0, []string{"\x05SummaryInformation", "Book"}, nil, nil), xls, generic, doc},
		"ppt":                         {oleFile(0, []string{"Current User", "PowerPoint Document"}, nil, nil), ppt, generic, doc + " " + xls},
		"msg":                         {oleFile(0, []string{"__properties_version1.0"}, nil, nil), msg, generic, doc + " " + xls},
		"msi":                         {oleFile(0x000c1084, nil, nil, nil), "application/x-ms-installer", "application/x-msi " + generic, doc},
		"msi by its tables":           {oleFile(0, []string{"\u4840\u3f3f\u4577"}, nil, nil), "application/x-ms-installer", generic, msg},
		"visio":                       {oleFile(0, []string{"VisioDocument"}, nil, nil), "application/vnd.visio", generic, doc},
		"publisher":                   {oleFile(0, []string{"Quill"}, nil, nil), "application/vnd.ms-publisher", generic, doc},
		"project":                     {oleFile(0x74b78f3a, nil, nil, nil), "application/vnd.ms-project", generic, doc},
		"hwp":                         {oleFile(0, []string{"FileHeader", "\x05HwpSummaryInformation"}, nil, nil), "application/x-hwp", generic, doc},
		"doc with a sheet":            {oleFile(0, []string{"WordDocument"}, []string{"Workbook"}, nil), doc, generic, xls},
		"msg with a doc":              {oleFile(0, []string{"__nameid_version1.0"}, []string{"WordDocument", "1Table"}, nil), msg, generic, doc},
		"something else":              {oleFile(0, []string{"Contents"}, []string{"Workbook"}, nil), generic, strings.Join([]string{doc, xls, ppt, msg, "application/vnd.ms-project"}, " "), "application/zip text/plain"},
		"locked docx":                 {oleFile(0, []string{"EncryptionInfo", "EncryptedPackage"}, nil, nil), generic, docx + " " + xlsx + " " + docm, "application/zip " + odt},
		"directory far away":          {farDirectory("something else", fib), doc, generic, xls},
		"a table that looks like xls": {likeExcel, generic, doc + " " + xls, "text/plain"},
		"two documents":               {farDirectory(fib, "\x09\x08\x10\x00\x00\x06\x05\x00"), generic, doc + " " + xls, "text/plain"},
		"only a magic":                {[]byte(oleMagic), generic, doc + " " + xls, "text/plain"},
	} {
		o := object{data: c.data}
		if got := o.check(t, "application/octet-stream"); got.Detected != c.detected {
			t.Errorf("%s: detected %q, want %q", name, got.Detected, c.detected)
		}
		for accepted := range strings.FieldsSeq(c.detected + " " + c.accepted) {
			if got := o.check(t, accepted); !got.OK {
				t.Errorf("%s refused as %s, detected %q", name, accepted, got.Detected)
			}
		}
		for refused := range strings.FieldsSeq(c.refused) {
			if got := o.check(t, refused); got.OK {
				t.Errorf("%s accepted as %s, detected %q", name, refused, got.Detected)
			}
		}
	}
}

// farDirectory writes a compound file whose directory lies far behind, with
// streams in the first sectors after the allocation table.
func farDirectory(streams ...string) []byte {
	data := oleFile(0, nil, nil, nil)[:1024]
	data[49] = 0xff
	for _, stream := range streams {
		data = append(data, stream...)
		data = append(data, make([]byte, (512-len(data)%512)%512)...)
	}
	return data
}

func TestBMFF(t *testing.T) {
	t.Parallel()
	const stills = "image/heic image/heif image/avif image/heic-sequence"
	const media = "video/mp4 audio/mp4 audio/m4a audio/x-m4a video/quicktime video/3gpp video/x-m4v"
	for name, c := range map[string]struct {
		data              []byte
		detected          string
		accepted, refused string
	}{
		"heic":               {ftyp("heic", "mif1", "heic"), "image/heic", stills, media + " image/jpeg"},
		"heic in mif1":       {ftyp("mif1", "mif1", "heic"), "image/heic", stills, media},
		"avif in mif1":       {ftyp("mif1", "mif1", "avif", "miaf"), "image/avif", stills, media},
		"heif of its own":    {ftyp("mif1", "mif1"), "image/heif", stills, media},
		"sequence":           {ftyp("msf1", "msf1", "hevc", "iso8"), "image/heif-sequence", stills, media},
		"avif":               {ftyp("avif", "avif", "mif1"), "image/avif", stills, media},
		"moving avif":        {ftyp("avis", "avis", "msf1", "iso8"), "image/avif", stills, media},
		"mp4":                {ftyp("isom", "isom", "iso2", "avc1", "mp41"), "video/mp4", media, stills + " video/webm video/x-msvideo"},
		"mp42":               {ftyp("mp42", "mp42"), "video/mp4", media, stills},
		"m4a":                {ftyp("M4A ", "M4A ", "mp42"), "audio/x-m4a", media, stills},
		"audio book":         {ftyp("M4B ", "M4A "), "audio/mp4", media, stills},
		"mov":                {ftyp("qt  ", "qt  "), "video/quicktime", media, stills},
		"3gp":                {ftyp("3gp5", "isom"), "video/3gpp", media + " audio/3gpp", stills},
		"3g2":                {ftyp("3g2a"), "video/3gpp2", media, stills},
		"dash":               {ftyp("dash", "iso6"), "video/mp4", media, stills},
		"unheard of":         {ftyp("zzzz"), "video/mp4", media, stills},
		"either":             {ftyp("isom", "mif1", "iso8"), "video/mp4", stills + " " + media, "image/png"},
		"cr3":                {ftyp("crx ", "crx ", "isom"), "image/x-canon-cr3", "", stills + " " + media},
		"mov before ftyp":    {[]byte("\x00\x00\x00\x08wide\x00\x11\x22\x33mdat"), "video/quicktime", media, stills},
		"mov, moov first":    {[]byte("\x00\x00\x10\x00moov\x00\x00\x00\x6cmvhd"), "video/quicktime", media, stills},
		"mov, big mdat":      {[]byte("\x01\x40\x00\x00mdat\x12\x34"), "video/quicktime", media, stills},
		"mov, 64-bit mdat":   {[]byte("\x00\x00\x00\x01mdat\x00\x00\x00\x01"), "video/quicktime", media, stills},
		"segment":            {[]byte("\x00\x00\x00\x10stypmsdh\x00\x00\x00\x00"), "video/mp4", media + " video/iso.segment", stills},
		"cut off in its box": {ftyp("mif1", "mif1", "heic")[:18], "image/heif", stills, media},
	} {
		o := object{data: c.data}
		if got := o.check(t, "application/octet-stream"); got.Detected != c.detected {
			t.Errorf("%s: detected %q, want %q", name, got.Detected, c.detected)
		}
		for accepted := range strings.FieldsSeq(c.accepted) {
			if got := o.check(t, accepted); !got.OK {
				t.Errorf("%s refused as %s, detected %q", name, accepted, got.Detected)
			}
		}
		for refused := range strings.FieldsSeq(c.refused) {
			if got := o.check(t, refused); got.OK {
				t.Errorf("%s accepted as %s, detected %q", name, refused, got.Detected)
			}
		}
	}
}

func TestOwnSignatures(t *testing.T) {
	t.Parallel()
	z := func(n int) string { return strings.Repeat("\x00", n) }
	for declared, data := range map[string]string{
		"image/bmp":                      "BM\x1a\x01" + z(6) + "\x1a\x00\x00\x00\x0c\x00\x00\x00\x10\x00\x10\x00\x01\x00\x18\x00",
		"audio/aiff":                     "FORM\x00\x00\x10\x00AIFCFVER",
		"audio/x-aiff":                   "FORM\x00\x00\x10\x00AIFFCOMM",
		"video/x-msvideo":                "RIFF\x00\x10\x00\x00AVI JUNK",
		"audio/midi":                     "RIFF\x00\x10\x00\x00RMIDdata",
		"audio/wav":                      "RF64\xff\xff\xff\xffWAVEds64",
		"audio/flac":                     "ID3\x04\x00\x00\x00\x00\x00\x02\x00\x00fLaC\x00\x00\x00\x22",
		"audio/aac":                      "ID3\x04\x00\x00\x00\x01\x00\x00" + z(8000),
		"audio/mpeg":                     "ID3\x03\x00\x00\x00\x00\x02\x00" + z(8000),
		"image/tiff":                     "MM\x00\x2b\x00\x08\x00\x00",
		"image/x-canon-cr2":              "II*\x00\x10\x00\x00\x00CR\x02\x00",
		"image/x-olympus-orf":            "IIRO\x08\x00\x00\x00",
		"image/x-fuji-raf":               "FUJIFILMCCD-RAW 0201\x00",
		"image/x-exr":                    "\x76\x2f\x31\x01\x02\x00\x00\x00",
		"image/ktx2":                     "\xabKTX 20\xbb\r\n\x1a\n",
		"image/j2c":                      "\xff\x4f\xff\x51\x00\x2f",
		"image/jp2":                      "\x00\x00\x00\x0cjP  \r\n\x87\n\x00\x00\x00\x14ftypjp2 ",
		"image/jxl":                      "\xff\x0a\xfa\x1f",
		"image/svg+xml-compressed":       "\x1f\x8b\x08\x00",
		"application/eps":                "\xc5\xd0\xd3\xc6\x1e\x00\x00\x00",
		"application/illustrator":        "%PDF-1.5\r%\xe2\xe3\xcf\xd3",
		"video/webm":                     "\x1a\x45\xdf\xa3\x01\x00\x00\x00\x00\x00\x00\x1f",
		"image/gif":                      "GIF89a\x01" + z(181) + "G" + z(187) + "G" + z(187) + "G",
		"video/mp2t":                     "G\x40\x00\x10" + z(184) + "G\x40\x00\x10" + z(184) + "G\x40\x00\x10" + z(20),
		"application/x-chrome-extension": "Cr24\x03\x00\x00\x00\x45\x02\x00\x00\x12\xac\x04\x0a",
		"audio/x-pn-realaudio":           ".ra\xfd\x00\x04",
		"application/x-lz4":              "\x04\x22\x4d\x18\x64\x40",
		"application/x-compress":         "\x1f\x9d\x90",
		"application/x-lzh-compressed":   "\x19\xb1-lh5-" + z(12) + "\x20\x01\x00",
		"application/vnd.rar":            "Rar!\x1a\x07\x01\x00",
		"application/zstd":               "\x28\xb5\x2f\xfd\x04",
		"application/x-cpio":             "070701" + z(10),
		"application/vnd.android.dex":    "dex\n035\x00",
		"application/x-pcapng":           "\n\r\r\n\x1c\x00\x00\x00",
		"application/x-netcdf":           "CDF\x01\x00\x00\x00\x00",
		"application/netcdf":             "\x89HDF\r\n\x1a\n\x00",
		"application/x-msaccess":         "\x00\x01\x00\x00Standard Jet DB\x00",
		"application/x-pst":              "!BDN\x01\x02\x03\x04",
		"application/vnd.ms-outlook":     "!BDN\x01\x02\x03\x04",
		"application/msword":             "\xdb\xa5\x2d\x00\x00\x00",
		"application/vnd.ms-excel":       "\x09\x08\x10\x00\x00\x06\x05\x00",
		"application/x-hwp":              "HWP Document File V3.00 \x1a\x01",
		"font/otf":                       "OTTO\x00\x0a\x00\x80",
		"font/ttf":                       "true\x00\x0a\x00\x80",
		"image/x-portable-pixmap":        "P6 # made by hand\n64 64\n255\n\x00\x01",
		"image/x-portable-anymap":        "P7\nWIDTH 2\nHEIGHT 2\nDEPTH 3\nMAXVAL 255\nENDHDR\n\x00",
		"image/wmf":                      "\x01\x00\x09\x00\x00\x03\x10\x00",
	} {
		got := (object{data: []byte(data), size: 1 << 20}).check(t, declared)
		if !got.OK || got.Detected == "" && declared != "application/x-cpio" {
			t.Errorf("%s: %+v", declared, got)
		}
		if text := (object{data: []byte(data), size: 1 << 20}).check(t, "text/plain"); text.OK {
			t.Errorf("%s passes for text", declared)
		}
	}
}
