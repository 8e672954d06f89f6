package objects

import (
	"net/url"
	"strings"
)

// dnsSuffixes are the domains of the regions outside of the commercial and the US government partition, by the start
// of their names.
var dnsSuffixes = []struct{ region, suffix string }{
	{"cn-", "amazonaws.com.cn"},
	{"eusc-", "amazonaws.eu"},
	{"us-iso-", "c2s.ic.gov"},
	{"us-isob-", "sc2s.sgov.gov"},
	{"us-isof-", "csp.hci.ic.gov"},
	{"eu-isoe-", "cloud.adc-e.uk"},
}

func dnsSuffix(region string) string {
	for _, s := range dnsSuffixes {
		if strings.HasPrefix(region, s.region) {
			return s.suffix
		}
	}
	return "amazonaws.com"
}

// bucketURL returns where the bucket is, without a trailing slash. AWS is asked by virtual host, except for a name
// with dots, which no certificate covers; any other S3 finds the bucket in the path.
func bucketURL(bucket, region, endpoint string) url.URL {
	if scheme, host, ok := strings.Cut(endpoint, "://"); ok {
		return url.URL{Scheme: scheme, Host: host, Path: "/" + bucket}
	}
	host := "s3." + region + "." + dnsSuffix(region)
	if strings.Contains(bucket, ".") {
		return url.URL{Scheme: "https", Host: host, Path: "/" + bucket}
	}
	return url.URL{Scheme: "https", Host: bucket + "." + host}
}
