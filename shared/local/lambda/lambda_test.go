package lambda

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var worker string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "lambda")
	if err != nil {
		panic(err)
	}
	worker = filepath.Join(dir, "worker")
	build := exec.Command("go", "build", "-o", worker, "-tags", "lambda.norpc", "./testdata/worker")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("building the test function: %v\n%s", err, out))
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// newFunction makes a function; change may adjust its configuration.
func newFunction(t *testing.T, change func(*Config)) *Function {
	t.Helper()
	cfg := Config{
		Name: "demo-WorkerFunction", Label: "worker", Binary: worker, MemoryMB: 128, Timeout: 20 * time.Second,
		Env:     map[string]string{"TABLE_NAME": "records"},
		Runtime: map[string]string{"AWS_ACCESS_KEY_ID": "ASIA"},
		Region:  "eu-west-1", AccountID: "123456789012", Log: t.Output(),
	}
	if change != nil {
		change(&cfg)
	}
	f := New(cfg)
	t.Cleanup(func() { f.Close(t.Context()) })
	return f
}

// invoke runs an event that must be handed over.
func invoke(t *testing.T, f *Function, do string) Result {
	t.Helper()
	res, err := f.Invoke(context.WithoutCancel(t.Context()), []byte(do))
	if err != nil {
		t.Fatalf("invoking %s: %v", do, err)
	}
	return res
}

func do(what string) string { return fmt.Sprintf(`{"Do":%q}`, what) }

func pid(t *testing.T, res Result) int {
	t.Helper()
	var pid int
	if err := json.Unmarshal(res.Payload, &pid); err != nil {
		t.Fatalf("%s is no pid: %v", res.Payload, err)
	}
	return pid
}

// eventually polls a condition until a deadline.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not happen", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func TestOnlyTheDeclaredEnvironment(t *testing.T) {
	t.Setenv("LEAKED", "yes")
	f := newFunction(t, nil)
	var env []string
	if err := json.Unmarshal(invoke(t, f, do("env")).Payload, &env); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		if want, fixed := map[string]string{
			"TABLE_NAME": "records", "AWS_ACCESS_KEY_ID": "ASIA", "AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-1",
			"AWS_LAMBDA_FUNCTION_NAME": "demo-WorkerFunction", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "128", "TZ": ":UTC",
		}[name]; fixed && value != want {
			t.Errorf("%s, want %s", v, want)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{
		"AWS_ACCESS_KEY_ID", "AWS_DEFAULT_REGION", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "AWS_LAMBDA_FUNCTION_NAME",
		"AWS_LAMBDA_FUNCTION_VERSION", "AWS_LAMBDA_INITIALIZATION_TYPE", "AWS_LAMBDA_LOG_GROUP_NAME",
		"AWS_LAMBDA_LOG_STREAM_NAME", "AWS_LAMBDA_RUNTIME_API", "AWS_REGION", "LAMBDA_RUNTIME_DIR", "LAMBDA_TASK_ROOT",
		"LANG", "PATH", "TABLE_NAME", "TZ", "_HANDLER", "_X_AMZN_TRACE_ID", // the last is set by the runtime itself
	}
	if !slices.Equal(names, want) {
		t.Errorf("the environment has\n%s\nwant\n%s", names, want)
	}
}

func TestContext(t *testing.T) {
	t.Parallel()
	f := newFunction(t, nil)
	var c struct {
		ID, ARN, Trace string
		Left           int
	}
	if err := json.Unmarshal(invoke(t, f, do("context")).Payload, &c); err != nil {
		t.Fatal(err)
	}
	if len(c.ID) != 36 || c.ARN != "arn:aws:lambda:eu-west-1:123456789012:function:demo-WorkerFunction" {
		t.Errorf("id %q, ARN %q", c.ID, c.ARN)
	}
	if c.Left <= 0 || c.Left > 20000 {
		t.Errorf("%d ms are left of 20 s", c.Left)
	}
	if !strings.HasPrefix(c.Trace, "Root=1-") {
		t.Errorf("trace id %q", c.Trace)
	}
}

func TestOneInstanceServesInTurn(t *testing.T) {
	t.Parallel()
	f := newFunction(t, nil)
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := pid(t, invoke(t, f, do("")))
	for range 5 {
		if again := pid(t, invoke(t, f, do(""))); again != first {
			t.Errorf("instance %d took over from %d", again, first)
		}
	}
	if n := f.Instances(); n != 1 {
		t.Errorf("%d instances for calls in turn", n)
	}
}

// TestParallelCallsUseInstances holds three calls until all three are inside: it
// only ends when each has an instance of its own.
func TestParallelCallsUseInstances(t *testing.T) {
	t.Parallel()
	f := newFunction(t, func(c *Config) { c.Instances = 3 })
	gate := filepath.Join(t.TempDir(), "gate")
	var mu sync.Mutex
	pids := map[int]bool{}
	var calls sync.WaitGroup
	for range 3 {
		calls.Go(func() {
			p := pid(t, invoke(t, f, fmt.Sprintf(`{"Do":"wait","File":%q}`, gate)))
			mu.Lock()
			defer mu.Unlock()
			pids[p] = true
		})
	}
	eventually(t, "the third instance", func() bool { return f.Instances() == 3 })
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	calls.Wait()
	if len(pids) != 3 {
		t.Errorf("three calls at once ran in %d instances", len(pids))
	}
}

func TestCallersBeyondTheCapAreThrottled(t *testing.T) {
	t.Parallel()
	f := newFunction(t, func(c *Config) { c.Instances, c.Timeout = 1, 300*time.Millisecond })
	f.slots <- struct{}{} // the only instance stays busy
	if _, err := f.Invoke(t.Context(), []byte(do(""))); !errors.Is(err, ErrThrottled) {
		t.Errorf("got %v, want ErrThrottled", err)
	}
	<-f.slots
	if res := invoke(t, f, do("")); res.FunctionError != "" {
		t.Errorf("the next call failed: %s", res.Payload)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	tests := []struct {
		event, kind, message string
		survives             bool
	}{
		{do("fail"), "errorString", "no luck", true},
		{do("panic"), "string", "out of luck", false}, // aws-lambda-go reports it and exits
		{do("exit"), "Runtime.ExitError", "exit status 7", false},
		{do("big"), "Function.ResponseSizeTooLarge", "Response payload size exceeded maximum allowed payload size (6291556 bytes).", false}, // so does it when its answer is refused,
		{`{"Do":"wait","File":"/nonexistent/file"}`, "Sandbox.Timedout", "Task timed out after 2.00 seconds", false},
	}
	for _, test := range tests {
		t.Run(test.event, func(t *testing.T) {
			t.Parallel()
			f := newFunction(t, func(c *Config) { c.Timeout = 2 * time.Second })
			before := pid(t, invoke(t, f, do("")))
			res := invoke(t, f, test.event)
			var e struct{ ErrorType, ErrorMessage string }
			if err := json.Unmarshal(res.Payload, &e); err != nil || res.FunctionError != "Unhandled" {
				t.Fatalf("%q with payload %s", res.FunctionError, res.Payload)
			}
			if e.ErrorType != test.kind || !strings.Contains(e.ErrorMessage, test.message) {
				t.Errorf("got %s: %s", e.ErrorType, e.ErrorMessage)
			}
			after := pid(t, invoke(t, f, do("")))
			if !test.survives && after == before {
				t.Error("the instance was used again")
			}
			if !test.survives && !gone(before) {
				t.Errorf("process %d is still there", before)
			}
		})
	}
}

func TestInitFailures(t *testing.T) {
	t.Parallel()
	f := newFunction(t, func(c *Config) { c.Env = map[string]string{"INIT": "missing"} })
	err := f.Start(t.Context())
	for _, want := range []string{"function worker did not start", "exit status 3", "the variable TABLE_NAME is not set"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if res := invoke(t, f, do("")); res.FunctionError == "" || !strings.Contains(string(res.Payload), "Runtime.ExitError") {
		t.Errorf("a caller got %q %s", res.FunctionError, res.Payload)
	}
	hang := newFunction(t, func(c *Config) {
		c.Env, c.InitLimit = map[string]string{"INIT": "hang"}, 100*time.Millisecond
	})
	if err := hang.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "no request for an event within 100ms") {
		t.Errorf("an init that hangs gave %v", err)
	}
	none := newFunction(t, func(c *Config) { c.Binary = filepath.Join(t.TempDir(), "nothing") })
	if err := none.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a missing binary gave %v", err)
	}
	for _, f := range []*Function{f, hang, none} {
		if n := f.Instances(); n != 0 {
			t.Errorf("%d instances are left", n)
		}
	}
}

func TestIdleInstancesAreReaped(t *testing.T) {
	t.Parallel()
	f := newFunction(t, func(c *Config) { c.Idle = 50 * time.Millisecond })
	p := pid(t, invoke(t, f, do("")))
	eventually(t, "reaping", func() bool { return f.Instances() == 0 && gone(p) })
}

func TestChildrenDieWithTheInstance(t *testing.T) {
	t.Parallel()
	f := newFunction(t, nil)
	child := pid(t, invoke(t, f, do("child")))
	if gone(child) {
		t.Fatal("the child is not there")
	}
	f.Close(t.Context())
	// Init, not this process, waits for the orphan: until then it is a zombie.
	eventually(t, "the child's end", func() bool { return gone(child) || zombie(child) })
}

func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z")
}

func TestFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		fault Fault
		done  bool // the work was done before the kill
	}{{KillBeforeAnswer, true}, {KillOnDelivery, false}}
	for _, test := range tests {
		f := newFunction(t, func(c *Config) {
			c.Faults = func(name string, n int) Fault {
				if name == "worker" && n == 2 {
					return test.fault
				}
				return NoFault
			}
		})
		invoke(t, f, do(""))
		file := filepath.Join(t.TempDir(), "done")
		res := invoke(t, f, fmt.Sprintf(`{"Do":"touch","File":%q}`, file))
		if !strings.Contains(string(res.Payload), "Runtime.ExitError") {
			t.Errorf("fault %d gave %s", test.fault, res.Payload)
		}
		if _, err := os.Stat(file); test.done && err != nil {
			t.Errorf("fault %d struck before the work: %v", test.fault, err)
		}
		if res := invoke(t, f, do("")); res.FunctionError != "" {
			t.Errorf("the call after fault %d failed: %s", test.fault, res.Payload)
		}
	}
}

func TestKill(t *testing.T) {
	t.Parallel()
	f := newFunction(t, nil)
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	done := make(chan Result)
	go func() {
		res, _ := f.Invoke(context.Background(), []byte(`{"Do":"wait","File":"/nonexistent/file"}`))
		done <- res
	}()
	eventually(t, "the delivery", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.idle) == 0 && len(f.all) == 1
	})
	f.Kill()
	if res := <-done; !strings.Contains(string(res.Payload), "signal: killed") {
		t.Errorf("got %s", res.Payload)
	}
}

func TestLog(t *testing.T) {
	t.Parallel()
	var log syncBuffer
	f := newFunction(t, func(c *Config) { c.Log = &log })
	invoke(t, f, do("print"))
	f.Close(t.Context())
	if want := "[worker] one\n[worker] two and a half\n"; log.String() != want {
		t.Errorf("the log is\n%swant\n%s", log.String(), want)
	}
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestClosed(t *testing.T) {
	t.Parallel()
	f := newFunction(t, nil)
	invoke(t, f, do(""))
	f.Close(t.Context())
	if _, err := f.Invoke(t.Context(), []byte(do(""))); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed function gave %v", err)
	}
}

func TestInvokeAPI(t *testing.T) {
	t.Parallel()
	f := newFunction(t, nil)
	h := Handler(func(name string) *Function {
		if name == "demo-WorkerFunction" {
			return f
		}
		return nil
	})
	tests := []struct {
		name, body, invocation string
		status                 int
		functionError, want    string
	}{
		{"demo-WorkerFunction", do("fail"), "", 200, "Unhandled", "no luck"},
		{"arn:aws:lambda:eu-west-1:123456789012:function:demo-WorkerFunction", do("context"), "RequestResponse", 200, "", `"id"`},
		{"demo-WorkerFunction", "", "", 200, "", ""},
		{"nobody", "{}", "", 404, "", "Function not found: nobody"},
		{"demo-WorkerFunction", "{", "", 400, "", "Could not parse request body into json"},
		{"demo-WorkerFunction", "{}", "Event", 400, "", "RequestResponse only"},
		{"demo-WorkerFunction", `"` + strings.Repeat("x", MaxPayload) + `"`, "", 413, "", "smaller than 6291456 bytes"},
	}
	for _, test := range tests {
		r := httptest.NewRequest(http.MethodPost, "/2015-03-31/functions/"+test.name+"/invocations", strings.NewReader(test.body))
		if test.invocation != "" {
			r.Header.Set("X-Amz-Invocation-Type", test.invocation)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != test.status || w.Header().Get("X-Amz-Function-Error") != test.functionError || !strings.Contains(w.Body.String(), test.want) {
			t.Errorf("%s %.40s: %d %q %s", test.name, test.body, w.Code, w.Header().Get("X-Amz-Function-Error"), w.Body)
		}
	}
}
