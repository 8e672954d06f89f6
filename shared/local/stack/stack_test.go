package stack

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	s3client "github.com/aws/aws-sdk-go-v2/service/s3"
)

const project = "testdata/project"

type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// clock is a clock that tests move forward.
type clock struct {
	mu    sync.Mutex
	extra time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.extra)
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.extra += d
}

// launch starts a stack; its tests do not run in parallel, because a process has
// one S3 at a time.
func launch(t *testing.T, opt Options) (*Stack, *logBuffer) {
	t.Helper()
	log := &logBuffer{}
	opt.Log = log
	if opt.Root == "" {
		opt.Root = project
	}
	s, err := Start(t.Context(), opt)
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(log)
		}
	})
	return s, log
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not happen", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// get answers a request to the API or the content host.
func get(t *testing.T, url string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

// buckets is an S3 client with a function's rights.
func buckets(s *Stack) *s3client.Client {
	session := s.sessions.Issue("arn:aws:iam::"+AccountID+":role/test", "test", time.Hour)
	return s3client.New(s3client.Options{
		Region: Region, BaseEndpoint: aws.String(s.S3URL), UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(session.AccessKeyID, session.SecretAccessKey, session.SessionToken),
	})
}

func put(t *testing.T, s *Stack, key string) {
	t.Helper()
	_, err := buckets(s).PutObject(t.Context(), &s3client.PutObjectInput{
		Bucket: aws.String(s.template.Buckets[0].Name), Key: aws.String(key), Body: strings.NewReader("bytes"), IfNoneMatch: aws.String("*"),
	})
	if err != nil {
		t.Fatal(err)
	}
}

func table(s *Stack) (*dynamodb.Client, *string) {
	return dynamodb.New(dynamodb.Options{
		Region: Region, BaseEndpoint: aws.String("http://" + s.listen.dynamo.Addr().String()),
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
	}), aws.String(s.template.Tables[0].Name)
}

func recorded(t *testing.T, s *Stack, key string) bool {
	t.Helper()
	db, name := table(s)
	out, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: name, Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: key}}})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item != nil
}

// TestStack follows one object through everything the project connects: bucket,
// notification, queue, function, table, TTL, stream, function, queue.
func TestStack(t *testing.T) {
	data, moving := t.TempDir(), &clock{}
	var stdout bytes.Buffer
	s, log := launch(t, Options{Data: data, Params: map[string]string{"Greeting": "good day"}, Stdout: &stdout, Now: moving.now})

	if want := "CLAIMCHECK_URL=" + s.URL + "\nCLAIMCHECK_KEY=" + s.Key + "\n"; stdout.String() != want || !strings.HasPrefix(s.Key, "ck_local_owner_") {
		t.Errorf("printed %q, want %q", stdout.String(), want)
	}
	env, err := os.ReadFile(filepath.Join(data, "env"))
	if err != nil || string(env) != stdout.String() {
		t.Errorf("the env file has %q (%v)", env, err)
	}
	for _, file := range []string{"env", "stack.json"} {
		if info, err := os.Stat(filepath.Join(data, file)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}

	res, body := get(t, s.URL+"/echo/w%C3%B6rld")
	if res.StatusCode != 200 || body != "good day wörld" || "http://"+res.Header.Get("X-Content") != s.ContentURL {
		t.Errorf("echo answered %d %q %v", res.StatusCode, body, res.Header)
	}

	put(t, s, "elsewhere/a")
	put(t, s, "staging/a b")
	put(t, s, "staging/poison")
	eventually(t, "the record of the object", func() bool { return recorded(t, s, "staging/a b") })
	lost, err := s.QueueName("Lost")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the dead letter", func() bool {
		moving.pass(time.Second) // the visibility timeout of the queue
		s.queues.Wake()
		letters, err := s.queues.Messages(lost)
		return err == nil && len(letters) == 1 && strings.Contains(letters[0].Body, "poison")
	})
	if recorded(t, s, "elsewhere/a") {
		t.Error("an object outside the prefix was notified")
	}

	moving.pass(time.Until(time.Date(2100, 1, 2, 0, 0, 0, 0, time.UTC))) // a day beyond the item's ttl
	s.Sweep()
	eventually(t, "the message about the expired item", func() bool {
		letters, err := s.queues.Messages(lost)
		return err == nil && len(letters) > 0 && letters[len(letters)-1].Body == "REMOVE staging/a b by dynamodb.amazonaws.com"
	})

	if res, err := s.Trigger(t.Context(), "on-tick"); err != nil || string(res.Payload) != `"aws.scheduler"` {
		t.Errorf("the schedule's call gave %s, %v", res.Payload, err)
	}
	if _, err := s.Invoke(t.Context(), "nobody", nil); err == nil {
		t.Error("a function that does not exist was invoked")
	}
	if !strings.Contains(log.String(), "[on-object] message ") {
		t.Errorf("the log does not name the failed message:\n%s", log)
	}
}

func TestContentHost(t *testing.T) {
	s, _ := launch(t, Options{Data: t.TempDir()})
	put(t, s, "files/x/y")
	client := s3client.NewPresignClient(buckets(s))
	signed, err := client.PresignGetObject(t.Context(), &s3client.GetObjectInput{Bucket: aws.String(s.template.Buckets[0].Name), Key: aws.String("files/x/y")})
	if err != nil {
		t.Fatal(err)
	}
	link := strings.Replace(signed.URL, s.S3URL, s.ContentURL, 1)
	res, body := get(t, link, "Authorization", "Bearer ck_x", "Origin", "https://a.example")
	if res.StatusCode != 200 || body != "bytes" {
		t.Errorf("got %d %s", res.StatusCode, body)
	}
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "ETag", "Access-Control-Allow-Methods": "",
	} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if res, _ := get(t, link); res.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("a request without Origin got CORS headers")
	}
}

func TestRestart(t *testing.T) {
	data := t.TempDir()
	s, _ := launch(t, Options{Data: data})
	key := s.Key
	put(t, s, "staging/kept")
	eventually(t, "the record", func() bool { return recorded(t, s, "staging/kept") })

	if _, err := Start(t.Context(), Options{Root: project, Data: data}); err == nil || !strings.Contains(err.Error(), "another stack uses the data folder") {
		t.Errorf("a second stack on the same data gave %v", err)
	}
	client, err := Connect(data)
	if err != nil {
		t.Fatalf("the failed start broke the running stack: %v", err)
	}
	if k, err := client.IssueKey(t.Context(), "acme", "ada", "member", nil); err != nil || !strings.HasPrefix(k, "ck_acme_ada_") {
		t.Errorf("key %q, %v", k, err)
	}
	if _, err := client.IssueKey(t.Context(), "acme", "ada", "king", nil); err == nil || !strings.Contains(err.Error(), "there is no role king") {
		t.Errorf("a role that does not exist gave %v", err)
	}
	client.info.Token = "guessed"
	if _, err := client.DeadLetters(t.Context()); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("without the token: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Connect(data); err == nil || !strings.Contains(err.Error(), "no stack is running") {
		t.Errorf("connecting to a stopped stack gave %v", err)
	}

	again, _ := launch(t, Options{Data: data})
	if again.Key != key {
		t.Error("the owner key changed")
	}
	if !recorded(t, again, "staging/kept") {
		t.Error("the record is gone")
	}
}

func TestDeadLetterCommands(t *testing.T) {
	data := t.TempDir()
	s, _ := launch(t, Options{Data: data})
	put(t, s, "staging/poison")
	client, err := Connect(data)
	if err != nil {
		t.Fatal(err)
	}
	letters := func() int {
		list, err := client.DeadLetters(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	eventually(t, "the dead letter", func() bool { return letters() == 1 })
	if moved, err := client.Redrive(t.Context(), "no such queue"); err != nil || len(moved) != 0 {
		t.Errorf("redriving another queue moved %v, %v", moved, err)
	}
	moved, err := client.Redrive(t.Context(), "")
	lost, _ := s.QueueName("Lost")
	if err != nil || moved[lost] != 1 {
		t.Errorf("redrive moved %v, %v", moved, err)
	}
	eventually(t, "its return", func() bool { return letters() == 1 })
}

func TestStartErrors(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	broken := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":        "module broken\n\ngo 1.26\n",
		"template.yaml": "Resources:\n  AFunction:\n    Type: AWS::Serverless::Function\n    Properties: { CodeUri: functions/a/ }\n",
	} {
		if err := os.WriteFile(filepath.Join(broken, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name string
		opt  Options
		want string
	}{
		{"port in use", Options{Port: taken.Addr().(*net.TCPAddr).Port}, "is in use: choose another"},
		{"unknown parameter", Options{Params: map[string]string{"Nope": "1"}}, "unknown parameter Nope: template.yaml declares Greeting"},
		{"no template", Options{Root: t.TempDir()}, "reading the template"},
		{"folder missing", Options{Root: broken}, "template.yaml:2: AFunction is built from " + filepath.Join(broken, "functions", "a")},
		{"a missing variable", Options{Params: map[string]string{"Greeting": ""}}, "GREETING is not set"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.opt.Data = t.TempDir()
			if test.opt.Root == "" {
				test.opt.Root = project
			}
			s, err := Start(t.Context(), test.opt)
			if err == nil {
				s.Close()
				t.Fatal("it started")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
	t.Run("no compiler", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		if _, err := Start(t.Context(), Options{Root: project, Data: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "the go command is not in PATH") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("does not compile", func(t *testing.T) {
		folder := filepath.Join(broken, "functions", "a")
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "main.go"), []byte("package main\n\nfunc main() { nonsense() }\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		log := &logBuffer{}
		_, err := Start(t.Context(), Options{Root: broken, Data: t.TempDir(), Log: log})
		if err == nil || !strings.Contains(err.Error(), "do not build") || !strings.Contains(log.String(), "undefined: nonsense") {
			t.Errorf("got %v with the log\n%s", err, log)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Start(ctx, Options{Root: project, Data: t.TempDir()}); err == nil {
			t.Error("it started")
		}
	})
}
