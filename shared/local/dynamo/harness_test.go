package dynamo

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// clock is a settable clock.
type clock struct {
	mu sync.Mutex
	at time.Time
}

// newClock starts in 2026, at a whole second.
func newClock() *clock { return &clock{at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// The tables of the tests: strings with indexes, a stream and a TTL; a hash key
// alone; number keys; binary keys.
var testTables = []TableSpec{
	{
		Name:         "tbl",
		PartitionKey: KeyAttribute{"pk", "S"},
		SortKey:      KeyAttribute{"sk", "S"},
		Indexes: []IndexSpec{
			{Name: "by-owner", PartitionKey: KeyAttribute{"owner_id", "S"}, SortKey: KeyAttribute{"due", "N"}},
			{Name: "by-due", PartitionKey: KeyAttribute{"due", "N"}, Projection: "KEYS_ONLY"},
			{Name: "by-kind", PartitionKey: KeyAttribute{"kind", "S"}, SortKey: KeyAttribute{"sk", "S"}, Projection: "INCLUDE", NonKeyAttributes: []string{"note"}},
		},
		TTLAttribute: "expires",
		StreamView:   "NEW_AND_OLD_IMAGES",
	},
	{Name: "hash", PartitionKey: KeyAttribute{"id", "S"}},
	{Name: "num", PartitionKey: KeyAttribute{"pk", "N"}, SortKey: KeyAttribute{"sk", "N"}},
	{Name: "bin", PartitionKey: KeyAttribute{"pk", "B"}, SortKey: KeyAttribute{"sk", "B"}},
}

// open opens a server with the test tables and closes it with the test.
func open(t testing.TB, opts Options) *Server {
	t.Helper()
	if opts.Now == nil {
		opts.Now = newClock().now
	}
	s, err := Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, spec := range testTables {
		if err := s.CreateTable(spec); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// ask sends one request and returns the status and the raw answer. The operation
// carries its API's prefix only for streams.
func ask(s *Server, op, body string) (int, []byte) {
	target := tablePrefix + op
	if _, ok := operations[streamPrefix+op]; ok {
		target = streamPrefix + op
	}
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader([]byte(body)))
	r.Header.Set("X-Amz-Target", target)
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.Bytes()
}

// must is ask for requests that have to succeed.
func must(t testing.TB, s *Server, op, body string) map[string]any {
	t.Helper()
	status, raw := ask(s, op, body)
	if status != http.StatusOK {
		t.Fatalf("%s %s\n%d %s", op, body, status, raw)
	}
	var answer map[string]any
	if err := json.Unmarshal(raw, &answer); err != nil {
		t.Fatal(err)
	}
	return answer
}
