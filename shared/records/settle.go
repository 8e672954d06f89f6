package records

import (
	"context"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
)

// MarkReady implements files.VerifyRecords and files.InlineRecords: one transaction over file, hold and, as far as
// they change, account and actor. The hold moves to the deadline of a ready file, which is another sort key.
func (t *Table) MarkReady(ctx context.Context, before files.File, v files.Verified) (files.File, error) {
	before.State = files.Reserved
	after := before
	after.State = files.Ready
	after.Sealed, after.SHA256 = v.Sealed.Object, v.Sealed.SHA256
	after.Size, after.Charged = v.Size, v.Size
	after.DetectedType = v.DetectedType
	after.VerifiedAt = v.At.UTC().Truncate(time.Second)

	x := t.begin()
	change := "SET #state = :ready, #sealed = :sealed, #sha256 = :sha256, #size = :size, #charged = :size, #verified_at = :at, #write = :write"
	values := item{
		":reserved": text(string(files.Reserved)),
		":ready":    text(string(files.Ready)),
		":sealed":   text(after.Sealed),
		":sha256":   text(after.SHA256),
		":size":     number(after.Size),
		":at":       epoch(after.VerifiedAt),
		":write":    text(x.token),
	}
	if v.DetectedType != "" {
		change += ", #detected_type = :detected"
		values[":detected"] = text(v.DetectedType)
	}
	file := x.update(fileKey(before.ID), change, "#state = :reserved", values)
	if before.Deadline().Equal(after.Deadline()) {
		x.put(holdRow(after), "attribute_exists(#pk)", nil)
	} else {
		x.remove(holdKey(before), "attribute_exists(#pk)", nil)
		x.put(holdRow(after), "", nil)
	}
	if more := after.Charged - before.Charged; more != 0 {
		x.update(accountKey(before.Account), "ADD #bytes :more", "", item{":more": number(more)})
	}
	x.unreserve(hold{account: before.Account, actor: before.Actor, counted: before.Counted, unsized: unsized(before)})
	if err := t.move(ctx, x, file, "marking "+before.ID+" ready"); err != nil {
		return files.File{}, err
	}
	return after, nil
}
