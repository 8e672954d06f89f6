package template

import (
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"
)

// function reads an AWS::Serverless::Function.
func (d *document) function(r *resource, f *fields, t *Template) {
	fn := Function{ID: r.id, Name: d.name(r), Line: r.line, Env: map[string]string{}}
	f.raw("FunctionName")
	fn.Folder = d.folder(r, f)
	f.want("Runtime", "it starts the shipped Go binary", "provided.al2023", "provided.al2")
	f.want("PackageType", "it starts the shipped Go binary", "Zip")
	f.str("Handler") // the binary is the handler; an OS-only runtime ignores the value
	fn.MemoryMB = f.number("MemorySize", 128)
	fn.TimeoutSeconds = f.number("Timeout", 3)
	fn.Concurrency = f.number("ReservedConcurrentExecutions", 0)
	fn.ListsBucket = mentions(child(f.node, "Policies"), "s3:ListBucket")
	env := f.sub("Environment")
	if vars := d.shallow(env.raw("Variables")); vars != nil {
		for k, v := range pairs(vars) {
			if v := d.resolve(v); v != nil {
				fn.Env[k.Value] = v.Value
			}
		}
	}
	env.done()
	for key, body := range pairs(d.shallow(f.raw("Events"))) {
		d.event(&fn, key, body, t)
	}
	t.Functions = append(t.Functions, fn)
}

// folder is the folder under functions/ that holds the function's source. CodeUri
// names it; where CodeUri is the whole project (BuildMethod: makefile needs that),
// the logical id does: ReserveUploadFunction is functions/reserve-upload.
func (d *document) folder(r *resource, f *fields) string {
	uri := f.required("CodeUri")
	dir, name := path.Split(path.Clean(uri))
	switch {
	case path.Clean(dir) == "functions":
		return name
	case path.Clean(uri) == ".":
		return FolderOf(r.id)
	}
	d.failf(f.line("CodeUri"), "CodeUri of %s is %q: the local stack builds functions/<name>/, or the project folder `.` with a logical id that gives the name", r.id, uri)
	return ""
}

// mentions finds a value anywhere under n.
func mentions(n *yaml.Node, value string) bool {
	n = follow(n)
	if n == nil {
		return false
	}
	for _, c := range n.Content {
		if mentions(c, value) {
			return true
		}
	}
	return n.Kind == yaml.ScalarNode && n.Value == value
}

// FolderOf is the folder of the function with a logical id: reserve-upload for ReserveUploadFunction.
func FolderOf(id string) string {
	var b strings.Builder
	for i, c := range strings.TrimSuffix(id, "Function") {
		if unicode.IsUpper(c) && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// event reads one entry of a function's Events.
func (d *document) event(fn *Function, key, body *yaml.Node, t *Template) {
	id := fn.ID + "." + key.Value
	kindNode := child(body, "Type")
	if kindNode == nil {
		d.failf(key.Line, "event %s has no Type", id)
		return
	}
	kind := kindNode.Value
	f := d.mapping(id, kindFunction+".Events."+kind, key.Line, child(body, "Properties"))
	switch kind {
	case "HttpApi":
		d.route(fn, f, t)
	case "SQS":
		src := QueueSource{ID: fn.ID + key.Value}
		src.Queue = d.queueName(f, "Queue")
		src.BatchSize = f.number("BatchSize", 10)
		src.WindowSeconds = f.number("MaximumBatchingWindowInSeconds", 0)
		scaling := f.sub("ScalingConfig")
		src.MaxConcurrency = scaling.number("MaximumConcurrency", 0)
		scaling.done()
		src.PartialFailures = d.partialFailures(f)
		src.Filters = d.filters(f)
		if f.flag("Enabled", true) {
			fn.Queues = append(fn.Queues, src)
		}
	case "DynamoDB":
		src := StreamSource{ID: fn.ID + key.Value}
		src.Table = d.streamTable(f)
		f.want("StartingPosition", "a stream starts at one of its ends", "TRIM_HORIZON", "LATEST")
		src.Latest = f.str("StartingPosition") == "LATEST"
		src.BatchSize = f.number("BatchSize", 100)
		src.WindowSeconds = f.number("MaximumBatchingWindowInSeconds", 0)
		src.Bisect = f.flag("BisectBatchOnFunctionError", false)
		src.MaxRetries = f.number("MaximumRetryAttempts", -1)
		src.MaxAgeSeconds = f.number("MaximumRecordAgeInSeconds", -1)
		src.PartialFailures = d.partialFailures(f)
		src.Filters = d.filters(f)
		if f.has("DestinationConfig") {
			dest := f.sub("DestinationConfig")
			fail := dest.sub("OnFailure")
			fail.want("Type", "dead letters go to queues", "SQS")
			src.OnFailure = d.queueName(fail, "Destination")
			fail.done()
			dest.done()
		}
		if f.flag("Enabled", true) {
			fn.Streams = append(fn.Streams, src)
		}
	case "Schedule":
		s := Schedule{ID: fn.ID + key.Value, Name: f.str("Name"), Seconds: d.rate(f, "Schedule"), Input: f.str("Input")}
		s.Disabled = !f.flag("Enabled", true) || f.str("State") == "DISABLED"
		fn.Schedules = append(fn.Schedules, s)
	case "ScheduleV2":
		s := Schedule{ID: fn.ID + key.Value, Name: f.str("Name"), Seconds: d.rate(f, "ScheduleExpression"), Input: f.str("Input"), Scheduler: true}
		s.Disabled = f.str("State") == "DISABLED"
		fn.Schedules = append(fn.Schedules, s)
	default:
		d.failf(kindNode.Line, "event type %s of %s is not honoured by the local stack: implement it there", kind, id)
		return
	}
	f.done()
}

func (d *document) route(fn *Function, f *fields, t *Template) {
	r := Route{Method: strings.ToUpper(f.str("Method")), Path: f.str("Path"), TimeoutMillis: f.number("TimeoutInMillis", 30000)}
	f.want("PayloadFormatVersion", "events have format 2.0", "2.0")
	switch r.Method {
	case "", "*", "X-AMAZON-APIGATEWAY-ANY-METHOD":
		r.Method = "ANY"
	}
	if r.Path == "" {
		r.Path = "$default"
	}
	id := "ServerlessHttpApi" // the API that SAM makes for events without an ApiId
	if n := d.shallowRef(f.raw("ApiId")); n != "" {
		id = n
	} else if f.has("ApiId") {
		d.failf(f.line("ApiId"), "ApiId of %s must be a !Ref to an %s", f.id, kindAPI)
	}
	if d.byID[id] == nil && id != "ServerlessHttpApi" {
		d.failf(f.line("ApiId"), "nothing in the template is called %q", id)
	}
	if t.API == nil {
		t.API = &API{ID: id}
	} else if t.API.ID != id {
		d.failf(f.node.Line, "%s belongs to a second API, %s: the local stack serves one", f.id, id)
	}
	for _, other := range append(t.Functions, *fn) {
		for _, o := range other.Routes {
			if o.Method == r.Method && o.Path == r.Path {
				d.failf(f.node.Line, "route %s %s is already taken by %s", r.Method, r.Path, other.ID)
			}
		}
	}
	fn.Routes = append(fn.Routes, r)
}

// shallowRef is the logical id behind a !Ref, without resolving it.
func (d *document) shallowRef(n *yaml.Node) string {
	n = follow(n)
	if n == nil {
		return ""
	}
	if name, arg, ok := call(n); ok && name == "Ref" {
		return arg.Value
	}
	return ""
}

// queueName reads a property that holds a queue's ARN.
func (d *document) queueName(f *fields, key string) string {
	arn := f.required(key)
	if arn == "" {
		return ""
	}
	if !strings.HasPrefix(arn, "arn:aws:sqs:") {
		d.failf(f.line(key), "%s.%s of %s must be the ARN of a queue", f.path, key, f.id)
		return ""
	}
	return lastPart(arn, ":")
}

// streamTable reads the ARN of a table's stream.
func (d *document) streamTable(f *fields) string {
	arn := f.required("Stream")
	parts := strings.Split(lastPart(arn, ":"), "/")
	if len(parts) != 4 || parts[0] != "table" || parts[2] != "stream" {
		if arn != "" {
			d.failf(f.line("Stream"), "Stream of %s must be `!GetAtt Table.StreamArn`", f.id)
		}
		return ""
	}
	return parts[1]
}

func (d *document) partialFailures(f *fields) bool {
	partial := false
	for _, v := range f.strings("FunctionResponseTypes") {
		if v != "ReportBatchItemFailures" {
			d.failf(f.line("FunctionResponseTypes"), "FunctionResponseTypes of %s has %q: only ReportBatchItemFailures exists", f.id, v)
		}
		partial = true
	}
	return partial
}

func (d *document) filters(f *fields) []string {
	if !f.has("FilterCriteria") {
		return nil
	}
	criteria := f.sub("FilterCriteria")
	var out []string
	for _, item := range criteria.items("Filters") {
		out = append(out, item.required("Pattern"))
		item.done()
	}
	criteria.done()
	return out
}

var rateExpression = regexp.MustCompile(`^rate\((\d+) (minute|minutes|hour|hours|day|days)\)$`)

// rate reads a rate(...) expression and returns its period in seconds.
func (d *document) rate(f *fields, key string) int {
	text := f.required(key)
	m := rateExpression.FindStringSubmatch(text)
	if m == nil {
		if text != "" {
			d.failf(f.line(key), "%s of %s is %q: the local stack honours rate(n minutes), rate(n hours) and rate(n days)", key, f.id, text)
		}
		return 0
	}
	n, _ := strconv.Atoi(m[1]) // the expression admits digits only
	unit := map[byte]int{'m': 60, 'h': 3600, 'd': 86400}[m[2][0]]
	if n == 0 {
		d.failf(f.line(key), "%s of %s must be at least 1", key, f.id)
	}
	return n * unit
}
