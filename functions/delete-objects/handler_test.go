package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"claimcheck.dev/claimcheck/shared/functiontest"
)

// recorder notes the ids it is told to purge and fails the one named fail.
type recorder struct {
	ids  []string
	fail string
}

func (r *recorder) Purge(_ context.Context, id string) error {
	r.ids = append(r.ids, id)
	if id == r.fail {
		return errors.New("S3 is out of order")
	}
	return nil
}

func handle(t *testing.T, p purger, batch ...events.SQSMessage) (failed []string) {
	t.Helper()
	h := handler{purger: p, log: slog.New(slog.NewJSONHandler(&bytes.Buffer{}, nil))}
	resp, err := h.handle(t.Context(), events.SQSEvent{Records: batch})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range resp.BatchItemFailures {
		failed = append(failed, f.ItemIdentifier)
	}
	return failed
}

func TestSampleEvent(t *testing.T) {
	t.Parallel()
	var sample events.SQSEvent
	functiontest.Sample(t, "delete-objects", &sample)
	var r recorder
	if failed := handle(t, &r, sample.Records...); failed != nil || !slices.Equal(r.ids, []string{functiontest.FileID}) {
		t.Errorf("purged %v, failed %v", r.ids, failed)
	}
}

func TestOneFailureLeavesTheOthersDone(t *testing.T) {
	t.Parallel()
	r := recorder{fail: "f_b"}
	failed := handle(t, &r,
		events.SQSMessage{MessageId: "1", Body: `{"id":"f_a"}`},
		events.SQSMessage{MessageId: "2", Body: `{"id":"f_b"}`},
		events.SQSMessage{MessageId: "3", Body: `nonsense`},
		events.SQSMessage{MessageId: "4", Body: `{"id":"f_c"}`})
	if !slices.Equal(failed, []string{"2", "3"}) || !slices.Equal(r.ids, []string{"f_a", "f_b", "f_c"}) {
		t.Errorf("purged %v, failed %v", r.ids, failed)
	}
}
