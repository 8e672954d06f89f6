// Package template reads the project's AWS SAM template and says, in plain Go
// values, what the local stack has to start: functions with their environment
// and triggers, the table, the bucket, the queues, the HTTP API and the headers
// of the content host.
//
// [Load] does it in three steps. The YAML is read with line numbers and the
// parameters are checked; then every resource becomes one typed view, resolving
// intrinsic functions on the way; last, whatever nobody read is looked up in the
// table [CloudOnly]. A property that is neither honoured nor listed there is an
// error that names the line, so a template can never say something on AWS that
// is silently missing here.
package template

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"gopkg.in/yaml.v3"
)

// Options is what [Load] needs to know beside the file.
type Options struct {
	// Params overrides parameter defaults, as `sam deploy --parameter-overrides` does.
	Params map[string]string
	// Region, AccountID and StackName are the values of the pseudo parameters.
	// Resources without a name of their own are called StackName-LogicalID.
	Region, AccountID, StackName string
	// Hosts are what references to servers resolve to.
	Hosts Hosts
	// Names are physical names by logical id, where a created stack has given them;
	// they stand above names that the template gives.
	Names map[string]string
}

// Hosts are the local servers (host:port) whose addresses a template can refer to.
type Hosts struct {
	// Queues serves the SQS protocol; `!Ref Queue` is a URL there.
	Queues string
	// Content stands in for the CloudFront distribution; `!GetAtt Distribution.DomainName`.
	Content string
}

// Template is everything the local stack honours.
type Template struct {
	Functions []Function
	Tables    []Table
	Buckets   []Bucket
	Queues    []Queue
	Roles     []Role
	// API is nil when no function has an HTTP route.
	API *API
	// Content is nil when the template has no CloudFront distribution.
	Content *Content
	// Skipped lists what stands in the template, is listed in [CloudOnly] and so was not started.
	Skipped []Skipped
}

// Function is one AWS::Serverless::Function.
type Function struct {
	// ID is the logical id, Name the physical name, Folder the folder under functions/.
	ID, Name, Folder string
	// Line is where the resource starts in the template.
	Line           int
	MemoryMB       int
	TimeoutSeconds int
	// Env is the declared environment, nothing else.
	Env map[string]string
	// ListsBucket says that the function's policies name s3:ListBucket, without which S3
	// answers 403 for a missing object, and not 404.
	ListsBucket bool
	// Concurrency is ReservedConcurrentExecutions; 0 means not set.
	Concurrency int
	Routes      []Route
	Queues      []QueueSource
	Streams     []StreamSource
	Schedules   []Schedule
}

// Route is one HttpApi event. Method is upper case, or ANY; Path is `$default` for
// the catch-all.
type Route struct {
	Method, Path string
	// TimeoutMillis is the integration timeout, 30,000 unless the template lowers it.
	TimeoutMillis int
}

// QueueSource is one SQS event of a function.
type QueueSource struct {
	ID            string
	Queue         string // name of the queue
	BatchSize     int
	WindowSeconds int
	// MaxConcurrency is ScalingConfig.MaximumConcurrency; 0 means not set.
	MaxConcurrency int
	// PartialFailures says that the function answers with ReportBatchItemFailures.
	PartialFailures bool
	// Filters are patterns in JSON; empty means every message.
	Filters []string
}

// StreamSource is one DynamoDB event of a function.
type StreamSource struct {
	ID            string
	Table         string // name of the table
	Latest        bool   // StartingPosition LATEST instead of TRIM_HORIZON
	BatchSize     int
	WindowSeconds int
	Bisect        bool
	// MaxRetries is -1 when the template sets no limit.
	MaxRetries int
	// MaxAgeSeconds is -1 when the template sets no limit.
	MaxAgeSeconds int
	// OnFailure names the queue that hears of batches given up; empty without one.
	OnFailure       string
	PartialFailures bool
	Filters         []string
}

// Schedule is one Schedule or ScheduleV2 event of a function.
type Schedule struct {
	ID   string
	Name string
	// Seconds is the period of the rate expression.
	Seconds int
	// Input is the event in JSON; empty means the one EventBridge makes.
	Input string
	// Scheduler says that EventBridge Scheduler (ScheduleV2) sends it and not a rule.
	Scheduler bool
	Disabled  bool
}

// Table is one AWS::DynamoDB::Table.
type Table struct {
	ID, Name     string
	PartitionKey Key
	SortKey      Key // Name is empty without one
	Indexes      []Index
	TTLAttribute string
	// StreamView is a StreamViewType; empty without a stream.
	StreamView string
}

// Key is a key attribute; Type is S, N or B.
type Key struct{ Name, Type string }

// Index is one global secondary index.
type Index struct {
	Name         string
	PartitionKey Key
	SortKey      Key
	// Projection is ALL, KEYS_ONLY or INCLUDE.
	Projection string
	NonKey     []string
}

// Bucket is one AWS::S3::Bucket.
type Bucket struct {
	ID, Name      string
	Notifications []Notification
	CORS          []BucketCORS
}

// Notification sends the created objects under Prefix and Suffix to a queue.
type Notification struct {
	Queue, Prefix, Suffix string
}

// BucketCORS is one rule of a bucket's CorsConfiguration.
type BucketCORS struct {
	Origins, Methods, Headers, Expose []string
	MaxAgeSeconds                     int
}

// Queue is one AWS::SQS::Queue. Times are in seconds.
type Queue struct {
	ID, Name          string
	VisibilitySeconds int
	RetentionSeconds  int
	DelaySeconds      int
	// DeadLetter names the queue that takes over after MaxReceives; empty without one.
	DeadLetter  string
	MaxReceives int
}

// Role is one AWS::IAM::Role. Permissions are not modelled, see [CloudOnly].
type Role struct {
	ID, Name, ARN     string
	MaxSessionSeconds int
}

// API is the HTTP API that the routes belong to.
type API struct {
	ID   string
	CORS *CORS
	// Rate and Burst are DefaultRouteSettings: requests per second, and at once,
	// beyond which the gateway answers 429. Zero means no limit.
	Rate, Burst int
}

// CORS is the CorsConfiguration of the HTTP API, or the CorsConfig of a response
// headers policy.
type CORS struct {
	Origins, Methods, Headers, Expose []string
	MaxAgeSeconds                     int
	Credentials                       bool
}

// Content is what the CloudFront distribution adds to answers from the bucket.
type Content struct {
	ID      string
	Headers []Header
	// CORS is nil when the headers policy says nothing of it.
	CORS *CORS
}

// Header is one header of the distribution's response headers policy.
type Header struct{ Name, Value string }

// Skipped is one cloud-only thing met in the template.
type Skipped struct {
	Line int
	// What is the logical id, with the property after a dot.
	What string
	// Path is the entry of [CloudOnly] that covers it.
	Path, Reason string
}

// FunctionByFolder finds a function by folder, logical id or physical name.
func (t *Template) FunctionByFolder(name string) (Function, bool) {
	for _, f := range t.Functions {
		if f.Folder == name || f.ID == name || f.Name == name {
			return f, true
		}
	}
	return Function{}, false
}

// Load reads the template at path. The error lists everything that is wrong,
// one `file:line: what is wrong and what to do` per line.
func Load(path string, opt Options) (*Template, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the template: %w", err)
	}
	return Parse(filepath.Base(path), text, opt)
}

// Parse is [Load] for a template in memory; file is the name that errors carry.
func Parse(file string, text []byte, opt Options) (*Template, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf("%s: not valid YAML: %s", file, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	d := newDocument(file, opt)
	if len(root.Content) == 0 {
		return nil, fmt.Errorf("%s:1: the template is empty", file)
	}
	d.open(root.Content[0])
	t := &Template{}
	if len(d.problems) == 0 {
		d.build(t)
	}
	if len(d.problems) > 0 {
		return nil, d.err()
	}
	return t, nil
}

// build turns each resource into its view, in the order of the template.
func (d *document) build(t *Template) {
	for _, r := range d.resources {
		if !d.exists(r) {
			continue
		}
		if reason, ok := cloudOnly(r.kind); ok {
			d.skipped = append(d.skipped, Skipped{r.line, r.id, r.kind, reason})
			continue
		}
		view, ok := views[r.kind]
		if !ok {
			d.failf(r.line, "%s is a %s, which the local stack does not start: implement it there, or list it in the cloud-only table with the reason", r.id, r.kind)
			continue
		}
		f := d.fields(r)
		view(d, r, f, t)
		f.done()
	}
	d.link(t)
	t.Skipped = d.skipped
}

// views makes typed values of the resource types that are honoured.
var views map[string]func(d *document, r *resource, f *fields, t *Template)

func init() {
	// Assigned here because the views refer back to the table through references.
	views = map[string]func(*document, *resource, *fields, *Template){
		kindFunction:      (*document).function,
		kindAPI:           (*document).api,
		kindTable:         (*document).table,
		kindBucket:        (*document).bucket,
		kindQueue:         (*document).queue,
		kindRole:          (*document).role,
		kindDistribution:  (*document).distribution,
		kindHeadersPolicy: (*document).headersPolicy,
	}
}

const (
	kindFunction      = "AWS::Serverless::Function"
	kindAPI           = "AWS::Serverless::HttpApi"
	kindTable         = "AWS::DynamoDB::Table"
	kindBucket        = "AWS::S3::Bucket"
	kindQueue         = "AWS::SQS::Queue"
	kindRole          = "AWS::IAM::Role"
	kindDistribution  = "AWS::CloudFront::Distribution"
	kindHeadersPolicy = "AWS::CloudFront::ResponseHeadersPolicy"
)

// problem is one thing wrong with the template.
type problem struct {
	line int
	text string
}

func (d *document) failf(line int, format string, args ...any) {
	p := problem{line, fmt.Sprintf(format, args...)}
	for _, seen := range d.problems {
		if seen == p {
			return
		}
	}
	d.problems = append(d.problems, p)
}

func (d *document) err() error {
	sort.SliceStable(d.problems, func(i, j int) bool { return d.problems[i].line < d.problems[j].line })
	var errs []error
	for _, p := range d.problems {
		if p.line == 0 {
			errs = append(errs, errors.New(p.text))
			continue
		}
		errs = append(errs, fmt.Errorf("%s:%d: %s", d.file, p.line, p.text))
	}
	return errors.Join(errs...)
}
