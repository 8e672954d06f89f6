package sources

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Record is one change of a table.
type Record struct {
	// Sequence orders the records of a stream; it only grows.
	Sequence int64
	Created  time.Time
	// JSON is the record as Lambda delivers it, eventSourceARN included.
	JSON json.RawMessage
}

// Log is a table's stream.
type Log interface {
	// Read returns up to limit records after a sequence number, oldest first.
	Read(after int64, limit int) ([]Record, error)
	// Last is the sequence number of the newest record, 0 before the first.
	Last() (int64, error)
	// Changed returns a channel that is closed or receives when records were added
	// after the call.
	Changed() <-chan struct{}
}

// Stream feeds a function from a table's stream, in order, each batch until it
// succeeds or is given up.
type Stream struct {
	Target
	Log Log
	// Position is the file that remembers how far the function has come.
	Position string
	// Latest starts a new stream behind its newest record instead of at its oldest.
	Latest    bool
	BatchSize int
	Window    time.Duration
	// Bisect splits a batch that fails. MaxRetries and MaxAge limit the attempts;
	// negative is no limit.
	Bisect     bool
	MaxRetries int
	MaxAge     time.Duration
	// PartialFailures: the answer names the first record that failed.
	PartialFailures bool
	Filter          Filter
	// GiveUp, when set, is told of each batch that is given up, with the body of
	// the message that AWS sends to an on-failure queue.
	GiveUp func(body string) error
	ARN    string // of the stream
	// Backoff is the pause before the first retry, doubled up to a minute; 0 means 1 s.
	Backoff time.Duration
	Now     func() time.Time
}

// Run reads until ctx ends. A batch under way then is finished or, when it keeps
// failing, left for the next start.
func (s *Stream) Run(ctx context.Context) error {
	at, err := s.load()
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		changed := s.Log.Changed()
		records, err := s.read(ctx, at)
		if err != nil {
			return fmt.Errorf("reading the stream for %s: %w", s.Label, err)
		}
		if len(records) == 0 {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		var batch []Record
		for _, r := range records {
			if s.Filter.Match(r.JSON) {
				batch = append(batch, r)
			}
		}
		if len(batch) > 0 && !s.deliver(ctx, batch, 0) {
			return nil // ctx ended
		}
		at = records[len(records)-1].Sequence
		if err := s.save(at); err != nil {
			return err
		}
	}
	return nil
}

// read gathers a batch for as long as the window is open.
func (s *Stream) read(ctx context.Context, after int64) ([]Record, error) {
	records, err := s.Log.Read(after, s.BatchSize)
	if err != nil || len(records) == 0 || len(records) >= s.BatchSize || s.Window <= 0 {
		return records, err
	}
	sleep(ctx, s.Window)
	return s.Log.Read(after, s.BatchSize)
}

// deliver handles a batch to its end; false when ctx ended before that.
func (s *Stream) deliver(ctx context.Context, batch []Record, attempt int) bool {
	pause := s.Backoff
	if pause == 0 {
		pause = time.Second
	}
	for {
		failed := s.try(ctx, &batch)
		if failed == "" {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		attempt++
		if why := s.exhausted(batch, attempt); why != "" {
			s.giveUp(batch, attempt, why, failed)
			return true
		}
		if s.Bisect && len(batch) > 1 {
			// Splitting does not count as an attempt.
			half := len(batch) / 2
			return s.deliver(ctx, batch[:half], attempt-1) && s.deliver(ctx, batch[half:], attempt-1)
		}
		s.logf("%d stream records failed, next attempt in %s: %s", len(batch), pause, failed)
		if !sleep(ctx, pause) {
			return false
		}
		pause = min(2*pause, time.Minute)
	}
}

// try invokes the function once and shortens the batch to what is left to do;
// failed is empty when nothing is.
func (s *Stream) try(ctx context.Context, batch *[]Record) (failed string) {
	var b bytes.Buffer
	b.WriteString(`{"Records":[`)
	for i, r := range *batch {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(r.JSON)
	}
	b.WriteString(`]}`)
	payload, failed := s.invoke(ctx, b.Bytes())
	if failed != "" || !s.PartialFailures || len(payload) == 0 {
		return failed
	}
	var report *struct {
		Failures []struct {
			ID string `json:"itemIdentifier"`
		} `json:"batchItemFailures"`
	}
	if err := json.Unmarshal(payload, &report); err != nil {
		return "the answer is no batchItemFailures report: " + err.Error()
	}
	if report == nil || len(report.Failures) == 0 {
		return ""
	}
	first := len(*batch)
	for _, f := range report.Failures {
		i := indexOf(*batch, f.ID)
		if i < 0 {
			return fmt.Sprintf("the answer reports record %q, which was not in the batch", f.ID)
		}
		first = min(first, i)
	}
	*batch = (*batch)[first:]
	return "the function reported record " + sequence((*batch)[0]) + " as failed"
}

func indexOf(batch []Record, id string) int {
	for i, r := range batch {
		if sequence(r) == id {
			return i
		}
	}
	return -1
}

// sequence is the record's sequence number as the function sees it.
func sequence(r Record) string {
	var v struct {
		Change struct {
			SequenceNumber string `json:"SequenceNumber"`
		} `json:"dynamodb"`
	}
	if json.Unmarshal(r.JSON, &v) != nil || v.Change.SequenceNumber == "" {
		return strconv.FormatInt(r.Sequence, 10)
	}
	return v.Change.SequenceNumber
}

// exhausted says why a batch is not tried again, or nothing.
func (s *Stream) exhausted(batch []Record, attempts int) string {
	if s.MaxRetries >= 0 && attempts > s.MaxRetries {
		return "RetryAttemptsExhausted"
	}
	if s.MaxAge >= 0 && s.now().Sub(batch[0].Created) > s.MaxAge {
		return "RecordAgeExceeded"
	}
	return ""
}

func (s *Stream) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// giveUp tells the on-failure queue which records were skipped; they themselves
// stay in the stream only.
func (s *Stream) giveUp(batch []Record, attempts int, condition, failed string) {
	s.logf("gave up %d stream records from %s after %d attempts: %s", len(batch), sequence(batch[0]), attempts, failed)
	if s.GiveUp == nil {
		return
	}
	first, last := batch[0], batch[len(batch)-1]
	const form = "2006-01-02T15:04:05.000Z"
	body, err := json.Marshal(map[string]any{
		"requestContext": map[string]any{
			"requestId": "", "functionArn": s.Target.ARN, "condition": condition, "approximateInvokeCount": attempts,
		},
		"responseContext": map[string]any{"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
		"version":         "1.0",
		"timestamp":       s.now().UTC().Format(form),
		"DDBStreamBatchInfo": map[string]any{
			"shardId": "shardId-00000000000000000000-local", "startSequenceNumber": sequence(first), "endSequenceNumber": sequence(last),
			"approximateArrivalOfFirstRecord": first.Created.UTC().Format(form),
			"approximateArrivalOfLastRecord":  last.Created.UTC().Format(form),
			"batchSize":                       len(batch), "streamArn": s.ARN,
		},
	})
	if err == nil {
		err = s.GiveUp(string(body))
	}
	if err != nil {
		s.logf("telling the on-failure queue: %v", err)
	}
}

type position struct {
	Sequence int64 `json:"sequence"`
}

func (s *Stream) load() (int64, error) {
	text, err := os.ReadFile(s.Position)
	if errors.Is(err, fs.ErrNotExist) {
		at := int64(0)
		if s.Latest {
			if at, err = s.Log.Last(); err != nil {
				return 0, fmt.Errorf("reading the stream for %s: %w", s.Label, err)
			}
		}
		return at, s.save(at)
	}
	if err != nil {
		return 0, fmt.Errorf("reading the stream position of %s: %w", s.Label, err)
	}
	var p position
	if err := json.Unmarshal(text, &p); err != nil {
		return 0, fmt.Errorf("%s is damaged: %w; remove it to read the stream from its start", s.Position, err)
	}
	last, err := s.Log.Last()
	if err != nil {
		return 0, fmt.Errorf("reading the stream for %s: %w", s.Label, err)
	}
	if p.Sequence > last {
		s.logf("the stream is shorter than what was read of it, so it is another table's: starting at its oldest record")
		return 0, nil
	}
	return p.Sequence, nil
}

func (s *Stream) save(at int64) error {
	text, err := json.Marshal(position{at})
	if err != nil {
		return err
	}
	next := s.Position + ".next"
	if err := os.MkdirAll(filepath.Dir(s.Position), 0o700); err != nil {
		return fmt.Errorf("keeping the stream position of %s: %w", s.Label, err)
	}
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return fmt.Errorf("keeping the stream position of %s: %w", s.Label, err)
	}
	if err := os.Rename(next, s.Position); err != nil {
		return fmt.Errorf("keeping the stream position of %s: %w", s.Label, err)
	}
	return nil
}
