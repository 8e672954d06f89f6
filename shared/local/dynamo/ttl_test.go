package dynamo

import (
	"fmt"
	"testing"
	"time"
)

func TestSweep(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := open(t, Options{Now: c.now})
	now := c.now().Unix()
	for pk, expires := range map[string]string{
		"past":      fmt.Sprintf(`{"N":"%d"}`, now-1),
		"now":       fmt.Sprintf(`{"N":"%d"}`, now),
		"future":    fmt.Sprintf(`{"N":"%d"}`, now+1),
		"fraction":  fmt.Sprintf(`{"N":"%d.9"}`, now-1),
		"ancient":   fmt.Sprintf(`{"N":"%d"}`, now-6*365*24*3600),
		"text":      fmt.Sprintf(`{"S":"%d"}`, now-1),
		"huge":      `{"N":"-1e100"}`,
		"unlimited": `{"NULL":true}`,
	} {
		must(t, s, "PutItem", `{"TableName":"tbl","Item":{"pk":{"S":"`+pk+`"},"sk":{"S":"1"},"owner_id":{"S":"o"},"due":{"N":"1"},"expires":`+expires+`}}`)
	}
	// What has expired can still be read.
	if got := must(t, s, "Scan", `{"TableName":"tbl"}`)["Count"]; got != 8.0 {
		t.Errorf("%v items before the sweep", got)
	}
	n, err := s.Sweep(c.now())
	if err != nil || n != 2 {
		t.Fatalf("Sweep = %d, %v; want 2", n, err)
	}
	for _, pk := range []string{"past", "fraction"} {
		if answer := must(t, s, "GetItem", `{"TableName":"tbl","Key":{"pk":{"S":"`+pk+`"},"sk":{"S":"1"}}}`); answer["Item"] != nil {
			t.Errorf("%s is still there", pk)
		}
	}
	if got := must(t, s, "Scan", `{"TableName":"tbl","IndexName":"by-owner"}`)["Count"]; got != 6.0 {
		t.Errorf("%v items in the index after the sweep", got)
	}
	if n, err := s.Sweep(c.now()); n != 0 || err != nil {
		t.Errorf("a second Sweep = %d, %v", n, err)
	}
	if n, err := s.Sweep(c.now().Add(2 * time.Second)); n != 2 || err != nil {
		t.Errorf("a later Sweep = %d, %v; want 2", n, err)
	}
	records, _ := s.ReadStream("tbl", 8, 10)
	if len(records) != 4 {
		t.Fatalf("%d records of removals", len(records))
	}
	for _, r := range records {
		if r.EventName != "REMOVE" || r.UserIdentity == nil || *r.UserIdentity != (StreamIdentity{"dynamodb.amazonaws.com", "Service"}) {
			t.Errorf("record %+v", r)
		}
	}
	// A client's own deletion has no such identity.
	must(t, s, "DeleteItem", `{"TableName":"tbl","Key":{"pk":{"S":"text"},"sk":{"S":"1"}}}`)
	records, _ = s.ReadStream("tbl", 12, 10)
	if len(records) != 1 || records[0].UserIdentity != nil {
		t.Errorf("records of a deletion: %+v", records)
	}
}

func TestSweepCostsNothing(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := open(t, Options{Now: c.now})
	must(t, s, "PutItem", `{"TableName":"tbl","Item":{"pk":{"S":"a"},"sk":{"S":"1"},"expires":{"N":"1772360000"}}}`)
	s.ResetCounters()
	if n, err := s.Sweep(c.now()); n != 1 || err != nil {
		t.Fatalf("Sweep = %d, %v", n, err)
	}
	if got := s.Counters(); len(got.Tables) != 0 {
		t.Errorf("a sweep consumed %v", got.Tables)
	}
}
