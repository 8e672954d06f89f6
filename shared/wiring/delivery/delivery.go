// Package delivery assembles the domain's Reader from its adapters, for every function that links files.
package delivery

import (
	"time"

	"claimcheck.dev/claimcheck/shared/awsenv"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/objects"
	"claimcheck.dev/claimcheck/shared/records"
	"claimcheck.dev/claimcheck/shared/wiring/verification"
)

// Config is the part of a function's settings that linking needs: a link to a file that waits for verification
// verifies it first.
type Config struct {
	verification.Config
	PresignRole   string        `env:"PRESIGN_ROLE_ARN"`
	ContentDomain string        `env:"CONTENT_DOMAIN"`
	LinkTTL       time.Duration `env:"LINK_TTL_SECONDS"`
}

// Reader links files of table. The signer is returned too, to be warmed.
func Reader(env awsenv.Env, cfg Config, table *records.Table) (*files.Reader, *objects.Signer) {
	signer := objects.Connect(env, objects.Config{
		Bucket:        cfg.Bucket,
		PresignRole:   cfg.PresignRole,
		ContentDomain: cfg.ContentDomain,
		LongestURL:    cfg.LinkTTL,
	})
	return &files.Reader{
		Verifier: verification.Verifier(env, cfg.Config, table),
		Signer:   signer,
		LinkTTL:  cfg.LinkTTL,
		Now:      time.Now,
	}, signer
}
