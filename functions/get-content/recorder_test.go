package main

import (
	"context"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
)

// recorder notes what it was asked to sign.
type recorder struct {
	*filestest.Signer
	method string
	life   time.Duration
}

func (r *recorder) SignLink(ctx context.Context, f files.File, method string, now, until time.Time) (files.SignedRequest, error) {
	r.method, r.life = method, until.Sub(now)
	return r.Signer.SignLink(ctx, f, method, now, until)
}
