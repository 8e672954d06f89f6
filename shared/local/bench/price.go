package main

import (
	"fmt"
	"strings"
)

// Public on-demand prices of us-east-1 in US dollars, without free tiers and discounts, as listed in 2026.
const (
	priceS3Put       = 5.00e-6    // PUT, COPY and LIST; DELETE is free
	priceS3Get       = 0.40e-6    // GET and HEAD
	priceWriteUnit   = 0.625e-6   // DynamoDB
	priceReadUnit    = 0.125e-6   // DynamoDB
	priceAPIRequest  = 1.00e-6    // HTTP API, for each started 512 KB
	priceInvocation  = 0.20e-6    // Lambda
	priceGBSecond    = 13.3334e-6 // Lambda on arm64
	priceSQSRequest  = 0.40e-6
	priceContentHost = 1.00e-6 // CloudFront, an HTTPS request

	apiUnit = 512 << 10
)

// What the counters of the local stack do not tell of a hand-off, for its price.
const (
	apiRequests = 2 // reserve, resolve
	// reserve, verify, resolve; the stream's hand-over and the deletion of the bytes. The sweep is everybody's.
	invocations = 5
	sqsRequests = 6 // send, receive and delete in each of two queues
	gbSecond    = 0.125 * 0.040
)

// line is one item of a bill, for a million hand-offs.
type line struct {
	what    string
	dollars float64
	from    string // where the amount is from
}

const million = 1e6

// billOurs prices a hand-off from what was counted.
func billOurs(c spent) []line {
	puts := c.s3["PutObject"] + c.s3["CopyObject"] + c.s3["ListObjectsV2"]
	gets := c.s3["GetObject"] + c.s3["HeadObject"]
	return []line{
		{"S3 PUT, COPY", float64(puts) * priceS3Put * million, fmt.Sprintf("%d requests, counted", puts)},
		{"S3 GET", float64(gets) * priceS3Get * million, fmt.Sprintf("%d requests, counted", gets)},
		{"DynamoDB writes", (c.write + c.index) * priceWriteUnit * million, fmt.Sprintf("%g units, %g of indexes, counted", c.write+c.index, c.index)},
		{"DynamoDB reads", c.read * priceReadUnit * million, fmt.Sprintf("%g units, counted", c.read)},
		{"HTTP API", apiRequests * priceAPIRequest * million, fmt.Sprintf("%d requests", apiRequests)},
		{"Lambda requests", invocations * priceInvocation * million, fmt.Sprintf("%d", invocations)},
		{"Lambda time", invocations * gbSecond * priceGBSecond * million, "assumed: 40 ms each at 128 MB"},
		{"SQS", sqsRequests * priceSQSRequest * million, fmt.Sprintf("%d requests", sqsRequests)},
		{"CloudFront", priceContentHost * million, "1 request"},
	}
}

// A function that passes the bytes on, as assumed for its price: bodies in pieces of what an HTTP API and Lambda let
// through as base64, each a request, an invocation and a part in S3, in and out again.
const (
	proxyPiece  = 4_500_000
	proxyMemory = 0.5    // GB
	proxyBase   = 0.020  // seconds for each piece, and
	proxySpeed  = 75.0e6 // bytes a second between Lambda and S3
	proxyWrites = 4      // a record of each file, made and ended, with an index
)

// billProxy prices the hand-off of a file of n bytes through such a function. All of it is computed.
func billProxy(n int) []line {
	pieces := (n + proxyPiece - 1) / proxyPiece
	units := 2 * ((n+apiUnit-1)/apiUnit + 1) // the bytes both ways, and a request for each way's own words
	seconds := 2 * (float64(pieces)*proxyBase + float64(n)/proxySpeed)
	return []line{
		{"S3 PUT, parts", float64(pieces) * priceS3Put * million, ""},
		{"S3 GET", float64(pieces) * priceS3Get * million, ""},
		{"DynamoDB", (proxyWrites*priceWriteUnit + 2*priceReadUnit) * million, ""},
		{"HTTP API", float64(units) * priceAPIRequest * million, ""},
		{"Lambda requests", float64(2*pieces) * priceInvocation * million, ""},
		{"Lambda time", seconds * proxyMemory * priceGBSecond * million, ""},
	}
}

func dollars(bill []line) float64 {
	var all float64
	for _, l := range bill {
		all += l.dollars
	}
	return all
}

// proxySizes are the files whose hand-off is compared, in MB.
var proxySizes = []int{1, 20, 100}

// writeBill explains the price of a hand-off.
func writeBill(w *strings.Builder, c spent) {
	bill := billOurs(c)
	fmt.Fprintf(w, "| A million hand-offs, of any size | US$ | from |\n|---|---:|---|\n")
	for _, l := range bill {
		fmt.Fprintf(w, "| %s | %.2f | %s |\n", l.what, l.dollars, l.from)
	}
	fmt.Fprintf(w, "| **together** | **%.2f** | |\n\n", dollars(bill))
	fmt.Fprintf(w, "| The same through a function that passes the bytes on, computed | US$ | of it Lambda time |\n|---|---:|---:|\n")
	for _, mb := range proxySizes {
		bill := billProxy(mb * 1_000_000)
		fmt.Fprintf(w, "| %d MB | %.2f | %.2f |\n", mb, dollars(bill), bill[len(bill)-1].dollars)
	}
	fmt.Fprintf(w, `
Requests and units of the upper table are counted by the local engines in this run; what they are priced at, and all of the lower
table, is computed with public on-demand prices of us-east-1, without free tiers. Storage, logs and data transfer out, which cost both
alike, are left out. The function below is assumed to take bodies in pieces of 4.5 MB (what base64 leaves of Lambda's 6 MB), each a
request, an invocation and a part in S3, with %.1f GB of memory, %.0f ms for each piece and %.0f MB/s between Lambda and S3.
`, proxyMemory, proxyBase*1e3, proxySpeed/1e6)
}
