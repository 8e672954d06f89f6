package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"claimcheck.dev/claimcheck/shared/local/queue"
)

// patience bounds how long the stack may take to come to rest once nothing fails any more. The stream alone may pause
// for a minute before it tries again.
const patience = 3 * time.Minute

// trigger calls a function by its schedule, as often as its time or a killed instance asks for.
func (w *world) trigger(ctx context.Context, function string) error {
	var why string
	for range 5 {
		res, err := w.stack.Trigger(ctx, function)
		if err != nil {
			return err
		}
		if res.FunctionError == "" {
			return nil
		}
		why = string(res.Payload)
	}
	return fmt.Errorf("%s failed five times with nothing in its way: %s", function, why)
}

// rest waits until every queue is empty and the stream has been read. Dead letters are sent back, as an operator does
// once the fault is mended; it returns how many there were.
func (w *world) rest(ctx context.Context) (redriven int, err error) {
	var last map[string]queue.Counts
	since := time.Now()
	for deadline := time.Now().Add(patience); ; {
		if time.Now().After(deadline) {
			return redriven, fmt.Errorf("the stack does not come to rest: %v, %d stream records unread", last, w.unread())
		}
		now, dead := map[string]queue.Counts{}, map[string]bool{}
		for _, name := range w.stack.Queues().DeadLetterQueues() {
			dead[name] = true
		}
		empty := true
		for _, name := range w.stack.Queues().Names() {
			c, err := w.stack.Queues().Counts(name)
			if err != nil {
				return redriven, err
			}
			if c == (queue.Counts{}) {
				continue
			}
			empty, now[name] = false, c
			if dead[name] {
				n, err := w.stack.Queues().Redrive(name, "")
				if err != nil {
					return redriven, err
				}
				redriven += n
			}
		}
		if empty && w.unread() == 0 {
			return redriven, nil
		}
		if fmt.Sprint(now) != fmt.Sprint(last) {
			last, since = now, time.Now()
		} else if !empty && time.Since(since) > 500*time.Millisecond {
			w.later()
			since = time.Now()
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return redriven, ctx.Err()
		}
	}
}

// unread is how many stream records no function has handled yet.
func (w *world) unread() int {
	n := 0
	for _, fn := range w.stack.Template().Functions {
		for _, st := range fn.Streams {
			var at struct{ Sequence int64 }
			text, err := os.ReadFile(filepath.Join(w.data, "streams", st.ID+".json"))
			if err == nil {
				err = json.Unmarshal(text, &at)
			}
			if err != nil {
				return 1 // it is being replaced
			}
			records, _ := w.stack.Dynamo().ReadStream(st.Table, at.Sequence, 1000)
			n += len(records)
		}
	}
	return n
}

// settled is what was found after a run came to rest.
type settled struct {
	deadLetters int // that had to be sent back
}

// settle ends all faults, lets the stack come to rest and checks what it holds: first with files alive, then when all
// have ended.
func (w *world) settle(ctx context.Context) (out settled, err error) {
	w.plan.heal()
	w.later() // what was late arrives
	if err := w.quiet(ctx, &out); err != nil {
		return out, err
	}
	live, err := look(ctx, w.stack, w.data)
	if err != nil {
		return out, err
	}
	w.check("at rest", live)
	w.compare(live)
	w.readAll()
	if err := w.endAll(ctx, &out); err != nil {
		return out, err
	}
	w.lines.mu.Lock()
	for _, line := range w.lines.drift {
		w.fail("reconciling found what should not be: %s", line)
	}
	w.lines.mu.Unlock()
	return out, nil
}

// quiet runs what is scheduled until nothing is left to do.
func (w *world) quiet(ctx context.Context, out *settled) error {
	for _, step := range []string{"", "sweep-expired", "", "reconcile"} {
		if step == "" {
			n, err := w.rest(ctx)
			out.deadLetters += n
			if err != nil {
				return err
			}
			continue
		}
		if err := w.trigger(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// check reports broken invariants of a picture.
func (w *world) check(when string, p *picture) {
	bad := p.ledger()
	more, orphans := p.bytesAtRest(time.Now())
	for _, b := range append(bad, more...) {
		w.fail("%s: %s", when, b)
	}
	for _, o := range orphans {
		w.fail("%s: the object %s", when, o)
	}
}

// compare checks the records against everything that was acknowledged.
func (w *world) compare(p *picture) {
	for _, acc := range w.accounts {
		known := map[string]bool{}
		for _, f := range acc.files {
			known[f.id] = true
			r, ok := p.files[f.id]
			if !ok {
				w.fail("at rest: %s was acknowledged and has no record", f.id)
				continue
			}
			state := r["state"]
			switch k := f.known; {
			case k.deleted && state != "deleted",
				k.spent != "" && state != "spent" && !(f.tried.deleted && state == "deleted"),
				k.spent != "" && state == "spent" && r["claim_id"] != k.spent,
				k.rejected && state != "rejected" && !(f.tried.deleted && state == "deleted"),
				state == "deleted" && !f.tried.deleted,
				state == "spent" && !f.tried.commits,
				state == "rejected" && !f.tried.badPut,
				k.digest != "" && r["sha256"] != k.digest,
				state == "expired" && time.Now().Before(f.uploadBy):
				w.fail("at rest: %s is %s (%v), but %+v was acknowledged and %+v tried", f.id, state, r, k, f.tried)
			}
		}
		unexplained := 0
		for id, r := range p.files {
			if r["account"] == acc.name && !known[id] {
				unexplained++
			}
		}
		if unexplained > acc.unknown {
			w.fail("at rest: %s has %d files that nobody was told of, but only %d creations went unanswered", acc.name, unexplained, acc.unknown)
		}
	}
}

// readAll reads every file that is known to be ready: its bytes are there, and are those of its digest.
func (w *world) readAll() {
	for _, acc := range w.accounts {
		var who *identity
		for _, c := range w.callers {
			if c.account == acc.name {
				who = c
			}
		}
		c := &caller{world: w, who: who, acc: acc, name: "at rest"}
		for _, f := range acc.files {
			before := f.snapshot()
			if before.digest == "" || before.ended() || f.single || !time.Now().Before(f.expires) {
				continue
			}
			a := w.request(who, http.MethodPost, "/v1/files/"+f.id+"/links", nil)
			var l linkObject
			switch {
			case a.unknown():
				c.wrong(f, "link", a, "with no fault left")
			case a.status == 201 && a.into(&l) == nil:
				c.linked(f, "link", before, a, l)
				c.fetch(f, l)
			default:
				c.wrong(f, "link", a, f.refused(before, a))
			}
		}
	}
}

// soon is how long endAll waits for the clock to end a file.
const soon = 6 * time.Second

// endAll ends every file, by the clock what ends soon and by request the rest, and checks that nothing is left.
func (w *world) endAll(ctx context.Context, out *settled) error {
	p, err := look(ctx, w.stack, w.data)
	if err != nil {
		return err
	}
	end := time.Now()
	for id, r := range p.files {
		if !r.live() {
			continue
		}
		expires := time.Unix(r.int("expires_at"), 0)
		if time.Until(expires) > soon {
			for _, who := range w.callers {
				if who.account == r["account"] {
					if a := w.request(who, http.MethodDelete, "/v1/files/"+id, nil); a.status != 204 {
						w.fail("at rest: DELETE %s answered %s", id, a)
					}
					break
				}
			}
			continue
		}
		if expires.After(end) {
			end = expires
		}
	}
	if wait := time.Until(end.Add(time.Second)); wait > 0 {
		select {
		case <-time.After(wait): // the functions have the real clock
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := w.quiet(ctx, out); err != nil {
		return err
	}
	if p, err = look(ctx, w.stack, w.data); err != nil {
		return err
	}
	w.check("at the end", p)
	for id, r := range p.files {
		if r.live() {
			w.fail("at the end: %s is still %s", id, r["state"])
		}
	}
	for _, who := range w.callers {
		var u usage
		if a := w.request(who, http.MethodGet, "/v1/usage", nil); a.status != 200 || a.into(&u) != nil || u != (usage{}) {
			w.fail("at the end: the usage of %s in %s is %s", who.actor, who.account, a.body)
		}
	}
	return nil
}

var errBroken = errors.New("what was acknowledged was contradicted, or an invariant is broken")

// report joins the violations to one error.
func (w *world) report() error {
	bad := w.broken()
	if len(bad) == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n  %s", errBroken, strings.Join(bad, "\n  "))
}
