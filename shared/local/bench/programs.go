package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"claimcheck.dev/claimcheck/shared/local/stack"
	"claimcheck.dev/claimcheck/shared/local/template"
)

// The programs, in the order of the report.
const (
	ours      = "claimcheck"
	typ       = "typ"
	typEarly  = "typ, early"
	node      = "node"
	nodeEarly = "node, early"
	floor     = "floor"
	stream    = "stream" // beside verify-upload only
)

// The functions that are measured, by their folders.
const (
	folderReserve = "reserve-upload"
	folderVerify  = "verify-upload"
)

// program is one way to do the work.
type program struct {
	name    string
	what    string // for the report
	command []string
	file    string // whose size counts
	env     map[string]string
	fixed   bool // answers without doing the work
}

// The flags that ship, and what `go build` does by itself. Without cgo in both: what is built for another processor, as for
// Lambda's arm64, has none.
var (
	shipped  = stack.BuildFlags
	defaults = []string{}
)

const nodeBundle = "bundle/index.cjs"

// build compiles a Go program for this machine.
func build(ctx context.Context, dir, out, pkg string, flags []string) error {
	tool, err := exec.LookPath("go")
	if err != nil {
		return errors.New("the go command is missing: install Go from https://go.dev/dl/")
	}
	args := append(append([]string{"build", "-o", out}, flags...), pkg)
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", pkg, err, text)
	}
	return nil
}

// buildGo compiles the Go programs that do the work, and those that are compared with a part of it.
func buildGo(ctx context.Context, root, out string) error {
	local := filepath.Join(root, "shared", "local")
	return errors.Join(
		build(ctx, root, filepath.Join(out, ours, "bootstrap"), "./functions/"+folderReserve, shipped),
		build(ctx, root, filepath.Join(out, folderVerify, "bootstrap"), "./functions/"+folderVerify, shipped),
		build(ctx, local, filepath.Join(out, typ, "bootstrap"), "./bench/peers/typ", defaults),
		build(ctx, local, filepath.Join(out, floor, "bootstrap"), "./bench/peers/floor", shipped),
		build(ctx, local, filepath.Join(out, stream, "bootstrap"), "./bench/peers/stream", defaults),
	)
}

// errNoNode says what to install.
type errNoNode struct{ reason string }

func (e errNoNode) Error() string {
	return e.reason + ": the rows of Node need Node.js 20 or newer and npm (https://nodejs.org), and the npm registry on the first run"
}

// buildNode installs the packages of the Node peer at their locked versions and bundles it.
func buildNode(ctx context.Context, root, out string) error {
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			return errNoNode{tool + " is missing"}
		}
	}
	dir := filepath.Join(out, node)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making a folder for the Node peer: %w", err)
	}
	fresh := true
	for _, name := range []string{"package.json", "package-lock.json", "index.js"} {
		text, err := os.ReadFile(filepath.Join(root, "shared", "local", "bench", "peers", "node", name))
		if err != nil {
			return fmt.Errorf("reading the Node peer: %w", err)
		}
		if old, err := os.ReadFile(filepath.Join(dir, name)); err == nil && string(old) == string(text) {
			continue
		}
		fresh = false
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return fmt.Errorf("copying the Node peer: %w", err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, nodeBundle)); err == nil && fresh {
		return nil
	}
	for _, args := range [][]string{{"ci", "--ignore-scripts", "--no-audit", "--no-fund"}, {"run", "bundle"}} {
		cmd := exec.CommandContext(ctx, "npm", args...)
		cmd.Dir = dir
		if text, err := cmd.CombinedOutput(); err != nil {
			return errNoNode{fmt.Sprintf("npm %s failed (%v)\n%s", args[0], err, strings.TrimSpace(string(text)))}
		}
	}
	return nil
}

// environment is what a function has on Lambda: what the template declares for it and what Lambda adds, with the stand-ins
// for AWS.
func environment(root, folder string, s *standIns) (map[string]string, error) {
	t, err := template.Load(filepath.Join(root, "template.yaml"), template.Options{
		Region: region, AccountID: "000000000000", StackName: "bench", Hosts: template.Hosts{Queues: "127.0.0.1:1", Content: "127.0.0.1:1"},
	})
	if err != nil {
		return nil, err
	}
	fn, ok := t.FunctionByFolder(folder)
	if !ok {
		return nil, fmt.Errorf("template.yaml declares no function in functions/%s", folder)
	}
	env := map[string]string{
		"AWS_REGION": region, "AWS_DEFAULT_REGION": region, "AWS_LAMBDA_FUNCTION_NAME": "bench-" + folder,
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": strconv.Itoa(fn.MemoryMB), "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST", "_HANDLER": "bootstrap",
		"AWS_ACCESS_KEY_ID": "ASIABENCHFUNCTION000", "AWS_SECRET_ACCESS_KEY": "secretsecretsecretsecretsecretsecretsecr",
		"AWS_SESSION_TOKEN":         sessionToken,
		"AWS_ENDPOINT_URL_DYNAMODB": s.DynamoDB, "AWS_ENDPOINT_URL_STS": s.STS,
		"PATH": os.Getenv("PATH"), "HOME": os.TempDir(), "LANG": "en_US.UTF-8", "TZ": ":UTC",
	}
	maps.Copy(env, fn.Env)
	return env, nil
}

// programs lists what takes part: all that buildGo has built for it and, if withNode, the Node peer.
func programs(root, out string, s *standIns, withNode bool) ([]program, error) {
	env, err := environment(root, folderReserve, s)
	if err != nil {
		return nil, err
	}
	with := func(more ...map[string]string) map[string]string {
		all := maps.Clone(env)
		for _, m := range more {
			maps.Copy(all, m)
		}
		return all
	}
	// Go adds every file of a folder to the bundle; an empty one keeps to the bundle. How many CPUs Go may use is nothing that
	// one sets by default, other than our template.
	system := map[string]string{
		"SSL_CERT_FILE": s.Everything, "SSL_CERT_DIR": filepath.Join(out, "no-more-certificates"), "GOMAXPROCS": "",
	}
	// The peers fetch the presign session as their SDK does by itself, with the first request, or, told so, at start.
	early := map[string]string{"SESSION": "early"}
	binary := func(name string) []string { return []string{filepath.Join(out, name, "bootstrap")} }
	list := []program{
		{name: ours, what: "reserve-upload as shipped", command: binary(ours), env: with(map[string]string{"AWS_CA_BUNDLE": s.AWS})},
		{name: typ, what: "Go, the SDK's defaults", command: binary(typ), env: with(system)},
		{name: typEarly, what: "typ, session at start", command: binary(typ), env: with(system, early)},
		{name: floor, what: "Go, a fixed answer", command: binary(floor), env: with(), fixed: true},
	}
	for i := range list {
		list[i].file = list[i].command[0]
	}
	if withNode {
		tool, err := exec.LookPath("node")
		if err != nil {
			return nil, errNoNode{"node is missing"}
		}
		file := filepath.Join(out, node, nodeBundle)
		command, ca := []string{tool, file}, map[string]string{"NODE_EXTRA_CA_CERTS": s.CA}
		list = append(list,
			program{name: node, what: "Node.js, bundled SDK v3", command: command, file: file, env: with(ca)},
			program{name: nodeEarly, what: "node, session at start", command: command, file: file, env: with(ca, early)})
	}
	return list, nil
}

const region = "us-east-1"

// requests makes events for reserve-upload, out of the function's sample.
type requests struct {
	sample map[string]any
	count  int
}

// readSample decodes the sample event of a function.
func readSample(root, folder string, event any) error {
	text, err := os.ReadFile(filepath.Join(root, "events", folder+".json"))
	if err == nil {
		err = json.Unmarshal(text, event)
	}
	if err != nil {
		return fmt.Errorf("reading the sample event of %s: %w", folder, err)
	}
	return nil
}

func newRequests(root string) (*requests, error) {
	r := &requests{}
	if err := readSample(root, folderReserve, &r.sample); err != nil {
		return nil, err
	}
	headers, ok := r.sample["headers"].(map[string]any)
	if !ok {
		return nil, errors.New("the sample event has no headers")
	}
	delete(headers, "idempotency-key")
	return r, nil
}

// next is an event under a key that no event before it had, so that nobody can answer it out of a cache of keys.
func (r *requests) next() []byte {
	r.count++
	return r.under(r.count)
}

// under is an event under the key number n.
func (r *requests) under(n int) []byte {
	r.sample["headers"].(map[string]any)["authorization"] = bearer(n)
	text, err := json.Marshal(r.sample)
	if err != nil {
		panic(err) // it was JSON before
	}
	return text
}

// check refuses an answer that is not a reservation with a presigned upload.
func (p program) check(body []byte) error {
	var answer struct {
		StatusCode int
		Body       string
	}
	var reservation struct {
		ID     string
		Upload struct {
			Method, URL string
			Headers     map[string]string
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("%s answered no JSON: %w", p.name, err)
	}
	if answer.StatusCode != 201 {
		return fmt.Errorf("%s answered %d: %.300s", p.name, answer.StatusCode, answer.Body)
	}
	if p.fixed {
		return nil
	}
	if err := json.Unmarshal([]byte(answer.Body), &reservation); err != nil {
		return fmt.Errorf("%s answered no reservation: %w", p.name, err)
	}
	u := reservation.Upload
	for _, part := range []string{"/staging/" + reservation.ID, "X-Amz-Signature=", "X-Amz-Security-Token=", "content-length", "if-none-match"} {
		if !strings.Contains(u.URL, part) {
			return fmt.Errorf("%s presigned an upload without %s", p.name, part)
		}
	}
	if u.Method != "PUT" || len(u.Headers) < 3 {
		return fmt.Errorf("%s presigned a %s with %d headers", p.name, u.Method, len(u.Headers))
	}
	return nil
}
