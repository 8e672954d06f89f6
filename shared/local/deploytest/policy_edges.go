package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// denials is what the bucket policy must refuse, by Sid: principal, action, resources and condition.
var denials = map[string]string{
	"DenyInsecureTransport": "* s3:* [${Bucket.Arn} ${Bucket.Arn}/*] map[Bool:map[aws:SecureTransport:false]]",
	"DenyOldTLS":            "* s3:* [${Bucket.Arn} ${Bucket.Arn}/*] map[NumericLessThan:map[s3:TlsVersion:1.2]]",
	"DenyOverwriteOfStaged": "* s3:PutObject [${Bucket.Arn}/staging/*] map[Null:map[s3:if-none-match:true]]",
	"DenyOldSignatures":     "* s3:* [${Bucket.Arn}/*] map[NumericGreaterThan:map[s3:signatureAge:3900000]]",
	"DenyPresignRoleUnlessQueryString": "map[AWS:${PresignRole.Arn}] s3:* [${Bucket.Arn} ${Bucket.Arn}/*] " +
		"map[StringNotEquals:map[s3:authType:REST-QUERY-STRING]]",
}

func bucket(t *template) (p problems) {
	for _, b := range t.of("AWS::S3::Bucket") {
		for _, k := range []string{"BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"} {
			p.need(b, "true", "PublicAccessBlockConfiguration", k)
		}
		p.need(b, "[map[ObjectOwnership:BucketOwnerEnforced]]", "OwnershipControls", "Rules")
		for _, q := range list(b.Properties, "NotificationConfiguration", "QueueConfigurations") {
			if got := str(q, "Filter", "S3Key", "Rules"); got != "[map[Name:prefix Value:staging/]]" {
				p.addf("%s: notifies of %s: copies into files/ would wake their own function", b.ID, got)
			}
		}
		for _, rule := range list(b.Properties, "LifecycleConfiguration", "Rules") {
			if at(rule, "ExpirationInDays") != nil && str(rule, "Prefix") != "staging/" {
				p.addf("%s: lifecycle rule %s removes sealed objects", b.ID, str(rule, "Id"))
			}
		}
	}
	wanted := maps.Clone(denials)
	for _, policy := range t.of("AWS::S3::BucketPolicy") {
		for _, s := range statements(policy) {
			sid := str(s.body, "Sid")
			if str(s.body, "Effect") != "Deny" {
				p.addf("%s: %s allows something: grants belong to roles", policy.ID, sid)
			}
			got := fmt.Sprint(at(s.body, "Principal"), " ", str(s.body, "Action"), " ", texts(s.body, "Resource"), " ", at(s.body, "Condition"))
			if got != wanted[sid] {
				p.addf("%s: %s is\n      %s\n    want\n      %s", policy.ID, sid, got, wanted[sid])
			}
			delete(wanted, sid)
		}
	}
	for _, sid := range slices.Sorted(maps.Keys(wanted)) {
		p.addf("the bucket policy lacks %s", sid)
	}
	return p
}

// routes reads the OpenAPI document that SAM makes of all HttpApi events.
func routes(t *template) (p problems) {
	permitted := map[string]string{} // "GET/healthz" -> function
	for _, r := range t.of("AWS::Lambda::Permission") {
		source := str(r.Properties, "SourceArn")
		p.need(r, "apigateway.amazonaws.com", "Principal")
		p.need(r, "lambda:InvokeFunction", "Action")
		_, path, ok := strings.Cut(source, ":${Api}/*/")
		if !ok {
			p.addf("%s: the source is %q, not a route of the API", r.ID, source)
		}
		permitted[path] = referred(str(r.Properties, "FunctionName"))
	}
	found := 0
	for _, api := range t.of("AWS::ApiGatewayV2::Api") {
		paths, _ := at(api.Properties, "Body", "paths").(map[string]any)
		for path, methods := range paths {
			methods, _ := methods.(map[string]any)
			for method, route := range methods {
				found++
				name := strings.ToUpper(method) + wildcards(path)
				if path == "$default" {
					name = "*" // any path that no other route has
				}
				integration := at(route, "x-amazon-apigateway-integration")
				uri := str(integration, "uri")
				_, function, _ := strings.Cut(uri, "/functions/${")
				function = referred("${" + strings.TrimSuffix(function, "}/invocations"))
				if t.Resources[function].Type != "AWS::Lambda::Function" || str(integration, "payloadFormatVersion") != "2.0" {
					p.addf("%s %s: leads to %s with payload format %s", method, path, uri, str(integration, "payloadFormatVersion"))
				}
				if permitted[name] != function {
					p.addf("%s: leads to %s, but the API may call %q there", name, function, permitted[name])
				}
				delete(permitted, name)
			}
		}
		if paths["$default"] == nil {
			p.addf("%s: no $default route: unknown routes would be answered by the gateway", api.ID)
		}
	}
	if found == 0 {
		p.addf("the API has no routes")
	}
	for name, function := range permitted {
		p.addf("the API may call %s for %s, which is no route", function, name)
	}
	return p
}

// wildcards is a path as permissions write it, with * for each parameter.
func wildcards(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if strings.HasPrefix(part, "{") {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, "/")
}

// named is where a type carries a physical name that is one of a kind in an account.
var named = map[string][]string{
	"AWS::Lambda::Function":                  {"FunctionName"},
	"AWS::IAM::Role":                         {"RoleName"},
	"AWS::IAM::ManagedPolicy":                {"ManagedPolicyName"},
	"AWS::DynamoDB::Table":                   {"TableName"},
	"AWS::S3::Bucket":                        {"BucketName"},
	"AWS::SQS::Queue":                        {"QueueName"},
	"AWS::Logs::LogGroup":                    {"LogGroupName"},
	"AWS::Scheduler::Schedule":               {"Name"},
	"AWS::Events::Rule":                      {"Name"},
	"AWS::CloudWatch::Alarm":                 {"AlarmName"},
	"AWS::CloudFront::CachePolicy":           {"CachePolicyConfig", "Name"},
	"AWS::CloudFront::ResponseHeadersPolicy": {"ResponseHeadersPolicyConfig", "Name"},
}

func names(t *template) (p problems) {
	for _, id := range slices.Sorted(maps.Keys(t.Resources)) {
		r := t.Resources[id]
		path, ok := named[r.Type]
		if !ok {
			continue
		}
		if name := str(r.Properties, path...); name != "" && !strings.Contains(name, "${AWS::StackName}") {
			p.addf("%s: is called %s in every stack, so an account could have only one", r.ID, name)
		}
	}
	return p
}
