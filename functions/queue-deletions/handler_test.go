package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"claimcheck.dev/claimcheck/shared/functiontest"
)

// outbox takes ids as the deletion queue does and refuses the ones in refuse; with broken, it takes none.
type outbox struct {
	sent     []string
	requests int
	refuse   []string
	broken   bool
}

func (o *outbox) Send(_ context.Context, ids []string) (failed []string, err error) {
	o.requests++
	if o.broken {
		return nil, errors.New("out of order")
	}
	for _, id := range ids {
		if slices.Contains(o.refuse, id) {
			failed = append(failed, id)
			continue
		}
		o.sent = append(o.sent, id)
	}
	return failed, nil
}

func handle(t *testing.T, q queue, records ...events.DynamoDBEventRecord) (failed []string) {
	t.Helper()
	h := handler{queue: q, log: slog.New(slog.NewJSONHandler(&bytes.Buffer{}, nil))}
	resp, err := h.handle(t.Context(), events.DynamoDBEvent{Records: records})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range resp.BatchItemFailures {
		failed = append(failed, f.ItemIdentifier)
	}
	return failed
}

func id(n int) string { return "f_" + fmt.Sprintf("%026d", n) }

// change is a change of the row of file n from one state to another; "" stands for no row.
func change(n int, from, to string) events.DynamoDBEventRecord {
	keys := map[string]events.DynamoDBAttributeValue{"pk": events.NewStringAttribute(id(n)), "sk": events.NewStringAttribute("file")}
	image := func(state string) map[string]events.DynamoDBAttributeValue {
		if state == "" {
			return nil
		}
		return map[string]events.DynamoDBAttributeValue{"pk": keys["pk"], "sk": keys["sk"], "state": events.NewStringAttribute(state)}
	}
	name := "MODIFY"
	switch {
	case from == "":
		name = "INSERT"
	case to == "":
		name = "REMOVE"
	}
	return events.DynamoDBEventRecord{
		EventName: name,
		Change:    events.DynamoDBStreamRecord{Keys: keys, OldImage: image(from), NewImage: image(to), SequenceNumber: fmt.Sprint(n)},
	}
}

func TestSampleEvent(t *testing.T) {
	t.Parallel()
	var sample events.DynamoDBEvent
	functiontest.Sample(t, "queue-deletions", &sample)
	var o outbox
	if failed := handle(t, &o, sample.Records...); failed != nil || !slices.Equal(o.sent, []string{functiontest.FileID}) {
		t.Errorf("queued %v, failed %v", o.sent, failed)
	}
}

func TestOnlyEndsAreQueued(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		queued   bool
	}{
		{"", "reserved", false}, {"reserved", "ready", false}, {"ready", "claimed", false}, {"claimed", "ready", false},
		{"reserved", "rejected", true}, {"reserved", "expired", true}, {"reserved", "deleted", true},
		{"ready", "expired", true}, {"ready", "deleted", true}, {"claimed", "spent", true},
		{"reserved", "", true}, {"ready", "", true}, {"claimed", "", true}, // taken back, or removed by TTL before any sweep
		{"deleted", "", false}, {"spent", "", false}, {"rejected", "deleted", false},
	} {
		var o outbox
		if failed := handle(t, &o, change(1, c.from, c.to)); failed != nil || (len(o.sent) == 1) != c.queued {
			t.Errorf("%q -> %q: queued %v, failed %v", c.from, c.to, o.sent, failed)
		}
	}
	other := change(1, "ready", "deleted")
	other.Change.Keys["sk"] = events.NewStringAttribute("key")
	var o outbox
	if handle(t, &o, other); o.sent != nil {
		t.Errorf("queued a row that is no file: %v", o.sent)
	}
}

func TestFailuresComeAgainFromTheFirst(t *testing.T) {
	t.Parallel()
	var batch []events.DynamoDBEventRecord
	for n := range 25 {
		batch = append(batch, change(n, "ready", "expired"))
	}
	o := outbox{refuse: []string{id(13), id(17)}}
	if failed := handle(t, &o, batch...); !slices.Equal(failed, []string{"13"}) {
		t.Errorf("comes again from %v, want 13", failed)
	}
	if o.requests != 2 {
		t.Errorf("%d requests, want 2: nothing is sent behind a failure", o.requests)
	}
	if failed := handle(t, &outbox{broken: true}, batch...); !slices.Equal(failed, []string{"0"}) {
		t.Errorf("comes again from %v, want the start", failed)
	}
	o = outbox{}
	if failed := handle(t, &o, batch...); failed != nil || len(o.sent) != 25 || o.requests != 3 {
		t.Errorf("sent %s with %d requests, failed %v", strings.Join(o.sent, " "), o.requests, failed)
	}
}
