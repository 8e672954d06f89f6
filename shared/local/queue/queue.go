// Package queue keeps durable message queues with the semantics of SQS standard
// queues: at-least-once delivery, a visibility timeout, a receive count, delays,
// retention, and dead-letter queues that take a message over when it was received
// too often.
//
// All queues of a [Server] share one lock and one journal, so moving a message
// from one queue to another is a single line: it is never in both, nor in
// neither, wherever the process is killed. [Server] is also an http.Handler that
// speaks the SQS protocol (AWS JSON 1.0) as far as the SDKs' everyday calls go.
package queue

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sort"
	"sync"
	"time"
)

// MaxMessageBytes is SQS's limit for a body with its attributes, and for a batch.
const MaxMessageBytes = 1 << 20

// Errors of the Go interface.
var (
	ErrNoQueue   = errors.New("the queue does not exist")
	ErrNoReceipt = errors.New("the receipt handle is not valid")
)

// Spec describes one queue.
type Spec struct {
	Name                         string
	Visibility, Retention, Delay time.Duration
	// DeadLetter names the queue that takes over what was received MaxReceives
	// times and came back; empty for none.
	DeadLetter  string
	MaxReceives int
}

// Options configures [Open].
type Options struct {
	// Dir holds the journal.
	Dir    string
	Queues []Spec
	// Host (host:port), Region and AccountID make queue URLs and ARNs.
	Host, Region, AccountID string
	// Now is the clock; nil is the real one. After moving it, call [Server.Wake].
	Now func() time.Time
}

// Attribute is one message attribute; Value is a string or, with a DataType that
// starts with Binary, bytes in base64.
type Attribute struct {
	DataType string `json:"t"`
	Value    string `json:"v"`
}

// Message is a message as a receiver sees it.
type Message struct {
	ID, Receipt, Body string
	Attributes        map[string]Attribute
	// Receives counts deliveries, this one included.
	Receives            int
	Sent, FirstReceived time.Time
	// Source names the queue that gave the message up, for messages that came as dead letters.
	Source string
}

// Counts are the sizes of a queue.
type Counts struct{ Visible, InFlight, Delayed int }

// Server holds the queues.
type Server struct {
	opt     Options
	now     func() time.Time
	mu      sync.Mutex
	queues  map[string]*queue
	journal *journal
}

type queue struct {
	Spec
	messages []*message // oldest first
	changed  chan struct{}
}

// message is what is stored; times are milliseconds since 1970.
type message struct {
	ID         string               `json:"id"`
	Body       string               `json:"body"`
	Attributes map[string]Attribute `json:"attrs,omitempty"`
	Sent       int64                `json:"sent"`
	VisibleAt  int64                `json:"visible"`
	Receives   int                  `json:"receives,omitempty"`
	First      int64                `json:"first,omitempty"`
	Receipt    string               `json:"receipt,omitempty"`
	Source     string               `json:"source,omitempty"`
}

// Open reads the journal and makes the declared queues. Messages that were being
// handled become visible at once: whoever had received them went down with the
// stack. Messages of queues that are no longer declared are dropped.
func Open(opt Options) (*Server, error) {
	s := &Server{opt: opt, now: opt.Now, queues: map[string]*queue{}}
	if s.now == nil {
		s.now = time.Now
	}
	for _, spec := range opt.Queues {
		s.queues[spec.Name] = &queue{Spec: spec, changed: make(chan struct{})}
	}
	if err := s.load(); err != nil {
		return nil, err
	}
	return s, nil
}

// Close closes the journal.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.journal.close()
}

// Names lists the queues in order.
func (s *Server) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.queues))
	for name := range s.queues {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Spec describes a queue.
func (s *Server) Spec(name string) (Spec, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[name]
	if q == nil {
		return Spec{}, noQueue(name)
	}
	return q.Spec, nil
}

// URL and ARN of a queue.
func (s *Server) URL(name string) string {
	return "http://" + s.opt.Host + "/" + s.opt.AccountID + "/" + name
}

func (s *Server) ARN(name string) string {
	return "arn:aws:sqs:" + s.opt.Region + ":" + s.opt.AccountID + ":" + name
}

func noQueue(name string) error { return fmt.Errorf("queue %q: %w", name, ErrNoQueue) }

// Send appends a message and returns its id. A negative delay means the queue's own.
func (s *Server) Send(name, body string, attributes map[string]Attribute, delay time.Duration) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[name]
	if q == nil {
		return "", noQueue(name)
	}
	if delay < 0 {
		delay = q.Delay
	}
	now := s.now()
	m := &message{ID: newID(), Body: body, Attributes: attributes, Sent: now.UnixMilli(), VisibleAt: now.Add(delay).UnixMilli()}
	if err := s.commit(entry{Op: opPut, Queue: name, Message: m}); err != nil {
		return "", err
	}
	return m.ID, nil
}

// Receive takes up to limit visible messages and hides them for the visibility
// timeout (negative: the queue's own). With none there it waits until one appears,
// wait is over or ctx ends; then it returns no messages and no error.
func (s *Server) Receive(ctx context.Context, name string, limit int, visibility, wait time.Duration) ([]Message, error) {
	deadline := time.Now().Add(wait)
	for {
		messages, next, changed, err := s.take(name, limit, visibility)
		if err != nil || len(messages) > 0 {
			return messages, err
		}
		sleep := time.Until(deadline)
		if sleep <= 0 || ctx.Err() != nil {
			return nil, nil
		}
		if next > 0 && next < sleep {
			sleep = next
		}
		timer := time.NewTimer(sleep)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// take is one attempt of Receive. next is how long until a hidden message may
// appear (0: nothing is hidden), changed is closed when the queue changes.
func (s *Server) take(name string, limit int, visibility time.Duration) (out []Message, next time.Duration, changed <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[name]
	if q == nil {
		return nil, 0, nil, noQueue(name)
	}
	if visibility < 0 {
		visibility = q.Visibility
	}
	now := s.now()
	for _, m := range append([]*message(nil), q.messages...) {
		if len(out) == limit {
			break
		}
		if q.Retention > 0 && now.Sub(time.UnixMilli(m.Sent)) >= q.Retention {
			if err := s.commit(entry{Op: opDelete, Queue: name, ID: m.ID}); err != nil {
				return nil, 0, nil, err
			}
			continue
		}
		if hidden := time.UnixMilli(m.VisibleAt).Sub(now); hidden > 0 {
			if next == 0 || hidden < next {
				next = hidden
			}
			continue
		}
		if q.MaxReceives > 0 && m.Receives >= q.MaxReceives && s.queues[q.DeadLetter] != nil {
			if err := s.commit(entry{Op: opMove, Queue: name, ID: m.ID, To: q.DeadLetter, At: now.UnixMilli()}); err != nil {
				return nil, 0, nil, err
			}
			continue
		}
		e := entry{Op: opReceive, Queue: name, ID: m.ID, Receipt: newID(), At: now.UnixMilli(), Until: now.Add(visibility).UnixMilli()}
		if err := s.commit(e); err != nil {
			return nil, 0, nil, err
		}
		out = append(out, m.view())
	}
	return out, next, q.changed, nil
}

func (m *message) view() Message {
	return Message{
		ID: m.ID, Receipt: m.Receipt, Body: m.Body, Attributes: m.Attributes, Receives: m.Receives,
		Sent: time.UnixMilli(m.Sent), FirstReceived: time.UnixMilli(m.First), Source: m.Source,
	}
}

// Delete removes a received message. A receipt of an earlier delivery, or of a
// message that is gone, changes nothing and succeeds, as on SQS.
func (s *Server) Delete(name, receipt string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[name]
	if q == nil {
		return noQueue(name)
	}
	if !validID(receipt) {
		return ErrNoReceipt
	}
	if m := q.byReceipt(receipt); m != nil {
		return s.commit(entry{Op: opDelete, Queue: name, ID: m.ID})
	}
	return nil
}

// SetVisibility moves the end of a received message's visibility timeout to d from now.
func (s *Server) SetVisibility(name, receipt string, d time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[name]
	if q == nil {
		return noQueue(name)
	}
	m := q.byReceipt(receipt)
	if m == nil {
		return ErrNoReceipt
	}
	return s.commit(entry{Op: opHide, Queue: name, ID: m.ID, Until: s.now().Add(d).UnixMilli()})
}

func (q *queue) byReceipt(receipt string) *message {
	for _, m := range q.messages {
		if m.Receipt != "" && m.Receipt == receipt {
			return m
		}
	}
	return nil
}

// Purge removes every message of a queue.
func (s *Server) Purge(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queues[name] == nil {
		return noQueue(name)
	}
	return s.commit(entry{Op: opPurge, Queue: name})
}

// Redrive moves every message of a dead-letter queue back to the queue it came
// from, or to the given one, where it starts anew. It returns how many moved;
// messages whose source is unknown stay.
func (s *Server) Redrive(name, to string) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[name]
	if q == nil {
		return 0, noQueue(name)
	}
	if to != "" && s.queues[to] == nil {
		return 0, noQueue(to)
	}
	moved := 0
	for _, m := range append([]*message(nil), q.messages...) {
		target := to
		if target == "" {
			target = m.Source
		}
		if s.queues[target] == nil {
			continue
		}
		if err := s.commit(entry{Op: opReturn, Queue: name, ID: m.ID, To: target, At: s.now().UnixMilli()}); err != nil {
			return moved, err
		}
		moved++
	}
	return moved, nil
}

// Messages shows what a queue holds, oldest first, without receiving it.
func (s *Server) Messages(name string) ([]Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[name]
	if q == nil {
		return nil, noQueue(name)
	}
	var out []Message
	for _, m := range q.messages {
		v := m.view()
		v.Receipt = ""
		out = append(out, v)
	}
	return out, nil
}

// Counts counts the messages of a queue.
func (s *Server) Counts(name string) (Counts, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[name]
	if q == nil {
		return Counts{}, noQueue(name)
	}
	var c Counts
	now := s.now().UnixMilli()
	for _, m := range q.messages {
		switch {
		case m.VisibleAt <= now:
			c.Visible++
		case m.Receipt != "":
			c.InFlight++
		default:
			c.Delayed++
		}
	}
	return c, nil
}

// DeadLetterQueues lists the queues that others name as their dead-letter queue.
func (s *Server) DeadLetterQueues() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	seen := map[string]bool{}
	for _, q := range s.queues {
		if q.DeadLetter != "" && !seen[q.DeadLetter] {
			seen[q.DeadLetter] = true
			out = append(out, q.DeadLetter)
		}
	}
	sort.Strings(out)
	return out
}

// Wake lets every waiting receiver look again, for instance after the clock moved.
func (s *Server) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.queues {
		q.wake()
	}
}

func (q *queue) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// newID is a random UUID, the form of message ids; receipts have it too.
func newID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func validID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range s {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (c == '-') || !dash && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
