package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/local/s3"
	"claimcheck.dev/claimcheck/shared/local/stack"
)

// asStack makes the test binary a stack with faults, in a process that can be killed; its value is a crashing in JSON.
const asStack = "CLAIMCHECK_E2E_STACK"

// crashing is a stack that is going to be killed.
type crashing struct {
	Data string
	// Hang names the S3 operations of functions that do not come to an end.
	Hang []string
}

func init() {
	text := os.Getenv(asStack)
	if text == "" {
		return
	}
	if err := serveCrashing(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serveCrashing(text string) error {
	var c crashing
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	s, err := stack.Start(context.Background(), stack.Options{Root: root, Data: c.Data, Log: os.Stderr})
	if err != nil {
		return err
	}
	s.S3().SetFaults(func(r s3.Request) s3.Fault {
		for _, op := range c.Hang {
			if r.Operation == op && !r.Presigned {
				return s3.Slow(time.Hour)
			}
		}
		return s3.Fault{}
	})
	fmt.Println("CLAIMCHECK_URL=" + s.URL + "\nCLAIMCHECK_KEY=" + s.Key)
	return <-s.Failed()
}

// launch starts a stack in a process of its own on data, and kills it when the test ends.
func (c crashing) launch(t *testing.T) (*running, client) {
	t.Helper()
	if err := os.CopyFS(filepath.Join(c.Data, "functions"), os.DirFS(built)); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(c.Data, "e2e.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	r := &running{data: c.Data, log: log.Name(), cmd: exec.Command(program)}
	r.cmd.Env = append(os.Environ(), asStack+"="+string(text))
	r.cmd.Stderr = log
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.kill()
		if text, err := os.ReadFile(r.log); t.Failed() && err == nil {
			for line := range strings.Lines(string(text)) {
				if strings.Contains(line, `"level":"ERROR"`) || strings.Contains(line, "warming up") {
					t.Log(line)
				}
			}
		}
	})
	lines := bufio.NewScanner(out)
	for r.key == "" && lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), "=")
		switch name {
		case "CLAIMCHECK_URL":
			r.url = value
		case "CLAIMCHECK_KEY":
			r.key = value
		}
	}
	if r.key == "" {
		text, _ := os.ReadFile(r.log)
		t.Fatalf("the stack did not start:\n%s", text)
	}
	go io.Copy(io.Discard, out)
	return r, client{r.url, r.key}
}

// objects counts those whose key starts with prefix.
func (r *running) objects(t *testing.T, prefix string) int {
	t.Helper()
	n, err := countKeys(filepath.Join(r.data, "s3", "objects"), prefix)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// consistent compares usage with the list, and the list with the objects.
func (r *running) consistent(t *testing.T, c client) {
	t.Helper()
	var bytes int64
	live := c.listed(t)
	for id, f := range live {
		bytes += f.SizeBytes
		if n := r.objects(t, "files/"+id+"/"); f.State == "ready" && n != 1 {
			t.Errorf("%s is ready and has %d objects", id, n)
		}
	}
	if u := c.usage(t); u.Account.LiveBytes != bytes || u.Account.Files != int64(len(live)) {
		t.Errorf("usage is %+v, but %d files of %d bytes are listed", u, len(live), bytes)
	}
}

// TestKilledWhileDeleting: the record of a file has ended and its object is about to go when everything dies.
func TestKilledWhileDeleting(t *testing.T) {
	t.Parallel()
	c := crashing{Data: t.TempDir(), Hang: []string{"DeleteObject", "ListObjectsV2"}}
	r, api := c.launch(t)
	doomed, kept := api.inline(t, "filename=doomed", "to be deleted"), api.inline(t, "filename=kept", "to be kept")
	go api.call("DELETE", "/v1/files/"+doomed.ID, "")
	eventually(t, "the end of the record", func() bool { return api.call("GET", "/v1/files/"+doomed.ID, "").code() == "file_deleted" })
	if n := r.objects(t, "files/"+doomed.ID+"/"); n != 1 {
		t.Fatalf("the object was gone before the stack was killed: %d", n)
	}
	r.kill()

	c.Hang = nil
	r, api = c.launch(t)
	eventually(t, "the deletion of the object", func() bool { return r.objects(t, "files/"+doomed.ID+"/") == 0 })
	if got := api.call("GET", "/v1/files/"+doomed.ID, ""); got.code() != "file_deleted" {
		t.Errorf("the deleted file answers %s", got)
	}
	if got := api.read(t, kept.ID); got.status != 200 || string(got.body) != "to be kept" {
		t.Errorf("the other file reads %s", got)
	}
	r.consistent(t, api)
}

// TestKilledAfterCommit: the commit was acknowledged, nothing else.
func TestKilledAfterCommit(t *testing.T) {
	t.Parallel()
	c := crashing{Data: t.TempDir(), Hang: []string{"DeleteObject"}}
	r, api := c.launch(t)
	once := api.inline(t, "single_use=true", "used once")
	got := api.call("POST", "/v1/files/"+once.ID+"/claims", `{"holder":"a"}`)
	var lent struct{ Claim string }
	got.into(t, &lent)
	if got := api.call("POST", "/v1/claims/"+lent.Claim+"/commit", ""); got.status != 200 {
		t.Fatalf("committing while the object can't be deleted: %s", got)
	}
	r.kill()

	c.Hang = nil
	r, api = c.launch(t)
	if got := api.call("POST", "/v1/claims/"+lent.Claim+"/commit", ""); got.status != 200 {
		t.Errorf("the commit again: %s", got)
	}
	if got := api.call("POST", "/v1/files/"+once.ID+"/claims", `{"holder":"b"}`); got.code() != "file_spent" {
		t.Errorf("a claim of the spent file: %s", got)
	}
	eventually(t, "the deletion of the object", func() bool { return r.objects(t, "files/"+once.ID+"/") == 0 })
	if u := api.usage(t); u != (usage{}) {
		t.Errorf("usage is %+v", u)
	}
}

// TestKilledWhileUploading: half of the bytes have come.
func TestKilledWhileUploading(t *testing.T) {
	t.Parallel()
	c := crashing{Data: t.TempDir()}
	r, api := c.launch(t)
	body := []byte(strings.Repeat("half and half ", 100_000))
	slot := api.reserve(t, fmt.Sprintf(`{"filename":"a","size_bytes":%d,"sha256":%q}`, len(body), hexSHA256(body)))
	target, err := url.Parse(slot.Upload.URL)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", target.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: %s\r\n", target.RequestURI(), target.Host)
	for name, value := range slot.Upload.Headers {
		fmt.Fprintf(conn, "%s: %s\r\n", name, value)
	}
	fmt.Fprint(conn, "\r\n")
	if _, err := conn.Write(body[:len(body)/2]); err != nil {
		t.Fatal(err)
	}
	incoming := func() int {
		n, _ := filepath.Glob(filepath.Join(c.Data, "s3", "incoming", "*"))
		return len(n)
	}
	eventually(t, "the arrival of the first bytes", func() bool { return incoming() > 0 })
	r.kill()

	r, api = c.launch(t)
	if n := incoming(); n > 0 || r.objects(t, "staging/") > 0 {
		t.Errorf("half of an upload was left")
	}
	var again reservation
	api.call("GET", "/v1/uploads/"+slot.ID, "").into(t, &again)
	if again.State != "reserved" || again.Upload == nil {
		t.Fatalf("the reservation is %+v", again)
	}
	if got := again.put(body); got.status != 200 {
		t.Fatalf("the upload again: %s", got)
	}
	eventually(t, "verification", func() bool { return api.read(t, slot.ID).status == 200 })
	if got := api.read(t, slot.ID); hexSHA256(got.body) != hexSHA256(body) {
		t.Errorf("%d other bytes came back", len(got.body))
	}
	r.consistent(t, api)
}

// TestKilledUnderLoad kills the stack at moments that nobody chose, again and again on the same data. What was
// acknowledged before stays so.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	c := crashing{Data: t.TempDir()}
	var (
		mu      sync.Mutex
		ready   = map[string]string{} // digests by id
		deleted = map[string]bool{}
		spent   = map[string]string{} // claims by id
	)
	check := func(r *running, api client) {
		for id, digest := range ready {
			if got := api.read(t, id); got.status != 200 || hexSHA256(got.body) != digest {
				t.Errorf("%s was ready as %s and reads %s", id, digest, got)
			}
		}
		for id := range deleted {
			if got := api.call("GET", "/v1/files/"+id, ""); got.code() != "file_deleted" {
				t.Errorf("%s was deleted and answers %s", id, got)
			}
		}
		for id, claim := range spent {
			if got := api.call("POST", "/v1/claims/"+claim+"/commit", ""); got.status != 200 {
				t.Errorf("%s was spent by %s, and its commit again answers %s", id, claim, got)
			}
		}
	}
	for round := range 3 {
		r, api := c.launch(t)
		check(r, api)
		var load sync.WaitGroup
		acknowledged := make(chan bool, 1000)
		for n := range 4 {
			load.Go(func() {
				for i := 0; ; i++ {
					body := fmt.Sprintf("round %d caller %d file %d", round, n, i)
					got := api.call("POST", "/v1/files?single_use="+fmt.Sprint(i%3 == 2), body, "Content-Type", "application/octet-stream")
					if got.status == 0 {
						return
					}
					var f file
					if got.status != 201 || json.Unmarshal(got.body, &f) != nil {
						continue
					}
					mu.Lock()
					if i%3 == 0 {
						ready[f.ID] = f.SHA256
					}
					mu.Unlock()
					switch i % 3 {
					case 1:
						if api.call("DELETE", "/v1/files/"+f.ID, "").status == 204 {
							mu.Lock()
							deleted[f.ID] = true
							mu.Unlock()
						}
					case 2:
						var lent struct{ Claim string }
						got := api.call("POST", "/v1/files/"+f.ID+"/claims", `{"holder":"h"}`)
						if got.status != 201 || json.Unmarshal(got.body, &lent) != nil {
							continue
						}
						if api.call("POST", "/v1/claims/"+lent.Claim+"/commit", "").status == 200 {
							mu.Lock()
							spent[f.ID] = lent.Claim
							mu.Unlock()
						}
					}
					select {
					case acknowledged <- true:
					default:
					}
				}
			})
		}
		for range 30 + 17*round {
			<-acknowledged
		}
		r.kill()
		load.Wait()
	}
	r, api := c.launch(t)
	check(r, api)
	gone := func(id string) bool { return r.objects(t, "files/"+id+"/") == 0 }
	for id := range deleted {
		eventually(t, "the deletion of "+id, func() bool { return gone(id) })
	}
	for id := range spent {
		eventually(t, "the deletion of "+id, func() bool { return gone(id) })
	}
	r.consistent(t, api)
	t.Logf("%d ready, %d deleted, %d spent", len(ready), len(deleted), len(spent))
}
