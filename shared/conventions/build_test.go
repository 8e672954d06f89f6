package conventions

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// shippedFlags are the flags of GO_BUILD in the Makefile, by which functions ship.
func shippedFlags(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^GO_BUILD := CGO_ENABLED=0 go build (.*)$`).FindSubmatch(text)
	if line == nil {
		t.Fatal("the Makefile does not say GO_BUILD := CGO_ENABLED=0 go build …")
	}
	words := regexp.MustCompile(`(?:[^\s']|'[^']*')+`).FindAllString(string(line[1]), -1)
	for i, w := range words {
		words[i] = strings.ReplaceAll(w, "'", "")
	}
	return words
}

// TestLocalStackBuildsAsShipped: the local stack, which is another module, states the flags again.
func TestLocalStackBuildsAsShipped(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "shared", "local", "stack", "build.go"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^var BuildFlags = \[\]string\{(.*)\}$`).FindSubmatch(text)
	if line == nil {
		t.Fatal("shared/local/stack/build.go does not say var BuildFlags = []string{…}")
	}
	var local []string
	for _, quoted := range regexp.MustCompile(`"[^"]*"`).FindAllString(string(line[1]), -1) {
		flag, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatal(err)
		}
		local = append(local, flag)
	}
	if shipped := shippedFlags(t); !slices.Equal(local, shipped) {
		t.Errorf("the local stack builds with %q, functions ship with %q", local, shipped)
	}
}
