package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
	"claimcheck.dev/claimcheck/shared/functiontest"
)

const (
	bucket = "claimcheck-dev-123456789012-eu-west-1" // of the sample event
	other  = "f_00000000000000000000000000"
	etag   = "c6116a52a7cc358b43064beac09a8e77"
)

// message is one SQS message whose body is an S3 notification of the given keys, as S3 writes them.
func message(id, bucket string, keys ...string) events.SQSMessage {
	records := []map[string]any{}
	for _, k := range keys {
		records = append(records, map[string]any{
			"eventVersion": "2.1", "eventSource": "aws:s3", "eventName": "ObjectCreated:Put",
			"s3": map[string]any{"bucket": map[string]any{"name": bucket}, "object": map[string]any{"key": k, "size": 48, "eTag": etag}},
		})
	}
	body, err := json.Marshal(map[string]any{"Records": records})
	if err != nil {
		panic(err)
	}
	return events.SQSMessage{MessageId: id, Body: string(body)}
}

// raw is one SQS message with any body.
func raw(id, body string) events.SQSMessage { return events.SQSMessage{MessageId: id, Body: body} }

// testEvent is what S3 sends when a notification is set up.
const testEvent = `{"Service":"Amazon S3","Event":"s3:TestEvent","Time":"2026-01-14T09:00:00.000Z","Bucket":"claimcheck-dev-123456789012-eu-west-1","RequestId":"5582815E1AEA5ADF","HostId":"8cLeGAmw098X5cv4Zkwcmo8vvZa3eH3eKxsPzbB9wrR+YstdA6Knx4Ip8EXAMPLE"}`

// deliver handles a batch and returns the ids of the messages that are to come again, and the log.
func deliver(t *testing.T, v verifier, batch ...events.SQSMessage) (failed []string, log string) {
	t.Helper()
	var lines bytes.Buffer
	h := handler{bucket: bucket, verifier: v, log: slog.New(slog.NewJSONHandler(&lines, nil))}
	resp, err := h.handle(t.Context(), events.SQSEvent{Records: batch})
	if err != nil {
		t.Fatalf("the whole batch failed: %v", err)
	}
	for _, f := range resp.BatchItemFailures {
		failed = append(failed, f.ItemIdentifier)
	}
	return failed, lines.String()
}

// recorder notes the ids and ETags it is told of and fails the ids in fail.
type recorder struct {
	ids, etags []string
	fail       map[string]error
}

func (r *recorder) Event(_ context.Context, id, etag string) error {
	r.ids, r.etags = append(r.ids, id), append(r.etags, etag)
	return r.fail[id]
}

func TestSampleEvent(t *testing.T) {
	t.Parallel()
	f := functiontest.New(t)
	f.Reserve(t)
	f.Stage(t, functiontest.FileID, functiontest.PDF)
	var batch events.SQSEvent
	functiontest.Sample(t, "verify-upload", &batch)
	failed, log := deliver(t, f.Verifier(), batch.Records...)
	if len(failed) > 0 || !strings.Contains(log, functiontest.FileID) {
		t.Errorf("to come again: %v\n%s", failed, log)
	}
	file := f.Records.Snapshot(t).Files[functiontest.FileID]
	objects := f.Store.Objects()
	if file.State != files.Ready || len(objects.Staged) != 0 || !bytes.Equal(objects.Sealed[file.Sealed], functiontest.PDF) {
		t.Errorf("the file is %s, its objects are %v", file.State, objects)
	}
	filestest.CheckInvariants(t, f.Records.Snapshot(t))
}

// One malformed message of ten: nine files are settled, one message is reported.
func TestBatchOfTen(t *testing.T) {
	t.Parallel()
	f := functiontest.New(t)
	var batch []events.SQSMessage
	for i := range 10 {
		id := fmt.Sprintf("f_%026d", i)
		f.Reserve(t, func(file *files.File) { file.ID = id })
		f.Stage(t, id, functiontest.PDF)
		batch = append(batch, message(fmt.Sprint("m", i), bucket, "staging/"+id))
	}
	batch[6].Body = batch[6].Body[:len(batch[6].Body)-1]
	failed, log := deliver(t, f.Verifier(), batch...)
	if !slices.Equal(failed, []string{"m6"}) {
		t.Errorf("to come again: %v, want m6", failed)
	}
	for i := range 10 {
		id := fmt.Sprintf("f_%026d", i)
		want := files.Ready
		if i == 6 {
			want = files.Reserved
		}
		if got := f.Records.Snapshot(t).Files[id].State; got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	if n := strings.Count(log, `"msg":"settled"`); n != 9 || strings.Count(log, `"level":"ERROR"`) != 1 {
		t.Errorf("%d were settled:\n%s", n, log)
	}
	filestest.CheckInvariants(t, f.Records.Snapshot(t))
}

func TestMessages(t *testing.T) {
	t.Parallel()
	away := map[string]error{"away": files.ErrTryAgain}
	for name, c := range map[string]struct {
		batch  []events.SQSMessage
		ids    []string
		failed []string
	}{
		"nothing":                   {nil, nil, nil},
		"test event":                {[]events.SQSMessage{raw("m", testEvent)}, nil, nil},
		"no records":                {[]events.SQSMessage{raw("m", `{}`), raw("n", `{"Records":[]}`), raw("o", `null`)}, nil, nil},
		"another bucket":            {[]events.SQSMessage{message("m", "somebody-elses", "staging/a")}, nil, nil},
		"no bucket":                 {[]events.SQSMessage{message("m", "", "staging/a")}, nil, nil},
		"outside of staging":        {[]events.SQSMessage{message("m", bucket, "files/f_1/e", "staging", "staging/", "xstaging/a", "Staging/a", "/staging/a", "")}, nil, nil},
		"no file id":                {[]events.SQSMessage{message("m", bucket, "staging/notes.txt", "staging/a/b")}, []string{"notes.txt", "a/b"}, nil},
		"plus is a space":           {[]events.SQSMessage{message("m", bucket, "staging/a+b", "staging/a%2Bb", "staging/a%20b", "staging/%C3%A9", "staging%2Fc")}, []string{"a b", "a+b", "a b", "é", "c"}, nil},
		"not JSON":                  {[]events.SQSMessage{raw("m", "hello"), raw("n", ""), raw("o", `[]`), raw("p", `{"Records":5}`), raw("q", `{"Records":[{"s3":[]}]}`)}, nil, []string{"m", "n", "o", "p", "q"}},
		"bad escape":                {[]events.SQSMessage{message("m", bucket, "staging/%zz"), message("n", bucket, "staging/a")}, []string{"a"}, []string{"m"}},
		"bad escape among others":   {[]events.SQSMessage{message("m", bucket, "staging/a", "staging/%", "staging/b")}, []string{"a", "b"}, []string{"m"}},
		"one of two records failed": {[]events.SQSMessage{message("m", bucket, "staging/away", "staging/b")}, []string{"away", "b"}, []string{"m"}},
		"one of two messages":       {[]events.SQSMessage{message("m", bucket, "staging/a"), message("n", bucket, "staging/away"), message("o", bucket, "staging/b")}, []string{"a", "away", "b"}, []string{"n"}},
		"delivered twice":           {[]events.SQSMessage{message("m", bucket, "staging/a"), message("m2", bucket, "staging/a")}, []string{"a", "a"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := &recorder{fail: away}
			failed, log := deliver(t, v, c.batch...)
			if !slices.Equal(failed, c.failed) {
				t.Errorf("to come again: %v, want %v", failed, c.failed)
			}
			if !slices.Equal(v.ids, c.ids) {
				t.Errorf("verified %q, want %q", v.ids, c.ids)
			}
			if slices.ContainsFunc(v.etags, func(e string) bool { return e != etag }) {
				t.Errorf("told of ETags %q", v.etags)
			}
			if got := strings.Count(log, `"level":"ERROR"`); got != len(c.failed) {
				t.Errorf("%d error lines for %d failures:\n%s", got, len(c.failed), log)
			}
		})
	}
}

// What an event may find: each is settled, and nothing is left in staging.
func TestSettled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		setup func(t *testing.T, f *functiontest.Fakes)
		state files.State
	}{
		"no record": {func(t *testing.T, f *functiontest.Fakes) { f.Stage(t, functiontest.FileID, functiontest.PDF) }, ""},
		"ready, replayed": {func(t *testing.T, f *functiontest.Fakes) {
			f.Ready(t)
			f.Stage(t, functiontest.FileID, []byte("other bytes"))
		}, files.Ready},
		"deleted, replayed": {func(t *testing.T, f *functiontest.Fakes) {
			f.End(t, f.Reserve(t), files.Deleted)
			f.Stage(t, functiontest.FileID, functiontest.PDF)
		}, files.Deleted},
		"rejected": {func(t *testing.T, f *functiontest.Fakes) {
			f.Reserve(t)
			f.Stage(t, functiontest.FileID, []byte("prose"))
		}, files.Rejected},
		"too late": {func(t *testing.T, f *functiontest.Fakes) {
			f.Reserve(t)
			f.Clock.Advance(functiontest.Limits.ReservationTTL * 2)
			f.Stage(t, functiontest.FileID, functiontest.PDF)
		}, files.Expired},
		"gone already": {func(t *testing.T, f *functiontest.Fakes) { f.Reserve(t) }, files.Reserved},
		"on time, event late": {func(t *testing.T, f *functiontest.Fakes) {
			f.Reserve(t)
			f.Stage(t, functiontest.FileID, functiontest.PDF)
			f.Clock.Advance(functiontest.Limits.ReservationTTL * 2)
		}, files.Ready},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := functiontest.New(t)
			c.setup(t, f)
			m := message("m", bucket, "staging/"+functiontest.FileID)
			for range 3 { // delivered again and again
				if failed, log := deliver(t, f.Verifier(), m); len(failed) > 0 {
					t.Errorf("to come again: %v\n%s", failed, log)
				}
			}
			if got := f.Records.Snapshot(t).Files[functiontest.FileID].State; got != c.state {
				t.Errorf("the file is %q, want %q", got, c.state)
			}
			if staged := f.Store.Objects().Staged; len(staged) > 0 {
				t.Errorf("left in staging: %v", staged)
			}
			filestest.CheckInvariants(t, f.Records.Snapshot(t))
		})
	}
}

// A store or a table that fails is no verdict: the message comes again and finds the file as it was.
func TestFailuresComeAgain(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"File", "Open", "Head", "Seal", "MarkReady", "Discard"} {
		for _, when := range []filestest.When{filestest.Before, filestest.After} {
			if op == "Head" && when == filestest.After {
				continue // a read has no effect to hide
			}
			t.Run(fmt.Sprint(op, " ", when), func(t *testing.T) {
				t.Parallel()
				f := functiontest.New(t)
				f.Reserve(t)
				f.Stage(t, functiontest.FileID, functiontest.PDF)
				f.Faults.Fail(filestest.Step{Op: op, N: 1}, when)
				m := message("m", bucket, "staging/"+functiontest.FileID)
				if failed, log := deliver(t, f.Verifier(), m); !slices.Equal(failed, []string{"m"}) || !strings.Contains(log, "injected fault") {
					t.Errorf("to come again: %v\n%s", failed, log)
				}
				if failed, log := deliver(t, f.Verifier(), m); len(failed) > 0 {
					t.Errorf("to come again a second time: %v\n%s", failed, log)
				}
				objects := f.Store.Objects()
				if got := f.Records.Snapshot(t).Files[functiontest.FileID].State; got != files.Ready || len(objects.Staged) > 0 || len(objects.Sealed) != 1 {
					t.Errorf("the file is %s, its objects are %v", got, objects)
				}
				filestest.CheckInvariants(t, f.Records.Snapshot(t))
			})
		}
	}
}

// Log lines name ids and messages, never keys of strangers, which could be anything.
func TestStrangersAreNotLogged(t *testing.T) {
	t.Parallel()
	_, log := deliver(t, &recorder{}, message("m", bucket, "elsewhere/s3cr3t", "staging/%zz-s3cr3t"), message("n", "bucket-s3cr3t", "staging/a"), raw("o", "s3cr3t"))
	if strings.Contains(log, "s3cr3t") {
		t.Errorf("logged: %s", log)
	}
}

func FuzzMessages(f *testing.F) {
	for _, seed := range []string{testEvent, message("m", bucket, "staging/a+b", "staging/%zz").Body, `{"Records":[{"s3":{"bucket":{"name":"` + bucket + `"},"object":{"key":"staging/\ud800"}}}]}`, `[]`, `{"Records":null}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		v := &recorder{}
		failed, _ := deliver(t, v, raw("m", body), message("n", bucket, "staging/"+other))
		if slices.Contains(failed, "n") || v.ids[len(v.ids)-1] != other {
			t.Errorf("%q took its neighbour along: %v, %q", body, failed, v.ids)
		}
		for _, id := range v.ids {
			if id == "" {
				t.Errorf("%q: an empty id was verified", body)
			}
		}
	})
}
