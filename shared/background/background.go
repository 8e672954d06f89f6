// Package background is what the work behind the routes shares: where it logs, and how it answers a batch of a queue.
package background

import (
	"context"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/events"
)

// Log returns the logger of a function: JSON lines on stderr.
func Log() *slog.Logger { return slog.New(slog.NewJSONHandler(os.Stderr, nil)) }

// Batch hands the body of every message to do and reports the ones that failed, which SQS delivers again. Failure is
// what the log says of them.
func Batch(ctx context.Context, log *slog.Logger, batch events.SQSEvent, failure string, do func(ctx context.Context, body string) error) events.SQSEventResponse {
	var resp events.SQSEventResponse
	for _, m := range batch.Records {
		if err := do(ctx, m.Body); err != nil {
			log.ErrorContext(ctx, failure, "message", m.MessageId, "error", err)
			resp.BatchItemFailures = append(resp.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
		}
	}
	return resp
}
