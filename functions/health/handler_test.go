package main

import (
	"testing"

	"claimcheck.dev/claimcheck/shared/functiontest"
)

func TestAnswers(t *testing.T) {
	t.Parallel()
	f := functiontest.New(t)
	// Whoever watches may send anything along.
	ev := functiontest.Event(t, "health", functiontest.Query("any=thing"), functiontest.Header("authorization", "Bearer nonsense"))
	functiontest.Golden(t, "ok", ev, f.Serve(t, endpoint(), ev))
}
