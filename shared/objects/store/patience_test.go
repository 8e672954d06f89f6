package store

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/awsenv"
	"claimcheck.dev/claimcheck/shared/files"
)

func TestAttemptTimeout(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]time.Duration{
		-time.Second:     shortestWrite,
		10 * time.Second: shortestWrite,
		30 * time.Second: 20 * time.Second,
		time.Minute:      40 * time.Second,
	} {
		if got := attemptTimeout(left); got != want {
			t.Errorf("attemptTimeout(%v) = %v, want %v", left, got, want)
		}
	}
}

// TestTimeToAnswer: a write that S3 never answers ends before the function does.
func TestTimeToAnswer(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer srv.Close()
	defer close(release)
	env, err := awsenv.Parse([]string{
		"AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=secret", "AWS_ENDPOINT_URL_S3=" + srv.URL,
	})
	if err != nil {
		t.Fatal(err)
	}
	s := Connect(env, "bucket")
	f := files.File{ID: "f_0123456789abcdefghijklmnop"}
	for name, write := range map[string]func(context.Context) error{
		"Seal":      func(ctx context.Context) error { _, err := s.Seal(ctx, f, `"etag"`); return err },
		"PutSealed": func(ctx context.Context) error { _, err := s.PutSealed(ctx, f, []byte("x")); return err },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), toAnswer+50*time.Millisecond)
		defer cancel()
		if err := write(ctx); !errors.Is(err, files.ErrTryAgain) || ctx.Err() != nil {
			t.Errorf("%s: %v, and the function's time: %v", name, err, ctx.Err())
		}
	}
}
