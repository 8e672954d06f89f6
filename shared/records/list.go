package records

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"claimcheck.dev/claimcheck/shared/files"
)

var (
	_ files.ListRecords  = (*Table)(nil)
	_ files.UsageRecords = (*Table)(nil)
)

func listOf(account string) string { return "files#" + account }

// Files implements files.ListRecords with one query of an index, which follows the table within moments.
func (t *Table) Files(ctx context.Context, account string, after files.Position, limit int) ([]files.File, bool, error) {
	condition := "#list_pk = :pk"
	values := item{":pk": text(listOf(account))}
	if after != (files.Position{}) {
		condition += " AND #list_sk < :after"
		values[":after"] = text(stamp(after.CreatedAt) + "#" + after.ID)
	}
	out, err := t.client.Query(ctx, &dynamodb.QueryInput{
		TableName:                 &t.name,
		IndexName:                 aws.String(byAccount),
		KeyConditionExpression:    &condition,
		ExpressionAttributeNames:  names(condition),
		ExpressionAttributeValues: values,
		ScanIndexForward:          aws.Bool(false),
		Limit:                     aws.Int32(int32(limit + 1)), // one more tells whether any follow
	})
	if err != nil {
		return nil, false, explain("listing the files of "+account, err)
	}
	rows, more := out.Items, len(out.LastEvaluatedKey) > 0
	if len(rows) > limit {
		rows, more = rows[:limit], true
	}
	list := make([]files.File, len(rows))
	for i, row := range rows {
		if list[i], err = decodeFile(row); err != nil {
			return nil, false, err
		}
	}
	return list, more, nil
}

// Usage implements files.UsageRecords.
func (t *Table) Usage(ctx context.Context, account, actor string) (files.Usage, error) {
	var u files.Usage
	err := t.batch(ctx, []item{accountKey(account), actorKey(account, actor)}, func(row item) error {
		r := reader{row: row}
		if r.text("sk") == usage {
			u.LiveBytes, u.Files = r.maybeNumber("bytes"), r.maybeNumber("files")
		} else {
			u.Reservations = r.maybeNumber("reservations")
		}
		return r.err
	})
	return u, explain("reading the usage of "+account, err)
}

const batchLimit = 100 // keys of one BatchGetItem

// batch reads the rows with the given keys, all different, with strong consistency, and hands those that exist to
// visit, in any order.
func (t *Table) batch(ctx context.Context, keys []item, visit func(item) error) error {
	for len(keys) > 0 {
		n := min(len(keys), batchLimit)
		if err := t.batchOf(ctx, keys[:n], visit); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

// batchOf repeats for the keys that DynamoDB leaves over: it answers with 16 MB at the most, or is short of capacity.
func (t *Table) batchOf(ctx context.Context, keys []item, visit func(item) error) error {
	left := make([]map[string]types.AttributeValue, len(keys))
	for i, k := range keys {
		left[i] = k
	}
	for n := range attempts {
		if err := t.pause(ctx, n); err != nil {
			return err
		}
		out, err := t.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{t.name: {Keys: left, ConsistentRead: aws.Bool(true)}},
		})
		if err != nil {
			return err
		}
		for _, row := range out.Responses[t.name] {
			if err := visit(row); err != nil {
				return err
			}
		}
		if left = out.UnprocessedKeys[t.name].Keys; len(left) == 0 {
			return nil
		}
	}
	return fmt.Errorf("the table left %d rows unread: %w", len(left), files.ErrTryAgain)
}
