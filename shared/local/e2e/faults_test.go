package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"claimcheck.dev/claimcheck/shared/local/s3"
	"claimcheck.dev/claimcheck/shared/local/stack"
)

// inside is a stack in the process of the test, whose engines can be made to fail. A process has one at a time, so its
// tests are not parallel.
type inside struct {
	*stack.Stack
	client
	data string
	log  *logBuffer
	jump *atomic.Int64 // of the clock of queues, nanoseconds
}

type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// open starts it on data, which may hold an earlier one's data.
func open(t *testing.T, data string, change ...func(*stack.Options)) *inside {
	t.Helper()
	if err := os.CopyFS(filepath.Join(data, "functions"), os.DirFS(built)); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	in := &inside{data: data, log: &logBuffer{}, jump: &atomic.Int64{}}
	opt := stack.Options{
		Root: root, Data: data, Log: in.log,
		Now: func() time.Time { return time.Now().Add(time.Duration(in.jump.Load())) },
	}
	for _, c := range change {
		c(&opt)
	}
	if folder := os.Getenv("CLAIMCHECK_DEPLOYED"); folder != "" {
		useDeployed(t, folder, &opt)
	}
	var err error
	in.Stack, err = stack.Start(t.Context(), opt)
	if err != nil {
		t.Fatalf("%v\n%s", err, in.log)
	}
	in.client = client{in.URL, in.Key}
	t.Cleanup(func() {
		in.Close()
		if t.Failed() {
			t.Log(in.log)
		}
	})
	return in
}

// later lets what failed come again: the clock of the queues passes their visibility timeouts.
func (in *inside) later() {
	in.jump.Add(int64(361 * time.Second))
	in.Wake()
}

func (in *inside) objects(t *testing.T, prefix string) int {
	t.Helper()
	n, err := countKeys(filepath.Join(in.data, "s3", "objects"), prefix)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// settled waits until the queue holds nothing.
func (in *inside) settled(t *testing.T, queue string) {
	t.Helper()
	name, err := in.QueueName(queue)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the messages of "+queue, func() bool {
		list, err := in.Queues().Messages(name)
		return err == nil && len(list) == 0
	})
}

// receives waits until the one message of a queue has been received n times and was given back.
func (in *inside) receives(t *testing.T, queue string, n int) {
	t.Helper()
	name, err := in.QueueName(queue)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, fmt.Sprintf("attempt %d", n), func() bool {
		list, err := in.Queues().Messages(name)
		return err == nil && len(list) == 1 && list[0].Receives >= n
	})
}

// TestCost counts what one whole life costs: reserved, uploaded, verified by the event, resolved, read, deleted.
func TestCost(t *testing.T) {
	in := open(t, t.TempDir())
	table := in.Template().Tables[0].Name
	spent := func() (write, indexes float64) {
		c := in.Dynamo().Counters().Tables[table]
		for _, u := range c.Indexes {
			indexes += u.Write
		}
		return c.Write, indexes
	}
	fresh := func() {
		in.settled(t, "DeletionQueue")
		in.Dynamo().ResetCounters()
		in.S3().ResetCounters()
	}
	in.usage(t) // the key is known to this function now
	for _, idempotent := range []bool{false, true} {
		most, header := 8.0, []string{}
		if idempotent {
			most, header = 10, []string{"Idempotency-Key", "once"}
		}
		fresh()
		got := in.call("POST", "/v1/uploads", `{"filename":"acme-msa-2026.pdf","content_type":"application/pdf","size_bytes":27}`, header...)
		if got.status != 201 {
			t.Fatalf("reserving: %s", got)
		}
		write, indexes := spent()
		t.Logf("reserve (Idempotency-Key: %v): %v write units, and %v of indexes", idempotent, write, indexes)
		if write > most || write == 0 {
			t.Errorf("reserve cost %v write units, want at most %v", write, most)
		}
		var slot reservation
		got.into(t, &slot)
		if got := slot.put([]byte("%PDF-1.7\nhello world\n%%EOF\n")); got.status != 200 {
			t.Fatalf("uploading: %s", got)
		}
		eventually(t, "verification by the event", func() bool {
			var f file
			in.call("GET", "/v1/files/"+slot.ID, "").into(t, &f)
			return f.State == "ready"
		})
		in.settled(t, "VerifyQueue")
		body, err := json.Marshal(map[string]any{"input": map[string]string{"doc": "claim://" + slot.ID}})
		if err != nil {
			t.Fatal(err)
		}
		var resolved struct {
			Meta map[string]map[string]struct{ URL string } `json:"_meta"`
		}
		in.call("POST", "/v1/resolve", string(body)).into(t, &resolved)
		if got := request("GET", resolved.Meta["dev.claimcheck/files"]["claim://"+slot.ID].URL, nil); got.status != 200 {
			t.Fatalf("reading: %s", got)
		}
		requests := 0
		counts := in.S3().Counters().Requests
		for _, n := range counts {
			requests += n
		}
		t.Logf("the hand-off: %d S3 requests: %v", requests, counts)
		if requests > 6 || counts["PutObject"] != 1 {
			t.Errorf("the hand-off took %d S3 requests (%v), want at most 6", requests, counts)
		}
		if got := in.call("DELETE", "/v1/files/"+slot.ID, ""); got.status != 204 {
			t.Fatalf("deleting: %s", got)
		}
		write, indexes = spent()
		t.Logf("the whole life (Idempotency-Key: %v): %v write units, and %v of indexes", idempotent, write, indexes)
		if write > 24 {
			t.Errorf("the whole life cost %v write units, want at most 24", write)
		}
		eventually(t, "the deletion", func() bool { return in.objects(t, "files/"+slot.ID+"/") == 0 })
		eventually(t, "the look of the deletion queue", func() bool { return strings.Contains(in.log.String(), `"msg":"queued a deletion","id":"`+slot.ID) })
		in.settled(t, "DeletionQueue")
		t.Logf("with its end: S3 requests %v", in.S3().Counters().Requests)
	}
}

// TestDeleteWhileS3Fails: S3 refuses to delete, in the request and five times for the deletion queue.
func TestDeleteWhileS3Fails(t *testing.T) {
	in := open(t, t.TempDir())
	f := in.inline(t, "filename=a", "bytes")
	var refused atomic.Int64
	in.S3().SetFaults(func(r s3.Request) s3.Fault {
		if r.Operation == "DeleteObject" || r.Operation == "ListObjectsV2" {
			refused.Add(1)
			return s3.Fault{Kind: s3.Error500}
		}
		return s3.Fault{}
	})
	if got := in.call("DELETE", "/v1/files/"+f.ID, ""); got.status != 204 {
		t.Fatalf("DELETE while S3 fails: %s", got)
	}
	for n := range 5 {
		in.receives(t, "DeletionQueue", n+1)
		eventually(t, "the report of the failure", func() bool { return strings.Count(in.log.String(), `"msg":"deletion failed"`) == n+1 })
		eventually(t, "the end of the attempt", func() bool { return strings.Count(in.log.String(), "failed, it comes again") == n+1 })
		if in.objects(t, "files/"+f.ID+"/") != 1 {
			t.Fatal("the object is gone though S3 refused")
		}
		in.later()
	}
	in.S3().SetFaults(nil)
	eventually(t, "the deletion", func() bool {
		in.later() // an attempt may have begun before S3 was well again
		return in.objects(t, "files/"+f.ID+"/") == 0
	})
	in.settled(t, "DeletionQueue")
	if letters, err := in.Queues().Messages(mustQueue(t, in, "DeletionDeadLetterQueue")); err != nil || len(letters) > 0 {
		t.Errorf("%d dead letters (%v)", len(letters), err)
	}
	if got := in.call("GET", "/v1/files/"+f.ID, ""); got.code() != "file_deleted" {
		t.Errorf("the deleted file answers %s", got)
	}
	if u := in.usage(t); u != (usage{}) {
		t.Errorf("usage is %+v", u)
	}
	if refused.Load() < 10 {
		t.Errorf("S3 refused only %d times", refused.Load())
	}
}

func mustQueue(t *testing.T, in *inside, id string) string {
	t.Helper()
	name, err := in.QueueName(id)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// TestDeadLetters: verification fails until its message is a dead letter; an operator lists it and sends it back.
func TestDeadLetters(t *testing.T) {
	in := open(t, t.TempDir())
	in.S3().SetFaults(func(r s3.Request) s3.Fault {
		if r.Operation == "GetObject" && !r.Presigned {
			return s3.Fault{Kind: s3.Error503SlowDown}
		}
		return s3.Fault{}
	})
	slot := in.reserve(t, `{"filename":"a","size_bytes":5}`)
	if got := slot.put([]byte("bytes")); got.status != 200 {
		t.Fatalf("uploading: %s", got)
	}
	dlq := func(args ...string) string {
		out, err := exec.Command(program, append([]string{"dlq", args[0], "-data", in.data}, args[1:]...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("dlq: %v\n%s", err, out)
		}
		return string(out)
	}
	letters := mustQueue(t, in, "VerifyDeadLetterQueue")
	eventually(t, "the dead letter", func() bool {
		in.later()
		list, err := in.Queues().Messages(letters)
		return err == nil && len(list) == 1
	})
	if out := dlq("list"); !strings.Contains(out, letters) || !strings.Contains(out, "staging/"+slot.ID) {
		t.Errorf("the list of dead letters is\n%s", out)
	}
	if got := in.call("GET", "/v1/files/"+slot.ID, ""); got.status != 200 || !strings.Contains(string(got.body), `"reserved"`) {
		t.Errorf("while S3 fails the file answers %s", got)
	}
	in.S3().SetFaults(nil)
	if out := dlq("redrive", "-queue", letters); !strings.Contains(out, letters+": 1 messages sent back") {
		t.Errorf("redriving said %s", out)
	}
	eventually(t, "verification", func() bool { return in.read(t, slot.ID).status == 200 })
	if out := dlq("list"); strings.Contains(out, slot.ID) {
		t.Errorf("after redriving the list is\n%s", out)
	}
}

// direct carries the requests of an SDK client straight into the table.
type direct struct{ http.Handler }

func (d direct) Do(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = io.NopCloser(strings.NewReader(""))
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Result(), nil
}

// age makes a file appear to have been verified long ago.
func (in *inside) age(t *testing.T, id string) {
	t.Helper()
	client := dynamodb.New(dynamodb.Options{
		Region: stack.Region, BaseEndpoint: aws.String("http://table"), HTTPClient: direct{in.Dynamo()},
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
	_, err := client.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{
		TableName:        &in.Template().Tables[0].Name,
		Key:              map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: id}, "sk": &types.AttributeValueMemberS{Value: "file"}},
		UpdateExpression: aws.String("SET verified_at = :then"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":then": &types.AttributeValueMemberN{Value: fmt.Sprint(time.Now().Add(-time.Hour).Unix())},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// rewrite changes the descriptions of the objects of a stopped stack; one for which change returns false goes.
func rewrite(t *testing.T, data string, change func(object map[string]any) bool) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(data, "s3", "objects", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var object map[string]any
		if err := json.Unmarshal(text, &object); err != nil {
			t.Fatal(err)
		}
		if !change(object) {
			err = os.Remove(path)
		} else if text, err = json.Marshal(object); err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestReconcile: objects that no record names, old and young, and a record whose object vanished.
func TestReconcile(t *testing.T) {
	data := t.TempDir()
	in := open(t, data)
	kept, lost := in.inline(t, "filename=kept", "kept"), in.inline(t, "filename=lost", "vanished")
	old, young := in.inline(t, "filename=old", "an orphan, three hours old"), in.inline(t, "filename=young", "an orphan, but young")
	in.age(t, lost.ID)
	in.age(t, kept.ID)
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	const nobody = "f_aaaaaaaaaaaaaaaaaaaaaaaa" // and two more
	rewrite(t, data, func(o map[string]any) bool {
		key := o["key"].(string)
		switch {
		case strings.Contains(key, lost.ID):
			return false
		case strings.Contains(key, kept.ID):
			o["modified"] = time.Now().Add(-3 * time.Hour).UTC()
		}
		return true
	})
	// An orphan is an object whose record is another: the copies below have the bytes of a file, under other keys.
	orphan(t, data, old.ID, "files/"+nobody+"aa/etag", 3*time.Hour)
	orphan(t, data, old.ID, "staging/"+nobody+"bb", 3*time.Hour)
	orphan(t, data, old.ID, "files/"+kept.ID+"/other", 3*time.Hour)
	orphan(t, data, young.ID, "files/"+nobody+"cc/etag", time.Minute)

	in = open(t, data)
	if res, err := in.Trigger(t.Context(), "reconcile"); err != nil || res.FunctionError != "" {
		t.Fatalf("reconciling: %s %v", res.Payload, err)
	}
	line := ""
	eventually(t, "the report", func() bool {
		for text := range strings.SplitSeq(in.log.String(), "\n") {
			if strings.Contains(text, `"msg":"reconciled"`) {
				line = text
			}
		}
		return line != ""
	})
	for _, want := range []string{`"Orphans":3`, `"Lost":1`, `"Unheld":0`, `"Drifted":0`, `"CloudWatchMetrics"`} {
		if !strings.Contains(line, want) {
			t.Errorf("the report lacks %s: %s", want, line)
		}
	}
	for prefix, want := range map[string]int{
		"files/" + nobody + "aa/": 0, "staging/" + nobody: 0, "files/" + kept.ID + "/": 1, "files/" + nobody + "cc/": 1,
	} {
		if n := in.objects(t, prefix); n != want {
			t.Errorf("%d objects under %s, want %d", n, prefix, want)
		}
	}
	if got := in.call("GET", "/v1/files/"+lost.ID, ""); got.status != 410 {
		t.Errorf("the file whose object vanished answers %s", got)
	}
	if got := in.read(t, kept.ID); string(got.body) != "kept" {
		t.Errorf("the file beside it reads %s", got)
	}
	left := kept.SizeBytes + old.SizeBytes + young.SizeBytes
	if u := in.usage(t); u.Account.Files != 3 || u.Account.LiveBytes != left {
		t.Errorf("usage is %+v, want 3 files of %d bytes", u, left)
	}
}

// orphan copies the object of a file, of a stopped stack, to another key.
func orphan(t *testing.T, data, id, key string, age time.Duration) {
	t.Helper()
	var found map[string]any
	rewrite(t, data, func(o map[string]any) bool {
		if strings.HasPrefix(o["key"].(string), "files/"+id+"/") {
			found = o
		}
		return true
	})
	blob := hexSHA256([]byte(key))[:26]
	text, err := os.ReadFile(filepath.Join(data, "s3", "blobs", found["blob"].(string)))
	if err == nil {
		err = os.WriteFile(filepath.Join(data, "s3", "blobs", blob), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	found["key"], found["blob"], found["modified"] = key, blob, time.Now().Add(-age).UTC()
	if text, err = json.Marshal(found); err == nil {
		err = os.WriteFile(filepath.Join(data, "s3", "objects", hexSHA256([]byte(key))), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
