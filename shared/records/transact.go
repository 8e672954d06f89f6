package records

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"claimcheck.dev/claimcheck/shared/files"
)

// attempts bounds how often one transaction is tried while other writers keep its rows, with pauses of a random part of
// firstPause, doubled each time up to longPause: two seconds at the most, one on average. The SDK repeats
// what fails as a whole (throttling, 5xx, timeouts) by itself, within each attempt.
const (
	attempts   = 8
	firstPause = 25 * time.Millisecond
	longPause  = 400 * time.Millisecond
)

const tokenLength = 26 // characters of [a-z0-9] in a random token; DynamoDB takes 36

// transaction is one all-or-nothing write under construction. Every row may occur once.
type transaction struct {
	table string
	token string
	items []types.TransactWriteItem
}

func (t *Table) begin() *transaction {
	return &transaction{table: t.name, token: files.RandomText(tokenLength)}
}

// The index that put, update and remove return identifies the row in a refusal. Their conditions may be "".

func (x *transaction) put(row item, condition string, values item) int {
	x.items = append(x.items, types.TransactWriteItem{Put: &types.Put{
		TableName:                           &x.table,
		Item:                                row,
		ConditionExpression:                 optional(condition),
		ExpressionAttributeNames:            optionalNames(condition),
		ExpressionAttributeValues:           optionalValues(values),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}})
	return len(x.items) - 1
}

func (x *transaction) update(k item, change, condition string, values item) int {
	x.items = append(x.items, types.TransactWriteItem{Update: &types.Update{
		TableName:                           &x.table,
		Key:                                 k,
		UpdateExpression:                    &change,
		ConditionExpression:                 optional(condition),
		ExpressionAttributeNames:            names(change, condition),
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}})
	return len(x.items) - 1
}

func (x *transaction) remove(k item, condition string, values item) int {
	x.items = append(x.items, types.TransactWriteItem{Delete: &types.Delete{
		TableName:                           &x.table,
		Key:                                 k,
		ConditionExpression:                 optional(condition),
		ExpressionAttributeNames:            optionalNames(condition),
		ExpressionAttributeValues:           optionalValues(values),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}})
	return len(x.items) - 1
}

// check makes the transaction depend on a row without changing it.
func (x *transaction) check(k item, condition string, values item) int {
	x.items = append(x.items, types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName:                           &x.table,
		Key:                                 k,
		ConditionExpression:                 &condition,
		ExpressionAttributeNames:            names(condition),
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}})
	return len(x.items) - 1
}

// DynamoDB refuses expressions and maps that are there but empty.

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func optionalNames(condition string) map[string]string {
	if n := names(condition); len(n) > 0 {
		return n
	}
	return nil
}

func optionalValues(values item) item {
	if len(values) == 0 {
		return nil
	}
	return values
}

// refusal says which conditions of a transaction did not hold, by the index of their rows.
type refusal []types.CancellationReason

const conditionFailed = "ConditionalCheckFailed"

// at reports whether the condition of row i failed, and the row as it is; nil when it doesn't exist. The index -1 stands
// for a row that took no part.
func (r refusal) at(i int) (row item, failed bool) {
	if i < 0 || i >= len(r) || aws.ToString(r[i].Code) != conditionFailed {
		return nil, false
	}
	if len(r[i].Item) == 0 {
		return nil, true
	}
	return r[i].Item, true
}

// wrote reports whether a row was written last with the given token: by an attempt of ours whose reply was lost.
func wrote(row item, token string) bool {
	v, ok := row["write"].(*types.AttributeValueMemberS)
	return ok && v.Value == token
}

// commit tries x until it succeeds (nil, nil), a condition fails for good (a refusal), or the attempts are over: then
// the error wraps files.ErrTryAgain, and x may have taken effect or not.
//
// Every attempt has a ClientRequestToken of its own, which the SDK's repeats within it share. DynamoDB may want the
// request of a token again byte for byte, and the SDK writes maps in another order each time
// (https://github.com/aws/aws-sdk-go-v2/issues/3131). An earlier attempt that took effect is known by its conditions.
func (t *Table) commit(ctx context.Context, x *transaction) (refusal, error) {
	var last error
	for n := range attempts {
		if err := t.pause(ctx, n); err != nil {
			return nil, err
		}
		_, err := t.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
			TransactItems:      x.items,
			ClientRequestToken: aws.String(files.RandomText(tokenLength)),
		})
		var canceled *types.TransactionCanceledException
		var running *types.TransactionInProgressException
		switch {
		case err == nil:
			return nil, nil
		case errors.As(err, &running): // an earlier request of this attempt, whose reply was lost
		case !errors.As(err, &canceled):
			return nil, err
		default:
			again, fault := judge(canceled.CancellationReasons, err)
			if fault != nil {
				return nil, fault
			}
			if !again {
				return canceled.CancellationReasons, nil
			}
		}
		last = err
	}
	return nil, fmt.Errorf("%w: %w", errBusy, last)
}

var errBusy = fmt.Errorf("other writers kept the rows busy: %w", files.ErrTryAgain)

// pause waits before attempt n, counted from 0.
func (t *Table) pause(ctx context.Context, n int) error {
	if n == 0 {
		return nil
	}
	return t.sleep(ctx, rand.N(min(firstPause<<(n-1), longPause)))
}

// judge decides what the reasons of a cancelled transaction mean. Another writer's conflict, or throttling, on any row
// makes the whole attempt inconclusive: a condition that failed beside it may only look decisive, such as a limit next
// to an idempotency row that could not be checked.
func judge(reasons []types.CancellationReason, err error) (again bool, _ error) {
	decided := false
	for _, r := range reasons {
		switch aws.ToString(r.Code) {
		case "", "None":
		case conditionFailed:
			decided = true
		case "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded":
			again = true
		default: // ValidationError, ItemCollectionSizeLimitExceeded: a fault of this package
			return false, err
		}
	}
	if !again && !decided {
		return false, err
	}
	return again, nil
}
