package objects

import (
	"net/url"
	"strings"

	"claimcheck.dev/claimcheck/shared/awsenv"
)

// bucketURL returns where the bucket is, without a trailing slash. AWS is asked by virtual host, except for a name
// with dots, which no certificate covers; any other S3 finds the bucket in the path.
func bucketURL(bucket, region, endpoint string) url.URL {
	if scheme, host, ok := strings.Cut(endpoint, "://"); ok {
		return url.URL{Scheme: scheme, Host: host, Path: "/" + bucket}
	}
	host := awsenv.Host("s3", region)
	if strings.Contains(bucket, ".") {
		return url.URL{Scheme: "https", Host: host, Path: "/" + bucket}
	}
	return url.URL{Scheme: "https", Host: bucket + "." + host}
}
