package files

import (
	"context"
	"fmt"
	"time"
)

// LinkSigner presigns downloads.
type LinkSigner interface {
	// SignLink signs a request with the given method (GET or HEAD) for the sealed object of f, served under its name
	// and type as an attachment. It ends at until or with the signing credentials, whichever is earlier.
	SignLink(ctx context.Context, f File, method string, now, until time.Time) (SignedRequest, error)
}

// Reader shows files and links them.
type Reader struct {
	Verifier *Verifier // also the way to the records
	Signer   LinkSigner
	LinkTTL  time.Duration // default and maximum
	Now      func() time.Time
}

// ContentTTL is the longest life of the request that Content redirects to.
const ContentTTL = 5 * time.Minute

// Link is a signed download of one file.
type Link struct {
	File      File
	URL       string
	ExpiresAt time.Time
}

// Show returns the record of id as c may see it. Rejected files are shown, other finished ones explain themselves by
// an error.
func Show(ctx context.Context, r Finder, c Caller, id string, now time.Time) (File, error) {
	f, err := visible(ctx, r, c, id)
	if err != nil {
		return File{}, err
	}
	if f.State == Rejected {
		return f, nil
	}
	return f, f.Gone(now)
}

// Link signs a download of id for ttlSeconds (nil: the default), or for less when the file ends earlier. A file that
// still waits for verification is verified first.
func (r *Reader) Link(ctx context.Context, c Caller, id string, ttlSeconds *int64) (Link, error) {
	ttl, problem := secondsUpTo(ttlSeconds, r.LinkTTL)
	if problem != "" {
		return Link{}, Invalid("ttl_seconds", problem)
	}
	return r.link(ctx, c, id, "GET", ttl)
}

// Content signs a short download of id with the given method, GET or HEAD.
func (r *Reader) Content(ctx context.Context, c Caller, id, method string) (Link, error) {
	return r.link(ctx, c, id, method, min(ContentTTL, r.LinkTTL))
}

func (r *Reader) link(ctx context.Context, c Caller, id, method string, ttl time.Duration) (Link, error) {
	f, err := r.readable(ctx, c, id)
	if err != nil {
		return Link{}, err
	}
	now := r.Now()
	return signLink(ctx, r.Signer, f, method, now, earliest(now.Add(ttl), f.ExpiresAt))
}

// readable returns a ready file that c may download.
func (r *Reader) readable(ctx context.Context, c Caller, id string) (File, error) {
	f, err := visible(ctx, r.Verifier.Records, c, id)
	if err != nil {
		return File{}, err
	}
	if !CapabilitiesOf(c, f).Download {
		return File{}, ErrForbidden
	}
	if f, err = r.Verifier.Verify(ctx, f); err != nil {
		return File{}, err
	}
	if err := f.Gone(r.Now()); err != nil {
		return File{}, err
	}
	if f.SingleUse {
		return File{}, ErrClaimRequired
	}
	return f, nil
}

// signLink signs a link to f that ends at until or before.
func signLink(ctx context.Context, s LinkSigner, f File, method string, now, until time.Time) (Link, error) {
	signed, err := s.SignLink(ctx, f, method, now, until)
	if err != nil {
		return Link{}, fmt.Errorf("presigning a link to %s: %w", f.ID, err)
	}
	return Link{File: f, URL: signed.URL, ExpiresAt: signed.ExpiresAt}, nil
}

// MaxHandles is how many different handles one request may resolve.
const MaxHandles = 50

// Resolve links every handle of handles, which are whole strings with the given prefix, in that order. Handles that
// can't be read are a *HandleError for the first of them.
func (r *Reader) Resolve(ctx context.Context, c Caller, prefix string, handles []string) ([]Link, error) {
	if len(handles) > MaxHandles {
		return nil, Invalid("input", fmt.Sprintf("must hold at most %d different handles; it holds %d", MaxHandles, len(handles)))
	}
	links := make([]Link, len(handles))
	errs := make([]error, len(handles))
	const atOnce = 8 // parallel enough for 50 handles, gentle on a small function
	forEach(len(handles), atOnce, func(i int) {
		id, ok := ParseHandle(prefix, handles[i])
		if !ok {
			errs[i] = ErrFileNotFound
			return
		}
		links[i], errs[i] = r.link(ctx, c, id, "GET", r.LinkTTL)
	})
	for i, err := range errs {
		if err != nil {
			return nil, &HandleError{Handle: handles[i], Err: err}
		}
	}
	return links, nil
}
