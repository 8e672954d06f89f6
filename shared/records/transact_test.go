package records_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
	"claimcheck.dev/claimcheck/shared/records"
)

// The conformance suite, with the real client and a local engine, is in shared/local/adapters. Here DynamoDB is a script:
// it gives answers that a local engine never gives by itself.

// script answers each request with the next of its answers, the last one again and again.
type script struct {
	t       *testing.T
	answers []string
	tokens  []string // the ClientRequestTokens that came
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request struct{ ClientRequestToken string }
	if err := errors.Join(err, json.Unmarshal(body, &request)); err != nil {
		s.t.Error(err)
	}
	s.tokens = append(s.tokens, request.ClientRequestToken)
	answer := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	if strings.Contains(answer, "__type") {
		w.WriteHeader(http.StatusBadRequest)
	}
	if _, err := io.WriteString(w, answer); err != nil {
		s.t.Error(err)
	}
}

// open returns a table behind the answers.
func open(t *testing.T, sleep func(context.Context, time.Duration) error, answers ...string) (*records.Table, *script) {
	s := &script{t: t, answers: answers}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	client := dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", BaseEndpoint: &web.URL, Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""),
	})
	return records.New(client, "table", records.Options{Sleep: sleep}), s
}

func noSleep(context.Context, time.Duration) error { return nil }

const done = "{}"

// cancelled is the answer to a transaction with the given reasons, each a code or a code with an item behind a space.
func cancelled(reasons ...string) string {
	var list []string
	for _, r := range reasons {
		code, item, ok := strings.Cut(r, " ")
		if ok {
			item = `,"Item":` + item
		}
		list = append(list, fmt.Sprintf(`{"Code":%q%s}`, code, item))
	}
	return `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","CancellationReasons":[` + strings.Join(list, ",") + `]}`
}

func fails(code string) string {
	return fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"scripted"}`, code)
}

const (
	failed   = "ConditionalCheckFailed"
	conflict = "TransactionConflict"
	busy     = `ConditionalCheckFailed {"reservations":{"N":"1000"}}`
)

var idem = &files.Idempotency{Account: "acme", Actor: "alice", Route: "r", Key: "k", Digest: "d"}

// create tries to create a file under an idempotency key. The rows of the transaction are, in this order: file, hold,
// account, actor, idempotency row.
func create(t *testing.T, table *records.Table) error {
	_, _, err := table.Create(t.Context(), filestest.NewFile(), filestest.Roomy, idem, filestest.Now)
	return err
}

// TestReasons: how the reasons of a cancelled transaction are read.
func TestReasons(t *testing.T) {
	t.Parallel()
	other := `ConditionalCheckFailed {"digest":{"S":"other"},"file":{"S":"f_1"}}`
	for _, c := range []struct {
		name     string
		answers  []string
		attempts int
		kind     files.LimitKind // "" for none
		err      error           // nil for success or a limit
	}{
		{"success", []string{done}, 1, "", nil},
		{"conflict", []string{cancelled("None", "None", conflict, "None", "None"), done}, 2, "", nil},
		{"throttling", []string{cancelled("ThrottlingError", "None", "None", "None", "None"), cancelled("None", "ProvisionedThroughputExceeded", "None", "None", "None"), done}, 3, "", nil},
		{"own attempt still running", []string{fails("TransactionInProgressException"), done}, 2, "", nil},
		{"limit of the actor", []string{cancelled("None", "None", "None", busy, "None")}, 1, files.LimitReservations, nil},
		{"limit of a new actor", []string{cancelled("None", "None", "None", failed, "None")}, 1, files.LimitUnsized, nil},
		{"limit of the account", []string{cancelled("None", "None", failed, "None", "None")}, 1, files.LimitBytes, nil},
		{"both limits", []string{cancelled("None", "None", failed, busy, "None")}, 1, files.LimitReservations, nil},
		{"limit beside a conflict elsewhere", []string{cancelled("None", "None", failed, "None", conflict), done}, 2, "", nil},
		{"limit beside throttling", []string{cancelled("ThrottlingError", "None", failed, busy, "None"), done}, 2, "", nil},
		{"mismatch before any limit", []string{cancelled("None", "None", failed, busy, other)}, 1, "", files.ErrIdempotencyMismatch},
		{"conflicts without end", []string{cancelled(conflict, "None", "None", "None", "None")}, 8, "", files.ErrTryAgain},
		{"limits beside conflicts without end", []string{cancelled("None", "None", failed, conflict, "None")}, 8, "", files.ErrTryAgain},
		{"throttled as a whole", []string{fails("ThrottlingException")}, 1, "", files.ErrTryAgain},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			table, s := open(t, noSleep, c.answers...)
			err := create(t, table)
			var limit *files.LimitError
			switch {
			case c.kind != "":
				if !errors.As(err, &limit) || limit.Kind != c.kind {
					t.Errorf("got %v, want the limit of %s", err, c.kind)
				}
			case !errors.Is(err, c.err) || errors.As(err, &limit):
				t.Errorf("got %v, want %v", err, c.err)
			}
			if len(s.tokens) != c.attempts {
				t.Errorf("there were %d attempts, want %d", len(s.tokens), c.attempts)
			}
			// No attempt may look like another one with different parameters.
			sorted := slices.Sorted(slices.Values(s.tokens))
			if s.tokens[0] == "" || len(slices.Compact(sorted)) != len(s.tokens) {
				t.Errorf("the attempts carried the tokens %q, want one each", s.tokens)
			}
		})
	}
}

// TestFaultsOfOurs: what no repeat will mend is neither repeated nor called temporary.
func TestFaultsOfOurs(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{
		cancelled("ValidationError", "None", "None", "None", "None"),
		cancelled(conflict, "ItemCollectionSizeLimitExceeded", "None", "None", "None"),
		cancelled("None", "None", "None", "None", "None"),
		cancelled(),
		fails("AccessDeniedException"),
		fails("ResourceNotFoundException"),
		fails("ValidationException"),
	} {
		table, s := open(t, noSleep, answer)
		if err := create(t, table); err == nil || errors.Is(err, files.ErrTryAgain) || len(s.tokens) != 1 {
			t.Errorf("%s: %v after %d attempts", answer, err, len(s.tokens))
		}
	}
}

// TestTakenID: a file under the same id that another request made is an error; our own is success.
func TestTakenID(t *testing.T) {
	t.Parallel()
	table, _ := open(t, noSleep, cancelled(`ConditionalCheckFailed {"write":{"S":"somebody's"}}`, "None", "None", "None", "None"))
	if err := create(t, table); err == nil || errors.Is(err, files.ErrTryAgain) {
		t.Errorf("got %v, want an error that is final", err)
	}
}

// TestRepeatInBetween: the file of an earlier request is just being taken back. The next attempt has the way free.
func TestRepeatInBetween(t *testing.T) {
	t.Parallel()
	earlier := cancelled("None", "None", "None", "None", `ConditionalCheckFailed {"digest":{"S":"d"},"file":{"S":"f_1"}}`)
	table, s := open(t, noSleep, earlier, done, done) // the middle one finds no file
	if err := create(t, table); err != nil || len(s.tokens) != 3 {
		t.Errorf("got %v after %d requests", err, len(s.tokens))
	}
	table, _ = open(t, noSleep, earlier, done, earlier, done, earlier, done, earlier, done, earlier, done, earlier, done, earlier, done, earlier, done)
	if err := create(t, table); !errors.Is(err, files.ErrTryAgain) {
		t.Errorf("got %v, want ErrTryAgain", err)
	}
}

// TestPauses: random, bounded, and ended by the context.
func TestPauses(t *testing.T) {
	t.Parallel()
	always := cancelled(conflict, "None", "None", "None", "None")
	longest := make([]time.Duration, 7)
	for range 40 {
		n := 0
		table, _ := open(t, func(_ context.Context, d time.Duration) error {
			longest[n] = max(longest[n], d)
			n++
			return nil
		}, always)
		if err := create(t, table); !errors.Is(err, files.ErrTryAgain) {
			t.Fatal(err)
		}
	}
	for i, bound := range []time.Duration{25, 50, 100, 200, 400, 400, 400} {
		if bound *= time.Millisecond; longest[i] > bound || longest[i] < bound/2 {
			t.Errorf("pause %d lasted up to %v, want up to %v", i+1, longest[i], bound)
		}
	}
	table, s := open(t, nil, always)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := table.Create(ctx, filestest.NewFile(), filestest.Roomy, nil, filestest.Now)
	if !errors.Is(err, context.Canceled) || errors.Is(err, files.ErrTryAgain) || len(s.tokens) > 1 {
		t.Errorf("cancelled: %v after %d attempts", err, len(s.tokens))
	}
}

// TestLedgerBroken: a live file without its hold is reported, not mended.
func TestLedgerBroken(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(*records.Table) error{
		"MarkReady": func(table *records.Table) error {
			f := filestest.NewFile()
			_, err := table.MarkReady(t.Context(), f, filestest.VerifiedAs(f, 1000))
			return err
		},
		"End": func(table *records.Table) error {
			_, err := table.End(t.Context(), filestest.NewFile(), files.Ending{State: files.Deleted, At: filestest.Now})
			return err
		},
		"Undo": func(table *records.Table) error { return table.Undo(t.Context(), filestest.NewFile(), nil) },
	} {
		table, _ := open(t, noSleep, cancelled("None", failed, "None", "None"))
		if err := do(table); err == nil || errors.Is(err, files.ErrStateChanged) || errors.Is(err, files.ErrTryAgain) {
			t.Errorf("%s: %v, want an error of its own", name, err)
		}
	}
}

// TestNoEnd: a live state is no end, and nothing is asked of the table.
func TestNoEnd(t *testing.T) {
	t.Parallel()
	table, s := open(t, noSleep, done)
	if _, err := table.End(t.Context(), filestest.NewFile(), files.Ending{State: files.Ready}); err == nil || len(s.tokens) > 0 {
		t.Errorf("got %v after %d requests", err, len(s.tokens))
	}
}
