package calls

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
)

// maxBody is more than any request of the JSON protocols may have.
const maxBody = 16 << 20

// peek reads a request's body and puts it back.
func peek(r *http.Request) []byte {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), failing{err}, r.Body), r.Body}
	return body
}

// failing hands an error of an earlier read on to the next reader.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}

// json wraps a server of the JSON protocols, which name the operation in a header.
func (r *Recorder) json(service string, needs func(operation string, body []byte) []need, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, operation, ok := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
		if ok {
			caller, _, _ := r.caller(req)
			r.record(caller, service+" "+operation, needs(operation, peek(req)))
		}
		next.ServeHTTP(w, req)
	})
}

// DynamoDB records requests to DynamoDB.
func (r *Recorder) DynamoDB(next http.Handler) http.Handler {
	return r.json("dynamodb", r.dynamo, next)
}

// target is where one part of a DynamoDB request goes.
type target struct{ TableName, IndexName string }

func (r *Recorder) dynamo(operation string, body []byte) []need {
	var in struct {
		target
		RequestItems  map[string]json.RawMessage
		TransactItems []map[string]target
	}
	// A body that does not parse is refused by the server and needs nothing.
	_ = json.Unmarshal(body, &in)
	on := func(action string, t target) need {
		table := "table/" + path.Base(t.TableName) // a name, or an ARN
		if t.IndexName != "" {
			table += "/index/" + t.IndexName
		}
		return need{"dynamodb:" + action, r.arn("dynamodb", table)}
	}
	var out []need
	switch operation {
	case "TransactWriteItems", "TransactGetItems":
		actions := map[string]string{
			"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem", "Get": "GetItem",
		}
		for _, item := range in.TransactItems {
			for kind, t := range item {
				out = append(out, on(actions[kind], t))
			}
		}
	case "BatchGetItem", "BatchWriteItem":
		for name := range in.RequestItems {
			out = append(out, on(operation, target{TableName: name}))
		}
	default:
		out = append(out, on(operation, in.target))
	}
	return out
}

// SQS records requests to SQS. A batch needs what its single form needs.
func (r *Recorder) SQS(next http.Handler) http.Handler {
	return r.json("sqs", func(operation string, body []byte) []need {
		var in struct{ QueueURL, QueueName string }
		_ = json.Unmarshal(body, &in) // as in dynamo
		name := in.QueueName
		if u, err := url.Parse(in.QueueURL); err == nil && in.QueueURL != "" {
			name = path.Base(u.Path)
		}
		return []need{{"sqs:" + strings.TrimSuffix(operation, "Batch"), r.arn("sqs", name)}}
	}, next)
}

// STS records AssumeRole.
func (r *Recorder) STS(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if form, err := url.ParseQuery(string(peek(req))); err == nil && form.Get("Action") != "" {
			caller, _, _ := r.caller(req)
			r.record(caller, "sts "+form.Get("Action"), []need{{"sts:" + form.Get("Action"), form.Get("RoleArn")}})
		}
		next.ServeHTTP(w, req)
	})
}

// S3 records requests to S3. Requests that no caller of the stack signed need no
// permission of one. A presigned request counts once it was answered well: it comes from a
// client, who may try anything.
func (r *Recorder) S3(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		caller, presigned, signed := r.caller(req)
		if !signed {
			next.ServeHTTP(w, req)
			return
		}
		var body []byte
		if req.Method == http.MethodPost && req.URL.Query().Has("delete") {
			body = peek(req)
		}
		seen := &status{ResponseWriter: w}
		next.ServeHTTP(seen, req)
		if presigned && seen.code >= 300 {
			return
		}
		operation, needs := objects(req, body)
		if seen.code == http.StatusNotFound {
			bucket, _, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
			needs = append(needs, need{"s3:ListBucket", "arn:aws:s3:::" + bucket})
		}
		r.record(caller, "s3 "+operation, needs)
	})
}

// objects says what a path-style request to S3 needs.
func objects(r *http.Request, body []byte) (operation string, needs []need) {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	on := func(action, bucket, key string) {
		arn := "arn:aws:s3:::" + bucket
		if key != "" {
			arn += "/" + key
		}
		needs = append(needs, need{"s3:" + action, arn})
	}
	query := r.URL.Query()
	switch source := r.Header.Get("X-Amz-Copy-Source"); {
	case r.Method == http.MethodPost && query.Has("delete"):
		var in struct{ Object []struct{ Key string } }
		_ = xml.Unmarshal(body, &in) // refused by the server
		for _, o := range in.Object {
			on("DeleteObject", bucket, o.Key)
		}
		return "DeleteObjects", needs
	case r.Method == http.MethodGet && key == "" && query.Get("list-type") == "2":
		on("ListBucket", bucket, "")
		return "ListObjectsV2", needs
	case r.Method == http.MethodHead && key == "":
		on("ListBucket", bucket, "")
		return "HeadBucket", needs
	case key == "" || len(subresources(query)) > 0:
		// Nothing that a function does: named so that no role allows it.
		on(fmt.Sprintf("%s %v", r.Method, subresources(query)), bucket, key)
		return r.Method, needs
	case r.Method == http.MethodPut && source != "":
		if from, err := url.PathUnescape(strings.TrimPrefix(source, "/")); err == nil {
			bucket, key, _ := strings.Cut(from, "/")
			on("GetObject", bucket, key)
		}
		operation = "CopyObject"
		on("PutObject", bucket, key)
	case r.Method == http.MethodPut:
		operation = "PutObject"
		on("PutObject", bucket, key)
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		on("GetObject", bucket, key)
		return map[string]string{"GET": "GetObject", "HEAD": "HeadObject"}[r.Method], needs
	case r.Method == http.MethodDelete:
		operation = "DeleteObject"
		on("DeleteObject", bucket, key)
	default:
		on(r.Method, bucket, key)
		return r.Method, needs
	}
	// A write under If-Match compares with what is there.
	if r.Header.Get("If-Match") != "" {
		on("GetObject", bucket, key)
	}
	if r.Header.Get("X-Amz-Tagging") != "" {
		on("PutObjectTagging", bucket, key)
	}
	if r.Header.Get("X-Amz-Acl") != "" {
		on("PutObjectAcl", bucket, key)
	}
	return operation, needs
}

// subresources are the parts of a query that make it about something of an
// object or bucket.
func subresources(query url.Values) []string {
	var out []string
	for _, name := range []string{"acl", "attributes", "cors", "legal-hold", "lifecycle", "location", "partNumber", "policy", "retention", "tagging", "uploadId", "uploads", "versionId", "versions"} {
		if query.Has(name) {
			out = append(out, name)
		}
	}
	return out
}

// status remembers the status of an answer.
type status struct {
	http.ResponseWriter
	code int
}

func (s *status) WriteHeader(code int) {
	if s.code == 0 {
		s.code = code
	}
	s.ResponseWriter.WriteHeader(code)
}

func (s *status) Write(p []byte) (int, error) {
	if s.code == 0 {
		s.code = http.StatusOK
	}
	return s.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController through.
func (s *status) Unwrap() http.ResponseWriter { return s.ResponseWriter }
