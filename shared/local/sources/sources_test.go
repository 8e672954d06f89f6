package sources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"claimcheck.dev/claimcheck/shared/local/lambda"
	"claimcheck.dev/claimcheck/shared/local/queue"
)

// function is an Invoker that answers with answer and remembers its events.
type function struct {
	answer func(event []byte) (lambda.Result, error)
	mu     sync.Mutex
	events [][]byte
}

func (f *function) Invoke(_ context.Context, event []byte) (lambda.Result, error) {
	f.mu.Lock()
	f.events = append(f.events, event)
	f.mu.Unlock()
	if f.answer == nil {
		return lambda.Result{Payload: []byte("null")}, nil
	}
	return f.answer(event)
}

func (f *function) calls() [][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([][]byte(nil), f.events...)
}

func ok(payload string) (lambda.Result, error) { return lambda.Result{Payload: []byte(payload)}, nil }

func broken() (lambda.Result, error) {
	return lambda.Result{Payload: []byte(`{"errorMessage":"no luck"}`), FunctionError: "Unhandled"}, nil
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not happen", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// run starts a source and stops it with the test.
func run(t *testing.T, source func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { source(ctx); close(done) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

func queues(t *testing.T) *queue.Server {
	t.Helper()
	q, err := queue.Open(queue.Options{Dir: t.TempDir(), Host: "127.0.0.1:1", Region: "eu-west-1", AccountID: "123456789012", Queues: []queue.Spec{
		{Name: "work", Visibility: 20 * time.Millisecond, DeadLetter: "dead", MaxReceives: 2}, {Name: "dead"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	return q
}

func send(t *testing.T, q *queue.Server, bodies ...string) {
	t.Helper()
	for _, b := range bodies {
		if _, err := q.Send("work", b, map[string]queue.Attribute{"n": {DataType: "Number", Value: "5"}}, -1); err != nil {
			t.Fatal(err)
		}
	}
}

func bodies(t *testing.T, q *queue.Server, name string) []string {
	t.Helper()
	messages, err := q.Messages(name)
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, m := range messages {
		out = append(out, m.Body)
	}
	return out
}

func source(t *testing.T, q *queue.Server, f *function) *Queue {
	return &Queue{
		Target: Target{Function: f, Label: "work", Log: t.Output()}, Queues: q, Name: "work",
		BatchSize: 10, Workers: 1, Region: "eu-west-1",
	}
}

func TestQueueEvent(t *testing.T) {
	t.Parallel()
	q, f := queues(t), &function{}
	send(t, q, "hello")
	run(t, source(t, q, f).Run)
	eventually(t, "deletion", func() bool { return len(bodies(t, q, "work")) == 0 })
	var e events.SQSEvent
	if err := json.Unmarshal(f.calls()[0], &e); err != nil || len(e.Records) != 1 {
		t.Fatalf("%s: %v", f.calls()[0], err)
	}
	r := e.Records[0]
	if r.Body != "hello" || r.EventSource != "aws:sqs" || r.EventSourceARN != "arn:aws:sqs:eu-west-1:123456789012:work" || r.AWSRegion != "eu-west-1" ||
		r.Md5OfBody != "5d41402abc4b2a76b9719d911017c592" || *r.MessageAttributes["n"].StringValue != "5" || r.MessageAttributes["n"].DataType != "Number" ||
		r.Attributes["ApproximateReceiveCount"] != "1" || r.ReceiptHandle == "" || r.MessageId == "" {
		t.Errorf("the record is %+v", r)
	}
}

// TestQueueOutcomes: what is left of two messages, "good" and "bad", after their
// second try at most.
func TestQueueOutcomes(t *testing.T) {
	t.Parallel()
	report := func(event []byte, which func(body string) bool) string {
		var e events.SQSEvent
		if err := json.Unmarshal(event, &e); err != nil {
			return err.Error()
		}
		var r events.SQSEventResponse
		for _, m := range e.Records {
			if which(m.Body) {
				r.BatchItemFailures = append(r.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
			}
		}
		out, _ := json.Marshal(r)
		return string(out)
	}
	tests := []struct {
		name    string
		partial bool
		answer  func(event []byte) (lambda.Result, error)
		dead    []string
	}{
		{"all well", true, func([]byte) (lambda.Result, error) { return ok(`{"batchItemFailures":[]}`) }, nil},
		{"no answer", true, func([]byte) (lambda.Result, error) { return ok(``) }, nil},
		{"null", true, func([]byte) (lambda.Result, error) { return ok(`null`) }, nil},
		{"one failed", true, func(e []byte) (lambda.Result, error) {
			return ok(report(e, func(body string) bool { return body == "bad" }))
		}, []string{"bad"}},
		{"a report that is not asked for", false, func(e []byte) (lambda.Result, error) {
			return ok(report(e, func(string) bool { return true }))
		}, nil},
		{"the function failed", true, func([]byte) (lambda.Result, error) { return broken() }, []string{"good", "bad"}},
		{"throttled", true, func([]byte) (lambda.Result, error) { return lambda.Result{}, lambda.ErrThrottled }, []string{"good", "bad"}},
		{"nonsense", true, func([]byte) (lambda.Result, error) { return ok(`"?"`) }, []string{"good", "bad"}},
		{"an unknown message", true, func([]byte) (lambda.Result, error) {
			return ok(`{"batchItemFailures":[{"itemIdentifier":"who"}]}`)
		}, []string{"good", "bad"}},
		{"an empty name", true, func([]byte) (lambda.Result, error) {
			return ok(`{"batchItemFailures":[{"itemIdentifier":""}]}`)
		}, []string{"good", "bad"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			q := queues(t)
			s := source(t, q, &function{answer: test.answer})
			s.PartialFailures = test.partial
			send(t, q, "good", "bad")
			run(t, s.Run)
			eventually(t, "an empty queue", func() bool { return len(bodies(t, q, "work")) == 0 })
			if got := bodies(t, q, "dead"); len(got) != len(test.dead) || len(got) > 0 && !reflect.DeepEqual(got, test.dead) {
				t.Errorf("dead letters %q, want %q", got, test.dead)
			}
		})
	}
}

func TestQueueBatchesAndFilter(t *testing.T) {
	t.Parallel()
	q, f := queues(t), &function{}
	send(t, q, `{"kind":"a"}`, `{"kind":"b"}`, `{"kind":"a","n":2}`, "plain")
	s := source(t, q, f)
	s.BatchSize, s.Window = 2, 10*time.Second
	var err error
	if s.Filter, err = NewFilter([]string{`{"body":{"kind":["a"]}}`}); err != nil {
		t.Fatal(err)
	}
	run(t, s.Run)
	// The window stays open until the batch is full, so both arrive in one event.
	eventually(t, "an event", func() bool { return len(f.calls()) == 1 })
	if event := string(f.calls()[0]); strings.Count(event, `"messageId"`) != 2 || strings.Contains(event, `\"b\"`) || strings.Contains(event, "plain") {
		t.Errorf("the event is %s", event)
	}
	eventually(t, "an empty queue", func() bool { return len(bodies(t, q, "work")) == 0 })
}

// TestQueueFinishesWhatItBegan: stopping waits for the event under way.
func TestQueueFinishesWhatItBegan(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	q := queues(t)
	f := &function{answer: func([]byte) (lambda.Result, error) { close(entered); <-leave; return ok("null") }}
	send(t, q, "x")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { source(t, q, f).Run(ctx); close(done) }()
	<-entered
	cancel()
	close(leave)
	<-done
	if left := bodies(t, q, "work"); len(left) != 0 {
		t.Errorf("%q was handled but not deleted", left)
	}
}

// changes is a Log in memory.
type changes struct {
	mu      sync.Mutex
	records []Record
	changed chan struct{}
}

func (c *changes) add(names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		n := int64(len(c.records) + 1)
		c.records = append(c.records, Record{n, time.Unix(1000, 0), json.RawMessage(fmt.Sprintf(`{"eventName":%q,"dynamodb":{"SequenceNumber":"%03d"}}`, name, n))})
	}
	if c.changed != nil {
		close(c.changed)
	}
	c.changed = make(chan struct{})
}

func (c *changes) Read(after int64, limit int) ([]Record, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rest := c.records[after:]
	return append([]Record(nil), rest[:min(limit, len(rest))]...), nil
}

func (c *changes) Last() (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(len(c.records)), nil
}

func (c *changes) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

func stream(t *testing.T, log *changes, f *function) *Stream {
	return &Stream{
		Target: Target{Function: f, Label: "change", ARN: "arn:fn", Log: t.Output()}, Log: log, ARN: "arn:stream",
		Position: filepath.Join(t.TempDir(), "streams", "s.json"), BatchSize: 10, MaxRetries: -1, MaxAge: -1, Backoff: time.Millisecond,
		Now: func() time.Time { return time.Unix(1010, 0) },
	}
}

// names lists the records of an event.
func names(event []byte) string {
	var e events.DynamoDBEvent
	if err := json.Unmarshal(event, &e); err != nil {
		return err.Error()
	}
	var out []string
	for _, r := range e.Records {
		out = append(out, r.EventName)
	}
	return strings.Join(out, " ")
}

func all(f *function) string {
	var out []string
	for _, e := range f.calls() {
		out = append(out, names(e))
	}
	return strings.Join(out, " | ")
}

func (s *Stream) run(ctx context.Context) { _ = s.Run(ctx) }

func TestStreamOrderAndPosition(t *testing.T) {
	t.Parallel()
	log, f := &changes{}, &function{}
	log.add("a", "b", "c")
	s := stream(t, log, f)
	s.BatchSize = 2
	stop := run(t, s.run)
	eventually(t, "two events", func() bool { return all(f) == "a b | c" })
	log.add("d")
	eventually(t, "the new record", func() bool { return all(f) == "a b | c | d" })
	stop()
	log.add("e")
	run(t, s.run) // goes on where it was
	eventually(t, "the record written meanwhile", func() bool { return all(f) == "a b | c | d | e" })
}

func TestStreamStartsLatest(t *testing.T) {
	t.Parallel()
	log, f := &changes{}, &function{}
	log.add("old")
	s := stream(t, log, f)
	s.Latest = true
	at, err := s.load()
	if err != nil || at != 1 {
		t.Fatalf("position %d, %v", at, err)
	}
	log.add("new")
	run(t, s.run)
	eventually(t, "the new record", func() bool { return all(f) == "new" })
}

// TestStreamOfAnotherTable: a position beyond the stream's end is worth nothing.
func TestStreamOfAnotherTable(t *testing.T) {
	t.Parallel()
	log, f := &changes{}, &function{}
	log.add("a")
	s := stream(t, log, f)
	if err := s.save(7); err != nil {
		t.Fatal(err)
	}
	run(t, s.run)
	eventually(t, "the record", func() bool { return all(f) == "a" })
}

func TestStreamFilter(t *testing.T) {
	t.Parallel()
	log, f := &changes{}, &function{}
	log.add("INSERT", "REMOVE", "MODIFY")
	s := stream(t, log, f)
	var err error
	if s.Filter, err = NewFilter([]string{`{"eventName":["REMOVE"]}`}); err != nil {
		t.Fatal(err)
	}
	stop := run(t, s.run)
	eventually(t, "the event", func() bool { return all(f) == "REMOVE" })
	log.add("INSERT")
	eventually(t, "the position", func() bool { at, err := s.load(); return err == nil && at == 4 })
	stop()
	if all(f) != "REMOVE" {
		t.Errorf("events %s", all(f))
	}
}

// TestStreamRetries: the calls that each policy makes for records a, bad and c of
// which bad always fails, and what is given up.
func TestStreamRetries(t *testing.T) {
	t.Parallel()
	failBad := func(event []byte) (lambda.Result, error) {
		if strings.Contains(names(event), "bad") {
			return broken()
		}
		return ok("null")
	}
	tests := []struct {
		name   string
		change func(*Stream)
		answer func(event []byte) (lambda.Result, error)
		calls  string
		lost   string
	}{
		{"two retries", func(s *Stream) { s.MaxRetries = 2 }, failBad,
			"a bad c | a bad c | a bad c", "RetryAttemptsExhausted 001-003"},
		{"bisect", func(s *Stream) { s.MaxRetries, s.Bisect = 1, true }, failBad,
			"a bad c | a | bad c | bad | bad | c", "RetryAttemptsExhausted 002-002"},
		{"too old", func(s *Stream) { s.MaxAge = 5 * time.Second }, failBad,
			"a bad c", "RecordAgeExceeded 001-003"},
		{"partial failures", func(s *Stream) { s.MaxRetries, s.PartialFailures = 1, true }, func(event []byte) (lambda.Result, error) {
			if strings.Contains(names(event), "bad") {
				return ok(`{"batchItemFailures":[{"itemIdentifier":"003"},{"itemIdentifier":"002"}]}`)
			}
			return ok("")
		}, "a bad c | bad c", "RetryAttemptsExhausted 002-003"},
		{"a report about nothing", func(s *Stream) { s.MaxRetries, s.PartialFailures = 0, true }, func([]byte) (lambda.Result, error) {
			return ok(`{"batchItemFailures":[{"itemIdentifier":"999"}]}`)
		}, "a bad c", "RetryAttemptsExhausted 001-003"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			log, f := &changes{}, &function{answer: test.answer}
			log.add("a", "bad", "c")
			s := stream(t, log, f)
			test.change(s)
			lost := make(chan string, 10)
			s.GiveUp = func(body string) error { lost <- body; return nil }
			run(t, s.run)
			var note struct {
				RequestContext struct{ Condition, FunctionArn string }
				Info           struct {
					From string `json:"startSequenceNumber"`
					To   string `json:"endSequenceNumber"`
				} `json:"DDBStreamBatchInfo"`
			}
			if err := json.Unmarshal([]byte(<-lost), &note); err != nil {
				t.Fatal(err)
			}
			if got := note.RequestContext.Condition + " " + note.Info.From + "-" + note.Info.To; got != test.lost || note.RequestContext.FunctionArn != "arn:fn" {
				t.Errorf("given up: %s by %s, want %s", got, note.RequestContext.FunctionArn, test.lost)
			}
			eventually(t, "the position", func() bool { at, err := s.load(); return err == nil && at == 3 })
			if all(f) != test.calls {
				t.Errorf("calls %s\nwant  %s", all(f), test.calls)
			}
		})
	}
}

// TestStreamStopsWhileFailing: a batch that keeps failing is not lost by a stop.
func TestStreamStopsWhileFailing(t *testing.T) {
	t.Parallel()
	log, f := &changes{}, &function{answer: func([]byte) (lambda.Result, error) { return lambda.Result{}, errors.New("down") }}
	log.add("a")
	s := stream(t, log, f)
	stop := run(t, s.run)
	eventually(t, "a retry", func() bool { return len(f.calls()) > 1 })
	stop()
	if at, err := s.load(); at != 0 || err != nil {
		t.Errorf("the position is %d, %v", at, err)
	}
}

func TestSchedule(t *testing.T) {
	t.Parallel()
	f := &function{}
	s := &Schedule{Target: Target{Function: f, Label: "tick", Log: t.Output()}, Name: "each", Every: time.Millisecond, Region: "eu-west-1", AccountID: "123456789012",
		Now: func() time.Time { return time.Unix(0, 0) }}
	stop := run(t, s.Run)
	eventually(t, "two calls", func() bool { return len(f.calls()) >= 2 })
	stop()
	var rule events.CloudWatchEvent
	if err := json.Unmarshal(f.calls()[0], &rule); err != nil {
		t.Fatal(err)
	}
	if rule.Source != "aws.events" || rule.DetailType != "Scheduled Event" || !rule.Time.Equal(time.Unix(0, 0)) || string(rule.Detail) != "{}" ||
		rule.Resources[0] != "arn:aws:events:eu-west-1:123456789012:rule/each" || len(rule.ID) != 36 {
		t.Errorf("the event is %+v", rule)
	}
	s.Scheduler = true
	if e := string(s.Event()); !strings.Contains(e, `"source":"aws.scheduler"`) || !strings.Contains(e, `"detail":"{}"`) || !strings.Contains(e, ":schedule/default/each") {
		t.Errorf("the scheduler's event is %s", e)
	}
	s.Input = `{"a":1}`
	if e := string(s.Event()); e != s.Input {
		t.Errorf("with an input the event is %s", e)
	}
}
