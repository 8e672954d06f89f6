package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
)

type reconciler interface {
	Reconcile(ctx context.Context) (files.Reconciled, error)
}

type handler struct {
	reconciler reconciler
	stack      string    // the dimension of the metrics
	metrics    io.Writer // CloudWatch reads embedded metrics from the log
	now        func() time.Time
}

// handle reconciles once and writes what was found as one line of CloudWatch's embedded metric format.
func (h handler) handle(ctx context.Context, _ json.RawMessage) error {
	found, err := h.reconciler.Reconcile(ctx)
	return errors.Join(err, h.report(found))
}

const namespace = "Claimcheck"

func (h handler) report(r files.Reconciled) error {
	type metric struct {
		Name string
		Unit string
	}
	names := []metric{{"Orphans", "Count"}, {"Lost", "Count"}, {"Unheld", "Count"}, {"Drifted", "Count"}, {"Overdue", "Count"}}
	line, err := json.Marshal(map[string]any{
		"_aws": map[string]any{
			"Timestamp": h.now().UnixMilli(),
			"CloudWatchMetrics": []any{map[string]any{
				"Namespace": namespace, "Dimensions": [][]string{{"Stack"}}, "Metrics": names,
			}},
		},
		"Stack": h.stack, "Orphans": r.Orphans, "Lost": r.Lost, "Unheld": r.Unheld, "Drifted": r.Drifted, "Overdue": r.Overdue,
		"finished": r.Finished, "msg": "reconciled",
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(h.metrics, "%s\n", line); err != nil {
		return fmt.Errorf("writing the metrics: %w", err)
	}
	return nil
}
