package adapters_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
	"claimcheck.dev/claimcheck/shared/local/dynamo"
	"claimcheck.dev/claimcheck/shared/records"
)

// TestMovingAudit: whatever begins, ends or moves while the holds are read makes the audit say that it proves nothing,
// also when the counters are as before afterwards.
func TestMovingAudit(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]func(t *testing.T, e *engine, reserved, ready, inline files.File) error{
		"one ends and its like begins": func(t *testing.T, e *engine, reserved, _, _ files.File) error {
			_, err := e.table.End(t.Context(), reserved, files.Ending{State: files.Deleted, At: filestest.Now})
			e.made(t, files.Reserved)
			return err
		},
		"one begins and ends": func(t *testing.T, e *engine, _, _, _ files.File) error {
			f := e.made(t, files.Reserved)
			return e.table.Undo(t.Context(), f, nil)
		},
		"verified": func(t *testing.T, e *engine, reserved, _, _ files.File) error {
			_, err := e.table.MarkReady(t.Context(), reserved, filestest.VerifiedAs(reserved, 1000))
			return err
		},
		"released": func(t *testing.T, e *engine, _, ready, _ files.File) error {
			return e.table.Release(t.Context(), "acme", ready.ID, ready.ExpiresAt)
		},
		"stored inline": func(t *testing.T, e *engine, _, _, inline files.File) error {
			_, err := e.table.MarkReady(t.Context(), inline, filestest.VerifiedAs(inline, 1000))
			return err
		},
		"nothing": func(*testing.T, *engine, files.File, files.File, files.File) error { return nil },
	} {
		// Before the counters are read, between them and the holds, and between these and the second reading.
		for at := 1; at <= 3; at++ {
			t.Run(fmt.Sprint(name, " ", at), func(t *testing.T) {
				t.Parallel()
				e := openTable(t)
				reserved, ready := e.made(t, files.Reserved), e.made(t, files.Ready)
				var inline files.File
				if name == "stored inline" {
					inline = e.made(t, files.Reserved, filestest.Inline)
				}
				queries := 0
				e.SetFaults(func(op string, req []byte) dynamo.Fault {
					if op != "Query" {
						return dynamo.FaultNone
					}
					if queries++; queries == at {
						if err := move(t, e, reserved, ready, inline); err != nil {
							t.Error(err)
						}
					}
					return dynamo.FaultNone
				})
				a, err := e.table.Audit(t.Context(), "acme")
				if err != nil {
					t.Fatal(err)
				}
				if a.Drifted() {
					t.Errorf("a drift was found that is none: %+v", a)
				}
				// What moved before everything was read is no matter; an inline file is one as long as its hold was seen.
				if want := at == 1 || name == "nothing" || name == "stored inline" && at == 2; a.Stable != want {
					t.Errorf("stable %v, want %v: %+v", a.Stable, want, a)
				}
				e.SetFaults(nil)
				filestest.CheckInvariants(t, e.snapshot(t))
			})
		}
	}
}

// TestTwoAccounts: 160 reserves at once in each of two accounts that share the name of an actor, fifty each fit.
func TestTwoAccounts(t *testing.T) {
	t.Parallel()
	e := openTable(t)
	q := filestest.Roomy
	q.ActorMaxReservations = 50
	var wg sync.WaitGroup
	var mu sync.Mutex
	made := map[string]int{}
	for i := range 320 {
		account := []string{"acme", "other"}[i%2]
		wg.Go(func() {
			for {
				_, _, err := e.table.Create(t.Context(), filestest.NewFile(filestest.By(account, "alice")), q, nil, filestest.Now)
				var limit *files.LimitError
				switch {
				case errors.Is(err, files.ErrTryAgain):
					continue
				case err == nil:
					mu.Lock()
					made[account]++
					mu.Unlock()
				case !errors.As(err, &limit) || limit.Kind != files.LimitReservations:
					t.Errorf("refused by %v", err)
				}
				return
			}
		})
	}
	wg.Wait()
	if made["acme"] != 50 || made["other"] != 50 {
		t.Errorf("made were %v, want 50 each", made)
	}
	filestest.CheckInvariants(t, e.snapshot(t))
}

// TestUnprocessedKeys: DynamoDB may leave a part of a batch unread.
func TestUnprocessedKeys(t *testing.T) {
	t.Parallel()
	e := openTable(t)
	var ids []string
	for range 30 {
		ids = append(ids, e.made(t, files.Reserved).ID)
	}
	most := 7 // rows that one reply has
	client := dynamodb.New(e.client.Options(), func(o *dynamodb.Options) {
		inner := o.HTTPClient
		o.HTTPClient = clientFunc(func(r *http.Request) (*http.Response, error) { return partialBatch(t, inner, r, most) })
	})
	table := records.New(client, tableName, records.Options{Sleep: noSleep})
	got, err := table.Records(t.Context(), ids)
	if err != nil || len(got) != len(ids) {
		t.Errorf("%d records, %v; want %d", len(got), err, len(ids))
	}
	most = 0
	if _, err := table.Records(t.Context(), ids); !errors.Is(err, files.ErrTryAgain) {
		t.Errorf("without any row: %v, want ErrTryAgain", err)
	}
}

// partialBatch asks for the first keys of a batch and says of the others that they are left.
func partialBatch(t *testing.T, inner dynamodb.HTTPClient, r *http.Request, most int) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	type table struct {
		Keys           []json.RawMessage
		ConsistentRead bool
	}
	var in struct{ RequestItems map[string]table }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	asked := in.RequestItems[tableName]
	n := min(most, len(asked.Keys))
	left := table{asked.Keys[n:], true}
	out := struct {
		Responses       map[string]json.RawMessage
		UnprocessedKeys map[string]table
	}{map[string]json.RawMessage{}, map[string]table{}}
	if len(left.Keys) > 0 {
		out.UnprocessedKeys[tableName] = left
	}
	if n > 0 {
		asked.Keys = asked.Keys[:n]
		in.RequestItems[tableName] = asked
		if body, err = json.Marshal(in); err != nil {
			return nil, err
		}
		cut := r.Clone(r.Context())
		cut.Body, cut.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		resp, err := inner.Do(cut)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		var whole struct{ Responses map[string]json.RawMessage }
		if err := json.NewDecoder(resp.Body).Decode(&whole); err != nil {
			return nil, err
		}
		out.Responses = whole.Responses
	}
	answer, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(bytes.NewReader(answer)), ContentLength: int64(len(answer)), Request: r,
	}, nil
}

// TestSpoiltLifeRows: rows and places that this package did not write are errors that say so, and end no sweep or walk as
// if there were nothing.
func TestSpoiltLifeRows(t *testing.T) {
	t.Parallel()
	e := openTable(t)
	ctx := t.Context()
	f := e.made(t, files.Claimed)
	put := func(pk, sk string, attributes map[string]types.AttributeValue) {
		t.Helper()
		row := rowKey(pk, sk)
		maps.Copy(row, attributes)
		if _, err := e.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(tableName), Item: row}); err != nil {
			t.Fatal(err)
		}
	}
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	wrong := func(what string, err error) {
		t.Helper()
		if err == nil || errors.Is(err, files.ErrTryAgain) || errors.Is(err, files.ErrStateChanged) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, _, err := e.table.Due(ctx, filestest.Now, filestest.Now, "no place")
	wrong("Due from nowhere", err)
	_, _, err = e.table.Walk(ctx, "no place")
	wrong("Walk from nowhere", err)
	wrong("Correct of nothing", e.table.Correct(ctx, files.Audit{Account: "acme"}))

	put("sweep", "watermark", map[string]types.AttributeValue{"swept_to": text("soon")})
	_, err = e.table.Watermark(ctx)
	wrong("Watermark", err)
	put("reconcile", "progress", map[string]types.AttributeValue{"phase": &types.AttributeValueMemberBOOL{Value: true}})
	_, err = e.table.Progress(ctx)
	wrong("Progress", err)
	put("account#acme", "usage", map[string]types.AttributeValue{"bytes": text("many")})
	_, err = e.table.Usage(ctx, "acme", "alice")
	wrong("Usage", err)
	_, err = e.table.Audit(ctx, "acme")
	wrong("Audit of counters", err)
	deadline := fmt.Sprintf("%012d", filestest.Now.Unix())
	for shard := range 8 {
		put("hold#third", deadline+"#"+files.NewID(), map[string]types.AttributeValue{
			"due_pk": text(fmt.Sprintf("%d#%d", filestest.Now.Unix()/60, shard)), "bytes": text("many"),
		})
	}
	_, _, err = e.table.Due(ctx, filestest.Now, filestest.Now, "")
	wrong("Due", err)
	_, err = e.table.Audit(ctx, "third")
	wrong("Audit of holds", err)

	put(f.ID, "file", map[string]types.AttributeValue{
		"list_pk": text("files#acme"), "list_sk": text("0#" + f.ID), "state": text("claimed"), "claim_id": text("c_other"),
		"single_use": text("yes"),
	})
	_, _, _, err = e.table.Claim(ctx, f.ID, leaseOf("bob"), nil, filestest.Now)
	wrong("Claim", err)
	_, _, _, err = e.table.Claim(ctx, f.ID, leaseOf("bob"), claimKey("k"), filestest.Now)
	wrong("Claim by a key", err)
	_, err = e.table.Spend(ctx, f, f.Claim.ID, filestest.Now)
	wrong("Spend", err)
	_, _, err = e.table.Files(ctx, "acme", files.Position{}, 10)
	wrong("Files", err)
	_, err = e.table.Records(ctx, []string{f.ID})
	wrong("Records", err)
	_, _, err = e.table.Walk(ctx, "")
	wrong("Walk", err)
}
