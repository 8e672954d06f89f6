package adapters_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
	"claimcheck.dev/claimcheck/shared/local/dynamo"
)

func rowKey(pk, sk string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: pk}, "sk": &types.AttributeValueMemberS{Value: sk},
	}
}

// dropHold removes the hold of a file behind the adapter's back.
func (e *engine) dropHold(t testing.TB, f files.File) {
	t.Helper()
	_, err := e.client.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{
		TableName: aws.String(tableName), Key: rowKey("hold#"+f.Account, fmt.Sprintf("%012d#%s", f.Deadline().Unix(), f.ID)),
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (e *engine) setAccount(t testing.TB, account string, u filestest.AccountUsage) {
	t.Helper()
	e.setCounters(t, rowKey("account#"+account, "usage"), "bytes", u.Bytes, "files", u.Files)
}

func (e *engine) setActor(t testing.TB, id filestest.ActorID, u filestest.ActorUsage) {
	t.Helper()
	e.setCounters(t, rowKey("account#"+id.Account, "actor#"+id.Actor), "reservations", u.Reservations, "unsized", u.Unsized)
}

// setCounters sets two counters of a row and leaves its others alone.
func (e *engine) setCounters(t testing.TB, key map[string]types.AttributeValue, a string, x int64, b string, y int64) {
	t.Helper()
	num := func(n int64) types.AttributeValue { return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)} }
	_, err := e.client.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{
		TableName: aws.String(tableName), Key: key,
		UpdateExpression:          aws.String("SET #a = :a, #b = :b"),
		ExpressionAttributeNames:  map[string]string{"#a": a, "#b": b},
		ExpressionAttributeValues: map[string]types.AttributeValue{":a": num(x), ":b": num(y)},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestLifecycle(t *testing.T) {
	t.Parallel()
	filestest.TestLifecycle(t, func(t *testing.T) filestest.Table { return openTable(t).underTest() })
}

var _ = rand.N[int]
var _ sync.Mutex
var _ dynamo.Fault
