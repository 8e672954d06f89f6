package main

import (
	"context"
	"encoding/json"
	"log/slog"

	"claimcheck.dev/claimcheck/shared/files"
)

type sweeper interface {
	Sweep(ctx context.Context) (files.Swept, error)
}

type handler struct {
	sweeper sweeper
	log     *slog.Logger
}

// handle sweeps once. The event, a scheduled one, carries nothing of use.
func (h handler) handle(ctx context.Context, _ json.RawMessage) error {
	swept, err := h.sweeper.Sweep(ctx)
	if err != nil {
		h.log.ErrorContext(ctx, "sweep failed in part", "ended", swept.Ended, "error", err)
		return err // the watermark stays, and the next minute tries again; the error is counted by the alarm
	}
	h.log.InfoContext(ctx, "swept", "ended", swept.Ended, "behind", swept.Behind)
	return nil
}
