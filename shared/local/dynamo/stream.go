package dynamo

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// limits bound what a stream keeps. DynamoDB keeps 24 hours; a laptop also
// needs a bound on memory.
type limits struct {
	age     time.Duration
	records int
	bytes   int
}

var defaultLimits = limits{age: 24 * time.Hour, records: 100_000, bytes: 64 << 20}

// streamEntry is one change of one item as the stream remembers it.
type streamEntry struct {
	seq      int64
	at       time.Time
	keys     document
	old, new document
	expired  bool // removed by Sweep
}

func (e *streamEntry) eventName() string {
	switch {
	case e.old == nil:
		return "INSERT"
	case e.new == nil:
		return "REMOVE"
	}
	return "MODIFY"
}

func (e *streamEntry) size() int { return itemSize(e.old) + itemSize(e.new) }

// stream is the change log of a table: one shard, oldest entry first. It is
// guarded by the server's lock.
type stream struct {
	view    string
	label   string
	limits  limits
	entries []streamEntry
	bytes   int
	trimmed int64         // sequence number of the newest entry that was dropped
	changed chan struct{} // closed, and replaced, when an entry arrives
}

func newStream(view string, created time.Time, l limits) *stream {
	return &stream{
		view:    view,
		label:   created.UTC().Format("2006-01-02T15:04:05.000"),
		limits:  l,
		changed: make(chan struct{}),
	}
}

// add appends an entry and drops what has become too much or too old.
func (s *stream) add(e streamEntry) {
	s.entries = append(s.entries, e)
	s.bytes += e.size()
	drop := 0
	for drop < len(s.entries)-1 {
		old := &s.entries[drop]
		if len(s.entries)-drop <= s.limits.records && s.bytes <= s.limits.bytes && e.at.Sub(old.at) <= s.limits.age {
			break
		}
		s.bytes -= old.size()
		s.trimmed = old.seq
		drop++
	}
	if drop > 0 {
		clear(s.entries[:drop])
		s.entries = s.entries[drop:]
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// since returns up to limit entries with sequence numbers greater than after.
// The slice is shared: entries in it are never changed once added, but the
// stream may drop them, so it must be read under the lock or copied.
func (s *stream) since(after int64, limit int) []streamEntry {
	low, high := 0, len(s.entries)
	for low < high {
		if mid := (low + high) / 2; s.entries[mid].seq > after {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return s.entries[low:min(len(s.entries), low+limit)]
}

// StreamRecord is one record of a table's stream. Its JSON is that of an element
// of "Records" in the event that Lambda hands to a function subscribed to a
// DynamoDB stream.
type StreamRecord struct {
	EventID        string          `json:"eventID"`
	EventName      string          `json:"eventName"` // INSERT, MODIFY or REMOVE
	EventVersion   string          `json:"eventVersion"`
	EventSource    string          `json:"eventSource"`
	AWSRegion      string          `json:"awsRegion"`
	Change         StreamChange    `json:"dynamodb"`
	UserIdentity   *StreamIdentity `json:"userIdentity,omitempty"` // only on removals by Sweep
	EventSourceARN string          `json:"eventSourceARN"`

	// Sequence is Change.SequenceNumber in the form that ReadStream takes.
	Sequence int64 `json:"-"`
}

// StreamChange is the "dynamodb" part of a StreamRecord. Images are JSON objects
// of attribute values; the view type of the stream decides which are there.
type StreamChange struct {
	ApproximateCreationDateTime int64           `json:"ApproximateCreationDateTime"` // epoch seconds
	Keys                        json.RawMessage `json:"Keys"`
	NewImage                    json.RawMessage `json:"NewImage,omitempty"`
	OldImage                    json.RawMessage `json:"OldImage,omitempty"`
	SequenceNumber              string          `json:"SequenceNumber"`
	SizeBytes                   int             `json:"SizeBytes"`
	StreamViewType              string          `json:"StreamViewType"`
}

// StreamIdentity says who made a change that no client made.
type StreamIdentity struct {
	PrincipalID string `json:"principalId"`
	Type        string `json:"type"`
}

// sequencePrefix makes sequence numbers as long as the API declares them: 21 to
// 40 digits, in ascending order as text and as numbers.
const sequencePrefix = "1"

func formatSequence(seq int64) string { return fmt.Sprintf("%s%020d", sequencePrefix, seq) }

func parseSequence(s string) (int64, bool) {
	rest, ok := strings.CutPrefix(s, sequencePrefix)
	if !ok || len(rest) != 20 {
		return 0, false
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	return n, err == nil && n >= 0
}

// record builds the public form of an entry.
func (s *Server) record(t *table, e *streamEntry) StreamRecord {
	id := sha256.Sum256([]byte(t.id + formatSequence(e.seq)))
	r := StreamRecord{
		EventID:      hex.EncodeToString(id[:16]),
		EventName:    e.eventName(),
		EventVersion: "1.1",
		EventSource:  "aws:dynamodb",
		AWSRegion:    s.region,
		Change: StreamChange{
			ApproximateCreationDateTime: e.at.Unix(),
			Keys:                        appendDocument(nil, e.keys),
			SequenceNumber:              formatSequence(e.seq),
			StreamViewType:              t.stream.view,
			SizeBytes:                   itemSize(e.keys),
		},
		EventSourceARN: s.streamARN(t),
		Sequence:       e.seq,
	}
	view := t.stream.view
	if e.new != nil && (view == "NEW_IMAGE" || view == "NEW_AND_OLD_IMAGES") {
		r.Change.NewImage = appendDocument(nil, e.new)
		r.Change.SizeBytes += itemSize(e.new)
	}
	if e.old != nil && (view == "OLD_IMAGE" || view == "NEW_AND_OLD_IMAGES") {
		r.Change.OldImage = appendDocument(nil, e.old)
		r.Change.SizeBytes += itemSize(e.old)
	}
	if e.expired {
		r.UserIdentity = &StreamIdentity{PrincipalID: "dynamodb.amazonaws.com", Type: "Service"}
	}
	return r
}

// ReadStream returns up to limit records of the table's stream with sequence
// numbers greater than after, oldest first, and the sequence number to pass
// next time. Start with 0 for everything that is kept: 24 hours, within a bound
// on memory (100,000 records and 64 MB of images). Records survive a restart
// under the same sequence numbers, so a reader may store last and go on from
// it. A table without a stream has no records.
func (s *Server) ReadStream(table string, after int64, limit int) (records []StreamRecord, last int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	last = after
	t := s.tables[table]
	if t == nil || t.stream == nil {
		return nil, last
	}
	for _, e := range t.stream.since(after, limit) {
		records = append(records, s.record(t, &e))
		last = e.seq
	}
	return records, last
}

// StreamNotify returns a channel that is closed when the next record arrives on
// the table's stream. Each channel serves once, for any number of waiters, so a
// reader asks for it before it reads:
//
//	for {
//		arrived := server.StreamNotify(table)
//		records, last = server.ReadStream(table, last, 100)
//		if len(records) == 0 {
//			<-arrived
//			continue
//		}
//		...
//	}
//
// The channel of a table without a stream is never closed.
func (s *Server) StreamNotify(table string) <-chan struct{} {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if t := s.tables[table]; t != nil && t.stream != nil {
		return t.stream.changed
	}
	return nil
}
