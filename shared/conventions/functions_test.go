package conventions

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"unicode"
)

// folderOf is the folder that a function's logical id stands for.
func folderOf(id string) string {
	var b strings.Builder
	for i, c := range strings.TrimSuffix(id, "Function") {
		if unicode.IsUpper(c) && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

func TestFolderResourceAndSampleBelongTogether(t *testing.T) {
	t.Parallel()
	inTemplate := map[string]bool{}
	for _, f := range load(t).resources(t, function) {
		folder := folderOf(f.id)
		inTemplate[folder] = true
		if !strings.HasSuffix(f.id, "Function") {
			t.Errorf("%s: the name of a function ends in Function", f.id)
		}
		if got, want := str(f.props, "CodeUri"), "functions/"+folder+"/"; got != want {
			t.Errorf("%s: CodeUri is %q, its name stands for %q", f.id, got, want)
		}
	}
	folders := names(t, "functions", "*/main.go", func(p string) string { return filepath.Base(filepath.Dir(p)) })
	samples := names(t, "events", "*.json", func(p string) string { return strings.TrimSuffix(filepath.Base(p), ".json") })
	for _, side := range []struct {
		what string
		has  map[string]bool
	}{{"a folder functions/%s with a main.go", folders}, {"a function in template.yaml", inTemplate}, {"a sample events/%s.json", samples}} {
		for _, other := range []map[string]bool{folders, inTemplate, samples} {
			for name := range other {
				if !side.has[name] {
					t.Errorf("%s lacks %s", name, strings.ReplaceAll(side.what, "%s", name))
				}
			}
		}
	}
	entries, err := os.ReadDir(filepath.Join(root, "functions"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && !folders[e.Name()] {
			t.Errorf("functions/%s has no main.go", e.Name())
		}
	}
}

func names(t *testing.T, dir, pattern string, name func(path string) string) map[string]bool {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		t.Fatalf("nothing matches %s/%s", dir, pattern)
	}
	out := map[string]bool{}
	for _, p := range paths {
		out[name(p)] = true
	}
	return out
}

// A sample is only worth its name when the function can really get it.
func TestSamplesAreEventsOfTheirFunction(t *testing.T) {
	t.Parallel()
	for _, f := range load(t).resources(t, function) {
		text, err := os.ReadFile(filepath.Join(root, "events", folderOf(f.id)+".json"))
		if err != nil {
			t.Error(err)
			continue
		}
		var e struct {
			Version        string            `json:"version"`
			RouteKey       string            `json:"routeKey"`
			RawPath        string            `json:"rawPath"`
			Headers        map[string]string `json:"headers"`
			PathParameters map[string]string `json:"pathParameters"`
			RequestContext struct {
				HTTP struct{ Method, Path string } `json:"http"`
			} `json:"requestContext"`
			Records []struct {
				Source string `json:"eventSource"`
			} `json:"Records"`
		}
		if err := json.Unmarshal(text, &e); err != nil {
			t.Errorf("events/%s.json: %v", folderOf(f.id), err)
			continue
		}
		var routes []string
		for _, ev := range events(f) {
			switch ev.kind {
			case "HttpApi":
				route := strings.TrimSpace(str(ev.props, "Method") + " " + str(ev.props, "Path"))
				if route == "" {
					route = "$default"
				}
				routes = append(routes, route)
			case "SQS":
				if len(e.Records) != 1 || e.Records[0].Source != "aws:sqs" {
					t.Errorf("events/%s.json: want one record from aws:sqs", folderOf(f.id))
				}
			}
		}
		if len(routes) == 0 {
			continue
		}
		if e.Version != "2.0" || !contains(routes, e.RouteKey) {
			t.Errorf("events/%s.json: version %q and route %q, want 2.0 and one of %v", folderOf(f.id), e.Version, e.RouteKey, routes)
		}
		path := e.RouteKey[strings.Index(e.RouteKey, " ")+1:]
		for k, v := range e.PathParameters {
			path = strings.ReplaceAll(path, "{"+k+"}", v)
		}
		if e.RouteKey != "$default" && (path != e.RawPath || !strings.HasPrefix(e.RouteKey, e.RequestContext.HTTP.Method+" ")) {
			t.Errorf("events/%s.json: %s %s is not an instance of %s", folderOf(f.id), e.RequestContext.HTTP.Method, e.RawPath, e.RouteKey)
		}
		if e.RequestContext.HTTP.Path != e.RawPath {
			t.Errorf("events/%s.json: two paths, %s and %s", folderOf(f.id), e.RawPath, e.RequestContext.HTTP.Path)
		}
	}
}

// event is one entry of a function's Events.
type event struct {
	id, kind string
	props    map[string]any
}

func events(f resource) []event {
	all, _ := f.props["Events"].(map[string]any)
	var out []event
	for id, e := range all {
		props, _ := at(e, "Properties").(map[string]any)
		out = append(out, event{f.id + "." + id, str(e, "Type"), props})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].id < out[j].id })
	return out
}

func TestRoutesAreUniqueAndTheRestIsOurs(t *testing.T) {
	t.Parallel()
	taken, fallback := map[string]string{}, 0
	for _, f := range load(t).resources(t, function) {
		for _, e := range events(f) {
			if e.kind != "HttpApi" {
				continue
			}
			route := str(e.props, "Method") + " " + str(e.props, "Path")
			if route == " " {
				fallback++
			}
			if taken[route] != "" {
				t.Errorf("%s and %s both serve %q", taken[route], e.id, route)
			}
			taken[route] = e.id
			if got := str(e.props, "ApiId"); got != "${Api}" {
				t.Errorf("%s: ApiId is %s: without the one API it gets a second one", e.id, got)
			}
		}
	}
	if fallback != 1 {
		t.Errorf("%d functions serve what no route names, want 1: without it the gateway answers in its own shape", fallback)
	}
}

func TestEveryFunctionIsBuiltAndLoggedAlike(t *testing.T) {
	t.Parallel()
	tr := load(t)
	groups := map[string]string{}
	for _, f := range tr.resources(t, function) {
		for key, want := range map[string]string{
			"Runtime": "provided.al2023", "Handler": "bootstrap", "Architectures": "[arm64]",
			// The path that the presign role trusts, and the cap on what SAM attaches.
			"RolePath": "/${AWS::StackName}/", "PermissionsBoundary": "${FunctionBoundary}",
			// Explicit roles would go round both.
			"Role": "",
			// Refused where it leaves the account less than ten, and new accounts have just those.
			"ReservedConcurrentExecutions": "",
		} {
			if got := str(f.props, key); got != want {
				t.Errorf("%s: %s is %q, want %q", f.id, key, got, want)
			}
		}
		if got := str(f.whole, "Metadata"); got != "map[BuildMethod:makefile ContextPath:. WorkingDirectory:.]" {
			t.Errorf("%s: Metadata is %s: only the Makefile, run in place, builds with our flags and sees shared/", f.id, got)
		}
		if str(f.props, "Tracing") != "" {
			t.Errorf("%s: tracing is off everywhere", f.id)
		}
		if m := num(f.props, "MemorySize"); m != 128 && m != 256 {
			t.Errorf("%s: MemorySize is %d: API functions have 128, verification 256", f.id, m)
		}
		for _, e := range events(f) {
			if e.kind == "HttpApi" && num(f.props, "Timeout") > 29 {
				t.Errorf("%s: Timeout is over 29 s, the API gives up at 30", f.id)
			}
		}

		if got := str(f.props, "LoggingConfig", "LogFormat"); got != "JSON" {
			t.Errorf("%s: LogFormat is %q, want JSON", f.id, got)
		}
		group := unref(str(f.props, "LoggingConfig", "LogGroup"))
		if groups[group] != "" {
			t.Errorf("%s and %s share log group %s", groups[group], f.id, group)
		}
		groups[group] = f.id
		name := str(tr, "Resources", group, "Properties", "LogGroupName")
		if want := "/aws/lambda/${AWS::StackName}/" + folderOf(f.id); name != want {
			t.Errorf("%s logs to %q, want %q: the boundary lets it write nowhere else", f.id, name, want)
		}
	}
	for _, g := range tr.resources(t, logGroup) {
		if str(g.props, "RetentionInDays") == "" {
			t.Errorf("%s keeps its lines for ever: set RetentionInDays", g.id)
		}
	}
}

func TestQueueSourcesAnswerPartially(t *testing.T) {
	t.Parallel()
	sources := 0
	tr := load(t)
	for _, f := range tr.resources(t, function) {
		for _, e := range events(f) {
			if e.kind != "SQS" && e.kind != "DynamoDB" {
				continue
			}
			sources++
			if !contains(list(e.props, "FunctionResponseTypes"), "ReportBatchItemFailures") {
				t.Errorf("%s: one bad record would repeat the whole batch: set FunctionResponseTypes to ReportBatchItemFailures", e.id)
			}
			if e.kind != "SQS" {
				continue
			}
			q := tr.one(t, queue, unref(str(e.props, "Queue")))
			if vis, want := num(q.props, "VisibilityTimeout"), 6*num(f.props, "Timeout"); vis < want {
				t.Errorf("%s: VisibilityTimeout of %s is %d s, want at least %d, six times the function's timeout", e.id, q.id, vis, want)
			}
		}
	}
	if sources == 0 {
		t.Error("no queue or stream wakes any function")
	}
}

func TestAccessLogHoldsNoSecret(t *testing.T) {
	t.Parallel()
	api := load(t).one(t, "AWS::Serverless::HttpApi", "Api")
	format := str(api.props, "AccessLogSettings", "Format")
	var fields map[string]string
	if err := json.Unmarshal([]byte(format), &fields); err != nil || strings.Contains(format, "\n") {
		t.Fatalf("the access log format must be JSON on one line: %v", err)
	}
	// Everything API Gateway can log is a secret until listed here: it knows the query string, headers, claims and the path.
	allowed := map[string]bool{
		"requestId": true, "requestTime": true, "identity.sourceIp": true, "httpMethod": true, "routeKey": true, "status": true,
		"responseLength": true, "responseLatency": true, "integrationLatency": true, "integrationStatus": true, "error.message": true,
	}
	for name, v := range fields {
		variable, ok := strings.CutPrefix(v, "$context.")
		if !ok || !allowed[variable] {
			t.Errorf("access log field %s logs %s, which is not on the list of what is no secret", name, v)
		}
	}
	if len(fields) < 6 {
		t.Errorf("the access log has %d fields: too few to find a request by", len(fields))
	}
	if str(api.props, "StageName") != "$default" {
		t.Error("the API has a stage in its paths")
	}
	for _, k := range []string{"ThrottlingRateLimit", "ThrottlingBurstLimit"} {
		if str(api.props, "DefaultRouteSettings", k) == "" {
			t.Errorf("the API has no %s", k)
		}
	}
}
