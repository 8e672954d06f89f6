package names

import (
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func TestClean(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"report.pdf":                      "report.pdf",
		"../../etc/passwd":                "passwd",
		`C:\dir\a.pdf`:                    "a.pdf",
		"a/b.txt":                         "b.txt",
		`a/b\c.txt`:                       "c.txt",
		`a\b/c.txt`:                       "c.txt",
		`\\host\share\x`:                  "x",
		"rapport-e\u0301te\u0301":         "rapport-été",
		"rapport-été.md":                  "rapport-été.md",
		"Capture d’écran à 18.28.png":     "Capture d’écran à 18.28.png",
		"合同.pdf":                          "合同.pdf",
		"don't (final)*.md":               "don't (final)*.md",
		"a,b;c.pdf":                       "a,b;c.pdf",
		"'; rm -rf ~ #":                   "'; rm -rf ~ #",
		"a[1-2].txt":                      "a[1-2].txt",
		"-":                               "-",
		"@x":                              "@x",
		".env":                            ".env",
		"...":                             "...",
		" a .txt ":                        " a .txt ",
		"a\u00a0b":                        "a\u00a0b",
		"CON":                             "CON",
		"❤\ufe0f.png":                     "❤\ufe0f.png",
		"👍🏽.png":                          "👍🏽.png",
		"\u0600\u0661.txt":                "\u0600\u0661.txt",
		"\ufffd.txt":                      "\ufffd.txt",
		"\u212b.txt":                      "\u00c5.txt",
		"100%.txt":                        "100%.txt",
		"\U0001f600":                      "\U0001f600",
		strings.Repeat("x", 255):          strings.Repeat("x", 255),
		"dir/" + strings.Repeat("x", 255): strings.Repeat("x", 255),
	} {
		got, err := Clean(in)
		if err != nil || got != want {
			t.Errorf("Clean(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
}

func TestCleanRefuses(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]error{
		"": ErrEmpty, " ": ErrEmpty, "\u00a0\u3000": ErrEmpty, "a/": ErrEmpty, `a\`: ErrEmpty, "/": ErrEmpty,
		".": ErrDots, "..": ErrDots, "a/..": ErrDots, `..\..`: ErrDots,
		"a\xff.txt": ErrEncoding, "\xed\xa0\x80": ErrEncoding, "a\xc3": ErrEncoding,
		"e" + strings.Repeat("\u0301", 40): ErrMarks,
		strings.Repeat(" ", 300) + "x":     ErrEmpty,
	} {
		if got, err := Clean(in); !errors.Is(err, want) {
			t.Errorf("Clean(%q) = %q, %v; want %v", in, got, err, want)
		}
	}
	for _, r := range "\x00\x01\t\n\v\f\r\x1b\x1f\x7f\u0080\u0085\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u180e" +
		"\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2060\u2061\u2064\u2066\u2067\u2068\u2069\u206a\u206f" +
		"\u3164\ufeff\uffa0\ufff9\ufffb\U0001d173\U000e0001\U000e0061\U000e01f0\ufdd0\uffff" {
		for _, in := range []string{"a" + string(r) + "b.txt", string(r), "a.txt" + string(r), string(r) + "/b.txt"} {
			_, err := Clean(in)
			var refused *CharacterError
			if !errors.As(err, &refused) || refused.Rune != r || refused.Offset != strings.IndexRune(in, r) {
				t.Errorf("Clean(%q): %v", in, err)
				continue
			}
			if strings.ContainsRune(err.Error(), r) {
				t.Errorf("the error for %U contains it", r)
			}
		}
	}
}

func TestCleanShortens(t *testing.T) {
	t.Parallel()
	x := func(n int) string { return strings.Repeat("x", n) }
	for in, want := range map[string]string{
		x(300) + ".pdf":                        x(251) + ".pdf",
		x(252) + ".pdf":                        x(251) + ".pdf",
		x(300):                                 x(255),
		x(300) + ".tar.gz":                     x(248) + ".tar.gz",
		x(300) + ".final version of it":        x(255),
		x(300) + "." + x(40):                   x(255),
		x(100) + "." + x(400):                  x(100) + "." + x(154),
		"." + x(300):                           "." + x(254),
		x(300) + ".":                           x(255),
		strings.Repeat("合", 100) + ".pdf":      strings.Repeat("合", 83) + ".pdf",
		strings.Repeat("é", 150) + ".md":       strings.Repeat("é", 126) + ".md",
		strings.Repeat("😀", 80):                strings.Repeat("😀", 63),
		x(250) + "q\u0323\u0307.pdf":           x(250) + ".pdf",
		x(249) + "👍🏽.png":                      x(249) + ".png",
		x(248) + "❤\ufe0f.png":                 x(248) + ".png",
		x(300) + ".合同":                         x(248) + ".合同",
		x(300) + "/" + x(300) + ".PDF":         x(251) + ".PDF",
		x(300) + strings.Repeat(" ", 9) + ".a": x(253) + ".a",
	} {
		got, err := Clean(in)
		if err != nil || got != want {
			t.Errorf("Clean(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{
		"../../etc/passwd", `C:\a.pdf`, "e\u0301.txt", "\u202e", strings.Repeat("é", 200) + ".tar.gz", "a\u0301\u0323" + strings.Repeat("\u0301", 29),
		strings.Repeat("x", 254) + "\u0301", strings.Repeat("\u0301", 150) + ".x", strings.Repeat("\u1100\u1161\u11a8", 60) + ".txt", strings.Repeat("각", 90),
		"\ufb1d" + strings.Repeat("\u05b4", 20), "<\u0338", "\u037e", strings.Repeat("a", 250) + "." + strings.Repeat("\u0344", 10),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, err := Clean(s)
		if err != nil {
			if err.Error() == "" || !utf8.ValidString(err.Error()) || strings.ContainsFunc(err.Error(), unicode.IsControl) {
				t.Errorf("Clean(%q): error %q", s, err)
			}
			return
		}
		if again, err := Clean(name); err != nil || again != name {
			t.Errorf("Clean(%q) = %q, and of that %q, %v", s, name, again, err)
		}
		if len(name) > MaxBytes || name == "" || !utf8.ValidString(name) || !norm.NFC.IsNormalString(name) || strings.ContainsAny(name, `/\`) {
			t.Errorf("Clean(%q) = %q, %d bytes", s, name, len(name))
		}
		for _, r := range name {
			if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
				t.Errorf("Clean(%q) kept %U", s, r)
			}
		}
	})
}
