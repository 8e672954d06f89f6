package conventions

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "claimcheck.dev/claimcheck"

// source is one Go file: its folder from the root of the repository, with slashes, and what it imports.
type source struct {
	path, folder string
	test         bool
	imports      []string
}

func sources(t *testing.T) []source {
	t.Helper()
	var out []source
	for _, top := range []string{"functions", "shared"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() && e.Name() != "testdata" {
				return err
			}
			if e.IsDir() {
				return filepath.SkipDir
			}
			if !strings.HasSuffix(path, ".go") {
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			s := source{path: filepath.ToSlash(rel), folder: filepath.ToSlash(filepath.Dir(rel)), test: strings.HasSuffix(path, "_test.go")}
			for _, i := range file.Imports {
				p, err := strconv.Unquote(i.Path.Value)
				if err != nil {
					return err
				}
				s.imports = append(s.imports, p)
			}
			out = append(out, s)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// under says whether path is folder or below it.
func under(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

// The rules, each as the packages it binds, what they may not import outside tests, and why.
var directions = []struct {
	from   string
	except []string
	never  []string
	why    string
}{
	{"shared/files", nil, []string{"github.com/aws", "net/http", module + "/shared/records", module + "/shared/objects", module + "/shared/httpapi", module + "/shared/settings"},
		"the domain decides without knowing AWS or HTTP"},
	{"shared/access", nil, []string{"github.com/aws", "net/http", module + "/shared/records", module + "/shared/objects", module + "/shared/httpapi", module + "/shared/settings"},
		"who may do what is decided without knowing AWS or HTTP"},
	{"shared/sniff", nil, []string{"github.com/aws", "net/http", module + "/shared/files", module + "/shared/records", module + "/shared/objects", module + "/shared/httpapi"}, "the type policy stands alone"},
	{"shared/records", nil, []string{module + "/shared/httpapi", module + "/shared/settings", module + "/shared/objects", "net/http"}, "an adapter answers to the domain"},
	{"shared/objects", nil, []string{module + "/shared/httpapi", module + "/shared/settings", module + "/shared/records"}, "an adapter answers to the domain"},
	{"shared/httpapi", nil, []string{"github.com/aws/aws-sdk-go-v2", module + "/shared/records", module + "/shared/objects", module + "/shared/settings"}, "translation needs no AWS client"},
	{"shared/settings", nil, []string{"github.com/aws", module + "/shared/httpapi", module + "/shared/records", module + "/shared/objects"}, "settings are the environment and nothing else"},
	{"shared", []string{"shared/local"}, []string{module + "/functions", module + "/shared/local", "github.com/versity"}, "what ships knows neither a function nor the local stack"},
	{"functions", nil, []string{module + "/functions", module + "/shared/local", module + "/shared/filestest"}, "functions share through shared/, and ship without local or test code"},
	{"shared/local", nil, []string{module}, "the local stack runs the service from outside, as AWS does"},
}

func TestImportsPointInwards(t *testing.T) {
	t.Parallel()
	bound := make([]int, len(directions))
	for _, s := range sources(t) {
		if s.test {
			continue
		}
	rules:
		for n, rule := range directions {
			if !under(s.folder, rule.from) {
				continue
			}
			for _, e := range rule.except {
				if under(s.folder, e) {
					continue rules
				}
			}
			bound[n]++
			for _, imported := range s.imports {
				own := under(imported, module+"/"+rule.from) && rule.from != "functions" || imported == module+"/"+s.folder
				for _, never := range rule.never {
					if under(imported, never) && !own {
						t.Errorf("%s imports %s: %s", s.path, imported, rule.why)
					}
				}
			}
		}
	}
	for n, rule := range directions {
		if bound[n] == 0 {
			t.Errorf("no file under %s: the rule %q binds nothing", rule.from, rule.why)
		}
	}
}

// Names that say nothing end up holding everything.
func TestNoPackageForLeftovers(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		switch filepath.Base(s.folder) {
		case "utils", "util", "common", "types", "models", "helpers", "misc":
			t.Errorf("%s: name the package for what it gives", s.path)
		}
	}
}
