package calls

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// recorded sends one request through a wrapped server that answers with status and returns what was recorded,
// after checking that the body reached the server.
func recorded(t *testing.T, wrap func(*Recorder, http.Handler) http.Handler, req *http.Request, status int) (lines []string) {
	t.Helper()
	var body string
	var out bytes.Buffer
	r := New(Options{To: &out, Region: "r", AccountID: "1", Who: func(id, token string) (string, bool) {
		return "Fn", id == "AKID" && token == "token"
	}})
	server := wrap(r, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := new(bytes.Buffer)
		b.ReadFrom(r.Body)
		body = b.String()
		w.WriteHeader(status)
	}))
	sent, err := io.ReadAll(req.Body)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time is nothing new
		again := req.Clone(t.Context())
		again.Body = io.NopCloser(bytes.NewReader(sent))
		server.ServeHTTP(httptest.NewRecorder(), again)
		if body != string(sent) {
			t.Errorf("the server got %q of %q", body, sent)
		}
	}
	for line := range strings.Lines(out.String()) {
		var c Call
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, c.Caller+": "+c.Operation+": "+c.Action+" "+c.Resource)
	}
	if err := r.Err(); err != nil {
		t.Error(err)
	}
	return lines
}

func TestCalls(t *testing.T) {
	t.Parallel()
	sign := func(req *http.Request) *http.Request {
		req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKID/20260101/r/s/aws4_request, SignedHeaders=host, Signature=00")
		req.Header.Set("X-Amz-Security-Token", "token")
		return req
	}
	target := func(name, body string) *http.Request {
		req := sign(httptest.NewRequest("POST", "/", strings.NewReader(body)))
		req.Header.Set("X-Amz-Target", name)
		return req
	}
	object := func(method, path string, header ...string) *http.Request {
		req := sign(httptest.NewRequest(method, path, nil))
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		return req
	}
	const presigned = "?X-Amz-Credential=AKID%2F20260101%2Fr%2Fs3%2Faws4_request&X-Amz-Security-Token=token&X-Amz-Signature=00"
	const table, bucket = "arn:aws:dynamodb:r:1:table/", "arn:aws:s3:::"
	tests := []struct {
		name   string
		wrap   func(*Recorder, http.Handler) http.Handler
		req    *http.Request
		status int
		want   []string
	}{
		{"get", (*Recorder).DynamoDB, target("DynamoDB_20120810.GetItem", `{"TableName":"T"}`), 200,
			[]string{"Fn: dynamodb GetItem: dynamodb:GetItem " + table + "T"}},
		{"index", (*Recorder).DynamoDB, target("DynamoDB_20120810.Query", `{"TableName":"T","IndexName":"i"}`), 200,
			[]string{"Fn: dynamodb Query: dynamodb:Query " + table + "T/index/i"}},
		{"a table by ARN", (*Recorder).DynamoDB, target("DynamoDB_20120810.Query", `{"TableName":"arn:aws:dynamodb:r:1:table/T"}`), 200,
			[]string{"Fn: dynamodb Query: dynamodb:Query " + table + "T"}},
		{"transaction", (*Recorder).DynamoDB, target("DynamoDB_20120810.TransactWriteItems",
			`{"TransactItems":[{"Put":{"TableName":"T"}},{"ConditionCheck":{"TableName":"T"}},{"Update":{"TableName":"U"}},{"Put":{"TableName":"T"}},{"Delete":{"TableName":"T"}}]}`), 400,
			[]string{"Fn: dynamodb TransactWriteItems: dynamodb:PutItem " + table + "T", "Fn: dynamodb TransactWriteItems: dynamodb:ConditionCheckItem " + table + "T",
				"Fn: dynamodb TransactWriteItems: dynamodb:UpdateItem " + table + "U", "Fn: dynamodb TransactWriteItems: dynamodb:DeleteItem " + table + "T"}},
		{"batch", (*Recorder).DynamoDB, target("DynamoDB_20120810.BatchGetItem", `{"RequestItems":{"T":{"Keys":[]}}}`), 200,
			[]string{"Fn: dynamodb BatchGetItem: dynamodb:BatchGetItem " + table + "T"}},
		{"send", (*Recorder).SQS, target("AmazonSQS.SendMessageBatch", `{"QueueUrl":"http://h/1/q"}`), 200,
			[]string{"Fn: sqs SendMessageBatch: sqs:SendMessage arn:aws:sqs:r:1:q"}},
		{"assume", (*Recorder).STS, sign(httptest.NewRequest("POST", "/", strings.NewReader("Action=AssumeRole&RoleArn=arn%3Arole"))), 200,
			[]string{"Fn: sts AssumeRole: sts:AssumeRole arn:role"}},

		{"read", (*Recorder).S3, object("GET", "/b/files/x/y"), 206, []string{"Fn: s3 GetObject: s3:GetObject " + bucket + "b/files/x/y"}},
		{"head of what is missing", (*Recorder).S3, object("HEAD", "/b/files/x"), 404,
			[]string{"Fn: s3 HeadObject: s3:GetObject " + bucket + "b/files/x", "Fn: s3 HeadObject: s3:ListBucket " + bucket + "b"}},
		{"copy", (*Recorder).S3, object("PUT", "/b/files/x/y", "X-Amz-Copy-Source", "b/staging/x%20z"), 200,
			[]string{"Fn: s3 CopyObject: s3:GetObject " + bucket + "b/staging/x z", "Fn: s3 CopyObject: s3:PutObject " + bucket + "b/files/x/y"}},
		{"conditional write", (*Recorder).S3, object("PUT", "/b/k", "If-Match", `"e"`), 200,
			[]string{"Fn: s3 PutObject: s3:PutObject " + bucket + "b/k", "Fn: s3 PutObject: s3:GetObject " + bucket + "b/k"}},
		{"tags", (*Recorder).S3, object("PUT", "/b/k", "X-Amz-Tagging", "a=b", "If-None-Match", "*"), 200,
			[]string{"Fn: s3 PutObject: s3:PutObject " + bucket + "b/k", "Fn: s3 PutObject: s3:PutObjectTagging " + bucket + "b/k"}},
		{"delete", (*Recorder).S3, object("DELETE", "/b/k"), 204, []string{"Fn: s3 DeleteObject: s3:DeleteObject " + bucket + "b/k"}},
		{"delete many", (*Recorder).S3, sign(httptest.NewRequest("POST", "/b?delete", strings.NewReader("<Delete><Object><Key>a/b</Key></Object></Delete>"))), 200,
			[]string{"Fn: s3 DeleteObjects: s3:DeleteObject " + bucket + "b/a/b"}},
		{"list", (*Recorder).S3, object("GET", "/b?list-type=2&prefix=x"), 200, []string{"Fn: s3 ListObjectsV2: s3:ListBucket " + bucket + "b"}},
		{"tags of an object", (*Recorder).S3, object("GET", "/b/k?tagging"), 200, []string{"Fn: s3 GET: s3:GET [tagging] " + bucket + "b/k"}},

		{"presigned", (*Recorder).S3, httptest.NewRequest("GET", "/b/files/x"+presigned, nil), 200, []string{"Fn: s3 GetObject: s3:GetObject " + bucket + "b/files/x"}},
		{"presigned and refused", (*Recorder).S3, httptest.NewRequest("GET", "/b/files/x"+presigned, nil), 403, nil},
		{"anonymous", (*Recorder).S3, httptest.NewRequest("GET", "/b/files/x", nil), 403, nil},
		{"nobody we know", (*Recorder).DynamoDB, func() *http.Request {
			req := target("DynamoDB_20120810.GetItem", `{"TableName":"T"}`)
			req.Header.Set("X-Amz-Security-Token", "another")
			return req
		}(), 200, []string{"unknown: dynamodb GetItem: dynamodb:GetItem " + table + "T"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := recorded(t, test.wrap, test.req, test.status)
			if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// Objects of one folder are one kind; the record has the first in full.
func TestFoldersAreKinds(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := New(Options{To: &out})
	for _, key := range []string{"files/a/1", "files/b/2", "staging/a"} {
		r.record("Fn", "s3 GetObject", []need{{"s3:GetObject", "arn:aws:s3:::b/" + key}})
	}
	if got := strings.Count(out.String(), "\n"); got != 2 || !strings.Contains(out.String(), "files/a/1") {
		t.Errorf("recorded %s", &out)
	}
}

func TestBodyReachesTheServer(t *testing.T) {
	t.Parallel()
	body := `{"TableName":"T","x":"` + strings.Repeat("y", 1<<16) + `"}`
	var got string
	h := New(Options{To: new(bytes.Buffer), Who: func(string, string) (string, bool) { return "", false }}).DynamoDB(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b := new(bytes.Buffer)
		b.ReadFrom(r.Body)
		got = b.String()
	}))
	req := httptest.NewRequest("POST", "/", strings.NewReader(body))
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810.GetItem")
	h.ServeHTTP(httptest.NewRecorder(), req)
	if got != body {
		t.Errorf("%d bytes of %d arrived", len(got), len(body))
	}
}
