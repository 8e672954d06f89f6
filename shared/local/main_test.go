package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary is the command itself when this variable is set, so that tests
// can start it as processes and kill them.
const asCommand = "CLAIMCHECK_LOCAL_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// running is a stack in a process of its own.
type running struct {
	cmd    *exec.Cmd
	stderr *bytes.Buffer
	env    map[string]string // what it printed
	done   chan error
}

// launch starts `run` and waits until it is ready.
func launch(t *testing.T, data string) *running {
	t.Helper()
	r := &running{stderr: &bytes.Buffer{}, env: map[string]string{}, done: make(chan error, 1)}
	r.cmd = exec.Command(os.Args[0], "run", "-root", "stack/testdata/project", "-data", data)
	r.cmd.Env = append(os.Environ(), asCommand+"=1")
	r.cmd.Stderr = r.stderr
	stdout, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.cmd.Process.Kill() })
	lines := bufio.NewScanner(stdout)
	for len(r.env) < 2 && lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), "=")
		r.env[name] = value
	}
	go func() { io.Copy(io.Discard, stdout); r.done <- r.cmd.Wait() }()
	if r.env["CLAIMCHECK_URL"] == "" || r.env["CLAIMCHECK_KEY"] == "" {
		<-r.done
		t.Fatalf("the stack did not start:\n%s", r.stderr)
	}
	return r
}

func (r *running) signal(t *testing.T, s os.Signal) error {
	t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-r.done:
		return err
	case <-time.After(30 * time.Second):
		t.Fatal("the stack does not stop")
		return nil
	}
}

// functionsOf counts the processes started from a data folder.
func functionsOf(t *testing.T, data string) int {
	t.Helper()
	exes, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, exe := range exes {
		if target, err := os.Readlink(exe); err == nil && strings.HasPrefix(target, data+"/") {
			n++
		}
	}
	return n
}

func TestProcesses(t *testing.T) {
	if _, err := os.Stat("/proc/self/exe"); err != nil {
		t.Skip("needs /proc to see what the stack leaves behind")
	}
	t.Parallel()
	data, other := t.TempDir(), t.TempDir()
	one := launch(t, data)
	two := launch(t, other) // side by side
	for _, r := range []*running{one, two} {
		res, err := http.Get(r.env["CLAIMCHECK_URL"] + "/echo/x")
		if err != nil || res.StatusCode != 200 {
			t.Errorf("%s: %v, %v", r.env["CLAIMCHECK_URL"], res, err)
		}
	}
	if n := functionsOf(t, data); n != 5 {
		t.Errorf("%d functions run, want 5", n)
	}

	var key bytes.Buffer
	if err := command(t.Context(), []string{"key", "-data", data, "-account", "acme", "-actor", "ada", "-scopes", "files:read,files:write"}, &key, io.Discard); err != nil || !strings.HasPrefix(key.String(), "ck_acme_ada_") {
		t.Errorf("key printed %q, %v", key.String(), err)
	}
	var table bytes.Buffer
	if err := command(t.Context(), []string{"dlq", "list", "-data", data}, &table, io.Discard); err != nil || !strings.HasPrefix(table.String(), "QUEUE ") {
		t.Errorf("dlq list printed %q, %v", table.String(), err)
	}
	if err := command(t.Context(), []string{"dlq", "redrive", "-data", data}, &table, io.Discard); err != nil || !strings.Contains(table.String(), "claimcheck-local-Lost: 0 messages sent back") {
		t.Errorf("dlq redrive printed %q, %v", table.String(), err)
	}

	if err := one.signal(t, syscall.SIGKILL); err == nil {
		t.Error("a killed process ended well")
	}
	deadline := time.Now().Add(10 * time.Second)
	for functionsOf(t, data) > 0 {
		if time.Now().After(deadline) {
			t.Fatalf("%d functions outlive the stack", functionsOf(t, data))
		}
		time.Sleep(10 * time.Millisecond)
	}
	again := launch(t, data)
	if again.env["CLAIMCHECK_KEY"] != one.env["CLAIMCHECK_KEY"] {
		t.Error("the owner key changed after a kill")
	}
	for r, s := range map[*running]os.Signal{again: syscall.SIGTERM, two: os.Interrupt} {
		if err := r.signal(t, s); err != nil {
			t.Errorf("after %v: %v\n%s", s, err, r.stderr)
		}
	}
	if n := functionsOf(t, data) + functionsOf(t, other); n != 0 {
		t.Errorf("%d functions are left", n)
	}
}

func TestParameters(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		want map[string]string
	}{
		{"", map[string]string{}},
		{"  A=1  B=2\n", map[string]string{"A": "1", "B": "2"}},
		{`A="x y" B='"' C=a=b D=`, map[string]string{"A": "x y", "B": `"`, "C": "a=b", "D": ""}},
		{"A=1 A=2", map[string]string{"A": "2"}},
	}
	for _, test := range tests {
		got, err := parameters(test.text)
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%q gave %v, %v", test.text, got, err)
		}
	}
	for _, text := range []string{"A", "=1", `A="x`} {
		if _, err := parameters(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	tests := []struct {
		args  []string
		usage bool // shown instead of an error
		want  string
	}{
		{nil, true, "claimcheck-local run"},
		{[]string{"fly"}, true, `unknown command "fly"`},
		{[]string{"dlq"}, true, "dlq redrive"},
		{[]string{"run", "-nope"}, true, "flag provided but not defined"},
		{[]string{"run", "extra"}, true, `unexpected "extra"`},
		{[]string{"run", "-params", "A"}, false, `parameter "A": write Name=Value`},
		{[]string{"key"}, false, "a key needs -account and -actor"},
		{[]string{"key", "-account", "a", "-actor", "b"}, false, "either -role or -scopes"},
		{[]string{"key", "-account", "a", "-actor", "b", "-role", "r", "-scopes", "s"}, false, "either -role or -scopes"},
		{[]string{"key", "-data", "/nonexistent", "-account", "a", "-actor", "b", "-role", "r"}, false, "no stack is running"},
	}
	for _, test := range tests {
		var stdout, stderr bytes.Buffer
		err := command(context.Background(), test.args, &stdout, &stderr)
		if errors.Is(err, errUsage) != test.usage || err == nil {
			t.Errorf("%q gave %v", test.args, err)
		}
		if all := stderr.String() + fmt.Sprint(err); !strings.Contains(all, test.want) {
			t.Errorf("%q said %s", test.args, all)
		}
		if stdout.Len() > 0 {
			t.Errorf("%q printed %q on stdout", test.args, stdout.String())
		}
	}
}
