package records

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"claimcheck.dev/claimcheck/shared/files"
)

// expiryShards spreads the holds of one minute over the partitions of the by-expiry index.
const expiryShards = 8

func holdsOf(account string) string { return "hold#" + account }

// holdKey is where the hold of f is while f is in its state.
func holdKey(f files.File) item {
	return key(holdsOf(f.Account), stamp(f.Deadline())+"#"+f.ID)
}

// holdRow is the row of the quota that f holds in its state.
func holdRow(f files.File) item {
	row := holdKey(f)
	row["due_pk"] = text(duePartition(f.Deadline(), f.ID))
	row["actor"] = text(f.Actor)
	row["bytes"] = number(f.Charged)
	row.setTrue("counted", f.State == files.Reserved && f.Counted)
	row.setTrue("inline", f.State == files.Reserved && !f.Counted)
	if n := unsized(f); n > 0 {
		row["unsized"] = number(n)
	}
	return row
}

// duePartition is the partition of by-expiry with the holds that end in the minute of deadline, for the shard of id.
func duePartition(deadline time.Time, id string) string {
	h := fnv.New32a()
	h.Write([]byte(id))
	return dueShard(deadline, int(h.Sum32()%expiryShards))
}

func dueShard(minute time.Time, shard int) string {
	return fmt.Sprintf("%d#%d", minute.Unix()/60, shard)
}

// hold is a decoded hold row.
type hold struct {
	account  string
	id       string // of the file
	actor    string
	deadline time.Time
	bytes    int64
	counted  bool  // is a reservation of its actor
	inline   bool  // waits for the bytes of an inline file, for a moment
	unsized  int64 // the part of bytes that stands for an unknown size
}

func decodeHold(row item) (hold, error) {
	r := reader{row: row}
	at, id, _ := strings.Cut(r.text("sk"), "#")
	deadline, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		r.fail("sk", "a time and a file id")
	}
	h := hold{
		account:  strings.TrimPrefix(r.text("pk"), holdsOf("")),
		id:       id,
		actor:    r.text("actor"),
		deadline: time.Unix(deadline, 0).UTC(),
		bytes:    r.number("bytes"),
		counted:  r.flag("counted"),
		inline:   r.flag("inline"),
		unsized:  r.maybeNumber("unsized"),
	}
	if r.err != nil {
		return hold{}, fmt.Errorf("decoding the hold of %s: %w", id, r.err)
	}
	return h, nil
}

// discharge takes h off the counters.
func (x *transaction) discharge(h hold) {
	x.update(accountKey(h.account), "ADD #bytes :n, #files :less, #moves :one", "",
		item{":n": number(-h.bytes), ":less": number(-1), ":one": number(1)})
	x.unreserve(h)
}

// unreserve takes h off the counters of its actor, if it is there.
func (x *transaction) unreserve(h hold) {
	if !h.counted {
		return
	}
	change := "ADD #reservations :less"
	values := item{":less": number(-1)}
	if h.unsized > 0 {
		change += ", #unsized :n"
		values[":n"] = number(-h.unsized)
	}
	x.update(actorKey(h.account, h.actor), change, "", values)
}

// endedHolds selects the holds of an account whose deadline is not after now.
func endedHolds(account string, now time.Time) dynamodb.QueryInput {
	condition := "#pk = :pk AND #sk < :after"
	return dynamodb.QueryInput{
		KeyConditionExpression:   &condition,
		ExpressionAttributeNames: names(condition),
		ExpressionAttributeValues: item{
			":pk":    text(holdsOf(account)),
			":after": text(stamp(now.Add(time.Second))),
		},
		ConsistentRead: aws.Bool(true),
	}
}

// EndedHolds implements files.Creator.
func (t *Table) EndedHolds(ctx context.Context, account string, now time.Time, limit int) ([]string, error) {
	q := endedHolds(account, now)
	q.Limit = aws.Int32(int32(limit))
	var ids []string
	err := t.query(ctx, q, func(row item) (bool, error) {
		h, err := decodeHold(row)
		ids = append(ids, h.id)
		return len(ids) < limit, err
	})
	if err != nil {
		return nil, explain("reading the ended holds of "+account, err)
	}
	return ids, nil
}

// NextEnd implements files.Creator.
func (t *Table) NextEnd(ctx context.Context, account, actor string, kind files.LimitKind) (time.Time, error) {
	condition := "#pk = :pk"
	values := item{":pk": text(holdsOf(account))}
	q := dynamodb.QueryInput{KeyConditionExpression: &condition, ConsistentRead: aws.Bool(true)}
	var filter string
	switch kind {
	case files.LimitReservations:
		filter = "#actor = :actor AND #counted = :true"
		values[":true"] = boolean(true)
	case files.LimitUnsized:
		filter = "#actor = :actor AND #unsized > :zero"
		values[":zero"] = number(0)
	}
	if filter == "" {
		q.Limit = aws.Int32(1)
	} else {
		values[":actor"] = text(actor)
		q.FilterExpression = &filter
	}
	q.ExpressionAttributeNames = names(condition, filter)
	q.ExpressionAttributeValues = values
	var end time.Time
	err := t.query(ctx, q, func(row item) (bool, error) {
		h, err := decodeHold(row)
		end = h.deadline
		return false, err
	})
	return end, explain("reading the holds of "+account, err)
}

// Release implements files.Creator.
func (t *Table) Release(ctx context.Context, account, id string, now time.Time) error {
	for range attempts {
		f, err := t.File(ctx, id)
		if err != nil && !errors.Is(err, files.ErrFileNotFound) {
			return err
		}
		if err != nil || f.Account != account {
			return t.releaseLeft(ctx, account, id, now)
		}
		if !f.State.Live() {
			return t.releaseOf(ctx, f)
		}
		if f.At(now) != files.Expired {
			return nil // verified meanwhile: its quota is held on
		}
		_, err = t.End(ctx, f, files.Ending{State: files.Expired, At: now})
		if !errors.Is(err, files.ErrStateChanged) {
			return err
		}
	}
	return fmt.Errorf("releasing the hold of %s: its state keeps changing: %w", id, files.ErrTryAgain)
}

// releaseOf ends the hold of a file that has ended. Usually that is done and there is nothing to do, so it must be
// cheap: a sweep meets such files whenever the index shows it what another one has just ended.
func (t *Table) releaseOf(ctx context.Context, f files.File) error {
	reserved, ready := f, f
	reserved.State, ready.State = files.Reserved, files.Ready
	for _, at := range []files.File{reserved, ready} {
		row, err := t.get(ctx, holdKey(at))
		if err != nil {
			return explain("looking for the hold of "+f.ID, err)
		}
		if row == nil {
			continue
		}
		h, err := decodeHold(row)
		if err != nil {
			return err
		}
		return t.releaseHold(ctx, h)
	}
	return nil
}

// releaseLeft ends a hold whose file is not there any more: TTL may have removed the row of a file that nobody ended.
// The deadline in its key went with the row, so all ended holds of the account are looked through.
func (t *Table) releaseLeft(ctx context.Context, account, id string, now time.Time) error {
	var left *hold
	err := t.query(ctx, endedHolds(account, now), func(row item) (bool, error) {
		h, err := decodeHold(row)
		if err == nil && h.id == id {
			left = &h
		}
		return left == nil, err
	})
	if err != nil {
		return explain("looking for the hold of "+id, err)
	}
	if left == nil {
		return nil
	}
	return t.releaseHold(ctx, *left)
}

func (t *Table) releaseHold(ctx context.Context, h hold) error {
	x := t.begin()
	x.remove(key(holdsOf(h.account), stamp(h.deadline)+"#"+h.id), "attribute_exists(#pk)", nil)
	x.discharge(h)
	_, err := t.commit(ctx, x) // refused: another release took it
	return explain("releasing the hold of "+h.id, err)
}
