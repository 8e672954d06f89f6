package records

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"claimcheck.dev/claimcheck/shared/files"
)

var _ files.SweepRecords = (*Table)(nil)

const (
	byExpiry = "by-expiry" // the index of holds by the minute in which they end
	duePage  = 25          // holds that one page takes of each shard
)

// shardPlace is where the reading of one shard goes on: behind a hold, or at the start.
type shardPlace struct {
	Shard int    `json:"shard"`
	PK    string `json:"pk,omitempty"`
	SK    string `json:"sk,omitempty"`
}

// Due implements files.SweepRecords. It reads the shards of the minute at once; next is a JSON list of those that hold
// more. The index follows the table within moments, so a hold may be missing that was just made, or still be there
// though it has ended.
func (t *Table) Due(ctx context.Context, minute, now time.Time, from string) ([]files.Hold, string, error) {
	places := make([]shardPlace, expiryShards)
	for i := range places {
		places[i].Shard = i
	}
	if from != "" {
		if err := json.Unmarshal([]byte(from), &places); err != nil {
			return nil, "", fmt.Errorf("reading what is due: the place to go on from: %w", err)
		}
	}
	type shard struct {
		holds []files.Hold
		next  *shardPlace
		err   error
	}
	shards := make([]shard, len(places))
	var wg sync.WaitGroup
	for i, p := range places {
		wg.Go(func() {
			s := &shards[i]
			s.holds, s.next, s.err = t.dueIn(ctx, minute, now, p)
		})
	}
	wg.Wait()
	var page []files.Hold
	var more []shardPlace
	for _, s := range shards {
		if s.err != nil {
			return nil, "", explain("reading what is due", s.err)
		}
		page = append(page, s.holds...)
		if s.next != nil {
			more = append(more, *s.next)
		}
	}
	if len(more) == 0 {
		return page, "", nil
	}
	next, err := json.Marshal(more)
	return page, string(next), err
}

// dueIn reads a page of one shard.
func (t *Table) dueIn(ctx context.Context, minute, now time.Time, p shardPlace) ([]files.Hold, *shardPlace, error) {
	partition := dueShard(minute, p.Shard)
	condition := "#due_pk = :pk AND #sk < :after"
	q := dynamodb.QueryInput{
		TableName:                &t.name,
		IndexName:                aws.String(byExpiry),
		KeyConditionExpression:   &condition,
		ExpressionAttributeNames: names(condition),
		ExpressionAttributeValues: item{
			":pk":    text(partition),
			":after": text(stamp(now.Add(time.Second))),
		},
		Limit: aws.Int32(duePage),
	}
	if p.SK != "" {
		q.ExclusiveStartKey = item{"due_pk": text(partition), "pk": text(p.PK), "sk": text(p.SK)}
	}
	out, err := t.client.Query(ctx, &q)
	if err != nil {
		return nil, nil, err
	}
	holds := make([]files.Hold, len(out.Items))
	for i, row := range out.Items {
		h, err := decodeHold(row)
		if err != nil {
			return nil, nil, err
		}
		holds[i] = files.Hold{Account: h.account, ID: h.id, Deadline: h.deadline}
	}
	if len(out.LastEvaluatedKey) == 0 {
		return holds, nil, nil
	}
	r := reader{row: out.LastEvaluatedKey}
	next := &shardPlace{Shard: p.Shard, PK: r.text("pk"), SK: r.text("sk")}
	return holds, next, r.err
}

func watermarkKey() item { return key("sweep", "watermark") }

// Watermark implements files.SweepRecords.
func (t *Table) Watermark(ctx context.Context) (time.Time, error) {
	row, err := t.get(ctx, watermarkKey())
	if err != nil {
		return time.Time{}, explain("reading the watermark", err)
	}
	r := reader{row: row}
	minute := r.maybeTime("swept_to")
	if r.err != nil {
		return time.Time{}, fmt.Errorf("decoding the watermark: %w", r.err)
	}
	return minute, nil
}

// SetWatermark implements files.SweepRecords.
func (t *Table) SetWatermark(ctx context.Context, minute time.Time) error {
	change, condition := "SET #swept_to = :minute", "attribute_not_exists(#swept_to) OR #swept_to < :minute"
	_, err := t.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 &t.name,
		Key:                       watermarkKey(),
		UpdateExpression:          &change,
		ConditionExpression:       &condition,
		ExpressionAttributeNames:  names(change, condition),
		ExpressionAttributeValues: item{":minute": epoch(minute)},
	})
	var refused *types.ConditionalCheckFailedException
	if errors.As(err, &refused) {
		return nil
	}
	return explain("moving the watermark", err)
}
