package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/functiontest"
)

type result struct {
	found files.Reconciled
	err   error
}

func (r result) Reconcile(context.Context) (files.Reconciled, error) { return r.found, r.err }

// What was found is one line that CloudWatch reads as metrics: every metric it names has a value, and so has the
// dimension. A run that fails in part reports what it did find, and fails.
func TestMetrics(t *testing.T) {
	t.Parallel()
	var event json.RawMessage
	functiontest.Sample(t, "reconcile", &event)
	broken := errors.New("a page could not be read")
	for _, want := range []error{nil, broken} {
		var out bytes.Buffer
		h := handler{
			reconciler: result{files.Reconciled{Orphans: 1, Lost: 2, Unheld: 3, Drifted: 4, Overdue: 5, Finished: true}, want},
			stack:      "claimcheck-dev", metrics: &out, now: func() time.Time { return time.UnixMilli(1796040000123) },
		}
		if err := h.handle(t.Context(), event); !errors.Is(err, want) {
			t.Fatalf("got %v, want %v", err, want)
		}
		var line map[string]any
		if err := json.Unmarshal(out.Bytes(), &line); err != nil || bytes.Count(out.Bytes(), []byte("\n")) != 1 {
			t.Fatalf("not one line of JSON: %s (%v)", &out, err)
		}
		aws := line["_aws"].(map[string]any)
		if aws["Timestamp"] != 1796040000123.0 {
			t.Errorf("timestamp %v", aws["Timestamp"])
		}
		directive := aws["CloudWatchMetrics"].([]any)[0].(map[string]any)
		if directive["Namespace"] != "Claimcheck" || directive["Dimensions"].([]any)[0].([]any)[0] != "Stack" || line["Stack"] != "claimcheck-dev" {
			t.Errorf("directive %v, stack %v", directive, line["Stack"])
		}
		values := map[string]float64{"Orphans": 1, "Lost": 2, "Unheld": 3, "Drifted": 4, "Overdue": 5}
		for _, m := range directive["Metrics"].([]any) {
			name := m.(map[string]any)["Name"].(string)
			if v, ok := values[name]; !ok || line[name] != v {
				t.Errorf("metric %s is %v", name, line[name])
			}
			delete(values, name)
		}
		if len(values) > 0 {
			t.Errorf("not declared: %v", values)
		}
	}
}
