package store

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// S3 answers a copy or a write once it has hashed the bytes, which for the largest files takes most of a minute.
const (
	shortestWrite = 12 * time.Second // one attempt has at least this long
	toAnswer      = 2 * time.Second  // of the function's time is kept for what follows
)

// patience returns what one write may take of the time that the function has left: long attempts, and an end that
// still lets the function say that it failed.
func (s *Store) patience(ctx context.Context) (context.Context, context.CancelFunc, func(*s3.Options)) {
	timeout, cancel := shortestWrite, context.CancelFunc(func() {})
	if end, ok := ctx.Deadline(); ok {
		timeout = attemptTimeout(time.Until(end))
		ctx, cancel = context.WithDeadline(ctx, end.Add(-toAnswer))
	}
	return ctx, cancel, func(o *s3.Options) { o.HTTPClient = s.env.HTTPClient(timeout) }
}

// attemptTimeout gives the first attempt two thirds of what is left. Should it end without an answer, the copy is often
// done all the same, and the next attempt finds it.
func attemptTimeout(left time.Duration) time.Duration { return max(shortestWrite, left*2/3) }
