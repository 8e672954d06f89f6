package awsenv

import "strings"

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

// Host returns where a service is in a region, by the name it has in host names, such as "s3" or "sts".
func Host(service, region string) string {
	suffix := "amazonaws.com"
	for _, s := range dnsSuffixes {
		if strings.HasPrefix(region, s.region) {
			suffix = s.suffix
			break
		}
	}
	return service + "." + region + "." + suffix
}
