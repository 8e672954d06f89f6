package dynamo

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// events reads the whole stream of a table as "seq NAME pk".
func events(s *Server, table string) []string {
	records, _ := s.ReadStream(table, 0, 1<<20)
	var out []string
	for _, r := range records {
		var keys map[string]map[string]string
		if err := json.Unmarshal(r.Change.Keys, &keys); err != nil {
			panic(err)
		}
		out = append(out, fmt.Sprintf("%d %s %s", r.Sequence, r.EventName, keys["pk"]["S"]))
	}
	return out
}

func TestStreamOrder(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	must(t, s, "PutItem", `{"TableName":"tbl","Item":{"pk":{"S":"a"},"sk":{"S":"1"}}}`)
	must(t, s, "PutItem", `{"TableName":"tbl","Item":{"pk":{"S":"a"},"sk":{"S":"1"},"x":{"N":"1"}}}`)
	// What changes nothing leaves no record.
	must(t, s, "PutItem", `{"TableName":"tbl","Item":{"pk":{"S":"a"},"sk":{"S":"1"},"x":{"N":"1.0"}}}`)
	must(t, s, "UpdateItem", `{"TableName":"tbl","Key":{"pk":{"S":"a"},"sk":{"S":"1"}},"UpdateExpression":"REMOVE y"}`)
	must(t, s, "DeleteItem", `{"TableName":"tbl","Key":{"pk":{"S":"none"},"sk":{"S":"1"}}}`)
	// Other tables have streams of their own, or none.
	must(t, s, "PutItem", `{"TableName":"hash","Item":{"id":{"S":"a"}}}`)
	// The actions of a transaction follow each other.
	must(t, s, "TransactWriteItems", `{"TransactItems":[{"Delete":{"TableName":"tbl","Key":{"pk":{"S":"a"},"sk":{"S":"1"}}}},{"ConditionCheck":{"TableName":"tbl","Key":{"pk":{"S":"b"},"sk":{"S":"1"}},"ConditionExpression":"attribute_not_exists(pk)"}},{"Update":{"TableName":"tbl","Key":{"pk":{"S":"c"},"sk":{"S":"1"}},"UpdateExpression":"SET x = :1","ExpressionAttributeValues":{":1":{"N":"1"}}}}]}`)
	if status, _ := ask(s, "PutItem", `{"TableName":"tbl","Item":{"pk":{"S":"c"},"sk":{"S":"1"}},"ConditionExpression":"attribute_not_exists(pk)"}`); status != 400 {
		t.Errorf("the condition held: %d", status)
	}
	want := []string{"1 INSERT a", "2 MODIFY a", "3 REMOVE a", "4 INSERT c"}
	if got := events(s, "tbl"); !slices.Equal(got, want) {
		t.Errorf("records are %v, want %v", got, want)
	}
	if got := events(s, "hash"); got != nil {
		t.Errorf("a table without a stream has records: %v", got)
	}
	records, last := s.ReadStream("tbl", 1, 2)
	if len(records) != 2 || records[0].Sequence != 2 || last != 3 {
		t.Errorf("ReadStream(1, 2) = %d records up to %d", len(records), last)
	}
	if records, last := s.ReadStream("tbl", 4, 10); records != nil || last != 4 {
		t.Errorf("at the end: %v, %d", records, last)
	}
}

// A record must be exactly what Lambda hands to a function.
func TestStreamRecordJSON(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := open(t, Options{Now: c.now, Region: "eu-west-1", Account: "123456789012"})
	must(t, s, "PutItem", `{"TableName":"tbl","Item":{"pk":{"S":"a"},"sk":{"S":"1"},"expires":{"N":"1772366399"}}}`)
	c.advance(90 * time.Second)
	if n, err := s.Sweep(c.now()); n != 1 || err != nil {
		t.Fatalf("Sweep = %d, %v", n, err)
	}
	records, _ := s.ReadStream("tbl", 0, 10)
	for i := range records {
		if len(records[i].EventID) != 32 {
			t.Errorf("event id %q", records[i].EventID)
		}
		records[i].EventID = "id"
	}
	got, err := json.MarshalIndent(records, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	const want = `[
 {
  "eventID": "id",
  "eventName": "INSERT",
  "eventVersion": "1.1",
  "eventSource": "aws:dynamodb",
  "awsRegion": "eu-west-1",
  "dynamodb": {
   "ApproximateCreationDateTime": 1772366400,
   "Keys": {
    "pk": {
     "S": "a"
    },
    "sk": {
     "S": "1"
    }
   },
   "NewImage": {
    "expires": {
     "N": "1772366399"
    },
    "pk": {
     "S": "a"
    },
    "sk": {
     "S": "1"
    }
   },
   "SequenceNumber": "100000000000000000001",
   "SizeBytes": 25,
   "StreamViewType": "NEW_AND_OLD_IMAGES"
  },
  "eventSourceARN": "arn:aws:dynamodb:eu-west-1:123456789012:table/tbl/stream/2026-03-01T12:00:00.000"
 },
 {
  "eventID": "id",
  "eventName": "REMOVE",
  "eventVersion": "1.1",
  "eventSource": "aws:dynamodb",
  "awsRegion": "eu-west-1",
  "dynamodb": {
   "ApproximateCreationDateTime": 1772366490,
   "Keys": {
    "pk": {
     "S": "a"
    },
    "sk": {
     "S": "1"
    }
   },
   "OldImage": {
    "expires": {
     "N": "1772366399"
    },
    "pk": {
     "S": "a"
    },
    "sk": {
     "S": "1"
    }
   },
   "SequenceNumber": "100000000000000000002",
   "SizeBytes": 25,
   "StreamViewType": "NEW_AND_OLD_IMAGES"
  },
  "userIdentity": {
   "principalId": "dynamodb.amazonaws.com",
   "type": "Service"
  },
  "eventSourceARN": "arn:aws:dynamodb:eu-west-1:123456789012:table/tbl/stream/2026-03-01T12:00:00.000"
 }
]`
	if string(got) != want {
		t.Errorf("got %s", got)
	}
}

func TestStreamViews(t *testing.T) {
	t.Parallel()
	for view, want := range map[string]string{
		"KEYS_ONLY":          "keys;keys;keys",
		"NEW_IMAGE":          "keys new;keys new;keys",
		"OLD_IMAGE":          "keys;keys old;keys old",
		"NEW_AND_OLD_IMAGES": "keys new;keys new old;keys old",
	} {
		s := open(t, Options{})
		if err := s.CreateTable(TableSpec{Name: "viewed", PartitionKey: KeyAttribute{"id", "S"}, StreamView: view}); err != nil {
			t.Fatal(err)
		}
		must(t, s, "PutItem", `{"TableName":"viewed","Item":{"id":{"S":"a"}}}`)
		must(t, s, "PutItem", `{"TableName":"viewed","Item":{"id":{"S":"a"},"x":{"N":"1"}}}`)
		must(t, s, "DeleteItem", `{"TableName":"viewed","Key":{"id":{"S":"a"}}}`)
		records, _ := s.ReadStream("viewed", 0, 10)
		var got []string
		for _, r := range records {
			parts := "keys"
			if r.Change.NewImage != nil {
				parts += " new"
			}
			if r.Change.OldImage != nil {
				parts += " old"
			}
			got = append(got, parts)
			if r.Change.StreamViewType != view {
				t.Errorf("%s: a record says %s", view, r.Change.StreamViewType)
			}
		}
		if strings.Join(got, ";") != want {
			t.Errorf("%s: %v, want %s", view, got, want)
		}
	}
}

func TestStreamNotify(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	arrived := s.StreamNotify("tbl")
	select {
	case <-arrived:
		t.Fatal("the channel is closed before anything arrived")
	default:
	}
	must(t, s, "PutItem", `{"TableName":"hash","Item":{"id":{"S":"a"}}}`)
	must(t, s, "UpdateItem", `{"TableName":"tbl","Key":{"pk":{"S":"a"},"sk":{"S":"1"}}}`)
	select {
	case <-arrived:
	default:
		t.Error("the channel is open after a record arrived")
	}
	next := s.StreamNotify("tbl")
	select {
	case <-next:
		t.Error("the next channel is closed already")
	default:
	}
	must(t, s, "DeleteTable", `{"TableName":"tbl"}`)
	select {
	case <-next:
	default:
		t.Error("deleting the table leaves its readers waiting")
	}
	if s.StreamNotify("tbl") != nil || s.StreamNotify("hash") != nil {
		t.Error("a table without a stream has a channel")
	}
}

// Two readers follow the stream while writers write: each must see every record
// once, in order, with the pattern in the comment of StreamNotify.
func TestStreamFollowers(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	const writers, each = 4, 50
	seen := make(chan []int64, 2)
	for range 2 {
		go func() {
			var all []int64
			last := int64(0)
			for len(all) < writers*each {
				arrived := s.StreamNotify("tbl")
				var records []StreamRecord
				records, last = s.ReadStream("tbl", last, 7)
				if len(records) == 0 {
					<-arrived
					continue
				}
				for _, r := range records {
					all = append(all, r.Sequence)
				}
			}
			seen <- all
		}()
	}
	for w := range writers {
		go func() {
			for i := range each {
				ask(s, "PutItem", fmt.Sprintf(`{"TableName":"tbl","Item":{"pk":{"S":"%d"},"sk":{"S":"%d"}}}`, w, i))
			}
		}()
	}
	for range 2 {
		select {
		case all := <-seen:
			for i, seq := range all {
				if seq != int64(i)+1 {
					t.Fatalf("record %d has sequence number %d", i+1, seq)
				}
			}
		case <-time.After(30 * time.Second):
			t.Fatal("a reader waits for records that are there")
		}
	}
}

// A stream forgets by number, by size and by age, and never its newest record.
func TestStreamLimits(t *testing.T) {
	t.Parallel()
	put := func(s *Server, pk string, size int) {
		must(t, s, "PutItem", fmt.Sprintf(`{"TableName":"tbl","Item":{"pk":{"S":"%s"},"sk":{"S":"1"},"x":{"S":"%s"}}}`, pk, strings.Repeat("x", size)))
	}
	s := open(t, Options{stream: limits{age: time.Hour, records: 3, bytes: 1 << 20}})
	for _, pk := range []string{"a", "b", "c", "d", "e"} {
		put(s, pk, 1)
	}
	if got, want := events(s, "tbl"), []string{"3 INSERT c", "4 INSERT d", "5 INSERT e"}; !slices.Equal(got, want) {
		t.Errorf("at most three records: %v", got)
	}
	s = open(t, Options{stream: limits{age: time.Hour, records: 100, bytes: 2500}})
	for _, pk := range []string{"a", "b", "c"} {
		put(s, pk, 1000)
	}
	put(s, "d", 3000)
	if got, want := events(s, "tbl"), []string{"4 INSERT d"}; !slices.Equal(got, want) {
		t.Errorf("at most 2500 bytes: %v", got)
	}
	c := newClock()
	s = open(t, Options{Now: c.now, stream: limits{age: time.Hour, records: 100, bytes: 1 << 20}})
	put(s, "a", 1)
	c.advance(40 * time.Minute)
	put(s, "b", 1)
	c.advance(40 * time.Minute)
	put(s, "c", 1)
	if got, want := events(s, "tbl"), []string{"2 INSERT b", "3 INSERT c"}; !slices.Equal(got, want) {
		t.Errorf("at most an hour: %v", got)
	}
}

func TestStreamsAPI(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := open(t, Options{Now: c.now, stream: limits{age: time.Hour, records: 4, bytes: 1 << 20}})
	for i := range 5 {
		must(t, s, "PutItem", fmt.Sprintf(`{"TableName":"tbl","Item":{"pk":{"S":"%d"},"sk":{"S":"1"},"expires":{"N":"5"}}}`, i))
	}
	streams := must(t, s, "ListStreams", `{"TableName":"tbl"}`)["Streams"].([]any)
	if len(streams) != 1 {
		t.Fatalf("streams: %v", streams)
	}
	arn := streams[0].(map[string]any)["StreamArn"].(string)
	if all := must(t, s, "ListStreams", `{}`)["Streams"].([]any); len(all) != 1 {
		t.Errorf("all streams: %v", all)
	}
	description := must(t, s, "DescribeStream", `{"StreamArn":"`+arn+`"}`)["StreamDescription"].(map[string]any)
	shard := description["Shards"].([]any)[0].(map[string]any)["ShardId"].(string)
	if description["StreamStatus"] != "ENABLED" || description["TableName"] != "tbl" {
		t.Errorf("description: %v", description)
	}
	iterator := func(more string) string {
		answer := must(t, s, "GetShardIterator", `{"StreamArn":"`+arn+`","ShardId":"`+shard+`",`+more+`}`)
		return answer["ShardIterator"].(string)
	}
	// read returns the partition keys of a page and where to go on.
	read := func(it string, limit int) (string, string) {
		answer := must(t, s, "GetRecords", fmt.Sprintf(`{"ShardIterator":"%s","Limit":%d}`, it, limit))
		out := ""
		for _, r := range answer["Records"].([]any) {
			record := r.(map[string]any)
			if record["eventSourceARN"] != nil || record["awsRegion"] != "us-east-1" {
				t.Errorf("record: %v", record)
			}
			out += record["dynamodb"].(map[string]any)["Keys"].(map[string]any)["pk"].(map[string]any)["S"].(string)
		}
		return out, answer["NextShardIterator"].(string)
	}
	first, next := read(iterator(`"ShardIteratorType":"TRIM_HORIZON"`), 3)
	second, next := read(next, 3)
	third, _ := read(next, 3)
	if first != "123" || second != "4" || third != "" {
		t.Errorf("pages from the start: %q %q %q", first, second, third)
	}
	latest := iterator(`"ShardIteratorType":"LATEST"`)
	must(t, s, "PutItem", `{"TableName":"tbl","Item":{"pk":{"S":"n"},"sk":{"S":"1"}}}`)
	if got, _ := read(latest, 10); got != "n" {
		t.Errorf("from the latest: %q", got)
	}
	at := formatSequence(4)
	if got, _ := read(iterator(`"ShardIteratorType":"AT_SEQUENCE_NUMBER","SequenceNumber":"`+at+`"`), 1); got != "3" {
		t.Errorf("at number 4: %q", got)
	}
	if got, _ := read(iterator(`"ShardIteratorType":"AFTER_SEQUENCE_NUMBER","SequenceNumber":"`+at+`"`), 1); got != "4" {
		t.Errorf("after number 4: %q", got)
	}
	if _, err := s.Sweep(c.now()); err != nil {
		t.Fatal(err)
	}
	old := iterator(`"ShardIteratorType":"AFTER_SEQUENCE_NUMBER","SequenceNumber":"` + formatSequence(s.seq-1) + `"`)
	must(t, s, "UpdateTimeToLive", `{"TableName":"tbl","TimeToLiveSpecification":{"AttributeName":"expires","Enabled":false}}`)
	for i := range 5 {
		must(t, s, "PutItem", fmt.Sprintf(`{"TableName":"tbl","Item":{"pk":{"S":"%d"},"sk":{"S":"2"}}}`, i))
	}
	for request, want := range map[string]string{
		`GetRecords {"ShardIterator":"` + old + `"}`:    "TrimmedDataAccessException",
		`GetRecords {"ShardIterator":"none"}`:           "ValidationException",
		`GetRecords {"ShardIterator":"` + latest + `"}`: "TrimmedDataAccessException",
		`GetRecords {}`: "ValidationException",
		`DescribeStream {"StreamArn":"` + arn + `x"}`:  "ResourceNotFoundException",
		`DescribeStream {}`:                            "ValidationException",
		`GetShardIterator {"StreamArn":"` + arn + `"}`: "ValidationException",
		`ListStreams {"Limit":0}`:                      "ValidationException",
		`GetShardIterator {"StreamArn":"` + arn + `","ShardId":"other","ShardIteratorType":"LATEST"}`:                                                   "ResourceNotFoundException",
		`GetShardIterator {"StreamArn":"` + arn + `","ShardId":"` + shard + `","ShardIteratorType":"AT_SEQUENCE_NUMBER"}`:                               "ValidationException",
		`GetShardIterator {"StreamArn":"` + arn + `","ShardId":"` + shard + `","ShardIteratorType":"AT_SEQUENCE_NUMBER","SequenceNumber":"1"}`:          "ValidationException",
		`GetShardIterator {"StreamArn":"` + arn + `","ShardId":"` + shard + `","ShardIteratorType":"AT_SEQUENCE_NUMBER","SequenceNumber":"` + at + `"}`: "TrimmedDataAccessException",
	} {
		op, body, _ := strings.Cut(request, " ")
		if status, answer := ask(s, op, body); status != 400 || !strings.Contains(string(answer), want) {
			t.Errorf("%s: %d %s, want %s", request, status, answer, want)
		}
	}
	fresh := iterator(`"ShardIteratorType":"LATEST"`)
	c.advance(iteratorLife + time.Second)
	if status, answer := ask(s, "GetRecords", `{"ShardIterator":"`+fresh+`"}`); status != 400 || !strings.Contains(string(answer), "ExpiredIteratorException") {
		t.Errorf("an old iterator: %d %s", status, answer)
	}
}
