package records

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"claimcheck.dev/claimcheck/shared/files"
)

// tombstoneFor is how long the record of a finished file stays, to answer 410: by its end or its expiry, whichever is
// later. The API promises 24 hours.
const tombstoneFor = 48 * time.Hour

const fileSort = "file" // the sort key of the rows of files

func fileKey(id string) item { return key(id, fileSort) }

// fileRow is the row of f. What has no value takes no space.
func fileRow(f files.File, token string) item {
	row := fileKey(f.ID)
	row["list_pk"] = text(listOf(f.Account))
	row["list_sk"] = text(stamp(f.CreatedAt) + "#" + f.ID)
	row["ttl"] = epoch(tombstoneEnd(f))
	row["write"] = text(token)
	row["account"] = text(f.Account)
	row["actor"] = text(f.Actor)
	row["state"] = text(string(f.State))
	row["purpose"] = text(string(f.Purpose))
	row["filename"] = text(f.Filename)
	row["content_type"] = text(f.ContentType)
	row["charged"] = number(f.Charged)
	row["created_at"] = epoch(f.CreatedAt)
	row["upload_by"] = epoch(f.UploadBy)
	row["expires_at"] = epoch(f.ExpiresAt)
	if f.Size != files.SizeUnknown {
		row["size"] = number(f.Size)
	}
	row.setText("run", f.Run)
	row.setText("detected_type", f.DetectedType)
	row.setText("sha256", f.SHA256)
	row.setText("sealed", f.Sealed)
	row.setTime("verified_at", f.VerifiedAt)
	row.setTime("ended_at", f.EndedAt)
	row.setTrue("single_use", f.SingleUse)
	row.setTrue("counted", f.Counted)
	if len(f.Metadata) > 0 {
		m := make(map[string]types.AttributeValue, len(f.Metadata))
		for k, v := range f.Metadata {
			m[k] = text(v)
		}
		row["metadata"] = &types.AttributeValueMemberM{Value: m}
	}
	if f.Reason != nil {
		row["reason"] = reasonValue(*f.Reason)
	}
	row.setText("claim_id", f.Claim.ID)
	row.setText("claim_actor", f.Claim.Actor)
	row.setText("claim_holder", f.Claim.Holder)
	row.setTime("lease_until", f.Claim.LeaseUntil)
	return row
}

func reasonValue(r files.Reason) types.AttributeValue {
	m := item{"code": text(r.Code), "detail": text(r.Detail)}
	m.setText("declared", r.Declared)
	m.setText("detected", r.Detected)
	return &types.AttributeValueMemberM{Value: m}
}

// tombstoneEnd is when the row of f may be removed.
func tombstoneEnd(f files.File) time.Time {
	end := f.ExpiresAt
	if f.EndedAt.After(end) {
		end = f.EndedAt
	}
	return end.Add(tombstoneFor)
}

func decodeFile(row item) (files.File, error) {
	r := reader{row: row}
	f := files.File{
		ID:           r.text("pk"),
		Account:      r.text("account"),
		Actor:        r.text("actor"),
		State:        files.State(r.text("state")),
		Purpose:      files.Purpose(r.text("purpose")),
		Run:          r.maybeText("run"),
		Filename:     r.text("filename"),
		ContentType:  r.text("content_type"),
		DetectedType: r.maybeText("detected_type"),
		Size:         files.SizeUnknown,
		SHA256:       r.maybeText("sha256"),
		SingleUse:    r.flag("single_use"),
		Metadata:     r.texts("metadata"),
		CreatedAt:    r.time("created_at"),
		UploadBy:     r.time("upload_by"),
		ExpiresAt:    r.time("expires_at"),
		VerifiedAt:   r.maybeTime("verified_at"),
		EndedAt:      r.maybeTime("ended_at"),
		Sealed:       r.maybeText("sealed"),
		Charged:      r.number("charged"),
		Counted:      r.flag("counted"),
		Claim: files.Claim{
			ID:         r.maybeText("claim_id"),
			Actor:      r.maybeText("claim_actor"),
			Holder:     r.maybeText("claim_holder"),
			LeaseUntil: r.maybeTime("lease_until"),
		},
	}
	if r.has("size") {
		f.Size = r.number("size")
	}
	if reason, ok := row["reason"].(*types.AttributeValueMemberM); ok {
		m := reader{row: reason.Value}
		f.Reason = &files.Reason{
			Code:     m.text("code"),
			Detail:   m.text("detail"),
			Declared: m.maybeText("declared"),
			Detected: m.maybeText("detected"),
		}
		r.err = errors.Join(r.err, m.err)
	}
	if r.err != nil {
		return files.File{}, fmt.Errorf("decoding the row of %s: %w", f.ID, r.err)
	}
	return f, nil
}

func (i item) setText(name, s string) {
	if s != "" {
		i[name] = text(s)
	}
}

func (i item) setTime(name string, t time.Time) {
	if !t.IsZero() {
		i[name] = epoch(t)
	}
}

func (i item) setTrue(name string, b bool) {
	if b {
		i[name] = boolean(true)
	}
}

// reader takes attributes out of a row and remembers the first one that is missing or of the wrong type.
type reader struct {
	row item
	err error
}

func (r *reader) has(name string) bool { return r.row[name] != nil }

func (r *reader) fail(name, want string) {
	if r.err == nil {
		r.err = fmt.Errorf("the attribute %s is not %s", name, want)
	}
}

func (r *reader) text(name string) string {
	v, ok := r.row[name].(*types.AttributeValueMemberS)
	if !ok {
		r.fail(name, "text")
		return ""
	}
	return v.Value
}

func (r *reader) maybeText(name string) string {
	if !r.has(name) {
		return ""
	}
	return r.text(name)
}

func (r *reader) number(name string) int64 {
	v, ok := r.row[name].(*types.AttributeValueMemberN)
	if !ok {
		r.fail(name, "a number")
		return 0
	}
	n, err := strconv.ParseInt(v.Value, 10, 64)
	if err != nil {
		r.fail(name, "a whole number")
	}
	return n
}

func (r *reader) maybeNumber(name string) int64 {
	if !r.has(name) {
		return 0
	}
	return r.number(name)
}

func (r *reader) time(name string) time.Time { return time.Unix(r.number(name), 0).UTC() }

func (r *reader) maybeTime(name string) time.Time {
	if !r.has(name) {
		return time.Time{}
	}
	return r.time(name)
}

func (r *reader) flag(name string) bool {
	if !r.has(name) {
		return false
	}
	v, ok := r.row[name].(*types.AttributeValueMemberBOOL)
	if !ok {
		r.fail(name, "a boolean")
		return false
	}
	return v.Value
}

func (r *reader) binary(name string) []byte {
	v, ok := r.row[name].(*types.AttributeValueMemberB)
	if !ok {
		r.fail(name, "binary")
		return nil
	}
	return v.Value
}

func (r *reader) texts(name string) map[string]string {
	if !r.has(name) {
		return nil
	}
	v, ok := r.row[name].(*types.AttributeValueMemberM)
	if !ok {
		r.fail(name, "a map")
		return nil
	}
	m := reader{row: v.Value}
	out := make(map[string]string, len(v.Value))
	for k := range v.Value {
		out[k] = m.text(k)
	}
	if m.err != nil {
		r.fail(name, "a map of texts")
	}
	return out
}
