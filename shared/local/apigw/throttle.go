package apigw

import (
	"sync"
	"time"
)

// tokens is the gateway's throttle: burst requests at once, refilled at rate per
// second. A nil *tokens lets everything pass.
type tokens struct {
	rate, burst float64
	now         func() time.Time

	mu   sync.Mutex
	left float64
	at   time.Time
}

func newTokens(rate, burst int, now func() time.Time) *tokens {
	if rate <= 0 {
		return nil
	}
	burst = max(burst, 1)
	return &tokens{rate: float64(rate), burst: float64(burst), now: now, left: float64(burst), at: now()}
}

func (t *tokens) take() bool {
	if t == nil {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	t.left = min(t.burst, t.left+t.rate*now.Sub(t.at).Seconds())
	t.at = now
	if t.left < 1 {
		return false
	}
	t.left--
	return true
}
