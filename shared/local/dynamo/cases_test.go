package dynamo

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// exchange is one request and the answer that Amazon's documentation promises.
type exchange struct {
	op, request string
	status      int
	answer      string // JSON, or "Type: message" of an error
	line        int
}

// TestCases plays the exchanges in testdata/cases. A case starts with "== name"
// on a server with the test tables and no items; an exchange is an operation
// with its request and a status with its answer, each of which may go on over
// several lines:
//
//	== what is put can be read
//	PutItem {"TableName":"h","Item":{"id":{"S":"a"}}}
//	200 {}
//	GetItem {"TableName":"h","Key":{"id":{"S":"a"}}}
//	200 {"Item":{"id":{"S":"a"}}}
func TestCases(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/cases/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	exchanges := 0
	for _, file := range files {
		for name, steps := range readCases(t, file) {
			exchanges += len(steps)
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt")+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := open(t, Options{})
				for _, e := range steps {
					e.play(t, file, s)
				}
			})
		}
	}
	if exchanges < 300 {
		t.Errorf("only %d exchanges were read", exchanges)
	}
}

func (e exchange) play(t *testing.T, file string, s *Server) {
	t.Helper()
	status, raw := ask(s, e.op, e.request)
	got := string(raw)
	var equal bool
	var answer, want map[string]any
	if err := json.Unmarshal(raw, &answer); err != nil {
		t.Fatalf("%s:%d: the answer is not JSON: %s", file, e.line, raw)
	}
	if strings.HasPrefix(e.answer, "{") {
		if err := json.Unmarshal([]byte(e.answer), &want); err != nil {
			t.Fatalf("%s:%d: the wanted answer is not JSON: %v", file, e.line, err)
		}
		if kind, ok := answer["__type"].(string); ok {
			answer["__type"] = kind[strings.Index(kind, "#")+1:]
		}
		for _, member := range []string{"Table", "TableDescription"} {
			if d, ok := answer[member].(map[string]any); ok && d["TableId"] != "" {
				d["TableId"] = "*" // random
			}
		}
		equal = reflect.DeepEqual(answer, want)
	} else {
		kind, _ := answer["__type"].(string)
		got = fmt.Sprintf("%s: %s", kind[strings.Index(kind, "#")+1:], answer["message"])
		equal = got == e.answer
	}
	if status != e.status || !equal {
		t.Errorf("%s:%d: %s %s\ngot  %d %s\nwant %d %s", file, e.line, e.op, e.request, status, got, e.status, e.answer)
	}
}

func readCases(t *testing.T, file string) map[string][]exchange {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cases := make(map[string][]exchange)
	name := ""
	var steps []exchange
	finish := func() {
		if name == "" {
			return
		}
		if _, twice := cases[name]; twice || len(steps) == 0 || steps[len(steps)-1].status == 0 {
			t.Fatalf("%s: case %q is there twice or not finished", file, name)
		}
		cases[name] = steps
	}
	for i, text := range strings.Split(string(raw), "\n") {
		switch {
		case strings.HasPrefix(text, "== "):
			finish()
			name, steps = strings.TrimPrefix(text, "== "), nil
		case strings.TrimSpace(text) == "" || strings.HasPrefix(text, "#"):
		case text[0] == ' ' || text[0] == '\t':
			last := &steps[len(steps)-1]
			if last.status == 0 {
				last.request += text
			} else {
				last.answer += text
			}
		default:
			word, rest, _ := strings.Cut(text, " ")
			if status, err := strconv.Atoi(word); err == nil {
				last := &steps[len(steps)-1]
				last.status, last.answer = status, rest
				continue
			}
			steps = append(steps, exchange{op: word, request: rest, line: i + 1})
		}
	}
	finish()
	return cases
}
