package s3

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"net/url"
)

// The event names of ObjectCreated, as notifications spell them: the bucket
// configuration's s3:ObjectCreated:Put arrives as ObjectCreated:Put.
const (
	EventPut  = "ObjectCreated:Put"
	EventCopy = "ObjectCreated:Copy"
)

// ObjectCreated says that an object is there: it is delivered after the
// object can be read, at least once, also when the process is killed between
// storing the object and delivering.
type ObjectCreated struct {
	Bucket    string    `json:"bucket"`
	Key       string    `json:"key"` // as it is; EventJSON encodes it
	Size      int64     `json:"size"`
	ETag      string    `json:"etag"` // without quotes
	EventName string    `json:"event_name"`
	Time      time.Time `json:"time"`
	// Sequencer orders the events of one key: compared as text, a later one
	// is greater.
	Sequencer string `json:"sequencer"`
}

// sequencer makes increasing sequencers, across restarts too as long as the
// clock does not go back.
type sequencer struct{ last atomic.Int64 }

func (s *sequencer) next(now time.Time) string {
	for {
		last := s.last.Load()
		n := max(last+1, now.UnixNano())
		if s.last.CompareAndSwap(last, n) {
			return fmt.Sprintf("%018X", n)
		}
	}
}

func (s *store) event(sequencer string) string {
	return filepath.Join(s.dir, "events", sequencer+".json")
}

// recordEvent keeps an event until forgetEvent. It is written aside first, so
// that a kill leaves no half of one.
func (s *store) recordEvent(event ObjectCreated) error {
	data, err := json.Marshal(event)
	if err != nil {
		return fmt.Errorf("encoding a notification: %w", err)
	}
	aside := s.incoming(event.Sequencer + ".event")
	if err := os.WriteFile(aside, data, 0o600); err != nil {
		return fmt.Errorf("recording a notification: %w", err)
	}
	if err := os.Rename(aside, s.event(event.Sequencer)); err != nil {
		return fmt.Errorf("recording a notification: %w", err)
	}
	return nil
}

func (s *store) forgetEvent(event ObjectCreated) { os.Remove(s.event(event.Sequencer)) }

// pendingEvents returns the events a killed process did not deliver, oldest
// first. Those whose object was never published are dropped.
func (s *store) pendingEvents() ([]ObjectCreated, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, "events"))
	if err != nil {
		return nil, fmt.Errorf("reading undelivered notifications: %w", err)
	}
	var events []ObjectCreated
	for _, entry := range entries {
		path := filepath.Join(s.dir, "events", entry.Name())
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading an undelivered notification: %w", err)
		}
		var event ObjectCreated
		if err := json.Unmarshal(data, &event); err != nil {
			return nil, fmt.Errorf("the notification %s is damaged; delete the file to go on without it: %w", path, err)
		}
		if o := s.find(event.Key); o == nil || o.ETag != event.ETag {
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, fmt.Errorf("dropping a notification: %w", err)
			}
			continue
		}
		events = append(events, event)
	}
	slices.SortFunc(events, func(a, b ObjectCreated) int { return strings.Compare(a.Sequencer, b.Sequencer) })
	return events, nil
}

// EventJSON returns the notification S3 sends for event: one record, version
// 2.1, in the form of
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
// The key is URL-encoded with + for a space; slashes stay.
func EventJSON(region, bucket string, event ObjectCreated) []byte {
	type principal struct {
		PrincipalID string `json:"principalId"`
	}
	type object struct {
		Key       string `json:"key"`
		Size      int64  `json:"size"`
		ETag      string `json:"eTag"`
		Sequencer string `json:"sequencer"`
	}
	type bucketEntity struct {
		Name          string    `json:"name"`
		OwnerIdentity principal `json:"ownerIdentity"`
		ARN           string    `json:"arn"`
	}
	type entity struct {
		S3SchemaVersion string       `json:"s3SchemaVersion"`
		ConfigurationID string       `json:"configurationId"`
		Bucket          bucketEntity `json:"bucket"`
		Object          object       `json:"object"`
	}
	type record struct {
		EventVersion      string            `json:"eventVersion"`
		EventSource       string            `json:"eventSource"`
		AWSRegion         string            `json:"awsRegion"`
		EventTime         string            `json:"eventTime"`
		EventName         string            `json:"eventName"`
		UserIdentity      principal         `json:"userIdentity"`
		RequestParameters map[string]string `json:"requestParameters"`
		ResponseElements  map[string]string `json:"responseElements"`
		S3                entity            `json:"s3"`
	}
	data, err := json.Marshal(map[string][]record{"Records": {{
		EventVersion:      "2.1",
		EventSource:       "aws:s3",
		AWSRegion:         region,
		EventTime:         event.Time.UTC().Format("2006-01-02T15:04:05.000Z"),
		EventName:         event.EventName,
		UserIdentity:      principal{"AWS:AIDALOCAL"},
		RequestParameters: map[string]string{"sourceIPAddress": "127.0.0.1"},
		ResponseElements:  map[string]string{"x-amz-request-id": event.Sequencer, "x-amz-id-2": event.Sequencer},
		S3: entity{
			S3SchemaVersion: "1.0",
			ConfigurationID: "local",
			Bucket:          bucketEntity{bucket, principal{"ALOCAL"}, "arn:aws:s3:::" + bucket},
			Object: object{
				Key:       strings.ReplaceAll(url.QueryEscape(event.Key), "%2F", "/"),
				Size:      event.Size,
				ETag:      event.ETag,
				Sequencer: event.Sequencer,
			},
		},
	}}})
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return data
}
