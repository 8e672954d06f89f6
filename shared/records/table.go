// Package records keeps files, their quotas and the keys of access in one DynamoDB table. It is the one place that
// knows table keys, attributes, conditions and TTL.
//
// What the table holds, one line a row, with its partition key `pk` and sort key `sk`:
//
//	file         <file id>                      file               the record of a file
//	hold         hold#<account>                 <deadline>#<id>    the quota a live file holds, in the order they end
//	account      account#<account>              usage              bytes and files that are charged now
//	actor        account#<account>              actor#<actor>      reservations, and bytes reserved without a size
//	idempotency  idem#<account>#<digest>        idem               which file a request made
//	key          key#<key id>                   key                the record of a key
//	watermark    sweep                          watermark          the minute up to which ended files were swept
//	progress     reconcile                      progress           where reconciling goes on
//
// A hold exists exactly as long as its file is live in the table; every write that ends a file deletes the hold and
// takes its values off the counters in one transaction, so the counters are always the sums of the holds. The clock
// may have passed a hold's deadline long before anything writes: whoever needs the room looks for such holds and
// releases them, so that quotas are free at the second of expiry.
//
// Two indexes: by-account (`list_pk`, `list_sk`) lists files and keys, newest first; by-expiry (`due_pk`, `sk`) finds
// the holds that end in a given minute. `ttl` removes what nobody will ask for again, and decides nothing.
//
// Every transaction carries a random token as the attribute `write` of the file it changes. When a reply is lost, the
// repeat finds its own token in the row and knows that it has succeeded.
package records

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/awsenv"
	"claimcheck.dev/claimcheck/shared/files"
)

const byAccount = "by-account" // the index of lists

// Options are what tests change.
type Options struct {
	// Sleep waits between the attempts of a transaction; nil waits in real time.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Table is the table seen as the domain's records. It is safe for concurrent use.
type Table struct {
	client *dynamodb.Client
	name   string
	sleep  func(ctx context.Context, d time.Duration) error
}

// Connect returns the table of a function with the given environment.
func Connect(env awsenv.Env, name string) *Table {
	client := dynamodb.NewFromConfig(env.Config(), func(o *dynamodb.Options) { o.BaseEndpoint = env.BaseEndpoint("DYNAMODB") })
	return New(client, name, Options{})
}

// New returns the table with the given name.
func New(client *dynamodb.Client, name string, o Options) *Table {
	t := &Table{client: client, name: name, sleep: o.Sleep}
	if t.sleep == nil {
		t.sleep = sleep
	}
	return t
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var (
	_ files.Creator       = (*Table)(nil)
	_ files.VerifyRecords = (*Table)(nil)
	_ files.InlineRecords = (*Table)(nil)
	_ access.Keys         = (*Table)(nil)
)

// File implements files.Finder.
func (t *Table) File(ctx context.Context, id string) (files.File, error) {
	row, err := t.get(ctx, fileKey(id))
	if err != nil {
		return files.File{}, explain("reading "+id, err)
	}
	if row == nil {
		return files.File{}, files.ErrFileNotFound
	}
	return decodeFile(row)
}

// get reads a row with strong consistency; nil when there is none.
func (t *Table) get(ctx context.Context, k item) (item, error) {
	out, err := t.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &t.name, Key: k, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// query runs a query page by page and hands every row to visit, until that returns false.
func (t *Table) query(ctx context.Context, q dynamodb.QueryInput, visit func(item) (more bool, err error)) error {
	q.TableName = &t.name
	for {
		out, err := t.client.Query(ctx, &q)
		if err != nil {
			return err
		}
		for _, row := range out.Items {
			if more, err := visit(row); err != nil || !more {
				return err
			}
		}
		if len(out.LastEvaluatedKey) == 0 {
			return nil
		}
		q.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// explain says what was being done when err came, and turns what may succeed later into files.ErrTryAgain.
func explain(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, files.ErrTryAgain): // said before
		return fmt.Errorf("%s: %w", doing, err)
	case awsenv.Temporary(err):
		return fmt.Errorf("%s: %w: %w", doing, files.ErrTryAgain, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// item is one row, or part of one.
type item map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func boolean(b bool) types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: b} }

func binary(b []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: b} }

func epoch(t time.Time) types.AttributeValue { return number(t.Unix()) }

func key(pk, sk string) item { return item{"pk": text(pk), "sk": text(sk)} }

// stamp is a time as the beginning of a sort key: of fixed width, so that text order is time order.
func stamp(t time.Time) string { return fmt.Sprintf("%012d", t.Unix()) }

// names maps the placeholders #name of some expressions to the attributes name. All attributes are written so,
// because many good names are reserved words of DynamoDB.
func names(expressions ...string) map[string]string {
	out := map[string]string{}
	for _, e := range expressions {
		for {
			_, rest, found := strings.Cut(e, "#")
			if !found {
				break
			}
			end := 0
			for end < len(rest) && (rest[end] == '_' || rest[end] >= 'a' && rest[end] <= 'z' || rest[end] >= '0' && rest[end] <= '9') {
				end++
			}
			out["#"+rest[:end]] = rest[:end]
			e = rest[end:]
		}
	}
	return out
}
