package stream_test

import (
	"encoding/json"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/records/stream"
)

const id = "f_0123456789abcdefghijklmnop"

// record reads a record as Lambda passes it.
func record(t *testing.T, text string) events.DynamoDBEventRecord {
	t.Helper()
	var r events.DynamoDBEventRecord
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// change is a change of the row of a file from one state to another; "" is no image.
func change(t *testing.T, name string, before, after files.State) events.DynamoDBEventRecord {
	t.Helper()
	image := func(s files.State) string {
		if s == "" {
			return `{}`
		}
		return `{"pk":{"S":"` + id + `"},"sk":{"S":"file"},"state":{"S":"` + string(s) + `"},"size":{"N":"12"}}`
	}
	return record(t, `{"eventName":"`+name+`","dynamodb":{"Keys":{"pk":{"S":"`+id+`"},"sk":{"S":"file"}},
		"OldImage":`+image(before)+`,"NewImage":`+image(after)+`}}`)
}

// TestChanges: every change from one state to another.
func TestChanges(t *testing.T) {
	t.Parallel()
	for _, before := range files.States {
		for _, after := range files.States {
			got, ok := stream.Ended(change(t, "MODIFY", before, after))
			want := before.Live() && !after.Live()
			if ok != want || ok && got != (stream.End{ID: id, State: after}) {
				t.Errorf("from %s to %s: %+v, %v; want %v", before, after, got, ok, want)
			}
		}
		if got, ok := stream.Ended(change(t, "INSERT", "", before)); ok {
			t.Errorf("a new row that is %s: %+v", before, got)
		}
		got, ok := stream.Ended(change(t, "REMOVE", before, ""))
		if !ok || got != (stream.End{ID: id, State: before, Removed: true}) {
			t.Errorf("a removed row that was %s: %+v, %v", before, got, ok)
		}
	}
}

func TestTTL(t *testing.T) {
	t.Parallel()
	for identity, want := range map[string]bool{
		`{"type":"Service","principalId":"dynamodb.amazonaws.com"}`:     true,
		`{"type":"Service","principalId":"somebody.amazonaws.com"}`:     false,
		`{"type":"AssumedRole","principalId":"dynamodb.amazonaws.com"}`: false,
		`null`: false,
	} {
		r := record(t, `{"eventName":"REMOVE","userIdentity":`+identity+`,"dynamodb":{"Keys":{"pk":{"S":"`+id+`"},"sk":{"S":"file"}},
			"OldImage":{"state":{"S":"expired"}}}}`)
		got, ok := stream.Ended(r)
		if !ok || !got.Removed || got.ByTTL != want || got.State != files.Expired {
			t.Errorf("removed by %s: %+v, %v; want by TTL %v", identity, got, ok, want)
		}
	}
}

// TestOtherRows: what is no row of a file, or no row that this service wrote, has no end and is no panic.
func TestOtherRows(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{}`,
		`{"eventName":"REMOVE"}`,
		`{"eventName":"REMOVE","dynamodb":{}}`,
		`{"eventName":"REMOVE","dynamodb":{"Keys":{"pk":{"S":"` + id + `"}}}}`,
		`{"eventName":"REMOVE","dynamodb":{"Keys":{"pk":{"S":"` + id + `"},"sk":{"S":"other"}}}}`,
		`{"eventName":"REMOVE","dynamodb":{"Keys":{"pk":{"N":"1"},"sk":{"S":"file"}}}}`,
		`{"eventName":"REMOVE","dynamodb":{"Keys":{"pk":{"S":"hold#acme"},"sk":{"S":"000000000001#` + id + `"}}}}`,
		`{"eventName":"REMOVE","dynamodb":{"Keys":{"pk":{"S":"key#1"},"sk":{"S":"key"}}}}`,
		`{"eventName":"REMOVE","dynamodb":{"Keys":{"pk":{"S":"warm"},"sk":{"S":"file"}}}}`,
		`{"eventName":"MODIFY","dynamodb":{"Keys":{"pk":{"S":"` + id + `"},"sk":{"S":"file"}}}}`,
		`{"eventName":"MODIFY","dynamodb":{"Keys":{"pk":{"S":"` + id + `"},"sk":{"S":"file"}},"OldImage":{"state":{"S":"ready"}},"NewImage":{}}}`,
		`{"eventName":"MODIFY","dynamodb":{"Keys":{"pk":{"S":"` + id + `"},"sk":{"S":"file"}},"OldImage":{"state":{"N":"1"}},"NewImage":{"state":{"S":"spent"}}}}`,
	} {
		if got, ok := stream.Ended(record(t, text)); ok {
			t.Errorf("%s: %+v", text, got)
		}
	}
}
