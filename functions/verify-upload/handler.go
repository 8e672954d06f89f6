package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"

	"github.com/aws/aws-lambda-go/events"

	"claimcheck.dev/claimcheck/shared/background"
	"claimcheck.dev/claimcheck/shared/objects/keys"
)

// verifier settles what an event announces; an error asks for another delivery.
type verifier interface {
	Event(ctx context.Context, id, etag string) error
}

type handler struct {
	bucket   string
	verifier verifier
	log      *slog.Logger
}

// notification is the part of an S3 notification that is used. It is decoded by hand: events.S3Event refuses a whole
// batch for one badly escaped key. The test event that S3 sends at set-up has no records.
type notification struct {
	Records []struct {
		S3 struct {
			Bucket struct {
				Name string `json:"name"`
			} `json:"bucket"`
			Object struct {
				Key  string `json:"key"`  // URL-encoded, + for a space
				ETag string `json:"eTag"` // without quotes
			} `json:"object"`
		} `json:"s3"`
	} `json:"Records"`
}

// handle verifies every object of the batch and reports the messages that must be delivered again.
func (h handler) handle(ctx context.Context, batch events.SQSEvent) (events.SQSEventResponse, error) {
	return background.Batch(ctx, h.log, batch, "verification failed", h.message), nil
}

func (h handler) message(ctx context.Context, body string) error {
	var n notification
	if err := json.Unmarshal([]byte(body), &n); err != nil {
		return fmt.Errorf("the message is not an S3 notification: %w", err)
	}
	var errs []error
	for _, rec := range n.Records {
		if rec.S3.Bucket.Name != h.bucket {
			h.log.WarnContext(ctx, "ignored an event of another bucket")
			continue
		}
		key, err := url.QueryUnescape(rec.S3.Object.Key)
		if err != nil {
			errs = append(errs, fmt.Errorf("the object key is badly escaped: %w", err))
			continue
		}
		id, ok := keys.ParseStaging(key)
		if !ok {
			h.log.WarnContext(ctx, "ignored an event outside of staging/")
			continue
		}
		if err := h.verifier.Event(ctx, id, rec.S3.Object.ETag); err != nil {
			errs = append(errs, err)
			continue
		}
		h.log.InfoContext(ctx, "settled", "id", id)
	}
	return errors.Join(errs...)
}
