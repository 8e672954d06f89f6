package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

const dynaliteVersion = "4.0.0"

// startDynalite installs dynalite unless the cache has it, starts it and waits
// until it answers.
func startDynalite(ctx context.Context, cache string) (url string, stop func(), err error) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", nil, fmt.Errorf("%s is not installed: install Node.js 20 or later to compare with dynalite", program)
		}
	}
	if cache, err = filepath.Abs(cache); err != nil {
		return "", nil, err
	}
	script := filepath.Join(cache, "node_modules", "dynalite", "cli.js")
	if _, err := os.Stat(script); errors.Is(err, os.ErrNotExist) {
		if err := install(ctx, cache); err != nil {
			return "", nil, err
		}
	}
	port, err := freePort()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, "node", script, "--host", "127.0.0.1", "--port", strconv.Itoa(port),
		"--createTableMs", "0", "--deleteTableMs", "0", "--updateTableMs", "0")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("starting dynalite: %w", err)
	}
	stop = func() {
		_ = cmd.Process.Kill() // It keeps nothing.
		_ = cmd.Wait()
	}
	url = fmt.Sprintf("http://127.0.0.1:%d", port)
	if err := waitFor(ctx, url); err != nil {
		stop()
		return "", nil, fmt.Errorf("%w\n%s", err, output.String())
	}
	return url, stop, nil
}

func install(ctx context.Context, cache string) error {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	fmt.Printf("difftest: installing dynalite %s into %s\n", dynaliteVersion, cache)
	cmd := exec.CommandContext(ctx, "npm", "install", "--prefix", cache, "--no-audit", "--no-fund", "--no-save",
		"--ignore-scripts", "dynalite@"+dynaliteVersion)
	cmd.Dir = cache
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("installing dynalite: %w\n%s", err, output)
	}
	return nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// waitFor polls until the server lists its tables.
func waitFor(ctx context.Context, url string) error {
	return poll(ctx, url, operation{name: "ListTables", body: []byte("{}")}, func(answer) bool { return true })
}

// waitForTable polls until a table is active.
func waitForTable(ctx context.Context, url, table string) error {
	return poll(ctx, url, newOperation("DescribeTable", object{"TableName": table}), func(a answer) bool {
		t, _ := a.body["Table"].(map[string]any)
		return t["TableStatus"] == "ACTIVE"
	})
}

func poll(ctx context.Context, url string, op operation, done func(answer) bool) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		if a, err := op.send(ctx, url); err == nil && a.status == http.StatusOK && done(a) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("dynalite did not answer %s as expected within 30 s", op.name)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// operation is one request.
type operation struct {
	name string
	body []byte
}

// answer is a response with its body decoded.
type answer struct {
	status int
	body   map[string]any
}

func (op operation) send(ctx context.Context, url string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/", bytes.NewReader(op.body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op.name)
	// Dynalite wants a signature to be there and does not check it.
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=b")
	req.Header.Set("X-Amz-Date", "20260101T000000Z")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{status: resp.StatusCode}
	if err := json.Unmarshal(raw, &a.body); err != nil {
		return answer{}, fmt.Errorf("status %d with a body that is not JSON: %.200s", resp.StatusCode, raw)
	}
	return a, nil
}
