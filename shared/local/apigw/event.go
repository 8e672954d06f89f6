package apigw

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"strings"
)

// event is payload format 2.0.
type event struct {
	Version               string            `json:"version"`
	RouteKey              string            `json:"routeKey"`
	RawPath               string            `json:"rawPath"`
	RawQueryString        string            `json:"rawQueryString"`
	Cookies               []string          `json:"cookies,omitempty"`
	Headers               map[string]string `json:"headers"`
	QueryStringParameters map[string]string `json:"queryStringParameters,omitempty"`
	RequestContext        requestContext    `json:"requestContext"`
	PathParameters        map[string]string `json:"pathParameters,omitempty"`
	Body                  *string           `json:"body,omitempty"`
	IsBase64Encoded       bool              `json:"isBase64Encoded"`
}

type requestContext struct {
	AccountID    string      `json:"accountId"`
	APIID        string      `json:"apiId"`
	DomainName   string      `json:"domainName"`
	DomainPrefix string      `json:"domainPrefix"`
	HTTP         httpContext `json:"http"`
	RequestID    string      `json:"requestId"`
	RouteKey     string      `json:"routeKey"`
	Stage        string      `json:"stage"`
	Time         string      `json:"time"`
	TimeEpoch    int64       `json:"timeEpoch"`
}

type httpContext struct {
	Method    string `json:"method"`
	Path      string `json:"path"`
	Protocol  string `json:"protocol"`
	SourceIP  string `json:"sourceIp"`
	UserAgent string `json:"userAgent"`
}

// notForwarded are the headers that concern one connection only, and Cookie,
// which has a field of its own.
var notForwarded = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Authenticate": true, "Proxy-Authorization": true,
	"Proxy-Connection": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
	"Expect": true, "Cookie": true,
}

func (g *Gateway) event(r *http.Request, id, key, path string, params map[string]string, body []byte) event {
	now := g.opt.Now().UTC()
	sourceIP, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		sourceIP = r.RemoteAddr
	}
	prefix, _, _ := strings.Cut(r.Host, ".")
	e := event{
		Version: "2.0", RouteKey: key, RawPath: path, RawQueryString: r.URL.RawQuery,
		Headers:               g.headers(r, sourceIP, len(body)),
		QueryStringParameters: queryParameters(r.URL.RawQuery),
		PathParameters:        params,
		RequestContext: requestContext{
			AccountID: g.opt.AccountID, APIID: g.opt.APIID, DomainName: r.Host, DomainPrefix: prefix,
			HTTP: httpContext{
				Method: r.Method, Path: path, Protocol: r.Proto, SourceIP: sourceIP,
				UserAgent: r.Header.Get("User-Agent"),
			},
			RequestID: id, RouteKey: key, Stage: "$default",
			Time: now.Format("02/Jan/2006:15:04:05 -0700"), TimeEpoch: now.UnixMilli(),
		},
	}
	for _, line := range r.Header.Values("Cookie") {
		for _, c := range strings.Split(line, ";") {
			if c = strings.TrimSpace(c); c != "" {
				e.Cookies = append(e.Cookies, c)
			}
		}
	}
	if len(body) > 0 {
		text := ""
		if isText(r.Header.Get("Content-Type")) {
			text = strings.ToValidUTF8(string(body), "\uFFFD")
		} else {
			text, e.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
		}
		e.Body = &text
	}
	return e
}

// isText says whether a body goes to the function as a string. AWS does not
// document the list; measured, it is text/* and these three, and neither a missing
// type nor a form counts.
func isText(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		kind = strings.ToLower(strings.TrimSpace(strings.Split(contentType, ";")[0]))
	}
	switch kind {
	case "application/json", "application/xml", "application/javascript":
		return true
	}
	return strings.HasPrefix(kind, "text/")
}

// headers has lower-case names and repeated headers joined by commas.
func (g *Gateway) headers(r *http.Request, sourceIP string, bodyBytes int) map[string]string {
	out := map[string]string{}
	for name, values := range r.Header {
		if !notForwarded[name] {
			out[strings.ToLower(name)] = strings.Join(values, ",")
		}
	}
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		port = "80"
	}
	out["host"] = r.Host
	out["content-length"] = strconv.Itoa(bodyBytes)
	out["x-forwarded-proto"] = "http"
	out["x-forwarded-port"] = port
	if before := out["x-forwarded-for"]; before != "" {
		out["x-forwarded-for"] = before + ", " + sourceIP
	} else {
		out["x-forwarded-for"] = sourceIP
	}
	if out["x-amzn-trace-id"] == "" {
		var b [12]byte
		rand.Read(b[:])
		out["x-amzn-trace-id"] = fmt.Sprintf("Root=1-%x-%x", g.opt.Now().Unix(), b)
	}
	return out
}

// queryParameters decodes the query; repeated names are joined by commas.
func queryParameters(raw string) map[string]string {
	values, _ := url.ParseQuery(raw) // what cannot be decoded is left out
	if len(values) == 0 {
		return nil
	}
	out := map[string]string{}
	for name, list := range values {
		out[name] = strings.Join(list, ",")
	}
	return out
}

// gatewayRequestID looks like the service's: 15 characters and an equals sign.
func gatewayRequestID() string {
	var b [11]byte
	rand.Read(b[:])
	return base64.URLEncoding.EncodeToString(b[:])[:15] + "="
}

// sortedNames returns the keys of a header map in a fixed order.
func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
