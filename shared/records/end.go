package records

import (
	"context"
	"fmt"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
)

// End implements files.DeleteRecords: one transaction over file and, while the file is live, hold, account and, for a
// reservation, actor.
func (t *Table) End(ctx context.Context, before files.File, end files.Ending) (files.File, error) {
	if end.State.Live() {
		return files.File{}, fmt.Errorf("ending %s: %s is no end", before.ID, end.State)
	}
	after := before
	after.State, after.EndedAt = end.State, end.At.UTC().Truncate(time.Second)
	x := t.begin()
	change := "SET #state = :to, #ended_at = :at, #ttl = :ttl, #write = :write"
	values := item{
		":from":  text(string(before.State)),
		":to":    text(string(after.State)),
		":at":    epoch(after.EndedAt),
		":ttl":   epoch(tombstoneEnd(after)),
		":write": text(x.token),
	}
	if end.Reason != nil {
		after.Reason = end.Reason
		change += ", #reason = :reason"
		values[":reason"] = reasonValue(*end.Reason)
	}
	file := x.update(fileKey(before.ID), change, "#state = :from", values)
	if before.State.Live() {
		x.remove(holdKey(before), "attribute_exists(#pk)", nil)
		x.uncharge(before)
	}
	if err := t.move(ctx, x, file, "ending "+before.ID); err != nil {
		return files.File{}, err
	}
	return after, nil
}

// move commits a change of state. Refused by the row of the file, it is files.ErrStateChanged, unless an earlier
// attempt of x itself made the change.
func (t *Table) move(ctx context.Context, x *transaction, file int, doing string) error {
	refused, err := t.commit(ctx, x)
	if err != nil {
		return explain(doing, err)
	}
	if refused == nil {
		return nil
	}
	row, failed := refused.at(file)
	switch {
	case failed && wrote(row, x.token):
		return nil
	case failed:
		return fmt.Errorf("%s: %w", doing, files.ErrStateChanged)
	}
	return fmt.Errorf("%s: the file is live but its hold is missing", doing)
}
