package stack

import (
	"encoding/json"
	"fmt"
	"time"

	"claimcheck.dev/claimcheck/shared/local/dynamo"
	"claimcheck.dev/claimcheck/shared/local/sources"
)

// tableStream is a table's stream as sources reads it.
type tableStream struct {
	server *dynamo.Server
	table  string
}

func (t tableStream) Read(after int64, limit int) ([]sources.Record, error) {
	records, _ := t.server.ReadStream(t.table, after, limit)
	var out []sources.Record
	for _, r := range records {
		text, err := json.Marshal(r)
		if err != nil {
			return nil, fmt.Errorf("encoding a stream record: %w", err)
		}
		out = append(out, sources.Record{Sequence: r.Sequence, Created: time.Unix(r.Change.ApproximateCreationDateTime, 0), JSON: text})
	}
	return out, nil
}

func (t tableStream) Last() (int64, error) {
	last := int64(0)
	for {
		records, next := t.server.ReadStream(t.table, last, 1000)
		if len(records) == 0 {
			return last, nil
		}
		last = next
	}
}

func (t tableStream) Changed() <-chan struct{} { return t.server.StreamNotify(t.table) }
