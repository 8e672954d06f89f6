package records

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"claimcheck.dev/claimcheck/shared/files"
)

// Audit implements files.ReconcileRecords. It reads the counters before and after it adds up the holds. Equal counters
// alone would not prove that nothing moved: one file may have ended and another of the same size begun. So the account
// also counts its `moves`, every hold that begins or ends. What remains is a hold that is seen twice because it moves
// to a later deadline: that of a reservation changes the counters of its actor, and that of an inline file, which
// nothing counts, is seen as such the first time.
func (t *Table) Audit(ctx context.Context, account string) (files.Audit, error) {
	doing := "auditing " + account
	before, moves, err := t.counters(ctx, account)
	if err != nil {
		return files.Audit{}, explain(doing, err)
	}
	held, moving, err := t.held(ctx, account)
	if err != nil {
		return files.Audit{}, explain(doing, err)
	}
	after, movesAfter, err := t.counters(ctx, account)
	if err != nil {
		return files.Audit{}, explain(doing, err)
	}
	stable := !moving && moves == movesAfter && before.Bytes == after.Bytes && before.Files == after.Files && maps.Equal(before.Actors, after.Actors)
	return files.Audit{
		Account: account, Counted: before, Held: held, Stable: stable, Version: strconv.FormatInt(moves, 10),
	}, nil
}

// counters reads the counters of an account and of its actors.
func (t *Table) counters(ctx context.Context, account string) (l files.Ledger, moves int64, err error) {
	l.Actors = map[string]files.ActorLedger{}
	err = t.partition(ctx, accountOf(account), func(row item) (bool, error) {
		r := reader{row: row}
		if actor, ok := strings.CutPrefix(r.text("sk"), actorOf("")); ok {
			if a := (files.ActorLedger{Reservations: r.maybeNumber("reservations"), Unsized: r.maybeNumber("unsized")}); a != (files.ActorLedger{}) {
				l.Actors[actor] = a
			}
		} else {
			l.Bytes, l.Files, moves = r.maybeNumber("bytes"), r.maybeNumber("files"), r.maybeNumber("moves")
		}
		return true, r.err
	})
	return l, moves, err
}

// partition reads every row of a partition with strong consistency.
func (t *Table) partition(ctx context.Context, pk string, visit func(item) (more bool, err error)) error {
	condition := "#pk = :pk"
	return t.query(ctx, dynamodb.QueryInput{
		KeyConditionExpression:    &condition,
		ExpressionAttributeNames:  names(condition),
		ExpressionAttributeValues: item{":pk": text(pk)},
		ConsistentRead:            aws.Bool(true),
	}, visit)
}

// held adds up the holds of an account. Moving tells that one of them is about to move.
func (t *Table) held(ctx context.Context, account string) (l files.Ledger, moving bool, err error) {
	l.Actors = map[string]files.ActorLedger{}
	err = t.partition(ctx, holdsOf(account), func(row item) (bool, error) {
		h, err := decodeHold(row)
		l.Bytes += h.bytes
		l.Files++
		if h.counted {
			a := l.Actors[h.actor]
			a.Reservations++
			a.Unsized += h.unsized
			l.Actors[h.actor] = a
		}
		moving = moving || h.inline
		return true, err
	})
	return l, moving, err
}

// correctLimit is how many rows one transaction of Correct may have; DynamoDB takes 100.
const correctLimit = 100

// Correct implements files.ReconcileRecords. Every transaction depends on the counters of the account, and with them on
// every hold that has begun or ended since the audit.
func (t *Table) Correct(ctx context.Context, a files.Audit) error {
	moves, err := strconv.ParseInt(a.Version, 10, 64)
	if err != nil {
		return fmt.Errorf("correcting %s: the version of the audit: %w", a.Account, err)
	}
	actors := map[string]bool{}
	for _, l := range []map[string]files.ActorLedger{a.Counted.Actors, a.Held.Actors} {
		for name := range l {
			if a.Counted.Actors[name] != a.Held.Actors[name] {
				actors[name] = true
			}
		}
	}
	wrong := slices.Sorted(maps.Keys(actors))
	was := a.Counted
	for first := true; first || len(wrong) > 0; first = false {
		n := min(len(wrong), correctLimit-1)
		x := t.begin()
		x.set(accountKey(a.Account),
			counter{"bytes", was.Bytes, a.Held.Bytes}, counter{"files", was.Files, a.Held.Files}, counter{"moves", moves, moves})
		for _, name := range wrong[:n] {
			counted, held := a.Counted.Actors[name], a.Held.Actors[name]
			x.set(actorKey(a.Account, name),
				counter{"reservations", counted.Reservations, held.Reservations}, counter{"unsized", counted.Unsized, held.Unsized})
		}
		refused, err := t.commit(ctx, x)
		if err != nil {
			return explain("correcting "+a.Account, err)
		}
		if refused != nil {
			return fmt.Errorf("correcting %s: %w", a.Account, files.ErrStateChanged)
		}
		wrong, was = wrong[n:], a.Held
	}
	return nil
}

type counter struct {
	name    string
	was, is int64
}

// set changes counters of one row, provided that they are what they were; one that doesn't exist is zero.
func (x *transaction) set(k item, counters ...counter) {
	var changes, conditions []string
	values := map[string]types.AttributeValue{}
	for _, c := range counters {
		changes = append(changes, fmt.Sprintf("#%s = :%s_is", c.name, c.name))
		condition := fmt.Sprintf("#%s = :%s_was", c.name, c.name)
		if c.was == 0 {
			condition = fmt.Sprintf("(attribute_not_exists(#%s) OR %s)", c.name, condition)
		}
		conditions = append(conditions, condition)
		values[":"+c.name+"_is"], values[":"+c.name+"_was"] = number(c.is), number(c.was)
	}
	x.update(k, "SET "+strings.Join(changes, ", "), strings.Join(conditions, " AND "), values)
}
