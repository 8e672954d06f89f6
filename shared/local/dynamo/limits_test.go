package dynamo

import (
	"fmt"
	"strings"
	"testing"
)

// joined repeats a format with consecutive numbers, separated by commas.
func joined(n int, format string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(parts, ",")
}

// Every limit is tried at its edge: one side is accepted, the other is refused
// in the service's words.
func TestLimits(t *testing.T) {
	t.Parallel()
	big := func(n int) string { return strings.Repeat("x", n) }
	nested := func(n int) string {
		return strings.Repeat(`{"L":[`, n) + `{"S":"x"}` + strings.Repeat(`]}`, n)
	}
	item := func(pad int) string {
		// id (2) + a (1) + x (1) and the padding
		return fmt.Sprintf(`{"TableName":"hash","Item":{"id":{"S":"a"},"x":{"S":"%s"}}}`, big(pad-4))
	}
	for name, c := range map[string]struct {
		op        string
		good, bad string
		message   string
	}{
		"item size": {
			"PutItem", item(maxItemSize), item(maxItemSize + 1), "Item size has exceeded the maximum allowed size",
		},
		"item size in a batch": {
			"BatchWriteItem",
			fmt.Sprintf(`{"RequestItems":{"hash":[{"PutRequest":{"Item":{"id":{"S":"b"},"x":{"S":"%s"}}}}]}}`, big(maxItemSize-4)),
			fmt.Sprintf(`{"RequestItems":{"hash":[{"PutRequest":{"Item":{"id":{"S":"b"},"x":{"S":"%s"}}}}]}}`, big(maxItemSize-3)),
			"Item size has exceeded the maximum allowed size",
		},
		"item size by update": {
			"UpdateItem",
			fmt.Sprintf(`{"TableName":"hash","Key":{"id":{"S":"u"}},"UpdateExpression":"SET x = :v","ExpressionAttributeValues":{":v":{"S":"%s"}}}`, big(maxItemSize-4)),
			fmt.Sprintf(`{"TableName":"hash","Key":{"id":{"S":"u"}},"UpdateExpression":"SET x = :v","ExpressionAttributeValues":{":v":{"S":"%s"}}}`, big(maxItemSize-3)),
			"Item size to update has exceeded the maximum allowed size",
		},
		"partition key": {
			"PutItem",
			`{"TableName":"hash","Item":{"id":{"S":"` + big(2048) + `"}}}`, `{"TableName":"hash","Item":{"id":{"S":"` + big(2049) + `"}}}`,
			"One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes",
		},
		"sort key": {
			"PutItem",
			`{"TableName":"tbl","Item":{"pk":{"S":"a"},"sk":{"S":"` + big(1024) + `"}}}`, `{"TableName":"tbl","Item":{"pk":{"S":"a"},"sk":{"S":"` + big(1025) + `"}}}`,
			"One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size limit of 1024 bytes",
		},
		"index key": {
			"PutItem",
			`{"TableName":"tbl","Item":{"pk":{"S":"a"},"sk":{"S":"1"},"owner_id":{"S":"` + big(2048) + `"}}}`, `{"TableName":"tbl","Item":{"pk":{"S":"a"},"sk":{"S":"1"},"owner_id":{"S":"` + big(2049) + `"}}}`,
			"One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes",
		},
		"nesting": {
			"PutItem",
			`{"TableName":"hash","Item":{"id":{"S":"n"},"x":` + nested(maxNesting-1) + `}}`, `{"TableName":"hash","Item":{"id":{"S":"n"},"x":` + nested(maxNesting) + `}}`,
			"Nesting Levels have exceeded supported limits",
		},
		"table name": {
			"CreateTable",
			`{"TableName":"` + big(255) + `","AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"BillingMode":"PAY_PER_REQUEST"}`,
			`{"TableName":"` + big(256) + `","AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"BillingMode":"PAY_PER_REQUEST"}`,
			"1 validation error detected: Value '" + big(256) + "' at 'tableName' failed to satisfy constraint: Member must have length less than or equal to 255",
		},
		"expression size": {
			"GetItem",
			`{"TableName":"hash","Key":{"id":{"S":"a"}},"ProjectionExpression":"` + big(4096) + `"}`, `{"TableName":"hash","Key":{"id":{"S":"a"}},"ProjectionExpression":"` + big(4097) + `"}`,
			"Invalid ProjectionExpression: Expression size has exceeded the maximum allowed size; expression size: 4097",
		},
		"operators": {
			"Scan",
			`{"TableName":"hash","FilterExpression":"NOT a=b` + strings.Repeat(" OR a=b", 149) + `"}`,
			`{"TableName":"hash","FilterExpression":"NOT NOT a=b` + strings.Repeat(" OR a=b", 149) + `"}`,
			"Invalid FilterExpression: The expression contains too many operators; operator count: 301",
		},
		"operands of IN": {
			"Scan",
			`{"TableName":"hash","FilterExpression":"a IN (` + joined(100, "b%d") + `)"}`, `{"TableName":"hash","FilterExpression":"a IN (` + joined(101, "b%d") + `)"}`,
			"Invalid FilterExpression: Incorrect number of operands for operator or function; operator or function: IN, number of operands: 102",
		},
		"actions": {
			"TransactWriteItems",
			`{"TransactItems":[` + joined(100, `{"Delete":{"TableName":"hash","Key":{"id":{"S":"%d"}}}}`) + `]}`, `{"TransactItems":[` + joined(101, `{"Delete":{"TableName":"hash","Key":{"id":{"S":"%d"}}}}`) + `]}`,
			"1 validation error detected: Value '[101 actions]' at 'transactItems' failed to satisfy constraint: Member must have length less than or equal to 100",
		},
		"gets": {
			"TransactGetItems",
			`{"TransactItems":[` + joined(100, `{"Get":{"TableName":"hash","Key":{"id":{"S":"%d"}}}}`) + `]}`, `{"TransactItems":[` + joined(101, `{"Get":{"TableName":"hash","Key":{"id":{"S":"%d"}}}}`) + `]}`,
			"1 validation error detected: Value '[101 actions]' at 'transactItems' failed to satisfy constraint: Member must have length less than or equal to 100",
		},
		"transaction size": {
			"TransactWriteItems",
			`{"TransactItems":[` + joined(10, `{"Put":{"TableName":"hash","Item":{"id":{"S":"t%d"},"x":{"S":"`+big(400_000)+`"}}}}`) + `]}`,
			`{"TransactItems":[` + joined(11, `{"Put":{"TableName":"hash","Item":{"id":{"S":"t%d"},"x":{"S":"`+big(400_000)+`"}}}}`) + `]}`,
			"Transaction size has exceeded the maximum allowed size of 4 MB",
		},
		"batch writes": {
			"BatchWriteItem",
			`{"RequestItems":{"hash":[` + joined(25, `{"DeleteRequest":{"Key":{"id":{"S":"%d"}}}}`) + `]}}`, `{"RequestItems":{"hash":[` + joined(26, `{"DeleteRequest":{"Key":{"id":{"S":"%d"}}}}`) + `]}}`,
			"1 validation error detected: Value '{hash=[...]}' at 'requestItems' failed to satisfy constraint: Map value must satisfy constraint: [Member must have length less than or equal to 25, Member must have length greater than or equal to 1]",
		},
		"batch writes over two tables": {
			"BatchWriteItem",
			`{"RequestItems":{"hash":[` + joined(24, `{"DeleteRequest":{"Key":{"id":{"S":"%d"}}}}`) + `],"num":[{"DeleteRequest":{"Key":{"pk":{"N":"1"},"sk":{"N":"1"}}}}]}}`,
			`{"RequestItems":{"hash":[` + joined(25, `{"DeleteRequest":{"Key":{"id":{"S":"%d"}}}}`) + `],"num":[{"DeleteRequest":{"Key":{"pk":{"N":"1"},"sk":{"N":"1"}}}}]}}`,
			"Too many items requested for the BatchWriteItem call",
		},
		"batch gets": {
			"BatchGetItem",
			`{"RequestItems":{"hash":{"Keys":[` + joined(100, `{"id":{"S":"%d"}}`) + `]}}}`, `{"RequestItems":{"hash":{"Keys":[` + joined(101, `{"id":{"S":"%d"}}`) + `]}}}`,
			"1 validation error detected: Value at 'RequestItems.hash.member.Keys' failed to satisfy constraint: Member must have length less than or equal to 100",
		},
		"tables in a list": {
			"ListTables", `{"Limit":100}`, `{"Limit":101}`,
			"1 validation error detected: Value '101' at 'limit' failed to satisfy constraint: Member must have value less than or equal to 100",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, Options{})
			if status, answer := ask(s, c.op, c.good); status != 200 {
				t.Errorf("at the limit: %d %.500s", status, answer)
			}
			status, answer := ask(s, c.op, c.bad)
			if status != 400 || !strings.Contains(string(answer), `"message":"`+c.message+`"`) {
				t.Errorf("past the limit: %d %.500s", status, answer)
			}
		})
	}
}

// A page holds up to 1 MB of items, whatever a filter or projection leaves of
// them, and a batch up to 16 MB.
func TestPageSize(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	const size = 300_000
	x := text(strings.Repeat("x", size))
	for i := range 60 {
		item := document{"pk": text("p"), "sk": text(fmt.Sprintf("%03d", i)), "x": x}
		key, err := s.tables["tbl"].locate(item)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.commit(commit{changes: []change{{table: s.tables["tbl"], key: key, new: item}}}); err != nil {
			t.Fatal(err)
		}
	}
	for op, body := range map[string]string{
		"Query": `{"TableName":"tbl","KeyConditionExpression":"pk = :p","FilterExpression":"attribute_not_exists(x)","ExpressionAttributeValues":{":p":{"S":"p"}},"ReturnConsumedCapacity":"TOTAL"}`,
		"Scan":  `{"TableName":"tbl","Select":"COUNT","ReturnConsumedCapacity":"TOTAL"}`,
	} {
		answer := must(t, s, op, body)
		if answer["ScannedCount"] != 3.0 || answer["LastEvaluatedKey"].(map[string]any)["sk"].(map[string]any)["S"] != "002" {
			t.Errorf("%s: %v items up to %v", op, answer["ScannedCount"], answer["LastEvaluatedKey"])
		}
		// 3 × 300,009 bytes in blocks of 4 KB, at half a unit.
		if units := answer["ConsumedCapacity"].(map[string]any)["CapacityUnits"]; units != 110.0 {
			t.Errorf("%s: %v units", op, units)
		}
	}
	// 16 MB are not encoded and decoded only to be counted.
	request, err := parseBody([]byte(`{"RequestItems":{"tbl":{"ConsistentRead":true,"Keys":[` + joined(60, `{"pk":{"S":"p"},"sk":{"S":"%03d"}}`) + `]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	batch, err := s.batchGetItem(request)
	if err != nil {
		t.Fatal(err)
	}
	answer := batch.(map[string]any)
	got := len(answer["Responses"].(map[string][]document)["tbl"])
	rest := answer["UnprocessedKeys"].(map[string]any)["tbl"].(object)
	if left := len(rest["Keys"].([]object)); got != 55 || got+left != 60 || rest["ConsistentRead"] != true {
		t.Errorf("a batch returned %d items and left %d", got, left)
	}
}
