package dynamo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// client serves s over HTTP and returns an SDK client for it that does not retry.
func client(t *testing.T, s *Server) *dynamodb.Client {
	t.Helper()
	ts := httptest.NewServer(s)
	t.Cleanup(ts.Close)
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(ts.URL),
		Region:       "us-east-1",
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "any", SecretAccessKey: "any"}, nil
		}),
		Retryer: aws.NopRetryer{},
	})
}

func str(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func num(v int) types.AttributeValue    { return &types.AttributeValueMemberN{Value: strconv.Itoa(v)} }

type attrs = map[string]types.AttributeValue

// Transfers between accounts, each a transaction of two conditional updates,
// must keep the total and no balance may go below zero, while readers see only
// states between transfers.
func TestTransactionsAreAtomic(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := open(t, Options{})
	db := client(t, s)
	const accounts, workers, transfers, start = 5, 8, 40, 20
	for i := range accounts {
		if _, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("hash"), Item: attrs{"id": str(fmt.Sprint(i)), "n": num(start)}}); err != nil {
			t.Fatal(err)
		}
	}
	move := func(from, to, amount int) error {
		update := func(id, by int, condition string) types.TransactWriteItem {
			u := &types.Update{
				TableName: aws.String("hash"), Key: attrs{"id": str(fmt.Sprint(id))},
				UpdateExpression:          aws.String("SET n = n + :by"),
				ExpressionAttributeValues: attrs{":by": num(by)},
			}
			if condition != "" {
				u.ConditionExpression = aws.String(condition)
				u.ExpressionAttributeValues[":need"] = num(-by)
			}
			return types.TransactWriteItem{Update: u}
		}
		_, err := db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			update(from, -amount, "n >= :need"), update(to, amount, ""),
		}})
		return err
	}
	total := func() (int, error) {
		var gets []types.TransactGetItem
		for i := range accounts {
			gets = append(gets, types.TransactGetItem{Get: &types.Get{TableName: aws.String("hash"), Key: attrs{"id": str(fmt.Sprint(i))}}})
		}
		out, err := db.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{TransactItems: gets})
		if err != nil {
			return 0, err
		}
		sum := 0
		for _, r := range out.Responses {
			n, err := strconv.Atoi(r.Item["n"].(*types.AttributeValueMemberN).Value)
			if err != nil || n < 0 {
				return 0, fmt.Errorf("a balance of %d, %v", n, err)
			}
			sum += n
		}
		return sum, nil
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 0))
			for range transfers {
				from := r.IntN(accounts)
				err := move(from, (from+1+r.IntN(accounts-1))%accounts, 1+r.IntN(15))
				var cancelled *types.TransactionCanceledException
				if err != nil && !errors.As(err, &cancelled) {
					t.Errorf("a transfer: %v", err)
				}
				if sum, err := total(); err != nil || sum != accounts*start {
					t.Errorf("the total is %d, %v; want %d", sum, err, accounts*start)
				}
			}
		})
	}
	wg.Wait()
	if sum, err := total(); err != nil || sum != accounts*start {
		t.Errorf("the total is %d, %v in the end; want %d", sum, err, accounts*start)
	}
}

// Many clients compete for one counter with a limit: exactly the limit gets
// through, and the row and the counter agree.
func TestConditionalCounterIsExact(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := client(t, open(t, Options{}))
	const clients, limit = 60, 20
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			_, err := db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
				{Put: &types.Put{TableName: aws.String("tbl"), Item: attrs{"pk": str("hold"), "sk": str(fmt.Sprint(i))}, ConditionExpression: aws.String("attribute_not_exists(pk)")}},
				{Update: &types.Update{
					TableName: aws.String("hash"), Key: attrs{"id": str("used")},
					UpdateExpression:          aws.String("SET #u = if_not_exists(#u, :0) + :1"),
					ConditionExpression:       aws.String("attribute_not_exists(#u) OR #u < :limit"),
					ExpressionAttributeNames:  map[string]string{"#u": "used"},
					ExpressionAttributeValues: attrs{":0": num(0), ":1": num(1), ":limit": num(limit)},
				}},
			}})
			var cancelled *types.TransactionCanceledException
			if err != nil && (!errors.As(err, &cancelled) || *cancelled.CancellationReasons[1].Code != "ConditionalCheckFailed" || *cancelled.CancellationReasons[0].Code != "None") {
				t.Errorf("client %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	out, err := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("hash"), Key: attrs{"id": str("used")}, ConsistentRead: aws.Bool(true)})
	if err != nil || out.Item["used"].(*types.AttributeValueMemberN).Value != fmt.Sprint(limit) {
		t.Errorf("the counter is %v, %v", out.Item, err)
	}
	holds, err := db.Query(ctx, &dynamodb.QueryInput{TableName: aws.String("tbl"), KeyConditionExpression: aws.String("pk = :p"), ExpressionAttributeValues: attrs{":p": str("hold")}, Select: types.SelectCount})
	if err != nil || holds.Count != limit {
		t.Errorf("%d holds, %v; want %d", holds.Count, err, limit)
	}
}

// The SDK must recognize the errors and find what they carry.
func TestSDKErrors(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := client(t, open(t, Options{}))
	put := &dynamodb.PutItemInput{
		TableName: aws.String("hash"), Item: attrs{"id": str("a"), "x": num(1)}, ConditionExpression: aws.String("attribute_not_exists(id)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if _, err := db.PutItem(ctx, put); err != nil {
		t.Fatal(err)
	}
	_, err := db.PutItem(ctx, put)
	var failed *types.ConditionalCheckFailedException
	if !errors.As(err, &failed) || failed.Item["x"].(*types.AttributeValueMemberN).Value != "1" || failed.ErrorMessage() != "The conditional request failed" {
		t.Errorf("a failed condition: %v", err)
	}
	_, err = db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Delete: &types.Delete{TableName: aws.String("hash"), Key: attrs{"id": str("b")}}},
		{ConditionCheck: &types.ConditionCheck{
			TableName: aws.String("hash"), Key: attrs{"id": str("a")}, ConditionExpression: aws.String("attribute_not_exists(id)"),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}},
	}})
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) || len(cancelled.CancellationReasons) != 2 || cancelled.CancellationReasons[1].Item["id"].(*types.AttributeValueMemberS).Value != "a" {
		t.Errorf("a cancelled transaction: %v", err)
	}
	var missing *types.ResourceNotFoundException
	if _, err := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("none"), Key: attrs{"id": str("a")}}); !errors.As(err, &missing) {
		t.Errorf("a missing table: %v", err)
	}
	var inUse *types.ResourceInUseException
	_, err = db.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: aws.String("hash"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	if !errors.As(err, &inUse) {
		t.Errorf("a table that exists: %v", err)
	}
	var mismatch *types.IdempotentParameterMismatchException
	for i := range 2 {
		_, err = db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String("same"), TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{TableName: aws.String("hash"), Item: attrs{"id": str(fmt.Sprint(i))}}},
		}})
	}
	if !errors.As(err, &mismatch) {
		t.Errorf("a token with other parameters: %v", err)
	}
}

// The SDK's paginators and waiters must come to an end having seen everything.
func TestSDKPaginators(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := client(t, open(t, Options{}))
	const items = 57
	for i := range items {
		if _, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("tbl"), Item: attrs{
			"pk": str("p"), "sk": str(fmt.Sprintf("%03d", i)), "owner_id": str("o"), "due": num(i % 3),
		}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, forward := range []bool{true, false} {
		for name, in := range map[string]*dynamodb.QueryInput{
			"table": {KeyConditionExpression: aws.String("pk = :v"), ExpressionAttributeValues: attrs{":v": str("p")}},
			"index": {IndexName: aws.String("by-owner"), KeyConditionExpression: aws.String("owner_id = :v"), ExpressionAttributeValues: attrs{":v": str("o")}},
		} {
			in.TableName, in.Limit, in.ScanIndexForward = aws.String("tbl"), aws.Int32(10), aws.Bool(forward)
			seen := map[string]bool{}
			for pages := dynamodb.NewQueryPaginator(db, in); pages.HasMorePages(); {
				page, err := pages.NextPage(ctx)
				if err != nil {
					t.Fatal(err)
				}
				for _, item := range page.Items {
					sk := item["sk"].(*types.AttributeValueMemberS).Value
					if seen[sk] {
						t.Errorf("%s, forward %t: %s came twice", name, forward, sk)
					}
					seen[sk] = true
				}
			}
			if len(seen) != items {
				t.Errorf("%s, forward %t: %d items, want %d", name, forward, len(seen), items)
			}
		}
	}
	if err := dynamodb.NewTableExistsWaiter(db).Wait(ctx, &dynamodb.DescribeTableInput{TableName: aws.String("tbl")}, 1e9); err != nil {
		t.Error(err)
	}
}

// A parallel scan must see every item in exactly one segment, page by page.
func TestParallelScan(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := client(t, open(t, Options{}))
	const items = 200
	for i := range items {
		if _, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("hash"), Item: attrs{"id": str(fmt.Sprint(i))}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, segments := range []int32{1, 2, 3, 7, 40} {
		seen := map[string]int{}
		for segment := range segments {
			for pages := dynamodb.NewScanPaginator(db, &dynamodb.ScanInput{
				TableName: aws.String("hash"), Segment: aws.Int32(segment), TotalSegments: aws.Int32(segments), Limit: aws.Int32(9),
			}); pages.HasMorePages(); {
				page, err := pages.NextPage(ctx)
				if err != nil {
					t.Fatal(err)
				}
				for _, item := range page.Items {
					seen[item["id"].(*types.AttributeValueMemberS).Value]++
				}
			}
		}
		for id, n := range seen {
			if n != 1 {
				t.Errorf("%d segments: %s was in %d of them", segments, id, n)
			}
		}
		if len(seen) != items {
			t.Errorf("%d segments: %d items, want %d", segments, len(seen), items)
		}
	}
}

// A write costs the larger of the old and the new item.
func TestWriteUnitsOfLargeItems(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	write := func(op, body string) any {
		answer := must(t, s, op, strings.Replace(body, "{", `{"TableName":"hash","ReturnConsumedCapacity":"TOTAL",`, 1))
		return answer["ConsumedCapacity"].(map[string]any)["CapacityUnits"]
	}
	for i, step := range []struct {
		op, body string
		units    float64
	}{
		{"PutItem", `{"Item":{"id":{"S":"a"},"x":{"S":"` + strings.Repeat("x", 1020) + `"}}}`, 1}, // 1024 bytes
		{"PutItem", `{"Item":{"id":{"S":"a"},"x":{"S":"` + strings.Repeat("x", 1021) + `"}}}`, 2},
		{"PutItem", `{"Item":{"id":{"S":"a"},"x":{"S":"` + strings.Repeat("x", 5000) + `"}}}`, 5},
		{"UpdateItem", `{"Key":{"id":{"S":"a"}},"UpdateExpression":"SET y = :y","ExpressionAttributeValues":{":y":{"S":"` + strings.Repeat("y", 200) + `"}}}`, 6},
		{"PutItem", `{"Item":{"id":{"S":"a"}}}`, 6},
		{"PutItem", `{"Item":{"id":{"S":"a"},"x":{"S":"` + strings.Repeat("x", 3000) + `"}}}`, 3},
		{"DeleteItem", `{"Key":{"id":{"S":"a"}}}`, 3},
		{"DeleteItem", `{"Key":{"id":{"S":"a"}}}`, 1},
	} {
		if got := write(step.op, step.body); got != step.units {
			t.Errorf("step %d: %s cost %v, want %v", i+1, step.op, got, step.units)
		}
	}
}

// What the counters say must be what the facts of the service are planned with:
// a transaction of four small items costs eight write units.
func TestCounters(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := open(t, Options{})
	db := client(t, s)
	put := func(table string, item attrs) types.TransactWriteItem {
		return types.TransactWriteItem{Put: &types.Put{TableName: aws.String(table), Item: item, ConditionExpression: aws.String("attribute_not_exists(pk)")}}
	}
	four := &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		put("tbl", attrs{"pk": str("a"), "sk": str("1"), "owner_id": str("o"), "due": num(1)}),
		put("tbl", attrs{"pk": str("a"), "sk": str("2")}),
		put("tbl", attrs{"pk": str("a"), "sk": str("3")}),
		put("num", attrs{"pk": num(1), "sk": num(1)}),
	}}
	if _, err := db.TransactWriteItems(ctx, four); err != nil {
		t.Fatal(err)
	}
	got := s.Counters()
	if w := got.Tables["tbl"].Write + got.Tables["num"].Write; w != 8 {
		t.Errorf("a transaction of four items cost %v write units, want 8", w)
	}
	if ix := got.Tables["tbl"].Indexes; ix["by-owner"].Write != 1 || ix["by-due"].Write != 1 || len(ix) != 2 {
		t.Errorf("its index writes cost %v", ix)
	}
	// A cancelled transaction and a failed condition cost what they looked at.
	s.ResetCounters()
	four.ClientRequestToken = nil // the SDK has put one there
	if _, err := db.TransactWriteItems(ctx, four); err == nil {
		t.Fatal("the transaction succeeded twice")
	}
	if _, err := db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String("num"), Key: attrs{"pk": num(1), "sk": num(1)}, ConditionExpression: aws.String("attribute_exists(x)")}); err == nil {
		t.Fatal("the condition held")
	}
	got = s.Counters()
	if got.Tables["tbl"].Write != 6 || got.Tables["num"].Write != 3 || len(got.Tables["tbl"].Indexes) != 0 {
		t.Errorf("refused writes cost %+v", got.Tables)
	}
	if got.Requests["TransactWriteItems"] != 1 || got.Requests["DeleteItem"] != 1 || len(got.Requests) != 2 {
		t.Errorf("requests: %v", got.Requests)
	}
	s.ResetCounters()
	if _, err := db.Query(ctx, &dynamodb.QueryInput{TableName: aws.String("tbl"), IndexName: aws.String("by-owner"), KeyConditionExpression: aws.String("owner_id = :o"), ExpressionAttributeValues: attrs{":o": str("o")}}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("tbl"), Key: attrs{"pk": str("a"), "sk": str("1")}, ConsistentRead: aws.Bool(true)}); err != nil {
		t.Fatal(err)
	}
	got = s.Counters()
	if got.Tables["tbl"].Read != 1 || got.Tables["tbl"].Indexes["by-owner"].Read != 0.5 {
		t.Errorf("reads cost %+v", got.Tables)
	}
}
