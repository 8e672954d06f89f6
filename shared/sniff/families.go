package sniff

import (
	"strings"
	"sync"
)

// A family is a set of media types that name the same bytes: registered types,
// their aliases, and formats that one signature cannot tell apart. Declared and
// shown types agree when they share a family, or when one family is an ancestor
// of the other: a DOCX is a ZIP, and a ZIP nobody could look into may be a DOCX.
type family struct {
	name   string
	parent string
	types  string // space separated, lower case
}

// textFamily in a declared type's families lets text pass although the type has
// a signature.
const textFamily = "text"

// families lists every type with a well-known signature. A type in two rows may
// show either; bytes that show the type belong to the first of them. What is missing here has no mandatory signature in its first
// bytes (ISO images, CBOR, TGA, STL ...), or one so short that real files would
// be refused, and always passes.
var families = []family{
	// Documents.
	{"pdf", "", "application/pdf application/x-pdf application/acrobat application/vnd.pdf text/pdf text/x-pdf application/illustrator application/vnd.adobe.illustrator"},
	{"postscript", "", "application/postscript application/x-postscript application/eps application/x-eps image/eps image/x-eps application/illustrator application/vnd.adobe.illustrator"},
	{"djvu", "", "image/vnd.djvu image/x-djvu image/djvu image/vnd.djvu+multipage"},
	{"mobi", "", "application/x-mobipocket-ebook application/vnd.amazon.mobi8-ebook"},
	{"chm", "", "application/vnd.ms-htmlhelp application/x-chm"},
	{"access", "", "application/x-msaccess application/msaccess application/vnd.ms-access application/mdb application/x-mdb"},

	// OLE2 compound files.
	{"ole", "", "application/x-ole-storage application/cdfv2 application/x-cdf-v2 application/vnd.ms-office"},
	{"doc", "ole", "application/msword application/vnd.ms-word application/x-msword application/doc"},
	{"rtf", "", "application/rtf application/x-rtf application/msword application/vnd.ms-word"}, // Word saves .doc as RTF on request
	{"xls", "ole", "application/vnd.ms-excel application/msexcel application/x-msexcel application/x-excel application/x-ms-excel application/xls application/x-xls application/excel"},
	{"ppt", "ole", "application/vnd.ms-powerpoint application/mspowerpoint application/powerpoint application/x-mspowerpoint application/vnd.ms-powerpoint.presentation"},
	{"msg", "ole", "application/vnd.ms-outlook application/x-msg application/msoutlook application/vnd.ms-outlook-msg"},
	{"pst", "", "application/vnd.ms-outlook application/vnd.ms-outlook-pst application/x-pst"},
	{"msi", "ole", "application/x-ms-installer application/x-windows-installer application/x-msi"},
	{"pub", "ole", "application/vnd.ms-publisher application/x-mspublisher"},
	{"vsd", "ole", "application/vnd.visio application/vnd.ms-visio application/x-visio application/visio"},
	{"mpp", "ole", "application/vnd.ms-project application/x-project application/msproject"},
	{"works", "ole", "application/vnd.ms-works"},
	{"hwp", "ole", "application/x-hwp application/haansofthwp application/vnd.hancom.hwp"},

	// ZIP containers. The rows named after a kind and nothing more ("word",
	// "visio") stand for "macros or not is unknown".
	{"zip", "", "application/zip application/x-zip application/x-zip-compressed application/zip-compressed application/x-compressed-zip multipart/x-zip application/vnd.zip"},
	{"word", "zip", ""},
	{"docx", "word", "application/vnd.openxmlformats-officedocument.wordprocessingml.document application/vnd.openxmlformats-officedocument.wordprocessingml.template"},
	{"docm", "word", "application/vnd.ms-word.document.macroenabled.12 application/vnd.ms-word.document.macroenabled application/vnd.ms-word.template.macroenabled.12 application/vnd.ms-word.template.macroenabled"},
	{"excel", "zip", ""},
	{"xlsx", "excel", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet application/vnd.openxmlformats-officedocument.spreadsheetml.template"},
	{"xlsm", "excel", "application/vnd.ms-excel.sheet.macroenabled.12 application/vnd.ms-excel.sheet.macroenabled application/vnd.ms-excel.template.macroenabled.12 application/vnd.ms-excel.template.macroenabled application/vnd.ms-excel.addin.macroenabled.12 application/vnd.ms-excel.addin.macroenabled"},
	{"xlsb", "excel", "application/vnd.ms-excel.sheet.binary.macroenabled.12 application/vnd.ms-excel.sheet.binary.macroenabled"},
	{"powerpoint", "zip", ""},
	{"pptx", "powerpoint", "application/vnd.openxmlformats-officedocument.presentationml.presentation application/vnd.openxmlformats-officedocument.presentationml.slideshow application/vnd.openxmlformats-officedocument.presentationml.template application/vnd.openxmlformats-officedocument.presentationml.slide"},
	{"pptm", "powerpoint", "application/vnd.ms-powerpoint.presentation.macroenabled.12 application/vnd.ms-powerpoint.presentation.macroenabled application/vnd.ms-powerpoint.slideshow.macroenabled.12 application/vnd.ms-powerpoint.template.macroenabled.12 application/vnd.ms-powerpoint.addin.macroenabled.12 application/vnd.ms-powerpoint.slide.macroenabled.12"},
	{"visio", "zip", "application/vnd.visio application/vnd.ms-visio"},
	{"vsdx", "visio", "application/vnd.ms-visio.drawing application/vnd.ms-visio.drawing.main+xml application/vnd.ms-visio.stencil application/vnd.ms-visio.template application/vnd.visio2013"},
	{"vsdm", "visio", "application/vnd.ms-visio.drawing.macroenabled.12 application/vnd.ms-visio.drawing.macroenabled application/vnd.ms-visio.stencil.macroenabled.12 application/vnd.ms-visio.template.macroenabled.12"},
	{"xps", "zip", "application/vnd.ms-xpsdocument application/oxps application/xps"},
	{"3mf", "zip", "model/3mf application/vnd.ms-package.3dmanufacturing-3dmodel+xml"},
	{"odf", "zip", "application/vnd.oasis.opendocument"},
	{"odt", "odf", "application/vnd.oasis.opendocument.text application/vnd.oasis.opendocument.text-template application/vnd.oasis.opendocument.text-master application/vnd.oasis.opendocument.text-master-template application/vnd.oasis.opendocument.text-web application/x-vnd.oasis.opendocument.text application/x-vnd.oasis.opendocument.text-template"},
	{"ods", "odf", "application/vnd.oasis.opendocument.spreadsheet application/vnd.oasis.opendocument.spreadsheet-template application/x-vnd.oasis.opendocument.spreadsheet application/x-vnd.oasis.opendocument.spreadsheet-template"},
	{"odp", "odf", "application/vnd.oasis.opendocument.presentation application/vnd.oasis.opendocument.presentation-template application/x-vnd.oasis.opendocument.presentation application/x-vnd.oasis.opendocument.presentation-template"},
	{"odg", "odf", "application/vnd.oasis.opendocument.graphics application/vnd.oasis.opendocument.graphics-template application/x-vnd.oasis.opendocument.graphics application/x-vnd.oasis.opendocument.graphics-template"},
	{"odfm", "odf", "application/vnd.oasis.opendocument.formula application/vnd.oasis.opendocument.formula-template application/x-vnd.oasis.opendocument.formula"},
	{"odc", "odf", "application/vnd.oasis.opendocument.chart application/vnd.oasis.opendocument.chart-template application/x-vnd.oasis.opendocument.chart"},
	{"odi", "odf", "application/vnd.oasis.opendocument.image application/vnd.oasis.opendocument.image-template"},
	{"odb", "odf", "application/vnd.oasis.opendocument.database application/vnd.oasis.opendocument.base application/vnd.sun.xml.base"},
	{"sxw", "odf", "application/vnd.sun.xml.writer application/vnd.sun.xml.writer.template application/vnd.sun.xml.writer.global"},
	{"sxc", "odf", "application/vnd.sun.xml.calc application/vnd.sun.xml.calc.template"},
	{"sxi", "odf", "application/vnd.sun.xml.impress application/vnd.sun.xml.impress.template"},
	{"sxd", "odf", "application/vnd.sun.xml.draw application/vnd.sun.xml.draw.template"},
	{"epub", "zip", "application/epub+zip application/x-epub+zip"},
	{"hwpx", "zip", "application/hwp+zip application/haansofthwpx application/vnd.hancom.hwpx"},
	{"kmz", "zip", "application/vnd.google-earth.kmz application/vnd.google-earth.kmz+xml"},
	{"usdz", "zip", "model/vnd.usdz+zip"},
	{"jar", "zip", "application/java-archive application/x-java-archive application/x-jar application/jar application/jar-archive"},
	{"apk", "jar", "application/vnd.android.package-archive"},
	{"xpi", "jar", "application/x-xpinstall"},
	// ZIP files that nothing in the first bytes or the names tells apart.
	{"other-zip", "jar", "application/vnd.apple.pages application/vnd.apple.numbers application/vnd.apple.keynote application/x-iwork-pages-sffpages application/x-iwork-numbers-sffnumbers application/x-iwork-keynote-sffkey application/x-ios-app application/vnd.ms-appx application/vnd.adobe.indesign-idml-package application/vnd.ms-officetheme application/vnd.recordare.musicxml application/vnd.comicbook+zip application/x-cbz application/vsix application/vnd.openofficeorg.extension"},

	// Archives and compressed streams.
	{"gzip", "", "application/gzip application/x-gzip application/x-gunzip application/gzipped application/gzip-compressed application/x-gzip-compressed application/x-tgz application/tar+gzip application/x-compressed-tar application/x-gtar-compressed image/svg+xml-compressed"},
	{"tar", "", "application/x-tar application/tar application/x-gtar application/x-ustar"},
	{"7z", "", "application/x-7z-compressed application/x-7z application/7z application/vnd.7zip"},
	{"rar", "", "application/vnd.rar application/x-rar-compressed application/x-rar application/rar application/vnd.comicbook-rar application/x-cbr"},
	{"bzip2", "", "application/x-bzip2 application/x-bzip application/bzip2 application/x-bz2 application/x-bzip-compressed-tar application/x-bzip2-compressed-tar"},
	{"xz", "", "application/x-xz application/xz application/x-xz-compressed-tar"},
	{"zstd", "", "application/zstd application/x-zstd application/x-zstd-compressed-tar"},
	{"lz4", "", "application/x-lz4 application/lz4"},
	{"lzip", "", "application/lzip application/x-lzip"},
	{"lzop", "", "application/x-lzop"},
	{"compress", "", "application/x-compress"},
	{"zlib", "", "application/zlib application/x-zlib"},
	{"lha", "", "application/x-lzh-compressed application/x-lzh application/x-lha"},
	{"arj", "", "application/x-arj application/arj"},
	{"cab", "", "application/vnd.ms-cab-compressed application/x-cab application/cab"},
	{"ar", "", "application/x-archive application/x-unix-archive"},
	{"deb", "ar", "application/vnd.debian.binary-package application/x-deb application/x-debian-package"},
	{"rpm", "", "application/x-rpm application/x-redhat-package-manager"},
	{"xar", "", "application/x-xar application/vnd.apple.installer"},
	{"crx", "", "application/x-chrome-extension"},

	// Executables and byte code.
	{"exe", "", "application/vnd.microsoft.portable-executable application/x-msdownload application/x-dosexec application/x-winexe application/x-exe application/exe application/dos-exe application/x-ms-dos-executable"},
	{"elf", "", "application/x-elf application/x-executable application/x-sharedlib application/x-object application/x-coredump application/x-pie-executable"},
	{"mach-o", "", "application/x-mach-binary application/x-mach-o application/x-mach-o-executable"},
	{"class", "", "application/x-java-applet application/java-vm application/x-java-vm application/java application/x-java-class"},
	{"dex", "", "application/vnd.android.dex application/x-dex"},
	{"wasm", "", "application/wasm application/x-wasm"},
	{"swf", "", "application/x-shockwave-flash application/vnd.adobe.flash.movie"},
	{"lnk", "", "application/x-ms-shortcut"},

	// Data.
	{"sqlite", "", "application/vnd.sqlite3 application/x-sqlite3 application/x-sqlite application/sqlite3 application/geopackage+sqlite3"},
	{"parquet", "", "application/vnd.apache.parquet application/x-parquet application/parquet"},
	{"arrow", "", "application/vnd.apache.arrow.file"},
	{"avro", "", "application/vnd.apache.avro application/avro application/x-avro avro/binary"},
	{"hdf5", "", "application/x-hdf5 application/x-hdf application/vnd.hdfgroup.hdf5"},
	{"netcdf", "hdf5", "application/x-netcdf application/netcdf"},
	{"npy", "", "application/x-npy application/x-numpy"},
	{"pcap", "", "application/vnd.tcpdump.pcap application/x-pcap application/pcap application/x-pcapng application/vnd.tcpdump.pcapng"},
	{"glb", "", "model/gltf-binary"},
	{"grib", "", "application/grib application/x-grib application/wmo-grib application/wmo-grib2"},
	{"fits", "", "application/fits image/fits"},

	// Fonts. TrueType, OpenType and collections share a container.
	{"sfnt", "", "font/ttf font/otf font/sfnt font/collection application/x-font-ttf application/x-font-truetype application/x-font-otf application/x-font-opentype application/font-sfnt application/vnd.ms-opentype"},
	{"woff", "", "font/woff application/font-woff application/x-font-woff"},
	{"woff2", "", "font/woff2 application/font-woff2 application/x-font-woff2"},
	{"eot", "", "application/vnd.ms-fontobject"},

	// Images.
	{"png", "", "image/png image/x-png image/apng image/vnd.mozilla.apng"},
	{"jpeg", "", "image/jpeg image/jpg image/pjpeg image/x-jpeg image/x-jpg image/x-citrix-jpeg image/jfif image/mpo"},
	{"gif", "", "image/gif image/x-gif"},
	{"webp", "", "image/webp image/x-webp"},
	{"bmp", "", "image/bmp image/x-bmp image/x-ms-bmp image/x-windows-bmp image/ms-bmp"},
	{"ico", "", "image/x-icon image/vnd.microsoft.icon image/ico image/icon image/x-win-bitmap"},
	{"tiff", "", "image/tiff image/tif image/x-tiff image/x-tif image/tiff-fx image/geotiff image/dng image/x-dng image/x-adobe-dng image/x-canon-cr2 image/x-nikon-nef image/x-nikon-nrw image/x-sony-arw image/x-sony-sr2 image/x-pentax-pef image/x-samsung-srw"},
	{"raw", "tiff", "image/x-olympus-orf image/x-panasonic-rw2 image/x-panasonic-raw image/x-kodak-dcr"},
	{"raf", "", "image/x-fuji-raf"},
	{"cr3", "", "image/x-canon-cr3"},
	{"heif", "", "image/heif image/heic image/heif-sequence image/heic-sequence image/avif image/avif-sequence image/hej2k image/avci image/avcs"},
	{"jp2", "", "image/jp2 image/jpx image/jpm image/jpeg2000 image/jpeg2000-image image/x-jpeg2000-image image/x-jp2 video/jpm"},
	{"j2c", "jp2", "image/x-jp2-codestream image/j2c image/jphc"},
	{"jxl", "", "image/jxl"},
	{"jxr", "", "image/jxr image/vnd.ms-photo"},
	{"jxs", "", "image/jxs"},
	{"psd", "", "image/vnd.adobe.photoshop image/x-psd image/psd application/photoshop application/x-photoshop application/psd"},
	{"xcf", "", "image/x-xcf"},
	{"icns", "", "image/x-icns image/icns"},
	{"bpg", "", "image/bpg"},
	{"exr", "", "image/x-exr image/exr image/aces"},
	{"hdr", "", "image/vnd.radiance"},
	{"dds", "", "image/vnd.ms-dds image/x-dds"},
	{"ktx", "", "image/ktx image/ktx2"},
	{"emf", "", "image/emf image/x-emf application/emf application/x-emf application/x-msmetafile"},
	{"wmf", "", "image/wmf image/x-wmf application/wmf application/x-wmf application/x-msmetafile"},
	{"dwg", "", "image/vnd.dwg image/x-dwg application/acad application/x-acad application/autocad_dwg application/dwg application/x-dwg application/x-autocad drawing/dwg"},
	{"netpbm", "", "image/x-portable-bitmap image/x-portable-graymap image/x-portable-pixmap image/x-portable-anymap image/x-portable-arbitrarymap"},
	{"pcx", "", "image/x-pcx image/vnd.zbrush.pcx image/pcx"},
	{"xpm", "", "image/x-xpixmap image/x-xpm"},

	// Audio.
	{"mpeg-audio", "", "audio/mpeg audio/mp3 audio/mpeg3 audio/x-mpeg audio/x-mpeg-3 audio/x-mp3 audio/mpg audio/x-mpg audio/mpa audio/mp2 audio/x-mp2 audio/x-mpegaudio"},
	{"aac", "", "audio/aac audio/aacp audio/x-aac audio/x-hx-aac-adts audio/vnd.dlna.adts"},
	{"wav", "", "audio/wav audio/x-wav audio/vnd.wave audio/wave audio/x-pn-wav"},
	{"aiff", "", "audio/aiff audio/x-aiff audio/aif"},
	{"flac", "", "audio/flac audio/x-flac"},
	{"midi", "", "audio/midi audio/x-midi audio/mid audio/x-mid audio/sp-midi application/x-midi"},
	{"amr", "", "audio/amr audio/amr-nb audio/amr-wb audio/3gpp"},
	{"au", "", "audio/basic audio/x-au"},
	{"ape", "", "audio/ape audio/x-ape audio/x-monkeys-audio"},
	{"musepack", "", "audio/musepack audio/x-musepack"},
	{"wavpack", "", "audio/x-wavpack audio/wavpack"},
	{"caf", "", "audio/x-caf audio/caf"},
	{"tta", "", "audio/x-tta audio/tta"},
	{"w64", "", "audio/x-w64"},
	{"dts", "", "audio/vnd.dts audio/vnd.dts.hd audio/x-dts"},
	{"ac3", "", "audio/ac3 audio/eac3 audio/x-ac3"},

	// Video and containers that carry both.
	{"isom", "", "video/mp4 audio/mp4 application/mp4 audio/x-mp4a audio/mp4a-latm audio/x-m4a audio/m4a audio/x-m4b audio/m4b audio/x-m4p video/x-m4v video/m4v video/x-mp4 video/quicktime video/x-quicktime audio/x-quicktime video/3gpp audio/3gpp video/3gp audio/3gp video/3gpp2 audio/3gpp2 video/3g2 video/mj2 video/vnd.dvb.file video/iso.segment"},
	{"ogg", "", "application/ogg application/x-ogg audio/ogg audio/x-ogg video/ogg video/x-ogg audio/opus audio/vorbis audio/speex audio/x-speex audio/x-vorbis+ogg audio/x-opus+ogg audio/flac audio/x-flac audio/x-flac+ogg video/x-theora+ogg video/x-ogm+ogg video/theora"},
	{"matroska", "", "video/webm audio/webm video/matroska audio/matroska video/x-matroska audio/x-matroska video/x-matroska-3d video/matroska-3d application/x-matroska"},
	{"avi", "", "video/x-msvideo video/avi video/msvideo video/vnd.avi video/x-avi application/x-troff-msvideo"},
	{"flv", "", "video/x-flv video/flv"},
	{"asf", "", "video/x-ms-asf video/asf application/vnd.ms-asf video/x-ms-wmv audio/x-ms-wma video/x-ms-wm audio/wma video/wmv"},
	{"mpeg-ps", "", "video/mpeg video/mpg video/x-mpeg video/mp2p video/mpv"},
	{"mpeg-ts", "", "video/mp2t video/mpeg video/vnd.dlna.mpeg-tts"},
	{"rm", "", "application/vnd.rn-realmedia application/vnd.rn-realmedia-vbr audio/x-pn-realaudio audio/vnd.rn-realaudio video/vnd.rn-realvideo"},

	// Spreadsheets saved as CSV or HTML reach us as "Excel": Windows registers
	// that type for .csv.
	{textFamily, "", "application/vnd.ms-excel application/msexcel application/x-msexcel"},
}

// suffixFamilies maps structured syntax suffixes (RFC 6839 and the IANA
// registry after it) of types that have no row of their own. Such a ZIP type
// counts as one more child of JAR, because many of them are JARs.
var suffixFamilies = map[string]string{
	"+zip":     "other-zip",
	"+gzip":    "gzip",
	"+sqlite3": "sqlite",
	"+zstd":    "zstd",
}

// index answers the two questions asked of the table: the families of a type
// and the parent of a family.
type index struct {
	byType  map[string][]string
	parents map[string]string
}

// Built on first use, to cost nothing at start-up.
var table = sync.OnceValue(func() index {
	idx := index{byType: make(map[string][]string, 640), parents: make(map[string]string, len(families))}
	for _, f := range families {
		idx.parents[f.name] = f.parent
		for t := range strings.FieldsSeq(f.types) {
			idx.byType[t] = append(idx.byType[t], f.name)
		}
	}
	return idx
})

// familiesOf returns the families of a lower-cased media type, none when the
// type has no well-known signature.
func familiesOf(mediaType string) []string {
	if found := table().byType[mediaType]; found != nil {
		return found
	}
	if i := strings.LastIndexByte(mediaType, '+'); i >= 0 {
		if name, ok := suffixFamilies[mediaType[i:]]; ok {
			return []string{name}
		}
	}
	return nil
}

// isAncestor reports whether a is a parent of b at any distance.
func isAncestor(a, b string) bool {
	parents := table().parents
	for b = parents[b]; b != ""; b = parents[b] {
		if a == b {
			return true
		}
	}
	return false
}

// textTypes are the text formats outside text/* that no suffix gives away.
var textTypes = map[string]bool{
	"application/csv":                        true,
	"application/dart":                       true,
	"application/ecmascript":                 true,
	"application/graphql":                    true,
	"application/javascript":                 true,
	"application/json":                       true,
	"application/json-seq":                   true,
	"application/json5":                      true,
	"application/jsonl":                      true,
	"application/jsonlines":                  true,
	"application/jsonlines+json":             true,
	"application/ld-json":                    true,
	"application/mbox":                       true,
	"application/n-quads":                    true,
	"application/n-triples":                  true,
	"application/ndjson":                     true,
	"application/node":                       true,
	"application/sparql-query":               true,
	"application/sql":                        true,
	"application/toml":                       true,
	"application/trig":                       true,
	"application/tsv":                        true,
	"application/typescript":                 true,
	"application/vnd.apple.mpegurl":          true,
	"application/x-csh":                      true,
	"application/x-csv":                      true,
	"application/x-httpd-php":                true,
	"application/x-javascript":               true,
	"application/x-json":                     true,
	"application/x-jsonlines":                true,
	"application/x-latex":                    true,
	"application/x-lua":                      true,
	"application/x-markdown":                 true,
	"application/x-mpegurl":                  true,
	"application/x-ndjson":                   true,
	"application/x-perl":                     true,
	"application/x-php":                      true,
	"application/x-python":                   true,
	"application/x-ruby":                     true,
	"application/x-sh":                       true,
	"application/x-shellscript":              true,
	"application/x-sql":                      true,
	"application/x-srt":                      true,
	"application/x-subrip":                   true,
	"application/x-tcl":                      true,
	"application/x-tex":                      true,
	"application/x-texinfo":                  true,
	"application/x-toml":                     true,
	"application/x-typescript":               true,
	"application/x-yaml":                     true,
	"application/xml":                        true,
	"application/xml-dtd":                    true,
	"application/xml-external-parsed-entity": true,
	"application/yaml":                       true,
	"application/yml":                        true,
	"audio/mpegurl":                          true,
	"audio/x-mpegurl":                        true,
	"image/svg":                              true,
	"image/x-xbitmap":                        true,
	"message/rfc822":                         true,
}

// isTextType reports whether a lower-cased media type declares text.
func isTextType(mediaType string) bool {
	if strings.HasPrefix(mediaType, "text/") || textTypes[mediaType] {
		return true
	}
	for _, suffix := range [...]string{"+json", "+xml", "+yaml", "+json-seq", "+csv"} {
		if strings.HasSuffix(mediaType, suffix) {
			return true
		}
	}
	return false
}
