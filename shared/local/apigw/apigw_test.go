package apigw

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"claimcheck.dev/claimcheck/shared/local/lambda"
)

// function is an Invoker that remembers its last event.
type function struct {
	result lambda.Result
	err    error
	event  []byte
	invoke func(ctx context.Context) (lambda.Result, error)
}

func (f *function) Invoke(ctx context.Context, event []byte) (lambda.Result, error) {
	f.event = event
	if f.invoke != nil {
		return f.invoke(ctx)
	}
	if f.result.Payload == nil && f.err == nil {
		return lambda.Result{Payload: []byte(`{"statusCode":204}`)}, nil
	}
	return f.result, f.err
}

var noon = time.Date(2026, 3, 9, 12, 0, 0, 5e6, time.UTC)

// serve starts a gateway on loopback.
func serve(t *testing.T, opt Options) string {
	t.Helper()
	opt.AccountID, opt.APIID = "123456789012", "local"
	if opt.Now == nil {
		opt.Now = func() time.Time { return noon }
	}
	g, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	return server.URL
}

// raw sends bytes as they are and reads one answer.
func raw(t *testing.T, url, request string) *http.Response {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(request, " ")
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// message makes a request with a body from its lines.
func message(lines ...string) string {
	head, body := lines[:len(lines)-1], lines[len(lines)-1]
	return strings.Join(head, "\r\n") + fmt.Sprintf("\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// TestEvents holds requests, byte by byte, against the events made of them.
func TestEvents(t *testing.T) {
	t.Parallel()
	const context = `"requestContext":{"accountId":"123456789012","apiId":"local","domainName":"api.local:80","domainPrefix":"api",
		"http":{"method":"METHOD","path":"PATH","protocol":"HTTP/1.1","sourceIp":"127.0.0.1","userAgent":""},
		"requestId":"ID","routeKey":"KEY","stage":"$default","time":"09/Mar/2026:12:00:00 +0000","timeEpoch":1773057600005}`
	const common = `"host":"api.local:80","x-amzn-trace-id":"TRACE","x-forwarded-for":"127.0.0.1","x-forwarded-port":"80","x-forwarded-proto":"http"`
	tests := []struct{ name, request, want string }{
		{"nothing but a path", message("GET /v1/files HTTP/1.1", "Host: api.local:80", ""), `{
			"version":"2.0","routeKey":"GET /v1/files","rawPath":"/v1/files","rawQueryString":"",
			"headers":{"content-length":"0",` + common + `},CONTEXT,"isBase64Encoded":false}`},
		{"query, repeated names, cookies", message("GET /v1/files?a=1&b=%20x&a=2&c HTTP/1.1", "Host: api.local:80", "Accept: a", "accept: b", "Cookie: x=1; y=2", "Cookie: z=3", ""), `{
			"version":"2.0","routeKey":"GET /v1/files","rawPath":"/v1/files","rawQueryString":"a=1&b=%20x&a=2&c",
			"cookies":["x=1","y=2","z=3"],
			"headers":{"accept":"a,b","content-length":"0",` + common + `},
			"queryStringParameters":{"a":"1,2","b":" x","c":""},CONTEXT,"isBase64Encoded":false}`},
		{"path parameters are decoded", message("GET /v1/files/f%20%C3%A9/content HTTP/1.1", "Host: api.local:80", ""), `{
			"version":"2.0","routeKey":"GET /v1/files/{id}/content","rawPath":"/v1/files/f é/content","rawQueryString":"",
			"headers":{"content-length":"0",` + common + `},CONTEXT,"pathParameters":{"id":"f é"},"isBase64Encoded":false}`},
		{"an encoded slash separates", message("GET /v1/files/a%2Fcontent HTTP/1.1", "Host: api.local:80", ""), `{
			"version":"2.0","routeKey":"GET /v1/files/{id}/content","rawPath":"/v1/files/a/content","rawQueryString":"",
			"headers":{"content-length":"0",` + common + `},CONTEXT,"pathParameters":{"id":"a"},"isBase64Encoded":false}`},
		{"a path is cut at an encoded question mark", message("GET /v1/files%3Fx/y?q=1 HTTP/1.1", "Host: api.local:80", ""), `{
			"version":"2.0","routeKey":"GET /v1/files","rawPath":"/v1/files","rawQueryString":"q=1",
			"headers":{"content-length":"0",` + common + `},"queryStringParameters":{"q":"1"},CONTEXT,"isBase64Encoded":false}`},
		{"JSON is a string", message("POST /v1/files HTTP/1.1", "Host: api.local:80", "Content-Type: application/json; charset=utf-8", `{"a":"é"}`), `{
			"version":"2.0","routeKey":"POST /v1/files","rawPath":"/v1/files","rawQueryString":"",
			"headers":{"content-length":"10","content-type":"application/json; charset=utf-8",` + common + `},CONTEXT,"body":"{\"a\":\"é\"}","isBase64Encoded":false}`},
		{"text loses bytes that are no UTF-8", message("POST /v1/files HTTP/1.1", "Host: api.local:80", "Content-Type: text/csv", "a\xffb"), `{
			"version":"2.0","routeKey":"POST /v1/files","rawPath":"/v1/files","rawQueryString":"",
			"headers":{"content-length":"3","content-type":"text/csv",` + common + `},CONTEXT,"body":"a\ufffdb","isBase64Encoded":false}`},
		{"other types are base64", message("POST /v1/files HTTP/1.1", "Host: api.local:80", "Content-Type: application/octet-stream", "a\xffb"), `{
			"version":"2.0","routeKey":"POST /v1/files","rawPath":"/v1/files","rawQueryString":"",
			"headers":{"content-length":"3","content-type":"application/octet-stream",` + common + `},CONTEXT,"body":"Yf9i","isBase64Encoded":true}`},
		{"chunks are put together, connection headers dropped", "POST /v1/files HTTP/1.1\r\nHost: api.local:80\r\nTransfer-Encoding: chunked\r\nConnection: close\r\nX-Forwarded-For: 10.0.0.1\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", `{
			"version":"2.0","routeKey":"POST /v1/files","rawPath":"/v1/files","rawQueryString":"",
			"headers":{"content-length":"3",` + strings.Replace(common, `"127.0.0.1"`, `"10.0.0.1, 127.0.0.1"`, 1) + `},CONTEXT,"body":"YWJj","isBase64Encoded":true}`},
		{"the catch-all", message("PATCH /elsewhere HTTP/1.1", "Host: api.local:80", ""), `{
			"version":"2.0","routeKey":"$default","rawPath":"/elsewhere","rawQueryString":"",
			"headers":{"content-length":"0",` + common + `},CONTEXT,"isBase64Encoded":false}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := &function{}
			url := serve(t, Options{Routes: []Route{
				{Method: "GET", Path: "/v1/files", Function: f}, {Method: "POST", Path: "/v1/files", Function: f},
				{Method: "GET", Path: "/v1/files/{id}/content", Function: f}, {Method: "ANY", Path: "$default", Function: f},
			}})
			res := raw(t, url, test.request)
			if res.StatusCode != 204 {
				t.Fatalf("status %d", res.StatusCode)
			}
			var parsed events.APIGatewayV2HTTPRequest
			if err := json.Unmarshal(f.event, &parsed); err != nil {
				t.Fatalf("aws-lambda-go cannot read the event: %v", err)
			}
			want := strings.NewReplacer("CONTEXT", context).Replace(test.want)
			want = strings.NewReplacer("METHOD", parsed.RequestContext.HTTP.Method, "PATH", parsed.RawPath, "KEY", parsed.RouteKey,
				"ID", parsed.RequestContext.RequestID, "TRACE", parsed.Headers["x-amzn-trace-id"]).Replace(want)
			sameJSON(t, f.event, []byte(want))
			if id := parsed.RequestContext.RequestID; len(id) != 16 || id != res.Header.Get("Apigw-Requestid") {
				t.Errorf("request id %q, header %q", id, res.Header.Get("Apigw-Requestid"))
			}
		})
	}
}

func sameJSON(t *testing.T, got, want []byte) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal(want, &b); err != nil {
		t.Fatalf("the expected JSON is wrong: %v\n%s", err, want)
	}
	if err := json.Unmarshal(got, &a); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a, b) {
		x, _ := json.MarshalIndent(a, "", " ")
		y, _ := json.MarshalIndent(b, "", " ")
		t.Errorf("got %s\nwant %s", x, y)
	}
}

func TestTextTypes(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]bool{
		"text/plain": true, "TEXT/HTML; charset=x": true, "text/x-anything": true, "application/json": true,
		"application/xml": true, "application/javascript": true, "application/json;charset": true,
		"": false, "application/x-www-form-urlencoded": false, "application/octet-stream": false,
		"application/problem+json": false, "image/svg+xml": false, "multipart/form-data; boundary=x": false,
	} {
		if got := isText(kind); got != want {
			t.Errorf("isText(%q) = %t", kind, got)
		}
	}
}

func TestRouting(t *testing.T) {
	t.Parallel()
	names := []string{"GET /a", "GET /a/{id}", "GET /a/special", "ANY /a/{id}", "POST /a/{id}/b", "GET /p/{rest+}", "GET /p/{x}/y", "$default"}
	var routes []route
	for _, name := range names {
		method, path, ok := strings.Cut(name, " ")
		if !ok {
			method, path = "ANY", name
		}
		r, err := compile(Route{Method: method, Path: path})
		if err != nil {
			t.Fatal(err)
		}
		routes = append(routes, r)
	}
	tests := []struct {
		method, path, want string
		params             map[string]string
	}{
		{"GET", "/a", "GET /a", nil},
		{"HEAD", "/a", "$default", nil}, // HEAD is a method of its own
		{"GET", "/a/", "$default", nil},
		{"GET", "/a/1", "GET /a/{id}", map[string]string{"id": "1"}},
		{"GET", "/a/special", "GET /a/special", nil},
		{"PUT", "/a/special", "ANY /a/{id}", map[string]string{"id": "special"}},
		{"POST", "/a/1/b", "POST /a/{id}/b", map[string]string{"id": "1"}},
		{"POST", "/a/1/c", "$default", nil},
		{"POST", "/a//b", "$default", nil},
		{"GET", "/p/1/2/3", "GET /p/{rest+}", map[string]string{"rest": "1/2/3"}},
		{"GET", "/p/1/y", "GET /p/{x}/y", map[string]string{"x": "1"}}, // a full match wins
		{"GET", "/p", "$default", nil},
		{"GET", "/", "$default", nil},
	}
	for _, test := range tests {
		got, params, ok := find(routes, test.method, test.path)
		if !ok || got.key != test.want || !reflect.DeepEqual(params, test.params) {
			t.Errorf("%s %s went to %q with %v, want %q with %v", test.method, test.path, got.key, params, test.want, test.params)
		}
	}
	if _, _, ok := find(routes[:7], "GET", "/none"); ok {
		t.Error("a path without a route found one")
	}
	for _, bad := range []string{"a", "/{x+}/b"} {
		if _, err := compile(Route{Method: "GET", Path: bad}); err == nil {
			t.Errorf("route %s was accepted", bad)
		}
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, method, payload string
		status                int
		headers               map[string]string // "" means absent
		body                  string
	}{
		{"all of it", "GET", `{"statusCode":201,"headers":{"content-type":"a/b","x-n":5,"Connection":"close"},"cookies":["a=1","b=2"],"body":"hi"}`, 201,
			map[string]string{"Content-Type": "a/b", "X-N": "5", "Set-Cookie": "a=1|b=2", "Content-Length": "2"}, "hi"},
		{"several values", "GET", `{"statusCode":200,"headers":{"x-a":"0"},"multiValueHeaders":{"X-A":["1","2"]},"body":"x"}`, 200, map[string]string{"X-A": "1|2"}, "x"},
		{"base64", "GET", `{"statusCode":200,"body":"AP8=","isBase64Encoded":true}`, 200, map[string]string{"Content-Type": "text/plain;charset=UTF-8"}, "\x00\xff"},
		{"its Content-Length is corrected", "GET", `{"statusCode":200,"headers":{"content-length":"99"},"body":"abc"}`, 200, map[string]string{"Content-Length": "3"}, "abc"},
		{"HEAD keeps the function's", "HEAD", `{"statusCode":200,"headers":{"content-length":"99"}}`, 200, map[string]string{"Content-Length": "99"}, ""},
		{"HEAD has no body", "HEAD", `{"statusCode":200,"body":"abc"}`, 200, map[string]string{"Content-Length": "3"}, ""},
		{"nothing", "DELETE", `{"statusCode":204}`, 204, map[string]string{"Content-Length": "", "Content-Type": ""}, ""},
		{"no statusCode: the answer is the body", "GET", `{"a":1}`, 200, map[string]string{"Content-Type": "application/json"}, `{"a":1}`},
		{"a string", "GET", `"hello"`, 200, map[string]string{"Content-Type": "application/json"}, "hello"},
		{"null", "GET", `null`, 200, map[string]string{"Content-Type": "application/json"}, "null"},
		{"statusCode is no number", "GET", `{"statusCode":"x"}`, 500, nil, `{"message":"Internal Server Error"}`},
		{"statusCode out of range", "GET", `{"statusCode":99}`, 500, nil, `{"message":"Internal Server Error"}`},
		{"body is no string", "GET", `{"statusCode":200,"body":{}}`, 500, nil, `{"message":"Internal Server Error"}`},
		{"body is no base64", "GET", `{"statusCode":200,"body":"!","isBase64Encoded":true}`, 500, nil, `{"message":"Internal Server Error"}`},
		{"header is an object", "GET", `{"statusCode":200,"headers":{"x":{}}}`, 500, nil, `{"message":"Internal Server Error"}`},
		{"no JSON", "GET", `oops`, 500, nil, `{"message":"Internal Server Error"}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := &function{result: lambda.Result{Payload: []byte(test.payload)}}
			url := serve(t, Options{Routes: []Route{{Method: "ANY", Path: "$default", Function: f}}})
			res := raw(t, url, test.method+" / HTTP/1.1\r\nHost: a\r\n\r\n")
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != test.status || string(body) != test.body {
				t.Errorf("got %d %q", res.StatusCode, body)
			}
			for name, want := range test.headers {
				if got := strings.Join(res.Header.Values(name), "|"); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
		})
	}
}

// TestOwnAnswers are what the gateway answers itself.
func TestOwnAnswers(t *testing.T) {
	t.Parallel()
	never := func(ctx context.Context) (lambda.Result, error) {
		<-ctx.Done()
		return lambda.Result{}, ctx.Err()
	}
	fails := func(err error) *function { return &function{err: err} }
	tests := []struct {
		name     string
		function *function
		request  string
		status   int
		message  string
	}{
		{"no route", nil, "GET /none HTTP/1.1\r\nHost: a\r\n\r\n", 404, "Not Found"},
		{"function failed", &function{result: lambda.Result{Payload: []byte(`{"statusCode":200}`), FunctionError: "Unhandled"}}, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 500, "Internal Server Error"},
		{"throttled", fails(lambda.ErrThrottled), "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 503, "Service Unavailable"},
		{"stopping", fails(lambda.ErrClosed), "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 503, "Service Unavailable"},
		{"too slow", &function{invoke: never}, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 503, "Service Unavailable"},
		{"over 6 MB for Lambda", fails(lambda.ErrTooLarge), "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 413, "Request Entity Too Large"},
		{"over 10 MB", &function{}, message("POST / HTTP/1.1", "Host: a", strings.Repeat("x", maxBody+1)), 413, "Request Entity Too Large"},
		{"headers over 10,240 bytes", &function{}, "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", maxHeader) + "\r\n\r\n", 431, "Request Header Fields Too Large"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			opt := Options{}
			if test.function != nil {
				opt.Routes = []Route{{Method: "ANY", Path: "$default", Function: test.function, Timeout: 20 * time.Millisecond}}
			}
			res := raw(t, serve(t, opt), test.request)
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != test.status || string(body) != `{"message":"`+test.message+`"}` {
				t.Errorf("got %d %s", res.StatusCode, body)
			}
		})
	}
	// Just below the limit all is well.
	url := serve(t, Options{Routes: []Route{{Method: "ANY", Path: "$default", Function: &function{}}}})
	if res := raw(t, url, "GET / HTTP/1.1\r\nHost: a\r\nX: "+strings.Repeat("x", maxHeader-100)+"\r\n\r\n"); res.StatusCode != 204 {
		t.Errorf("headers below the limit got %d", res.StatusCode)
	}
}

func TestThrottle(t *testing.T) {
	t.Parallel()
	now := noon
	bucket := newTokens(2, 3, func() time.Time { return now })
	take := func(n int) (passed int) {
		for range n {
			if bucket.take() {
				passed++
			}
		}
		return passed
	}
	if n := take(5); n != 3 {
		t.Errorf("%d requests passed at once, want the burst of 3", n)
	}
	now = now.Add(time.Second)
	if n := take(5); n != 2 {
		t.Errorf("%d passed a second later, want 2", n)
	}
	now = now.Add(time.Hour)
	if n := take(5); n != 3 {
		t.Errorf("%d passed an hour later, want the burst of 3", n)
	}
	url := serve(t, Options{Rate: 1, Burst: 1, Routes: []Route{{Method: "ANY", Path: "$default", Function: &function{}}}})
	raw(t, url, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if res := raw(t, url, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); res.StatusCode != 429 {
		t.Errorf("the second request got %d", res.StatusCode)
	}
}

func TestCORS(t *testing.T) {
	t.Parallel()
	f := &function{}
	url := serve(t, Options{
		CORS:   &CORS{Origins: []string{"https://a.example"}, Methods: []string{"GET", "PUT"}, Headers: []string{"x-a"}, Expose: []string{"x-b"}, MaxAgeSeconds: 60},
		Routes: []Route{{Method: "GET", Path: "/", Function: f}},
	})
	res := raw(t, url, "OPTIONS / HTTP/1.1\r\nHost: a\r\nOrigin: https://a.example\r\nAccess-Control-Request-Method: PUT\r\n\r\n")
	if res.StatusCode != 204 || res.Header.Get("Access-Control-Allow-Origin") != "https://a.example" ||
		res.Header.Get("Access-Control-Allow-Methods") != "GET,PUT" || res.Header.Get("Access-Control-Max-Age") != "60" || f.event != nil {
		t.Errorf("preflight: %d %v", res.StatusCode, res.Header)
	}
	if res = raw(t, url, "GET / HTTP/1.1\r\nHost: a\r\nOrigin: https://a.example\r\n\r\n"); res.Header.Get("Access-Control-Expose-Headers") != "x-b" {
		t.Errorf("request: %v", res.Header)
	}
	if res = raw(t, url, "GET / HTTP/1.1\r\nHost: a\r\nOrigin: https://b.example\r\n\r\n"); res.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a foreign origin was let in: %v", res.Header)
	}
}

// TestLogHasNoSecret: a query string can be one, and so can the path when somebody puts a key where its id belongs.
func TestLogHasNoSecret(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	f := &function{}
	g, err := New(Options{Log: &log, Routes: []Route{{Method: "GET", Path: "/a/{x}", Function: f}}})
	if err != nil {
		t.Fatal(err)
	}
	g.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/a/b%0Ac?token=secret", nil))
	if line := log.String(); strings.Contains(line, "secret") || !strings.HasPrefix(line, "[api] GET /a/b%0Ac 204 ") || strings.Count(line, "\n") != 1 {
		t.Errorf("the log line is %q", line)
	}
	log.Reset()
	g.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/a/ck_0123456789abcdef_secret", nil))
	if line := log.String(); strings.Contains(line, "secret") || !strings.HasPrefix(line, "[api] GET /a/ck_... 204 ") {
		t.Errorf("the log line is %q", line)
	}
}
