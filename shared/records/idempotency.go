package records

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
)

// idempotencyKey is where a request is remembered. The parts are quoted so that no two requests share a key.
func idempotencyKey(i files.Idempotency) item {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", i.Actor, i.Route, i.Key))
	return key("idem#"+i.Account+"#"+hex.EncodeToString(sum[:]), "idem")
}

// remember adds to x the row that ties idem to the file id. It is refused while the row of an earlier request stands;
// TTL may be days late, so the window is part of the condition.
func (x *transaction) remember(idem files.Idempotency, id string, now time.Time) int {
	expires := now.Add(files.IdempotencyWindow)
	row := idempotencyKey(idem)
	row["digest"] = text(idem.Digest)
	row["file"] = text(id)
	row["expires"] = epoch(expires)
	row["ttl"] = epoch(expires)
	return x.put(row, "attribute_not_exists(#pk) OR #expires <= :now", item{":now": epoch(now)})
}

// forget adds to x the removal of what remember wrote for the file id.
func (x *transaction) forget(idem files.Idempotency, id string) {
	x.remove(idempotencyKey(idem), "attribute_not_exists(#pk) OR #file = :id", item{":id": text(id)})
}

// earlier returns the file id of the request that a refused remember found, or files.ErrIdempotencyMismatch.
func earlier(row item, idem files.Idempotency) (id string, err error) {
	r := reader{row: row}
	digest, id := r.text("digest"), r.text("file")
	if r.err != nil {
		return "", fmt.Errorf("decoding an idempotency row: %w", r.err)
	}
	if digest != idem.Digest {
		return "", files.ErrIdempotencyMismatch
	}
	return id, nil
}
