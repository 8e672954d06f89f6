package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// command is one command of the README's session with the output printed there.
type command struct{ text, output string }

// session reads the README's session: lines after "$ " are commands, "> " continues one, the rest is output.
func session(t *testing.T) []command {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "<!-- session -->\n```console\n")
	block, _, closed := strings.Cut(rest, "```\n<!-- end of session -->")
	if !found || !closed {
		t.Fatal("README.md has no session")
	}
	var out []command
	for line := range strings.Lines(block) {
		if text, ok := strings.CutPrefix(line, "$ "); ok {
			out = append(out, command{text: text})
			continue
		}
		last := &out[len(out)-1]
		if text, ok := strings.CutPrefix(line, "> "); ok && last.output == "" {
			last.text += text
		} else {
			last.output += line
		}
	}
	return out
}

// What differs from run to run.
var changing = []struct {
	pattern *regexp.Regexp
	mask    string
}{
	{regexp.MustCompile(`f_[a-z0-9]{26}`), "f_ID"},
	{regexp.MustCompile(`127\.0\.0\.1:[0-9]+`), "HOST"},
	{regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z`), "TIME"},
	{regexp.MustCompile(`"request_id":"[^"]+"`), `"request_id":"ID"`},
}

func masked(s string) string {
	for _, c := range changing {
		s = c.pattern.ReplaceAllString(s, c.mask)
	}
	return s
}

// TestReadmeSession runs the README's session with a real shell and the real curl, as it stands there.
func TestReadmeSession(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"sh", "curl", "sha256sum"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	r := stackFor(t, "")
	dir := t.TempDir()
	if err := os.Symlink(r.data, filepath.Join(dir, ".local")); err != nil {
		t.Fatal(err)
	}
	commands := session(t)
	var script strings.Builder
	for i, c := range commands {
		fmt.Fprintf(&script, "echo '@@%d@@'\n%s\n", i, c.text)
	}
	sh := exec.Command("sh")
	sh.Dir, sh.Stdin = dir, strings.NewReader(script.String())
	sh.Env = append(os.Environ(), "LC_ALL=C")
	out, err := sh.CombinedOutput()
	if err != nil {
		t.Logf("the shell ended with %v", err) // the last command is a refusal
	}
	rest := string(out)
	refusals := 0
	for i, c := range commands {
		_, after, ok := strings.Cut(rest, fmt.Sprintf("@@%d@@\n", i))
		if !ok {
			t.Fatalf("the session stopped before:\n%s\n%s", c.text, rest)
		}
		got, _, _ := strings.Cut(after, fmt.Sprintf("@@%d@@\n", i+1))
		if masked(got) != masked(c.output) {
			t.Errorf("$ %sprints\n%s\nthe README says\n%s", c.text, got, c.output)
		}
		if strings.Contains(got, "SignatureDoesNotMatch") || strings.Contains(got, `"status":4`) {
			refusals++
		}
		rest = after
	}
	if refusals < 3 {
		t.Errorf("the session shows %d refusals, want three", refusals)
	}
}
