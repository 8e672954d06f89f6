package files

import (
	"time"
)

// State is where a file stands in its life:
//
//	reserved -> ready -> claimed -> spent
//	reserved -> rejected; reserved, ready, claimed -> expired; any -> deleted
type State string

const (
	Reserved State = "reserved" // a slot; bytes not verified yet
	Ready    State = "ready"    // verified, sealed, readable
	Claimed  State = "claimed"  // single use, leased to one holder
	Spent    State = "spent"    // single use, committed
	Rejected State = "rejected" // the bytes failed verification
	Expired  State = "expired"  // its time ran out
	Deleted  State = "deleted"  // removed on request
)

// Live reports whether a file in state s holds quota.
func (s State) Live() bool { return s == Reserved || s == Ready || s == Claimed }

// LiveStates lists the states for which Live is true.
var LiveStates = []State{Reserved, Ready, Claimed}

// States lists every state.
var States = []State{Reserved, Ready, Claimed, Spent, Rejected, Expired, Deleted}

// Purpose says why a file exists and, with it, who may read it.
type Purpose string

const (
	Upload      Purpose = "upload"       // plain upload: any actor of the account
	UserUpload  Purpose = "user_upload"  // made by a run: its creator only
	AgentOutput Purpose = "agent_output" // whoever can read its run
	Fixture     Purpose = "fixture"      // platform files for evaluations
)

// Purposes lists every purpose.
var Purposes = []Purpose{Upload, UserUpload, AgentOutput, Fixture}

// SizeUnknown is File.Size before an upload of undeclared length is verified.
const SizeUnknown int64 = -1

// File is one record. Times are UTC in whole seconds.
type File struct {
	ID      string
	Account string
	Actor   string // who created it
	State   State
	Purpose Purpose
	Run     string // the run it belongs to, or ""

	Filename     string
	ContentType  string // as declared, parameters included
	DetectedType string // what the bytes say, or ""
	Size         int64  // bytes: declared, then verified; SizeUnknown before that
	SHA256       string // lower-case hex: declared, then verified; "" when unknown
	SingleUse    bool
	Metadata     map[string]string

	CreatedAt  time.Time
	UploadBy   time.Time // bytes must be there by then; fixed at reserve
	ExpiresAt  time.Time // the end of the file; fixed at reserve
	VerifiedAt time.Time // zero until ready
	EndedAt    time.Time // zero while live

	// Sealed names the one object that may be linked; opaque to this package, "" until ready.
	Sealed string
	Reason *Reason // why it was rejected

	Charged int64 // bytes counted against the account while live
	Counted bool  // whether it counts as a reservation of its actor while reserved

	Claim Claim // the current or last claim of a single-use file
}

// Reason says why bytes were rejected. Code is an error code of the API.
type Reason struct {
	Code     string
	Detail   string
	Declared string // type_mismatch: the declared media type
	Detected string // type_mismatch: what the bytes are, or ""
}

// Claim is an exclusive lease on a single-use file.
type Claim struct {
	ID         string // "" when the file was never claimed
	Actor      string
	Holder     string
	LeaseUntil time.Time
}

// Deadline is the moment at which a live file ends by the clock: UploadBy while reserved, ExpiresAt afterwards.
func (f File) Deadline() time.Time {
	if f.State == Reserved {
		return f.UploadBy
	}
	return f.ExpiresAt
}

// At is the state of f at now: the clock, not the stored state, decides expiry and the end of a lease.
func (f File) At(now time.Time) State {
	if f.State.Live() && !now.Before(f.Deadline()) {
		return Expired
	}
	if f.State == Claimed && !now.Before(f.Claim.LeaseUntil) {
		return Ready
	}
	return f.State
}

// uses reports whether f is live and its bytes are in object.
func (f File) uses(object string) bool { return f.State.Live() && f.Sealed == object }

// Gone returns the error that explains why f can't be used at now, or nil while it is live.
func (f File) Gone(now time.Time) error {
	switch f.At(now) {
	case Spent:
		return ErrFileSpent
	case Deleted:
		return ErrFileDeleted
	case Rejected:
		return &RejectedError{File: f}
	case Expired:
		if f.VerifiedAt.IsZero() {
			return ErrUploadExpired
		}
		return ErrFileExpired
	}
	return nil
}
