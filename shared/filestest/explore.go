package filestest

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
)

// Actor is one of several that act at the same time. Between two operations on fakes whose Hook is Yield another one
// may take its turn, provided that Run passes its context on and starts no goroutines.
type Actor struct {
	Name string
	Run  func(ctx context.Context)
}

type yieldKey struct{}

// Yield is the Hook that gives Explore a place to switch actors: before every operation. The head of an object was
// fetched when it was opened, so reading it is no step.
func Yield(ctx context.Context, op string, when When) error {
	if yield, ok := ctx.Value(yieldKey{}).(func(string) bool); ok && when == Before && op != "Head" {
		yield(op)
	}
	return nil
}

// Explore runs actors under every order of their steps. Setup makes a fresh world each time, and returns a check of what
// has come of it, which lists what is wrong. With switches of 0 or more only those orders are tried in which an actor
// that could go on is interrupted at most so often; with a negative number, all. Explore returns how many there were.
func Explore(t testing.TB, switches int, setup func() (actors []Actor, check func() []string)) int {
	t.Helper()
	var path []int // which of the runnable actors goes on, at each step
	for runs := 1; ; runs++ {
		actors, check := setup()
		x := exploration{path: path, switches: switches}
		x.run(actors)
		if bad := check(); len(bad) > 0 {
			t.Fatalf("%s\nafter %s", strings.Join(bad, "\n"), strings.Join(x.trace, " "))
		}
		path = x.next()
		if path == nil {
			return runs
		}
	}
}

type exploration struct {
	path     []int
	options  []int // how many choices there were, at each step
	switches int   // left; negative: any number
	trace    []string
}

type running struct {
	name string
	op   string // the operation it is about to do
	next func() (string, bool)
	stop func()
}

func (x *exploration) run(actors []Actor) {
	var live []*running
	for _, a := range actors {
		r := &running{name: a.Name}
		r.next, r.stop = iter.Pull(func(yield func(string) bool) {
			a.Run(context.WithValue(context.Background(), yieldKey{}, yield))
		})
		defer r.stop()
		live = append(live, r)
	}
	live = advance(live, live...)
	var last *running
	for len(live) > 0 {
		order := live
		if at := index(live, last); at >= 0 {
			// The one that ran last comes first, so that choice 0 is to let it go on.
			order = append([]*running{last}, append(append([]*running{}, live[:at]...), live[at+1:]...)...)
			if x.switches == 0 {
				order = order[:1]
			}
		}
		choice := x.choose(len(order))
		if choice > 0 && order[0] == last {
			x.switches--
		}
		last = order[choice]
		x.trace = append(x.trace, fmt.Sprintf("%s:%s", last.name, last.op))
		live = advance(live, last)
	}
}

// advance lets each of some actors go on to its next operation and returns those of live that have one.
func advance(live []*running, some ...*running) []*running {
	out := make([]*running, 0, len(live))
	for _, r := range live {
		if index(some, r) >= 0 {
			op, more := r.next()
			if !more {
				continue
			}
			r.op = op
		}
		out = append(out, r)
	}
	return out
}

func index(list []*running, r *running) int {
	for i := range list {
		if list[i] == r {
			return i
		}
	}
	return -1
}

// choose returns which of n runnable actors goes on: what the path says, beyond its end the first.
func (x *exploration) choose(n int) int {
	step := len(x.options)
	x.options = append(x.options, n)
	if step < len(x.path) {
		return x.path[step]
	}
	x.path = append(x.path, 0)
	return 0
}

// next returns the path after this one, depth first; nil after the last.
func (x *exploration) next() []int {
	for i := len(x.path) - 1; i >= 0; i-- {
		if x.path[i]+1 < x.options[i] {
			out := append([]int{}, x.path[:i+1]...)
			out[i]++
			return out
		}
	}
	return nil
}
