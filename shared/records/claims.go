package records

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"claimcheck.dev/claimcheck/shared/files"
)

var (
	_ files.ClaimRecords = (*Table)(nil)
	_ files.LeaseRecords = (*Table)(nil)
)

// The id of a claim is random and is written together with the claim: it tells a repeat whose first reply was lost that
// it has succeeded, as the attribute `write` does for transactions.

const (
	claimChange = "SET #state = :claimed, #claim_id = :claim, #claim_actor = :actor, #claim_holder = :holder, #lease_until = :until"
	claimable   = "#single_use = :true AND #expires_at > :now AND (#state = :ready OR (#state = :claimed AND #lease_until <= :now))"
	// claimedBy is the condition that a claim holds the file.
	claimedBy = "#state = :claimed AND #claim_id = :claim"
)

// Claim implements files.ClaimRecords: one conditional update of the row of the file and, under an idempotency key, a
// transaction over it and the idempotency row.
func (t *Table) Claim(ctx context.Context, id string, c files.Claim, idem *files.Idempotency, now time.Time) (files.File, string, bool, error) {
	values := item{
		":claimed": text(string(files.Claimed)),
		":ready":   text(string(files.Ready)),
		":claim":   text(c.ID),
		":actor":   text(c.Actor),
		":holder":  text(c.Holder),
		":until":   epoch(c.LeaseUntil),
		":true":    boolean(true),
		":now":     epoch(now),
	}
	if idem != nil {
		return t.claimOnce(ctx, id, c, *idem, values, now)
	}
	f, err := t.change(ctx, "claiming "+id, id, claimChange, claimable, values)
	if errors.Is(err, files.ErrStateChanged) && f.State == files.Claimed && f.Claim.ID == c.ID {
		err = nil
	}
	return f, "", false, err
}

// claimOnce claims under an idempotency key, which is remembered with the id of the claim.
func (t *Table) claimOnce(ctx context.Context, id string, c files.Claim, idem files.Idempotency, values item, now time.Time) (files.File, string, bool, error) {
	doing := "claiming " + id
	x := t.begin()
	file := x.update(fileKey(id), claimChange, claimable, values)
	remembered := x.remember(idem, c.ID, now)
	refused, err := t.commit(ctx, x)
	if err != nil {
		return files.File{}, "", false, explain(doing, err)
	}
	row, fileRefused := refused.at(file)
	ours := false
	if row != nil {
		f, err := decodeFile(row)
		if err != nil {
			return files.File{}, "", false, err
		}
		ours = f.State == files.Claimed && f.Claim.ID == c.ID
	}
	if refused == nil || ours {
		f, err := t.File(ctx, id)
		return f, "", false, err
	}
	if row, failed := refused.at(remembered); failed { // before the state of the file: a repeat is answered whatever it is
		claim, err := earlier(row, idem)
		if err != nil {
			return files.File{}, "", false, err
		}
		f, err := t.File(ctx, id)
		return f, claim, err == nil, err
	}
	if !fileRefused {
		return files.File{}, "", false, fmt.Errorf("%s: refused without a reason", doing)
	}
	f, err := found(doing, row)
	return f, "", false, err
}

// Unclaim implements files.LeaseRecords.
func (t *Table) Unclaim(ctx context.Context, id, claim string) (files.File, error) {
	f, err := t.change(ctx, "releasing "+id, id, "SET #state = :ready", claimedBy, item{
		":claimed": text(string(files.Claimed)),
		":ready":   text(string(files.Ready)),
		":claim":   text(claim),
	})
	if errors.Is(err, files.ErrStateChanged) && f.State == files.Ready && f.Claim.ID == claim {
		err = nil
	}
	return f, err
}

// Extend implements files.LeaseRecords.
func (t *Table) Extend(ctx context.Context, id, claim string, until time.Time) (files.File, error) {
	return t.change(ctx, "extending the lease on "+id, id, "SET #lease_until = :until", claimedBy, item{
		":claimed": text(string(files.Claimed)),
		":claim":   text(claim),
		":until":   epoch(until),
	})
}

// Spend implements files.LeaseRecords: the transaction of End, for the holder of a claim alone.
func (t *Table) Spend(ctx context.Context, before files.File, claim string, now time.Time) (files.File, error) {
	doing := "spending " + before.ID
	before.State = files.Claimed
	after := ended(before, files.Ending{State: files.Spent, At: now})
	x := t.begin()
	change, values := x.ending(after)
	values[":claimed"], values[":claim"] = text(string(files.Claimed)), text(claim)
	file := x.update(fileKey(before.ID), change, claimedBy, values)
	x.unhold(before)
	refused, err := t.commit(ctx, x)
	if err != nil {
		return files.File{}, explain(doing, err)
	}
	row, failed := refused.at(file)
	switch {
	case refused == nil, failed && wrote(row, x.token):
		return after, nil
	case failed:
		return found(doing, row)
	}
	return files.File{}, unheld(doing)
}

// change makes one conditional update of the row of a file and returns the record as it is afterwards. Refused, it
// returns files.ErrStateChanged with the record that it found.
func (t *Table) change(ctx context.Context, doing, id, change, condition string, values item) (files.File, error) {
	in := dynamodb.UpdateItemInput{
		TableName:                           &t.name,
		Key:                                 fileKey(id),
		UpdateExpression:                    &change,
		ConditionExpression:                 &condition,
		ExpressionAttributeNames:            names(change, condition),
		ExpressionAttributeValues:           values,
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	for n := range attempts {
		if err := t.pause(ctx, n); err != nil {
			return files.File{}, err
		}
		out, err := t.client.UpdateItem(ctx, &in)
		var refused *types.ConditionalCheckFailedException
		var conflict *types.TransactionConflictException
		switch {
		case err == nil:
			return decodeFile(out.Attributes)
		case errors.As(err, &refused):
			return found(doing, refused.Item)
		case !errors.As(err, &conflict):
			return files.File{}, explain(doing, err)
		}
	}
	return files.File{}, explain(doing, errBusy)
}

// found is the answer of a conditional write on the row of a file that was refused.
func found(doing string, row item) (files.File, error) {
	if len(row) == 0 {
		return files.File{}, fmt.Errorf("%s: %w", doing, files.ErrFileNotFound)
	}
	f, err := decodeFile(row)
	if err != nil {
		return files.File{}, err
	}
	return f, fmt.Errorf("%s: %w", doing, files.ErrStateChanged)
}
