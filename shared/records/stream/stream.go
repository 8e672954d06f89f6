// Package stream reads the table's stream of changes: it tells which files have ended.
//
// It is apart from package records because its readers need no client of the table.
package stream

import (
	"github.com/aws/aws-lambda-go/events"

	"claimcheck.dev/claimcheck/shared/files"
)

// End is the end of one file, as a change of its row shows it.
type End struct {
	ID    string
	State files.State // what it became; for a removed row, what it was
	// Removed: the row itself is gone, because its reservation was taken back or, ByTTL, because its time was long over.
	Removed bool
	ByTTL   bool
}

// Ended reports whether r is the end of a file: its row changed from a live state to a final one, or was removed. Rows
// of other kinds, and changes of files that live on or had ended before, are none.
func Ended(r events.DynamoDBEventRecord) (End, bool) {
	id := text(r.Change.Keys, "pk")
	if !files.ValidID(id) || text(r.Change.Keys, "sk") != "file" {
		return End{}, false
	}
	before, after := state(r.Change.OldImage), state(r.Change.NewImage)
	if events.DynamoDBOperationType(r.EventName) == events.DynamoDBOperationTypeRemove {
		byTTL := r.UserIdentity != nil && r.UserIdentity.Type == "Service" && r.UserIdentity.PrincipalID == "dynamodb.amazonaws.com"
		return End{ID: id, State: before, Removed: true, ByTTL: byTTL}, true
	}
	if !before.Live() || after.Live() || after == "" {
		return End{}, false
	}
	return End{ID: id, State: after}, true
}

func state(image map[string]events.DynamoDBAttributeValue) files.State {
	return files.State(text(image, "state"))
}

// text returns an attribute, "" when it is missing or of another type: the accessors of events panic then.
func text(image map[string]events.DynamoDBAttributeValue, name string) string {
	v, ok := image[name]
	if !ok || v.DataType() != events.DataTypeString {
		return ""
	}
	return v.String()
}
