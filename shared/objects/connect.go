// Package objects presigns the requests with which clients upload and download.
//
// It signs with the SDK's signer alone. The S3 client costs a cold start more than all of this; it is in package
// store and linked by those functions that call S3 themselves. The names of objects are in package keys.
package objects

import (
	"context"
	"time"

	"claimcheck.dev/claimcheck/shared/awsenv"
	"claimcheck.dev/claimcheck/shared/objects/session"
)

// Config is what a function that presigns is told.
type Config struct {
	Bucket        string
	PresignRole   string        // ARN of the role under which requests are signed
	ContentDomain string        // see SignerOptions
	LongestURL    time.Duration // the longest life that will be asked of a signature
}

// Connect returns a signer for the bucket, with a session of the presign role. It makes no call before Warm or the
// first signature.
func Connect(env awsenv.Env, c Config) *Signer {
	return NewSigner(SignerOptions{
		Bucket:        c.Bucket,
		Region:        env.Region,
		Endpoint:      env.Endpoint("S3"),
		ContentDomain: c.ContentDomain,
		Credentials:   session.Open(env, c.PresignRole, c.LongestURL),
	})
}

// Warm fetches the credentials before the first request needs them.
func (s *Signer) Warm(ctx context.Context) error {
	_, err := s.credentials.Retrieve(ctx)
	return err
}
