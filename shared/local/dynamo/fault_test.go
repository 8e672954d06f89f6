package dynamo

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// always injects one fault into every request.
func always(f Fault) func(string, []byte) Fault { return func(string, []byte) Fault { return f } }

func TestFaultAnswers(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	const (
		put      = `{"TableName":"hash","Item":{"id":{"S":"a"}}}`
		transact = `{"TransactItems":[{"Put":{"TableName":"hash","Item":{"id":{"S":"a"}}}},{"Put":{"TableName":"hash","Item":{"id":{"S":"b"}}}}]}`
		gets     = `{"TransactItems":[{"Get":{"TableName":"hash","Key":{"id":{"S":"a"}}}}]}`
	)
	for _, c := range []struct {
		fault    Fault
		op, body string
		status   int
		contains string
	}{
		{FaultConflict, "PutItem", put, 400, "#TransactionConflictException"},
		{FaultConflict, "BatchWriteItem", `{"RequestItems":{"hash":[{"PutRequest":{"Item":{"id":{"S":"a"}}}}]}}`, 400, "#TransactionConflictException"},
		{FaultConflict, "TransactWriteItems", transact, 400, `"CancellationReasons":[{"Code":"TransactionConflict","Message":"Transaction is ongoing for the item"},{"Code":"None"}]`},
		{FaultConflict, "TransactGetItems", gets, 400, "[TransactionConflict]"},
		{FaultConflict, "GetItem", `{}`, 500, "cannot conflict"},
		{FaultThrottle, "PutItem", put, 400, "#ProvisionedThroughputExceededException"},
		{FaultThrottle, "TransactWriteItems", transact, 400, "#ProvisionedThroughputExceededException"},
		{FaultInternal, "PutItem", put, 500, "#InternalServerError"},
	} {
		s.SetFaults(always(c.fault))
		status, answer := ask(s, c.op, c.body)
		if status != c.status || !strings.Contains(string(answer), c.contains) {
			t.Errorf("fault %d in %s: %d %s", c.fault, c.op, status, answer)
		}
	}
	s.SetFaults(nil)
	if n := must(t, s, "Scan", `{"TableName":"hash"}`)["Count"]; n != 0.0 {
		t.Errorf("the faults wrote %v items", n)
	}
}

// The reply of FaultLostReply is lost, and what was asked has been done.
func TestLostReply(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := open(t, Options{Faults: always(FaultLostReply)})
	db := client(t, s)
	_, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("hash"), Item: attrs{"id": str("a")}})
	if err == nil || !strings.Contains(err.Error(), "EOF") {
		t.Errorf("the reply came: %v", err)
	}
	// A request that fails by itself is answered.
	_, err = db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("hash"), Item: attrs{"id": str("a")}, ConditionExpression: aws.String("attribute_not_exists(id)")})
	var failed *types.ConditionalCheckFailedException
	if !errors.As(err, &failed) {
		t.Errorf("a failed condition: %v", err)
	}
	// Without a connection to cut it is a status 500.
	if status, _ := ask(s, "PutItem", `{"TableName":"hash","Item":{"id":{"S":"b"}}}`); status != 500 {
		t.Errorf("a recorded reply: %d", status)
	}
	s.SetFaults(nil)
	if n := must(t, s, "Scan", `{"TableName":"hash"}`)["Count"]; n != 2.0 {
		t.Errorf("%v items were written, want 2", n)
	}
}

// The SDK retries throttling, internal errors and lost replies by itself, and a
// token makes the last harmless.
func TestSDKRetriesFaults(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, fault := range []Fault{FaultThrottle, FaultInternal, FaultLostReply} {
		var calls atomic.Int64
		s := open(t, Options{Faults: func(op string, body []byte) Fault {
			if op == "TransactWriteItems" && strings.Contains(string(body), `"hash"`) && calls.Add(1) <= 2 {
				return fault
			}
			return FaultNone
		}})
		db := client(t, s)
		_, err := db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
			ClientRequestToken: aws.String("once"),
			TransactItems: []types.TransactWriteItem{{Update: &types.Update{
				TableName: aws.String("hash"), Key: attrs{"id": str("a")}, UpdateExpression: aws.String("ADD n :1"), ExpressionAttributeValues: attrs{":1": num(1)},
			}}},
		}, func(o *dynamodb.Options) {
			o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = 1 })
		})
		if err != nil || calls.Load() != 3 {
			t.Errorf("fault %d: %v after %d attempts", fault, err, calls.Load())
		}
		item := fmt.Sprint(must(t, s, "GetItem", `{"TableName":"hash","Key":{"id":{"S":"a"}}}`)["Item"])
		if item != "map[id:map[S:a] n:map[N:1]]" {
			t.Errorf("fault %d: %s", fault, item)
		}
	}
}
