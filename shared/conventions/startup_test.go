package conventions

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Each function is started as it ships, with what Lambda provides and what the template declares. With all of that it
// comes up and asks for its first event; without any one variable it stops and names that one, so everything that is
// declared is read; without any it names all at once.
func TestFunctionsStartWithWhatIsDeclared(t *testing.T) {
	t.Parallel()
	dir := buildFunctions(t)
	tr := load(t)
	for _, f := range tr.resources(t, function) {
		t.Run(folderOf(f.id), func(t *testing.T) {
			t.Parallel()
			binary := filepath.Join(dir, folderOf(f.id))
			variables, _ := at(f.props, "Environment", "Variables").(map[string]any)
			declared := slices.DeleteFunc(keysOf(variables), func(name string) bool { return name == runtimeVariable })
			api := newRuntimeAPI(t)
			env := provided(api.server.URL)
			for name, value := range variables {
				env[name] = sample(tr, fmt.Sprint(value))
			}

			comesUp(t, binary, env, api)
			if len(declared) == 0 {
				return
			}
			for _, name := range append([]string{"AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}, declared...) {
				if got := missed(t, binary, without(env, name)); !slices.Equal(got, []string{name}) {
					t.Errorf("without %s start-up names %v: what is declared must be read, and missed by name", name, got)
				}
			}
			if got := missed(t, binary, without(env, declared...)); !slices.Equal(got, declared) {
				t.Errorf("without any variable start-up names %v, want all of %v at once", got, declared)
			}
		})
	}
}

// buildFunctions compiles every function for this machine and returns their folder, which is kept: what is up to date
// isn't linked again.
func buildFunctions(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join(root, ".local", "build", "host"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", append(append([]string{"build"}, shippedFlags(t)...), "-o", dir+"/", "./functions/...")...)
	build.Dir = root
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the functions: %v\n%s", err, out)
	}
	return dir
}

// runtimeAPI is as much of Lambda's Runtime API as a function needs to ask for an event. It is also every AWS service
// that start-up may want to greet, all of which refuse.
type runtimeAPI struct {
	server *httptest.Server
	asked  chan struct{} // for an event
}

func newRuntimeAPI(t *testing.T) *runtimeAPI {
	t.Helper()
	api := &runtimeAPI{asked: make(chan struct{}, 1)}
	api.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/2018-06-01/runtime/invocation/next" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		api.asked <- struct{}{}
		<-r.Context().Done() // no event comes
	}))
	t.Cleanup(api.server.Close)
	return api
}

const secretSample = "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"

// provided is the environment that Lambda gives every function, with api in place of everything on the network.
func provided(url string) map[string]string {
	return map[string]string{
		"PATH": "/nowhere", "AWS_LAMBDA_RUNTIME_API": strings.TrimPrefix(url, "http://"), "AWS_LAMBDA_FUNCTION_NAME": "conventions", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "128",
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": secretSample, "AWS_SESSION_TOKEN": secretSample,
		"AWS_ENDPOINT_URL": url,
	}
}

// sample is a value for a reference: a parameter's default, or text that stands for a resource. What is no reference is the
// value itself.
func sample(tr tree, reference string) string {
	if !strings.Contains(reference, "${") {
		return reference
	}
	if d := str(tr, "Parameters", unref(reference), "Default"); d != "" {
		return d
	}
	if strings.HasSuffix(reference, "Role.Arn}") {
		return "arn:aws:iam::123456789012:role/sample"
	}
	return "sample"
}

func without(env map[string]string, names ...string) map[string]string {
	out := map[string]string{}
	for k, v := range env {
		if !slices.Contains(names, k) {
			out[k] = v
		}
	}
	return out
}

// command is the function with an environment of its own; stopped at the latest after a minute.
func command(t *testing.T, binary string, env map[string]string) (cmd *exec.Cmd, output *bytes.Buffer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd, output = exec.CommandContext(ctx, binary), &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = output, output
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	return cmd, output
}

func comesUp(t *testing.T, binary string, env map[string]string, api *runtimeAPI) {
	t.Helper()
	cmd, output := command(t, binary, env)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-api.asked:
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		<-ended
	case err := <-ended:
		t.Errorf("with everything that is declared start-up ends before the first event: %v\n%s", err, output)
	}
}

// variable matches what a start-up message calls an environment variable: two words or more in capitals.
var variable = regexp.MustCompile(`\b[A-Z][A-Z0-9]*(_[A-Z0-9]+)+\b`)

// missed starts a function that must stop, and returns the variables that it names, sorted.
func missed(t *testing.T, binary string, env map[string]string) []string {
	t.Helper()
	cmd, output := command(t, binary, env)
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() < 1 {
		t.Fatalf("start-up didn't fail by itself: %v\n%s", err, output)
	}
	if strings.Contains(output.String(), "panic:") || strings.Contains(output.String(), secretSample) {
		t.Fatalf("start-up panics or tells a secret:\n%s", output)
	}
	names := variable.FindAllString(output.String(), -1)
	slices.Sort(names)
	return slices.Compact(names)
}
