package template

import "strings"

// CloudOnlyEntry is something a template may say that the local stack leaves alone.
type CloudOnlyEntry struct {
	// Path is a resource type, or a type and a property path joined by dots. It
	// covers everything below it.
	Path string
	// Reason says why the local stack can do without.
	Reason string
}

// CloudOnly is the complete list of what the template may say without effect in
// the local stack. Whatever stands neither here nor in the views of this package
// is an error.
var CloudOnly = []CloudOnlyEntry{
	{"Metadata", "describes the template to tools"},
	{"Outputs", "printed by sam deploy; the local stack prints its own addresses"},

	{"AWS::CloudWatch::Alarm", "nobody is paged for a laptop; failures are on stderr"},
	{"AWS::CloudWatch::CompositeAlarm", "nobody is paged for a laptop; failures are on stderr"},
	{"AWS::CloudWatch::Dashboard", "there are no metrics to draw"},
	{"AWS::Logs::LogGroup", "logs go to stderr"},
	{"AWS::Logs::MetricFilter", "there are no metrics"},
	{"AWS::SNS::Topic", "only alarms publish to it"},
	{"AWS::SNS::TopicPolicy", "only alarms publish to it"},
	{"AWS::SNS::Subscription", "only alarms publish to it"},
	{"AWS::IAM::Policy", "permissions are not modelled"},
	{"AWS::IAM::ManagedPolicy", "permissions are not modelled"},
	{"AWS::Lambda::Permission", "permissions are not modelled"},
	{"AWS::S3::BucketPolicy", "permissions are not modelled"},
	{"AWS::SQS::QueuePolicy", "permissions are not modelled"},
	{"AWS::CertificateManager::Certificate", "the content host is plain HTTP on loopback"},
	{"AWS::Route53::RecordSet", "the content host has no name"},
	{"AWS::ApiGatewayV2::DomainName", "the API has no name of its own"},
	{"AWS::ApiGatewayV2::ApiMapping", "the API has no name of its own"},
	{"AWS::CloudFront::CachePolicy", "the content host caches nothing, as the distribution"},
	{"AWS::CloudFront::OriginRequestPolicy", "the content host passes the query through and drops Authorization, as the distribution"},

	{kindFunction + ".Architectures", "the binary is built for this machine"},
	{kindFunction + ".AutoPublishAlias", "the source on disk is the only version"},
	{kindFunction + ".DeploymentPreference", "the source on disk is the only version"},
	{kindFunction + ".Description", "for people"},
	{kindFunction + ".EphemeralStorage", "the disk is this machine's"},
	{kindFunction + ".LoggingConfig", "logs go to stderr"},
	{kindFunction + ".PermissionsBoundary", "permissions are not modelled"},
	{kindFunction + ".Policies", "permissions are not modelled, except that s3:ListBucket makes a missing object a 404"},
	{kindFunction + ".PropagateTags", "there is nothing to tag"},
	{kindFunction + ".RecursiveLoop", "the loop detector belongs to the cloud"},
	{kindFunction + ".Role", "permissions are not modelled"},
	{kindFunction + ".RolePath", "permissions are not modelled"},
	{kindFunction + ".RuntimeManagementConfig", "the binary brings its runtime along"},
	{kindFunction + ".Tags", "there is nothing to tag"},
	{kindFunction + ".Tracing", "there is no X-Ray daemon"},
	{kindFunction + ".Events.SQS.MetricsConfig", "there are no metrics"},
	{kindFunction + ".Events.DynamoDB.MetricsConfig", "there are no metrics"},
	{kindFunction + ".Events.DynamoDB.ParallelizationFactor", "one shard is read in order, which any factor permits"},
	{kindFunction + ".Events.Schedule.Description", "for people"},
	{kindFunction + ".Events.Schedule.DeadLetterConfig", "a schedule calls the function directly, there is no delivery to fail"},
	{kindFunction + ".Events.Schedule.RetryPolicy", "a schedule calls the function directly, there is no delivery to fail"},
	{kindFunction + ".Events.ScheduleV2.Description", "for people"},
	{kindFunction + ".Events.ScheduleV2.DeadLetterConfig", "a schedule calls the function directly, there is no delivery to fail"},
	{kindFunction + ".Events.ScheduleV2.RetryPolicy", "a schedule calls the function directly, there is no delivery to fail"},
	{kindFunction + ".Events.ScheduleV2.OmitName", "schedules of this stack meet no others"},
	{kindFunction + ".Events.ScheduleV2.FlexibleTimeWindow", "calls come at the rate itself, which every window permits"},
	{kindFunction + ".Events.ScheduleV2.PermissionsBoundary", "permissions are not modelled"},
	{kindFunction + ".Events.ScheduleV2.RoleArn", "permissions are not modelled"},

	{kindAPI + ".AccessLogSettings", "the access log goes to stderr"},
	{kindAPI + ".DefaultRouteSettings.DetailedMetricsEnabled", "there are no metrics"},
	{kindAPI + ".Description", "for people"},
	{kindAPI + ".DisableExecuteApiEndpoint", "the API has no name of its own"},
	{kindAPI + ".Domain", "the API has no name of its own"},
	{kindAPI + ".FailOnWarnings", "a setting of the deployment"},
	{kindAPI + ".Name", "for people"},
	{kindAPI + ".PropagateTags", "there is nothing to tag"},
	{kindAPI + ".Tags", "there is nothing to tag"},

	{kindTable + ".BillingMode", "the local table has no capacity"},
	{kindTable + ".ContributorInsightsSpecification", "there are no metrics"},
	{kindTable + ".DeletionProtectionEnabled", "no stack deletion removes local data"},
	{kindTable + ".OnDemandThroughput", "the local table has no capacity"},
	{kindTable + ".PointInTimeRecoverySpecification", "copy the data folder to keep a state"},
	{kindTable + ".SSESpecification", "the disk is this machine's"},
	{kindTable + ".TableClass", "a price"},
	{kindTable + ".Tags", "there is nothing to tag"},
	{kindTable + ".WarmThroughput", "the local table has no capacity"},
	{kindTable + ".GlobalSecondaryIndexes.OnDemandThroughput", "the local table has no capacity"},
	{kindTable + ".GlobalSecondaryIndexes.ContributorInsightsSpecification", "there are no metrics"},

	{kindBucket + ".BucketEncryption", "the disk is this machine's"},
	{kindBucket + ".LifecycleConfiguration", "a daily backstop for what the functions already remove"},
	{kindBucket + ".LoggingConfiguration", "every request comes from this machine"},
	{kindBucket + ".OwnershipControls", "there is one owner"},
	{kindBucket + ".PublicAccessBlockConfiguration", "the server listens on loopback and checks every signature"},
	{kindBucket + ".Tags", "there is nothing to tag"},

	{kindQueue + ".KmsMasterKeyId", "the disk is this machine's"},
	{kindQueue + ".KmsDataKeyReusePeriodSeconds", "the disk is this machine's"},
	{kindQueue + ".SqsManagedSseEnabled", "the disk is this machine's"},
	{kindQueue + ".RedriveAllowPolicy", "permissions are not modelled"},
	{kindQueue + ".ReceiveMessageWaitTimeSeconds", "how long a poll waits changes no result"},
	{kindQueue + ".Tags", "there is nothing to tag"},

	{kindRole + ".AssumeRolePolicyDocument", "permissions are not modelled"},
	{kindRole + ".Description", "for people"},
	{kindRole + ".ManagedPolicyArns", "permissions are not modelled"},
	{kindRole + ".Path", "permissions are not modelled"},
	{kindRole + ".PermissionsBoundary", "permissions are not modelled"},
	{kindRole + ".Policies", "permissions are not modelled"},
	{kindRole + ".Tags", "there is nothing to tag"},

	{kindDistribution + ".Tags", "there is nothing to tag"},
	{kindDistribution + ".DistributionConfig.Aliases", "the content host has no name"},
	{kindDistribution + ".DistributionConfig.Comment", "for people"},
	{kindDistribution + ".DistributionConfig.CustomErrorResponses", "errors pass through and are cached nowhere"},
	{kindDistribution + ".DistributionConfig.Enabled", "the content host is up while the stack is"},
	{kindDistribution + ".DistributionConfig.HttpVersion", "loopback speaks HTTP/1.1"},
	{kindDistribution + ".DistributionConfig.IPV6Enabled", "loopback is 127.0.0.1"},
	{kindDistribution + ".DistributionConfig.Logging", "every request comes from this machine"},
	{kindDistribution + ".DistributionConfig.Origins", "the only origin is the local bucket"},
	{kindDistribution + ".DistributionConfig.PriceClass", "a price"},
	{kindDistribution + ".DistributionConfig.Restrictions", "loopback has no geography"},
	{kindDistribution + ".DistributionConfig.ViewerCertificate", "the content host is plain HTTP on loopback"},
	{kindDistribution + ".DistributionConfig.WebACLId", "every request comes from this machine"},
	{kindDistribution + ".DistributionConfig.DefaultCacheBehavior.AllowedMethods", "the content host accepts what a signature permits"},
	{kindDistribution + ".DistributionConfig.DefaultCacheBehavior.CachedMethods", "the content host caches nothing, as the distribution"},
	{kindDistribution + ".DistributionConfig.DefaultCacheBehavior.CachePolicyId", "the content host caches nothing, as the distribution"},
	{kindDistribution + ".DistributionConfig.DefaultCacheBehavior.Compress", "sealed objects are served as they are"},
	{kindDistribution + ".DistributionConfig.DefaultCacheBehavior.OriginRequestPolicyId", "the content host passes the query through and drops Authorization, as the distribution"},
	{kindDistribution + ".DistributionConfig.DefaultCacheBehavior.TargetOriginId", "the only origin is the local bucket"},
	{kindDistribution + ".DistributionConfig.DefaultCacheBehavior.ViewerProtocolPolicy", "the content host is plain HTTP on loopback"},
}

// cloudOnly finds the entry for a path or for what it stands under.
func cloudOnly(path string) (reason string, ok bool) {
	for _, e := range CloudOnly {
		if path == e.Path || strings.HasPrefix(path, e.Path+".") {
			return e.Reason, true
		}
	}
	return "", false
}
