package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"claimcheck.dev/claimcheck/shared/local/stack"
)

// limits are the template parameters of a run: small and short, so that callers meet every one of them.
type limits struct {
	maxFile, maxLive, reservations            int64
	fileTTL, reservationTTL, urlTTL, leaseTTL time.Duration
}

var tight = limits{
	maxFile: 64 << 10, maxLive: 1 << 20, reservations: 8,
	fileTTL: 15 * time.Second, reservationTTL: 5 * time.Second, urlTTL: 4 * time.Second, leaseTTL: 2 * time.Second,
}

func (l limits) params() map[string]string {
	seconds := func(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }
	return map[string]string{
		"MaxFileBytes": fmt.Sprint(l.maxFile), "AccountMaxLiveBytes": fmt.Sprint(l.maxLive),
		"ActorMaxReservations": fmt.Sprint(l.reservations),
		"FileTTLSeconds":       seconds(l.fileTTL), "SingleUseTTLSeconds": seconds(l.fileTTL),
		"ReservationTTLSeconds": seconds(l.reservationTTL), "UploadURLSeconds": seconds(l.urlTTL),
		"LinkTTLSeconds": seconds(l.fileTTL), "ClaimLeaseSeconds": seconds(l.leaseTTL),
		"ApiRequestsPerSecond": "100000", "ApiRequestBurst": "100000",
	}
}

// identity is who calls: a key of one actor of one account.
type identity struct {
	account, actor, key string
}

// world is a running stack, and all that its callers know.
type world struct {
	root, data string
	limits     limits
	plan       *plan
	stack      *stack.Stack
	http       *http.Client
	log        *os.File
	jump       atomic.Int64 // how far the clock of queues and TTL has been moved on, nanoseconds
	lines      reconciles

	accounts map[string]*account
	callers  []*identity

	mu         sync.Mutex
	violations []string
}

// account is what is known of one account's files.
type account struct {
	name  string
	mu    sync.Mutex
	files []*file // those acknowledged, oldest first
	// counting are those of them that may hold quota.
	counting []*file
	// attempts are reservations whose outcome nobody told: they may count.
	attempts []*attempt
	unknown  int // how many there were in all
}

func openWorld(ctx context.Context, root, data string, l limits, p *plan) (*world, error) {
	w := &world{
		root: root, data: data, limits: l, plan: p, accounts: map[string]*account{},
		http: &http.Client{
			Timeout:       time.Minute,
			Transport:     &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	var err error
	if w.log, err = os.OpenFile(filepath.Join(data, "stack.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return nil, err
	}
	if err := w.start(ctx); err != nil {
		return nil, err
	}
	for _, name := range []string{"acme", "umbrella"} {
		w.accounts[name] = &account{name: name}
		for _, actor := range []string{"ada", "bob"} { // the same names in both: nothing may be shared by name
			key, err := w.issue(ctx, name, actor)
			if err != nil {
				return nil, err
			}
			w.callers = append(w.callers, &identity{name, actor, key})
		}
	}
	return w, nil
}

// start starts the stack on the data folder, which may hold an earlier one's data.
func (w *world) start(ctx context.Context) error {
	s, err := stack.Start(ctx, stack.Options{
		Root: w.root, Data: w.data, Params: w.limits.params(), Log: io.MultiWriter(w.log, &w.lines),
		Faults: w.plan.function, Notify: w.plan.notify,
		Now: func() time.Time { return time.Now().Add(time.Duration(w.jump.Load())) },
	})
	if err != nil {
		return err
	}
	w.stack = s
	s.Dynamo().SetFaults(w.plan.table)
	s.S3().SetFaults(w.plan.object)
	return nil
}

func (w *world) close() error {
	err := w.stack.Close()
	w.http.CloseIdleConnections()
	return errors.Join(err, w.log.Close())
}

func (w *world) issue(ctx context.Context, account, actor string) (string, error) {
	event := fmt.Sprintf(`{"account":%q,"actor":%q,"role":"owner"}`, account, actor)
	res, err := w.stack.Invoke(ctx, "issue-key", []byte(event))
	if err != nil {
		return "", err
	}
	var made struct{ Key string }
	if err := json.Unmarshal(res.Payload, &made); err != nil || made.Key == "" {
		return "", fmt.Errorf("issue-key answered %s", res.Payload)
	}
	return made.Key, nil
}

// later moves the clock of the queues behind every visibility timeout: what failed comes again, and what is being
// handled comes a second time.
func (w *world) later() {
	w.jump.Add(int64(361 * time.Second))
	w.stack.Wake()
}

// fail records that something acknowledged was contradicted, or an invariant broken.
func (w *world) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.violations) < 25 {
		w.violations = append(w.violations, time.Now().UTC().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
	}
}

func (w *world) broken() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.violations...)
}

// answer is what came of a request that was under way from start to end.
type answer struct {
	status     int // 0: the connection broke
	code       string
	body       []byte
	header     http.Header
	start, end time.Time
}

// unknown tells that the answer says nothing about what happened.
func (a answer) unknown() bool { return a.status == 0 || a.status >= 500 }

func (a answer) String() string {
	if a.code != "" {
		return fmt.Sprintf("%d %s", a.status, a.code)
	}
	return strconv.Itoa(a.status)
}

func (a answer) into(v any) error { return json.Unmarshal(a.body, v) }

// request is one call of the API by an identity.
func (w *world) request(who *identity, method, path string, body []byte, header ...string) answer {
	header = append([]string{"Authorization", "Bearer " + who.key}, header...)
	a := w.send(method, w.stack.URL+path, body, header...)
	if a.status >= 300 && strings.HasPrefix(a.header.Get("Content-Type"), "application/problem+json") {
		var problem struct {
			Code      string
			RequestID string `json:"request_id"`
		}
		if err := a.into(&problem); err != nil {
			w.fail("%s %s: the problem is no JSON: %s", method, path, a.body)
		}
		a.code = problem.Code
		if a.code == "internal_error" {
			w.fail("%s %s: internal_error, which no injected fault explains (request %s)", method, path, problem.RequestID)
		}
	}
	return a
}

func (w *world) send(method, url string, body []byte, header ...string) answer {
	a := answer{start: time.Now()}
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequest(method, url, reader)
	if err != nil {
		w.fail("%s: %v", method, err)
		return a
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := w.http.Do(req)
	if err == nil {
		a.status, a.header = res.StatusCode, res.Header
		a.body, err = io.ReadAll(res.Body)
		res.Body.Close()
	}
	a.end = time.Now()
	if err != nil {
		a.status, a.body = 0, nil
	}
	return a
}

func sum(b []byte) string {
	digest := sha256.Sum256(b)
	return hex.EncodeToString(digest[:])
}

// reconciles watches the log for what reconciling reports, which must be nothing while every write is exact.
type reconciles struct {
	mu    sync.Mutex
	drift []string
	runs  int
}

func (r *reconciles) Write(p []byte) (int, error) {
	if i := bytes.IndexByte(p, '{'); i >= 0 && bytes.Contains(p, []byte(`"msg":"reconciled"`)) {
		var found struct{ Lost, Unheld, Drifted int }
		if json.Unmarshal(bytes.TrimSpace(p[i:]), &found) == nil {
			r.mu.Lock()
			r.runs++
			if found.Lost+found.Unheld+found.Drifted > 0 {
				r.drift = append(r.drift, string(bytes.TrimSpace(p[i:])))
			}
			r.mu.Unlock()
		}
	}
	return len(p), nil
}
