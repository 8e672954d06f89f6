package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/functiontest"
)

type result struct {
	swept files.Swept
	err   error
}

func (r result) Sweep(context.Context) (files.Swept, error) { return r.swept, r.err }

// A sweep that fails in part fails the invocation, so that the alarm sees it; both outcomes say what was done.
func TestHandle(t *testing.T) {
	t.Parallel()
	var event json.RawMessage
	functiontest.Sample(t, "sweep-expired", &event)
	broken := errors.New("one file is stuck")
	for _, c := range []struct {
		name string
		result
		line string
	}{
		{"done", result{swept: files.Swept{Ended: 3}}, `"msg":"swept","ended":3,"behind":false`},
		{"behind", result{swept: files.Swept{Ended: 9, Behind: true}}, `"ended":9,"behind":true`},
		{"failed in part", result{files.Swept{Ended: 2}, broken}, `"ended":2,"error":"one file is stuck"`},
	} {
		var lines bytes.Buffer
		h := handler{sweeper: c.result, log: slog.New(slog.NewJSONHandler(&lines, nil))}
		if err := h.handle(t.Context(), event); !errors.Is(err, c.err) {
			t.Errorf("%s: %v", c.name, err)
		}
		if !strings.Contains(lines.String(), c.line) {
			t.Errorf("%s: the log says %s, want %s", c.name, lines.String(), c.line)
		}
	}
}
