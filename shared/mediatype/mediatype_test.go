package mediatype

import (
	"mime"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"application/pdf":                   "application/pdf",
		"text/plain; charset=utf-8":         "text/plain; charset=utf-8",
		"text/plain;charset=UTF-8":          "text/plain;charset=UTF-8",
		"  text/plain  ":                    "text/plain",
		"text/plain ; charset=utf-8":        "text/plain ; charset=utf-8",
		"\ttext/plain\t":                    "text/plain",
		`text/plain; title="a;b \" c"`:      `text/plain; title="a;b \" c"`,
		`text/plain; title=""; b=c`:         `text/plain; title=""; b=c`,
		"Image/SVG+XML":                     "Image/SVG+XML",
		"application/vnd.x.y-z_1+json":      "application/vnd.x.y-z_1+json",
		"multipart/form-data; boundary=abc": "multipart/form-data; boundary=abc",
		"a/" + strings.Repeat("b", 127):     "a/" + strings.Repeat("b", 127),
	} {
		if got, err := Parse(in); err != nil || got != want {
			t.Errorf("Parse(%q) = %q, %v", in, got, err)
		}
	}
	for _, in := range []string{
		"", " ", ";", "pdf", "/", "text/", "/plain", "text/plain/x", "text plain", "text/pl ain",
		"*/*", "text/*", "*/plain", "text/plain, text/html", "text/plain\n", "text/plain\r\nX-A: b",
		"text/plain\x00", "text/\tplain", "text/pläin", "text/plain; é=1", "text/plain; charset",
		"text/plain; charset=", "text/plain; =utf-8", `text/plain; a="b`,
		`text/plain; a="b`, `text/plain; a="b"c`, "text/plain; a=b c", "text/plain; a=b; A=c", "<b>/x", "text/(x)",
		"text/plain charset=utf-8", "a/" + strings.Repeat("b", 128), "a/b; c=" + strings.Repeat("d", 250), "\xff/\xfe", "text/plain; a=\x7f",
	} {
		if got, err := Parse(in); err == nil {
			t.Errorf("Parse(%q) = %q", in, got)
		} else if strings.ContainsAny(err.Error(), "\r\n\x00") {
			t.Errorf("Parse(%q): unprintable error %q", in, err)
		}
	}
}

func TestBase(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Text/Plain; charset=utf-8": "text/plain", " application/PDF ;x=y": "application/pdf", "": "",
	} {
		if got := Base(in); got != want {
			t.Errorf("Base(%q) = %q", in, got)
		}
	}
}

// FuzzParse checks that what is accepted stays as it is and can go in a header.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"text/plain; charset=utf-8", `a/b; c="d\"e"`, "*/*", "text/plain;;", `a/b; x*=utf-8''y`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		canonical, err := Parse(s)
		if err != nil {
			return
		}
		if again, err := Parse(canonical); err != nil || again != canonical {
			t.Errorf("%q became %q, which became %q, %v", s, canonical, again, err)
		}
		if strings.ContainsFunc(canonical, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%q is not printable ASCII", canonical)
		}
		if base, _, err := mime.ParseMediaType(canonical); err != nil || base != Base(canonical) {
			t.Errorf("%q: Base %q, the standard library says %q, %v", canonical, Base(canonical), base, err)
		}
	})
}
