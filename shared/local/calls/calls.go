// Package calls writes down which permissions a request to AWS needs, and whose
// request it was.
//
// A [Recorder] stands in front of the local DynamoDB, S3, SQS and STS. From each
// signed request it takes the caller (the session that signed it) and what IAM
// would ask of that caller: actions and the ARNs they are on, the implied ones
// included. TransactWriteItems is no action of its own but those of its items,
// a copy reads one object and writes another, HEAD is GetObject, and being told
// that a key is missing, and not just "no", is ListBucket. `make deploy-test` compares
// the record with the roles of the template; nothing is allowed or refused here.
//
// The rules are those of AWS's Service Authorization Reference and of the pages of
// each operation.
package calls

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
)

// Call is one permission that one caller needed.
type Call struct {
	// Caller is what [Options.Who] said, Unknown when it knew nobody.
	Caller string `json:"caller"`
	// Operation is the request, "dynamodb TransactWriteItems".
	Operation string `json:"operation"`
	// Action and Resource are what IAM checks, "dynamodb:PutItem" on an ARN.
	Action   string `json:"action"`
	Resource string `json:"resource"`
}

// Unknown is the caller of a request whose signature names no known session.
const Unknown = "unknown"

// Options configure a Recorder.
type Options struct {
	// To receives one JSON line per new kind of [Call], at once.
	To io.Writer
	// Who names the caller behind credentials; false when it knows nobody.
	Who func(accessKeyID, sessionToken string) (string, bool)
	// Region and AccountID appear in ARNs.
	Region, AccountID string
}

// Recorder records calls. Its methods wrap the servers of the local stack, and
// may be used from any goroutine.
type Recorder struct {
	opt  Options
	mu   sync.Mutex
	seen map[Call]bool
	err  error
}

// New makes a Recorder.
func New(opt Options) *Recorder { return &Recorder{opt: opt, seen: map[Call]bool{}} }

// Err is the first error of writing the record.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// need is an action on a resource.
type need struct{ action, resource string }

// record writes what is new. Objects of one folder are one kind of resource: the
// first one stands for all.
func (r *Recorder) record(caller, operation string, needs []need) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range needs {
		kind := Call{caller, operation, n.action, folder(n.resource)}
		if r.seen[kind] {
			continue
		}
		r.seen[kind] = true
		line, err := json.Marshal(Call{caller, operation, n.action, n.resource})
		if err == nil {
			_, err = r.opt.To.Write(append(line, '\n'))
		}
		if err != nil && r.err == nil {
			r.err = fmt.Errorf("recording a call: %w", err)
		}
	}
}

// folder cuts the ARN of an object after the first part of its key.
func folder(arn string) string {
	if !strings.HasPrefix(arn, "arn:aws:s3:::") {
		return arn
	}
	parts := strings.SplitN(arn, "/", 3)
	return strings.Join(parts[:min(2, len(parts))], "/")
}

// credential is the access key in an Authorization header.
var credential = regexp.MustCompile(`Credential=([^/,\s]+)/`)

// caller finds out who signed a request; presigned says that the signature is in
// the query, and signed that there is one at all.
func (r *Recorder) caller(req *http.Request) (name string, presigned, signed bool) {
	query := req.URL.Query()
	id, token := "", req.Header.Get("X-Amz-Security-Token")
	if found := credential.FindStringSubmatch(req.Header.Get("Authorization")); found != nil {
		id = found[1]
	} else if id, _, presigned = strings.Cut(query.Get("X-Amz-Credential"), "/"); presigned {
		token = query.Get("X-Amz-Security-Token")
	}
	if id == "" {
		return Unknown, presigned, false
	}
	if name, ok := r.opt.Who(id, token); ok {
		return name, presigned, true
	}
	return Unknown, presigned, true
}

func (r *Recorder) arn(service, resource string) string {
	return "arn:aws:" + service + ":" + r.opt.Region + ":" + r.opt.AccountID + ":" + resource
}
