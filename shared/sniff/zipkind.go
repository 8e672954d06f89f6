package sniff

import (
	"bytes"
	"strings"
)

// What a ZIP container is follows, in this order, from the media type in its
// first member "mimetype" (OpenDocument, EPUB), from the main part's type in
// the package's [Content_Types].xml (Office), and from the names of its
// members. Macros count when either the main type or a member says so.

const (
	contentTypes    = "[Content_Types].xml"
	maxContentTypes = 32 << 10
)

// trait is one thing that a member's name says about the container.
type trait uint32

const (
	hasContentTypes trait = 1 << iota
	hasWord
	hasExcel
	hasPowerPoint
	hasVisio
	hasBinaryWorkbook
	hasMacros
	hasFixedPages
	has3DModel
	hasManifest // META-INF/MANIFEST.MF
	hasAndroid
	hasODFManifest
	hasODFContent
	hasEPUBContainer
	hasEPUBPackage
	hasKML
	hasUSD
	hasInstallManifest // of a Mozilla extension
	hasWebManifest
)

// contents collects what is known of one container.
type contents struct {
	traits   trait
	members  int
	complete bool   // every member's name was seen
	declared string // content of a first member "mimetype"
	mainType string // type of the main part of an OPC package, lower case
	typesAt  int64  // offset of [Content_Types].xml
}

func (c *contents) has(t trait) bool { return c.traits&t == t }

// add notes one member. Names of Office packages compare without case, and some
// writers use backslashes.
func (c *contents) add(m member) {
	name := strings.ToLower(strings.ReplaceAll(string(m.name), `\`, "/"))
	name = strings.TrimPrefix(name, "/")
	folder, rest, nested := strings.Cut(name, "/")
	if !nested {
		folder = ""
	}
	c.members++
	switch {
	case name == "[content_types].xml":
		c.traits |= hasContentTypes
		c.typesAt = m.offset
	case strings.HasSuffix(name, "/vbaproject.bin"), strings.HasPrefix(name, "xl/macrosheets/"):
		c.traits |= hasMacros
	case name == "xl/workbook.bin":
		c.traits |= hasBinaryWorkbook
	case name == "fixeddocseq.fdseq", name == "fixeddocumentsequence.fdseq", folder == "documents" && strings.HasSuffix(name, ".fdoc"):
		c.traits |= hasFixedPages
	case folder == "3d" && strings.HasSuffix(name, ".model"):
		c.traits |= has3DModel
	case name == "androidmanifest.xml", name == "classes.dex", name == "resources.arsc":
		c.traits |= hasAndroid
	case name == "install.rdf", name == "meta-inf/mozilla.rsa":
		c.traits |= hasInstallManifest
	case name == "manifest.json":
		c.traits |= hasWebManifest
	case name == "content.xml":
		c.traits |= hasODFContent
	case folder == "meta-inf":
		switch rest {
		case "manifest.mf":
			c.traits |= hasManifest
		case "manifest.xml":
			c.traits |= hasODFManifest
		case "container.xml":
			c.traits |= hasEPUBContainer
		}
	case strings.HasSuffix(name, ".opf"):
		c.traits |= hasEPUBPackage
	case name == "doc.kml", !nested && strings.HasSuffix(name, ".kml"):
		c.traits |= hasKML
	case c.members == 1 && hasAnySuffix(name, ".usd", ".usda", ".usdc"):
		// The first member of a USDZ package is its root layer.
		c.traits |= hasUSD
	}
	switch folder {
	case "word":
		c.traits |= hasWord
	case "xl":
		c.traits |= hasExcel
	case "ppt":
		c.traits |= hasPowerPoint
	case "visio":
		c.traits |= hasVisio
	}
}

func hasAnySuffix(s string, suffixes ...string) bool {
	for _, suffix := range suffixes {
		if strings.HasSuffix(s, suffix) {
			return true
		}
	}
	return false
}

// settled reports whether the central directory could change nothing that
// matters. Whether an Office document is free of macros only the full list of
// names tells.
func (c *contents) settled() bool {
	return c.declared != "" || c.has(hasAndroid) || c.mainType != "" && c.macros()
}

func (c *contents) macros() bool {
	return c.has(hasMacros) || strings.Contains(c.mainType, "macroenabled")
}

// applications are those whose packages keep their parts in a folder each.
var applications = [...]struct {
	folder       trait
	family       string // for packages that may or may not have macros
	plain, macro string // types of documents without and with macros
}{
	{hasWord, "word", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "application/vnd.ms-word.document.macroEnabled.12"},
	{hasExcel, "excel", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "application/vnd.ms-excel.sheet.macroEnabled.12"},
	{hasPowerPoint, "powerpoint", "application/vnd.openxmlformats-officedocument.presentationml.presentation", "application/vnd.ms-powerpoint.presentation.macroEnabled.12"},
	{hasVisio, "visio", "application/vnd.ms-visio.drawing", "application/vnd.ms-visio.drawing.macroEnabled.12"},
}

// mainTypes maps the type of a package's main part, without ".main+xml" and in
// lower case, to the type of the package.
var mainTypes = map[string]string{
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document":   applications[0].plain,
	"application/vnd.openxmlformats-officedocument.wordprocessingml.template":   "application/vnd.openxmlformats-officedocument.wordprocessingml.template",
	"application/vnd.ms-word.document.macroenabled":                             applications[0].macro,
	"application/vnd.ms-word.template.macroenabledtemplate":                     "application/vnd.ms-word.template.macroEnabled.12",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":         applications[1].plain,
	"application/vnd.openxmlformats-officedocument.spreadsheetml.template":      "application/vnd.openxmlformats-officedocument.spreadsheetml.template",
	"application/vnd.ms-excel.sheet.macroenabled":                               applications[1].macro,
	"application/vnd.ms-excel.template.macroenabled":                            "application/vnd.ms-excel.template.macroEnabled.12",
	"application/vnd.ms-excel.addin.macroenabled":                               "application/vnd.ms-excel.addin.macroEnabled.12",
	"application/vnd.ms-excel.sheet.binary.macroenabled":                        binaryWorkbook,
	"application/vnd.openxmlformats-officedocument.presentationml.presentation": applications[2].plain,
	"application/vnd.openxmlformats-officedocument.presentationml.slideshow":    "application/vnd.openxmlformats-officedocument.presentationml.slideshow",
	"application/vnd.openxmlformats-officedocument.presentationml.template":     "application/vnd.openxmlformats-officedocument.presentationml.template",
	"application/vnd.ms-powerpoint.presentation.macroenabled":                   applications[2].macro,
	"application/vnd.ms-powerpoint.slideshow.macroenabled":                      "application/vnd.ms-powerpoint.slideshow.macroEnabled.12",
	"application/vnd.ms-powerpoint.template.macroenabled":                       "application/vnd.ms-powerpoint.template.macroEnabled.12",
	"application/vnd.ms-powerpoint.addin.macroenabled":                          "application/vnd.ms-powerpoint.addin.macroEnabled.12",
	"application/vnd.ms-visio.drawing":                                          applications[3].plain,
	"application/vnd.ms-visio.drawing.macroenabled":                             applications[3].macro,
	"application/vnd.ms-visio.stencil":                                          "application/vnd.ms-visio.stencil",
	"application/vnd.ms-visio.stencil.macroenabled":                             "application/vnd.ms-visio.stencil.macroEnabled.12",
	"application/vnd.ms-visio.template":                                         "application/vnd.ms-visio.template",
	"application/vnd.ms-visio.template.macroenabled":                            "application/vnd.ms-visio.template.macroEnabled.12",
}

const binaryWorkbook = "application/vnd.ms-excel.sheet.binary.macroEnabled.12"

// addContentTypes looks for the main part's type in (the beginning of) a
// [Content_Types].xml.
func (c *contents) addContentTypes(xml []byte) {
	xml = bytes.ToLower(xml)
	for rest := xml; ; {
		at := bytes.Index(rest, []byte(".main"))
		if at < 0 {
			return
		}
		if quote := bytes.LastIndexAny(rest[:at], `"'`); quote >= 0 {
			if name := string(rest[quote+1 : at]); mainTypes[name] != "" {
				c.mainType = name
				return
			}
		}
		rest = rest[at+len(".main"):]
	}
}

// finding names the kind of the container.
func (c *contents) finding() finding {
	switch {
	case c.declared != "":
		return c.declaredFinding()
	case c.mainType != "" || c.has(hasContentTypes):
		if found, ok := c.officeFinding(); ok {
			return found
		}
	case !c.complete && c.traits&(hasWord|hasExcel|hasPowerPoint|hasVisio) != 0:
		// Writers that put the content types last, cut off from the directory.
		if found, ok := c.officeFinding(); ok {
			return found
		}
	}
	for _, known := range [...]struct {
		traits trait
		kind   string
		family string
	}{
		{hasContentTypes | hasFixedPages, "application/vnd.ms-xpsdocument", "xps"},
		{hasContentTypes | has3DModel, "model/3mf", "3mf"},
		{hasEPUBContainer | hasEPUBPackage, "application/epub+zip", "epub"},
		{hasODFManifest | hasODFContent, "application/zip", "odf"},
		{hasAndroid, "application/vnd.android.package-archive", "apk"},
		{hasInstallManifest, "application/x-xpinstall", "xpi"},
		{hasManifest | hasWebManifest, "application/x-xpinstall", "xpi"},
		{hasManifest, "application/java-archive", "jar"},
		{hasKML, "application/vnd.google-earth.kmz", "kmz"},
		{hasUSD, "model/vnd.usdz+zip", "usdz"},
	} {
		if c.has(known.traits) {
			return finding{kind: known.kind, families: []string{known.family}}
		}
	}
	return binaryFinding("application/zip")
}

// declaredFinding trusts the member "mimetype" as far as the type can be one of
// a ZIP container.
func (c *contents) declaredFinding() finding {
	families := familiesOf(c.declared)
	switch {
	case len(families) > 0 && isAncestor("zip", families[0]):
		return binaryFinding(c.declared)
	case len(families) == 0 && !isTextType(c.declared) && strings.HasPrefix(c.declared, "application/x-"), c.declared == "image/openraster":
		// A type of its own, such as Krita's.
		return finding{kind: c.declared, families: []string{"other-zip"}}
	}
	return binaryFinding("application/zip")
}

// officeFinding names the kind of an Office document; ok is false when nothing
// says which application it belongs to.
func (c *contents) officeFinding() (found finding, ok bool) {
	if c.mainType != "" {
		kind := mainTypes[c.mainType]
		found = binaryFinding(kind)
		if kind == binaryWorkbook || !c.has(hasMacros) || strings.Contains(c.mainType, "macroenabled") {
			return found, true
		}
		// The content types deny the macros that are there.
		for _, app := range applications {
			if isAncestor(app.family, found.families[0]) {
				return binaryFinding(app.macro), true
			}
		}
	}
	if c.has(hasBinaryWorkbook) {
		return binaryFinding(binaryWorkbook), true
	}
	for _, app := range applications {
		switch {
		case !c.has(app.folder):
			continue
		case c.has(hasMacros):
			return binaryFinding(app.macro), true
		case c.complete:
			return binaryFinding(app.plain), true
		}
		// Macros may be among the members whose names are out of reach.
		return finding{kind: app.plain, families: []string{app.family}}, true
	}
	return finding{}, false
}
