package dynamo

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestProtocol(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	const list = "DynamoDB_20120810.ListTables"
	for name, c := range map[string]struct {
		method, target, contentType, body string
		status                            int
		contains                          string
	}{
		"a request":                {"POST", list, "application/x-amz-json-1.0", "{}", 200, `"TableNames"`},
		"parameters of the type":   {"POST", list, "application/x-amz-json-1.0; charset=utf-8", "{}", 200, `"TableNames"`},
		"no target":                {"POST", "", "application/x-amz-json-1.0", "{}", 400, "#UnknownOperationException"},
		"an unknown target":        {"POST", "DynamoDB_20120810.Nope", "application/x-amz-json-1.0", "{}", 400, "#UnknownOperationException"},
		"a target of an old API":   {"POST", "DynamoDB_20111205.ListTables", "application/x-amz-json-1.0", "{}", 400, "#UnknownOperationException"},
		"a target without its API": {"POST", "ListTables", "application/x-amz-json-1.0", "{}", 400, "#UnknownOperationException"},
		"another method":           {"PUT", list, "application/x-amz-json-1.0", "{}", 400, "#UnknownOperationException"},
		"no content type":          {"POST", list, "", "{}", 400, "#SerializationException"},
		"another content type":     {"POST", list, "text/plain", "{}", 400, "#SerializationException"},
		"no body":                  {"POST", list, "application/x-amz-json-1.0", "", 400, "#SerializationException"},
		"not JSON":                 {"POST", list, "application/x-amz-json-1.0", "{", 400, "#SerializationException"},
		"not an object":            {"POST", list, "application/x-amz-json-1.0", "[]", 400, "#SerializationException"},
		"more than one document":   {"POST", list, "application/x-amz-json-1.0", "{}{}", 400, "#SerializationException"},
		"not UTF-8":                {"POST", list, "application/x-amz-json-1.0", "{\"a\":\"\xff\"}", 400, "#SerializationException"},
		"too much":                 {"POST", list, "application/x-amz-json-1.0", strings.Repeat(" ", maxRequest+1), 413, "#RequestEntityTooLargeException"},
		"a health check":           {"GET", "", "", "", 200, "healthy"},
	} {
		r := httptest.NewRequest(c.method, "/", strings.NewReader(c.body))
		for header, v := range map[string]string{"X-Amz-Target": c.target, "Content-Type": c.contentType} {
			if v != "" {
				r.Header.Set(header, v)
			}
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.contains) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if c.method == http.MethodGet {
			continue
		}
		if sum := fmt.Sprint(crc32.ChecksumIEEE(w.Body.Bytes())); w.Header().Get("X-Amz-Crc32") != sum || w.Header().Get("X-Amzn-Requestid") == "" ||
			w.Header().Get("Content-Type") != "application/x-amz-json-1.0" {
			t.Errorf("%s: headers %v", name, w.Header())
		}
	}
}

func TestClosedServer(t *testing.T) {
	t.Parallel()
	s, err := Open(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, op := range []string{"ListTables", "Scan", "PutItem"} {
		status, answer := ask(s, op, `{"TableName":"tbl","Item":{}}`)
		if status != 500 || !strings.Contains(string(answer), "closed") {
			t.Errorf("%s: %d %s", op, status, answer)
		}
	}
	if _, err := s.Sweep(newClock().now()); err == nil {
		t.Error("a closed server sweeps")
	}
}

func TestCreateTableSpec(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, Options{Dir: dir})
	for _, spec := range testTables {
		// The order of indexes and an empty projection make no difference.
		spec.Indexes = append([]IndexSpec(nil), spec.Indexes...)
		for i, j := 0, len(spec.Indexes)-1; i < j; i, j = i+1, j-1 {
			spec.Indexes[i], spec.Indexes[j] = spec.Indexes[j], spec.Indexes[i]
		}
		if err := s.CreateTable(spec); err != nil {
			t.Errorf("creating %s again: %v", spec.Name, err)
		}
	}
	other := testTables[0]
	other.TTLAttribute = "other"
	if err := s.CreateTable(other); err == nil || !strings.Contains(err.Error(), "remove the data folder") {
		t.Errorf("creating a table with another TTL: %v", err)
	}
	key := KeyAttribute{"id", "S"}
	for name, spec := range map[string]TableSpec{
		"no name":           {PartitionKey: key},
		"bad name":          {Name: "a b c", PartitionKey: key},
		"no key":            {Name: "made"},
		"key type":          {Name: "made", PartitionKey: KeyAttribute{"id", "BOOL"}},
		"two types":         {Name: "made", PartitionKey: key, Indexes: []IndexSpec{{Name: "index", PartitionKey: KeyAttribute{"id", "N"}}}},
		"same index twice":  {Name: "made", PartitionKey: key, Indexes: []IndexSpec{{Name: "index", PartitionKey: key}, {Name: "index", PartitionKey: key}}},
		"projection":        {Name: "made", PartitionKey: key, Indexes: []IndexSpec{{Name: "index", PartitionKey: key, Projection: "SOME"}}},
		"nothing to":        {Name: "made", PartitionKey: key, Indexes: []IndexSpec{{Name: "index", PartitionKey: key, Projection: "INCLUDE"}}},
		"include with all":  {Name: "made", PartitionKey: key, Indexes: []IndexSpec{{Name: "index", PartitionKey: key, NonKeyAttributes: []string{"x"}}}},
		"stream view":       {Name: "made", PartitionKey: key, StreamView: "ALL"},
		"too many indexes":  {Name: "made", PartitionKey: key, Indexes: manyIndexes(21)},
		"sort key, no type": {Name: "made", PartitionKey: key, SortKey: KeyAttribute{Name: "x"}},
	} {
		if err := s.CreateTable(spec); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := s.CreateTable(TableSpec{Name: "made", PartitionKey: key, Indexes: manyIndexes(20)}); err != nil {
		t.Error(err)
	}
}

func manyIndexes(n int) []IndexSpec {
	var out []IndexSpec
	for i := range n {
		out = append(out, IndexSpec{Name: fmt.Sprintf("index-%d", i), PartitionKey: KeyAttribute{"id", "S"}})
	}
	return out
}

// Over a real connection, an answer is JSON that ends where its length says.
func TestOverHTTP(t *testing.T) {
	t.Parallel()
	ts := httptest.NewServer(open(t, Options{}))
	defer ts.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, ts.URL, strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810.ListTables")
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	resp, err := ts.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(resp.Body)
	if err != nil || resp.Body.Close() != nil || int64(len(raw)) != resp.ContentLength || !json.Valid(raw) {
		t.Errorf("%d bytes of %d: %s, %v", len(raw), resp.ContentLength, raw, err)
	}
}
