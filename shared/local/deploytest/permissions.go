package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"claimcheck.dev/claimcheck/shared/local/calls"
)

// endToEndTests are the scripts, and the Go tests that reach what scripts cannot: late
// events, failures, reconciling.
const endToEndTests = "^(TestScripts|TestVerifiedOnDemand|TestSweepVerifies|TestExpiredReservationsMakeRoom|TestDeleteWhileS3Fails|TestDeadLetters|TestReconcile)$"

// endToEnd runs them against stacks that use what was read back.
func (w *world) endToEnd(ctx context.Context) (string, error) {
	cmd := w.command(ctx, filepath.Join(w.root, "shared", "local"), "go", "test", "-count=1", "-v", "-run", endToEndTests, "./e2e")
	cmd.Env = append(cmd.Env, "CLAIMCHECK_DEPLOYED="+w.dir)
	out, err := cmd.CombinedOutput()
	if err := os.WriteFile(filepath.Join(w.dir, "e2e.log"), out, 0o600); err != nil {
		return "", err
	}
	if err != nil {
		var failed []string
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(strings.TrimSpace(line), "--- FAIL: ") {
				failed = append(failed, strings.TrimSpace(line))
			}
		}
		return "", fmt.Errorf("%w, see %s\n%s", err, filepath.Join(w.dir, "e2e.log"), strings.Join(failed, "\n"))
	}
	return fmt.Sprintf("%d tests passed", strings.Count(string(out), "--- PASS: ")), nil
}

// permissions holds each call that a function made against its role.
func (w *world) permissions(context.Context) (string, error) {
	made, err := readCalls(filepath.Join(w.dir, "calls.ndjson"))
	if err != nil {
		return "", err
	}
	v := newVerdict(w.template, w.stacks)
	for _, c := range made {
		v.judge(c)
	}
	return fmt.Sprintf("%d kinds of call by %d functions and roles; %d permissions used, %d for what scripts cannot make happen",
		len(made), len(v.callers), v.used(), len(exceptions)), v.err(exceptions)
}

func readCalls(path string) ([]calls.Call, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the record of calls: %w", err)
	}
	defer file.Close()
	var out []calls.Call
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var c calls.Call
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return nil, fmt.Errorf("reading the record of calls: %w", err)
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, errors.New("no call was recorded")
	}
	return out, nil
}

// permission is one action on one resource that a caller's role allows.
type permission struct {
	grant
	used bool
}

// verdict collects what the calls say about the roles.
type verdict struct {
	stacks   []map[string]string // what references stand for, by stack
	granted  map[string][]*permission
	boundary []*permission
	callers  map[string]bool
	problems problems
}

func newVerdict(t *template, stacks []created) *verdict {
	v := &verdict{granted: map[string][]*permission{}, callers: map[string]bool{}}
	for i := range stacks {
		v.stacks = append(v.stacks, stacks[i].values())
	}
	of := func(r resource) (out []*permission) {
		for _, s := range statements(r) {
			for _, g := range s.grants() {
				out = append(out, &permission{grant: g})
			}
		}
		return out
	}
	for _, f := range t.of("AWS::Lambda::Function") {
		v.granted[f.ID] = of(t.Resources[referred(str(f.Properties, "Role"))])
	}
	v.granted["PresignRole"] = of(t.Resources["PresignRole"])
	v.boundary = of(t.Resources["FunctionBoundary"])
	// Lambda polls with the function's role.
	for _, m := range t.of("AWS::Lambda::EventSourceMapping") {
		caller, source := referred(str(m.Properties, "FunctionName")), str(m.Properties, "EventSourceArn")
		actions := []string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}
		if t.Resources[referred(source)].Type == "AWS::DynamoDB::Table" {
			actions = []string{"dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:DescribeStream", "dynamodb:ListStreams"}
		}
		for _, action := range actions {
			v.mapping(m.ID, caller, grant{action, source})
		}
		if target := str(m.Properties, "DestinationConfig", "OnFailure", "Destination"); target != "" {
			v.mapping(m.ID, caller, grant{"sqs:SendMessage", target})
		}
	}
	return v
}

// mapping is a call of an event source: it needs its resource by name.
func (v *verdict) mapping(id, caller string, g grant) {
	found := false
	for _, p := range v.granted[caller] {
		if p.grant == g {
			p.used, found = true, true
		}
	}
	if !found {
		v.problems.addf("%s: %s needs %s on %s, which its role does not allow", id, caller, g.action, g.resource)
	}
}

// judge finds the permission for a call. That of another stack does not count: all
// stacks have one template, so a resource of the right kind is in one of them.
func (v *verdict) judge(c calls.Call) {
	v.callers[c.Caller] = true
	permissions, known := v.granted[c.Caller]
	if !known {
		v.problems.addf("%s by %s: no such function", c.Operation, c.Caller)
		return
	}
	if !v.allowed(permissions, c) {
		v.problems.addf("%s: %s needs %s on %s, which its role does not allow", c.Caller, c.Operation, c.Action, c.Resource)
	}
	if c.Caller != "PresignRole" && !v.allowed(v.boundary, c) {
		v.problems.addf("%s: %s needs %s on %s, which FunctionBoundary cuts off", c.Caller, c.Operation, c.Action, c.Resource)
	}
}

// allowed marks the permissions that cover a call.
func (v *verdict) allowed(permissions []*permission, c calls.Call) bool {
	found := false
	for _, p := range permissions {
		if p.action != c.Action {
			continue
		}
		for _, values := range v.stacks {
			if pattern, err := expand(p.resource, values); err == nil && matches(pattern, c.Resource) {
				p.used, found = true, true
			}
		}
	}
	return found
}

// used counts the permissions that were.
func (v *verdict) used() (n int) {
	for _, permissions := range v.granted {
		for _, p := range permissions {
			if p.used {
				n++
			}
		}
	}
	return n
}

// err is what is wrong: calls that are not allowed, permissions that nothing used, and
// exceptions for what no role has.
func (v *verdict) err(exceptions map[string]string) error {
	needless := map[string]bool{}
	for name := range exceptions {
		needless[name] = true
	}
	for caller, permissions := range v.granted {
		for _, p := range permissions {
			name := caller + " " + p.action + " " + p.resource
			if !p.used && exceptions[name] == "" {
				v.problems.addf("%s: may %s on %s, which nothing used: take it away, or list it in exceptions.go with the reason", caller, p.action, p.resource)
			}
			delete(needless, name)
		}
	}
	for name := range needless {
		v.problems.addf("exceptions.go: no role allows %s: take the exception away", name)
	}
	if len(v.problems) == 0 {
		return nil
	}
	slices.Sort(v.problems)
	return errors.New(strings.Join(v.problems, "\n"))
}
