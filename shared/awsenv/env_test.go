package awsenv_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"claimcheck.dev/claimcheck/shared/awsenv"
)

var lambda = []string{
	"AWS_REGION=eu-central-1",
	"AWS_ACCESS_KEY_ID=AKIDEXAMPLE",
	"AWS_SECRET_ACCESS_KEY=secret/value=",
	"AWS_SESSION_TOKEN=token==",
	"AWS_LAMBDA_FUNCTION_NAME=stack-ReserveUpload-1",
}

func TestParseLambda(t *testing.T) {
	t.Parallel()
	env, err := awsenv.Parse(lambda)
	if err != nil {
		t.Fatal(err)
	}
	cfg := env.Config()
	creds, err := cfg.Credentials.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if creds.AccessKeyID != "AKIDEXAMPLE" || creds.SecretAccessKey != "secret/value=" || creds.SessionToken != "token==" || creds.CanExpire {
		t.Errorf("credentials %s, %v", creds.AccessKeyID, creds.CanExpire)
	}
	if cfg.Region != "eu-central-1" || env.Function != "stack-ReserveUpload-1" {
		t.Errorf("region %q, function %q", cfg.Region, env.Function)
	}
	if env.BaseEndpoint("S3") != nil || env.Endpoint("S3") != "" {
		t.Error("an endpoint out of nowhere")
	}
}

func TestParseNamesEveryBadVariable(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := awsenv.Parse([]string{
		"AWS_SECRET_ACCESS_KEY=",
		"AWS_ENDPOINT_URL_S3=127.0.0.1:9000",
		"AWS_ENDPOINT_URL_STS=http://user:hunter2@host",
		"AWS_ENDPOINT_URL_SQS=http://127.0.0.1:1/path",
		"AWS_CA_BUNDLE=" + empty,
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, name := range []string{
		"AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL_SQS", "AWS_CA_BUNDLE",
	} {
		if strings.Count(err.Error(), name+" ")+strings.Count(err.Error(), name+":") != 1 {
			t.Errorf("%s should be named once in %q", name, err)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a value leaks: %q", err)
	}
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	env, err := awsenv.Parse(append([]string{
		"AWS_ENDPOINT_URL=http://127.0.0.1:1/",
		"AWS_ENDPOINT_URL_S3=http://127.0.0.1:2/",
		"AWS_ENDPOINT_URL_SQS=",
	}, lambda...))
	if err != nil {
		t.Fatal(err)
	}
	for service, want := range map[string]string{"S3": "http://127.0.0.1:2", "SQS": "http://127.0.0.1:1", "STS": "http://127.0.0.1:1"} {
		if got := env.Endpoint(service); got != want {
			t.Errorf("Endpoint(%s) = %q, want %q", service, got, want)
		}
		if got := env.BaseEndpoint(service); got == nil || *got != want {
			t.Errorf("BaseEndpoint(%s) = %v, want %q", service, got, want)
		}
	}
}

// TestRetries: what is temporary is tried again and named so, a refusal is neither.
func TestRetries(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		status    int
		code      string
		attempts  int32
		temporary bool
	}{
		{"throttled", 503, "SlowDown", 3, true},
		{"failed inside", 500, "InternalError", 3, true},
		{"refused", 403, "AccessDenied", 1, false},
		{"not there", 404, "NoSuchKey", 1, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				w.WriteHeader(tt.status)
				w.Write([]byte("<Error><Code>" + tt.code + "</Code></Error>"))
			}))
			defer srv.Close()
			_, err := get(t, t.Context(), srv.URL)
			if got := calls.Load(); err == nil || got != tt.attempts {
				t.Errorf("%d attempts, error %v; want %d", got, err, tt.attempts)
			}
			if got := awsenv.Temporary(err); got != tt.temporary {
				t.Errorf("Temporary(%v) = %v", err, got)
			}
		})
	}
}

func TestTemporaryWithoutAnswer(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	_, err := get(t, t.Context(), srv.URL)
	if !awsenv.Temporary(err) {
		t.Errorf("a broken connection isn't temporary: %v", err)
	}
	srv.Close()
	if _, err = get(t, t.Context(), srv.URL); !awsenv.Temporary(err) {
		t.Errorf("a refused connection isn't temporary: %v", err)
	}

	release := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer hanging.Close()
	defer close(release)
	past, cancel := context.WithTimeout(t.Context(), 1)
	defer cancel()
	if _, err = get(t, past, hanging.URL); !awsenv.Temporary(err) {
		t.Errorf("a passed deadline isn't temporary: %v", err)
	}
	if awsenv.Temporary(nil) || awsenv.Temporary(os.ErrNotExist) {
		t.Error("temporary without reason")
	}
}

func get(t *testing.T, ctx context.Context, endpoint string) (*s3.GetObjectOutput, error) {
	t.Helper()
	env, err := awsenv.Parse(append([]string{"AWS_ENDPOINT_URL_S3=" + endpoint}, lambda...))
	if err != nil {
		t.Fatal(err)
	}
	client := s3.NewFromConfig(env.Config(), func(o *s3.Options) { o.BaseEndpoint = env.BaseEndpoint("S3") })
	bucket, key := "bucket", "key"
	return client.GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key})
}

// TestOneConnection: clients with different patience share the connections that any of them has opened.
func TestOneConnection(t *testing.T) {
	t.Parallel()
	var connections atomic.Int32
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	env, err := awsenv.Parse(lambda)
	if err != nil {
		t.Fatal(err)
	}
	for _, timeout := range []time.Duration{time.Minute, time.Hour} {
		resp, err := env.HTTPClient(timeout).Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	if got := connections.Load(); got != 1 {
		t.Errorf("%d connections, want 1", got)
	}
}
