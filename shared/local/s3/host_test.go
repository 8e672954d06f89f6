package s3_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"claimcheck.dev/claimcheck/shared/local/s3"
)

// plans are the faults of the shared server: each happens to the next request
// for its key, so that tests can run side by side.
var plans sync.Map // key -> s3.Fault

func plan(r s3.Request) s3.Fault {
	if fault, found := plans.LoadAndDelete(r.Key); found {
		return fault.(s3.Fault)
	}
	return s3.Fault{}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault  s3.Fault
		status int // 0 for a connection without an answer
		code   string
		stored bool
	}{
		"none":            {s3.Fault{}, 200, "", true},
		"slow":            {s3.Slow(time.Millisecond), 200, "", true},
		"internal error":  {s3.Fault{Kind: s3.Error500}, 500, "InternalError", false},
		"slow down":       {s3.Fault{Kind: s3.Error503SlowDown}, 503, "SlowDown", false},
		"cut connection":  {s3.Fault{Kind: s3.CutConnection}, 0, "", false},
		"lost reply":      {s3.Fault{Kind: s3.LostReply}, 0, "", true},
		"slow lost reply": {s3.Fault{Kind: s3.LostReply, Delay: time.Millisecond}, 0, "", true},
	} {
		key := fresh("staging/fault")
		plans.Store(key, test.fault)
		p := presignPut(t, presignSession(), key, []byte("x"), nil)
		request, err := http.NewRequestWithContext(t.Context(), p.method, p.url, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = p.header
		response, err := http.DefaultClient.Do(request)
		switch {
		case err != nil && test.status != 0:
			t.Errorf("%s: %v", name, err)
		case err == nil:
			body, _ := io.ReadAll(response.Body)
			response.Body.Close()
			if response.StatusCode != test.status || !strings.Contains(string(body), test.code) {
				t.Errorf("%s: %d %s, want %d %s", name, response.StatusCode, body, test.status, test.code)
			}
		}
		if exists(t, key) != test.stored {
			t.Errorf("%s: stored %v, want %v", name, !test.stored, test.stored)
		}
		if got := len(events.of(key)); (got == 1) != test.stored {
			t.Errorf("%s: %d events", name, got)
		}
	}
}

// TestRetry is a fault as a function's client sees it: the SDK tries again.
func TestRetry(t *testing.T) {
	t.Parallel()
	key := fresh("files/retry")
	put(t, key, []byte("x"))
	for _, kind := range []s3.FaultKind{s3.Error500, s3.Error503SlowDown, s3.CutConnection, s3.LostReply} {
		plans.Store(key, s3.Fault{Kind: kind})
		c := awss3.New(awss3.Options{
			Region: region, BaseEndpoint: aws.String(server.URL()), UsePathStyle: true, Credentials: static(functionID),
			Retryer: quick{},
		})
		if _, err := c.GetObject(t.Context(), &awss3.GetObjectInput{Bucket: aws.String(bucketName), Key: &key}); err != nil {
			t.Errorf("fault %d: %v", kind, err)
		}
	}
}

// quick retries at once.
type quick struct{ aws.NopRetryer }

func (quick) IsErrorRetryable(error) bool                  { return true }
func (quick) MaxAttempts() int                             { return 2 }
func (quick) RetryDelay(int, error) (time.Duration, error) { return 0, nil }

// TestCounters needs a server nobody else uses: it runs in a child (count).
func TestCounters(t *testing.T) {
	p := startChild(t, t.TempDir(), "S3_TEST_COUNT=1")
	var got, again s3.Counters
	if err := json.Unmarshal([]byte(p.next(t)), &got); err != nil {
		t.Fatal(err)
	}
	want := s3.Counters{
		Requests: map[string]int{
			"PutObject": 2, "GetObject": 2, "HeadObject": 1, "CopyObject": 1, "DeleteObject": 1, "DeleteObjects": 1,
			"ListObjectsV2": 1, "HeadBucket": 1, "Preflight": 1,
		},
		RangedBytes: 4, ReadBytes: 10, WrittenBytes: 20,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	if err := json.Unmarshal([]byte(p.next(t)), &again); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again, s3.Counters{Requests: map[string]int{}}) {
		t.Errorf("after the reset: %+v", again)
	}
}

func TestCORS(t *testing.T) {
	t.Parallel()
	put(t, "files/cors", []byte("x"))
	preflight := func(header http.Header) answer {
		return presignedRequest{http.MethodOptions, server.URL() + "/" + bucketName + "/staging/any?X-Amz-Signature=x", header}.send(t, nil)
	}
	a := preflight(http.Header{
		"Origin": {"https://app.example"}, "Access-Control-Request-Method": {"PUT"},
		"Access-Control-Request-Headers": {"Content-Type, if-none-match,x-amz-checksum-sha256"},
	})
	a.want(t, 200, "")
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin":   "*",
		"Access-Control-Allow-Methods":  "PUT, GET, HEAD",
		"Access-Control-Allow-Headers":  "content-type, if-none-match, x-amz-checksum-sha256",
		"Access-Control-Expose-Headers": "ETag",
		"Access-Control-Max-Age":        "3600",
	} {
		if got := a.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	preflight(http.Header{"Origin": {"https://app.example"}, "Access-Control-Request-Method": {"DELETE"}}).want(t, 403, "AccessForbidden")
	preflight(http.Header{"Access-Control-Request-Method": {"PUT"}}).want(t, 400, "BadRequest")
	preflight(http.Header{"Origin": {"https://app.example"}}).want(t, 400, "BadRequest")

	p := presignGet(t, presignSession(), "files/cors", nil)
	p.header.Set("Origin", "https://app.example")
	a = p.send(t, nil)
	if a.status != 200 || a.header.Get("Access-Control-Allow-Origin") != "*" || a.header.Get("Access-Control-Expose-Headers") != "ETag" {
		t.Errorf("a cross-origin GET: %d %v", a.status, a.header)
	}
	p.url = changed(p.url, "X-Amz-Signature", "0")
	if a := p.send(t, nil); a.status != 403 || a.header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("a refused cross-origin GET: %d %v", a.status, a.header)
	}
	p.header.Del("Origin")
	if a := p.send(t, nil); a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a same-origin GET has CORS headers: %v", a.header)
	}
}

func TestEventJSON(t *testing.T) {
	t.Parallel()
	event := s3.ObjectCreated{
		Bucket: "b", Key: "staging/ä b+c&d", Size: 5, ETag: "0123", EventName: s3.EventCopy, Sequencer: "0055",
		Time: time.Date(2026, 1, 2, 3, 4, 5, 678_900_000, time.FixedZone("", 3600)),
	}
	var got map[string][]map[string]any
	if err := json.Unmarshal(s3.EventJSON("eu-central-1", "bucket-name", event), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string][]map[string]any{"Records": {{
		"eventVersion": "2.1", "eventSource": "aws:s3", "awsRegion": "eu-central-1",
		"eventTime": "2026-01-02T02:04:05.678Z", "eventName": "ObjectCreated:Copy",
		"userIdentity":      map[string]any{"principalId": "AWS:AIDALOCAL"},
		"requestParameters": map[string]any{"sourceIPAddress": "127.0.0.1"},
		"responseElements":  map[string]any{"x-amz-request-id": "0055", "x-amz-id-2": "0055"},
		"s3": map[string]any{
			"s3SchemaVersion": "1.0", "configurationId": "local",
			"bucket": map[string]any{"name": "bucket-name", "ownerIdentity": map[string]any{"principalId": "ALOCAL"}, "arn": "arn:aws:s3:::bucket-name"},
			"object": map[string]any{"key": "staging/%C3%A4+b%2Bc%26d", "size": 5.0, "eTag": "0123", "sequencer": "0055"},
		},
	}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestSequencerOrdersEvents(t *testing.T) {
	t.Parallel()
	key := fresh("files/sequence")
	for range 5 {
		put(t, key, []byte("x"))
	}
	var got []string
	for _, e := range events.of(key) {
		got = append(got, e.Sequencer)
	}
	if len(got) != 5 || !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != 5 {
		t.Errorf("sequencers %q do not increase", got)
	}
}

// zeros is an upload that is nowhere in memory.
type zeros struct{ left int64 }

func (z *zeros) Read(p []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), z.left)
	clear(p[:n])
	z.left -= n
	return int(n), nil
}

// TestLargeObject moves 100 MiB through PUT, copy and GET. Both ends are in
// this process, so its heap bounds what the server holds.
func TestLargeObject(t *testing.T) {
	const size = 100 << 20
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	var highest atomic.Uint64
	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			highest.Store(max(highest.Load(), m.HeapInuse))
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	staged, sealed := fresh("staging/large"), fresh("files/large")
	p := presignPut(t, presignSession(), staged, nil, func(in *awss3.PutObjectInput) { in.ContentLength = aws.Int64(size) })
	request, err := http.NewRequestWithContext(t.Context(), p.method, p.url, &zeros{size})
	if err != nil {
		t.Fatal(err)
	}
	request.Header, request.ContentLength = p.header, size
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != 200 {
		t.Fatalf("PUT: %d", response.StatusCode)
	}
	out, err := client().CopyObject(t.Context(), &awss3.CopyObjectInput{
		Bucket: aws.String(bucketName), Key: &sealed, CopySource: aws.String(bucketName + "/" + staged),
		CopySourceIfMatch: aws.String(response.Header.Get("ETag")), ChecksumAlgorithm: "SHA256", MetadataDirective: "REPLACE",
	})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	io.Copy(sum, &zeros{size})
	if want := base64.StdEncoding.EncodeToString(sum.Sum(nil)); aws.ToString(out.CopyObjectResult.ChecksumSHA256) != want {
		t.Errorf("SHA-256 of the copy %s, want %s", aws.ToString(out.CopyObjectResult.ChecksumSHA256), want)
	}
	response, err = http.Get(presignGet(t, presignSession(), sealed, nil).url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	n, err := io.Copy(io.Discard, response.Body)
	if err != nil || n != size {
		t.Errorf("GET: %d bytes, %v", n, err)
	}
	close(stop)
	watch.Wait()
	if most := int64(highest.Load()) - int64(before.HeapInuse); most > size/2 {
		t.Errorf("the heap grew by %d MiB for an object of %d MiB", most>>20, size>>20)
	}
}

// TestDeclaredTypes uploads under types that a server might take for its own
// business.
func TestDeclaredTypes(t *testing.T) {
	t.Parallel()
	for _, contentType := range []string{"multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "application/xml"} {
		data := bytes.Repeat([]byte("--x\r\n"), 10_000)
		key := fresh("staging/type")
		p := presignPut(t, presignSession(), key, data, func(in *awss3.PutObjectInput) { in.ContentType = &contentType })
		p.send(t, bytes.NewReader(data)).want(t, 200, "")
		if got := get(t, key); !bytes.Equal(got, data) {
			t.Errorf("%s: stored %d bytes, want %d", contentType, len(got), len(data))
		}
	}
}

// TestTrailingChecksum uploads as the SDKs do over TLS: in chunks, with the
// checksum behind them.
func TestTrailingChecksum(t *testing.T) {
	t.Parallel()
	data := bytes.Repeat([]byte("trailer"), 20_000)
	for _, test := range []struct {
		sum    string
		status int
		code   string
	}{
		{sha(data), 200, ""},
		{sha(nil), 400, "BadDigest"},
	} {
		key := fresh("files/trailer")
		body := fmt.Sprintf("%x\r\n%s\r\n0\r\nx-amz-checksum-sha256:%s\r\n\r\n", len(data), data, test.sum)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, server.URL()+"/"+bucketName+"/"+key, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		const payload = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
		request.Header = http.Header{
			"Content-Encoding": {"aws-chunked"}, "X-Amz-Trailer": {"x-amz-checksum-sha256"},
			"X-Amz-Decoded-Content-Length": {strconv.Itoa(len(data))}, "X-Amz-Content-Sha256": {payload},
		}
		caller, err := static(functionID).Retrieve(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
		if err := signer.SignHTTP(t.Context(), caller, request, payload, "s3", region, time.Now()); err != nil {
			t.Fatal(err)
		}
		presignedRequest{request.Method, request.URL.String(), request.Header}.send(t, strings.NewReader(body)).want(t, test.status, test.code)
		if exists(t, key) != (test.status == 200) {
			t.Errorf("stored under a checksum that gives %d: %v", test.status, test.status != 200)
		}
		if test.status != 200 {
			continue
		}
		head, err := client().HeadObject(t.Context(), &awss3.HeadObjectInput{Bucket: aws.String(bucketName), Key: &key, ChecksumMode: "ENABLED"})
		if err != nil {
			t.Fatal(err)
		}
		if aws.ToString(head.ChecksumSHA256) != test.sum || head.ContentEncoding != nil || aws.ToInt64(head.ContentLength) != int64(len(data)) {
			t.Errorf("stored %+v", head)
		}
	}
}

func deletion(one, two, etag string) *awss3.DeleteObjectsInput {
	in := &awss3.DeleteObjectsInput{Bucket: aws.String(bucketName), Delete: &types.Delete{}}
	for _, key := range []string{one, two} {
		id := types.ObjectIdentifier{Key: aws.String(key)}
		if etag != "" {
			id.ETag = &etag
		}
		in.Delete.Objects = append(in.Delete.Objects, id)
	}
	return in
}

func TestDeleteObjects(t *testing.T) {
	t.Parallel()
	one, two := fresh("files/batch"), fresh("files/batch")
	put(t, one, []byte("1"))
	put(t, two, []byte("2"))
	out, err := client().DeleteObjects(t.Context(), deletion(one, two, ""))
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Deleted) != 2 || len(out.Errors) != 0 || exists(t, one) || exists(t, two) {
		t.Errorf("deleted %d, errors %+v", len(out.Deleted), out.Errors)
	}
	put(t, one, []byte("1"))
	out, err = client().DeleteObjects(t.Context(), deletion(one, two, `"0123"`))
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Deleted) != 0 || len(out.Errors) != 2 || !exists(t, one) {
		t.Errorf("deleted %d with another ETag, errors %+v", len(out.Deleted), out.Errors)
	}
}

func TestUnsupported(t *testing.T) {
	t.Parallel()
	c := client()
	for operation, err := range map[string]error{
		"multipart": last(c.CreateMultipartUpload(t.Context(), &awss3.CreateMultipartUploadInput{Bucket: aws.String(bucketName), Key: aws.String("files/x")})),
		"tags": last(c.PutObject(t.Context(), &awss3.PutObjectInput{
			Bucket: aws.String(bucketName), Key: aws.String("files/x"), Body: strings.NewReader("x"), Tagging: aws.String("a=b"),
		})),
		"versions": last(c.GetObject(t.Context(), &awss3.GetObjectInput{Bucket: aws.String(bucketName), Key: aws.String("files/cors"), VersionId: aws.String("v")})),
	} {
		if code, _ := status(t, err); code != 501 {
			t.Errorf("%s: %d, want 501", operation, code)
		}
	}
	_, err := c.HeadBucket(t.Context(), &awss3.HeadBucketInput{Bucket: aws.String("another-bucket")})
	if code, _ := status(t, err); code != 404 {
		t.Errorf("another bucket: %d, want 404", code)
	}
}
