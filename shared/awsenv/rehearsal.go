package awsenv

import (
	"io"
	"net/http"
	"strings"
)

// Rehearsal is an HTTP client for SDK clients that sends nothing: every call of a JSON service succeeds with an empty
// answer. With it a function can go through its work before the first request comes.
type Rehearsal struct{}

// Do implements aws.HTTPClient.
func (Rehearsal) Do(r *http.Request) (*http.Response, error) {
	const body = "{}"
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body:   io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}
