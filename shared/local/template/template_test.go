package template

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var testOptions = Options{
	Region: "eu-west-1", AccountID: "123456789012", StackName: "demo",
	Hosts: Hosts{Queues: "127.0.0.1:1", Content: "127.0.0.1:2"},
}

// parse reads a template and fails the test on any problem.
func parse(t *testing.T, text string, params map[string]string) *Template {
	t.Helper()
	opt := testOptions
	opt.Params = params
	tpl, err := Parse("template.yaml", []byte(text), opt)
	if err != nil {
		t.Fatal(err)
	}
	return tpl
}

const values = `
Parameters:
  Name: { Type: String, Default: ada }
  Size: { Type: Number, Default: 5, MinValue: 1, MaxValue: 9 }
  Hosts: { Type: CommaDelimitedList, Default: "a, b ,c" }
  Empty: { Type: String, Default: "" }
Mappings:
  Places: { eu-west-1: { City: Dublin } }
Conditions:
  HasName: !Not [!Equals [!Ref Name, ""]]
  HasEmpty: !Not [!Equals [!Ref Empty, ""]]
  Both: !And [!Condition HasName, !Condition HasEmpty]
  Either: !Or [!Condition HasName, !Condition HasEmpty]
Resources:
  Table:
    Type: AWS::DynamoDB::Table
    Properties:
      AttributeDefinitions: [{ AttributeName: pk, AttributeType: S }]
      KeySchema: [{ AttributeName: pk, KeyType: HASH }]
      StreamSpecification: { StreamViewType: NEW_IMAGE }
  Files: { Type: AWS::S3::Bucket }
  Work: { Type: AWS::SQS::Queue, Properties: { QueueName: jobs } }
  Signer: { Type: AWS::IAM::Role, Properties: { AssumeRolePolicyDocument: {} } }
  Cdn: { Type: AWS::CloudFront::Distribution, Properties: { DistributionConfig: { Enabled: true } } }
  Gone: { Type: AWS::SQS::Queue, Condition: HasEmpty }
  EchoFunction:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: functions/echo/
      Environment:
        Variables:
          V: VALUE
`

func TestValues(t *testing.T) {
	t.Parallel()
	tests := []struct{ expression, want string }{
		{`!Ref Name`, "ada"},
		{`{ Ref: Size }`, "5"},
		{`plain`, "plain"},
		{`!Ref AWS::Region`, "eu-west-1"},
		{`!Ref AWS::AccountId`, "123456789012"},
		{`!Sub "${AWS::StackName}-${Name}"`, "demo-ada"},
		{`!Sub "${!Name} ${Table.Arn}"`, "${Name} arn:aws:dynamodb:eu-west-1:123456789012:table/demo-Table"},
		{`!Sub ["${x}${Size}", { x: !Ref Name }]`, "ada5"},
		{`Fn::Sub: "arn:${AWS::Partition}:s3:::${Files}.${AWS::URLSuffix}"`, "arn:aws:s3:::demo-files.amazonaws.com"},
		{`!Join ["-", [a, !Ref Name, b]]`, "a-ada-b"},
		{`!Join ["|", !Ref Hosts]`, "a|b|c"},
		{`!Select [1, !Ref Hosts]`, "b"},
		{`!Select [2, !Split [",", "x,y,z"]]`, "z"},
		{`!FindInMap [Places, !Ref AWS::Region, City]`, "Dublin"},
		{`!If [HasName, yes, no]`, "yes"},
		{`!If [HasEmpty, yes, no]`, "no"},
		{`!If [Both, yes, no]`, "no"},
		{`!If [Either, yes, no]`, "yes"},
		{`!If [HasEmpty, !Ref Gone, !GetAtt Work.QueueName]`, "jobs"},
		{`!Ref Work`, "http://127.0.0.1:1/123456789012/jobs"},
		{`!GetAtt Work.Arn`, "arn:aws:sqs:eu-west-1:123456789012:jobs"},
		{`!GetAtt [Signer, Arn]`, "arn:aws:iam::123456789012:role/demo-Signer"},
		{`!GetAtt Cdn.DomainName`, "127.0.0.1:2"},
		{`!GetAtt Files.RegionalDomainName`, "demo-files.s3.eu-west-1.amazonaws.com"},
		{`!GetAtt Table.StreamArn`, "arn:aws:dynamodb:eu-west-1:123456789012:table/demo-Table/stream/local"},
		{`!GetAtt EchoFunction.Arn`, "arn:aws:lambda:eu-west-1:123456789012:function:demo-EchoFunction"},
		{`!GetAtt EchoFunctionRole.Arn`, "arn:aws:iam::123456789012:role/demo-EchoFunctionRole"},
	}
	for _, test := range tests {
		if strings.HasPrefix(test.expression, "Fn::") {
			test.expression = "{ " + test.expression + " }"
		}
		tpl := parse(t, strings.Replace(values, "VALUE", test.expression, 1), nil)
		if got := tpl.Functions[0].Env["V"]; got != test.want {
			t.Errorf("%s = %q, want %q", test.expression, got, test.want)
		}
	}
	tpl := parse(t, strings.Replace(values, "VALUE", `!Ref AWS::NoValue`, 1), nil)
	if v, ok := tpl.Functions[0].Env["V"]; ok {
		t.Errorf("AWS::NoValue left the variable with %q", v)
	}
	tpl = parse(t, strings.Replace(values, "VALUE", `!Ref Name`, 1), map[string]string{"Name": "bob", "Empty": "x"})
	if got := tpl.Functions[0].Env["V"]; got != "bob" {
		t.Errorf("the override gave %q", got)
	}
	if len(tpl.Queues) != 2 {
		t.Errorf("a resource whose condition became true is missing: %+v", tpl.Queues)
	}
}

// TestProblems wants every problem with its line and nothing else.
func TestProblems(t *testing.T) {
	t.Parallel()
	const function = "Resources:\n  F:\n    Type: AWS::Serverless::Function\n    Properties:\n      CodeUri: functions/f/\n"
	tests := []struct {
		name, text string
		params     map[string]string
		want       string
	}{
		{name: "unknown resource type", text: "Resources:\n  A:\n    Type: AWS::Kinesis::Stream\n", want: "template.yaml:2: A is a AWS::Kinesis::Stream"},
		{name: "unknown property", text: function + "      Layers: [x]\n", want: "template.yaml:6: property AWS::Serverless::Function.Layers of F is not honoured"},
		{name: "unknown nested property", text: "Resources:\n  Q:\n    Type: AWS::SQS::Queue\n    Properties:\n      RedrivePolicy:\n        colour: red\n        deadLetterTargetArn: !GetAtt Q.Arn\n        maxReceiveCount: 2\n", want: "template.yaml:6: property AWS::SQS::Queue.RedrivePolicy.colour of Q"},
		{name: "unknown section", text: "Rules: {}\nResources: {}\n", want: "template.yaml:1: section Rules"},
		{name: "unknown attribute", text: "Resources:\n  Q:\n    Type: AWS::SQS::Queue\n    CreationPolicy: {}\n", want: "template.yaml:4: attribute CreationPolicy of Q"},
		{name: "unknown function", text: function + "      MemorySize: !Cidr [a, b]\n", want: "template.yaml:6: intrinsic function Cidr"},
		{name: "unknown reference", text: function + "      MemorySize: !Ref Nothing\n", want: `template.yaml:6: nothing in the template is called "Nothing"`},
		{name: "unknown attribute of a resource", text: function + "      Environment: { Variables: { A: !GetAtt F.Colour } }\n", want: "template.yaml:6: Colour of F (AWS::Serverless::Function) has no value"},
		{name: "reference to a cloud-only resource", text: function + "      Environment: { Variables: { A: !Ref Log } }\n  Log: { Type: AWS::Logs::LogGroup }\n", want: "template.yaml:6: Ref of Log (AWS::Logs::LogGroup) has no value"},
		{name: "reference behind a false condition", text: "Conditions: { Off: !Equals [a, b] }\n" + function + "      MemorySize: !Ref Q\n  Q: { Type: AWS::SQS::Queue, Condition: Off }\n", want: "template.yaml:7: Q is used here, but its condition is false"},
		{name: "unknown condition", text: function + "      MemorySize: !If [Maybe, 1, 2]\n", want: `template.yaml:6: unknown condition "Maybe"`},
		{name: "condition in a circle", text: "Conditions: { A: !Condition B, B: !Condition A }\n" + function + "      MemorySize: !If [A, 128, 256]\n", want: "refers to itself"},
		{name: "wrong number", text: function + "      Timeout: soon\n", want: `template.yaml:6: AWS::Serverless::Function.Timeout of F is "soon" but must be a whole number`},
		{name: "other runtime", text: function + "      Runtime: nodejs20.x\n", want: "template.yaml:6: AWS::Serverless::Function.Runtime of F is \"nodejs20.x\""},
		{name: "other code", text: strings.Replace(function, "functions/f/", "src/f", 1), want: `template.yaml:5: CodeUri of F is "src/f"`},
		{name: "unknown event", text: function + "      Events:\n        E:\n          Type: Kinesis\n", want: "template.yaml:8: event type Kinesis of F.E"},
		{name: "cron", text: function + "      Events:\n        E:\n          Type: Schedule\n          Properties:\n            Schedule: cron(0 * * * ? *)\n", want: "template.yaml:10: Schedule of F.E is \"cron(0 * * * ? *)\""},
		{name: "route twice", text: function + "      Events:\n        A: { Type: HttpApi, Properties: { Method: get, Path: /a } }\n        B: { Type: HttpApi, Properties: { Method: GET, Path: /a } }\n", want: "template.yaml:8: route GET /a is already taken by F"},
		{name: "queue outside", text: function + "      Events:\n        E: { Type: SQS, Properties: { Queue: 'arn:aws:sqs:eu-west-1:123456789012:far' } }\n", want: "template.yaml:2: F names queue far"},
		{name: "no stream", text: function + "      Events:\n        E: { Type: DynamoDB, Properties: { StartingPosition: LATEST, Stream: !GetAtt T.StreamArn } }\n  T:\n    Type: AWS::DynamoDB::Table\n    Properties:\n      AttributeDefinitions: [{ AttributeName: pk, AttributeType: S }]\n      KeySchema: [{ AttributeName: pk, KeyType: HASH }]\n", want: "template.yaml:2: F reads the stream of demo-T, which has none"},
		{name: "key without a type", text: "Resources:\n  T:\n    Type: AWS::DynamoDB::Table\n    Properties:\n      KeySchema:\n        - { AttributeName: pk, KeyType: HASH }\n", want: "template.yaml:6: key attribute pk of T has no entry"},
		{name: "headers policy missing", text: "Resources:\n  C:\n    Type: AWS::CloudFront::Distribution\n    Properties: { DistributionConfig: { DefaultCacheBehavior: { ResponseHeadersPolicyId: abc } } }\n", want: "template.yaml:2: C attaches response headers policy abc"},
		{name: "parameter too small", text: "Parameters:\n  Size: { Type: Number, Default: 5, MinValue: 3 }\n" + function, params: map[string]string{"Size": "2"}, want: `template.yaml:2: parameter Size is "2" but must be at least 3`},
		{name: "parameter too large", text: "Parameters:\n  Size: { Type: Number, Default: 5, MaxValue: 9 }\n" + function, params: map[string]string{"Size": "10"}, want: `parameter Size is "10" but must be at most 9`},
		{name: "parameter not a number", text: "Parameters:\n  Size: { Type: Number, Default: 5 }\n" + function, params: map[string]string{"Size": "big"}, want: `parameter Size is "big" but must be a number`},
		{name: "parameter not allowed", text: "Parameters:\n  Mode: { Type: String, Default: a, AllowedValues: [a, b] }\n" + function, params: map[string]string{"Mode": "c"}, want: `parameter Mode is "c" but must be one of a, b`},
		{name: "parameter pattern", text: "Parameters:\n  Mode: { Type: String, Default: a, AllowedPattern: '[a-z]+', ConstraintDescription: lower case }\n" + function, params: map[string]string{"Mode": "X"}, want: `parameter Mode is "X" but must match [a-z]+ (lower case)`},
		{name: "parameter without a value", text: "Parameters:\n  Mode: { Type: String }\n" + function, want: "template.yaml:2: parameter Mode has no default"},
		{name: "parameter type", text: "Parameters:\n  Mode: { Type: AWS::SSM::Parameter::Name, Default: a }\n" + function, want: `template.yaml:2: parameter Mode has type "AWS::SSM::Parameter::Name"`},
		{name: "unknown parameter", text: "Parameters:\n  Mode: { Type: String, Default: a }\n" + function, params: map[string]string{"Moed": "x"}, want: "unknown parameter Moed: template.yaml declares Mode"},
		{name: "no YAML", text: "Resources: [", want: "template.yaml: not valid YAML"},
		{name: "empty", text: "", want: "template.yaml:1: the template is empty"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			opt := testOptions
			opt.Params = test.params
			_, err := Parse("template.yaml", []byte(test.text), opt)
			if err == nil {
				t.Fatal("no problem was found")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := Parse("template.yaml", []byte("Resources:\n  A: { Type: AWS::X::Y }\n  B: { Type: AWS::X::Z }\n"), testOptions)
	if err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("want two lines, got %v", err)
	}
}

func TestGlobals(t *testing.T) {
	t.Parallel()
	tpl := parse(t, `
Globals:
  Function:
    Timeout: 9
    MemorySize: 256
    Environment: { Variables: { A: one, B: two } }
Resources:
  AFunction:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: .
      MemorySize: 512
      Environment: { Variables: { B: three } }
  LongNameFunction:
    Type: AWS::Serverless::Function
    Properties: { CodeUri: . , FunctionName: given }
`, nil)
	a, b := tpl.Functions[0], tpl.Functions[1]
	if a.TimeoutSeconds != 9 || a.MemoryMB != 512 || !reflect.DeepEqual(a.Env, map[string]string{"A": "one", "B": "three"}) {
		t.Errorf("globals were merged to %+v", a)
	}
	if a.Folder != "a" || b.Folder != "long-name" || b.Name != "given" {
		t.Errorf("folders and names are %s, %s, %s", a.Folder, b.Folder, b.Name)
	}
}

func TestViews(t *testing.T) {
	t.Parallel()
	tpl := parse(t, `
Resources:
  Api:
    Type: AWS::Serverless::HttpApi
    Properties:
      DefaultRouteSettings: { ThrottlingRateLimit: 10, ThrottlingBurstLimit: 20 }
      CorsConfiguration: { AllowOrigins: ["https://a.example"], AllowMethods: [GET], AllowHeaders: [x], MaxAge: 5 }
  Table:
    Type: AWS::DynamoDB::Table
    Properties:
      AttributeDefinitions: [{ AttributeName: pk, AttributeType: S }, { AttributeName: n, AttributeType: N }]
      KeySchema: [{ AttributeName: pk, KeyType: HASH }, { AttributeName: n, KeyType: RANGE }]
      GlobalSecondaryIndexes:
        - { IndexName: by-n, KeySchema: [{ AttributeName: n, KeyType: HASH }], Projection: { ProjectionType: INCLUDE, NonKeyAttributes: [a] } }
      TimeToLiveSpecification: { AttributeName: ttl, Enabled: true }
      StreamSpecification: { StreamViewType: NEW_AND_OLD_IMAGES }
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true }
  Bucket:
    Type: AWS::S3::Bucket
    Properties:
      CorsConfiguration: { CorsRules: [{ AllowedOrigins: ["*"], AllowedMethods: [PUT], MaxAge: 60 }] }
      NotificationConfiguration:
        QueueConfigurations:
          - { Event: "s3:ObjectCreated:*", Queue: !GetAtt Work.Arn, Filter: { S3Key: { Rules: [{ Name: prefix, Value: in/ }, { Name: suffix, Value: .x }] } } }
  Work:
    Type: AWS::SQS::Queue
    Properties: { VisibilityTimeout: 60, DelaySeconds: 1, RedrivePolicy: { deadLetterTargetArn: !GetAtt Dead.Arn, maxReceiveCount: 3 } }
  Dead: { Type: AWS::SQS::Queue, Properties: { MessageRetentionPeriod: 1209600 } }
  Headers:
    Type: AWS::CloudFront::ResponseHeadersPolicy
    Properties:
      ResponseHeadersPolicyConfig:
        Name: n
        SecurityHeadersConfig:
          ContentTypeOptions: { Override: true }
          ContentSecurityPolicy: { ContentSecurityPolicy: "default-src 'none'", Override: true }
          StrictTransportSecurity: { AccessControlMaxAgeSec: 7, IncludeSubdomains: true, Override: true }
        CustomHeadersConfig: { Items: [{ Header: X-A, Value: b, Override: true }] }
  Cdn:
    Type: AWS::CloudFront::Distribution
    Properties: { DistributionConfig: { DefaultCacheBehavior: { ResponseHeadersPolicyId: !Ref Headers } } }
  WorkFunction:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: functions/work
      ReservedConcurrentExecutions: 2
      Policies: [{ Version: "2012-10-17", Statement: [{ Effect: Allow, Action: "s3:ListBucket", Resource: "*" }] }]
      Events:
        Get: { Type: HttpApi, Properties: { ApiId: !Ref Api, Method: get, Path: "/a/{id}" } }
        Any: { Type: HttpApi, Properties: { ApiId: !Ref Api, Method: any, Path: $default, TimeoutInMillis: 5000 } }
        Queue:
          Type: SQS
          Properties: { Queue: !GetAtt Work.Arn, BatchSize: 5, MaximumBatchingWindowInSeconds: 2, ScalingConfig: { MaximumConcurrency: 3 }, FunctionResponseTypes: [ReportBatchItemFailures], FilterCriteria: { Filters: [{ Pattern: '{"body":["a"]}' }] } }
        Stream:
          Type: DynamoDB
          Properties: { Stream: !GetAtt Table.StreamArn, StartingPosition: LATEST, BatchSize: 7, BisectBatchOnFunctionError: true, MaximumRetryAttempts: 4, MaximumRecordAgeInSeconds: 60, DestinationConfig: { OnFailure: { Type: SQS, Destination: !GetAtt Dead.Arn } } }
        Rule: { Type: Schedule, Properties: { Schedule: rate(5 minutes), Enabled: false } }
        Tick: { Type: ScheduleV2, Properties: { ScheduleExpression: rate(1 hour), Name: hourly, Input: '{"a":1}' } }
`, nil)
	fn := tpl.Functions[0]
	check := func(what string, got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n got %+v\nwant %+v", what, got, want)
		}
	}
	check("routes", fn.Routes, []Route{{"GET", "/a/{id}", 30000}, {"ANY", "$default", 5000}})
	check("queue source", fn.Queues, []QueueSource{{ID: "WorkFunctionQueue", Queue: "demo-Work", BatchSize: 5, WindowSeconds: 2, MaxConcurrency: 3, PartialFailures: true, Filters: []string{`{"body":["a"]}`}}})
	check("stream source", fn.Streams, []StreamSource{{ID: "WorkFunctionStream", Table: "demo-Table", Latest: true, BatchSize: 7, Bisect: true, MaxRetries: 4, MaxAgeSeconds: 60, OnFailure: "demo-Dead"}})
	check("schedules", fn.Schedules, []Schedule{{ID: "WorkFunctionRule", Seconds: 300, Disabled: true}, {ID: "WorkFunctionTick", Name: "hourly", Seconds: 3600, Input: `{"a":1}`, Scheduler: true}})
	check("concurrency and list", []any{fn.Concurrency, fn.ListsBucket}, []any{2, true})
	check("table", tpl.Tables, []Table{{ID: "Table", Name: "demo-Table", PartitionKey: Key{"pk", "S"}, SortKey: Key{"n", "N"}, TTLAttribute: "ttl", StreamView: "NEW_AND_OLD_IMAGES",
		Indexes: []Index{{Name: "by-n", PartitionKey: Key{"n", "N"}, Projection: "INCLUDE", NonKey: []string{"a"}}}}})
	check("bucket", tpl.Buckets, []Bucket{{ID: "Bucket", Name: "demo-bucket", Notifications: []Notification{{Queue: "demo-Work", Prefix: "in/", Suffix: ".x"}},
		CORS: []BucketCORS{{Origins: []string{"*"}, Methods: []string{"PUT"}, MaxAgeSeconds: 60}}}})
	check("queues", tpl.Queues, []Queue{
		{ID: "Work", Name: "demo-Work", VisibilitySeconds: 60, RetentionSeconds: 345600, DelaySeconds: 1, DeadLetter: "demo-Dead", MaxReceives: 3},
		{ID: "Dead", Name: "demo-Dead", VisibilitySeconds: 30, RetentionSeconds: 1209600}})
	check("content", tpl.Content, &Content{ID: "Cdn", Headers: []Header{
		{"X-Content-Type-Options", "nosniff"}, {"Content-Security-Policy", "default-src 'none'"},
		{"Strict-Transport-Security", "max-age=7; includeSubDomains"}, {"X-A", "b"}}})
	check("API", tpl.API, &API{ID: "Api", Rate: 10, Burst: 20, CORS: &CORS{Origins: []string{"https://a.example"}, Methods: []string{"GET"}, Headers: []string{"x"}, MaxAgeSeconds: 5}})
	var skipped []string
	for _, s := range tpl.Skipped {
		skipped = append(skipped, s.What)
	}
	check("skipped", skipped, []string{"Table.PointInTimeRecoverySpecification", "WorkFunction.Policies"})
}

// TestProjectTemplate reads the template that this stack is for.
func TestProjectTemplate(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "..", "template.yaml")
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path, testOptions); err != nil {
		t.Error(err)
	}
}

func TestCloudOnlyHasReasons(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, e := range CloudOnly {
		if e.Reason == "" || seen[e.Path] {
			t.Errorf("%s has no reason or stands twice", e.Path)
		}
		seen[e.Path] = true
	}
}
