package names

import (
	"mime"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestDisposition(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"report.pdf":                  `attachment; filename="report.pdf"; filename*=UTF-8''report.pdf`,
		"rapport-été.md":              `attachment; filename="rapport-ete.md"; filename*=UTF-8''rapport-%C3%A9t%C3%A9.md`,
		"Capture d’écran à 18.28.png": `attachment; filename="Capture d_ecran a 18.28.png"; filename*=UTF-8''Capture%20d%E2%80%99%C3%A9cran%20%C3%A0%2018.28.png`,
		"合同.pdf":                      `attachment; filename="__.pdf"; filename*=UTF-8''%E5%90%88%E5%90%8C.pdf`,
		"don't (final)*.md":           `attachment; filename="don't (final)*.md"; filename*=UTF-8''don%27t%20%28final%29%2A.md`,
		"a,b;c.pdf":                   `attachment; filename="a,b;c.pdf"; filename*=UTF-8''a%2Cb%3Bc.pdf`,
		`say "hi" 100%.txt`:           `attachment; filename="say _hi_ 100_.txt"; filename*=UTF-8''say%20%22hi%22%20100%25.txt`,
		"%41.txt":                     `attachment; filename="_41.txt"; filename*=UTF-8''%2541.txt`,
		"a\r\nX-Evil: 1/..\\b":        `attachment; filename="a__X-Evil: 1_.._b"; filename*=UTF-8''a__X-Evil%3A%201_.._b`,
		"\u202etxt.exe":               `attachment; filename="_txt.exe"; filename*=UTF-8''_txt.exe`,
		"a\xffb":                      `attachment; filename="a_b"; filename*=UTF-8''a%EF%BF%BDb`,
		"q\u0323.txt":                 `attachment; filename="q.txt"; filename*=UTF-8''q%CC%A3.txt`,
		"\u0301.txt":                  `attachment; filename="_.txt"; filename*=UTF-8''%CC%81.txt`,
		"‥/":                          `attachment; filename="__"; filename*=UTF-8''%E2%80%A5_`,
		"":                            "attachment",
		"..":                          "attachment",
	} {
		if got := Disposition(name); got != want {
			t.Errorf("Disposition(%q)\n got %s\nwant %s", name, got, want)
		}
	}
}

// FuzzDisposition reads the header with the standard library's parser, which
// prefers filename*, and checks the fallback by itself.
func FuzzDisposition(f *testing.F) {
	for _, s := range []string{"a.pdf", "合同.pdf", `"\%`, "a;filename=b", "\r\n", "=?utf-8?q?a?=", "'", "a\u0301", ".\u036c", "ﬁ.txt", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		value := Disposition(s)
		for i := range len(value) {
			if value[i] < ' ' || value[i] > '~' {
				t.Fatalf("Disposition(%q) = %q", s, value)
			}
		}
		kind, _, err := mime.ParseMediaType(value)
		if err != nil || kind != "attachment" {
			t.Fatalf("Disposition(%q) = %q: %v", s, value, err)
		}
		name, err := Clean(s)
		if err != nil || strings.ContainsAny(s, `/\`) {
			return
		}
		value = Disposition(name)
		if _, params, err := mime.ParseMediaType(value); err != nil || params["filename"] != name {
			t.Errorf("%q is read as %q, %v", value, params["filename"], err)
		}
		quoted, exact, _ := strings.Cut(strings.TrimPrefix(value, `attachment; filename="`), `"; filename*=UTF-8''`)
		if quoted == "" || strings.ContainsAny(quoted, `"\%/`) || quoted == "." || quoted == ".." {
			t.Errorf("fallback %q for %q", quoted, name)
		}
		if decoded, err := url.PathUnescape(exact); err != nil || decoded != name || !utf8.ValidString(decoded) {
			t.Errorf("exact name %q decodes to %q, %v", exact, decoded, err)
		}
	})
}
