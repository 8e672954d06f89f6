package main

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// file is what callers know of one file. Two kinds of knowledge are kept apart: what was acknowledged holds for every
// request that begins afterwards; what was only tried may have happened from the moment the request began.
type file struct {
	id      string
	owner   *identity
	single  bool
	size    int64  // declared; -1 when not
	charged int64  // what it counts until verified
	sha     string // declared, or ""
	kind    string // declared media type
	inline  bool
	// The bytes that pass, and those that pass everything but the type check.
	good, bad []byte

	expires, uploadBy time.Time

	mu        sync.Mutex
	url       string // of the presigned PUT
	urlEnds   time.Time
	headers   map[string]string
	putsBegun int
	known     facts
	readyAt   time.Time // when it became known that it is not reserved any more
	endedAt   time.Time // when it became known that it has ended
	tried     tries
	claims    []*claim
}

// facts were acknowledged.
type facts struct {
	staged   bool   // a PUT succeeded in time
	digest   string // it is, or was, ready with these bytes
	deleted  bool
	spent    string // the claim that spent it
	rejected bool
}

// tries may have happened.
type tries struct {
	puts    map[string]time.Time // digests of what was sent, with the earliest time
	badPut  bool
	deleted bool
	commits bool
}

// claim is an attempt to claim a file, and what became of it.
type claim struct {
	file       *file
	who        *identity
	holder     string
	start, end time.Time
	id         string // "" while nobody has acknowledged it
	// surely is until when the lease certainly lasts, possibly until when it may.
	surely, possibly time.Time
	releaseTried     bool
	releasedAt       time.Time // when that was acknowledged
	committing       time.Time // when its first commit was sent
}

func (f *file) snapshot() facts {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known
}

func (k facts) ended() bool { return k.deleted || k.spent != "" || k.rejected }

// fileObject is the part of a file object, or of an upload object, that is compared.
type fileObject struct {
	ID        string
	State     string
	SHA256    *string
	SizeBytes *int64 `json:"size_bytes"`
	Upload    *struct {
		URL       string
		ExpiresAt time.Time `json:"expires_at"`
		Headers   map[string]string
	}
	UploadBy  time.Time `json:"upload_by"`
	ExpiresAt time.Time `json:"expires_at"`
}

// shown compares a file object with what was known when the request began, and learns from it. It returns what is
// wrong, or "".
func (f *file) shown(before facts, o fileObject, a answer) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if o.ID != f.id {
		return "the object of another file, " + o.ID
	}
	if o.State == "expired" && (!a.end.Before(f.expires) || before.digest == "" && !a.end.Before(f.uploadBy)) {
		return "" // it was alive when it was looked up, and not any more when the answer was written
	}
	if !a.start.Before(f.expires) && o.State != "rejected" {
		return fmt.Sprintf("state %s after its expiry at %s", o.State, f.expires)
	}
	if before.deleted {
		return "shown after it was deleted"
	}
	if before.spent != "" {
		return "shown after it was spent"
	}
	switch o.State {
	case "ready", "claimed":
		if before.rejected {
			return o.State + " after it was rejected"
		}
		if o.State == "claimed" && len(f.claims) == 0 {
			return "claimed by nobody"
		}
		return f.nowReady(before, o.SHA256, o.SizeBytes)
	case "reserved":
		if before.digest != "" || before.rejected {
			return "reserved again"
		}
		if !a.start.Before(f.uploadBy) {
			return fmt.Sprintf("reserved after %s, by when its bytes had to come", f.uploadBy)
		}
	case "rejected":
		if !f.tried.badPut || before.digest != "" {
			return "rejected without cause"
		}
		f.nowRejected()
	default:
		return "shown in state " + o.State
	}
	return ""
}

// nowReady learns that the file is ready. The lock is held.
func (f *file) nowReady(before facts, digest *string, size *int64) string {
	if digest == nil || size == nil {
		return "ready without a digest or a size"
	}
	if before.digest != "" && before.digest != *digest {
		return "its digest changed from " + before.digest + " to " + *digest
	}
	sent, ok := f.tried.puts[*digest]
	if !ok {
		return "ready with bytes that nobody sent: " + *digest
	}
	if !f.inline && !sent.Before(f.uploadBy) {
		return "ready with bytes that were sent too late"
	}
	if f.sha != "" && *digest != f.sha {
		return "ready with other bytes than declared"
	}
	if *digest == sum(f.bad) && f.kind != anyType {
		return "ready with bytes of the wrong type"
	}
	if f.size >= 0 && *size != f.size {
		return fmt.Sprintf("ready with %d bytes, %d were declared", *size, f.size)
	}
	if f.known.digest = *digest; f.readyAt.IsZero() {
		f.readyAt = time.Now()
	}
	return ""
}

// The lock is held by the callers of these.

func (f *file) nowDeleted()        { f.known.deleted = true; f.nowEnded() }
func (f *file) nowRejected()       { f.known.rejected = true; f.nowEnded() }
func (f *file) nowSpent(by string) { f.known.spent = by; f.nowEnded() }

func (f *file) nowEnded() {
	if f.endedAt.IsZero() {
		f.endedAt = time.Now()
	}
}

// refused compares a refusal that is about the state of the file with what was known when the request began.
func (f *file) refused(before facts, a answer) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	tooLate := !a.end.Before(f.expires)
	switch a.code {
	case "file_deleted":
		if !f.tried.deleted {
			return "deleted by nobody"
		}
		f.nowDeleted()
	case "file_spent":
		if !f.tried.commits || before.deleted {
			return "spent by nobody, or after it was deleted"
		}
	case "file_expired":
		if !tooLate || before.ended() || before.digest == "" && len(f.tried.puts) == 0 {
			return "expired before its time, or after another end"
		}
	case "upload_expired":
		if a.end.Before(f.uploadBy) || before.ended() || before.digest != "" {
			return "its upload expired before its time, or after another end"
		}
	case "file_rejected", "type_mismatch":
		if !f.tried.badPut || before.digest != "" || before.deleted {
			return "rejected without cause"
		}
		f.nowRejected()
	case "not_uploaded":
		if before.digest != "" || before.staged && a.end.Before(f.uploadBy) || before.ended() {
			return "not uploaded, though its bytes were acknowledged or it had ended"
		}
	case "claim_required":
		if !f.single || before.ended() {
			return "a claim is required though it is not single use, or has ended"
		}
	case "not_single_use":
		if f.single || before.ended() {
			return "not single use, though it is, or has ended"
		}
	default:
		return "an answer that nothing explains"
	}
	if before.deleted && a.code != "file_deleted" {
		return "another answer after it was deleted"
	}
	if before.spent != "" && !f.tried.deleted && a.code != "file_spent" {
		return "another answer after it was spent"
	}
	return ""
}

// certainlyLive tells that the file counts against its account from now until the returned moment, whatever is under
// way. The lock is held.
func (f *file) certainlyLive(now time.Time) bool {
	if f.tried.deleted || f.tried.commits || f.tried.badPut || f.known.ended() || !now.Before(f.expires) {
		return false
	}
	return f.known.digest != "" || now.Before(f.uploadBy)
}

// possiblyLive tells that the file may count against its account at some time from start on. The lock is held.
func (f *file) possiblyLive(start time.Time) bool {
	if !f.endedAt.IsZero() && f.endedAt.Before(start) || !start.Before(f.expires) {
		return false
	}
	return len(f.tried.puts) > 0 || start.Before(f.uploadBy)
}

// charge is what the file certainly and possibly counts, in bytes. The lock is held.
func (f *file) charge() (certain, possible int64) {
	switch {
	case f.size >= 0:
		return f.size, f.size
	case f.known.digest == "" && f.putsBegun == 0:
		return f.charged, f.charged
	}
	return 1, f.charged // an upload of unknown length is settled at verification
}

// claimAcknowledged checks an acknowledged claim against the others. The lock is not held.
func (f *file) claimAcknowledged(before facts, c *claim, id string, until time.Time, a answer) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if before.ended() || !f.single || !a.start.Before(f.expires) {
		return "claimed after its end, or though it is not single use"
	}
	for _, other := range f.claims {
		if other == c || other.id == "" || !other.end.Before(a.start) || other.releaseTried || !other.committing.IsZero() {
			continue
		}
		same := other.who.actor == c.who.actor && other.holder == c.holder
		if a.end.Before(other.surely) && (!same || other.id != id) && !f.superseded(other) {
			return fmt.Sprintf("claimed as %s while %s certainly held it until %s", id, other.id, other.surely)
		}
	}
	if until.After(f.expires) {
		return "a lease that outlives its file"
	}
	c.id, c.surely, c.possibly = id, until, until
	for _, other := range f.claims { // the same claim, given to its holder before
		if other != c && other.id == id {
			c.releaseTried, c.releasedAt, c.committing = other.releaseTried, other.releasedAt, other.committing
			if other.surely.Before(c.surely) { // it may be shortened just now
				c.surely = other.surely
			}
		}
	}
	return ""
}

// superseded tells that a later claim may have taken the place of c. The lock is held.
func (f *file) superseded(c *claim) bool {
	return slices.ContainsFunc(f.claims, func(o *claim) bool { return o != c && o.id != c.id && o.end.After(c.end) && !o.start.Before(c.surely) })
}

// mayBeClaimed tells that somebody other than c may hold the file at some time between start and end.
func (f *file) mayBeClaimed(c *claim, a answer) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.claims, func(o *claim) bool {
		return o != c && o.start.Before(a.end) && a.start.Before(o.possibly) && !(!o.releasedAt.IsZero() && o.releasedAt.Before(a.start))
	})
}

// mayBeLost tells that c may not be the current claim any more.
func (f *file) mayBeLost(c *claim) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return c.releaseTried || slices.ContainsFunc(f.claims, func(o *claim) bool { return o != c && o.id != c.id && o.end.After(c.start) || o != c && o.id == "" })
}
