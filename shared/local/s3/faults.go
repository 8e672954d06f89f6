package s3

import (
	"maps"
	"sync"
	"time"
)

// Request describes a request to a fault plan.
type Request struct {
	Operation string // PutObject, GetObject, … as Counters has them
	Bucket    string
	Key       string // decoded; empty for requests about the bucket
	Presigned bool   // the signature is in the query
}

// FaultKind is what goes wrong.
type FaultKind int

const (
	None             FaultKind = iota
	Error500                   // InternalError; nothing was done
	Error503SlowDown           // SlowDown; nothing was done
	CutConnection              // the connection ends without an answer; nothing was done
	LostReply                  // the operation is done, then the connection ends without an answer
)

// Fault is what happens to one request: first the delay, then the kind.
type Fault struct {
	Kind  FaultKind
	Delay time.Duration
}

// Slow delays a request and lets it go on.
func Slow(d time.Duration) Fault { return Fault{Delay: d} }

// Counters is what the host has seen since it started or was reset.
type Counters struct {
	// Requests counts by operation, refused ones and faults included.
	Requests map[string]int
	// RangedBytes is the bytes of object bodies sent for GETs with a Range,
	// ReadBytes for those without.
	RangedBytes int64
	ReadBytes   int64
	// WrittenBytes is the sizes of the objects stored by PUT and copy.
	WrittenBytes int64
}

// meter counts, and holds the fault plan.
type meter struct {
	mu       sync.Mutex
	counters Counters
	plan     func(Request) Fault
}

func (m *meter) add(change func(*Counters)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counters.Requests == nil {
		m.counters.Requests = map[string]int{}
	}
	change(&m.counters)
}

func (m *meter) snapshot() Counters {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.counters
	c.Requests = map[string]int{}
	maps.Copy(c.Requests, m.counters.Requests)
	return c
}

func (m *meter) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counters = Counters{}
}

func (m *meter) setPlan(plan func(Request) Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.plan = plan
}

// fault asks the plan, outside the lock: it may call back.
func (m *meter) fault(r Request) Fault {
	m.mu.Lock()
	plan := m.plan
	m.mu.Unlock()
	if plan == nil {
		return Fault{}
	}
	return plan(r)
}
