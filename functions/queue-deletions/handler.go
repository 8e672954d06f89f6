package main

import (
	"context"
	"log/slog"
	"slices"

	"github.com/aws/aws-lambda-go/events"

	"claimcheck.dev/claimcheck/shared/records/stream"
)

// queue takes the ids of ended files; it returns those it did not take.
type queue interface {
	Send(ctx context.Context, ids []string) (failed []string, err error)
}

type handler struct {
	queue queue
	log   *slog.Logger
}

// ended is a file that ended, and where the stream says so.
type ended struct {
	id       string
	sequence string
}

// handle queues every file that ended in the batch. What can't be queued is reported by the sequence number of the
// first such change: Lambda delivers the stream again from there. Queuing a file twice does no harm.
func (h handler) handle(ctx context.Context, batch events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	var found []ended
	for _, rec := range batch.Records {
		end, ok := stream.Ended(rec)
		if !ok || end.Removed && !end.State.Live() {
			continue // the row of a file that ended before: its bytes were queued then
		}
		found = append(found, ended{end.ID, rec.Change.SequenceNumber})
	}
	for chunk := range slices.Chunk(found, sendBatch) {
		ids := make([]string, len(chunk))
		for i, e := range chunk {
			ids[i] = e.id
		}
		failed, err := h.queue.Send(ctx, ids)
		if err != nil {
			failed = ids
		}
		for _, e := range chunk {
			if slices.Contains(failed, e.id) {
				h.log.ErrorContext(ctx, "could not queue a deletion", "id", e.id, "error", err)
				return events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{{ItemIdentifier: e.sequence}}}, nil
			}
			h.log.InfoContext(ctx, "queued a deletion", "id", e.id)
		}
	}
	return events.DynamoDBEventResponse{}, nil
}
