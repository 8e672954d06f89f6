package dynamo

import (
	"encoding/base64"
	"encoding/json"
	"time"
)

const (
	maxStreamPage = 1000
	iteratorLife  = 15 * time.Minute
	shardID       = "shardId-00000000000000000000-00000001" // every stream has one shard
)

// shardIterator is a position in a stream. On the wire it is opaque text.
type shardIterator struct {
	Stream string `json:"stream"` // ARN
	After  int64  `json:"after"`  // sequence number before the next record
	Issued int64  `json:"issued"` // epoch seconds
}

func (it shardIterator) String() string {
	raw, _ := json.Marshal(it) // Strings and integers always encode.
	return base64.StdEncoding.EncodeToString(raw)
}

func (s *Server) listStreams(o object) (any, error) {
	var d decoder
	name, after, limit := d.string(o, "TableName"), d.string(o, "ExclusiveStartStreamArn"), d.integer(o, "Limit")
	if d.err != nil {
		return nil, d.err
	}
	var c constraints
	c.atLeast("limit", limit, 1)
	if err := c.err(); err != nil {
		return nil, err
	}
	most := int64(100)
	if limit != nil {
		most = min(*limit, most)
	}
	streams := []map[string]string{}
	answer := make(map[string]any)
	err := s.read(func() error {
		last := ""
		for _, tableName := range sortedKeys(s.tables) {
			t := s.tables[tableName]
			if t.stream == nil || name != nil && *name != tableName {
				continue
			}
			arn := s.streamARN(t)
			if after != nil && arn <= *after {
				continue
			}
			if int64(len(streams)) == most {
				answer["LastEvaluatedStreamArn"] = last
				break
			}
			last = arn
			streams = append(streams, map[string]string{"StreamArn": arn, "StreamLabel": t.stream.label, "TableName": tableName})
		}
		return nil
	})
	answer["Streams"] = streams
	return answer, err
}

// streamTable finds the table behind a stream ARN.
func (s *Server) streamTable(arn string) (*table, error) {
	for _, t := range s.tables {
		if t.stream != nil && s.streamARN(t) == arn {
			return t, nil
		}
	}
	return nil, clientError("ResourceNotFoundException", "Requested resource not found: Stream: %s not found", arn)
}

func (s *Server) describeStream(o object) (any, error) {
	var d decoder
	arn, _ := d.string(o, "StreamArn"), d.integer(o, "Limit")
	if d.err != nil {
		return nil, d.err
	}
	var c constraints
	if arn == nil {
		c.required("streamArn")
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	var description map[string]any
	err := s.read(func() error {
		t, err := s.streamTable(*arn)
		if err != nil {
			return err
		}
		description = map[string]any{
			"StreamArn":               *arn,
			"StreamLabel":             t.stream.label,
			"StreamStatus":            "ENABLED",
			"StreamViewType":          t.stream.view,
			"CreationRequestDateTime": float64(t.created.UnixMilli()) / 1000,
			"TableName":               t.spec.Name,
			"KeySchema":               describeKeys(t.spec.PartitionKey, t.spec.SortKey),
			"Shards": []any{map[string]any{
				"ShardId":             shardID,
				"SequenceNumberRange": map[string]string{"StartingSequenceNumber": formatSequence(t.stream.trimmed + 1)},
			}},
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return map[string]any{"StreamDescription": description}, nil
}

func (s *Server) getShardIterator(o object) (any, error) {
	var d decoder
	arn, shard := d.string(o, "StreamArn"), d.string(o, "ShardId")
	kind, sequence := d.string(o, "ShardIteratorType"), d.string(o, "SequenceNumber")
	if d.err != nil {
		return nil, d.err
	}
	var c constraints
	for _, p := range []struct {
		field string
		value *string
	}{{"streamArn", arn}, {"shardId", shard}, {"shardIteratorType", kind}} {
		if p.value == nil {
			c.required(p.field)
		}
	}
	c.enum("shardIteratorType", kind, "AT_SEQUENCE_NUMBER", "LATEST", "AFTER_SEQUENCE_NUMBER", "TRIM_HORIZON")
	if err := c.err(); err != nil {
		return nil, err
	}
	it := shardIterator{Stream: *arn, Issued: s.now().Unix()}
	err := s.read(func() error {
		t, err := s.streamTable(*arn)
		if err != nil {
			return err
		}
		if *shard != shardID {
			return clientError("ResourceNotFoundException", "Requested resource not found: Shard %s in stream %s not found", *shard, *arn)
		}
		it.After, err = t.stream.start(*kind, sequence, s.seq)
		return err
	})
	if err != nil {
		return nil, err
	}
	return map[string]any{"ShardIterator": it.String()}, nil
}

// start is the sequence number before the first record that an iterator reads.
func (s *stream) start(kind string, sequence *string, newest int64) (int64, error) {
	switch kind {
	case "TRIM_HORIZON":
		return s.trimmed, nil
	case "LATEST":
		return newest, nil
	}
	if sequence == nil {
		return 0, invalid("ShardIteratorType %s requires a SequenceNumber", kind)
	}
	n, ok := parseSequence(*sequence)
	if !ok {
		return 0, invalid("Invalid SequenceNumber: %s", *sequence)
	}
	if kind == "AT_SEQUENCE_NUMBER" {
		n--
	}
	if n < s.trimmed {
		return 0, errTrimmed()
	}
	return n, nil
}

func errTrimmed() *apiError {
	return clientError("TrimmedDataAccessException",
		"The operation attempted to read past the oldest stream record in a shard")
}

func (s *Server) getRecords(o object) (any, error) {
	var d decoder
	encoded, limit := d.string(o, "ShardIterator"), d.integer(o, "Limit")
	if d.err != nil {
		return nil, d.err
	}
	var c constraints
	if encoded == nil {
		c.required("shardIterator")
	}
	c.atLeast("limit", limit, 1)
	if err := c.err(); err != nil {
		return nil, err
	}
	var it shardIterator
	raw, err := base64.StdEncoding.DecodeString(*encoded)
	if err != nil || json.Unmarshal(raw, &it) != nil {
		return nil, invalid("Invalid ShardIterator")
	}
	if s.now().Unix()-it.Issued > int64(iteratorLife/time.Second) {
		return nil, clientError("ExpiredIteratorException", "The shard iterator has expired and can no longer be used to retrieve stream records")
	}
	most := maxStreamPage
	if limit != nil {
		most = int(min(*limit, maxStreamPage))
	}
	records := []map[string]any{}
	err = s.read(func() error {
		t, err := s.streamTable(it.Stream)
		if err != nil {
			return err
		}
		if it.After < t.stream.trimmed {
			return errTrimmed()
		}
		for _, e := range t.stream.since(it.After, most) {
			records = append(records, s.record(t, &e).wire())
			it.After = e.seq
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	it.Issued = s.now().Unix()
	return map[string]any{"Records": records, "NextShardIterator": it.String()}, nil
}

// wire is the record as GetRecords answers it, which differs from a Lambda event
// in the identity's member names and in having no ARN.
func (r StreamRecord) wire() map[string]any {
	out := map[string]any{
		"eventID": r.EventID, "eventName": r.EventName, "eventVersion": r.EventVersion,
		"eventSource": r.EventSource, "awsRegion": r.AWSRegion, "dynamodb": r.Change,
	}
	if id := r.UserIdentity; id != nil {
		out["userIdentity"] = map[string]string{"PrincipalId": id.PrincipalID, "Type": id.Type}
	}
	return out
}
