package sniff

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

// style is how an archive is written.
type style int

const (
	streamed   style = 1 << iota // sizes in data descriptors, as writers to a pipe do
	compressed                   // deflate instead of store
)

// zipFile writes members given as name, content, name, content ...
func zipFile(t testing.TB, s style, members ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) { return flate.NewWriter(out, flate.BestSpeed) })
	for i := 0; i < len(members); i += 2 {
		h := &zip.FileHeader{Name: members[i], Method: zip.Store}
		if s&compressed != 0 {
			h.Method = zip.Deflate
		}
		content := []byte(members[i+1])
		if s&streamed != 0 {
			member, err := w.CreateHeader(h)
			if err != nil {
				t.Fatal(err)
			}
			if len(content) > 0 { // a folder takes no content, not even none
				if _, err := member.Write(content); err != nil {
					t.Fatal(err)
				}
			}
			continue
		}
		h.UncompressedSize64 = uint64(len(content))
		data := content
		if h.Method == zip.Deflate && len(content) > 0 {
			data = deflate(t, content)
		}
		h.CompressedSize64 = uint64(len(data))
		member, err := w.CreateRaw(h)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > 0 {
			if _, err := member.Write(data); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// noise is text that does not compress to nothing.
func noise(n int) string {
	random := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + random.IntN(26))
	}
	return string(b)
}

// types writes a [Content_Types].xml whose main part has a type.
func types(main string) string {
	return `<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">` +
		`<Default Extension="xlsx" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"/>` +
		`<Override PartName="/main.xml" ContentType="` + main + `"/></Types>`
}

const (
	docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	docm = "application/vnd.ms-word.document.macroEnabled.12"
	dotx = "application/vnd.openxmlformats-officedocument.wordprocessingml.template"
	xlsx = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	xlsm = "application/vnd.ms-excel.sheet.macroEnabled.12"
	xlsb = "application/vnd.ms-excel.sheet.binary.macroEnabled.12"
	pptx = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
	pptm = "application/vnd.ms-powerpoint.presentation.macroEnabled.12"
	odt  = "application/vnd.oasis.opendocument.text"
	ods  = "application/vnd.oasis.opendocument.spreadsheet"
	epub = "application/epub+zip"
	jar  = "application/java-archive"
	apk  = "application/vnd.android.package-archive"
)

func TestZipContainers(t *testing.T) {
	t.Parallel()
	big := noise(70_000) // longer than head and tail together
	manifest := "Manifest-Version: 1.0\r\n"
	for _, c := range []struct {
		name     string
		members  []string
		detected string
		accepted string // further types
		refused  string
	}{
		{"docx, content types first", []string{contentTypes, types(docx + ".main+xml"), "word/document.xml", big},
			docx, "application/zip " + dotx, docm + " " + xlsx + " " + pptx + " " + odt + " " + jar + " text/plain application/pdf application/msword"},
		{"docx, content types last", []string{"word/document.xml", big, contentTypes, types(docx + ".main+xml")},
			docx, dotx, docm + " " + xlsx},
		{"docx, content types in the middle", []string{"word/document.xml", big, contentTypes, types(docx + ".main+xml"), "word/media/1.png", big},
			docx, dotx, docm + " " + xlsx},
		{"docx, nothing in its content types", []string{contentTypes, "<Types/>", "word/document.xml", "<w/>"},
			docx, dotx, docm + " " + xlsx},
		{"docx with a spreadsheet inside", []string{contentTypes, types(docx + ".main+xml"), "word/document.xml", big, "word/embeddings/a.xlsx", string(zipFile(t, 0, contentTypes, types(xlsx+".main+xml"), "xl/workbook.xml", "x"))},
			docx, "", xlsx + " " + docm},
		{"docm by its content types", []string{contentTypes, types("application/vnd.ms-word.document.macroEnabled.main+xml"), "word/document.xml", big},
			docm, "application/vnd.ms-word.template.macroEnabled.12 application/zip", docx + " " + dotx + " " + xlsm},
		{"docm by its project", []string{contentTypes, "<Types/>", "word/document.xml", big, "word/vbaProject.bin", "x"},
			docm, "", docx + " " + xlsm},
		{"docm in denial", []string{contentTypes, types(docx + ".main+xml"), "word/document.xml", big, "word/vbaProject.bin", "x"},
			docm, "", docx},
		{"xlsx", []string{contentTypes, types(xlsx + ".main+xml"), "xl/worksheets/sheet1.xml", big, "xl/workbook.xml", "x"},
			xlsx, "application/vnd.openxmlformats-officedocument.spreadsheetml.template", docx + " " + xlsm + " " + xlsb + " application/vnd.ms-excel text/csv"},
		{"xlsm, project far behind", []string{contentTypes, types(xlsx + ".main+xml"), "xl/worksheets/sheet1.xml", big, "xl/vbaProject.bin", "x"},
			xlsm, "application/vnd.ms-excel.template.macroEnabled.12", xlsx + " " + docm},
		{"xlsm with macro sheets", []string{contentTypes, "<Types/>", "xl/workbook.xml", big, "xl/macrosheets/sheet1.xml", "x"},
			xlsm, "", xlsx},
		{"xlsb", []string{contentTypes, types("application/vnd.ms-excel.sheet.binary.macroEnabled.main"), "xl/workbook.bin", big},
			xlsb, "", xlsx + " " + xlsm},
		{"xlsb by name", []string{"xl/workbook.bin", big, contentTypes, "<Types/>"}, xlsb, "", xlsx + " " + xlsm},
		{"pptx", []string{contentTypes, types(pptx + ".main+xml"), "ppt/presentation.xml", big},
			pptx, "application/vnd.openxmlformats-officedocument.presentationml.slideshow", pptm + " " + docx},
		{"pptm", []string{contentTypes, "<Types/>", "ppt/presentation.xml", big, "ppt/vbaProject.bin", ""}, pptm, "application/vnd.ms-powerpoint.slideshow.macroEnabled.12", pptx},
		{"vsdx", []string{contentTypes, types("application/vnd.ms-visio.drawing.main+xml"), "visio/document.xml", big},
			"application/vnd.ms-visio.drawing", "application/vnd.ms-visio.drawing.main+xml application/vnd.visio", docx + " application/vnd.ms-visio.drawing.macroEnabled.12"},
		{"backslashes and capitals", []string{"[content_types].xml", "<Types/>", `Word\document.xml`, big}, docx, "", xlsx},
		{"xps", []string{contentTypes, "<Types/>", "FixedDocSeq.fdseq", big}, "application/vnd.ms-xpsdocument", "application/oxps", docx},
		{"3mf", []string{contentTypes, "<Types/>", "3D/3dmodel.model", big}, "model/3mf", "application/vnd.ms-package.3dmanufacturing-3dmodel+xml", docx},
		{"odt", []string{"mimetype", odt, "content.xml", big, "META-INF/manifest.xml", ""}, odt, odt + "-template application/zip", ods + " " + epub + " " + docx},
		{"odt without its mimetype first", []string{"content.xml", big, "META-INF/manifest.xml", "", "mimetype", odt}, "application/zip", odt + " " + ods, docx + " " + epub + " " + jar},
		{"epub", []string{"mimetype", epub + "\n", "META-INF/container.xml", big}, epub, "application/zip", odt + " " + jar},
		{"epub without its mimetype first", []string{"META-INF/container.xml", big, "OEBPS/content.opf", "", "mimetype", epub}, epub, "", docx + " " + odt},
		{"jar", []string{"META-INF/", "", "META-INF/MANIFEST.MF", manifest, "A.class", big}, jar, apk + " application/x-xpinstall application/vnd.acme+zip", docx + " " + epub},
		{"jar, manifest last", []string{"A.class", big, "META-INF/MANIFEST.MF", manifest}, jar, "", docx},
		{"apk", []string{"META-INF/MANIFEST.MF", manifest, "classes.dex", big, "AndroidManifest.xml", ""}, apk, jar, docx},
		{"kmz", []string{"images/a.png", big, "doc.kml", "<kml/>"}, "application/vnd.google-earth.kmz", "application/zip", docx + " " + epub},
		{"usdz", []string{"scene.usdc", big, "a.png", ""}, "model/vnd.usdz+zip", "", docx},
		{"krita", []string{"mimetype", "application/x-krita", "maindoc.xml", big}, "application/x-krita", "application/zip application/x-krita", docx + " " + epub},
		{"mimetype of something else", []string{"mimetype", "application/pdf", "a", big}, "application/zip", docx, "application/pdf"},
		{"mimetype that is text", []string{"mimetype", "text/plain", "a", big}, "application/zip", "", "text/plain"},
		{"photos", []string{"1.jpg", big, "2.jpg", ""}, "application/zip", docx + " " + odt + " " + apk + " application/vnd.comicbook+zip", "application/pdf image/jpeg text/plain application/x-7z-compressed"},
		{"photos of words", []string{"word/1.jpg", big, "word/2.jpg", ""}, "application/zip", docx, "image/jpeg"},
		{"a docx inside", []string{"a.docx", string(zipFile(t, 0, contentTypes, types(docx+".main+xml"), "word/document.xml", "x")), "b", big}, "application/zip", epub, "text/plain"},
		{"nothing", nil, "application/zip", docx, "text/plain"},
	} {
		for _, s := range []style{0, streamed, streamed | compressed} {
			o := object{data: zipFile(t, s, c.members...)}
			name := fmt.Sprintf("%s (style %d)", c.name, s)
			if got := o.check(t, "application/octet-stream"); got.Detected != c.detected {
				t.Errorf("%s: detected %q, want %q", name, got.Detected, c.detected)
			}
			for accepted := range strings.FieldsSeq(c.detected + " application/zip application/x-zip-compressed " + c.accepted) {
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
}

// TestZipWithoutItsEnd gives up the tail: undecided containers are the parent.
func TestZipWithoutItsEnd(t *testing.T) {
	t.Parallel()
	data := zipFile(t, 0, contentTypes, "<Types/>", "xl/workbook.xml", noise(9000), "xl/vbaProject.bin", "")
	for declared, want := range map[string]bool{xlsx: true, xlsm: true, "application/zip": true, docx: false} {
		got, err := Check(context.Background(), declared, data[:HeadBytes], int64(len(data)), nil)
		if err != nil || got.OK != want {
			t.Errorf("%s: %+v, %v", declared, got, err)
		}
	}
}

// TestZipTailIsSpared counts the reads of the tail for heads that settle it.
func TestZipTailIsSpared(t *testing.T) {
	t.Parallel()
	big := noise(100_000)
	for name, members := range map[string][]string{
		"odt":  {"mimetype", odt, "content.xml", big},
		"docm": {contentTypes, types("application/vnd.ms-word.document.macroEnabled.main+xml"), "word/document.xml", big},
		"apk":  {"AndroidManifest.xml", "x", "classes.dex", big},
	} {
		data := zipFile(t, 0, members...)
		_, err := Check(context.Background(), "application/zip", data[:HeadBytes], int64(len(data)), func(context.Context, int64) ([]byte, error) {
			return nil, fmt.Errorf("tail read for %s", name)
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestZipDirectoryOutOfReach(t *testing.T) {
	t.Parallel()
	members := []string{contentTypes, types(xlsx + ".main+xml"), "xl/vbaProject.bin", "x"}
	for i := range 3000 {
		members = append(members, fmt.Sprintf("xl/worksheets/sheet-with-a-long-name-%d.xml", i), "x")
	}
	plain := append(members[:2:2], members[4:]...)
	// The directory is longer than the tail; what is seen of it must be read all
	// the same, and a project at its end be found.
	late := append(plain[:len(plain):len(plain)], "xl/vbaProject.bin", "x")
	for name, c := range map[string]struct {
		members []string
		want    string
	}{"plain": {plain, xlsx}, "late": {late, xlsm}, "early": {members, xlsm}} {
		if got := (object{data: zipFile(t, 0, c.members...)}).check(t, c.want); !got.OK || got.Detected != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestZip64 moves the numbers of the end record to those of zip64, as writers do
// from 65,536 members or 4 GiB on.
func TestZip64(t *testing.T) {
	t.Parallel()
	data := zipFile(t, 0, "A.class", noise(90_000), "META-INF/MANIFEST.MF", "x", "B.class", "y")
	le := binary.LittleEndian
	classic := bytes.Clone(data[len(data)-endRecordLen:])
	data = data[:len(data)-endRecordLen]
	start := len(data)
	data = append(data, end64Record...)
	data = le.AppendUint64(data, 44)
	data = append(data, 45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	data = le.AppendUint64(data, uint64(le.Uint16(classic[8:])))
	data = le.AppendUint64(data, uint64(le.Uint16(classic[10:])))
	data = le.AppendUint64(data, uint64(le.Uint32(classic[12:])))
	data = le.AppendUint64(data, uint64(le.Uint32(classic[16:])))
	data = append(data, end64Locator+"\x00\x00\x00\x00"...)
	data = le.AppendUint64(data, uint64(start))
	data = le.AppendUint32(data, 1)
	copy(classic[8:], bytes.Repeat([]byte{0xff}, 12))
	data = append(data, classic...)
	if _, err := zip.NewReader(bytes.NewReader(data), int64(len(data))); err != nil {
		t.Fatal(err)
	}
	if got := (object{data: data}).check(t, jar); got.Detected != jar {
		t.Errorf("got %+v", got)
	}
}

func TestZipCommentsAndPrefixes(t *testing.T) {
	t.Parallel()
	data := zipFile(t, compressed, contentTypes, "<Types/>", "xl/workbook.xml", noise(20_000), "xl/vbaProject.bin", "x")
	comment := endRecord + strings.Repeat("\x00", 18) + " looks like an end record, is a comment"
	commented := append(bytes.Clone(data[:len(data)-2]), byte(len(comment)), 0)
	commented = append(commented, comment...)
	spanned := append([]byte("PK00"), data...)
	for name, o := range map[string]object{"comment": {data: commented}, "span marker": {data: spanned}} {
		if got := o.check(t, xlsm); got.Detected != xlsm || !got.OK {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
