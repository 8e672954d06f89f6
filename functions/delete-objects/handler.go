package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/events"
)

// purger removes everything that is stored for an ended file; an error asks for another delivery.
type purger interface {
	Purge(ctx context.Context, id string) error
}

type handler struct {
	purger purger
	log    *slog.Logger // nil: JSON lines on stderr
}

// message is what queue-deletions sends.
type message struct {
	ID string `json:"id"`
}

// handle purges every file of the batch and reports the messages that must be delivered again.
func (h handler) handle(ctx context.Context, batch events.SQSEvent) (events.SQSEventResponse, error) {
	log := h.log
	if log == nil {
		log = slog.New(slog.NewJSONHandler(os.Stderr, nil))
	}
	var resp events.SQSEventResponse
	for _, m := range batch.Records {
		if err := h.message(ctx, m.Body); err != nil {
			log.ErrorContext(ctx, "deletion failed", "message", m.MessageId, "error", err)
			resp.BatchItemFailures = append(resp.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
		}
	}
	return resp, nil
}

func (h handler) message(ctx context.Context, body string) error {
	var m message
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		return fmt.Errorf("the message is not {id}: %w", err)
	}
	return h.purger.Purge(ctx, m.ID)
}
