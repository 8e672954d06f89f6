package adapters_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
	"claimcheck.dev/claimcheck/shared/local/dynamo"
	"claimcheck.dev/claimcheck/shared/records"
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
	num := func(n int64) types.AttributeValue {
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
	}
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

// onFileRow reports whether a request for one row is for that of a file.
func onFileRow(req []byte) bool { return bytes.Contains(req, []byte(`"sk":{"S":"file"}`)) }

// TestLifecycleUnderFaults runs the same suite while one request in eight meets another writer, throttling, a failure or
// loses its reply after it took effect. Nothing that a caller sees may change.
func TestLifecycleUnderFaults(t *testing.T) {
	t.Parallel()
	filestest.TestLifecycle(t, func(t *testing.T) filestest.Table {
		e := openTable(t)
		var mu sync.Mutex
		r := rand.New(rand.NewPCG(3, 4))
		last := map[string]bool{} // requests that met a fault are spared the next time, so that repeats come to an end
		e.SetFaults(func(op string, req []byte) dynamo.Fault {
			mu.Lock()
			defer mu.Unlock()
			key := op + string(req)
			if last[key] || r.IntN(8) > 0 {
				delete(last, key)
				return dynamo.FaultNone
			}
			last[key] = true
			if (op == "TransactWriteItems" || op == "UpdateItem" && onFileRow(req)) && r.IntN(3) == 0 {
				return dynamo.FaultConflict
			}
			return []dynamo.Fault{dynamo.FaultThrottle, dynamo.FaultInternal, dynamo.FaultLostReply, dynamo.FaultLostReply}[r.IntN(4)]
		})
		return e.underTest()
	})
}

// made creates a file through e, brought as far as state: reserved, ready or claimed.
func (e *engine) made(t testing.TB, state files.State, change ...func(*files.File)) files.File {
	t.Helper()
	ctx := context.Background()
	f, _, err := e.table.Create(ctx, filestest.NewFile(append(change, filestest.Once)...), filestest.Roomy, nil, filestest.Now)
	if err == nil && state != files.Reserved {
		f, err = e.table.MarkReady(ctx, f, filestest.VerifiedAs(f, 1000))
	}
	if err == nil && state == files.Claimed {
		f, _, _, err = e.table.Claim(ctx, f.ID, leaseOf("alice"), nil, filestest.Now)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// leaseOf is a new claim of actor's.
func leaseOf(actor string) files.Claim {
	return files.Claim{ID: "c_" + files.RandomText(52), Actor: actor, Holder: "call-1", LeaseUntil: filestest.Now.Add(time.Minute)}
}

func claimKey(key string) *files.Idempotency {
	return &files.Idempotency{Account: "acme", Actor: "alice", Route: "POST /v1/files/{id}/claims", Key: key, Digest: strings.Repeat("ab", 32)}
}

// TestTemporaryLifeFailures: what outlasts the client's own attempts is 'try again' for every operation of the later life.
func TestTemporaryLifeFailures(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]dynamo.Fault{
		"throttled": dynamo.FaultThrottle, "failing": dynamo.FaultInternal, "replies lost": dynamo.FaultLostReply, "other writers": dynamo.FaultConflict,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := openTable(t)
			ctx, now, table := t.Context(), filestest.Now, e.table
			ready, keyed, held := e.made(t, files.Ready), e.made(t, files.Ready), e.made(t, files.Claimed)
			extended, spent := e.made(t, files.Claimed), e.made(t, files.Claimed)
			bare := e.made(t, files.Ready)
			e.dropHold(t, bare)
			e.made(t, files.Ready, filestest.By("other", "bob"))
			e.setAccount(t, "other", filestest.AccountUsage{Bytes: 1, Files: 1})
			audit, err := table.Audit(ctx, "other")
			if err != nil {
				t.Fatal(err)
			}
			e.SetFaults(func(string, []byte) dynamo.Fault { return fault })
			write := map[string]func() error{
				"Claim": func() error { _, _, _, err := table.Claim(ctx, ready.ID, leaseOf("bob"), nil, now); return err },
				"Claim by a key": func() error {
					_, _, _, err := table.Claim(ctx, keyed.ID, leaseOf("bob"), claimKey("k"), now)
					return err
				},
				"Unclaim": func() error { _, err := table.Unclaim(ctx, held.ID, held.Claim.ID); return err },
				"Extend": func() error {
					_, err := table.Extend(ctx, extended.ID, extended.Claim.ID, now.Add(time.Hour))
					return err
				},
				"Spend":       func() error { _, err := table.Spend(ctx, spent, spent.Claim.ID, now); return err },
				"RestoreHold": func() error { return table.RestoreHold(ctx, bare) },
				"Correct":     func() error { return table.Correct(ctx, audit) },
			}
			plain := map[string]func() error{ // no transaction touches their rows
				"Files":        func() error { _, _, err := table.Files(ctx, "acme", files.Position{}, 10); return err },
				"Usage":        func() error { _, err := table.Usage(ctx, "acme", "alice"); return err },
				"Due":          func() error { _, _, err := table.Due(ctx, now, now, ""); return err },
				"Watermark":    func() error { _, err := table.Watermark(ctx); return err },
				"SetWatermark": func() error { return table.SetWatermark(ctx, now) },
				"Records":      func() error { _, err := table.Records(ctx, []string{ready.ID}); return err },
				"Walk":         func() error { _, _, err := table.Walk(ctx, ""); return err },
				"HasHold":      func() error { _, err := table.HasHold(ctx, ready); return err },
				"Audit":        func() error { _, err := table.Audit(ctx, "acme"); return err },
				"Progress":     func() error { _, err := table.Progress(ctx); return err },
				"SetProgress":  func() error { return table.SetProgress(ctx, files.Progress{Phase: "p"}) },
			}
			for op, do := range write {
				err := do()
				// A repeat that finds its own claim, or a release that is done, knows that it has succeeded.
				known := fault == dynamo.FaultLostReply && (op == "Claim" || op == "Unclaim")
				if known && err != nil || !known && !errors.Is(err, files.ErrTryAgain) {
					t.Errorf("%s: %v", op, err)
				}
			}
			if fault == dynamo.FaultConflict {
				return
			}
			for op, do := range plain {
				err := do()
				known := fault == dynamo.FaultLostReply && op == "SetWatermark"
				if known && err != nil || !known && !errors.Is(err, files.ErrTryAgain) {
					t.Errorf("%s: %v", op, err)
				}
			}
		})
	}
}

// TestLostLifeReplies: a write that took effect but whose reply was lost is a success all the same, even when the service
// has forgotten the request token of a transaction.
func TestLostLifeReplies(t *testing.T) {
	t.Parallel()
	e := openTable(t)
	client := dynamodb.New(e.client.Options(), func(o *dynamodb.Options) {
		inner := o.HTTPClient
		o.HTTPClient = clientFunc(func(r *http.Request) (*http.Response, error) { return inner.Do(withoutToken(t, r)) })
	})
	table := records.New(client, tableName, records.Options{Sleep: noSleep})
	lose := false
	e.SetFaults(func(op string, _ []byte) dynamo.Fault {
		if lose && (op == "TransactWriteItems" || op == "UpdateItem" || op == "PutItem") {
			lose = false
			return dynamo.FaultLostReply
		}
		return dynamo.FaultNone
	})
	ctx, now := t.Context(), filestest.Now
	check := func(what string, got files.File, err error, want files.State, claim string) {
		t.Helper()
		if lose {
			t.Fatalf("%s: no reply was lost", what)
		}
		if err != nil || got.State != want || got.Claim.ID != claim {
			t.Errorf("%s: %s by %q, %v; want %s by %q", what, got.State, got.Claim.ID, err, want, claim)
		}
	}
	for _, idem := range []*files.Idempotency{nil, claimKey("k")} {
		f, c := e.made(t, files.Ready), leaseOf("alice")
		lose = true
		got, id, repeated, err := table.Claim(ctx, f.ID, c, idem, now)
		check("claim", got, err, files.Claimed, c.ID)
		if id != "" || repeated {
			t.Errorf("the claim was taken for a repeat of %q", id)
		}
		lose = true
		got, err = table.Extend(ctx, f.ID, c.ID, now.Add(time.Hour))
		check("extend", got, err, files.Claimed, c.ID)
		lose = true
		got, err = table.Unclaim(ctx, f.ID, c.ID)
		check("release", got, err, files.Ready, c.ID)
		got, _, _, err = table.Claim(ctx, f.ID, leaseOf("bob"), nil, now)
		if err != nil {
			t.Fatal(err)
		}
		lose = true
		spent, err := table.Spend(ctx, got, got.Claim.ID, now)
		check("commit", spent, err, files.Spent, got.Claim.ID)
	}
	f := e.made(t, files.Ready)
	e.dropHold(t, f)
	e.setAccount(t, "acme", filestest.AccountUsage{})
	lose = true
	if err := table.RestoreHold(ctx, f); err != nil || lose {
		t.Errorf("RestoreHold: %v", err)
	}
	lose = true
	if err := table.SetWatermark(ctx, now); err != nil || lose {
		t.Errorf("SetWatermark: %v", err)
	}
	filestest.CheckInvariants(t, e.snapshot(t))
}
