// Package filestest holds what tests of the domain and of its adapters share.
//
//   - Records, Keys, Store and Signer are the domain's interfaces in memory, with the semantics that the real adapters
//     have to show. Every operation runs a Hook before and after it takes effect.
//   - Faults is a Hook that fails chosen calls, before or after they took effect, or runs something in between.
//   - Explore runs concurrent actors under every order of their steps.
//   - Snapshot is everything a table holds; CheckInvariants and CheckObjects hold it against the rules.
//   - TestRecords, TestLifecycle, TestKeys, TestStage, TestSealedWriter and TestBytes are conformance suites. They run on
//     the types here and on the real adapters.
//   - Clock stands still until a test moves it.
package filestest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"claimcheck.dev/claimcheck/shared/files"
)

// When is the side of an operation on which a hook runs.
type When int

const (
	Before When = iota // an error keeps the operation from happening
	After              // an error hides that it happened
)

func (w When) String() string {
	if w == Before {
		return "before"
	}
	return "after"
}

// Hook runs around every operation of a fake; op is the name of its method. An error is what the operation returns.
type Hook func(ctx context.Context, op string, when When) error

func (h Hook) run(ctx context.Context, op string, when When) error {
	if h == nil {
		return nil
	}
	return h(ctx, op, when)
}

// call runs do as the operation op under a hook. Refusals of do itself took no effect, so no hook follows them.
func call[T any](ctx context.Context, h Hook, op string, do func() (T, error)) (T, error) {
	var zero T
	if err := h.run(ctx, op, Before); err != nil {
		return zero, err
	}
	out, err := do()
	if err != nil {
		return out, err
	}
	if err := h.run(ctx, op, After); err != nil {
		return zero, err
	}
	return out, nil
}

func run(ctx context.Context, h Hook, op string, do func() error) error {
	_, err := call(ctx, h, op, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// ErrInjected is the cause of every failure that Faults injects; it comes wrapped in files.ErrTryAgain.
var ErrInjected = errors.New("injected fault")

// Step is one call: the operation and which call of it this is, counted from 1.
type Step struct {
	Op string
	N  int
}

func (s Step) String() string { return fmt.Sprintf("%s[%d]", s.Op, s.N) }

// Faults fails chosen calls. The zero value fails none; it is safe for concurrent use.
type Faults struct {
	mu    sync.Mutex
	calls map[string]int
	rules map[rule]func() error
	steps []Step
	fired int
}

type rule struct {
	Step
	When
}

// Hook is the Hook to put into fakes, the same into all of them.
func (f *Faults) Hook(_ context.Context, op string, when When) error {
	f.mu.Lock()
	if f.calls == nil {
		f.calls = map[string]int{}
	}
	if when == Before {
		f.calls[op]++
		f.steps = append(f.steps, Step{op, f.calls[op]})
	}
	do := f.rules[rule{Step{op, f.calls[op]}, when}]
	if do != nil {
		f.fired++
	}
	f.mu.Unlock()
	if do == nil {
		return nil
	}
	return do()
}

// Fail makes one call fail on the given side.
func (f *Faults) Fail(s Step, when When) {
	f.set(s, when, func() error {
		return fmt.Errorf("%w: %w %s %s", files.ErrTryAgain, ErrInjected, when, s)
	})
}

// Do runs fn on the given side of one call, which goes on afterwards.
func (f *Faults) Do(s Step, when When, fn func()) {
	f.set(s, when, func() error { fn(); return nil })
}

func (f *Faults) set(s Step, when When, do func() error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rules == nil {
		f.rules = map[rule]func() error{}
	}
	f.rules[rule{s, when}] = do
}

// Steps returns the calls so far, in order.
func (f *Faults) Steps() []Step {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.steps)
}

// Fired returns how many of the calls met a rule.
func (f *Faults) Fired() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fired
}
