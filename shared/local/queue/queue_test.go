package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"
)

// clock is a clock that tests move.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

type fixture struct {
	*Server
	t     *testing.T
	dir   string
	clock *clock
}

var specs = []Spec{
	{Name: "work", Visibility: 30 * time.Second, Retention: time.Hour, DeadLetter: "dead", MaxReceives: 2},
	{Name: "dead", Visibility: 30 * time.Second, Retention: 2 * time.Hour},
	{Name: "late", Visibility: 30 * time.Second, Delay: 10 * time.Second},
}

func open(t *testing.T) *fixture {
	f := &fixture{t: t, dir: t.TempDir(), clock: &clock{at: time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)}}
	f.reopen()
	return f
}

// reopen starts anew from the journal without closing, as after a kill -9.
func (f *fixture) reopen() {
	f.t.Helper()
	s, err := Open(Options{Dir: f.dir, Queues: specs, Host: "127.0.0.1:1", Region: "eu-west-1", AccountID: "123456789012", Now: f.clock.now})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { s.Close() })
	f.Server = s
}

func (f *fixture) send(queue string, bodies ...string) {
	f.t.Helper()
	for _, body := range bodies {
		if _, err := f.Send(queue, body, nil, -1); err != nil {
			f.t.Fatal(err)
		}
	}
}

// receive takes what is visible now.
func (f *fixture) receive(queue string, limit int) []Message {
	f.t.Helper()
	messages, err := f.Receive(f.t.Context(), queue, limit, -1, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	return messages
}

func bodies(messages []Message) []string {
	out := []string{}
	for _, m := range messages {
		out = append(out, m.Body)
	}
	return out
}

func (f *fixture) want(what string, got []Message, want ...string) {
	f.t.Helper()
	if want == nil {
		want = []string{}
	}
	if !reflect.DeepEqual(bodies(got), want) {
		f.t.Errorf("%s: got %q, want %q", what, bodies(got), want)
	}
}

func (f *fixture) counts(queue string, want Counts) {
	f.t.Helper()
	got, err := f.Counts(queue)
	if err != nil || got != want {
		f.t.Errorf("%s has %+v, want %+v (%v)", queue, got, want, err)
	}
}

func TestVisibility(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.send("work", "a", "b", "c")
	first := f.receive("work", 2)
	f.want("the first batch", first, "a", "b")
	f.counts("work", Counts{Visible: 1, InFlight: 2})
	if err := f.Delete("work", first[0].Receipt); err != nil {
		t.Fatal(err)
	}
	f.want("what is left", f.receive("work", 10), "c")
	f.want("all hidden", f.receive("work", 10))
	f.clock.pass(30 * time.Second)
	again := f.receive("work", 10)
	f.want("after the timeout", again, "b", "c")
	if again[0].Receives != 2 || again[0].Receipt == first[1].Receipt {
		t.Errorf("the second delivery is %+v", again[0])
	}
	// The receipt of an earlier delivery deletes nothing.
	if err := f.Delete("work", first[1].Receipt); err != nil {
		t.Fatal(err)
	}
	f.counts("work", Counts{InFlight: 2})
	if err := f.SetVisibility("work", again[0].Receipt, 0); err != nil {
		t.Fatal(err)
	}
	f.counts("work", Counts{Visible: 1, InFlight: 1})
	if err := f.Delete("work", "nonsense"); !errors.Is(err, ErrNoReceipt) {
		t.Errorf("a wrong receipt gave %v", err)
	}
}

func TestDelayAndRetention(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.send("late", "x")
	if _, err := f.Send("work", "y", nil, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	f.counts("late", Counts{Delayed: 1})
	f.want("before the delay", f.receive("late", 1))
	f.clock.pass(5 * time.Second)
	f.want("own delay over", f.receive("work", 1), "y")
	f.clock.pass(5 * time.Second)
	f.want("queue's delay over", f.receive("late", 1), "x")
	f.send("work", "old")
	f.clock.pass(time.Hour)
	f.want("past its retention", f.receive("work", 10))
	f.counts("work", Counts{})
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.send("work", "poison")
	for range 2 {
		f.want("a try", f.receive("work", 1), "poison")
		f.clock.pass(30 * time.Second)
	}
	f.want("after maxReceiveCount", f.receive("work", 1))
	dead := f.receive("dead", 1)
	f.want("the dead letter", dead, "poison")
	if dead[0].Source != "work" || f.SystemAttributes(dead[0])["DeadLetterQueueSourceArn"] != "arn:aws:sqs:eu-west-1:123456789012:work" {
		t.Errorf("its source is %q", dead[0].Source)
	}
	f.clock.pass(time.Minute)
	f.reopen()
	if n, err := f.Redrive("dead", ""); n != 1 || err != nil {
		t.Fatalf("redrive moved %d: %v", n, err)
	}
	back := f.receive("work", 1)
	f.want("redriven", back, "poison")
	if back[0].Receives != 1 || back[0].Source != "" {
		t.Errorf("it does not start anew: %+v", back[0])
	}
	f.counts("dead", Counts{})
	f.send("dead", "sent here directly")
	if n, err := f.Redrive("dead", ""); n != 0 || err != nil {
		t.Errorf("a message without a source moved: %d, %v", n, err)
	}
	if n, err := f.Redrive("dead", "late"); n != 1 || err != nil {
		t.Errorf("redrive to a queue moved %d: %v", n, err)
	}
}

func TestSurvivesKill(t *testing.T) {
	t.Parallel()
	f := open(t)
	attributes := map[string]Attribute{"n": {"Number", "5"}}
	if _, err := f.Send("work", "a\nwith a newline", attributes, -1); err != nil {
		t.Fatal(err)
	}
	f.send("work", "b", "c")
	got := f.receive("work", 2)
	if err := f.Delete("work", got[1].Receipt); err != nil {
		t.Fatal(err)
	}
	f.reopen()
	// What was being handled comes back at once: its consumer died too.
	again := f.receive("work", 10)
	f.want("after a kill", again, "a\nwith a newline", "c")
	if again[0].Receives != 2 || again[0].ID != got[0].ID || !reflect.DeepEqual(again[0].Attributes, attributes) || !again[0].FirstReceived.Equal(got[0].FirstReceived) {
		t.Errorf("it came back as %+v", again[0])
	}
	if err := f.Purge("work"); err != nil {
		t.Fatal(err)
	}
	f.reopen()
	f.counts("work", Counts{})
}

func TestTornJournal(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.send("work", "whole")
	path := filepath.Join(f.dir, "queues.jsonl")
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(`{"op":"put","q":"work","m":{"id":"x","bo`); err != nil {
		t.Fatal(err)
	}
	file.Close()
	f.reopen()
	f.want("after a torn line", f.receive("work", 10), "whole")
	if err := os.WriteFile(path, []byte("not JSON\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: f.dir, Queues: specs}); err == nil {
		t.Error("a damaged line was accepted")
	}
}

func TestJournalIsRewritten(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.send("work", "keep")
	f.journal.limit = 50
	for i := range 100 {
		if _, err := f.Send("late", fmt.Sprint(i), nil, 0); err != nil {
			t.Fatal(err)
		}
		got := f.receive("late", 1)
		if err := f.Delete("late", got[0].Receipt); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(f.dir, "queues.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(text, []byte("\n")); lines > 52 {
		t.Errorf("the journal has %d lines", lines)
	}
	f.reopen()
	f.want("after rewriting", f.receive("work", 10), "keep")
}

// TestWaiting: a receiver that waits gets what is sent, redriven or shown meanwhile.
func TestWaiting(t *testing.T) {
	t.Parallel()
	f := open(t)
	wait := func(queue string) <-chan []Message {
		out := make(chan []Message, 1)
		go func() {
			m, _ := f.Receive(context.Background(), queue, 1, -1, 30*time.Second)
			out <- m
		}()
		return out
	}
	got := wait("work")
	f.send("work", "sent")
	f.want("a message sent meanwhile", <-got, "sent")
	got = wait("work")
	f.clock.pass(time.Minute)
	f.Wake()
	f.want("a message whose timeout ends meanwhile", <-got, "sent")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if m, err := f.Receive(ctx, "dead", 1, -1, time.Hour); len(m) != 0 || err != nil {
		t.Errorf("a cancelled wait gave %v, %v", m, err)
	}
	if _, err := f.Receive(t.Context(), "none", 1, -1, 0); !errors.Is(err, ErrNoQueue) {
		t.Errorf("a missing queue gave %v", err)
	}
}

// TestConcurrentReceivers: nothing is delivered twice while it is hidden.
func TestConcurrentReceivers(t *testing.T) {
	t.Parallel()
	f := open(t)
	const total = 200
	for i := range total {
		f.send("work", fmt.Sprint(i))
	}
	var mu sync.Mutex
	seen := map[string]int{}
	var receivers sync.WaitGroup
	for range 8 {
		receivers.Go(func() {
			for {
				got, err := f.Receive(context.Background(), "work", 3, -1, 0)
				if err != nil || len(got) == 0 {
					return
				}
				mu.Lock()
				for _, m := range got {
					seen[m.ID]++
				}
				mu.Unlock()
			}
		})
	}
	receivers.Wait()
	if len(seen) != total {
		t.Errorf("%d of %d messages were received", len(seen), total)
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("message %s was received %d times", id, n)
		}
	}
}
