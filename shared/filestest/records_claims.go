package filestest

import (
	"context"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
)

type claimed struct {
	file     files.File
	claim    string
	repeated bool
}

// Claim implements files.ClaimRecords.
func (r *Records) Claim(ctx context.Context, id string, c files.Claim, idem *files.Idempotency, now time.Time) (files.File, string, bool, error) {
	out, err := locked(ctx, r, "Claim", func() (claimed, error) {
		if idem != nil {
			if earlier, ok := r.requests[withoutDigest(*idem)]; ok && now.Before(earlier.expires) {
				if earlier.digest != idem.Digest {
					return claimed{}, files.ErrIdempotencyMismatch
				}
				got, err := r.find(id)
				return claimed{got, earlier.made, err == nil}, err
			}
		}
		got, err := r.change(id, func(f files.File) bool { return f.SingleUse && f.At(now) == files.Ready }, func(f *files.File) {
			f.State, f.Claim = files.Claimed, c
		})
		if err == nil && idem != nil {
			r.requests[withoutDigest(*idem)] = request{idem.Digest, c.ID, now.Add(files.IdempotencyWindow).Truncate(time.Second)}
		}
		return claimed{file: got}, err
	})
	return out.file, out.claim, out.repeated, err
}

// change applies do to the record of id when it is as may says, else it returns files.ErrStateChanged with the record.
func (r *Records) change(id string, may func(files.File) bool, do func(*files.File)) (files.File, error) {
	f, err := r.find(id)
	if err != nil {
		return files.File{}, err
	}
	if !may(f) {
		return f, files.ErrStateChanged
	}
	do(&f)
	r.files[id] = f
	return clone(f), nil
}

func claimedBy(claim string) func(files.File) bool {
	return func(f files.File) bool { return f.State == files.Claimed && f.Claim.ID == claim }
}

// Unclaim implements files.LeaseRecords.
func (r *Records) Unclaim(ctx context.Context, id, claim string) (files.File, error) {
	return locked(ctx, r, "Unclaim", func() (files.File, error) {
		may := func(f files.File) bool {
			return (f.State == files.Claimed || f.State == files.Ready) && f.Claim.ID == claim
		}
		return r.change(id, may, func(f *files.File) { f.State = files.Ready })
	})
}

// Extend implements files.LeaseRecords.
func (r *Records) Extend(ctx context.Context, id, claim string, until time.Time) (files.File, error) {
	return locked(ctx, r, "Extend", func() (files.File, error) {
		return r.change(id, claimedBy(claim), func(f *files.File) { f.Claim.LeaseUntil = until })
	})
}

// Spend implements files.LeaseRecords.
func (r *Records) Spend(ctx context.Context, before files.File, claim string, now time.Time) (files.File, error) {
	return locked(ctx, r, "Spend", func() (files.File, error) {
		if f, err := r.find(before.ID); err == nil && claimedBy(claim)(f) {
			if err := r.held(f.ID); err != nil {
				return files.File{}, err
			}
		}
		f, err := r.change(before.ID, claimedBy(claim), func(f *files.File) { *f = ended(*f, files.Ending{State: files.Spent, At: now}) })
		if err == nil {
			r.release(f.ID)
		}
		return f, err
	})
}
