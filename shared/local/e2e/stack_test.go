package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/local/stack"
)

// root is the project's folder, seen from this package.
const root = "../../.."

// running is a stack in a process of its own, started as `make run` starts it.
type running struct {
	url  string
	key  string // an owner key of the account "local"
	data string
	cmd  *exec.Cmd
	log  string // the file with its stderr
}

// program is the built claimcheck-local, and built a data folder's functions/, made once for all stacks.
var program, built string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "claimcheck-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "claimcheck-local")
	if built, err = filepath.Abs(filepath.Join(root, ".local", "build", "host")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := buildAll(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stopShared()
	return m.Run()
}

func buildAll() error {
	if err := os.MkdirAll(built, 0o777); err != nil {
		return err
	}
	functions := stack.BuildCommand(context.Background(), "go", root, built)
	for _, c := range []*exec.Cmd{exec.Command("go", "build", "-o", program, ".."), functions} {
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", c, err, out)
		}
	}
	return nil
}

// start runs a stack with the given template parameters on the data folder, which may hold an earlier stack's data.
func start(data, params string) (*running, error) {
	if err := os.CopyFS(filepath.Join(data, "functions"), os.DirFS(built)); err != nil && !os.IsExist(err) {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(data, "e2e.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	args := []string{"run", "-root", root, "-data", data, "-params", params}
	if folder := os.Getenv("CLAIMCHECK_DEPLOYED"); folder != "" {
		file, calls, err := deployed(folder, params)
		if err != nil {
			return nil, err
		}
		args = append(args, "-deployed", file, "-calls", calls)
	}
	r := &running{data: data, log: log.Name(), cmd: exec.Command(program, args...)}
	r.cmd.Stderr = log
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for r.key == "" && lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), "=")
		switch name {
		case "CLAIMCHECK_URL":
			r.url = value
		case "CLAIMCHECK_KEY":
			r.key = value
		}
	}
	if r.key == "" {
		err := r.cmd.Wait()
		text, _ := os.ReadFile(r.log)
		return nil, fmt.Errorf("the stack did not start: %v\n%s", err, text)
	}
	go io.Copy(io.Discard, out)
	return r, nil
}

// deployed finds what `make deploy-test` read back from a CloudFormation stack with these parameters, and the file that
// records the calls of all stacks.
func deployed(folder, params string) (file, calls string, err error) {
	text, err := os.ReadFile(filepath.Join(folder, "index.json"))
	if err != nil {
		return "", "", err
	}
	var files map[string]string
	if err := json.Unmarshal(text, &files); err != nil {
		return "", "", err
	}
	if files[params] == "" {
		return "", "", fmt.Errorf("no stack was created with the parameters %q", params)
	}
	return filepath.Join(folder, files[params]), filepath.Join(folder, "calls.ndjson"), nil
}

// useDeployed makes a stack in this process use it.
func useDeployed(t *testing.T, folder string, opt *stack.Options) {
	t.Helper()
	var params []string
	for name, value := range opt.Params {
		params = append(params, name+"="+value)
	}
	slices.Sort(params)
	file, calls, err := deployed(folder, strings.Join(params, " "))
	if err == nil {
		opt.Deployed, err = stack.ReadDeployed(file)
	}
	if err != nil {
		t.Fatal(err)
	}
	record, err := os.OpenFile(calls, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { record.Close() }) // after the stack, which writes to it
	opt.Calls = record
}

// stop ends the stack as Ctrl-C does and reports what it exits with.
func (r *running) stop() error {
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return r.cmd.Wait()
}

// kill ends the stack as a crash does.
func (r *running) kill() {
	r.cmd.Process.Kill()
	r.cmd.Wait()
}

// mint makes a key through `claimcheck-local key`, as `make key` does.
func (r *running) mint(account, actor string, grant ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	args := append([]string{"key", "-data", r.data, "-account", account, "-actor", actor}, grant...)
	out, err := exec.CommandContext(ctx, program, args...).Output()
	if err != nil {
		var text []byte
		if exit, ok := err.(*exec.ExitError); ok {
			text = exit.Stderr
		}
		return "", fmt.Errorf("making a key: %w\n%s", err, text)
	}
	return strings.TrimSpace(string(out)), nil
}

// shared holds one stack for each set of parameters that scripts ask for.
var shared struct {
	sync.Mutex
	stacks map[string]*running
}

// stackFor returns the shared stack with the given parameters, started on first use.
func stackFor(t *testing.T, params string) *running {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if r, ok := shared.stacks[params]; ok {
		return r
	}
	data, err := os.MkdirTemp(filepath.Dir(program), "data-")
	if err != nil {
		t.Fatal(err)
	}
	r, err := start(data, params)
	if err != nil {
		t.Fatal(err)
	}
	if shared.stacks == nil {
		shared.stacks = map[string]*running{}
	}
	shared.stacks[params] = r
	return r
}

func stopShared() {
	for _, r := range shared.stacks {
		if err := r.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping a stack:", err)
		}
	}
}
