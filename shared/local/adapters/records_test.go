package adapters_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
	"claimcheck.dev/claimcheck/shared/local/dynamo"
	"claimcheck.dev/claimcheck/shared/records"
)

const tableName = "claimcheck"

// engine is a local DynamoDB with one table, laid out as template.yaml has it, behind a real connection.
type engine struct {
	*dynamo.Server
	client *dynamodb.Client
	table  *records.Table
}

func openTable(t *testing.T) *engine {
	t.Helper()
	server, err := dynamo.Open(dynamo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	key := func(name string) dynamo.KeyAttribute { return dynamo.KeyAttribute{Name: name, Type: "S"} }
	err = server.CreateTable(dynamo.TableSpec{
		Name: tableName, PartitionKey: key("pk"), SortKey: key("sk"),
		Indexes: []dynamo.IndexSpec{
			{Name: "by-account", PartitionKey: key("list_pk"), SortKey: key("list_sk")},
			{Name: "by-expiry", PartitionKey: key("due_pk"), SortKey: key("sk")},
		},
		TTLAttribute: "ttl", StreamView: "NEW_AND_OLD_IMAGES",
	})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	client := dynamodb.New(dynamodb.Options{
		Region:       "us-east-1",
		BaseEndpoint: &web.URL,
		Credentials:  credentials.NewStaticCredentialsProvider("key", "secret", ""),
		HTTPClient:   &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, MaxConnsPerHost: 64}},
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
			o.RateLimiter = unlimited{}
		}),
	})
	return &engine{Server: server, client: client, table: records.New(client, tableName, records.Options{Sleep: noSleep})}
}

// unlimited lets the client repeat as often as it may: tests inject more faults than a healthy service shows.
type unlimited struct{}

func (unlimited) GetToken(context.Context, uint) (func() error, error) {
	return func() error { return nil }, nil
}
func (unlimited) AddTokens(uint) error { return nil }

func noSleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// underTest is the engine's table as the conformance suites want it.
func (e *engine) underTest() filestest.Table {
	return filestest.Table{
		Records: e.table, Snapshot: e.snapshot, Drop: e.drop,
		DropHold: e.dropHold, SetAccount: e.setAccount, SetActor: e.setActor,
	}
}

// drop removes the row of a file behind the adapter's back.
func (e *engine) drop(t testing.TB, id string) {
	t.Helper()
	_, err := e.client.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{
		TableName: aws.String(tableName),
		Key: map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: id},
			"sk": &types.AttributeValueMemberS{Value: "file"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// rows returns every row of the table, straight from the engine, as text by attribute. Maps and lists are left out.
func (e *engine) rows(t testing.TB) []map[string]string {
	t.Helper()
	var out []map[string]string
	pages := dynamodb.NewScanPaginator(e.client, &dynamodb.ScanInput{TableName: aws.String(tableName), ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			row := map[string]string{}
			for name, v := range item {
				switch v := v.(type) {
				case *types.AttributeValueMemberS:
					row[name] = v.Value
				case *types.AttributeValueMemberN:
					row[name] = v.Value
				case *types.AttributeValueMemberBOOL:
					row[name] = strconv.FormatBool(v.Value)
				}
			}
			out = append(out, row)
		}
	}
	return out
}

// snapshot reads the table row by row. It knows the layout on its own, so that it is a check of what the adapter wrote.
func (e *engine) snapshot(t testing.TB) filestest.Snapshot {
	t.Helper()
	s := filestest.Snapshot{
		Files:    map[string]files.File{},
		Accounts: map[string]filestest.AccountUsage{},
		Actors:   map[filestest.ActorID]filestest.ActorUsage{},
	}
	for _, row := range e.rows(t) {
		num := func(name string) int64 {
			if row[name] == "" {
				return 0
			}
			n, err := strconv.ParseInt(row[name], 10, 64)
			if err != nil {
				t.Fatalf("%v: %s: %v", row, name, err)
			}
			return n
		}
		kind, rest, _ := strings.Cut(row["pk"], "#")
		switch {
		case row["sk"] == "file":
			f, err := e.table.File(context.Background(), row["pk"])
			if err != nil {
				t.Fatal(err)
			}
			s.Files[f.ID] = f
			if want := "files#" + f.Account; row["list_pk"] != want {
				t.Errorf("%s is listed under %q, want %q", f.ID, row["list_pk"], want)
			}
			if want := fmt.Sprintf("%012d#%s", f.CreatedAt.Unix(), f.ID); row["list_sk"] != want {
				t.Errorf("%s is listed as %q, want %q", f.ID, row["list_sk"], want)
			}
			end := f.ExpiresAt
			if f.EndedAt.After(end) {
				end = f.EndedAt
			}
			if got, want := num("ttl"), end.Add(48*time.Hour).Unix(); got != want {
				t.Errorf("%s is removed at %d, want %d", f.ID, got, want)
			}
		case kind == "hold":
			at, id, _ := strings.Cut(row["sk"], "#")
			deadline, err := strconv.ParseInt(at, 10, 64)
			if err != nil || len(at) != 12 {
				t.Fatalf("a hold is at %q", row["sk"])
			}
			minute, shard, _ := strings.Cut(row["due_pk"], "#")
			if minute != fmt.Sprint(deadline/60) || len(shard) != 1 || shard < "0" || shard > "7" {
				t.Errorf("the hold of %s is due in %q", id, row["due_pk"])
			}
			if row["ttl"] != "" {
				t.Errorf("TTL would remove the hold of %s", id)
			}
			s.Holds = append(s.Holds, filestest.Hold{
				ID: id, Account: rest, Actor: row["actor"], Deadline: time.Unix(deadline, 0).UTC(),
				Bytes: num("bytes"), Counted: row["counted"] == "true", Unsized: num("unsized"),
			})
		case kind == "account" && row["sk"] == "usage":
			s.Accounts[rest] = filestest.AccountUsage{Bytes: num("bytes"), Files: num("files")}
		case kind == "account":
			actor := filestest.ActorID{Account: rest, Actor: strings.TrimPrefix(row["sk"], "actor#")}
			s.Actors[actor] = filestest.ActorUsage{Reservations: num("reservations"), Unsized: num("unsized")}
		}
	}
	return s
}

func TestRecords(t *testing.T) {
	t.Parallel()
	filestest.TestRecords(t, func(t *testing.T) filestest.Table { return openTable(t).underTest() })
}

func TestKeys(t *testing.T) {
	t.Parallel()
	filestest.TestKeys(t, func(t *testing.T) access.Keys { return openTable(t).table })
}

// TestRecordsUnderFaults runs the same suite while one request in eight meets another writer, throttling, a failure or
// loses its reply after it took effect. Nothing that a caller sees may change.
func TestRecordsUnderFaults(t *testing.T) {
	t.Parallel()
	filestest.TestRecords(t, func(t *testing.T) filestest.Table {
		e := openTable(t)
		var mu sync.Mutex
		r := rand.New(rand.NewPCG(1, 2))
		last := map[string]bool{} // requests that met a fault are spared the next time, so that repeats come to an end
		e.SetFaults(func(op string, req []byte) dynamo.Fault {
			mu.Lock()
			defer mu.Unlock()
			key := op + string(req)
			if op == "Scan" || op == "DeleteItem" || last[key] || r.IntN(8) > 0 {
				delete(last, key)
				return dynamo.FaultNone
			}
			last[key] = true
			if op == "TransactWriteItems" && r.IntN(3) == 0 {
				return dynamo.FaultConflict
			}
			return []dynamo.Fault{dynamo.FaultThrottle, dynamo.FaultInternal, dynamo.FaultLostReply, dynamo.FaultLostReply}[r.IntN(4)]
		})
		return e.underTest()
	})
}

func TestKeysUnderFaults(t *testing.T) {
	t.Parallel()
	filestest.TestKeys(t, func(t *testing.T) access.Keys {
		e := openTable(t)
		var n atomic.Int64
		e.SetFaults(func(op string, _ []byte) dynamo.Fault {
			if n.Add(1)%2 == 0 {
				return dynamo.FaultNone
			}
			return dynamo.FaultLostReply
		})
		return e.table
	})
}

// TestConflictsEnd: a transaction is tried eight times against other writers; then it is 'try again', not a limit.
func TestConflictsEnd(t *testing.T) {
	t.Parallel()
	e := openTable(t)
	var pauses []time.Duration
	table := records.New(e.client, tableName, records.Options{Sleep: func(_ context.Context, d time.Duration) error {
		pauses = append(pauses, d)
		return nil
	}})
	conflicts := 7
	e.SetFaults(func(op string, _ []byte) dynamo.Fault {
		if op == "TransactWriteItems" && conflicts > 0 {
			conflicts--
			return dynamo.FaultConflict
		}
		return dynamo.FaultNone
	})
	if _, _, err := table.Create(t.Context(), filestest.NewFile(), filestest.Roomy, nil, filestest.Now); err != nil {
		t.Errorf("after seven conflicts: %v", err)
	}
	if len(pauses) != 7 {
		t.Errorf("there were %d pauses, want 7", len(pauses))
	}
	for _, d := range pauses {
		if d < 0 || d > 400*time.Millisecond {
			t.Errorf("a pause lasted %v", d)
		}
	}
	conflicts = 8
	_, _, err := table.Create(t.Context(), filestest.NewFile(), filestest.Roomy, nil, filestest.Now)
	if !errors.Is(err, files.ErrTryAgain) {
		t.Errorf("after eight conflicts: %v, want ErrTryAgain", err)
	}
	var limit *files.LimitError
	if errors.As(err, &limit) {
		t.Errorf("conflicts were taken for a limit: %v", err)
	}
	filestest.CheckInvariants(t, e.snapshot(t))
}

// TestTemporaryFailures: what outlasts the client's own attempts is 'try again' for every operation.
func TestTemporaryFailures(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]dynamo.Fault{
		"throttled": dynamo.FaultThrottle, "failing": dynamo.FaultInternal, "replies lost": dynamo.FaultLostReply,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := openTable(t)
			ctx, now := t.Context(), filestest.Now
			var made [3]files.File
			for i := range made {
				var err error
				if made[i], _, err = e.table.Create(ctx, filestest.NewFile(), filestest.Roomy, nil, now); err != nil {
					t.Fatal(err)
				}
			}
			f, g, h := made[0], made[1], made[2]
			key, _ := access.NewKey("acme", "alice", nil, now, time.Time{})
			if err := e.table.PutKey(ctx, key); err != nil {
				t.Fatal(err)
			}
			e.SetFaults(func(string, []byte) dynamo.Fault { return fault })
			for op, do := range map[string]func() error{
				"Warm": func() error { return e.table.Warm(ctx) },
				"File": func() error { _, err := e.table.File(ctx, f.ID); return err },
				"Create": func() error {
					_, _, err := e.table.Create(ctx, filestest.NewFile(filestest.By("other", "bob")), filestest.Roomy, nil, now)
					return err
				},
				"MarkReady":  func() error { _, err := e.table.MarkReady(ctx, g, filestest.VerifiedAs(g, 1000)); return err },
				"End":        func() error { _, err := e.table.End(ctx, h, files.Ending{State: files.Deleted, At: now}); return err },
				"EndedHolds": func() error { _, err := e.table.EndedHolds(ctx, "acme", now, 5); return err },
				"NextEnd":    func() error { _, err := e.table.NextEnd(ctx, "acme", "alice", files.LimitBytes); return err },
				"Release":    func() error { return e.table.Release(ctx, "acme", f.ID, f.ExpiresAt) },
				"Undo":       func() error { return e.table.Undo(ctx, f, nil) },
				"PutKey": func() error {
					k, _ := access.NewKey("acme", "bob", nil, now, time.Time{})
					return e.table.PutKey(ctx, k)
				},
				"Key":       func() error { _, err := e.table.Key(ctx, key.ID); return err },
				"ListKeys":  func() error { _, err := e.table.ListKeys(ctx, "acme"); return err },
				"RevokeKey": func() error { return e.table.RevokeKey(ctx, "acme", key.ID, now) },
			} {
				err := do()
				if op == "PutKey" && fault == dynamo.FaultLostReply {
					if err != nil { // the repeat finds its own row
						t.Errorf("PutKey: %v", err)
					}
					continue
				}
				if !errors.Is(err, files.ErrTryAgain) {
					t.Errorf("%s: %v, want ErrTryAgain", op, err)
				}
			}
		})
	}
}

// TestLostReplies: a transaction that took effect but whose reply was lost is recognised by what it wrote, even when the
// service has forgotten its request token: the token is taken out of every request here.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	e := openTable(t)
	forgetful := e.client
	client := dynamodb.New(forgetful.Options(), func(o *dynamodb.Options) {
		inner := o.HTTPClient
		o.HTTPClient = clientFunc(func(r *http.Request) (*http.Response, error) {
			return inner.Do(withoutToken(t, r))
		})
	})
	table := records.New(client, tableName, records.Options{Sleep: noSleep})
	lose := false
	e.SetFaults(func(op string, _ []byte) dynamo.Fault {
		if lose && op == "TransactWriteItems" {
			lose = false
			return dynamo.FaultLostReply
		}
		return dynamo.FaultNone
	})
	ctx, now := t.Context(), filestest.Now
	idem := &files.Idempotency{Account: "acme", Actor: "alice", Route: "r", Key: "k", Digest: "d"}
	tight := files.Quota{AccountMaxLiveBytes: 1000, ActorMaxReservations: 1, ActorMaxUnsizedBytes: 1000}

	lose = true // the repeat meets the idempotency row and the limits of the first attempt
	f, repeated, err := table.Create(ctx, filestest.NewFile(filestest.Unsized(1000)), tight, idem, now)
	if err != nil || repeated {
		t.Fatalf("Create: repeated %v, %v", repeated, err)
	}
	lose = true
	ready, err := table.MarkReady(ctx, f, filestest.VerifiedAs(f, 17))
	if err != nil {
		t.Errorf("MarkReady: %v", err)
	}
	lose = true
	if _, err := table.End(ctx, ready, files.Ending{State: files.Deleted, At: now}); err != nil {
		t.Errorf("End: %v", err)
	}
	g, _, err := table.Create(ctx, filestest.NewFile(), tight, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	lose = true
	if err := table.Release(ctx, "acme", g.ID, g.UploadBy); err != nil {
		t.Errorf("Release: %v", err)
	}
	h, _, err := table.Create(ctx, filestest.NewFile(), tight, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	lose = true
	if err := table.Undo(ctx, h, nil); err != nil {
		t.Errorf("Undo: %v", err)
	}
	if lose {
		t.Error("the last reply was not lost")
	}
	s := e.snapshot(t)
	filestest.CheckInvariants(t, s)
	if len(s.Holds) != 0 {
		t.Errorf("there are holds left: %+v", s.Holds)
	}
}

// TestWriteUnits counts what the life of a file costs. Index writes come on top; they are no transaction's.
func TestWriteUnits(t *testing.T) {
	t.Parallel()
	e := openTable(t)
	ctx, now := t.Context(), filestest.Now
	spent := func() (write, read float64) {
		u := e.Counters().Tables[tableName]
		e.ResetCounters()
		return u.Write, u.Read
	}
	want := func(what string, write, read float64) {
		t.Helper()
		if w, r := spent(); w != write || r != read {
			t.Errorf("%s: %v write units and %v read units, want %v and %v", what, w, r, write, read)
		}
	}
	check := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	create := func(f files.File, idem *files.Idempotency) files.File {
		t.Helper()
		f, _, err := e.table.Create(ctx, f, filestest.Roomy, idem, now)
		check(f, err)
		return f
	}
	ready := func(f files.File) files.File {
		t.Helper()
		f, err := e.table.MarkReady(ctx, f, filestest.VerifiedAs(f, 1000))
		check(f, err)
		return f
	}
	ordinary := func(f *files.File) {
		f.Filename = "Master services agreement ACME 2026 (signed, final).pdf"
		f.SHA256 = strings.Repeat("ab", 32)
		f.Account, f.Actor = "account-0123456789", "somebody@example.com"
		f.Metadata = map[string]string{"contract": "2026-0117", "origin": "outlook-addin"}
	}
	idem := func(key string) *files.Idempotency {
		return &files.Idempotency{Account: "account-0123456789", Actor: "somebody@example.com", Route: "POST /v1/uploads", Key: key, Digest: strings.Repeat("ab", 32)}
	}
	spent()

	f := create(filestest.NewFile(ordinary), nil)
	want("reserving", 8, 0)
	f = ready(f)
	want("verifying", 8, 0)
	check(e.table.End(ctx, f, files.Ending{State: files.Deleted, At: now}))
	want("deleting", 6, 0)

	f = create(filestest.NewFile(ordinary, filestest.Unsized(5000)), idem("k"))
	want("reserving without a size, with a key", 10, 0)
	create(filestest.NewFile(ordinary), idem("k"))
	want("repeating it", 10, 1)
	f = ready(f)
	want("verifying what had no size", 10, 0)
	check(nil, e.table.Release(ctx, f.Account, f.ID, f.ExpiresAt))
	want("releasing it", 6, 1)

	f = create(filestest.NewFile(ordinary, filestest.Inline), nil)
	want("storing inline", 6, 0)
	f = ready(f)
	want("verifying inline", 6, 0)

	f = create(filestest.NewFile(ordinary, func(f *files.File) { f.UploadBy = f.ExpiresAt }), nil)
	spent()
	f = ready(f)
	want("verifying a file whose hold stays", 6, 0)
	check(e.table.File(ctx, f.ID))
	want("reading", 0, 1)
	check(e.table.EndedHolds(ctx, f.Account, now, 25))
	want("looking for ended holds", 0, 1)
}

// TestSpoiltRows: rows that this package did not write are an error that names the attribute, not a panic or a zero.
func TestSpoiltRows(t *testing.T) {
	t.Parallel()
	e := openTable(t)
	ctx := t.Context()
	f, _, err := e.table.Create(ctx, filestest.NewFile(), filestest.Roomy, nil, filestest.Now)
	if err != nil {
		t.Fatal(err)
	}
	update := func(expr string) {
		t.Helper()
		_, err := e.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: aws.String(tableName), UpdateExpression: &expr,
			Key: map[string]types.AttributeValue{
				"pk": &types.AttributeValueMemberS{Value: f.ID}, "sk": &types.AttributeValueMemberS{Value: "file"},
			},
			ExpressionAttributeValues: map[string]types.AttributeValue{":v": &types.AttributeValueMemberS{Value: "x"}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"metadata", "expires_at", "charged", "single_use", "upload_by"} {
		update("SET " + name + " = :v")
		if _, err := e.table.File(ctx, f.ID); err == nil || errors.Is(err, files.ErrFileNotFound) {
			t.Errorf("%s as text: %v, want an error", name, err)
		}
	}
}

type clientFunc func(*http.Request) (*http.Response, error)

func (f clientFunc) Do(r *http.Request) (*http.Response, error) { return f(r) }

// withoutToken replaces the ClientRequestToken of a transaction by another one.
func withoutToken(t *testing.T, r *http.Request) *http.Request {
	if r.Body == nil {
		return r
	}
	var body bytes.Buffer
	if _, err := body.ReadFrom(r.Body); err != nil {
		t.Error(err)
	}
	const field = `"ClientRequestToken":"`
	b := body.Bytes()
	if at := bytes.Index(b, []byte(field)); at >= 0 {
		copy(b[at+len(field):], files.RandomText(26))
	}
	out := r.Clone(r.Context())
	out.Body, out.ContentLength = http.NoBody, int64(len(b))
	if len(b) > 0 {
		out.Body = readCloser{bytes.NewReader(b)}
	}
	return out
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }
