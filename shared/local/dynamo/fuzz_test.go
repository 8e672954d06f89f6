package dynamo

import (
	"encoding/json"
	"strings"
	"testing"
)

// fuzzVars has a placeholder for every kind of value.
func fuzzVars() *placeholders {
	return &placeholders{
		names: map[string]string{"#a": "a", "#n": "name"},
		values: document{
			":s": text("x"), ":n": decimal{digits: "1", exp: 1}, ":b": blob("\x00"), ":l": list{text("x")},
			":m": document{"a": null{}}, ":ss": set{of: kindSS, members: []value{text("x")}}, ":t": text("SS"),
		},
		usedNames: make(map[string]bool), usedValues: make(map[string]bool),
	}
}

// Whatever the text of an expression is, parsing it must end in an error or in
// something that can be evaluated, and an update must leave the old item alone.
func FuzzExpressions(f *testing.F) {
	for _, src := range []string{
		"a = :n AND NOT (b.c[0] <> :s) OR size(#a) BETWEEN :n AND :n", "attribute_type(a, :t) and begins_with(a, :s)",
		"a IN (:s, b, :l)", "contains(a, :s)", "SET a = if_not_exists(b, :n) + :n, l[0] = list_append(l, :l) REMOVE m.a, l[2] ADD n :n DELETE s :ss",
		"a, b.c[1], #n", "((a = b))", "a[", "#", ":", "a.", "SET", "SET a = (b)", "not", strings.Repeat("(", 2000), strings.Repeat("NOT ", 1000) + "a=b",
	} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		item := document{
			"id": text("k"), "a": text("x"), "n": decimal{digits: "1", exp: 1}, "l": list{text("0"), text("1"), document{"a": text("x")}},
			"m": document{"a": decimal{}, "l": list{}}, "s": set{of: kindSS, members: []value{text("x"), text("y")}},
		}
		before := string(appendDocument(nil, item))
		if c, _, err := parseCondition(src, fuzzVars()); err == nil {
			c.holds(item)
			c.holds(nil)
			if tests, err := keyTests(c); err == nil {
				_, _ = testTables[0].schema().rangeFor(tests)
			}
		}
		if tree, _, err := parseProjection(src, fuzzVars()); err == nil {
			tree.project(item)
		}
		if u, err := parseUpdate(src, fuzzVars()); err == nil {
			if out, err := u.apply(item, map[string]kind{"a": kindS}); err == nil {
				var again document
				if raw := appendDocument(nil, out); json.Unmarshal(raw, &again) != nil || !equal(again, out) {
					t.Errorf("%q leaves %s, which does not read back", src, raw)
				}
			}
		}
		if after := string(appendDocument(nil, item)); after != before {
			t.Errorf("%q changed the old item from %s to %s", src, before, after)
		}
	})
}

// Whatever a request is, the answer must be a success or the client's fault, and
// the server must go on.
func FuzzRequests(f *testing.F) {
	for _, e := range []exchange{
		{op: "PutItem", request: `{"TableName":"tbl","Item":{"pk":{"S":"a"},"sk":{"S":"1"},"due":{"N":"1"}},"ConditionExpression":"attribute_not_exists(#p)","ExpressionAttributeNames":{"#p":"pk"}}`},
		{op: "UpdateItem", request: `{"TableName":"tbl","Key":{"pk":{"S":"a"},"sk":{"S":"1"}},"UpdateExpression":"SET x = :v ADD n :n","ExpressionAttributeValues":{":v":{"L":[{"NULL":true}]},":n":{"N":"1e10"}},"ReturnValues":"UPDATED_NEW"}`},
		{op: "DeleteItem", request: `{"TableName":"hash","Key":{"id":{"S":"a"}},"ReturnValues":"ALL_OLD"}`},
		{op: "GetItem", request: `{"TableName":"num","Key":{"pk":{"N":"1"},"sk":{"N":"-1.5"}},"ProjectionExpression":"a.b[0]"}`},
		{op: "Query", request: `{"TableName":"tbl","IndexName":"by-owner","KeyConditionExpression":"owner_id = :o AND due > :d","ExpressionAttributeValues":{":o":{"S":"o"},":d":{"N":"1"}},"Limit":1,"ScanIndexForward":false,"ExclusiveStartKey":{"pk":{"S":"a"},"sk":{"S":"1"},"owner_id":{"S":"o"},"due":{"N":"2"}}}`},
		{op: "Scan", request: `{"TableName":"tbl","FilterExpression":"x = :v","ExpressionAttributeValues":{":v":{"SS":["a"]}},"Segment":1,"TotalSegments":3,"ReturnConsumedCapacity":"INDEXES"}`},
		{op: "BatchGetItem", request: `{"RequestItems":{"hash":{"Keys":[{"id":{"S":"a"}}],"ConsistentRead":true}}}`},
		{op: "BatchWriteItem", request: `{"RequestItems":{"bin":[{"PutRequest":{"Item":{"pk":{"B":"AA=="},"sk":{"B":"AA=="}}}},{"DeleteRequest":{"Key":{"pk":{"B":"AQ=="},"sk":{"B":"AA=="}}}}]}}`},
		{op: "TransactWriteItems", request: `{"ClientRequestToken":"t","TransactItems":[{"Put":{"TableName":"hash","Item":{"id":{"S":"a"}}}},{"ConditionCheck":{"TableName":"hash","Key":{"id":{"S":"b"}},"ConditionExpression":"attribute_exists(id)"}}]}`},
		{op: "TransactGetItems", request: `{"TransactItems":[{"Get":{"TableName":"hash","Key":{"id":{"S":"a"}}}}]}`},
		{op: "CreateTable", request: `{"TableName":"made","AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"BillingMode":"PAY_PER_REQUEST","GlobalSecondaryIndexes":[{"IndexName":"index","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"Projection":{"ProjectionType":"INCLUDE","NonKeyAttributes":["x"]}}],"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"KEYS_ONLY"}}`},
		{op: "DescribeTable", request: `{"TableName":"tbl"}`},
		{op: "ListTables", request: `{"Limit":2,"ExclusiveStartTableName":"hash"}`},
		{op: "DeleteTable", request: `{"TableName":"made"}`},
		{op: "UpdateTimeToLive", request: `{"TableName":"hash","TimeToLiveSpecification":{"AttributeName":"ttl","Enabled":true}}`},
		{op: "DescribeTimeToLive", request: `{"TableName":"hash"}`},
		{op: "ListStreams", request: `{"TableName":"tbl","Limit":1}`},
		{op: "DescribeStream", request: `{"StreamArn":"arn:aws:dynamodb:us-east-1:000000000000:table/tbl/stream/2026-03-01T12:00:00.000"}`},
		{op: "GetShardIterator", request: `{"StreamArn":"arn:aws:dynamodb:us-east-1:000000000000:table/tbl/stream/2026-03-01T12:00:00.000","ShardId":"` + shardID + `","ShardIteratorType":"AT_SEQUENCE_NUMBER","SequenceNumber":"100000000000000000001"}`},
		{op: "GetRecords", request: `{"ShardIterator":"` + shardIterator{Stream: "arn:aws:dynamodb:us-east-1:000000000000:table/tbl/stream/2026-03-01T12:00:00.000", Issued: 1772366400}.String() + `"}`},
	} {
		f.Add(e.op, e.request)
	}
	s := open(f, Options{Now: newClock().now})
	f.Fuzz(func(t *testing.T, op, body string) {
		status, raw := ask(s, op, body)
		if status >= 500 {
			t.Fatalf("%s %s\n%d %s", op, body, status, raw)
		}
		if !json.Valid(raw) {
			t.Fatalf("%s %s\nthe answer is not JSON: %s", op, body, raw)
		}
		// The tables of the seeds come back if the request removed them.
		for _, spec := range testTables {
			if s.tables[spec.Name] == nil {
				if err := s.CreateTable(spec); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// Whatever it reads, the reader of the journal's items must end; and what it
// takes must be written as it was read.
func FuzzDocumentReader(f *testing.F) {
	for _, src := range []string{
		`{"a":{"S":"x\u0001\"é"},"b":{"N":"-1.5"},"c":{"B":"AAE="},"d":{"BOOL":true},"e":{"BOOL":false},"f":{"NULL":true}}`,
		`{"l":{"L":[{"M":{}},{"L":[]},{"SS":["a","b"]},{"NS":["1","2"]},{"BS":["","AA=="]}]}}`, `{}`, `{"a"`, `{"a":{"X":"y"}}`,
	} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		var d document
		if d.UnmarshalJSON([]byte(src)) != nil {
			return
		}
		written := appendDocument(nil, d)
		var again document
		if err := again.UnmarshalJSON(written); err != nil || !equal(d, again) {
			t.Errorf("%q reads as %s, which reads as %s: %v", src, written, appendDocument(nil, again), err)
		}
	})
}
