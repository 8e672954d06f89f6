package sniff

import (
	"bufio"
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"claimcheck.dev/claimcheck/shared/mediatype"
)

// object is what a test uploads; head is cut from data.
type object struct {
	data []byte
	size int64 // of the object, when data is only its head
}

// check runs Check over an object and fails when the contract of Tail is broken.
func (o object) check(t testing.TB, declared string) Result {
	t.Helper()
	size := max(o.size, int64(len(o.data)))
	calls := 0
	tail := func(_ context.Context, n int64) ([]byte, error) {
		calls++
		if calls > 1 {
			t.Error("tail called twice")
		}
		if !isZip(o.data) {
			t.Error("tail called for something that is no ZIP container")
		}
		if size <= HeadBytes {
			t.Error("tail called although the head is the whole object")
		}
		if n > TailBytes {
			t.Errorf("tail asked for %d bytes", n)
		}
		if size > int64(len(o.data)) {
			t.Fatal("tail called, but only a head is known")
		}
		return o.data[size-n:], nil
	}
	got, err := Check(context.Background(), declared, o.data[:min(len(o.data), HeadBytes)], size, tail)
	if err != nil {
		t.Fatalf("Check(%s): %v", declared, err)
	}
	return got
}

func whole(data string) object { return object{data: []byte(data)} }

type fixture struct {
	name, mediaType string
	object
}

func fixtures(t testing.TB) []fixture {
	t.Helper()
	index, err := os.Open("testdata/INDEX")
	if err != nil {
		t.Fatal(err)
	}
	defer index.Close()
	var list []fixture
	for lines := bufio.NewScanner(index); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if fields[0] == "#" {
			continue
		}
		data, err := os.ReadFile("testdata/" + fields[0])
		if err != nil {
			t.Fatal(err)
		}
		size, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fixture{fields[0], fields[2], object{data, size}})
	}
	if len(list) < 80 {
		t.Fatalf("only %d fixtures", len(list))
	}
	return list
}

func TestRealFilesUnderTheirTypes(t *testing.T) {
	t.Parallel()
	for _, f := range fixtures(t) {
		for _, declared := range []string{f.mediaType, f.mediaType + "; x=y", "application/octet-stream", "application/x-acme"} {
			got := f.check(t, declared)
			if !got.OK {
				t.Errorf("%s as %s refused, detected %q", f.name, declared, got.Detected)
			}
			if got.Detected == "" && f.mediaType != "image/x-tga" {
				t.Errorf("%s as %s: nothing detected", f.name, declared)
			}
		}
		detected := f.check(t, f.mediaType).Detected
		if again := f.check(t, detected); !again.OK || again.Detected != detected {
			t.Errorf("%s as %s, which is what was detected: %+v", f.name, detected, again)
		}
	}
}

// TestRealFilesUnderOtherTypes declares each file as the type of every other.
func TestRealFilesUnderOtherTypes(t *testing.T) {
	t.Parallel()
	list := fixtures(t)
	agree := func(a, b string) bool {
		if isTextType(a) || isTextType(b) {
			return true // asserted below
		}
		for _, x := range familiesOf(strings.ToLower(a)) {
			for _, y := range familiesOf(strings.ToLower(b)) {
				if x == y || isAncestor(x, y) || isAncestor(y, x) {
					return true
				}
			}
		}
		return false
	}
	refused := 0
	for _, f := range list {
		for _, other := range list {
			if f.mediaType == "audio/mpeg" && strings.HasPrefix(other.mediaType, "audio/") {
				continue // an ID3 tag can precede most audio
			}
			if agree(f.mediaType, other.mediaType) || textual[f.name] && other.mediaType == "application/vnd.ms-excel" {
				continue
			}
			if got := f.check(t, other.mediaType); got.OK {
				t.Errorf("%s (%s) accepted as %s", f.name, f.mediaType, other.mediaType)
			}
			refused++
		}
	}
	if refused < 5000 {
		t.Errorf("only %d pairs tried", refused)
	}
}

// textual are the fixtures that are text, whatever else they are.
var textual = map[string]bool{"drawing.svg": true, "im.eps": true, "im.xbm": true, "libreoffice.rtf": true}

func TestRealBinaryFilesAreNoText(t *testing.T) {
	t.Parallel()
	for _, f := range fixtures(t) {
		for _, declared := range []string{"text/plain", "text/csv; charset=utf-8", "application/json", "image/svg+xml"} {
			if got := f.check(t, declared); got.OK != textual[f.name] {
				t.Errorf("%s as %s: %+v", f.name, declared, got)
			}
		}
	}
}

func TestAliases(t *testing.T) {
	t.Parallel()
	byName := map[string]object{}
	for _, f := range fixtures(t) {
		byName[f.name] = f.object
	}
	for name, aliases := range map[string]string{
		"im.jpg":           "image/jpg image/pjpeg IMAGE/JPEG",
		"im.png":           "image/x-png image/apng",
		"im.bmp":           "image/x-ms-bmp image/x-bmp",
		"im.ico":           "image/vnd.microsoft.icon image/x-icon",
		"im.tiff":          "image/tif image/x-adobe-dng",
		"im.heic":          "image/heif image/heic-sequence",
		"im.avif":          "image/avif image/heif",
		"im.jp2":           "image/jpx image/jpeg2000",
		"bare.mp3":         "audio/mp3 audio/x-mp3 audio/mpeg3",
		"t.mp3":            "audio/mp3 audio/mpeg",
		"t.wav":            "audio/x-wav audio/wave audio/vnd.wave",
		"t.m4a":            "audio/m4a audio/x-m4a audio/mp4 video/mp4 audio/mp4a-latm",
		"t.mov":            "video/quicktime video/mp4",
		"t.avi":            "video/avi video/msvideo video/vnd.avi",
		"t.mkv":            "video/matroska video/webm",
		"t.weba":           "audio/webm video/webm",
		"t.opus":           "audio/opus audio/ogg application/ogg",
		"t.wma":            "audio/x-ms-wma video/x-ms-asf",
		"t.gz":             "application/x-gzip application/x-tgz application/vnd.acme+gzip",
		"t.bz2":            "application/x-bzip application/bzip2",
		"USTAR.tar":        "application/x-gtar application/x-ustar",
		"t.7z":             "application/x-7z",
		"t.sqlite":         "application/x-sqlite3 application/x-sqlite application/vnd.acme+sqlite3",
		"t.parquet":        "application/x-parquet",
		"own.ttf":          "font/sfnt application/x-font-ttf font/otf",
		"own.woff":         "application/font-woff",
		"g.exe":            "application/x-dosexec application/vnd.microsoft.portable-executable",
		"elf":              "application/x-elf application/x-sharedlib",
		"openjdk.jar":      "application/x-java-archive application/vnd.android.package-archive application/zip application/x-xpinstall",
		"numpy.npz":        "application/x-zip-compressed application/x-zip application/vnd.acme+zip",
		"libreoffice.rtf":  "text/rtf text/plain application/msword",
		"libreoffice.doc":  "application/x-ole-storage application/vnd.ms-word",
		"libreoffice.odt":  "application/x-vnd.oasis.opendocument.text application/vnd.oasis.opendocument.text-template",
		"libreoffice.dotx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
		"pymupdf.pdf":      "application/x-pdf text/pdf application/illustrator",
	} {
		o, ok := byName[name]
		if !ok {
			t.Fatalf("no fixture %s", name)
		}
		for alias := range strings.FieldsSeq(aliases) {
			if got := o.check(t, alias); !got.OK {
				t.Errorf("%s as %s refused, detected %q", name, alias, got.Detected)
			}
		}
	}
}

func TestNeverTheWrongType(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, data, declared string }{
		{"prose", "The quick brown fox.\n", "application/pdf"},
		{"prose", "The quick brown fox.\n", "image/png"},
		{"prose", "The quick brown fox.\n", "application/zip"},
		{"prose", "The quick brown fox.\n", "video/mp4"},
		{"prose", "The quick brown fox.\n", "application/msword"},
		{"prose", "The quick brown fox.\n", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
		{"prose", "The quick brown fox.\n", "application/rtf"},
		{"prose", "MZ is how executables start.\n", "application/x-msdownload"},
		{"prose", "BM is how bitmaps start, they say.\n", "image/bmp"},
		{"zeros", strings.Repeat("\x00", 5000), "image/png"},
		{"zeros", strings.Repeat("\x00", 5000), "audio/mpeg"},
		{"zeros", strings.Repeat("\x00", 5000), "image/vnd.microsoft.icon"},
		{"zeros", strings.Repeat("\x00", 5000), "text/plain"},
		{"nothing", "", "image/png"},
		{"nothing", "", "application/pdf"},
	} {
		if got := whole(c.data).check(t, c.declared); got.OK {
			t.Errorf("%s accepted as %s, detected %q", c.name, c.declared, got.Detected)
		}
	}
}

func TestUnknownTypesPass(t *testing.T) {
	t.Parallel()
	for _, data := range []string{"", "text", "\x00\x01\x02", "%PDF-1.7\n", "\x89PNG\r\n\x1a\n"} {
		for _, declared := range []string{"application/octet-stream", "binary/octet-stream", "application/x-acme", "chemical/x-pdb", "model/stl", "image/x-tga", "application/x-iso9660-image"} {
			if got := whole(data).check(t, declared); !got.OK {
				t.Errorf("%q refused as %s", data, declared)
			}
		}
	}
	for data, want := range map[string]string{"": "", "words\n": "text/plain", "\x00\x01\x02\x03\x04": "", "%PDF-1.7\n": "application/pdf"} {
		if got := whole(data).check(t, "application/octet-stream"); got.Detected != want {
			t.Errorf("%q detected as %q, want %q", data, got.Detected, want)
		}
	}
}

func TestTailErrorIsReturned(t *testing.T) {
	t.Parallel()
	broken := errors.New("no such range")
	head := zipFile(t, streamed, "word/document.xml", strings.Repeat("x", 10))[:60]
	_, err := Check(context.Background(), "application/zip", head, 1<<20, func(context.Context, int64) ([]byte, error) { return nil, broken })
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestFamiliesAreConsistent(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, f := range families {
		if seen[f.name] {
			t.Errorf("family %s has two rows", f.name)
		}
		seen[f.name] = true
		types := map[string]bool{}
		for mediaType := range strings.FieldsSeq(f.types) {
			if types[mediaType] {
				t.Errorf("%s twice in %s", mediaType, f.name)
			}
			types[mediaType] = true
			if canonical, err := mediatype.Parse(mediaType); err != nil || mediatype.Base(canonical) != mediaType {
				t.Errorf("%s in %s: %v", mediaType, f.name, err)
			}
		}
	}
	for _, f := range families {
		if f.parent != "" && !seen[f.parent] {
			t.Errorf("%s has the unknown parent %s", f.name, f.parent)
		}
	}
	// The first family of a reported kind is the one whose signature it has.
	for kind, family := range map[string]string{
		"application/msword": "doc", "application/vnd.ms-excel": "xls", "application/rtf": "rtf",
		"application/vnd.ms-outlook": "msg", "application/vnd.visio": "vsd", "audio/flac": "flac",
		"video/mpeg": "mpeg-ps", "application/pdf": "pdf", "application/postscript": "postscript",
		"image/heic": "heif", "video/mp4": "isom", "audio/ogg": "ogg", "application/x-msaccess": "access",
	} {
		if got := familiesOf(kind)[0]; got != family {
			t.Errorf("%s belongs to %s first, want %s", kind, got, family)
		}
	}
	for _, s := range signatures {
		if len(familiesOf(s.kind)) == 0 {
			t.Errorf("the signature of %s has no family", s.kind)
		}
	}
}
