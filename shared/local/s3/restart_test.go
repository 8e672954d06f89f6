package s3_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"claimcheck.dev/claimcheck/shared/local/s3"
	"claimcheck.dev/claimcheck/shared/local/sts"
)

// child serves the directory S3_TEST_CHILD until it is killed. It writes its
// URL and then the event of each object, a line each; with S3_TEST_STUCK it
// writes no events and never comes back from the callback.
func child() {
	dir := os.Getenv("S3_TEST_CHILD")
	var err error
	if sessions, err = sts.OpenSessions(filepath.Join(dir, "sessions.key"), nil); err != nil {
		panic(err)
	}
	lines := make(chan string, 100)
	created := func(e s3.ObjectCreated) {
		if os.Getenv("S3_TEST_STUCK") != "" {
			lines <- "stuck"
			select {}
		}
		line, err := json.Marshal(e)
		if err != nil {
			panic(err)
		}
		lines <- string(line)
	}
	if os.Getenv("S3_TEST_AGAIN") != "" {
		closeAndStay(filepath.Join(dir, "s3"))
	}
	server, err := s3.Start(context.Background(), options(filepath.Join(dir, "s3"), created))
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println(server.URL())
	if os.Getenv("S3_TEST_COUNT") != "" {
		count(server)
	}
	for line := range lines {
		fmt.Println(line)
	}
}

// closeAndStay runs a server, stores an object and closes the server again.
func closeAndStay(dir string) {
	server, err := s3.Start(context.Background(), options(dir, nil))
	if err != nil {
		panic(err)
	}
	c := clientOf(server.URL(), static(functionID))
	in := &awss3.PutObjectInput{Bucket: aws.String(bucketName), Key: aws.String("files/before"), Body: strings.NewReader("before")}
	if _, err := c.PutObject(context.Background(), in); err != nil {
		panic(err)
	}
	if err := server.Close(); err != nil {
		panic(err)
	}
	if _, err := c.PutObject(context.Background(), in); err == nil {
		panic("a closed server answers")
	}
}

// count makes some requests and writes what the server counted, before and
// after a reset.
func count(server *s3.Server) {
	ctx, c, b := context.Background(), clientOf(server.URL(), static(functionID)), aws.String(bucketName)
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	put := func(key string) {
		check(last(c.PutObject(ctx, &awss3.PutObjectInput{Bucket: b, Key: &key, Body: strings.NewReader("0123456789"), IfNoneMatch: aws.String("*")})))
	}
	read := func(in *awss3.GetObjectInput) {
		out, err := c.GetObject(ctx, in)
		check(err)
		check(last(io.Copy(io.Discard, out.Body)))
	}
	x := aws.String("staging/x")
	put(*x)
	read(&awss3.GetObjectInput{Bucket: b, Key: x})
	read(&awss3.GetObjectInput{Bucket: b, Key: x, Range: aws.String("bytes=3-6")})
	check(last(c.HeadObject(ctx, &awss3.HeadObjectInput{Bucket: b, Key: x})))
	check(last(c.CopyObject(ctx, &awss3.CopyObjectInput{Bucket: b, Key: aws.String("files/x"), CopySource: aws.String(bucketName + "/staging/x")})))
	check(last(c.ListObjectsV2(ctx, &awss3.ListObjectsV2Input{Bucket: b})))
	check(last(c.HeadBucket(ctx, &awss3.HeadBucketInput{Bucket: b})))
	check(last(c.DeleteObject(ctx, &awss3.DeleteObjectInput{Bucket: b, Key: x})))
	check(last(c.DeleteObjects(ctx, deletion("files/x", "files/y", ""))))
	request, err := http.NewRequest(http.MethodOptions, server.URL()+"/"+bucketName+"/staging/x", nil)
	check(err)
	check(last(http.DefaultClient.Do(request)))
	// A refused upload counts as a request, not as bytes.
	_, err = c.PutObject(ctx, &awss3.PutObjectInput{Bucket: b, Key: x, Body: strings.NewReader("refused")})
	if err == nil {
		panic("an unconditional PUT on staging/ was accepted")
	}
	for range 2 {
		line, err := json.Marshal(server.Counters())
		check(err)
		fmt.Println(string(line))
		server.ResetCounters()
	}
}

type process struct {
	url   string
	lines *bufio.Scanner
	cmd   *exec.Cmd
}

// startChild runs a server in a process of its own and kills it with the test.
func startChild(t *testing.T, dir string, environment ...string) *process {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(executable)}
	p.cmd.Env = append(os.Environ(), append(environment, "S3_TEST_CHILD="+dir)...)
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	p.lines = bufio.NewScanner(out)
	p.url = p.next(t)
	return p
}

func (p *process) kill() {
	p.cmd.Process.Kill() // SIGKILL
	p.cmd.Wait()
}

func (p *process) next(t *testing.T) string {
	t.Helper()
	patience := time.AfterFunc(time.Minute, func() { p.cmd.Process.Kill() })
	defer patience.Stop()
	if !p.lines.Scan() {
		t.Fatalf("the child has ended: %v", p.lines.Err())
	}
	return p.lines.Text()
}

func TestKilledServerKeepsObjects(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := startChild(t, dir)
	c := clientOf(p.url, static(functionID))
	data := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	for i := range 3 {
		_, err := c.PutObject(t.Context(), &awss3.PutObjectInput{
			Bucket: aws.String(bucketName), Key: aws.String(fmt.Sprintf("staging/%d", i)),
			Body: bytes.NewReader(data), IfNoneMatch: aws.String("*"), ContentType: aws.String("text/plain"),
		})
		if err != nil {
			t.Fatal(err)
		}
		p.next(t) // its event
	}
	if _, err := c.DeleteObject(t.Context(), &awss3.DeleteObjectInput{Bucket: aws.String(bucketName), Key: aws.String("staging/2")}); err != nil {
		t.Fatal(err)
	}
	p.kill()
	// What a kill in the middle of an upload leaves.
	for _, name := range []string{"incoming/half", "blobs/unnamed"} {
		if err := os.WriteFile(filepath.Join(dir, "s3", name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	p = startChild(t, dir)
	c = clientOf(p.url, static(functionID))
	list, err := c.ListObjectsV2(t.Context(), &awss3.ListObjectsV2Input{Bucket: aws.String(bucketName)})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Contents) != 2 {
		t.Errorf("%d objects after the kill, want 2", len(list.Contents))
	}
	head, err := c.HeadObject(t.Context(), &awss3.HeadObjectInput{Bucket: aws.String(bucketName), Key: aws.String("staging/1")})
	if err != nil || aws.ToInt64(head.ContentLength) != int64(len(data)) || aws.ToString(head.ContentType) != "text/plain" || aws.ToString(head.ETag) != `"`+md5hex(data)+`"` {
		t.Errorf("the object after the kill: %+v, %v", head, err)
	}
	_, err = c.PutObject(t.Context(), &awss3.PutObjectInput{
		Bucket: aws.String(bucketName), Key: aws.String("staging/1"), Body: strings.NewReader("new"), IfNoneMatch: aws.String("*"),
	})
	if code, _ := status(t, err); code != 412 {
		t.Errorf("a second PUT after the kill: %d, want 412", code)
	}
	for _, name := range []string{"incoming/half", "blobs/unnamed"} {
		if _, err := os.Stat(filepath.Join(dir, "s3", name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
}

func TestKilledServerDeliversEventsLater(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := startChild(t, dir, "S3_TEST_STUCK=1")
	c := clientOf(p.url, static(functionID))
	answered := make(chan error, 1)
	go func() {
		_, err := c.PutObject(context.Background(), &awss3.PutObjectInput{
			Bucket: aws.String(bucketName), Key: aws.String("staging/due"), Body: strings.NewReader("due"), IfNoneMatch: aws.String("*"),
		})
		answered <- err
	}()
	p.next(t) // the callback has begun
	p.kill()
	if err := <-answered; err == nil {
		t.Fatal("the PUT was answered before its event was taken")
	}

	p = startChild(t, dir)
	var event s3.ObjectCreated
	if err := json.Unmarshal([]byte(p.next(t)), &event); err != nil {
		t.Fatal(err)
	}
	if event.Key != "staging/due" || event.Size != 3 || event.ETag != md5hex([]byte("due")) || event.EventName != s3.EventPut {
		t.Errorf("the event after the kill is %+v", event)
	}
	p.kill()
	if left, err := os.ReadDir(filepath.Join(dir, "s3", "events")); err != nil || len(left) != 0 {
		t.Errorf("events kept after delivery: %v, %v", left, err)
	}
}

// TestStartAgain closes a server and starts the next in one process, in a
// directory whose path is too long for a socket.
func TestStartAgain(t *testing.T) {
	t.Parallel()
	p := startChild(t, filepath.Join(t.TempDir(), strings.Repeat("long", 30)), "S3_TEST_AGAIN=1", "TMPDIR="+t.TempDir())
	_, err := clientOf(p.url, static(functionID)).HeadObject(t.Context(), &awss3.HeadObjectInput{Bucket: aws.String(bucketName), Key: aws.String("files/before")})
	if err != nil {
		t.Errorf("the object of the server before: %v", err)
	}
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*s3.Options){
		"no lookup":    func(o *s3.Options) { o.Lookup = nil },
		"short bucket": func(o *s3.Options) { o.Bucket = "ab" },
		"a file as directory": func(o *s3.Options) {
			o.Dir = filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(o.Dir, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		o := options(t.TempDir(), nil)
		change(&o)
		if _, err := s3.Start(t.Context(), o); err == nil || strings.Contains(err.Error(), "one instance per process") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDirectoryInUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	startChild(t, dir)
	second := startChild(t, dir)
	if !strings.Contains(second.url, "in use by another process") {
		t.Errorf("a second server on one directory: %q", second.url)
	}
}

func TestOneServerPerProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := s3.Start(t.Context(), options(dir, nil)); err == nil || !strings.Contains(err.Error(), "one instance per process") {
		t.Errorf("a second server in one process: %v", err)
	}
}
