package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
)

// target is the service that is asked.
type target struct {
	url, key    string
	contentHost string // when known
	cloud       bool   // on AWS, and not the local stack

	mu   sync.Mutex
	made []string // ids of files
}

// fact is something that the service relies on. ask returns what was seen; an error
// says that it does not hold, and why.
type fact struct {
	text string
	ask  func(context.Context, *target) (seen string, err error)
}

// notHere is the error of a fact that cannot be seen where this runs.
type notHere struct{ why string }

func (n notHere) Error() string { return n.why }

// patience is for what happens by itself.
const patience = 2 * time.Minute

// check asks for every fact and says how many hold.
func (t *target) check(ctx context.Context, out io.Writer) error {
	defer t.clean(context.WithoutCancel(ctx))
	counts := map[string]int{}
	for _, part := range [][]fact{uploads, downloads, gateway} {
		for _, f := range part {
			if ctx.Err() != nil {
				return errors.New("interrupted")
			}
			seen, err := f.ask(ctx, t)
			word := "held"
			var elsewhere notHere
			switch {
			case errors.As(err, &elsewhere):
				word, seen = "not checked", elsewhere.why
			case err != nil:
				word, seen = "NOT HELD", err.Error()
			}
			counts[word]++
			fmt.Fprintf(out, "%-11s  %s: %s\n", word, f.text, seen)
		}
	}
	fmt.Fprintf(out, "%d held, %d not held, %d not checked\n", counts["held"], counts["NOT HELD"], counts["not checked"])
	if n := counts["NOT HELD"]; n > 0 {
		return fmt.Errorf("%d facts do not hold", n)
	}
	return nil
}

// clean deletes what was made. What cannot be deleted ends by itself.
func (t *target) clean(ctx context.Context) {
	for _, id := range t.made {
		_, _ = t.api(ctx, "DELETE", "/v1/files/"+id, nil)
	}
}

// revoke ends the key that was used.
func (t *target) revoke(ctx context.Context) error {
	parts := strings.Split(t.key, "_")
	id := strings.Join(parts[1:max(1, len(parts)-1)], "_")
	got, err := t.api(context.WithoutCancel(ctx), "DELETE", "/v1/keys/"+id, nil)
	if err != nil {
		return err
	}
	return got.want(204)
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// code is the code of an error: of problem+json, or of S3's XML.
func (a answer) code() string {
	if found := s3Code.FindSubmatch(a.body); found != nil {
		return string(found[1])
	}
	var problem struct{ Code string }
	_ = json.Unmarshal(a.body, &problem) // anything else has no code
	return problem.Code
}

var s3Code = regexp.MustCompile(`<Code>([^<]{1,64})</Code>`)

func (a answer) String() string {
	if code := a.code(); code != "" {
		return fmt.Sprintf("%d %s", a.status, code)
	}
	return fmt.Sprint(a.status)
}

// want is an error unless the status is one of those.
func (a answer) want(statuses ...int) error {
	for _, s := range statuses {
		if a.status == s {
			return nil
		}
	}
	return fmt.Errorf("got %s, want %v", a, statuses)
}

// wantCode is an error unless status and code are these.
func (a answer) wantCode(status int, codes ...string) error {
	for _, c := range codes {
		if a.status == status && a.code() == c {
			return nil
		}
	}
	return fmt.Errorf("got %s, want %d %s", a, status, strings.Join(codes, " or "))
}

func (a answer) into(v any) error {
	if err := json.Unmarshal(a.body, v); err != nil {
		return fmt.Errorf("got %s with a body that is not the expected JSON", a)
	}
	return nil
}

// plain follows no redirect.
var plain = &http.Client{
	Timeout:       3 * time.Minute,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableCompression: true, MaxIdleConnsPerHost: 16},
}

// send makes a request. Its errors never show the URL, which may be presigned.
func send(ctx context.Context, method, url string, body []byte, header ...string) (answer, error) {
	return sendFrom(ctx, plain, method, url, bytes.NewReader(body), header...)
}

func sendFrom(ctx context.Context, client *http.Client, method, url string, body io.Reader, header ...string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return answer{}, errors.New("the address is not valid")
	}
	if r, ok := body.(*bytes.Reader); ok && r.Len() == 0 {
		req.Body, req.GetBody = nil, nil
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	res, err := client.Do(req)
	if err != nil {
		return answer{}, fmt.Errorf("no answer: %w", unwrapped(err))
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{}, fmt.Errorf("the answer ended early: %w", err)
	}
	return answer{res.StatusCode, res.Header, text}, nil
}

// unwrapped takes the URL off an error of net/http.
func unwrapped(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// api is a request to the API with the key. Headers given here stand above it.
func (t *target) api(ctx context.Context, method, path string, body []byte, header ...string) (answer, error) {
	keyed := true
	for i := 0; i < len(header); i += 2 {
		keyed = keyed && !strings.EqualFold(header[i], "Authorization")
	}
	if keyed {
		header = append(header, "Authorization", "Bearer "+t.key)
	}
	got, err := send(ctx, method, t.url+path, body, header...)
	var file struct{ ID string }
	if err == nil && got.status == 201 && json.Unmarshal(got.body, &file) == nil && strings.HasPrefix(file.ID, "f_") {
		t.remember(file.ID)
	}
	return got, err
}

// remember keeps the id of a file that was made.
func (t *target) remember(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.made = append(t.made, id)
}

// file is a file object, or a reservation.
type file struct {
	ID, State, Filename string
	ContentType         string `json:"content_type"`
	SHA256              string
	UploadBy            time.Time `json:"upload_by"`
	ExpiresAt           time.Time `json:"expires_at"`
	Upload              *struct {
		Method, URL string
		Headers     map[string]string
		ExpiresAt   time.Time `json:"expires_at"`
	}
}

// reserve makes a reservation for content; more are members of the request in JSON,
// each with a comma before it.
func (t *target) reserve(ctx context.Context, content []byte, more string) (file, error) {
	var f file
	if !strings.Contains(more, `"filename"`) {
		more += `,"filename":"smoke.bin"`
	}
	body := fmt.Sprintf(`{"size_bytes":%d%s}`, len(content), more)
	got, err := t.api(ctx, "POST", "/v1/uploads", []byte(body))
	if err == nil {
		err = got.want(201)
	}
	if err == nil {
		err = got.into(&f)
	}
	if err == nil && f.Upload == nil {
		err = errors.New("the reservation has no upload")
	}
	if err != nil {
		return f, fmt.Errorf("reserving: %w", err)
	}
	return f, nil
}

// put uploads as the reservation says, but for the changes: pairs of a header and its
// value, where an empty one drops the header.
func (f file) put(ctx context.Context, body []byte, changes ...string) (answer, error) {
	return send(ctx, f.Upload.Method, f.Upload.URL, body, f.headers(changes...)...)
}

func (f file) headers(changes ...string) []string {
	header := map[string]string{}
	for name, value := range f.Upload.Headers {
		if !strings.EqualFold(name, "Content-Length") { // net/http sends that of the body
			header[http.CanonicalHeaderKey(name)] = value
		}
	}
	for i := 0; i < len(changes); i += 2 {
		header[http.CanonicalHeaderKey(changes[i])] = changes[i+1]
	}
	var out []string
	for name, value := range header {
		if value != "" {
			out = append(out, name, value)
		}
	}
	return out
}

// stored uploads content and completes it.
func (t *target) stored(ctx context.Context, content []byte, more string, changes ...string) (file, error) {
	f, err := t.reserve(ctx, content, more)
	if err != nil {
		return f, err
	}
	got, err := f.put(ctx, content, changes...)
	if err == nil {
		err = got.want(200)
	}
	if err != nil {
		return f, fmt.Errorf("uploading: %w", err)
	}
	got, err = t.api(ctx, "POST", "/v1/uploads/"+f.ID+"/complete", nil)
	if err == nil {
		err = got.want(200)
	}
	if err == nil {
		err = got.into(&f)
	}
	if err != nil {
		return f, fmt.Errorf("completing: %w", err)
	}
	return f, nil
}

// link makes a download link; seconds 0 is the default life.
func (t *target) link(ctx context.Context, id string, seconds int) (url string, ends time.Time, err error) {
	var body []byte
	if seconds > 0 {
		body = fmt.Appendf(nil, `{"ttl_seconds":%d}`, seconds)
	}
	var l struct {
		URL       string
		ExpiresAt time.Time `json:"expires_at"`
	}
	got, err := t.api(ctx, "POST", "/v1/files/"+id+"/links", body)
	if err == nil {
		err = got.want(201)
	}
	if err == nil {
		err = got.into(&l)
	}
	if err != nil {
		return "", time.Time{}, fmt.Errorf("making a link: %w", err)
	}
	return l.URL, l.ExpiresAt, nil
}

// linked stores content and makes a link to it.
func (t *target) linked(ctx context.Context, content []byte, more string) (file, string, error) {
	f, err := t.stored(ctx, content, more)
	if err != nil {
		return f, "", err
	}
	url, _, err := t.link(ctx, f.ID, 0)
	return f, url, err
}

// until waits for a time, and a second more for clocks that differ.
func until(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(time.Until(at) + time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// eventually repeats ask until it says true.
func eventually(ctx context.Context, ask func() (bool, error)) error {
	deadline := time.Now().Add(patience)
	for {
		if ok, err := ask(); ok || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %s", patience)
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// noise are bytes that nobody has seen before.
func noise(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// digest is a Repr-Digest.
func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

// same is an error unless an answer has the bytes.
func same(got answer, want []byte) error {
	if err := got.want(200); err != nil {
		return err
	}
	if !bytes.Equal(got.body, want) {
		return fmt.Errorf("%d bytes came back, other than the %d stored", len(got.body), len(want))
	}
	return nil
}
