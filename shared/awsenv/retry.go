package awsenv

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
)

const (
	maxAttempts = 3
	firstPause  = 50 * time.Millisecond
	longPause   = 500 * time.Millisecond
)

// newRetryer is called once for each client. Its pauses are far shorter than the SDK's (up to 20 s), since a person or
// an agent waits for the answer; what is still refused after them is for the caller to repeat.
func newRetryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = maxAttempts
		o.Backoff = retry.BackoffDelayerFunc(pause)
	})
}

// pause returns a random time up to a bound that grows with each attempt: callers that were refused together don't
// come back together.
func pause(attempt int, _ error) (time.Duration, error) {
	bound := longPause
	if attempt < 4 {
		bound = min(longPause, firstPause<<attempt)
	}
	return rand.N(bound), nil
}

var retryables = retry.IsErrorRetryables(retry.DefaultRetryables)

// Temporary reports whether err, from an SDK client, says only that the service could not answer now: throttling, a
// failure inside AWS, a broken connection, a timeout. The same request may succeed later.
func Temporary(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || retryables.IsErrorRetryable(err) == aws.TrueTernary
}
