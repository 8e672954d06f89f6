package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"claimcheck.dev/claimcheck/shared/awsenv"
	"claimcheck.dev/claimcheck/shared/files"
)

// role is an STS in memory: session n has the key id "session-n".
type role struct {
	clock time.Time
	calls atomic.Int32
	err   error
	life  time.Duration
}

func (r *role) now() time.Time { return r.clock }

func (r *role) Retrieve(context.Context) (aws.Credentials, error) {
	n := r.calls.Add(1)
	if r.err != nil {
		return aws.Credentials{}, r.err
	}
	return aws.Credentials{
		AccessKeyID: fmt.Sprintf("session-%d", n), SecretAccessKey: "secret", SessionToken: "token",
		CanExpire: true, Expires: r.clock.Add(r.life),
	}, nil
}

func newRole() *role { return &role{clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), life: Life} }

func TestRenewal(t *testing.T) {
	t.Parallel()
	r := newRole()
	start := r.clock
	s := newSession(r, 15*time.Minute, r.now)
	for _, step := range []struct {
		after time.Duration
		key   string
	}{
		{0, "session-1"},
		{time.Minute, "session-1"},
		{44*time.Minute - time.Second, "session-1"}, // 16 minutes and a second are left
		{44 * time.Minute, "session-2"},
		{45 * time.Minute, "session-2"},
		{10 * time.Hour, "session-3"}, // thawed after a long sleep
	} {
		r.clock = start.Add(step.after)
		creds, err := s.Retrieve(t.Context())
		if err != nil || creds.AccessKeyID != step.key {
			t.Errorf("after %v: %s, %v; want %s", step.after, creds.AccessKeyID, err, step.key)
		}
		if left := creds.Expires.Sub(r.clock); left <= 16*time.Minute {
			t.Errorf("after %v: a URL of 15 minutes does not fit into the %v left", step.after, left)
		}
	}
}

func TestEndIsTrue(t *testing.T) {
	t.Parallel()
	r := newRole()
	creds, err := newSession(r, 45*time.Minute, r.now).Retrieve(t.Context())
	if err != nil || !creds.CanExpire || !creds.Expires.Equal(r.clock.Add(Life)) {
		t.Errorf("ends at %v, %v; want %v", creds.Expires, err, r.clock.Add(Life))
	}
}

// TestWindowIsBounded: an absurd longest URL must not make every request renew.
func TestWindowIsBounded(t *testing.T) {
	t.Parallel()
	r := newRole()
	s := newSession(r, 24*time.Hour, r.now)
	for range 3 {
		if _, err := s.Retrieve(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.clock = r.clock.Add(time.Minute)
	}
	if got := r.calls.Load(); got != 1 {
		t.Errorf("%d sessions, want 1", got)
	}
}

func TestOutage(t *testing.T) {
	t.Parallel()
	r := newRole()
	start := r.clock
	s := newSession(r, 15*time.Minute, r.now)
	if _, err := s.Retrieve(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.err = fmt.Errorf("a hiccup: %w", context.DeadlineExceeded)
	for _, step := range []struct {
		after time.Duration
		calls int32
		ok    bool
	}{
		{50 * time.Minute, 2, true},
		{50*time.Minute + time.Second, 2, true}, // not asked again at once
		{50*time.Minute + retryWait, 3, true},
		{59 * time.Minute, 4, false},
		{59*time.Minute + time.Second, 5, false}, // now each request asks: nothing else can help it
		{2 * time.Hour, 6, false},
	} {
		r.clock = start.Add(step.after)
		creds, err := s.Retrieve(t.Context())
		if calls := r.calls.Load(); calls != step.calls {
			t.Errorf("after %v: %d calls, want %d", step.after, calls, step.calls)
		}
		if step.ok && (err != nil || creds.AccessKeyID != "session-1") {
			t.Errorf("after %v: %s, %v; want the old session", step.after, creds.AccessKeyID, err)
		}
		if !step.ok && !errors.Is(err, files.ErrTryAgain) {
			t.Errorf("after %v: %s, %v; want ErrTryAgain", step.after, creds.AccessKeyID, err)
		}
	}
	r.err = nil
	if creds, err := s.Retrieve(t.Context()); err != nil || creds.AccessKeyID != "session-7" {
		t.Errorf("after the outage: %s, %v", creds.AccessKeyID, err)
	}
}

func TestUselessSession(t *testing.T) {
	t.Parallel()
	r := newRole()
	r.life = minLeft
	if _, err := newSession(r, time.Minute, r.now).Retrieve(t.Context()); !errors.Is(err, files.ErrTryAgain) {
		t.Errorf("a session about to end: %v", err)
	}
}

func TestOneRenewalForAll(t *testing.T) {
	t.Parallel()
	r := newRole()
	s := newSession(r, 15*time.Minute, r.now)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if creds, err := s.Retrieve(t.Context()); err != nil || creds.AccessKeyID != "session-1" {
				t.Errorf("%s, %v", creds.AccessKeyID, err)
			}
		})
	}
	wg.Wait()
	if got := r.calls.Load(); got != 1 {
		t.Errorf("%d sessions, want 1", got)
	}
}

// TestWaiterGivesUp: who waits for the renewal of another request ends with its own context.
func TestWaiterGivesUp(t *testing.T) {
	t.Parallel()
	started, release := make(chan struct{}), make(chan struct{})
	r := newRole()
	s := newSession(aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		close(started)
		<-release
		return r.Retrieve(ctx)
	}), time.Minute, r.now)
	done := make(chan error)
	go func() {
		_, err := s.Retrieve(context.WithoutCancel(t.Context()))
		done <- err
	}()
	<-started
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Retrieve(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, files.ErrTryAgain) {
		t.Errorf("error %v", err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestSessionName(t *testing.T) {
	t.Parallel()
	for function, want := range map[string]string{
		"":                         "claimcheck",
		"x":                        "claimcheck",
		"stack-ReserveUpload-1aB":  "stack-ReserveUpload-1aB",
		"a b:c":                    "a-b-c",
		strings.Repeat("long", 20): strings.Repeat("long", 16),
	} {
		if got := sessionName(function); got != want {
			t.Errorf("sessionName(%q) = %q, want %q", function, got, want)
		}
	}
}

const answer = `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
<AccessKeyId>ASIASESSION</AccessKeyId><SecretAccessKey>sessionsecret</SecretAccessKey><SessionToken>sessiontoken</SessionToken>
<Expiration>%s</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`

const refusal = `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>%s</Code>
<Message>no</Message></Error><RequestId>r-1</RequestId></ErrorResponse>`

func TestOpen(t *testing.T) {
	t.Parallel()
	const arn = "arn:aws:iam::123456789012:role/stack-Presign-1"
	end := time.Now().Add(Life).UTC().Truncate(time.Second)
	tests := []struct {
		name     string
		status   int
		body     string
		attempts int32
		want     error // files.ErrTryAgain, or errors.ErrUnsupported for any other
	}{
		{"granted", 200, fmt.Sprintf(answer, end.Format(time.RFC3339)), 1, nil},
		{"throttled", 400, fmt.Sprintf(refusal, "Throttling"), 3, files.ErrTryAgain},
		{"down", 503, fmt.Sprintf(refusal, "ServiceUnavailable"), 3, files.ErrTryAgain},
		{"refused", 403, fmt.Sprintf(refusal, "AccessDenied"), 1, errors.ErrUnsupported},
		{"nonsense", 200, "<AssumeRoleResponse/>", 1, errors.ErrUnsupported},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			var form url.Values
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				r.ParseForm()
				form = r.PostForm
				w.Header().Set("Content-Type", "text/xml")
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.body)
			}))
			defer srv.Close()
			env, err := awsenv.Parse([]string{
				"AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=ASIAFUNCTION", "AWS_SECRET_ACCESS_KEY=functionsecret",
				"AWS_SESSION_TOKEN=functiontoken", "AWS_LAMBDA_FUNCTION_NAME=reserve", "AWS_ENDPOINT_URL_STS=" + srv.URL,
			})
			if err != nil {
				t.Fatal(err)
			}
			creds, err := Open(env, arn, 15*time.Minute).Retrieve(t.Context())
			if got := calls.Load(); got != tt.attempts {
				t.Errorf("%d attempts, want %d", got, tt.attempts)
			}
			if form.Get("RoleArn") != arn || form.Get("DurationSeconds") != "3600" || form.Get("RoleSessionName") != "reserve" {
				t.Errorf("asked for %v", form)
			}
			if tt.want == nil {
				if err != nil || creds.AccessKeyID != "ASIASESSION" || creds.SessionToken != "sessiontoken" || !creds.Expires.Equal(end) {
					t.Errorf("got %s until %v, %v", creds.AccessKeyID, creds.Expires, err)
				}
				return
			}
			if err == nil || errors.Is(err, files.ErrTryAgain) != errors.Is(tt.want, files.ErrTryAgain) {
				t.Fatalf("error %v", err)
			}
			for _, secret := range []string{"functionsecret", "functiontoken", "Signature="} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%q leaks into %q", secret, err)
				}
			}
		})
	}
}

// TestLostConnection: a connection that STS has dropped costs another attempt, not the session.
func TestLostConnection(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprintf(w, answer, time.Now().Add(Life).UTC().Format(time.RFC3339))
	}))
	defer srv.Close()
	env, err := awsenv.Parse([]string{"AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b", "AWS_ENDPOINT_URL_STS=" + srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	creds, err := Open(env, "arn:aws:iam::123456789012:role/stack-Presign-1", time.Minute).Retrieve(t.Context())
	if err != nil || creds.SessionToken != "sessiontoken" || calls.Load() != 2 {
		t.Errorf("%d calls, %v", calls.Load(), err)
	}
}

// TestPlace: without another endpoint STS is asked in the function's own region.
func TestPlace(t *testing.T) {
	t.Parallel()
	for region, want := range map[string]string{
		"eu-west-1":     "https://sts.eu-west-1.amazonaws.com/",
		"us-gov-west-1": "https://sts.us-gov-west-1.amazonaws.com/",
		"cn-north-1":    "https://sts.cn-north-1.amazonaws.com.cn/",
	} {
		env, err := awsenv.Parse([]string{"AWS_REGION=" + region, "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b"})
		if err != nil {
			t.Fatal(err)
		}
		if got := newAssumer(env, "arn").url; got != want {
			t.Errorf("%s: %s, want %s", region, got, want)
		}
	}
}
