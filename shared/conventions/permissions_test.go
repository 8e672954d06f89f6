package conventions

import (
	"fmt"
	"strings"
	"testing"
)

// openResources are the only resources with a wildcard that anything is allowed on, and why each has to be open.
var openResources = map[string]string{
	"${Bucket.Arn}/staging/*": "the keys are made at run time",
	"${Bucket.Arn}/files/*":   "the keys are made at run time",
	"arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}:log-group:/aws/lambda/${AWS::StackName}/*": "the boundary covers every function's log group, and streams are made at run time",
	"arn:${AWS::Partition}:kms:${AWS::Region}:${AWS::AccountId}:key/*":                                      "AWS makes the keys of tables and variables; no function has a statement on any",
}

// openActions are the only actions with a wildcard that anything is allowed: none.
var openActions = map[string]string{}

// grant is one action that something is allowed on one resource.
type grant struct{ action, resource string }

// statement is one statement of a policy, and who has it.
type statement struct {
	owner string
	body  map[string]any
}

func (s statement) allows() bool { return str(s.body, "Effect") == "Allow" }

// grants are all pairs of the statement, none when it denies.
func (s statement) grants() []grant {
	if !s.allows() {
		return nil
	}
	var out []grant
	for _, a := range list(s.body, "Action") {
		for _, r := range list(s.body, "Resource") {
			out = append(out, grant{a, r})
		}
	}
	return out
}

func documents(owner string, docs ...any) []statement {
	var out []statement
	for _, d := range docs {
		for _, s := range maps(d, "Statement") {
			out = append(out, statement{owner, s})
		}
	}
	return out
}

// statements are all statements of the template that say what somebody may do, trust policies left out.
func statements(t *testing.T, tr tree) []statement {
	t.Helper()
	var out []statement
	for _, f := range tr.resources(t, function) {
		out = append(out, own(t, f)...)
	}
	for _, r := range tr.resources(t, "AWS::IAM::Role") {
		for _, p := range maps(r.props, "Policies") {
			out = append(out, documents(r.id, p["PolicyDocument"])...)
		}
		if len(list(r.props, "ManagedPolicyArns")) > 0 {
			t.Errorf("%s has managed policies: write what it needs", r.id)
		}
	}
	for _, kind := range []string{"AWS::IAM::ManagedPolicy", "AWS::S3::BucketPolicy", "AWS::SQS::QueuePolicy"} {
		for _, r := range tr.resources(t, kind) {
			out = append(out, documents(r.id, r.props["PolicyDocument"])...)
		}
	}
	return out
}

// own are the statements in a function's Policies. Anything but a document is an error: SAM's policy templates and the
// managed policies of AWS allow more than a function needs.
func own(t *testing.T, f resource) []statement {
	t.Helper()
	var out []statement
	policies, ok := f.props["Policies"].([]any)
	if !ok && f.props["Policies"] != nil {
		t.Errorf("%s: Policies must be a list of documents", f.id)
	}
	for _, p := range policies {
		found := documents(f.id, p)
		if len(found) == 0 {
			t.Errorf("%s: policy %v is not a document with statements", f.id, p)
		}
		out = append(out, found...)
	}
	return out
}

func TestNoWildcardIsAllowed(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, s := range statements(t, load(t)) {
		for _, k := range []string{"NotAction", "NotResource", "NotPrincipal"} {
			if s.body[k] != nil {
				t.Errorf("%s: %s allows by exclusion", s.owner, k)
			}
		}
		if !s.allows() {
			continue
		}
		if p := str(s.body, "Principal"); p == "*" || strings.Contains(p, ":*") {
			t.Errorf("%s: allows everybody", s.owner)
		}
		if len(s.grants()) == 0 {
			t.Errorf("%s: statement %v allows nothing", s.owner, s.body)
		}
		for _, g := range s.grants() {
			if strings.Contains(g.action, "*") && openActions[g.action] == "" {
				t.Errorf("%s: allows %s: name each action", s.owner, g.action)
			}
			if strings.Contains(g.resource, "*") && openResources[g.resource] == "" {
				t.Errorf("%s: allows %s on %s: name the resource, or list it here with the reason", s.owner, g.action, g.resource)
			}
			used[g.resource] = true
		}
	}
	for r := range openResources {
		if !used[r] {
			t.Errorf("%s is listed as open but nothing is allowed on it", r)
		}
	}
}

// SAM attaches managed policies that hold for the whole account; the boundary is what makes them narrow. So it has to
// allow all that a function's own statements allow, and has to allow nothing beyond them but logs and what AWS lets
// everybody do with its own keys.
func TestBoundaryIsWhatFunctionsUse(t *testing.T) {
	t.Parallel()
	tr := load(t)
	boundary := map[grant]bool{}
	for _, s := range documents("FunctionBoundary", tr.one(t, "AWS::IAM::ManagedPolicy", "FunctionBoundary").props["PolicyDocument"]) {
		for _, g := range s.grants() {
			boundary[g] = false
		}
	}
	for _, f := range tr.resources(t, function) {
		for _, s := range own(t, f) {
			for _, g := range s.grants() {
				if strings.HasPrefix(g.action, "kms:") {
					t.Errorf("%s: %s: the boundary leaves keys to the policies of AWS", f.id, g.action)
				}
				if _, ok := boundary[g]; !ok {
					t.Errorf("%s: %s on %s is cut off by FunctionBoundary: add it there", f.id, g.action, g.resource)
				}
				boundary[g] = true
			}
		}
	}
	if _, ok := boundary[grant{"kms:Decrypt", "arn:${AWS::Partition}:kms:${AWS::Region}:${AWS::AccountId}:key/*"}]; !ok {
		t.Error("FunctionBoundary must leave room for the keys of AWS: without kms:Decrypt no function may get its variables")
	}
	for g, used := range boundary {
		if !used && !strings.HasPrefix(g.action, "logs:") && !strings.HasPrefix(g.action, "kms:") {
			t.Errorf("FunctionBoundary: no function has %s on %s", g.action, g.resource)
		}
	}
}

// A permission without the variable that names its resource, or the other way round, is a mistake in one of them.
func TestEnvironmentAndPermissionsAgree(t *testing.T) {
	t.Parallel()
	for _, f := range load(t).resources(t, function) {
		services := map[string]bool{}
		for _, s := range own(t, f) {
			for _, g := range s.grants() {
				service, _, _ := strings.Cut(g.action, ":")
				if strings.HasSuffix(g.resource, ".StreamArn}") || strings.HasSuffix(g.resource, "StreamArn") {
					service = "stream" // read by Lambda on the function's behalf
				}
				services[service] = true
			}
		}
		env, _ := at(f.props, "Environment", "Variables").(map[string]any)
		has := func(name string) bool { return env[name] != nil }
		for _, rule := range []struct {
			variable string
			service  string
		}{{"TABLE_NAME", "dynamodb"}, {"PRESIGN_ROLE_ARN", "sts"}} {
			if has(rule.variable) != services[rule.service] {
				t.Errorf("%s: has %s: %v, may call %s: %v", f.id, rule.variable, has(rule.variable), rule.service, services[rule.service])
			}
		}
		if has("BUCKET_NAME") != (services["s3"] || services["sts"]) {
			t.Errorf("%s: has BUCKET_NAME: %v, may use or sign for the bucket: %v", f.id, has("BUCKET_NAME"), services["s3"] || services["sts"])
		}
		for _, e := range events(f) {
			if e.kind == "SQS" && !services["sqs"] {
				t.Errorf("%s: reads a queue that its statements do not name", f.id)
			}
			if e.kind == "DynamoDB" && !services["stream"] {
				t.Errorf("%s: reads a stream that its statements do not name", f.id)
			}
		}
	}
}

// runtimeVariable is read by Go's runtime, in every function: how many CPUs it may use.
const runtimeVariable = "GOMAXPROCS"

// memoryOfCPU is the memory, in MB, with which Lambda gives a function one whole CPU; less has that share of one.
// (AWS Lambda Developer Guide, "Configure Lambda function memory".)
const memoryOfCPU = 1769

// One name for one thing: a variable has the same value wherever it is declared.
func TestEnvironmentIsUniform(t *testing.T) {
	t.Parallel()
	tr := load(t)
	if got := fmt.Sprint(at(tr, "Globals", "Function", "Environment", "Variables")); got != "map["+runtimeVariable+":1]" {
		t.Errorf("global variables are %s: they reach functions that do not read them, declare them where they are read", got)
	}
	seen := map[string]string{}
	for _, f := range tr.resources(t, function) {
		env, _ := at(f.props, "Environment", "Variables").(map[string]any)
		for name, v := range env {
			value := fmt.Sprint(v)
			if seen[name] != "" && seen[name] != value {
				t.Errorf("%s: %s is %s, elsewhere %s", f.id, name, value, seen[name])
			}
			seen[name] = value
			if strings.HasPrefix(name, "AWS_") {
				t.Errorf("%s: %s belongs to the runtime and the SDK", f.id, name)
			}
			if name == runtimeVariable {
				if m := num(f.props, "MemorySize"); m >= 2*memoryOfCPU || value != "1" {
					t.Errorf("%s: %s is %s with %d MB of memory: it is one for each %d", f.id, name, value, m, memoryOfCPU)
				}
			} else if !strings.Contains(value, "${") {
				t.Errorf("%s: %s is the fixed value %s: make it a parameter, or write it in the code", f.id, name, value)
			}
		}
	}
}

func TestPresignRoleIsNarrow(t *testing.T) {
	t.Parallel()
	tr := load(t)
	r := tr.one(t, "AWS::IAM::Role", "PresignRole")
	want(t, r, map[string]string{"MaxSessionDuration": "3600"})
	got := map[grant]bool{}
	for _, p := range maps(r.props, "Policies") {
		for _, s := range documents(r.id, p["PolicyDocument"]) {
			for _, g := range s.grants() {
				got[g] = true
			}
		}
	}
	wanted := map[grant]bool{{"s3:PutObject", "${Bucket.Arn}/staging/*"}: true, {"s3:GetObject", "${Bucket.Arn}/files/*"}: true}
	if fmt.Sprint(got) != fmt.Sprint(wanted) {
		t.Errorf("the presign role may %v, want %v", got, wanted)
	}

	trust := documents(r.id, r.props["AssumeRolePolicyDocument"])
	if len(trust) != 1 {
		t.Fatalf("the presign role has %d trust statements, want 1", len(trust))
	}
	path := str(tr, "Globals", "Function", "RolePath")
	wantTrust := fmt.Sprintf("map[Action:sts:AssumeRole Condition:map[ArnLike:map[aws:PrincipalArn:arn:${AWS::Partition}:iam::${AWS::AccountId}:role%s*]] Effect:Allow "+
		"Principal:map[AWS:arn:${AWS::Partition}:iam::${AWS::AccountId}:root]]", path)
	if got := fmt.Sprint(trust[0].body); got != wantTrust {
		t.Errorf("trust of the presign role is\n%s\nwant the roles under the functions' path\n%s", got, wantTrust)
	}
	if str(r.props, "Path") != "" {
		t.Error("the presign role stands under the functions' path and would trust itself")
	}
}

// Only the bucket wakes the verification queue; only functions of this stack are called.
func TestQueuePolicy(t *testing.T) {
	t.Parallel()
	tr := load(t)
	p := tr.one(t, "AWS::SQS::QueuePolicy", "VerifyQueuePolicy")
	name := str(tr.one(t, bucket, "Bucket").props, "BucketName")
	want := map[string]string{
		"BucketSends": "map[Service:s3.amazonaws.com] sqs:SendMessage ${VerifyQueue.Arn} " +
			"map[ArnEquals:map[aws:SourceArn:arn:${AWS::Partition}:s3:::" + name + "] StringEquals:map[aws:SourceAccount:${AWS::AccountId}]]",
		"DenyInsecureTransport": "* sqs:* ${VerifyQueue.Arn} map[Bool:map[aws:SecureTransport:false]]",
	}
	for _, s := range maps(p.props, "PolicyDocument", "Statement") {
		sid := str(s, "Sid")
		if got := fmt.Sprint(s["Principal"], " ", s["Action"], " ", s["Resource"], " ", s["Condition"]); got != want[sid] {
			t.Errorf("statement %s is\n%s\nwant\n%s", sid, got, want[sid])
		}
		delete(want, sid)
	}
	for sid := range want {
		t.Errorf("the queue policy lacks %s", sid)
	}
}
