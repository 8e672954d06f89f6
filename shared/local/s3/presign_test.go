package s3_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"claimcheck.dev/claimcheck/shared/local/s3"
)

// TestPresignedPut is the table of what a client may get wrong with a
// presigned upload, and what S3 answers.
func TestPresignedPut(t *testing.T) {
	t.Parallel()
	data := []byte("%PDF-1.7 and so on")
	sum := func(in *awss3.PutObjectInput) { in.ChecksumSHA256 = aws.String(sha(data)) }
	for name, test := range map[string]struct {
		sign   func(*awss3.PutObjectInput)
		change func(*presignedRequest)
		body   []byte
		status int
		code   string
	}{
		"as signed":                {nil, nil, data, 200, ""},
		"as signed with checksum":  {sum, nil, data, 200, ""},
		"too short":                {nil, nil, data[1:], 403, "SignatureDoesNotMatch"},
		"too long":                 {nil, nil, append(data[:len(data):len(data)], 'x'), 403, "SignatureDoesNotMatch"},
		"other type":               {nil, func(p *presignedRequest) { p.header.Set("Content-Type", "text/html") }, data, 403, "SignatureDoesNotMatch"},
		"type with parameter":      {nil, func(p *presignedRequest) { p.header.Set("Content-Type", "application/pdf;charset=utf-8") }, data, 403, "SignatureDoesNotMatch"},
		"no type":                  {nil, func(p *presignedRequest) { p.header.Del("Content-Type") }, data, 403, "SignatureDoesNotMatch"},
		"no if-none-match":         {nil, func(p *presignedRequest) { p.header.Del("If-None-Match") }, data, 403, "SignatureDoesNotMatch"},
		"no checksum":              {sum, func(p *presignedRequest) { p.header.Del("X-Amz-Checksum-Sha256") }, data, 403, "SignatureDoesNotMatch"},
		"extra x-amz header":       {nil, func(p *presignedRequest) { p.header.Set("X-Amz-Meta-Note", "x") }, data, 403, "AccessDenied"},
		"extra other header":       {nil, func(p *presignedRequest) { p.header.Set("X-Note", "x") }, data, 200, ""},
		"other bytes, same length": {sum, nil, bytes.ToUpper(data), 400, "BadDigest"},
		"key in Authorization": {nil, func(p *presignedRequest) { p.header.Set("Authorization", "Bearer ck_key_secret") }, data,
			400, "InvalidArgument"},
		"tampered key":       {nil, func(p *presignedRequest) { p.url = strings.Replace(p.url, "/staging/", "/staging/other-", 1) }, data, 403, "SignatureDoesNotMatch"},
		"tampered signature": {nil, func(p *presignedRequest) { p.url = changed(p.url, "X-Amz-Signature", strings.Repeat("0", 64)) }, data, 403, "SignatureDoesNotMatch"},
		"tampered expiry":    {nil, func(p *presignedRequest) { p.url = changed(p.url, "X-Amz-Expires", "6000") }, data, 403, "SignatureDoesNotMatch"},
		"no token":           {nil, func(p *presignedRequest) { p.url = changed(p.url, "X-Amz-Security-Token", "") }, data, 400, "InvalidToken"},
		"another token":      {nil, func(p *presignedRequest) { p.url = changed(p.url, "X-Amz-Security-Token", "AAAA") }, data, 400, "InvalidToken"},
		"POST":               {nil, func(p *presignedRequest) { p.method = "POST" }, data, 405, "MethodNotAllowed"},
		"no condition signed": {func(in *awss3.PutObjectInput) { in.IfNoneMatch = nil }, nil, data,
			403, "AccessDenied"},
		"over a week": {nil, func(p *presignedRequest) { p.url = changed(p.url, "X-Amz-Expires", "604801") }, data,
			400, "AuthorizationQueryParametersError"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := fresh("staging/put " + name)
			p := presignPut(t, presignSession(), key, data, test.sign)
			if test.change != nil {
				test.change(&p)
			}
			p.header.Del("Content-Length") // net/http sends the body's
			p.send(t, bytes.NewReader(test.body)).want(t, test.status, test.code)
			stored := test.status == 200
			if exists(t, key) != stored {
				t.Errorf("stored: %v, want %v", !stored, stored)
			}
			got := events.of(key)
			if stored && (len(got) != 1 || got[0].Size != int64(len(data)) || got[0].ETag != md5hex(data) || got[0].EventName != s3.EventPut || got[0].Bucket != bucketName) {
				t.Errorf("events %+v, want one of the object", got)
			}
			if !stored && len(got) != 0 {
				t.Errorf("a refused upload made the events %+v", got)
			}
		})
	}
}

// changed sets a parameter of a URL's query, or removes it when value is
// empty, and leaves the rest as it is.
func changed(link, name, value string) string {
	base, query, _ := strings.Cut(link, "?")
	var kept []string
	for _, pair := range strings.Split(query, "&") {
		if !strings.HasPrefix(pair, name+"=") {
			kept = append(kept, pair)
		} else if value != "" {
			kept = append(kept, name+"="+url.QueryEscape(value))
		}
	}
	return base + "?" + strings.Join(kept, "&")
}

func TestSecondPut(t *testing.T) {
	t.Parallel()
	data, key := []byte("first"), fresh("staging/second")
	p := presignPut(t, presignSession(), key, data, nil)
	p.send(t, bytes.NewReader(data)).want(t, 200, "")
	p.send(t, bytes.NewReader([]byte("other"))).want(t, 412, "PreconditionFailed")
	if got := get(t, key); !bytes.Equal(got, data) {
		t.Errorf("the second PUT stored %q", got)
	}
	if _, err := client().DeleteObject(t.Context(), &awss3.DeleteObjectInput{Bucket: aws.String(bucketName), Key: &key}); err != nil {
		t.Fatal(err)
	}
	p.send(t, bytes.NewReader([]byte("other"))).want(t, 200, "") // S3 accepts a replay then
}

func TestParallelPuts(t *testing.T) {
	t.Parallel()
	const writers = 50
	key := fresh("staging/parallel")
	bodies, statuses := make([][]byte, writers), make([]int, writers)
	var done sync.WaitGroup
	for i := range writers {
		bodies[i] = make([]byte, 40_000) // beyond what the gate lets through
		rand.Read(bodies[i])
		p := presignPut(t, presignSession(), key, bodies[i], nil)
		done.Go(func() { statuses[i] = p.send(t, bytes.NewReader(bodies[i])).status })
	}
	done.Wait()
	winner := -1
	for i, status := range statuses {
		switch {
		case status == 200 && winner < 0:
			winner = i
		case status == 200:
			t.Errorf("PUTs %d and %d both succeeded", winner, i)
		case status != 412 && status != 409:
			t.Errorf("PUT %d: %d, want 412 or 409", i, status)
		}
	}
	if winner < 0 {
		t.Fatal("no PUT succeeded")
	}
	if got := get(t, key); !bytes.Equal(got, bodies[winner]) {
		t.Error("the object is not what the winner sent")
	}
	if n := len(events.of(key)); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
}

func TestRefusedLargeUploadIsAnswered(t *testing.T) {
	t.Parallel()
	data := make([]byte, 20<<20)
	p := presignPut(t, presignSession(), "staging/large-refused", data, nil)
	p.url = changed(p.url, "X-Amz-Signature", strings.Repeat("0", 64))
	for range 5 {
		p.send(t, bytes.NewReader(data)).want(t, 403, "SignatureDoesNotMatch")
	}
	p.header.Set("Authorization", "Bearer ck_key_secret")
	for range 5 {
		p.send(t, bytes.NewReader(data)).want(t, 400, "InvalidArgument")
	}
}

// TestCutOffUpload does not run beside other tests: it watches the files of
// uploads under way.
func TestCutOffUpload(t *testing.T) {
	underWay := func() int {
		entries, err := os.ReadDir(filepath.Join(dataDir, "incoming"))
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	data, key := make([]byte, 1<<20), fresh("staging/cut-off")
	p := presignPut(t, presignSession(), key, data, nil)
	cut := func([]byte) (int, error) {
		eventually(t, "the upload begins", func() bool { return underWay() == 1 })
		return 0, io.ErrUnexpectedEOF
	}
	request, err := http.NewRequestWithContext(t.Context(), p.method, p.url, io.MultiReader(bytes.NewReader(data[1:]), readerFunc(cut)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header, request.ContentLength = p.header, int64(len(data))
	if response, err := http.DefaultClient.Do(request); err == nil {
		response.Body.Close()
		t.Fatalf("a cut-off upload was answered %d", response.StatusCode)
	}
	eventually(t, "the server gives up", func() bool { return underWay() == 0 })
	if exists(t, key) || len(events.of(key)) != 0 {
		t.Errorf("a part of an upload was stored, with the events %+v", events.of(key))
	}
	p.send(t, bytes.NewReader(data)).want(t, 200, "")
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// eventually waits for a condition that something else brings about.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("waited in vain: %s", what)
			return
		}
	}
}

func TestPresignedGet(t *testing.T) {
	t.Parallel()
	put(t, "files/get/sealed", []byte("0123456789"))
	staged := fresh("staging/get")
	put(t, staged, []byte("staged"))
	session := presignSession()
	named := func(in *awss3.GetObjectInput) {
		in.ResponseContentType = aws.String("application/pdf")
		in.ResponseContentDisposition = aws.String(`attachment; filename="a b.pdf"; filename*=UTF-8''%C3%A4%20b.pdf`)
		in.ResponseCacheControl = aws.String("private, no-store")
	}
	p := presignGet(t, session, "files/get/sealed", named)
	a := p.send(t, nil)
	a.want(t, 200, "")
	for name, want := range map[string]string{
		"Content-Type":        "application/pdf",
		"Content-Disposition": `attachment; filename="a b.pdf"; filename*=UTF-8''%C3%A4%20b.pdf`,
		"Cache-Control":       "private, no-store",
		"Content-Length":      "10",
		"Accept-Ranges":       "bytes",
		"Etag":                `"` + md5hex([]byte("0123456789")) + `"`,
	} {
		if got := a.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if n := strings.Count(p.url, "X-Amz-Security-Token="); n != 1 {
		t.Errorf("the token is %d times in the URL, want once", n)
	}

	head := p
	head.method = http.MethodHead
	if got := head.send(t, nil).status; got != 403 {
		t.Errorf("HEAD of a URL signed for GET: %d, want 403", got)
	}
	tampered := p
	tampered.url = strings.Replace(p.url, "a%20b.pdf", "c%20d.pdf", 1)
	tampered.send(t, nil).want(t, 403, "SignatureDoesNotMatch")
	authorized := p
	authorized.header = http.Header{"Authorization": {"Bearer x"}}
	authorized.send(t, nil).want(t, 400, "InvalidArgument")
	if a := authorized.send(t, nil); !strings.Contains(string(a.body), "Only one auth mechanism allowed") {
		t.Errorf("the answer to two mechanisms: %s", a.body)
	}

	presignGet(t, session, "files/get/none", nil).send(t, nil).want(t, 403, "AccessDenied")
	presignGet(t, session, staged, nil).send(t, nil).want(t, 403, "AccessDenied")
	presignPut(t, session, "files/get/written", []byte("x"), nil).send(t, strings.NewReader("x")).want(t, 403, "AccessDenied")

	signed, err := awss3.NewPresignClient(clientOf(server.URL(), session)).PresignHeadObject(t.Context(), &awss3.HeadObjectInput{Bucket: aws.String(bucketName), Key: aws.String("files/get/sealed")})
	if err != nil {
		t.Fatal(err)
	}
	a = presignedRequest{http.MethodHead, signed.URL, http.Header{}}.send(t, nil)
	if a.status != 200 || a.header.Get("Content-Length") != "10" {
		t.Errorf("a presigned HEAD: %d, length %s", a.status, a.header.Get("Content-Length"))
	}
}

// signAt presigns a request with the core signer, as the functions do, at any
// time and for any life.
func signAt(t *testing.T, c aws.CredentialsProvider, method, key string, header http.Header, at time.Time, life time.Duration) string {
	t.Helper()
	u, err := url.Parse(server.URL() + "/" + bucketName + "/" + key)
	if err != nil {
		t.Fatal(err)
	}
	u.RawQuery = url.Values{"X-Amz-Expires": {strconv.Itoa(int(life / time.Second))}}.Encode()
	request := &http.Request{Method: method, URL: u, Host: u.Host, Header: header.Clone()}
	if n, err := strconv.Atoi(header.Get("Content-Length")); err == nil {
		request.ContentLength = int64(n)
	}
	keys, err := c.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	link, _, err := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }).
		PresignHTTP(t.Context(), keys, request, "UNSIGNED-PAYLOAD", "s3", region, at)
	if err != nil {
		t.Fatal(err)
	}
	return link
}

func TestPresignedTimes(t *testing.T) {
	t.Parallel()
	put(t, "files/times", []byte("x"))
	upload := http.Header{"Content-Length": {"1"}, "Content-Type": {"text/plain"}, "If-None-Match": {"*"}}
	now := time.Now()
	expiredSession := sessions.Issue(presignRole, "old", -time.Minute)
	for name, test := range map[string]struct {
		c      aws.CredentialsProvider
		method string
		key    string
		header http.Header
		at     time.Time
		life   time.Duration
		status int
		code   string
	}{
		"fresh":               {presignSession(), "GET", "files/times", http.Header{}, now, time.Minute, 200, ""},
		"expired":             {presignSession(), "GET", "files/times", http.Header{}, now.Add(-2 * time.Minute), time.Minute, 403, "AccessDenied"},
		"expired upload":      {presignSession(), "PUT", fresh("staging/times"), upload, now.Add(-2 * time.Minute), time.Minute, 403, "AccessDenied"},
		"a week":              {presignSession(), "GET", "files/times", http.Header{}, now, 604800 * time.Second, 200, ""},
		"over a week":         {presignSession(), "GET", "files/times", http.Header{}, now, 604801 * time.Second, 400, "AuthorizationQueryParametersError"},
		"young enough upload": {presignSession(), "PUT", fresh("staging/times"), upload, now.Add(-64 * time.Minute), 2 * time.Hour, 200, ""},
		"too old an upload":   {presignSession(), "PUT", fresh("staging/times"), upload, now.Add(-66 * time.Minute), 2 * time.Hour, 403, "AccessDenied"},
		"the session is over": {
			keys(expiredSession.AccessKeyID, expiredSession.SecretAccessKey, expiredSession.SessionToken),
			"GET", "files/times", http.Header{}, now, time.Minute, 400, "ExpiredToken",
		},
		"unknown key":            {keys("AKIAUNKNOWN", "secret", ""), "GET", "files/times", http.Header{}, now, time.Minute, 403, "InvalidAccessKeyId"},
		"a function's signature": {static(functionID), "GET", "files/times", http.Header{}, now, time.Minute, 200, ""},
	} {
		p := presignedRequest{test.method, signAt(t, test.c, test.method, test.key, test.header, test.at, test.life), test.header.Clone()}
		var body io.Reader
		if test.method == http.MethodPut {
			body = strings.NewReader("x")
		}
		t.Run(name, func(t *testing.T) { p.send(t, body).want(t, test.status, test.code) })
	}
}

func TestPresignRoleNeedsQuerySignature(t *testing.T) {
	t.Parallel()
	put(t, "files/query-only", []byte("x"))
	c := clientOf(server.URL(), presignSession())
	_, err := c.GetObject(t.Context(), &awss3.GetObjectInput{Bucket: aws.String(bucketName), Key: aws.String("files/query-only")})
	if code, name := status(t, err); code != 403 || name != "AccessDenied" {
		t.Errorf("a signed header: %d %s, want 403 AccessDenied", code, name)
	}
	for operation, err := range map[string]error{
		"list":   last(c.ListObjectsV2(t.Context(), &awss3.ListObjectsV2Input{Bucket: aws.String(bucketName)})),
		"delete": last(c.DeleteObject(t.Context(), &awss3.DeleteObjectInput{Bucket: aws.String(bucketName), Key: aws.String("files/query-only")})),
		"copy": last(c.CopyObject(t.Context(), &awss3.CopyObjectInput{
			Bucket: aws.String(bucketName), Key: aws.String("staging/copied"), CopySource: aws.String(bucketName + "/files/query-only"),
		})),
	} {
		if code, _ := status(t, err); code != 403 {
			t.Errorf("%s: %d, want 403", operation, code)
		}
	}
	if !exists(t, "files/query-only") {
		t.Error("the object is gone")
	}
}

func last[T any](_ T, err error) error { return err }

// TestStagingNeedsCondition is the bucket policy, which binds functions too.
func TestStagingNeedsCondition(t *testing.T) {
	t.Parallel()
	_, err := client().PutObject(t.Context(), &awss3.PutObjectInput{Bucket: aws.String(bucketName), Key: aws.String("staging/plain"), Body: strings.NewReader("x")})
	if code, name := status(t, err); code != 403 || name != "AccessDenied" {
		t.Errorf("a PUT without If-None-Match: %d %s, want 403 AccessDenied", code, name)
	}
	put(t, "files/for-staging", []byte("x"))
	_, err = client().CopyObject(t.Context(), &awss3.CopyObjectInput{
		Bucket: aws.String(bucketName), Key: aws.String("staging/plain"), CopySource: aws.String(bucketName + "/files/for-staging"),
	})
	if code, _ := status(t, err); code != 403 {
		t.Errorf("a copy without If-None-Match: %d, want 403", code)
	}
}

func TestAnonymous(t *testing.T) {
	t.Parallel()
	put(t, "files/anonymous", []byte("x"))
	for _, test := range []struct{ method, path string }{
		{"GET", "/" + bucketName + "/files/anonymous"},
		{"HEAD", "/" + bucketName + "/files/anonymous"},
		{"PUT", "/" + bucketName + "/staging/anonymous"},
		{"DELETE", "/" + bucketName + "/files/anonymous"},
		{"GET", "/" + bucketName + "?list-type=2"},
		{"GET", "/"},
		{"POST", "/" + bucketName},
		{"PATCH", "/create-user"},
	} {
		p := presignedRequest{test.method, server.URL() + test.path, http.Header{}}
		if got := p.send(t, strings.NewReader("x")).status; got != 403 && got != 405 {
			t.Errorf("%s %s: %d, want a refusal", test.method, test.path, got)
		}
	}
	if !exists(t, "files/anonymous") {
		t.Error("the object is gone")
	}
}

func TestLengthIsRequired(t *testing.T) {
	t.Parallel()
	p := presignPut(t, presignSession(), "staging/chunked", []byte("x"), func(in *awss3.PutObjectInput) { in.ContentLength = nil })
	p.send(t, io.MultiReader(strings.NewReader("x"))).want(t, 501, "NotImplemented") // net/http sends it chunked
	if exists(t, "staging/chunked") {
		t.Error("a body without a length was stored")
	}
}

// TestCurl uploads and downloads with the client people have.
func TestCurl(t *testing.T) {
	t.Parallel()
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("curl is not installed")
	}
	dir := t.TempDir()
	data := make([]byte, 3<<20) // curl asks for 100 Continue from 1 MiB
	rand.Read(data)
	path := filepath.Join(dir, "up load.bin")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		out, err := exec.CommandContext(ctx, curl, append([]string{"-sS", "-o", filepath.Join(dir, "body"), "-w", "%{http_code}"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("curl: %v: %s", err, out)
		}
		return string(out)
	}
	p := presignPut(t, presignSession(), fresh("staging/curl"), data, func(in *awss3.PutObjectInput) {
		in.ChecksumSHA256 = aws.String(sha(data))
	})
	args := []string{"-X", "PUT", "--globoff", "-T", path}
	for name, values := range p.header {
		args = append(args, "-H", name+": "+values[0])
	}
	if got := run(append(args, changed(p.url, "X-Amz-Signature", "00"))...); got != "403" {
		t.Errorf("a tampered upload: %s, want 403", got)
	}
	if got := run(append(args, p.url)...); got != "200" {
		body, _ := os.ReadFile(filepath.Join(dir, "body"))
		t.Fatalf("the upload: %s, want 200\n%s", got, body)
	}
	if got := run(append(args, p.url)...); got != "412" {
		t.Errorf("the second upload: %s, want 412", got)
	}
	chunked := append([]string{"-H", "Transfer-Encoding: chunked"}, args...)
	if got := run(append(chunked, p.url)...); got != "501" && got != "403" && got != "411" {
		t.Errorf("a chunked upload: %s, want a refusal", got)
	}
	put(t, "files/curl", data)
	if got := run(presignGet(t, presignSession(), "files/curl", nil).url); got != "200" {
		t.Fatalf("the download: %s, want 200", got)
	}
	body, err := os.ReadFile(filepath.Join(dir, "body"))
	if err != nil || !bytes.Equal(body, data) {
		t.Errorf("downloaded %d bytes, want those uploaded: %v", len(body), err)
	}
}
