package s3_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"claimcheck.dev/claimcheck/shared/local/s3"
	"claimcheck.dev/claimcheck/shared/local/sts"
)

const (
	region      = "eu-central-1"
	bucketName  = "claimcheck-test"
	presignRole = "arn:aws:iam::000000000000:role/test-presign"
	functionID  = "AKIAFUNCTION00000000"
	narrowID    = "AKIANARROW0000000000"
	secret      = "function-secret-function-secret-functio"
)

// The gateway runs once per process: the tests share one server. Tests that
// need their own start this program again as a child (restart_test.go).
var (
	server   *s3.Server
	sessions *sts.Sessions
	events   eventLog
	dataDir  string // of the shared server
)

type eventLog struct {
	mu   sync.Mutex
	list []s3.ObjectCreated
}

func (l *eventLog) add(e s3.ObjectCreated) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, e)
}

func (l *eventLog) of(key string) (found []s3.ObjectCreated) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.list {
		if e.Key == key {
			found = append(found, e)
		}
	}
	return found
}

func TestMain(m *testing.M) {
	if os.Getenv("S3_TEST_CHILD") != "" {
		child()
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "s3-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	sessions, err = sts.OpenSessions(filepath.Join(dir, "sessions.key"), nil)
	if err != nil {
		panic(err)
	}
	dataDir = filepath.Join(dir, "s3")
	server, err = s3.Start(context.Background(), options(dataDir, events.add))
	if err != nil {
		panic(err)
	}
	defer server.Close()
	return m.Run()
}

func options(dir string, created func(s3.ObjectCreated)) s3.Options {
	return s3.Options{
		Dir: dir, Bucket: bucketName, Region: region,
		Lookup:          lookup,
		OnObjectCreated: created,
		Faults:          plan,
		CORS: &s3.CORS{Rules: []s3.CORSRule{{
			AllowedOrigins: []string{"*"}, AllowedMethods: []string{"PUT", "GET", "HEAD"},
			AllowedHeaders: []string{"*"}, ExposedHeaders: []string{"ETag"}, MaxAge: 3600,
		}}},
	}
}

func lookup(id, token string) (s3.Account, error) {
	switch id {
	case functionID:
		return s3.Account{SecretAccessKey: secret}, nil
	case narrowID:
		return s3.Account{SecretAccessKey: secret, NoList: true}, nil
	}
	session, err := sessions.Find(id, token)
	if err != nil {
		return s3.Account{}, err
	}
	return s3.Account{SecretAccessKey: session.SecretAccessKey, Role: s3.Presign}, nil
}

func keys(id, secret, token string) aws.CredentialsProvider {
	return credentials.NewStaticCredentialsProvider(id, secret, token)
}

func static(id string) aws.CredentialsProvider { return keys(id, secret, "") }

// presignSession is a fresh session of the presign role.
func presignSession() aws.CredentialsProvider {
	s := sessions.Issue(presignRole, "test", time.Hour)
	return keys(s.AccessKeyID, s.SecretAccessKey, s.SessionToken)
}

func clientOf(url string, c aws.CredentialsProvider) *awss3.Client {
	return awss3.New(awss3.Options{
		Region: region, BaseEndpoint: &url, UsePathStyle: true, Credentials: c,
		RetryMaxAttempts: 1,
		HTTPClient:       http.DefaultClient, // shares its connections
	})
}

func client() *awss3.Client { return clientOf(server.URL(), static(functionID)) }

// status is the HTTP status of an SDK answer.
func status(t *testing.T, err error) (int, string) {
	t.Helper()
	if err == nil {
		return 200, ""
	}
	var response interface{ HTTPStatusCode() int }
	if !errors.As(err, &response) {
		t.Fatalf("no answer: %v", err)
	}
	var api smithy.APIError
	errors.As(err, &api)
	return response.HTTPStatusCode(), api.ErrorCode()
}

// fresh makes a key that no other run of a test has used (-count).
func fresh(key string) string { return key + "-" + rand.Text() }

func put(t *testing.T, key string, data []byte) string {
	t.Helper()
	in := &awss3.PutObjectInput{Bucket: aws.String(bucketName), Key: &key, Body: bytes.NewReader(data)}
	if strings.HasPrefix(key, "staging/") {
		in.IfNoneMatch = aws.String("*")
	}
	out, err := client().PutObject(t.Context(), in)
	if err != nil {
		t.Fatalf("PutObject %s: %v", key, err)
	}
	return aws.ToString(out.ETag)
}

func get(t *testing.T, key string) []byte {
	t.Helper()
	out, err := client().GetObject(t.Context(), &awss3.GetObjectInput{Bucket: aws.String(bucketName), Key: &key})
	if err != nil {
		t.Fatalf("GetObject %s: %v", key, err)
	}
	defer out.Body.Close()
	data, err := io.ReadAll(out.Body)
	if err != nil {
		t.Fatalf("reading %s: %v", key, err)
	}
	return data
}

func exists(t *testing.T, key string) bool {
	t.Helper()
	_, err := client().HeadObject(t.Context(), &awss3.HeadObjectInput{Bucket: aws.String(bucketName), Key: &key})
	if err == nil {
		return true
	}
	if code, _ := status(t, err); code != 404 {
		t.Fatalf("HeadObject %s: %v", key, err)
	}
	return false
}

func sha(data []byte) string {
	sum := sha256.Sum256(data)
	return base64.StdEncoding.EncodeToString(sum[:])
}

func md5hex(data []byte) string {
	sum := md5.Sum(data)
	return hex.EncodeToString(sum[:])
}

// presigned is a request as a client gets it.
type presignedRequest struct {
	method, url string
	header      http.Header // what must be sent
}

func presignPut(t *testing.T, c aws.CredentialsProvider, key string, data []byte, change func(*awss3.PutObjectInput)) presignedRequest {
	t.Helper()
	in := &awss3.PutObjectInput{
		Bucket: aws.String(bucketName), Key: &key,
		ContentLength: aws.Int64(int64(len(data))), ContentType: aws.String("application/pdf"), IfNoneMatch: aws.String("*"),
	}
	if change != nil {
		change(in)
	}
	signed, err := awss3.NewPresignClient(clientOf(server.URL(), c)).PresignPutObject(t.Context(), in, awss3.WithPresignExpires(15*time.Minute))
	if err != nil {
		t.Fatalf("presigning: %v", err)
	}
	h := signed.SignedHeader.Clone()
	h.Del("Host")
	return presignedRequest{signed.Method, signed.URL, h}
}

func presignGet(t *testing.T, c aws.CredentialsProvider, key string, change func(*awss3.GetObjectInput)) presignedRequest {
	t.Helper()
	in := &awss3.GetObjectInput{Bucket: aws.String(bucketName), Key: &key}
	if change != nil {
		change(in)
	}
	signed, err := awss3.NewPresignClient(clientOf(server.URL(), c)).PresignGetObject(t.Context(), in)
	if err != nil {
		t.Fatalf("presigning: %v", err)
	}
	return presignedRequest{signed.Method, signed.URL, http.Header{}}
}

type answer struct {
	status int
	code   string // the S3 error code, empty for an answer without one
	header http.Header
	body   []byte
}

// send sends a request with exactly its headers. A Content-Length among them
// is sent even when the body has another length.
func (p presignedRequest) send(t *testing.T, body io.Reader) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), p.method, p.url, body)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(request.Header, p.header)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("%s: %v", p.method, err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("reading the answer to %s: %v", p.method, err)
	}
	a := answer{status: response.StatusCode, header: response.Header, body: data}
	if _, rest, found := strings.Cut(string(data), "<Code>"); found {
		a.code, _, _ = strings.Cut(rest, "</Code>")
	}
	return a
}

func (a answer) want(t *testing.T, status int, code string) {
	t.Helper()
	if a.status != status || a.code != code {
		t.Errorf("got %d %s, want %d %s\n%s", a.status, a.code, status, code, a.body)
	}
}

func TestObjects(t *testing.T) {
	t.Parallel()
	key := "files/objects/äöü + %2F?&=#.txt"
	data := []byte("some bytes")
	if etag := put(t, key, data); etag != `"`+md5hex(data)+`"` {
		t.Errorf("ETag %s, want the MD5 of the bytes", etag)
	}
	if got := get(t, key); !bytes.Equal(got, data) {
		t.Errorf("read %q, want %q", got, data)
	}
	c := client()
	head, err := c.HeadObject(t.Context(), &awss3.HeadObjectInput{Bucket: aws.String(bucketName), Key: &key})
	if err != nil || aws.ToInt64(head.ContentLength) != int64(len(data)) {
		t.Errorf("HeadObject: length %d, %v", aws.ToInt64(head.ContentLength), err)
	}
	if _, err := c.DeleteObject(t.Context(), &awss3.DeleteObjectInput{Bucket: aws.String(bucketName), Key: &key, IfMatch: aws.String(`"0123"`)}); err == nil {
		t.Error("a delete with another ETag succeeded")
	} else if code, name := status(t, err); code != 412 {
		t.Errorf("a delete with another ETag: %d %s, want 412", code, name)
	}
	for range 2 { // the second deletes nothing and succeeds
		if _, err := c.DeleteObject(t.Context(), &awss3.DeleteObjectInput{Bucket: aws.String(bucketName), Key: &key}); err != nil {
			t.Errorf("DeleteObject: %v", err)
		}
	}
	if _, err := c.DeleteObject(t.Context(), &awss3.DeleteObjectInput{Bucket: aws.String(bucketName), Key: &key, IfMatch: aws.String("*")}); err == nil {
		t.Error("a conditional delete of nothing succeeded")
	}
	_, err = c.GetObject(t.Context(), &awss3.GetObjectInput{Bucket: aws.String(bucketName), Key: &key})
	if code, name := status(t, err); code != 404 || name != "NoSuchKey" {
		t.Errorf("a missing key: %d %s, want 404 NoSuchKey", code, name)
	}
}

func TestMissingKeyWithoutListBucket(t *testing.T) {
	t.Parallel()
	c := clientOf(server.URL(), static(narrowID))
	_, err := c.GetObject(t.Context(), &awss3.GetObjectInput{Bucket: aws.String(bucketName), Key: aws.String("staging/none")})
	if code, name := status(t, err); code != 403 || name != "AccessDenied" {
		t.Errorf("GET: %d %s, want 403 AccessDenied", code, name)
	}
	_, err = c.ListObjectsV2(t.Context(), &awss3.ListObjectsV2Input{Bucket: aws.String(bucketName)})
	if code, _ := status(t, err); code != 403 {
		t.Errorf("list: %d, want 403", code)
	}
}

func TestConditionalRead(t *testing.T) {
	t.Parallel()
	etag := put(t, "files/conditional", []byte("abc"))
	c := client()
	_, err := c.GetObject(t.Context(), &awss3.GetObjectInput{Bucket: aws.String(bucketName), Key: aws.String("files/conditional"), IfMatch: aws.String(`"other"`)})
	if code, _ := status(t, err); code != 412 {
		t.Errorf("If-Match on another ETag: %d, want 412", code)
	}
	_, err = c.GetObject(t.Context(), &awss3.GetObjectInput{Bucket: aws.String(bucketName), Key: aws.String("files/conditional"), IfNoneMatch: &etag})
	if code, _ := status(t, err); code != 304 {
		t.Errorf("If-None-Match on the ETag: %d, want 304", code)
	}
}

func TestRanges(t *testing.T) {
	t.Parallel()
	put(t, "files/ranges", []byte("0123456789"))
	put(t, "files/ranges-empty", nil)
	for _, test := range []struct {
		key, ask   string
		status     int
		body, sent string
	}{
		{"files/ranges", "bytes=0-3", 206, "0123", "bytes 0-3/10"},
		{"files/ranges", "bytes=8-", 206, "89", "bytes 8-9/10"},
		{"files/ranges", "bytes=8-99", 206, "89", "bytes 8-9/10"},
		{"files/ranges", "bytes=-3", 206, "789", "bytes 7-9/10"},
		{"files/ranges", "bytes=-99", 206, "0123456789", "bytes 0-9/10"},
		{"files/ranges", "bytes=10-", 416, "", ""},
		{"files/ranges", "lines=1-2", 200, "0123456789", ""},
		{"files/ranges-empty", "bytes=0-3", 416, "", ""},
	} {
		p := presignGet(t, presignSession(), test.key, nil)
		p.header.Set("Range", test.ask)
		a := p.send(t, nil)
		if a.status != test.status || a.header.Get("Content-Range") != test.sent || test.status < 300 && string(a.body) != test.body {
			t.Errorf("%s %s: %d %q %q, want %d %q %q", test.key, test.ask, a.status, a.header.Get("Content-Range"), a.body, test.status, test.sent, test.body)
		}
	}
}

func TestCopy(t *testing.T) {
	t.Parallel()
	data, staged := bytes.Repeat([]byte("copy"), 1000), fresh("staging/copy")
	_, err := client().PutObject(t.Context(), &awss3.PutObjectInput{
		Bucket: aws.String(bucketName), Key: &staged, Body: bytes.NewReader(data), IfNoneMatch: aws.String("*"),
		ContentType: aws.String("text/html"), ContentEncoding: aws.String("gzip"), Metadata: map[string]string{"evil": "yes"},
	})
	if err != nil {
		t.Fatal(err)
	}
	in := &awss3.CopyObjectInput{
		Bucket: aws.String(bucketName), Key: aws.String("files/copy/" + md5hex(data)), CopySource: aws.String(bucketName + "/" + staged),
		CopySourceIfMatch: aws.String(`"` + md5hex(data) + `"`), ChecksumAlgorithm: "SHA256", MetadataDirective: "REPLACE",
		ContentType: aws.String("text/plain"), CacheControl: aws.String("private, no-store"),
	}
	out, err := client().CopyObject(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if got := aws.ToString(out.CopyObjectResult.ChecksumSHA256); got != sha(data) {
		t.Errorf("ChecksumSHA256 %q, want %q", got, sha(data))
	}
	if got := aws.ToString(out.CopyObjectResult.ETag); got != `"`+md5hex(data)+`"` {
		t.Errorf("ETag %s, want that of the source", got)
	}
	head, err := client().HeadObject(t.Context(), &awss3.HeadObjectInput{Bucket: aws.String(bucketName), Key: in.Key, ChecksumMode: "ENABLED"})
	if err != nil {
		t.Fatal(err)
	}
	if aws.ToString(head.ContentType) != "text/plain" || aws.ToString(head.CacheControl) != "private, no-store" ||
		head.ContentEncoding != nil || len(head.Metadata) != 0 || aws.ToString(head.ChecksumSHA256) != sha(data) {
		t.Errorf("the copy has %+v", head)
	}
	if got := get(t, *in.Key); !bytes.Equal(got, data) {
		t.Error("the copy has other bytes")
	}

	in.CopySourceIfMatch = aws.String(`"0000"`)
	_, err = client().CopyObject(t.Context(), in)
	if code, name := status(t, err); code != 412 || name != "PreconditionFailed" {
		t.Errorf("a copy of another ETag: %d %s, want 412", code, name)
	}
	in.CopySourceIfMatch, in.IfNoneMatch = nil, aws.String("*")
	_, err = client().CopyObject(t.Context(), in)
	if code, name := status(t, err); code != 412 {
		t.Errorf("a copy onto what exists under If-None-Match: %d %s, want 412", code, name)
	}
	in.CopySource = aws.String(bucketName + "/staging/none")
	_, err = client().CopyObject(t.Context(), in)
	if code, _ := status(t, err); code != 404 {
		t.Errorf("a copy of nothing: %d, want 404", code)
	}
	if _, err := client().DeleteObject(t.Context(), &awss3.DeleteObjectInput{Bucket: aws.String(bucketName), Key: &staged}); err != nil {
		t.Fatal(err)
	}
	if got := get(t, *in.Key); !bytes.Equal(got, data) {
		t.Error("deleting the source changed the copy")
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	var want []string
	for i := range 7 {
		key := fmt.Sprintf("files/list/%d/x", i)
		put(t, key, []byte("x"))
		put(t, key+"y", []byte("y"))
		want = append(want, key, key+"y")
	}
	var got []string
	pages := awss3.NewListObjectsV2Paginator(client(), &awss3.ListObjectsV2Input{
		Bucket: aws.String(bucketName), Prefix: aws.String("files/list/"), MaxKeys: aws.Int32(3),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Contents {
			got = append(got, *o.Key)
			if aws.ToInt64(o.Size) != 1 || o.LastModified == nil || len(aws.ToString(o.ETag)) != 34 {
				t.Errorf("listed %+v", o)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
	var prefixes int
	pages = awss3.NewListObjectsV2Paginator(client(), &awss3.ListObjectsV2Input{
		Bucket: aws.String(bucketName), Prefix: aws.String("files/list/"), Delimiter: aws.String("/"), MaxKeys: aws.Int32(2),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		prefixes += len(page.CommonPrefixes)
		if len(page.Contents) != 0 {
			t.Errorf("a delimited list has the contents %v", page.Contents)
		}
	}
	if prefixes != 7 {
		t.Errorf("%d common prefixes, want 7", prefixes)
	}
}
