package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"

	"claimcheck.dev/claimcheck/shared/background"
)

// purger removes what is stored for an ended file; an error asks for another delivery.
type purger interface {
	Purge(ctx context.Context, id string) error
}

type handler struct {
	purger purger
	log    *slog.Logger
}

// message is what queue-deletions sends.
type message struct {
	ID string `json:"id"`
}

// handle purges every file of the batch and reports the messages that must be delivered again.
func (h handler) handle(ctx context.Context, batch events.SQSEvent) (events.SQSEventResponse, error) {
	return background.Batch(ctx, h.log, batch, "deletion failed", h.message), nil
}

func (h handler) message(ctx context.Context, body string) error {
	var m message
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		return fmt.Errorf("the message is not {id}: %w", err)
	}
	return h.purger.Purge(ctx, m.ID)
}
