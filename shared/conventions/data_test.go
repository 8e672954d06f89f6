package conventions

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestDataOutlivesTheStack(t *testing.T) {
	t.Parallel()
	tr := load(t)
	// A failed first deployment must not leave the bucket, whose name the next one needs. The table has a name of its own
	// each time, and its protection would make such a clean-up fail.
	for kind, deletion := range map[string]string{table: "Retain", bucket: "RetainExceptOnCreate"} {
		for _, r := range tr.resources(t, kind) {
			for k, w := range map[string]string{"DeletionPolicy": deletion, "UpdateReplacePolicy": "Retain"} {
				if got := str(r.whole, k); got != w {
					t.Errorf("%s: %s is %q, want %s", r.id, k, got, w)
				}
			}
		}
	}
}

// want checks properties, written as dotted paths, against what %v prints for them.
func want(t *testing.T, r resource, values map[string]string) {
	t.Helper()
	for path, w := range values {
		if got := str(r.props, strings.Split(path, ".")...); got != w {
			t.Errorf("%s: %s is %q, want %q", r.id, path, got, w)
		}
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	tb := load(t).one(t, table, "Table")
	want(t, tb, map[string]string{
		"BillingMode":                                                 "PAY_PER_REQUEST",
		"TimeToLiveSpecification.AttributeName":                       "ttl",
		"TimeToLiveSpecification.Enabled":                             "true",
		"StreamSpecification.StreamViewType":                          "NEW_AND_OLD_IMAGES",
		"PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled": "true",
		"SSESpecification.SSEEnabled":                                 "true",
		"DeletionProtectionEnabled":                                   "${TableDeletionProtection}",
		"KeySchema":                                                   "[map[AttributeName:pk KeyType:HASH] map[AttributeName:sk KeyType:RANGE]]",
	})
	indexes := map[string]string{}
	for _, i := range maps(tb.props, "GlobalSecondaryIndexes") {
		indexes[str(i, "IndexName")] = str(i, "KeySchema") + " " + str(i, "Projection", "ProjectionType")
	}
	wanted := map[string]string{
		"by-account": "[map[AttributeName:list_pk KeyType:HASH] map[AttributeName:list_sk KeyType:RANGE]] ALL",
		"by-expiry":  "[map[AttributeName:due_pk KeyType:HASH] map[AttributeName:sk KeyType:RANGE]] ALL",
	}
	if fmt.Sprint(indexes) != fmt.Sprint(wanted) {
		t.Errorf("indexes of the table are %v, want %v", indexes, wanted)
	}
}

func TestBucket(t *testing.T) {
	t.Parallel()
	b := load(t).one(t, bucket, "Bucket")
	want(t, b, map[string]string{
		"PublicAccessBlockConfiguration":                     "map[BlockPublicAcls:true BlockPublicPolicy:true IgnorePublicAcls:true RestrictPublicBuckets:true]",
		"OwnershipControls.Rules":                            "[map[ObjectOwnership:BucketOwnerEnforced]]",
		"BucketEncryption.ServerSideEncryptionConfiguration": "[map[ServerSideEncryptionByDefault:map[SSEAlgorithm:AES256]]]",
		// The queue policy names the bucket by this very string.
		"BucketName": "${AWS::StackName}-${AWS::AccountId}-${AWS::Region}",
		// Versions would keep what was deleted.
		"VersioningConfiguration": "",
	})
	aborts := false
	for _, rule := range maps(b.props, "LifecycleConfiguration", "Rules") {
		if str(rule, "AbortIncompleteMultipartUpload", "DaysAfterInitiation") != "" {
			aborts = true
		}
		for key := range rule {
			if (strings.HasPrefix(key, "Expiration") || strings.HasPrefix(key, "Transition")) && str(rule, "Prefix") != "staging/" {
				t.Errorf("lifecycle rule %s touches more than staging/: what lives in files/ is for the records to say", str(rule, "Id"))
			}
		}
	}
	if !aborts {
		t.Error("no lifecycle rule aborts unfinished multipart uploads")
	}
	for _, rule := range maps(b.props, "CorsConfiguration", "CorsRules") {
		if str(rule, "AllowedOrigins") != "${CorsAllowedOrigins}" || str(rule, "AllowedMethods") != "[PUT GET HEAD]" {
			t.Errorf("CORS allows %v from %v, want PUT, GET and HEAD from CorsAllowedOrigins", rule["AllowedMethods"], rule["AllowedOrigins"])
		}
	}
	notified := maps(b.props, "NotificationConfiguration", "QueueConfigurations")
	if len(notified) != 1 || len(b.props["NotificationConfiguration"].(map[string]any)) != 1 {
		t.Fatalf("the bucket notifies %v, want one queue and nothing else", b.props["NotificationConfiguration"])
	}
	if got := fmt.Sprint(notified[0]); got != "map[Event:s3:ObjectCreated:* Filter:map[S3Key:map[Rules:[map[Name:prefix Value:staging/]]]] Queue:${VerifyQueue.Arn}]" {
		t.Errorf("the notification is %s: anything but staging/ makes verification wake itself", got)
	}
	if !contains(list(b.whole, "DependsOn"), "VerifyQueuePolicy") {
		t.Error("the bucket must wait for the queue policy: S3 tries the queue when the notification is set")
	}
}

// The bucket policy closes what a presigned URL leaves open. Each entry is a way in that somebody found.
func TestBucketPolicyIsComplete(t *testing.T) {
	t.Parallel()
	const everything = "[${Bucket.Arn} ${Bucket.Arn}/*]"
	wanted := map[string]string{
		"DenyInsecureTransport":            "* s3:* " + everything + " map[Bool:map[aws:SecureTransport:false]]",
		"DenyOldTLS":                       "* s3:* " + everything + " map[NumericLessThan:map[s3:TlsVersion:1.2]]",
		"DenyOverwriteOfStaged":            "* s3:PutObject ${Bucket.Arn}/staging/* map[Null:map[s3:if-none-match:true]]",
		"DenyOldSignatures":                "* s3:* ${Bucket.Arn}/* map[NumericGreaterThan:map[s3:signatureAge:3900000]]",
		"DenyPresignRoleUnlessQueryString": "map[AWS:${PresignRole.Arn}] s3:* " + everything + " map[StringNotEquals:map[s3:authType:REST-QUERY-STRING]]",
	}
	p := load(t).one(t, "AWS::S3::BucketPolicy", "BucketPolicy")
	if str(p.props, "Bucket") != "${Bucket}" {
		t.Errorf("the policy belongs to %s", str(p.props, "Bucket"))
	}
	for _, s := range maps(p.props, "PolicyDocument", "Statement") {
		sid := str(s, "Sid")
		if str(s, "Effect") != "Deny" {
			t.Errorf("%s: the bucket policy only denies, roles allow", sid)
		}
		if got := fmt.Sprint(s["Principal"], " ", s["Action"], " ", s["Resource"], " ", s["Condition"]); got != wanted[sid] {
			t.Errorf("statement %s is\n%s\nwant\n%s", sid, got, wanted[sid])
		}
		delete(wanted, sid)
	}
	for sid := range wanted {
		t.Errorf("the bucket policy lacks %s", sid)
	}
}

func TestEveryQueueHasDeadLettersAndAnAlarm(t *testing.T) {
	t.Parallel()
	tr := load(t)
	queues := tr.resources(t, queue)
	last := map[string]bool{} // queues that others give up to
	for _, q := range queues {
		if target := str(q.props, "RedrivePolicy", "deadLetterTargetArn"); target != "" {
			last[unref(target)] = true
		}
	}
	for _, q := range queues {
		if str(q.props, "SqsManagedSseEnabled") != "true" {
			t.Errorf("%s is not encrypted", q.id)
		}
		if last[q.id] {
			if !alarmOn(t, tr, "ApproximateNumberOfMessagesVisible", "${"+q.id+".QueueName}") {
				t.Errorf("%s: nobody hears of dead letters without an alarm on its depth", q.id)
			}
			if num(q.props, "MessageRetentionPeriod") != 1209600 {
				t.Errorf("%s: dead letters are kept as long as SQS can, 1209600 s", q.id)
			}
			continue
		}
		target := unref(str(q.props, "RedrivePolicy", "deadLetterTargetArn"))
		if target == "" {
			t.Errorf("%s has no dead-letter queue: a message that never succeeds would be lost", q.id)
			continue
		}
		tr.one(t, queue, target)
		if n := num(q.props, "RedrivePolicy", "maxReceiveCount"); n < 3 {
			t.Errorf("%s gives up after %d attempts, want at least 3", q.id, n)
		}
		if !alarmOn(t, tr, "ApproximateAgeOfOldestMessage", "${"+q.id+".QueueName}") {
			t.Errorf("%s: nobody hears of a queue that stands still without an alarm on its oldest message", q.id)
		}
	}
}

func alarmOn(t *testing.T, tr tree, metric, dimension string) bool {
	t.Helper()
	for _, a := range tr.resources(t, alarm) {
		if str(a.props, "MetricName") != metric {
			continue
		}
		for _, d := range maps(a.props, "Dimensions") {
			if str(d, "Value") == dimension {
				return true
			}
		}
	}
	return false
}

func TestAlarmsReachTheTopic(t *testing.T) {
	t.Parallel()
	tr := load(t)
	for _, a := range tr.resources(t, alarm) {
		for _, k := range []string{"AlarmActions", "OKActions"} {
			if got := str(a.props, k); got != "map[Fn::If:[HasAlarmTopic [${AlarmTopicArn}] ${AWS::NoValue}]]" {
				t.Errorf("%s: %s is %s", a.id, k, got)
			}
		}
		if str(a.props, "TreatMissingData") != "notBreaching" {
			t.Errorf("%s: no traffic is no alarm", a.id)
		}
	}
	if !alarmOn(t, tr, "5xx", "${Api}") || !alarmOn(t, tr, "Errors", "${VerifyUploadFunction}") {
		t.Error("failing functions raise no alarm")
	}
}

func TestDownloadsAreInertAndUncached(t *testing.T) {
	t.Parallel()
	tr := load(t)
	d := tr.one(t, distrib, "ContentDistribution")
	behavior := at(d.props, "DistributionConfig", "DefaultCacheBehavior")
	for k, w := range map[string]string{
		"ViewerProtocolPolicy": "https-only", "AllowedMethods": "[GET HEAD]", "Compress": "false",
		"CachePolicyId": "${ContentCachePolicy}", "ResponseHeadersPolicyId": "${ContentHeadersPolicy}",
		// Forwarding Host or Authorization would break every signature.
		"OriginRequestPolicyId": "",
	} {
		if got := str(behavior, k); got != w {
			t.Errorf("ContentDistribution: %s is %q, want %q", k, got, w)
		}
	}
	origins := maps(d.props, "DistributionConfig", "Origins")
	if len(origins) != 1 || str(origins[0], "DomainName") != "${Bucket.RegionalDomainName}" {
		t.Errorf("origins are %v, want the regional host of the bucket, which is what links sign", origins)
	}
	for _, o := range origins {
		if str(o, "OriginAccessControlId") != "" || str(o, "S3OriginConfig", "OriginAccessIdentity") != "" {
			t.Error("an origin identity would sign over the presigned query")
		}
	}
	if got := str(d.props, "DistributionConfig", "ViewerCertificate"); !strings.Contains(got, "TLSv1.2_2021") {
		t.Errorf("ViewerCertificate is %s: want TLSv1.2_2021 on an own domain", got)
	}
	errors := map[string]bool{}
	for _, e := range maps(d.props, "DistributionConfig", "CustomErrorResponses") {
		errors[str(e, "ErrorCode")] = num(e, "ErrorCachingMinTTL") == 0
	}
	for _, code := range []string{"400", "403", "404", "405", "414", "416", "500", "501", "502", "503", "504"} {
		if !errors[code] {
			t.Errorf("CloudFront would keep a %s for 10 seconds: set its ErrorCachingMinTTL to 0", code)
		}
	}
	c := tr.one(t, cachePol, "ContentCachePolicy")
	want(t, c, map[string]string{
		"CachePolicyConfig.MinTTL": "0", "CachePolicyConfig.DefaultTTL": "0", "CachePolicyConfig.MaxTTL": "1",
		"CachePolicyConfig.ParametersInCacheKeyAndForwardedToOrigin.QueryStringsConfig.QueryStringBehavior": "all",
		"CachePolicyConfig.ParametersInCacheKeyAndForwardedToOrigin.HeadersConfig.HeaderBehavior":           "none",
		"CachePolicyConfig.ParametersInCacheKeyAndForwardedToOrigin.CookiesConfig.CookieBehavior":           "none",
	})
	h := tr.one(t, headerPol, "ContentHeadersPolicy")
	const security = "ResponseHeadersPolicyConfig.SecurityHeadersConfig."
	want(t, h, map[string]string{
		security + "ContentTypeOptions":      "map[Override:true]",
		security + "ContentSecurityPolicy":   "map[ContentSecurityPolicy:default-src 'none'; sandbox Override:true]",
		security + "ReferrerPolicy":          "map[Override:true ReferrerPolicy:no-referrer]",
		security + "StrictTransportSecurity": "map[AccessControlMaxAgeSec:31536000 IncludeSubdomains:false Override:true]",
	})
}

// The defaults are the contract's, and CloudFormation refuses what the code could not keep.
func TestParametersAreTheLimitsOfTheContract(t *testing.T) {
	t.Parallel()
	tr := load(t)
	for name, w := range map[string][3]string{ // default, least, most
		"MaxFileBytes":          {"104857600", "1", "5368709120"},
		"InlineMaxBytes":        {"4194304", "1", "4194304"},
		"AccountMaxLiveBytes":   {"2147483648", "1", ""},
		"ActorMaxReservations":  {"50", "1", ""},
		"FileTTLSeconds":        {"86400", "1", ""},
		"SingleUseTTLSeconds":   {"3600", "1", ""},
		"ReservationTTLSeconds": {"3600", "1", ""},
		"UploadURLSeconds":      {"900", "1", "2700"},
		"LinkTTLSeconds":        {"900", "1", "2700"},
		"ClaimLeaseSeconds":     {"300", "1", ""},
		"HandlePrefix":          {"claim://", "", ""},
		"MetaKey":               {"dev.claimcheck/files", "", ""},
		"ContentDomain":         {"", "", ""},
	} {
		p := at(tr, "Parameters", name)
		if p == nil {
			t.Errorf("template.yaml has no parameter %s", name)
			continue
		}
		if got := [3]string{str(p, "Default"), str(p, "MinValue"), str(p, "MaxValue")}; got != w {
			t.Errorf("%s has default, least and most %q, want %q", name, got, w)
		}
	}
	params, _ := tr["Parameters"].(map[string]any)
	for name, p := range params {
		if str(p, "Description") == "" {
			t.Errorf("parameter %s has no Description", name)
		}
		for _, k := range []string{"Default", "MinValue", "MaxValue"} {
			if n, ok := at(p, k).(int); ok && n >= 1_000_000 {
				t.Errorf("parameter %s: quote its %s, or a tool on the way may write it with an exponent", name, k)
			}
		}
	}

	// A signature is refused before the session that made it could be renewed into a longer life, and never while a
	// URL is still promised.
	role := tr.one(t, "AWS::IAM::Role", "PresignRole")
	session := num(role.props, "MaxSessionDuration")
	var age int
	for _, s := range maps(tr.one(t, "AWS::S3::BucketPolicy", "BucketPolicy").props, "PolicyDocument", "Statement") {
		if v := str(s, "Condition", "NumericGreaterThan", "s3:signatureAge"); v != "" {
			age, _ = strconv.Atoi(v)
		}
	}
	longest := max(num(params, "UploadURLSeconds", "MaxValue"), num(params, "LinkTTLSeconds", "MaxValue"))
	if times := []int{longest, session, age / 1000}; !slices.IsSorted(times) || longest <= 0 {
		t.Errorf("longest URL, session and oldest signature are %v s, want them in that order", times)
	}
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	tr := load(t)
	for _, name := range []string{"ApiUrl", "ContentDomain", "BucketName", "TableName", "IssueKeyFunctionName", "VerifyQueueUrl", "VerifyDeadLetterQueueUrl", "FirstOwnerKeyCommand"} {
		if str(tr, "Outputs", name, "Value") == "" {
			t.Errorf("template.yaml has no output %s", name)
		}
	}
}
