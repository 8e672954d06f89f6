package dynamo

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// state is everything that must survive a restart, as text.
func state(t *testing.T, s *Server) string {
	t.Helper()
	s.mu.RLock()
	defer s.mu.RUnlock()
	var b strings.Builder
	for _, name := range sortedKeys(s.tables) {
		tb := s.tables[name]
		spec, err := json.Marshal(tb.spec)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "table %s %s %s %d items %d bytes\n", spec, tb.id, tb.created.UTC(), tb.items.count, tb.bytes)
		lists := []*ordered{&tb.items}
		for _, ix := range tb.indexes {
			lists = append(lists, &ix.entries)
		}
		for _, list := range lists {
			list.ascend(keyRange{}, func(e entry) bool {
				fmt.Fprintf(&b, "%x %s\n", e.key, appendDocument(nil, e.item))
				return true
			})
		}
		if tb.stream != nil {
			fmt.Fprintf(&b, "stream %s trimmed %d\n", s.streamARN(tb), tb.stream.trimmed)
			for i := range tb.stream.entries {
				record, err := json.Marshal(s.record(tb, &tb.stream.entries[i]))
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&b, "%s\n", record)
			}
		}
	}
	for _, name := range sortedKeys(s.tokens) {
		tk := s.tokens[name]
		fmt.Fprintf(&b, "token %s %s %d\n", name, tk.digest, tk.at.UnixNano())
	}
	fmt.Fprintf(&b, "seq %d\n", s.seq)
	return b.String()
}

// sameState fails at the first line in which the state is not as wanted.
func sameState(t *testing.T, when string, s *Server, want string) {
	t.Helper()
	got, wanted := strings.Split(state(t, s), "\n"), strings.Split(want, "\n")
	for i := range max(len(got), len(wanted)) {
		var g, w string
		if i < len(got) {
			g = got[i]
		}
		if i < len(wanted) {
			w = wanted[i]
		}
		if g != w {
			t.Fatalf("%s, line %d of the state\ngot  %s\nwant %s", when, i+1, g, w)
		}
	}
}

// populate makes writes of every kind.
func populate(t *testing.T, s *Server, c *clock) {
	t.Helper()
	for i := range 5 {
		must(t, s, "PutItem", fmt.Sprintf(`{"TableName":"tbl","Item":{"pk":{"S":"p%d"},"sk":{"S":"s"},"owner_id":{"S":"o"},"due":{"N":"%d"},"b":{"B":"AAH/"},"l":{"L":[{"NULL":true},{"BOOL":false}]},"ss":{"SS":["x","y"]}}}`, i, i))
		c.advance(time.Second)
	}
	must(t, s, "UpdateItem", `{"TableName":"tbl","Key":{"pk":{"S":"p1"},"sk":{"S":"s"}},"UpdateExpression":"SET due = due - :x","ExpressionAttributeValues":{":x":{"N":"0.5"}}}`)
	must(t, s, "DeleteItem", `{"TableName":"tbl","Key":{"pk":{"S":"p2"},"sk":{"S":"s"}}}`)
	must(t, s, "PutItem", fmt.Sprintf(`{"TableName":"tbl","Item":{"pk":{"S":"gone"},"sk":{"S":"s"},"expires":{"N":"%d"}}}`, c.now().Unix()-1))
	if n, err := s.Sweep(c.now()); n != 1 || err != nil {
		t.Fatalf("Sweep = %d, %v", n, err)
	}
	must(t, s, "TransactWriteItems", `{"ClientRequestToken":"tok","TransactItems":[{"Put":{"TableName":"num","Item":{"pk":{"N":"1"},"sk":{"N":"-1e-5"}}}},{"Put":{"TableName":"bin","Item":{"pk":{"B":"AA=="},"sk":{"B":"/w=="}}}},{"Delete":{"TableName":"tbl","Key":{"pk":{"S":"p3"},"sk":{"S":"s"}}}}]}`)
	must(t, s, "BatchWriteItem", `{"RequestItems":{"hash":[{"PutRequest":{"Item":{"id":{"S":"a"},"e":{"S":""}}}},{"PutRequest":{"Item":{"id":{"S":"b"}}}}]}}`)
	must(t, s, "UpdateTimeToLive", `{"TableName":"hash","TimeToLiveSpecification":{"AttributeName":"when","Enabled":true}}`)
	must(t, s, "CreateTable", `{"TableName":"brief","AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"BillingMode":"PAY_PER_REQUEST"}`)
	must(t, s, "PutItem", `{"TableName":"brief","Item":{"pk":{"S":"x"}}}`)
	must(t, s, "DeleteTable", `{"TableName":"brief"}`)
}

// reopen opens the folder again, with the same clock.
func reopen(t *testing.T, dir string, c *clock) *Server {
	t.Helper()
	s, err := Open(Options{Dir: dir, Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeServer(t *testing.T, s *Server) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestEverythingSurvivesRestarts(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	s := open(t, Options{Dir: dir, Now: c.now})
	populate(t, s, c)
	want := state(t, s)
	closeServer(t, s)
	// The first restart replays commits and compacts them; the second loads the
	// snapshot; the third loads what the second left alone.
	for restart := range 3 {
		s := reopen(t, dir, c)
		sameState(t, fmt.Sprintf("restart %d", restart+1), s, want)
		closeServer(t, s)
	}
	// Sequence numbers go on where they were.
	s = reopen(t, dir, c)
	defer closeServer(t, s)
	before := s.seq
	must(t, s, "PutItem", `{"TableName":"tbl","Item":{"pk":{"S":"new"},"sk":{"S":"s"}}}`)
	if _, last := s.ReadStream("tbl", before, 10); last != before+1 {
		t.Errorf("the first record after a restart is %d, want %d", last, before+1)
	}
}

// The sequence numbers in the journal count, not those that today's rules for
// records would give: readers have stored them.
func TestReplayKeepsSequenceNumbers(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	item := document{"pk": text("a"), "sk": text("1")}
	if err := s.replay(&line{At: 1, Seq: 41, Writes: []lineWrite{{Table: "tbl", Put: item}}}); err != nil {
		t.Fatal(err)
	}
	if _, last := s.ReadStream("tbl", 0, 1); last != 42 {
		t.Errorf("the record after 41 is %d", last)
	}
}

// A request token protects across a restart, until its ten minutes are over.
func TestTokenSurvivesRestart(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	const body = `{"ClientRequestToken":"tok","TransactItems":[{"Update":{"TableName":"hash","Key":{"id":{"S":"a"}},"UpdateExpression":"ADD n :1","ExpressionAttributeValues":{":1":{"N":"1"}}}}]}`
	s := open(t, Options{Dir: dir, Now: c.now})
	must(t, s, "TransactWriteItems", body)
	closeServer(t, s)
	s = reopen(t, dir, c)
	c.advance(tokenLife)
	must(t, s, "TransactWriteItems", body)
	if got := s.tables["hash"].items.count; got != 1 {
		t.Fatalf("%d items", got)
	}
	count := func() string {
		item := must(t, s, "GetItem", `{"TableName":"hash","Key":{"id":{"S":"a"}}}`)["Item"].(map[string]any)
		return item["n"].(map[string]any)["N"].(string)
	}
	if got := count(); got != "1" {
		t.Errorf("n is %s after a repeat within ten minutes, want 1", got)
	}
	c.advance(time.Second)
	must(t, s, "TransactWriteItems", body)
	if got := count(); got != "2" {
		t.Errorf("n is %s after a repeat past ten minutes, want 2", got)
	}
	closeServer(t, s)
}

// Cutting the journal anywhere must give the state after some prefix of the
// commits: a transaction is there whole or not at all.
func TestTornTail(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	s := open(t, Options{Dir: dir, Now: c.now})
	path := filepath.Join(dir, journalName)
	states := map[int64]string{s.journal.size: state(t, s)}
	for i := range 2 {
		must(t, s, "TransactWriteItems", fmt.Sprintf(`{"TransactItems":[{"Put":{"TableName":"tbl","Item":{"pk":{"S":"x"},"sk":{"S":"%d"}}}},{"Update":{"TableName":"hash","Key":{"id":{"S":"sum"}},"UpdateExpression":"ADD n :1","ExpressionAttributeValues":{":1":{"N":"1"}}}}]}`, i))
		states[s.journal.size] = state(t, s)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	closeServer(t, s)
	first := int64(len(whole))
	for size := range states {
		first = min(first, size)
	}
	want := ""
	for size := first; size <= int64(len(whole)); size++ {
		if at, ok := states[size]; ok {
			want = at
		}
		torn := t.TempDir()
		if err := os.WriteFile(filepath.Join(torn, journalName), whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		s := reopen(t, torn, c)
		sameState(t, fmt.Sprintf("cut at byte %d", size), s, want)
		if info, err := os.Stat(filepath.Join(torn, journalName)); err != nil || info.Size() != s.journal.size {
			t.Fatalf("cut at byte %d: the torn line is still in the file: %v", size, err)
		}
		if size%10 != 0 {
			closeServer(t, s)
			continue
		}
		// It must also be possible to go on.
		must(t, s, "PutItem", `{"TableName":"hash","Item":{"id":{"S":"next"}}}`)
		after := state(t, s)
		closeServer(t, s)
		s = reopen(t, torn, c)
		sameState(t, fmt.Sprintf("cut at byte %d, then written", size), s, after)
		closeServer(t, s)
	}
}

// Damage before the last line is not a torn write: opening must say so rather
// than lose data quietly.
func TestDamageInTheMiddle(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	s := open(t, Options{Dir: dir, Now: c.now})
	populate(t, s, c)
	closeServer(t, s)
	path := filepath.Join(dir, journalName)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	for _, n := range []int{0, len(lines) / 2} {
		broken := bytes.Clone(whole)
		at := len(bytes.Join(lines[:n], nil)) + 12
		broken[at] ^= 1
		if err := os.WriteFile(path, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(Options{Dir: dir, Now: c.now})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("damaged at line %d", n+1)) {
			t.Errorf("damage in line %d: %v", n+1, err)
		}
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	closeServer(t, reopen(t, dir, c)) // the folder is not left locked
}

func TestFolderIsLocked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, Options{Dir: dir})
	if _, err := Open(Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("a second server on the folder: %v", err)
	}
	closeServer(t, s)
	closeServer(t, reopen(t, dir, newClock()))
}

// A write that cannot be journalled must not show, and must not surface later.
func TestFailedJournalWrite(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	s := open(t, Options{Dir: dir, Now: c.now})
	must(t, s, "PutItem", `{"TableName":"tbl","Item":{"pk":{"S":"a"},"sk":{"S":"1"}}}`)
	want := state(t, s)
	// A read-only handle stands for a full disk: writing and cutting back fail.
	readOnly, err := os.Open(s.journal.file.Name())
	if err != nil {
		t.Fatal(err)
	}
	writable := s.journal.file
	s.journal.file = readOnly
	for op, body := range map[string]string{
		"PutItem":            `{"TableName":"tbl","Item":{"pk":{"S":"b"},"sk":{"S":"1"}}}`,
		"TransactWriteItems": `{"ClientRequestToken":"tok","TransactItems":[{"Delete":{"TableName":"tbl","Key":{"pk":{"S":"a"},"sk":{"S":"1"}}}}]}`,
		"DeleteTable":        `{"TableName":"hash"}`,
		"UpdateTimeToLive":   `{"TableName":"hash","TimeToLiveSpecification":{"AttributeName":"x","Enabled":true}}`,
	} {
		if status, answer := ask(s, op, body); status != 500 {
			t.Errorf("%s without a disk: %d %s", op, status, answer)
		}
	}
	sameState(t, "after failed writes", s, want)
	if err := writable.Close(); err != nil {
		t.Fatal(err)
	}
	closeServer(t, s)
	s = reopen(t, dir, c)
	defer closeServer(t, s)
	sameState(t, "after a restart", s, want)
}

// A journal that outgrows its snapshot is rewritten while the server runs.
func TestCompactionWhileRunning(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	few := Options{Dir: dir, Now: c.now, stream: limits{age: time.Hour, records: 10, bytes: 1 << 20}}
	s := open(t, few)
	populate(t, s, c)
	rewritten := 0
	for i := range 300 {
		s.journal.limit = min(s.journal.limit, 20_000)
		before := s.journal.size
		must(t, s, "PutItem", fmt.Sprintf(`{"TableName":"tbl","Item":{"pk":{"S":"same"},"sk":{"S":"s"},"n":{"N":"%d"}}}`, i))
		if s.journal.size < before {
			rewritten++
		}
	}
	if rewritten == 0 {
		t.Fatal("the journal was never compacted")
	}
	if info, err := os.Stat(filepath.Join(dir, journalName)); err != nil || info.Size() > 60_000 || info.Size() != s.journal.size {
		t.Errorf("the journal has %v bytes, %v; the server thinks %d", info.Size(), err, s.journal.size)
	}
	want := state(t, s)
	closeServer(t, s)
	again, err := Open(few)
	if err != nil {
		t.Fatal(err)
	}
	defer closeServer(t, again)
	sameState(t, "after compaction", again, want)
}

// killDir names the folder in the environment of the process that TestKill kills.
const killDir = "DYNAMO_TEST_KILL_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(killDir); dir != "" {
		fmt.Fprintln(os.Stderr, writeForever(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// writeForever writes transactions without end and reports each one that was
// acknowledged. It returns only when it fails.
func writeForever(dir string) error {
	s, err := Open(Options{Dir: dir})
	if err != nil {
		return err
	}
	for _, spec := range testTables {
		if err := s.CreateTable(spec); err != nil {
			return err
		}
	}
	for i := 0; ; i++ {
		status, answer := ask(s, "TransactWriteItems", fmt.Sprintf(`{"TransactItems":[{"Put":{"TableName":"tbl","Item":{"pk":{"S":"left"},"sk":{"S":"%d"}}}},{"Put":{"TableName":"num","Item":{"pk":{"N":"1"},"sk":{"N":"%d"}}}}]}`, i, i))
		if status != 200 {
			return fmt.Errorf("transaction %d: %d %s", i, status, answer)
		}
		fmt.Printf("acknowledged %d\n", i)
	}
}

func TestKill(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, uint64(time.Now().UnixNano())))
	for range 5 {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), killDir+"="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill := 1 + r.IntN(200)
		acknowledged := -1
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			var n int
			if _, err := fmt.Sscanf(lines.Text(), "acknowledged %d", &n); err != nil {
				continue
			}
			if acknowledged = n; n == kill {
				// What the pipe still holds is read below: it was acknowledged, too.
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := cmd.Wait(); err == nil || acknowledged < kill {
			t.Fatalf("the writer ended by itself at %d: %v", acknowledged, err)
		}
		s := reopen(t, dir, newClock())
		left, right := s.tables["tbl"].items.count, s.tables["num"].items.count
		if left != right || left < acknowledged+1 || left > acknowledged+2 {
			t.Errorf("%d transactions were acknowledged; %d and %d items are there", acknowledged+1, left, right)
		}
		closeServer(t, s)
	}
}
