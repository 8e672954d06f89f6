package records

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"claimcheck.dev/claimcheck/shared/files"
)

var _ files.ReconcileRecords = (*Table)(nil)

// Records implements files.ReconcileRecords.
func (t *Table) Records(ctx context.Context, ids []string) (map[string]files.File, error) {
	keys := make([]item, 0, len(ids))
	asked := make(map[string]bool, len(ids)) // DynamoDB refuses to read a row twice
	for _, id := range ids {
		if !asked[id] {
			asked[id] = true
			keys = append(keys, fileKey(id))
		}
	}
	out := make(map[string]files.File, len(keys))
	err := t.batch(ctx, keys, func(row item) error {
		f, err := decodeFile(row)
		out[f.ID] = f
		return err
	})
	if err != nil {
		return nil, explain("reading records", err)
	}
	return out, nil
}

// walkPage is how many rows one page of a walk reads: few enough that the work they make is done in seconds.
const walkPage = 200

// tablePlace is where a walk over the table goes on: behind a row.
type tablePlace struct {
	PK string `json:"pk"`
	SK string `json:"sk"`
}

// Walk implements files.ReconcileRecords: one page of a scan, with eventual consistency. Next is a JSON object.
func (t *Table) Walk(ctx context.Context, from string) (files.WalkPage, string, error) {
	filter := "(#sk = :file AND #state IN (:reserved, :ready, :claimed)) OR #sk = :usage"
	in := dynamodb.ScanInput{
		TableName:                &t.name,
		FilterExpression:         &filter,
		ExpressionAttributeNames: names(filter),
		ExpressionAttributeValues: item{
			":file": text(fileSort), ":usage": text(usage),
			":reserved": text(string(files.Reserved)), ":ready": text(string(files.Ready)), ":claimed": text(string(files.Claimed)),
		},
		Limit: aws.Int32(walkPage),
	}
	if from != "" {
		var p tablePlace
		if err := json.Unmarshal([]byte(from), &p); err != nil {
			return files.WalkPage{}, "", fmt.Errorf("walking the table: the place to go on from: %w", err)
		}
		in.ExclusiveStartKey = key(p.PK, p.SK)
	}
	out, err := t.client.Scan(ctx, &in)
	if err != nil {
		return files.WalkPage{}, "", explain("walking the table", err)
	}
	var page files.WalkPage
	for _, row := range out.Items {
		r := reader{row: row}
		if account, ok := strings.CutPrefix(r.text("pk"), accountOf("")); ok && r.text("sk") == usage {
			page.Accounts = append(page.Accounts, account)
			continue
		}
		f, err := decodeFile(row)
		if err != nil {
			return files.WalkPage{}, "", err
		}
		page.Files = append(page.Files, f)
	}
	if len(out.LastEvaluatedKey) == 0 {
		return page, "", nil
	}
	r := reader{row: out.LastEvaluatedKey}
	next, err := json.Marshal(tablePlace{PK: r.text("pk"), SK: r.text("sk")})
	if err == nil {
		err = r.err
	}
	return page, string(next), err
}

// HasHold implements files.ReconcileRecords, with strong consistency.
func (t *Table) HasHold(ctx context.Context, f files.File) (bool, error) {
	row, err := t.get(ctx, holdKey(f))
	return row != nil, explain("looking for the hold of "+f.ID, err)
}

// RestoreHold implements files.ReconcileRecords: one transaction over hold, account and, for a reservation, actor, which
// depends on the row of the file.
func (t *Table) RestoreHold(ctx context.Context, f files.File) error {
	x := t.begin()
	file := x.check(fileKey(f.ID), "#state = :state AND #charged = :charged",
		item{":state": text(string(f.State)), ":charged": number(f.Charged)})
	held := x.put(holdRow(f), "attribute_not_exists(#pk)", nil)
	x.update(accountKey(f.Account), "ADD #bytes :n, #files :one, #moves :one", "", item{":n": number(f.Charged), ":one": number(1)})
	if f.State == files.Reserved && f.Counted {
		change, values := "ADD #reservations :one", item{":one": number(1)}
		if n := unsized(f); n > 0 {
			change += ", #unsized :n"
			values[":n"] = number(n)
		}
		x.update(actorKey(f.Account, f.Actor), change, "", values)
	}
	refused, err := t.commit(ctx, x)
	if err != nil {
		return explain("restoring the hold of "+f.ID, err)
	}
	if _, failed := refused.at(held); refused == nil || failed { // somebody holds it
		return nil
	}
	if _, failed := refused.at(file); failed {
		return fmt.Errorf("restoring the hold of %s: %w", f.ID, files.ErrStateChanged)
	}
	return fmt.Errorf("restoring the hold of %s: refused without a reason", f.ID)
}

func progressKey() item { return key("reconcile", "progress") }

// Progress implements files.ReconcileRecords.
func (t *Table) Progress(ctx context.Context) (files.Progress, error) {
	row, err := t.get(ctx, progressKey())
	if err != nil {
		return files.Progress{}, explain("reading the progress of reconciling", err)
	}
	r := reader{row: row}
	p := files.Progress{Phase: r.maybeText("phase"), From: r.maybeText("from")}
	if r.err != nil {
		return files.Progress{}, fmt.Errorf("decoding the progress of reconciling: %w", r.err)
	}
	return p, nil
}

// SetProgress implements files.ReconcileRecords.
func (t *Table) SetProgress(ctx context.Context, p files.Progress) error {
	row := progressKey()
	row.setText("phase", p.Phase)
	row.setText("from", p.From)
	_, err := t.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &t.name, Item: row})
	return explain("keeping the progress of reconciling", err)
}
