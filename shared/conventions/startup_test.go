package conventions

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// variable matches what a start-up message calls an environment variable: two words or more in capitals.
var variable = regexp.MustCompile(`\b[A-Z][A-Z0-9]*(_[A-Z0-9]+)+\b`)

// Each function is started as it ships, first with nothing and then with exactly what the template declares. Nothing
// must be named as missing that is declared, and everything declared must be missed.
func TestFunctionsReadWhatIsDeclared(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-tags", "lambda.norpc", "-ldflags=-s -w", "-o", dir+"/", "./functions/...")
	build.Dir = root
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the functions: %v\n%s", err, out)
	}
	tr := load(t)
	for _, f := range tr.resources(t, function) {
		t.Run(folderOf(f.id), func(t *testing.T) {
			t.Parallel()
			binary := filepath.Join(dir, folderOf(f.id))
			declared, _ := at(f.props, "Environment", "Variables").(map[string]any)

			missed := missing(t, binary, nil)
			for name := range declared {
				if !missed[name] {
					t.Errorf("%s is declared, but start-up does not miss it", name)
				}
			}
			var env []string
			for name, value := range declared {
				env = append(env, name+"="+sample(tr, fmt.Sprint(value)))
			}
			for name := range missing(t, binary, env) {
				t.Errorf("%s is read, but not declared or not accepted", name)
			}
		})
	}
}

// missing starts a function without what Lambda itself provides, so that it always stops, and returns the variables
// of ours that it names.
func missing(t *testing.T, binary string, env []string) map[string]bool {
	t.Helper()
	cmd := exec.Command(binary)
	cmd.Env = append([]string{"PATH=/nowhere"}, env...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("started without a Lambda environment: want an exit status, got %v\n%s", err, out)
	}
	if strings.Contains(string(out), "panic:") {
		t.Fatalf("start-up panics:\n%s", out)
	}
	names := map[string]bool{}
	for _, name := range variable.FindAllString(string(out), -1) {
		if !strings.HasPrefix(name, "AWS_") {
			names[name] = true
		}
	}
	return names
}

// sample is a value for a reference: a parameter's default, or text that stands for a resource.
func sample(tr tree, reference string) string {
	if d := str(tr, "Parameters", unref(reference), "Default"); d != "" {
		return d
	}
	return "sample"
}
