package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"claimcheck.dev/claimcheck/shared/local/calls"
)

// sound reads testdata/sound.json, a small template that keeps every rule, after changes to it.
func sound(t *testing.T, changes ...func(resources map[string]any)) *template {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "sound.json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(doc["Resources"].(map[string]any))
	}
	if text, err = json.Marshal(doc); err != nil {
		t.Fatal(err)
	}
	parsed, err := parseTemplate(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// broken are the problems of all rules.
func broken(tpl *template) (p problems) {
	for _, r := range rules {
		p = append(p, r.check(tpl)...)
	}
	return p
}

// set changes what stands at a path of resources; nil takes it away.
func set(value any, path ...string) func(map[string]any) {
	return func(m map[string]any) {
		for _, k := range path[:len(path)-1] {
			m = m[k].(map[string]any)
		}
		last := path[len(path)-1]
		if value == nil {
			delete(m, last)
			return
		}
		m[last] = value
	}
}

// allow adds a statement to the function's role.
func allow(action, resource any) func(map[string]any) {
	return func(m map[string]any) {
		policies := at(m["RunFunctionRole"], "Properties", "Policies").([]any)
		policies[0].(map[string]any)["PolicyDocument"] = map[string]any{"Statement": []any{
			map[string]any{"Effect": "Allow", "Action": action, "Resource": resource},
		}}
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	if p := broken(sound(t)); len(p) > 0 {
		t.Fatalf("the sound template breaks rules: %s", strings.Join(p, "\n"))
	}
	arn := func(id string) map[string]any { return map[string]any{"Fn::GetAtt": []any{id, "Arn"}} }
	role := func(m map[string]any) {
		m["SpareRole"] = map[string]any{"Type": "AWS::IAM::Role", "Properties": map[string]any{"AssumeRolePolicyDocument": map[string]any{"Statement": []any{map[string]any{}}}}}
	}
	tests := []struct {
		name   string
		change func(map[string]any)
		want   string
	}{
		{"action", allow("s3:*", arn("Bucket")), "allows s3:*"},
		{"resource", allow("s3:GetObject", "*"), "allows s3:GetObject on *"},
		{"own wildcard", allow("s3:GetObject", map[string]any{"Fn::Sub": "${Bucket.Arn}/*"}), "allows s3:GetObject on ${Bucket.Arn}/*"},
		{"managed policy", set([]any{"arn:aws:iam::aws:policy/AdministratorAccess"}, "RunFunctionRole", "Properties", "ManagedPolicyArns"), "has the managed policy"},
		{"boundary", set(nil, "RunFunctionRole", "Properties", "PermissionsBoundary"), "PermissionsBoundary is \"\""},
		{"spare role", role, "neither a function nor a schedule"},
		{"shared role", func(m map[string]any) {
			other := maps.Clone(m["RunFunction"].(map[string]any))
			m["OtherFunction"] = other
		}, "share the role"},
		{"presign trust", set("arn:aws:iam::1:role/*", "PresignRole", "Properties", "AssumeRolePolicyDocument", "Statement"), "trusts"},
		{"dead letters", set(nil, "Queue", "Properties", "RedrivePolicy"), "Queue: no dead letters"},
		{"retention of dead letters", set(60, "Dead", "Properties", "MessageRetentionPeriod"), "keeps dead letters"},
		{"partial batches", set(nil, "RunFunctionQueue", "Properties", "FunctionResponseTypes"), "one bad record"},
		{"visibility", set(30, "Queue", "Properties", "VisibilityTimeout"), "hides messages"},
		{"stream without end", set(nil, "RunFunctionStream", "Properties", "DestinationConfig"), "goes nowhere"},
		{"poison", set(false, "RunFunctionStream", "Properties", "BisectBatchOnFunctionError"), "poison"},
		{"architecture", set([]any{"x86_64"}, "RunFunction", "Properties", "Architectures"), "Architectures is"},
		{"log format", set("Text", "RunFunction", "Properties", "LoggingConfig", "LogFormat"), "LogFormat is"},
		{"log retention", set(nil, "Log", "Properties", "RetentionInDays"), "no group with an end"},
		{"timeout", set(30, "RunFunction", "Properties", "Timeout"), "gives up at"},
		{"function URL", set(map[string]any{"Type": "AWS::Lambda::Url", "Properties": map[string]any{}}, "Url"), "a way around the API"},
		{"deletion", set("Delete", "Table", "DeletionPolicy"), "DeletionPolicy is"},
		{"replacement", set(nil, "Bucket", "UpdateReplacePolicy"), "UpdateReplacePolicy is"},
		{"recovery", set(nil, "Table", "Properties", "PointInTimeRecoverySpecification"), "PointInTimeRecovery"},
		{"public", set(false, "Bucket", "Properties", "PublicAccessBlockConfiguration", "BlockPublicPolicy"), "BlockPublicPolicy is"},
		{"notification", set([]any{map[string]any{"Queue": arn("Queue")}}, "Bucket", "Properties", "NotificationConfiguration", "QueueConfigurations"), "would wake their own function"},
		{"bucket policy", set([]any{}, "BucketPolicy", "Properties", "PolicyDocument", "Statement"), "lacks DenyInsecureTransport"},
		{"grant in the bucket policy", set([]any{map[string]any{"Sid": "X", "Effect": "Allow", "Principal": "*"}}, "BucketPolicy", "Properties", "PolicyDocument", "Statement"), "grants belong to roles"},
		{"route without permission", set(nil, "RunFunctionPermission"), "but the API may call \"\" there"},
		{"permission without route", set(map[string]any{}, "Api", "Properties", "Body", "paths"), "which is no route"},
		{"fixed name", set("orders", "Table", "Properties", "TableName"), "an account could have only one"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := broken(sound(t, test.change))
			if !slices.ContainsFunc(p, func(s string) bool { return strings.Contains(s, test.want) }) {
				t.Errorf("found %q, want %s", strings.Join(p, "\n"), test.want)
			}
		})
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pattern, text string
		want          bool
	}{
		{"arn:aws:s3:::b/files/*", "arn:aws:s3:::b/files/x/y", true}, {"arn:aws:s3:::b/files/*", "arn:aws:s3:::b/staging/x", false},
		{"arn:aws:s3:::b", "arn:aws:s3:::b/x", false}, {"a?c", "abc", true}, {"a.c", "abc", false},
	} {
		if got := matches(test.pattern, test.text); got != test.want {
			t.Errorf("%s covers %s: %v", test.pattern, test.text, got)
		}
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	tpl := sound(t)
	stack := created{Stack: "s", Resources: map[string]struct{ ID, Type, Status string }{
		"Table": {"s-table", "AWS::DynamoDB::Table", ""}, "Bucket": {"s-bucket", "AWS::S3::Bucket", ""}, "PresignRole": {"s-presign", "AWS::IAM::Role", ""},
	}}
	const table = "arn:aws:dynamodb:us-east-1:000000000000:table/s-table"
	good := []calls.Call{
		{Caller: "RunFunction", Action: "dynamodb:GetItem", Resource: table},
		{Caller: "RunFunction", Action: "s3:GetObject", Resource: "arn:aws:s3:::s-bucket/files/a/b"},
		{Caller: "PresignRole", Action: "s3:GetObject", Resource: "arn:aws:s3:::s-bucket/files/a/b"},
	}
	for _, test := range []struct {
		name  string
		calls []calls.Call
		want  string
	}{
		{"not allowed", append(good, calls.Call{Caller: "RunFunction", Operation: "op", Action: "dynamodb:PutItem", Resource: table}), "RunFunction: op needs dynamodb:PutItem on " + table + ", which its role does not allow"},
		{"an index is not the table", append(good, calls.Call{Caller: "RunFunction", Action: "dynamodb:GetItem", Resource: table + "/index/i"}), "which its role does not allow"},
		{"cut off", append(good, calls.Call{Caller: "RunFunction", Action: "s3:GetObject", Resource: "arn:aws:s3:::s-bucket/staging/a"}), "which FunctionBoundary cuts off"},
		{"nobody", append(good, calls.Call{Caller: calls.Unknown}), "no such function"},
		{"unused", good[1:], "may dynamodb:GetItem on ${Table.Arn}, which nothing used"},
		{"all as it should be", good, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			v := newVerdict(tpl, []created{stack})
			for _, c := range test.calls {
				v.judge(c)
			}
			text := fmt.Sprint(v.err(nil))
			if test.want == "" && text != "<nil>" || !strings.Contains(text, test.want) {
				t.Errorf("got %s, want %s", text, test.want)
			}
		})
	}
	v := newVerdict(tpl, []created{stack})
	if text := fmt.Sprint(v.err(map[string]string{"RunFunction dynamodb:Scan ${Table.Arn}": "why not"})); !strings.Contains(text, "no role allows RunFunction dynamodb:Scan") {
		t.Errorf("an exception for nothing: %s", text)
	}
}

func TestDisjoint(t *testing.T) {
	t.Parallel()
	one := created{Stack: "a", Resources: map[string]struct{ ID, Type, Status string }{"S": {"same", "AWS::Scheduler::Schedule", ""}}}
	two := one
	two.Stack = "b"
	if err := disjoint([]created{one, two}); err == nil || !strings.Contains(err.Error(), "are both same") {
		t.Errorf("got %v", err)
	}
	if err := disjoint([]created{one}); err != nil {
		t.Error(err)
	}
}

func TestShippable(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := shippable(here); err == nil {
		t.Error("a test of this machine passes for a function")
	}
	if err := shippable([]byte("#!/bin/sh\n")); err == nil || !strings.Contains(err.Error(), "no ELF") {
		t.Errorf("a script: %v", err)
	}
}
