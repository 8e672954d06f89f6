// Package session gets the credentials that presign requests.
//
// A presigned request dies with the credentials that signed it, and those of a Lambda function don't tell when they
// end. So requests are signed under a role of their own, which may do no more than those requests need, in sessions
// of an hour whose end is known. A session is replaced while the longest request that it may have to sign still fits
// into it.
package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"

	"claimcheck.dev/claimcheck/shared/awsenv"
	"claimcheck.dev/claimcheck/shared/files"
)

// Life is how long a session lasts: the most AWS grants when one role assumes another.
const Life = time.Hour

const (
	slack     = time.Minute      // between the end of the longest request and that of its session
	retryWait = 10 * time.Second // after a failed renewal, while the old session serves
	minLeft   = time.Minute      // of a session that may still serve when its renewal fails
)

// Session is an aws.CredentialsProvider for a role, safe for concurrent use. The credentials it returns report the
// true end of their session.
//
// (The SDK's CredentialsCache brings the end forward by its expiry window, which would shorten every signature.)
type Session struct {
	source aws.CredentialsProvider
	window time.Duration // a session is renewed once less than this is left
	now    func() time.Time

	renewing chan struct{} // a token: held by the one who renews
	mu       sync.Mutex
	creds    aws.Credentials
	failed   time.Time // when the last renewal failed, zero when it succeeded
}

// Open returns the session of a role. Nothing is fetched before the first Retrieve. LongestURL is the longest life that
// will be asked of a signature, at most 45 minutes to be granted in full.
func Open(env awsenv.Env, roleARN string, longestURL time.Duration) *Session {
	return newSession(newAssumer(env, roleARN), longestURL, time.Now)
}

func newSession(source aws.CredentialsProvider, longestURL time.Duration, now func() time.Time) *Session {
	s := &Session{
		source:   source,
		window:   min(longestURL+slack, Life*4/5), // never so wide that each request would renew
		now:      now,
		renewing: make(chan struct{}, 1),
	}
	s.renewing <- struct{}{}
	return s
}

// sessionName is what CloudTrail shows as the author of the signed requests.
func sessionName(function string) string {
	name := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("_+=,.@-", c) {
			return c
		}
		return '-'
	}, function)
	if len(name) < 2 {
		name = "claimcheck"
	}
	return name[:min(len(name), 64)]
}

// Retrieve returns the credentials of the session, renewed when needed. When a renewal fails, the old ones serve for
// as long as they last. The error is files.ErrTryAgain when AWS could not answer; it holds no secrets.
func (s *Session) Retrieve(ctx context.Context) (aws.Credentials, error) {
	if creds, ok := s.current(s.window); ok {
		return creds, nil
	}
	select {
	case <-s.renewing:
		defer func() { s.renewing <- struct{}{} }()
	case <-ctx.Done():
		return aws.Credentials{}, fmt.Errorf("waiting for a presign session: %w: %w", files.ErrTryAgain, ctx.Err())
	}
	if creds, ok := s.current(s.window); ok {
		return creds, nil // somebody else renewed it meanwhile
	}
	if old, ok := s.current(minLeft); ok && s.recentlyFailed() {
		return old, nil
	}
	fresh, err := s.source.Retrieve(ctx)
	if err == nil && !s.now().Add(minLeft).Before(fresh.Expires) {
		err = fmt.Errorf("the new session ends within %v: %w", minLeft, files.ErrTryAgain)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failed = s.now()
		if s.left() > minLeft {
			return s.creds, nil
		}
		return aws.Credentials{}, explain(err)
	}
	s.creds, s.failed = fresh, time.Time{}
	return fresh, nil
}

// current returns the credentials if more than left remains of them.
func (s *Session) current(left time.Duration) (aws.Credentials, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.creds, s.left() > left
}

// left needs s.mu.
func (s *Session) left() time.Duration {
	if !s.creds.HasKeys() {
		return 0
	}
	return s.creds.Expires.Sub(s.now())
}

func (s *Session) recentlyFailed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now().Sub(s.failed) < retryWait // the zero time is long ago
}

// explain says what failed, and what to do about the one cause that is likely to be a mistake.
func explain(err error) error {
	var api smithy.APIError
	switch {
	case errors.Is(err, files.ErrTryAgain):
		return fmt.Errorf("fetching a presign session: %w", err)
	case awsenv.Temporary(err):
		return fmt.Errorf("fetching a presign session: %w: %w", files.ErrTryAgain, err)
	case errors.As(err, &api) && api.ErrorCode() == "AccessDenied":
		return fmt.Errorf("fetching a presign session: the function may not assume the presign role, check its trust policy: %w", err)
	}
	return fmt.Errorf("fetching a presign session: %w", err)
}
