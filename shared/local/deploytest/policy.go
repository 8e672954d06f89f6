package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// problems collects what is wrong.
type problems []string

func (p *problems) addf(format string, args ...any) { *p = append(*p, fmt.Sprintf(format, args...)) }

// rule is something that must hold for the translated template, with what SAM has
// added to it. Its check returns what is wrong.
type rule struct {
	name  string
	check func(*template) problems
}

// rules are all of them. shared/conventions holds the finer ones that can be read off the source.
var rules = []rule{
	{"it fits into CloudFormation", fits},
	{"no wildcard is allowed outside the listed few", noWildcards},
	{"roles are for functions, schedules and signing, and bounded", roles},
	{"every queue has dead letters, and keeps them two weeks", deadLetters},
	{"every event source reports partial batches and has an end for what fails", eventSources},
	{"every function is arm64 with JSON logs that end", functions},
	{"data outlives the stack", retained},
	{"the bucket is closed and its policy complete", bucket},
	{"every route leads to a function that the API may call", routes},
	{"no physical name is the same in two stacks", names},
}

// need adds a problem unless a property has the text.
func (p *problems) need(r resource, want string, path ...string) {
	if got := str(r.Properties, path...); got != want {
		p.addf("%s: %s is %q, want %q", r.ID, strings.Join(path, "."), got, want)
	}
}

// fits holds CloudFormation's quotas: 1 MB of template from S3, 500 resources, 200 outputs.
func fits(t *template) (p problems) {
	if t.Size > 1_000_000 {
		p.addf("the template has %d bytes, CloudFormation takes 1,000,000", t.Size)
	}
	if len(t.Resources) > 500 {
		p.addf("the template has %d resources, CloudFormation takes 500", len(t.Resources))
	}
	if len(t.Outputs) > 200 {
		p.addf("the template has %d outputs, CloudFormation takes 200", len(t.Outputs))
	}
	return p
}

// open are the only resources with a wildcard that anything is allowed on.
var open = map[string]string{
	"${Bucket.Arn}/staging/*": "keys are made at run time",
	"${Bucket.Arn}/files/*":   "keys are made at run time",
	"arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}:log-group:/aws/lambda/${AWS::StackName}/*": "streams are made at run time",
	"arn:${AWS::Partition}:kms:${AWS::Region}:${AWS::AccountId}:key/*":                                      "AWS makes the keys of tables and variables; the boundary alone names them",
}

func noWildcards(t *template) (p problems) {
	for _, id := range slices.Sorted(maps.Keys(t.Resources)) {
		for _, s := range statements(t.Resources[id]) {
			for _, k := range []string{"NotAction", "NotResource", "NotPrincipal"} {
				if at(s.body, k) != nil {
					p.addf("%s: %s", s.owner, k)
				}
			}
			if str(s.body, "Effect") == "Allow" && str(s.body, "Principal") == "*" {
				p.addf("%s: allows everybody", s.owner)
			}
			for _, g := range s.grants() {
				if strings.Contains(g.action, "*") {
					p.addf("%s: allows %s", s.owner, g.action)
				}
				if strings.Contains(g.resource, "*") && open[g.resource] == "" {
					p.addf("%s: allows %s on %s", s.owner, g.action, g.resource)
				}
			}
		}
	}
	return p
}

// attached are the policies of AWS that SAM gives functions by itself. They hold for
// every resource of the account, so whoever has one must have the boundary too.
var attached = map[string]string{
	"arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole":    "every function writes a log",
	"arn:aws:iam::aws:policy/service-role/AWSLambdaSQSQueueExecutionRole": "its event source polls a queue",
	"arn:aws:iam::aws:policy/service-role/AWSLambdaDynamoDBExecutionRole": "its event source reads the stream",
}

func roles(t *template) (p problems) {
	used := map[string]string{}
	for _, f := range t.of("AWS::Lambda::Function") {
		role := referred(str(f.Properties, "Role"))
		if used[role] != "" {
			p.addf("%s and %s share the role %s", used[role], f.ID, role)
		}
		used[role] = f.ID
	}
	schedules := map[string]string{}
	for _, s := range t.of("AWS::Scheduler::Schedule") {
		schedules[referred(str(s.Properties, "Target", "RoleArn"))] = str(s.Properties, "Target", "Arn")
	}
	for _, r := range t.of("AWS::IAM::Role") {
		trust := texts(r.Properties, "AssumeRolePolicyDocument", "Statement")
		principal := ""
		for _, s := range list(r.Properties, "AssumeRolePolicyDocument", "Statement") {
			principal = strings.Join(append(texts(s, "Principal", "Service"), texts(s, "Principal", "AWS")...), " ")
		}
		if len(trust) != 1 {
			p.addf("%s: %d trust statements, want 1", r.ID, len(trust))
		}
		for _, policy := range texts(r.Properties, "ManagedPolicyArns") {
			if attached[policy] == "" {
				p.addf("%s: has the managed policy %s", r.ID, policy)
			}
		}
		switch {
		case used[r.ID] != "":
			p.need(r, "${FunctionBoundary}", "PermissionsBoundary")
			p.need(r, "/${AWS::StackName}/", "Path")
			if principal != "lambda.amazonaws.com" {
				p.addf("%s: trusts %s", r.ID, principal)
			}
		case schedules[r.ID] != "":
			if principal != "scheduler.amazonaws.com" || len(texts(r.Properties, "ManagedPolicyArns")) > 0 {
				p.addf("%s: trusts %s, has %v", r.ID, principal, texts(r.Properties, "ManagedPolicyArns"))
			}
			for _, s := range statements(r) {
				for _, g := range s.grants() {
					if (g != grant{"lambda:InvokeFunction", schedules[r.ID]}) {
						p.addf("%s: a schedule's role allows %v", r.ID, g)
					}
				}
			}
		case r.ID == "PresignRole":
			if len(texts(r.Properties, "ManagedPolicyArns")) > 0 || strings.HasPrefix(str(r.Properties, "Path"), "/${AWS::StackName}/") {
				p.addf("%s: has managed policies, or stands where its trust points", r.ID)
			}
			if want := "arn:${AWS::Partition}:iam::${AWS::AccountId}:root"; principal != want {
				p.addf("%s: trusts %s, want %s under a condition", r.ID, principal, want)
			}
			for _, s := range list(r.Properties, "AssumeRolePolicyDocument", "Statement") {
				if got, want := str(s, "Condition", "ArnLike", "aws:PrincipalArn"), "arn:${AWS::Partition}:iam::${AWS::AccountId}:role/${AWS::StackName}/*"; got != want {
					p.addf("%s: trusts %q, want %q", r.ID, got, want)
				}
			}
		default:
			p.addf("%s: a role that neither a function nor a schedule has", r.ID)
		}
	}
	return p
}

// twoWeeks is the longest that SQS keeps a message.
const twoWeeks = 14 * 24 * 3600

func deadLetters(t *template) (p problems) {
	targets := map[string]bool{}
	for _, q := range t.of("AWS::SQS::Queue") {
		if target := str(q.Properties, "RedrivePolicy", "deadLetterTargetArn"); target != "" {
			targets[referred(target)] = true
		}
	}
	for _, q := range t.of("AWS::SQS::Queue") {
		redrive := str(q.Properties, "RedrivePolicy", "deadLetterTargetArn")
		switch {
		case redrive == "" && !targets[q.ID]:
			p.addf("%s: no dead letters", q.ID)
		case redrive == "" && at(q.Properties, "MessageRetentionPeriod") != float64(twoWeeks):
			p.addf("%s: keeps dead letters %v seconds, want %d", q.ID, at(q.Properties, "MessageRetentionPeriod"), twoWeeks)
		case redrive != "" && t.Resources[referred(redrive)].Type != "AWS::SQS::Queue":
			p.addf("%s: its dead letters go to %s, which is no queue here", q.ID, redrive)
		}
		if at(q.Properties, "SqsManagedSseEnabled") != true {
			p.addf("%s: not encrypted", q.ID)
		}
	}
	return p
}

func eventSources(t *template) (p problems) {
	timeouts := map[string]float64{}
	for _, f := range t.of("AWS::Lambda::Function") {
		timeouts["${"+f.ID+"}"], _ = at(f.Properties, "Timeout").(float64)
	}
	for _, m := range t.of("AWS::Lambda::EventSourceMapping") {
		if !slices.Contains(texts(m.Properties, "FunctionResponseTypes"), "ReportBatchItemFailures") {
			p.addf("%s: one bad record fails its whole batch", m.ID)
		}
		source := str(m.Properties, "EventSourceArn")
		switch kind := t.Resources[referred(source)].Type; kind {
		case "AWS::SQS::Queue":
			queue := t.Resources[referred(source)]
			visible, _ := at(queue.Properties, "VisibilityTimeout").(float64)
			if timeout := timeouts[str(m.Properties, "FunctionName")]; visible < 6*timeout {
				p.addf("%s: %s hides messages %v seconds, want six times the function's %v", m.ID, queue.ID, visible, timeout)
			}
		case "AWS::DynamoDB::Table":
			target := str(m.Properties, "DestinationConfig", "OnFailure", "Destination")
			if t.Resources[referred(target)].Type != "AWS::SQS::Queue" {
				p.addf("%s: what fails for good goes nowhere", m.ID)
			}
			if at(m.Properties, "BisectBatchOnFunctionError") != true {
				p.addf("%s: a poison record blocks its shard", m.ID)
			}
		default:
			p.addf("%s: reads %s, which is neither a queue nor a table's stream", m.ID, source)
		}
	}
	return p
}

// gatewaySeconds is when an HTTP API gives up on a function.
const gatewaySeconds = 30

func functions(t *template) (p problems) {
	all := t.of("AWS::Lambda::Function")
	if len(all) == 0 {
		p.addf("no functions")
	}
	behind := map[string]bool{}
	for _, r := range t.of("AWS::Lambda::Permission") {
		behind[referred(str(r.Properties, "FunctionName"))] = true
	}
	for _, f := range all {
		p.need(f, "[arm64]", "Architectures")
		p.need(f, "provided.al2023", "Runtime")
		p.need(f, "JSON", "LoggingConfig", "LogFormat")
		group := t.Resources[referred(str(f.Properties, "LoggingConfig", "LogGroup"))]
		if group.Type != "AWS::Logs::LogGroup" || str(group.Properties, "RetentionInDays") == "" {
			p.addf("%s: its log has no group with an end", f.ID)
		}
		if timeout, _ := at(f.Properties, "Timeout").(float64); behind[f.ID] && timeout >= gatewaySeconds {
			p.addf("%s: may take %v s, the API gives up at %d s", f.ID, timeout, gatewaySeconds)
		}
	}
	for _, g := range t.of("AWS::Logs::LogGroup") {
		if str(g.Properties, "RetentionInDays") == "" {
			p.addf("%s: kept for ever", g.ID)
		}
	}
	for _, r := range t.of("AWS::Lambda::Url") {
		p.addf("%s: a way around the API", r.ID)
	}
	return p
}

func retained(t *template) (p problems) {
	for kind, deletion := range map[string]string{"AWS::DynamoDB::Table": "Retain", "AWS::S3::Bucket": "RetainExceptOnCreate"} {
		if len(t.of(kind)) != 1 {
			p.addf("%d resources of type %s, want 1", len(t.of(kind)), kind)
		}
		for _, r := range t.of(kind) {
			for k, want := range map[string]string{"DeletionPolicy": deletion, "UpdateReplacePolicy": "Retain"} {
				if got := str(r.Whole, k); got != want {
					p.addf("%s: %s is %q, want %q", r.ID, k, got, want)
				}
			}
		}
	}
	for _, table := range t.of("AWS::DynamoDB::Table") {
		p.need(table, "true", "PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled")
		p.need(table, "true", "SSESpecification", "SSEEnabled")
		p.need(table, "ttl", "TimeToLiveSpecification", "AttributeName")
		p.need(table, "${TableDeletionProtection}", "DeletionProtectionEnabled")
	}
	return p
}
