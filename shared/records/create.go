package records

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"claimcheck.dev/claimcheck/shared/files"
)

// Create implements files.Creator: one transaction over file, hold, account and, as far as they take part, actor and
// idempotency row.
func (t *Table) Create(ctx context.Context, f files.File, q files.Quota, idem *files.Idempotency, now time.Time) (files.File, bool, error) {
	x := t.begin()
	file := x.put(fileRow(f, x.token), "attribute_not_exists(#pk)", nil)
	x.put(holdRow(f), "", nil)
	account := x.charge(f, q)
	actor, remembered := -1, -1
	if f.Counted {
		actor = x.reserve(f, q)
	}
	if idem != nil {
		remembered = x.remember(*idem, f.ID, now)
	}
	for range attempts {
		refused, err := t.commit(ctx, x)
		if err != nil {
			return files.File{}, false, explain("creating "+f.ID, err)
		}
		if refused == nil {
			return f, false, nil
		}
		if row, failed := refused.at(file); failed && wrote(row, x.token) {
			return f, false, nil
		}
		if row, failed := refused.at(remembered); failed { // before any limit: a repeat needs no room
			id, err := earlier(row, *idem)
			if err != nil {
				return files.File{}, false, err
			}
			got, err := t.File(ctx, id)
			if errors.Is(err, files.ErrFileNotFound) {
				continue // the earlier request is just being taken back, its idempotency row with it
			}
			return got, err == nil, err
		}
		if _, failed := refused.at(file); failed {
			return files.File{}, false, fmt.Errorf("creating %s: there is a file with this id", f.ID)
		}
		if row, failed := refused.at(actor); failed {
			return files.File{}, false, actorLimit(row, q)
		}
		if _, failed := refused.at(account); failed {
			return files.File{}, false, &files.LimitError{Kind: files.LimitBytes, Max: q.AccountMaxLiveBytes}
		}
		return files.File{}, false, fmt.Errorf("creating %s: refused without a reason", f.ID)
	}
	return files.File{}, false, fmt.Errorf("creating %s: an earlier request with this Idempotency-Key is in between: %w", f.ID, files.ErrTryAgain)
}

// Undo implements files.Creator.
func (t *Table) Undo(ctx context.Context, f files.File, idem *files.Idempotency) error {
	x := t.begin()
	file := x.remove(fileKey(f.ID), "#state = :reserved", item{":reserved": text(string(files.Reserved))})
	f.State = files.Reserved
	x.remove(holdKey(f), "attribute_exists(#pk)", nil)
	x.uncharge(f)
	if idem != nil {
		x.forget(*idem, f.ID)
	}
	refused, err := t.commit(ctx, x)
	if err != nil {
		return explain("taking back "+f.ID, err)
	}
	if refused == nil {
		return nil
	}
	row, failed := refused.at(file)
	switch {
	case failed && row == nil:
		return nil // never created, or taken back before
	case failed:
		return fmt.Errorf("taking back %s: %w", f.ID, files.ErrStateChanged)
	}
	return fmt.Errorf("taking back %s: its hold or its idempotency row is not as Create left it", f.ID)
}

const usage = "usage" // the sort key of the counters of an account

func accountOf(account string) string { return "account#" + account }

func actorOf(actor string) string { return "actor#" + actor }

func accountKey(account string) item { return key(accountOf(account), usage) }

func actorKey(account, actor string) item { return key(accountOf(account), actorOf(actor)) }

// charge counts f against its account; refused when that would exceed the bytes of q.
func (x *transaction) charge(f files.File, q files.Quota) int {
	condition, room := within("bytes", ":room", q.AccountMaxLiveBytes-f.Charged)
	return x.update(accountKey(f.Account), "ADD #bytes :n, #files :one, #moves :one", condition,
		item{":n": number(f.Charged), ":one": number(1), ":room": room})
}

// reserve counts f as a reservation of its actor; refused when that would exceed q.
func (x *transaction) reserve(f files.File, q files.Quota) int {
	change := "ADD #reservations :one"
	condition, room := within("reservations", ":room", q.ActorMaxReservations-1)
	values := item{":one": number(1), ":room": room}
	if n := unsized(f); n > 0 {
		change += ", #unsized :n"
		c, room := within("unsized", ":unsized_room", q.ActorMaxUnsizedBytes-n)
		condition += " AND " + c
		values[":n"], values[":unsized_room"] = number(n), room
	}
	return x.update(actorKey(f.Account, f.Actor), change, condition, values)
}

// within is the condition that a counter, zero while it doesn't exist, is at most room.
func within(counter, value string, room int64) (condition string, _ types.AttributeValue) {
	if room < 0 { // no counter is: not even zero fits
		return "#" + counter + " <= " + value, number(room)
	}
	return "(attribute_not_exists(#" + counter + ") OR #" + counter + " <= " + value + ")", number(room)
}

// actorLimit tells which limit of q the counters of an actor leave no room under.
func actorLimit(row item, q files.Quota) error {
	r := reader{row: row}
	if r.maybeNumber("reservations")+1 > q.ActorMaxReservations {
		return &files.LimitError{Kind: files.LimitReservations, Max: q.ActorMaxReservations}
	}
	return &files.LimitError{Kind: files.LimitUnsized, Max: q.ActorMaxUnsizedBytes}
}

// unsized is how many of the bytes charged for f stand for a size nobody knows yet.
func unsized(f files.File) int64 {
	if f.State == files.Reserved && f.Counted && f.Size == files.SizeUnknown {
		return f.Charged
	}
	return 0
}

// uncharge takes f, as it is before its end, off the counters of its account and actor.
func (x *transaction) uncharge(f files.File) {
	x.discharge(hold{account: f.Account, actor: f.Actor, bytes: f.Charged, counted: f.State == files.Reserved && f.Counted, unsized: unsized(f)})
}
