// Package sources drives functions from queues, from a table's stream and from the
// clock: what Lambda calls event source mappings, and what EventBridge does with
// rates. Each source builds the event that AWS would send, invokes the function,
// and does with the outcome what AWS does: delete or retry a message, move on in a
// stream, split a batch, hand a batch that cannot be handled to a queue.
package sources

import (
	"context"
	"fmt"
	"io"
	"time"

	"claimcheck.dev/claimcheck/shared/local/lambda"
)

// Invoker is the function that a source drives; *lambda.Function is one.
type Invoker interface {
	Invoke(ctx context.Context, event []byte) (lambda.Result, error)
}

// Target is a function and what events say about it.
type Target struct {
	Function Invoker
	// Label prefixes log lines, ARN names the function in records of failures.
	Label, ARN string
	Log        io.Writer
}

func (t *Target) logf(format string, args ...any) {
	fmt.Fprintf(t.Log, "[%s] %s\n", t.Label, fmt.Sprintf(format, args...))
}

// invoke runs the function to its end even when ctx ends: a source that stops
// lets the batch it has begun finish. failed is empty after a success.
func (t *Target) invoke(ctx context.Context, event []byte) (payload []byte, failed string) {
	res, err := t.Function.Invoke(context.WithoutCancel(ctx), event)
	if err != nil {
		return nil, err.Error()
	}
	if res.FunctionError != "" {
		return res.Payload, string(res.Payload)
	}
	return res.Payload, ""
}

// sleep waits for d; false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
