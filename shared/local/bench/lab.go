package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"time"

	"claimcheck.dev/claimcheck/shared/local/stack"
)

// lab is a local stack with its counters, and a client of it.
type lab struct {
	stack  *stack.Stack
	client *http.Client
	log    *os.File
	data   string
}

// openLab starts a stack with some template parameters on a fresh data folder inside out.
func openLab(ctx context.Context, root, out string, params map[string]string) (*lab, error) {
	data, err := os.MkdirTemp(out, "stack-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the local stack: %w", err)
	}
	l := &lab{data: data, client: &http.Client{
		Timeout:       time.Minute,
		Transport:     &http.Transport{MaxIdleConnsPerHost: 64},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if l.log, err = os.CreateTemp(out, "stack-*.log"); err != nil {
		l.close()
		return nil, fmt.Errorf("making a log for the local stack: %w", err)
	}
	if l.stack, err = stack.Start(ctx, stack.Options{Root: root, Data: data, Params: params, Log: l.log}); err != nil {
		text, _ := os.ReadFile(l.log.Name())
		l.close()
		return nil, fmt.Errorf("starting the local stack: %w\n%s", err, text)
	}
	return l, nil
}

func (l *lab) close() error {
	var err error
	if l.stack != nil {
		err = l.stack.Close()
	}
	if l.log != nil {
		l.log.Close()
		os.Remove(l.log.Name())
	}
	l.client.CloseIdleConnections()
	return errors.Join(err, os.RemoveAll(l.data))
}

// reply is an answer, read to its end.
type reply struct {
	status int
	body   []byte
}

func (l *lab) do(ctx context.Context, method, url, key string, headers map[string]string, body []byte) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	for k, v := range headers {
		if k != "Content-Length" { // the transport's own
			req.Header.Set(k, v)
		}
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := l.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, text}, err
}

// call asks the API and decodes the answer, which must have the given status, into out unless that is nil.
func (l *lab) call(ctx context.Context, want int, method, path, key string, headers map[string]string, body, out any) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
		headers = maps.Clone(headers)
		if headers == nil {
			headers = map[string]string{}
		}
		headers["Content-Type"] = "application/json"
	}
	r, err := l.do(ctx, method, l.stack.URL+path, key, headers, text)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if r.status != want {
		return &unexpected{method + " " + path, r.status, r.body}
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(r.body, out); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// unexpected is an answer with another status than it should have.
type unexpected struct {
	what   string
	status int
	body   []byte
}

func (e *unexpected) Error() string {
	return fmt.Sprintf("%s answered %d: %.300s", e.what, e.status, bytes.TrimSpace(e.body))
}

// slot is a reservation as the API shows it.
type slot struct {
	ID      string
	File    string
	Expires time.Time `json:"expires_at"`
	Upload  struct {
		URL     string
		Headers map[string]string
	}
}

// reserve asks for a slot for so many bytes.
func (l *lab) reserve(ctx context.Context, key, name, contentType string, size int) (slot, error) {
	return l.reserveWith(ctx, key, nil, map[string]any{"filename": name, "content_type": contentType, "size_bytes": size})
}

func (l *lab) reserveWith(ctx context.Context, key string, headers map[string]string, body map[string]any) (slot, error) {
	var s slot
	err := l.call(ctx, 201, http.MethodPost, "/v1/uploads", key, headers, body, &s)
	return s, err
}

func (l *lab) upload(ctx context.Context, s slot, body []byte) error {
	r, err := l.do(ctx, http.MethodPut, s.Upload.URL, "", s.Upload.Headers, body)
	if err != nil {
		return errors.New("the upload was not answered") // the cause quotes the URL
	}
	if r.status != 200 {
		return &unexpected{"the upload", r.status, r.body}
	}
	return nil
}

// resolve returns the link that an input with the handle of s resolves to.
func (l *lab) resolve(ctx context.Context, key string, s slot) (string, error) {
	var answer struct {
		Meta map[string]map[string]struct{ URL string } `json:"_meta"`
	}
	if err := l.call(ctx, 200, http.MethodPost, "/v1/resolve", key, nil, map[string]any{"input": map[string]string{"file": s.File}}, &answer); err != nil {
		return "", err
	}
	for _, files := range answer.Meta {
		if f, ok := files[s.File]; ok && f.URL != "" {
			return f.URL, nil
		}
	}
	return "", errors.New("resolving gave no link")
}

func (l *lab) download(ctx context.Context, link string, want []byte) error {
	r, err := l.do(ctx, http.MethodGet, link, "", nil, nil)
	if err != nil {
		return errors.New("the download was not answered") // the cause quotes the link
	}
	if r.status != 200 {
		return &unexpected{"the download", r.status, r.body}
	}
	if !bytes.Equal(r.body, want) {
		return fmt.Errorf("the download has %d bytes, other than the %d uploaded", len(r.body), len(want))
	}
	return nil
}

// spent is what the engines have counted.
type spent struct {
	dynamo, s3                    map[string]int // requests by operation
	write, read, index, indexRead float64        // units, those of indexes apart
	objectBytes                   int64          // read of objects
}

func (l *lab) count() spent {
	d, o := l.stack.Dynamo().Counters(), l.stack.S3().Counters()
	c := spent{dynamo: map[string]int{}, s3: o.Requests, objectBytes: o.RangedBytes + o.ReadBytes}
	for op, n := range d.Requests {
		c.dynamo[op] = int(n)
	}
	for _, t := range d.Tables {
		c.write += t.Write
		c.read += t.Read
		for _, u := range t.Indexes {
			c.index += u.Write
			c.indexRead += u.Read
		}
	}
	return c
}

// since is what came on top of an earlier count.
func (c spent) since(before spent) spent {
	minus := func(a, b map[string]int) map[string]int {
		out := map[string]int{}
		for k, n := range a {
			if n != b[k] {
				out[k] = n - b[k]
			}
		}
		return out
	}
	return spent{
		minus(c.dynamo, before.dynamo), minus(c.s3, before.s3),
		c.write - before.write, c.read - before.read, c.index - before.index, c.indexRead - before.indexRead, c.objectBytes - before.objectBytes,
	}
}

// withoutSweep leaves out what a sweep asks for whether or not something is due: where it stands (a GetItem), what each
// minute has due (Query, of an index) and where it got to (UpdateItem).
func (c spent) withoutSweep() spent {
	c.dynamo = maps.Clone(c.dynamo)
	c.write -= float64(c.dynamo["UpdateItem"])
	c.read--
	c.dynamo["GetItem"]--
	c.indexRead = 0
	delete(c.dynamo, "UpdateItem")
	delete(c.dynamo, "Query")
	return c
}

func total(counts map[string]int) int {
	n := 0
	for _, v := range counts {
		n += v
	}
	return n
}

// list writes counts as "GetItem 1, Query 2".
func list(counts map[string]int) string {
	var b bytes.Buffer
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %d", k, counts[k])
	}
	return b.String()
}

// settle waits until done holds and nothing has been counted for a moment.
func (l *lab) settle(ctx context.Context, what string, done func(spent) bool) error {
	const moment = 10 // looks in a row
	last, same := l.count(), 0
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		select {
		case <-time.After(30 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
		now := l.count()
		same++
		if total(now.dynamo) != total(last.dynamo) || total(now.s3) != total(last.s3) {
			last, same = now, 0
		}
		if same >= moment && done(now) {
			return nil
		}
	}
	return fmt.Errorf("%s took over %v", what, patience)
}
