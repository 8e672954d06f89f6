package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"claimcheck.dev/claimcheck/shared/local/stack"
	local "claimcheck.dev/claimcheck/shared/local/template"
)

// translate makes CloudFormation of what sam built and checks the rules.
func (w *world) translate(ctx context.Context) (string, error) {
	target := filepath.Join(w.dir, "cloudformation.json")
	script := filepath.Join(w.root, "shared", "local", "deploytest", "translate.py")
	if _, err := output(w.python(ctx, script, filepath.Join(w.copy, "template.yaml"), target)); err != nil {
		return "", err
	}
	var err error
	if w.template, err = readTemplate(target); err != nil {
		return "", err
	}
	var broken []error
	for _, r := range rules {
		for _, text := range r.check(w.template) {
			broken = append(broken, fmt.Errorf("%s: %s", r.name, text))
		}
	}
	return fmt.Sprintf("%d rules on %d resources, %d KB", len(rules), len(w.template.Resources), w.template.Size>>10), errors.Join(broken...)
}

// created is what create.py read back of one stack.
type created struct {
	Stack, Status, Reason string
	Resources             map[string]struct{ ID, Type, Status string }
	Outputs               map[string]string
	Environment           map[string]map[string]string
	Mappings              map[string]struct {
		EventSourceArn, FunctionArn string
		FunctionResponseTypes       []string
	}
	Policies      map[string]any
	Notifications map[string][]struct {
		Queue  string
		Events []string
		Filter map[string]string
	}
	Queues map[string]map[string]string
	Tables map[string]struct {
		TableArn, LatestStreamArn string
		GlobalSecondaryIndexes    []struct{ IndexName string }
	}
}

var overrides = regexp.MustCompile(`(?m)^parameter_overrides = "([^"]*)"$`)

// plan is one stack to create.
type plan struct {
	Stack      string            `json:"stack"`
	Parameters map[string]string `json:"parameters"`
	// params is how a script writes the parameters.
	params string
}

// plans are the stacks to create: one for each set of parameters that the end-to-end
// scripts ask for, and those that samconfig.toml deploys.
func (w *world) plans() ([]plan, error) {
	scripts, err := filepath.Glob(filepath.Join(w.root, "shared", "local", "e2e", "testdata", "*.txt"))
	if err != nil || len(scripts) == 0 {
		return nil, errors.New("there are no end-to-end scripts")
	}
	sets := map[string]bool{"": true}
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		first, _, _ := strings.Cut(string(text), "\n")
		if params, ok := strings.CutPrefix(first, "# params: "); ok {
			sets[params] = true
		}
	}
	config, err := os.ReadFile(filepath.Join(w.root, "samconfig.toml"))
	if err != nil {
		return nil, err
	}
	for _, found := range overrides.FindAllStringSubmatch(string(config), -1) {
		sets[found[1]] = true
	}
	var out []plan
	for _, params := range slices.Sorted(maps.Keys(sets)) {
		p := plan{Stack: fmt.Sprintf("claimcheck-%d", len(out)+1), Parameters: map[string]string{}, params: params}
		for _, pair := range strings.Fields(params) {
			name, value, _ := strings.Cut(pair, "=")
			p.Parameters[name] = value
		}
		out = append(out, p)
	}
	return out, nil
}

// create runs the emulator, creates the stacks and keeps what was read back for the
// end-to-end scripts.
func (w *world) create(ctx context.Context) (string, error) {
	plans, err := w.plans()
	if err != nil {
		return "", err
	}
	planned, target := filepath.Join(w.dir, "plan.json"), filepath.Join(w.dir, "stacks.json")
	if err := writeJSON(planned, plans); err != nil {
		return "", err
	}
	endpoint, stop, err := w.emulator(ctx)
	if err != nil {
		return "", err
	}
	defer stop()
	script := filepath.Join(w.root, "shared", "local", "deploytest", "create.py")
	if _, err := output(w.python(ctx, script, endpoint, filepath.Join(w.dir, "cloudformation.json"), planned, target)); err != nil {
		return "", fmt.Errorf("%w\nthe emulator's log is %s", err, filepath.Join(w.dir, "emulator.log"))
	}
	stop()
	if err := readJSON(target, &w.stacks); err != nil {
		return "", err
	}

	var wrong []error
	index := map[string]string{}
	for i, made := range w.stacks {
		if err := made.check(w.template); err != nil {
			wrong = append(wrong, fmt.Errorf("stack %s (%s): %w", made.Stack, plans[i].params, err))
			continue
		}
		d := made.deployed(endpoint)
		if err := sameReading(filepath.Join(w.root, "template.yaml"), plans[i], d); err != nil {
			wrong = append(wrong, fmt.Errorf("stack %s (%s): %w", made.Stack, plans[i].params, err))
		}
		index[plans[i].params] = made.Stack + ".json"
		wrong = append(wrong, writeJSON(filepath.Join(w.dir, made.Stack+".json"), d))
	}
	wrong = append(wrong, disjoint(w.stacks), writeJSON(filepath.Join(w.dir, "index.json"), index))
	return fmt.Sprintf("%d stacks of %d resources side by side", len(w.stacks), len(w.template.Resources)), errors.Join(wrong...)
}

// emulator starts MiniStack on a free port of loopback, with nothing but what the
// template needs.
func (w *world) emulator(ctx context.Context) (endpoint string, stop func(), err error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("finding a port: %w", err)
	}
	address := free.Addr().String()
	free.Close()
	_, port, _ := strings.Cut(address, ":")

	log, err := os.Create(filepath.Join(w.dir, "emulator.log"))
	if err != nil {
		return "", nil, err
	}
	defer log.Close()
	cmd := w.command(ctx, w.dir, filepath.Join(w.venv, "emulator", "bin", "python"), "-m", "ministack")
	cmd.Env = append(cmd.Env, "BIND_HOST=127.0.0.1", "MINISTACK_HOST=127.0.0.1", "GATEWAY_PORT="+port, "TMPDIR="+w.dir,
		"SFTP_ENABLED=false", "IOT_MTLS_ENABLED=false", "DOCKER_HOST=unix://"+filepath.Join(w.dir, "no-docker"))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("starting the emulator: %w", err)
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have gone
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
	}
	for deadline := time.Now().Add(time.Minute); ; {
		if conn, err := net.DialTimeout("tcp", address, time.Second); err == nil {
			conn.Close()
			return "http://" + address, stop, nil
		}
		select {
		case <-ended:
			text, _ := os.ReadFile(log.Name())
			return "", nil, fmt.Errorf("the emulator did not start on port %s: %s", port, lastLine(text))
		case <-time.After(100 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			stop()
			return "", nil, fmt.Errorf("the emulator does not answer on port %s; its log is %s", port, log.Name())
		}
	}
}

// check holds what was created against the template.
func (c *created) check(t *template) error {
	if c.Status != "CREATE_COMPLETE" {
		return fmt.Errorf("%s: %s", c.Status, c.Reason)
	}
	var p problems
	for id, r := range t.Resources {
		if made := c.Resources[id]; made.Status != "CREATE_COMPLETE" || made.Type != r.Type || made.ID == "" {
			p.addf("%s: %s %s", id, made.Type, made.Status)
		}
	}
	for name := range t.Outputs {
		if c.Outputs[name] == "" {
			p.addf("output %s is empty", name)
		}
	}
	for _, f := range t.of("AWS::Lambda::Function") {
		declared, _ := at(f.Properties, "Environment", "Variables").(map[string]any)
		for name := range declared {
			if value := c.Environment[f.ID][name]; value == "" || strings.Contains(value, "${") {
				p.addf("%s: %s is %q", f.ID, name, value)
			}
		}
		if len(declared) != len(c.Environment[f.ID]) {
			p.addf("%s: has %d variables, the template %d", f.ID, len(c.Environment[f.ID]), len(declared))
		}
	}
	values := c.values()
	for _, m := range t.of("AWS::Lambda::EventSourceMapping") {
		got := c.Mappings[m.ID]
		source, _ := expand(str(m.Properties, "EventSourceArn"), values)
		function, _ := expand(strings.TrimSuffix(str(m.Properties, "FunctionName"), "}")+".Arn}", values)
		if got.EventSourceArn != source || got.FunctionArn != function || !slices.Contains(got.FunctionResponseTypes, "ReportBatchItemFailures") {
			p.addf("%s: %+v, want %s -> %s", m.ID, got, source, function)
		}
	}
	for _, b := range t.of("AWS::S3::Bucket") {
		queue, _ := expand("${VerifyQueue.Arn}", values)
		if n := c.Notifications[b.ID]; len(n) != 1 || n[0].Queue != queue || n[0].Filter["prefix"] != "staging/" || len(n[0].Filter) != 1 {
			p.addf("%s: notifies %+v, want %s of staging/", b.ID, n, queue)
		}
		for _, policy := range t.of("AWS::S3::BucketPolicy") {
			want, err := expandAll(at(policy.Properties, "PolicyDocument"), values)
			if got, want := mustJSON(c.Policies[b.ID]), mustJSON(want); err != nil || got != want {
				p.addf("%s: has the policy\n      %s\n    want\n      %s (%v)", b.ID, got, want, err)
			}
		}
	}
	for _, q := range t.of("AWS::SQS::Queue") {
		if target := str(q.Properties, "RedrivePolicy", "deadLetterTargetArn"); target != "" {
			want, _ := expand(target, values)
			if got := c.Queues[q.ID]["RedrivePolicy"]; !strings.Contains(got, `"`+want+`"`) {
				p.addf("%s: redrive policy %s, want %s", q.ID, got, want)
			}
		}
	}
	for _, table := range t.of("AWS::DynamoDB::Table") {
		if got, want := len(c.Tables[table.ID].GlobalSecondaryIndexes), len(list(table.Properties, "GlobalSecondaryIndexes")); got != want {
			p.addf("%s: %d indexes, want %d", table.ID, got, want)
		}
	}
	if len(p) > 0 {
		slices.Sort(p)
		return errors.New(strings.Join(p, "\n  "))
	}
	return nil
}

const account = "000000000000"

// values are what references to the stack's resources stand for.
func (c *created) values() map[string]string {
	arn := func(service, resource string) string {
		return "arn:aws:" + service + ":" + region + ":" + account + ":" + resource
	}
	out := map[string]string{
		"AWS::Partition": "aws", "AWS::Region": region, "AWS::AccountId": account, "AWS::StackName": c.Stack, "AWS::URLSuffix": "amazonaws.com",
	}
	for id, r := range c.Resources {
		out[id] = r.ID
		switch r.Type {
		case "AWS::DynamoDB::Table":
			out[id+".Arn"] = arn("dynamodb", "table/"+r.ID)
			out[id+".StreamArn"] = c.Tables[id].LatestStreamArn
		case "AWS::S3::Bucket":
			out[id+".Arn"] = "arn:aws:s3:::" + r.ID
		case "AWS::SQS::Queue":
			out[id+".Arn"] = c.Queues[id]["QueueArn"]
		case "AWS::Lambda::Function":
			out[id+".Arn"] = arn("lambda", "function:"+r.ID)
		case "AWS::IAM::Role":
			out[id+".Arn"] = "arn:aws:iam::" + account + ":role/" + r.ID
		}
	}
	return out
}

// deployed is what the local stack needs to know of it.
func (c *created) deployed(endpoint string) *stack.Deployed {
	host, _ := url.Parse(endpoint)
	d := &stack.Deployed{Names: map[string]string{}, Environment: c.Environment, QueueHost: host.Host, ContentHost: c.Outputs["ContentTarget"]}
	for id, r := range c.Resources {
		d.Names[id] = path.Base(r.ID)
	}
	return d
}

// sameReading holds the local stack's own reading of the template against what
// CloudFormation made of it: the environments must agree to the letter.
func sameReading(file string, p plan, d *stack.Deployed) error {
	t, err := local.Load(file, local.Options{
		Params: p.Parameters, Region: region, AccountID: account, StackName: p.Stack, Names: d.Names,
		Hosts: local.Hosts{Queues: d.QueueHost, Content: d.ContentHost},
	})
	if err != nil {
		return err
	}
	for _, f := range t.Functions {
		if !maps.Equal(f.Env, d.Environment[f.ID]) {
			return fmt.Errorf("%s: the local stack reads the environment\n  %v\nCloudFormation\n  %v", f.ID, f.Env, d.Environment[f.ID])
		}
	}
	return nil
}

// disjoint says whether stacks in one account share a resource by name.
func disjoint(stacks []created) error {
	owner := map[string]string{}
	var p problems
	for _, c := range stacks {
		for id, r := range c.Resources {
			// The default stage is called alike in every API.
			if other := owner[r.Type+r.ID]; other != "" && r.Type != "AWS::ApiGatewayV2::Stage" {
				p.addf("%s of %s and %s are both %s", id, other, c.Stack, r.ID)
			}
			owner[r.Type+r.ID] = c.Stack
		}
	}
	if len(p) == 0 {
		return nil
	}
	slices.Sort(p)
	return errors.New(strings.Join(p, "\n"))
}

// expandAll is expand for all text in a value.
func expandAll(v any, values map[string]string) (any, error) {
	switch v := v.(type) {
	case string:
		return expand(v, values)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			var err error
			if out[i], err = expandAll(e, values); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			var err error
			if out[k], err = expandAll(e, values); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

func mustJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // it came from JSON
	}
	return string(text)
}

func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", " ")
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

func readJSON(path string, v any) error {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(text)).Decode(v)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return nil
}
