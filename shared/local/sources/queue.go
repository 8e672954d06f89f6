package sources

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"claimcheck.dev/claimcheck/shared/local/queue"
)

// Queue feeds a function from a queue.
type Queue struct {
	Target
	Queues *queue.Server
	// Name of the queue.
	Name string
	// BatchSize is the most messages per event, Window how long to gather them.
	BatchSize int
	Window    time.Duration
	// Workers is how many events may be handled at a time.
	Workers int
	// PartialFailures: the answer names the messages that failed.
	PartialFailures bool
	// Filter passes the messages to handle; others are deleted, as on AWS.
	Filter Filter
	Region string
}

type sqsEvent struct {
	Records []sqsRecord `json:"Records"`
}

type sqsRecord struct {
	MessageID         string                  `json:"messageId"`
	ReceiptHandle     string                  `json:"receiptHandle"`
	Body              string                  `json:"body"`
	Attributes        map[string]string       `json:"attributes"`
	MessageAttributes map[string]sqsAttribute `json:"messageAttributes"`
	MD5OfBody         string                  `json:"md5OfBody"`
	EventSource       string                  `json:"eventSource"`
	EventSourceARN    string                  `json:"eventSourceARN"`
	Region            string                  `json:"awsRegion"`
}

type sqsAttribute struct {
	StringValue      *string  `json:"stringValue,omitempty"`
	BinaryValue      *string  `json:"binaryValue,omitempty"`
	StringListValues []string `json:"stringListValues"`
	BinaryListValues []string `json:"binaryListValues"`
	DataType         string   `json:"dataType"`
}

// Run polls until ctx ends and returns when every event that was begun is done.
func (q *Queue) Run(ctx context.Context) {
	var workers sync.WaitGroup
	for range max(q.Workers, 1) {
		workers.Go(func() {
			for ctx.Err() == nil {
				batch := q.gather(ctx)
				if len(batch) > 0 {
					q.deliver(ctx, batch)
				}
			}
		})
	}
	workers.Wait()
}

// gather waits for messages and fills a batch for as long as the window is open.
func (q *Queue) gather(ctx context.Context) []queue.Message {
	batch := q.receive(ctx, q.BatchSize, 20*time.Second)
	if len(batch) == 0 || q.Window <= 0 {
		return batch
	}
	closes := time.Now().Add(q.Window)
	for len(batch) < q.BatchSize && ctx.Err() == nil {
		left := time.Until(closes)
		if left <= 0 {
			break
		}
		batch = append(batch, q.receive(ctx, q.BatchSize-len(batch), left)...)
	}
	return batch
}

func (q *Queue) receive(ctx context.Context, limit int, wait time.Duration) []queue.Message {
	got, err := q.Queues.Receive(ctx, q.Name, limit, -1, wait)
	if err != nil {
		q.logf("receiving from %s: %v", q.Name, err)
		sleep(ctx, time.Second)
	}
	kept := got[:0]
	for _, m := range got {
		if q.Filter.MatchMessage(m.Body) {
			kept = append(kept, m)
		} else {
			q.remove(m)
		}
	}
	return kept
}

func (q *Queue) remove(m queue.Message) {
	if err := q.Queues.Delete(q.Name, m.Receipt); err != nil {
		q.logf("deleting message %s: %v", m.ID, err)
	}
}

func (q *Queue) deliver(ctx context.Context, batch []queue.Message) {
	event, err := json.Marshal(q.event(batch))
	if err != nil {
		q.logf("encoding an event: %v", err)
		return
	}
	payload, failed := q.invoke(ctx, event)
	if ctx.Err() != nil && failed != "" {
		return // stopping: the messages come back with the next start
	}
	again := map[string]bool{}
	if failed == "" && q.PartialFailures {
		if again, err = failures(payload, batch); err != nil {
			failed = err.Error()
		}
	}
	if failed != "" {
		q.logf("%d messages of %s failed, they come again after the visibility timeout: %s", len(batch), q.Name, failed)
		return
	}
	for _, m := range batch {
		if again[m.ID] {
			q.logf("message %s of %s failed, it comes again after the visibility timeout", m.ID, q.Name)
		} else {
			q.remove(m)
		}
	}
}

// failures reads a ReportBatchItemFailures answer. No answer means that all went
// well; one that makes no sense means that nothing did.
func failures(payload []byte, batch []queue.Message) (map[string]bool, error) {
	var report *struct {
		Failures []struct {
			ID string `json:"itemIdentifier"`
		} `json:"batchItemFailures"`
	}
	if len(payload) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(payload, &report); err != nil {
		return nil, fmt.Errorf("the answer is no batchItemFailures report: %w", err)
	}
	if report == nil {
		return nil, nil
	}
	known, again := map[string]bool{}, map[string]bool{}
	for _, m := range batch {
		known[m.ID] = true
	}
	for _, f := range report.Failures {
		if !known[f.ID] {
			return nil, fmt.Errorf("the answer reports message %q, which was not in the batch", f.ID)
		}
		again[f.ID] = true
	}
	return again, nil
}

func (q *Queue) event(batch []queue.Message) sqsEvent {
	var e sqsEvent
	for _, m := range batch {
		attributes := map[string]sqsAttribute{}
		for name, a := range m.Attributes {
			v := sqsAttribute{DataType: a.DataType, StringListValues: []string{}, BinaryListValues: []string{}}
			if strings.HasPrefix(a.DataType, "Binary") {
				v.BinaryValue = &a.Value
			} else {
				v.StringValue = &a.Value
			}
			attributes[name] = v
		}
		e.Records = append(e.Records, sqsRecord{
			MessageID: m.ID, ReceiptHandle: m.Receipt, Body: m.Body,
			Attributes: q.Queues.SystemAttributes(m), MessageAttributes: attributes,
			MD5OfBody: queue.BodyMD5(m.Body), EventSource: "aws:sqs",
			EventSourceARN: q.Queues.ARN(q.Name), Region: q.Region,
		})
	}
	return e
}
