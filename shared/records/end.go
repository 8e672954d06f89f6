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
	after := ended(before, end)
	x := t.begin()
	change, values := x.ending(after)
	values[":from"] = text(string(before.State))
	if end.Reason != nil {
		change += ", #reason = :reason"
		values[":reason"] = reasonValue(*end.Reason)
	}
	file := x.update(fileKey(before.ID), change, "#state = :from", values)
	if before.State.Live() {
		x.unhold(before)
	}
	if err := t.move(ctx, x, file, "ending "+before.ID); err != nil {
		return files.File{}, err
	}
	return after, nil
}

// ended is f after its end.
func ended(f files.File, end files.Ending) files.File {
	f.State, f.EndedAt = end.State, end.At.UTC().Truncate(time.Second)
	if end.Reason != nil {
		f.Reason = end.Reason
	}
	return f
}

// ending is the change that makes the row of a file the tombstone of after.
func (x *transaction) ending(after files.File) (change string, values item) {
	return "SET #state = :to, #ended_at = :at, #ttl = :ttl, #write = :write", item{
		":to":    text(string(after.State)),
		":at":    epoch(after.EndedAt),
		":ttl":   epoch(tombstoneEnd(after)),
		":write": text(x.token),
	}
}

// unhold ends the hold of f, as it is while live, and takes it off the counters.
func (x *transaction) unhold(f files.File) {
	x.remove(holdKey(f), "attribute_exists(#pk)", nil)
	x.uncharge(f)
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
	return unheld(doing)
}

// unheld says that a live file has no hold. A reconcile restores it.
func unheld(doing string) error {
	return fmt.Errorf("%s: the file is live but its hold is missing", doing)
}
