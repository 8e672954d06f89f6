package files

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Refusals of claims.
var (
	ErrClaimNotFound = errors.New("claim not found")
	ErrLeaseLost     = errors.New("the claim is not the current one")
	ErrNotSingleUse  = errors.New("only single-use files are claimed")
)

// ClaimedError refuses a claim while another holder's lease lives.
type ClaimedError struct {
	RetryAfter time.Duration // until the lease ends, at least a second
}

func (e *ClaimedError) Error() string { return "another holder has claimed the file" }

const (
	claimPrefix = "c_"
	claimRandom = 26 // characters of [a-z0-9] behind those of the file id
	maxHolder   = 255
)

// newClaimID makes the id of a claim on file id. It embeds the file id, so that no index is needed to find the file.
func newClaimID(fileID, random string) string {
	return claimPrefix + strings.TrimPrefix(fileID, filePrefix) + random
}

// fileOfClaim returns the file id inside a claim id.
func fileOfClaim(claim string) (string, bool) {
	rest, ok := strings.CutPrefix(claim, claimPrefix)
	if !ok || !ValidRandomText(rest, idRandom+claimRandom) {
		return "", false
	}
	return filePrefix + rest[:idRandom], true
}

// ClaimRecords is what Claimer needs of the table. A write whose condition doesn't hold returns ErrStateChanged together
// with the record it found, so that the reason of a refusal needs no second read, or ErrFileNotFound when there is none.
type ClaimRecords interface {
	Finder
	// Claim gives an unexpired single-use file to c: from ready, or from claimed when the lease there is not after
	// now. With idem it also remembers c.ID under it, all or nothing; a remembered one that matches returns the file
	// and the claim id of then with repeated true, another digest is ErrIdempotencyMismatch.
	Claim(ctx context.Context, id string, c Claim, idem *Idempotency, now time.Time) (f File, claimID string, repeated bool, err error)
}

// LeaseRecords is what Claims needs of the table; like ClaimRecords, its writes return the record they found together
// with ErrStateChanged.
type LeaseRecords interface {
	Finder
	// Unclaim moves a file claimed by claim back to ready and keeps the claim as the last one. When that has been done
	// already, it is a success.
	Unclaim(ctx context.Context, id, claim string) (File, error)
	// Extend sets the lease of a file claimed by claim.
	Extend(ctx context.Context, id, claim string, until time.Time) (File, error)
	// Spend ends a file claimed by claim as spent and gives back its quota, once.
	Spend(ctx context.Context, before File, claim string, now time.Time) (File, error)
}

// Claimer lends single-use files to one holder at a time.
type Claimer struct {
	Records  ClaimRecords
	Verifier *Verifier
	Signer   LinkSigner
	Lease    time.Duration // default and maximum of a lease
	LinkTTL  time.Duration
	Now      func() time.Time
	Random   func(n int) string // RandomText
}

// Lent is a claimed file together with the link that reads it under the lease.
type Lent struct {
	File File // its Claim is the lease
	Link Link
	New  bool // false when the same actor and holder had it already
}

// Claim leases id to holder for leaseSeconds (nil: the default), never longer than the file lives. The same actor and
// holder get the same claim while its lease lives. The errors are *ValidationError, ErrFileNotFound, ErrNotUploaded,
// ErrNotSingleUse, *ClaimedError, ErrIdempotencyMismatch, and why the file is gone.
func (s *Claimer) Claim(ctx context.Context, c Caller, id, holder string, leaseSeconds *int64, idem *Idempotency) (Lent, error) {
	lease, problem := secondsUpTo(leaseSeconds, s.Lease)
	if problem != "" {
		return Lent{}, Invalid("lease_seconds", problem)
	}
	if holder == "" || len(holder) > maxHolder {
		return Lent{}, Invalid("holder", "must be 1 to 255 bytes")
	}
	f, err := visible(ctx, s.Records, c, id)
	if err != nil {
		return Lent{}, err
	}
	if !CapabilitiesOf(c, f).Claim {
		return Lent{}, ErrForbidden
	}
	if f, err = s.Verifier.Verify(ctx, f); err != nil {
		return Lent{}, err
	}
	now := s.Now()
	if err := f.Gone(now); err != nil {
		return Lent{}, err
	}
	if !f.SingleUse {
		return Lent{}, ErrNotSingleUse
	}
	claim := Claim{
		ID: newClaimID(f.ID, s.Random(claimRandom)), Actor: c.Actor, Holder: holder,
		LeaseUntil: earliest(now.Add(lease).UTC().Truncate(time.Second), f.ExpiresAt),
	}
	got, claimID, repeated, err := s.Records.Claim(ctx, f.ID, claim, idem, now)
	switch {
	case errors.Is(err, ErrStateChanged):
		if err := held(got, claim, now); err != nil {
			return Lent{}, err
		}
		repeated = true
	case err != nil:
		return Lent{}, fmt.Errorf("claiming %s: %w", f.ID, err)
	}
	if err := got.Gone(now); err != nil {
		return Lent{}, err
	}
	if repeated && claimID != "" && (got.Claim.ID != claimID || got.At(now) != Claimed) {
		return Lent{}, ErrLeaseLost // the claim made under this Idempotency-Key is over
	}
	return s.withLink(ctx, got, now, !repeated)
}

// held decides what it means that f could not be claimed by want: nil when the same holder has it already.
func held(f File, want Claim, now time.Time) error {
	if err := f.Gone(now); err != nil {
		return err
	}
	if f.At(now) != Claimed {
		return fmt.Errorf("the lease of %s just ended: %w", f.ID, ErrTryAgain)
	}
	if f.Claim.Actor == want.Actor && f.Claim.Holder == want.Holder {
		return nil
	}
	return &ClaimedError{RetryAfter: max(time.Second, f.Claim.LeaseUntil.Sub(now))}
}

func (s *Claimer) withLink(ctx context.Context, f File, now time.Time, isNew bool) (Lent, error) {
	until := earliest(now.Add(s.LinkTTL), f.ExpiresAt, f.Claim.LeaseUntil)
	link, err := signLink(ctx, s.Signer, f, "GET", now, until)
	if err != nil {
		return Lent{}, err
	}
	return Lent{File: f, Link: link, New: isNew}, nil
}

// Claims ends and extends leases.
type Claims struct {
	Records LeaseRecords
	Cleaner Cleaner
	Lease   time.Duration // default and maximum of a lease
	Now     func() time.Time
}

// Commit spends the file of claim. A repeat succeeds; it also succeeds after the lease ran out when nobody else claimed
// the file since, else ErrLeaseLost.
func (s *Claims) Commit(ctx context.Context, c Caller, claim string) (File, error) {
	f, err := s.find(ctx, c, claim)
	if err != nil {
		return File{}, err
	}
	if f.State == Spent && f.Claim.ID == claim {
		return f, nil
	}
	if err := current(f, claim, s.Now()); err != nil {
		return File{}, err
	}
	now := s.Now()
	spent, err := s.Records.Spend(ctx, f, claim, now)
	if errors.Is(err, ErrStateChanged) {
		if spent.State == Spent && spent.Claim.ID == claim {
			return spent, nil
		}
		return File{}, changed(spent, claim, now)
	}
	if err != nil {
		return File{}, unclaimed(fmt.Errorf("spending %s: %w", f.ID, err))
	}
	s.Cleaner.Clean(ctx, spent)
	return spent, nil
}

// Release gives the file of claim back unspent. A repeat succeeds.
func (s *Claims) Release(ctx context.Context, c Caller, claim string) (File, error) {
	f, err := s.find(ctx, c, claim)
	if err != nil {
		return File{}, err
	}
	now := s.Now()
	if f.State == Ready && f.Claim.ID == claim && f.Gone(now) == nil {
		return f, nil
	}
	if err := current(f, claim, now); err != nil {
		return File{}, err
	}
	released, err := s.Records.Unclaim(ctx, f.ID, claim)
	if errors.Is(err, ErrStateChanged) {
		return File{}, changed(released, claim, now)
	}
	if err != nil {
		return File{}, unclaimed(fmt.Errorf("releasing %s: %w", f.ID, err))
	}
	return released, nil
}

// Extend sets the lease of claim to leaseSeconds from now (nil: the default), never past the end of the file.
func (s *Claims) Extend(ctx context.Context, c Caller, claim string, leaseSeconds *int64) (File, error) {
	lease, problem := secondsUpTo(leaseSeconds, s.Lease)
	if problem != "" {
		return File{}, Invalid("lease_seconds", problem)
	}
	f, err := s.find(ctx, c, claim)
	if err != nil {
		return File{}, err
	}
	now := s.Now()
	if err := current(f, claim, now); err != nil {
		return File{}, err
	}
	until := earliest(now.Add(lease).UTC().Truncate(time.Second), f.ExpiresAt)
	extended, err := s.Records.Extend(ctx, f.ID, claim, until)
	if errors.Is(err, ErrStateChanged) {
		return File{}, changed(extended, claim, now)
	}
	if err != nil {
		return File{}, unclaimed(fmt.Errorf("extending the lease on %s: %w", f.ID, err))
	}
	return extended, nil
}

// find returns the file of claim if c may know of it, else ErrClaimNotFound.
func (s *Claims) find(ctx context.Context, c Caller, claim string) (File, error) {
	id, ok := fileOfClaim(claim)
	if !ok {
		return File{}, ErrClaimNotFound
	}
	f, err := visible(ctx, s.Records, c, id)
	return f, unclaimed(err)
}

// unclaimed says of a missing file that there is no claim: files are not what the client asked for.
func unclaimed(err error) error {
	if errors.Is(err, ErrFileNotFound) {
		return ErrClaimNotFound
	}
	return err
}

// current returns nil when claim holds f, whether or not its lease has run out.
func current(f File, claim string, now time.Time) error {
	if f.State == Claimed && f.Claim.ID == claim && f.Gone(now) == nil {
		return nil
	}
	return changed(f, claim, now)
}

// changed explains why claim doesn't hold f: the file ended under it, or another holder has or had it.
func changed(f File, claim string, now time.Time) error {
	if err := f.Gone(now); err != nil && (f.Claim.ID == claim || f.State != Spent) {
		return err
	}
	return ErrLeaseLost
}
