// Package wiring assembles the parts of the domain that more than one function serves from their adapters. Functions
// that need less import less: what is linked costs start-up time.
package wiring

import (
	"context"
	"log/slog"
	"os"
	"time"

	"claimcheck.dev/claimcheck/shared/awsenv"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/objects"
	"claimcheck.dev/claimcheck/shared/objects/store"
	"claimcheck.dev/claimcheck/shared/records"
	"claimcheck.dev/claimcheck/shared/sniff"
)

// Verification is the configuration of whoever verifies uploads.
type Verification struct {
	Bucket       string `env:"BUCKET_NAME"`
	MaxFileBytes int64  `env:"MAX_FILE_BYTES"`
}

// Verifier verifies uploads in the bucket against the records of table.
func Verifier(env awsenv.Env, cfg Verification, table *records.Table) *files.Verifier {
	return &files.Verifier{
		Records:      table,
		Stage:        store.Connect(env, cfg.Bucket),
		CheckType:    sniff.Policy,
		MaxFileBytes: cfg.MaxFileBytes,
		Now:          time.Now,
	}
}

// Delivery is the configuration of whoever links files: a link to a file that waits for verification verifies it.
type Delivery struct {
	Verification
	PresignRole   string        `env:"PRESIGN_ROLE_ARN"`
	ContentDomain string        `env:"CONTENT_DOMAIN"`
	LinkTTL       time.Duration `env:"LINK_TTL_SECONDS"`
}

// Reader links files of table. The signer is returned too, to be warmed.
func Reader(env awsenv.Env, cfg Delivery, table *records.Table) (*files.Reader, *objects.Signer) {
	signer := objects.Connect(env, objects.Config{
		Bucket:        cfg.Bucket,
		PresignRole:   cfg.PresignRole,
		ContentDomain: cfg.ContentDomain,
		LongestURL:    cfg.LinkTTL,
	})
	return &files.Reader{
		Verifier: Verifier(env, cfg.Verification, table),
		Signer:   signer,
		LinkTTL:  cfg.LinkTTL,
		Now:      time.Now,
	}, signer
}

// Cleaner removes the bytes of ended files at once, reporting on stderr what is left to the deletion queue.
func Cleaner(env awsenv.Env, bucket string) files.Cleaner {
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	return files.Cleaner{
		Bytes: store.Connect(env, bucket),
		Failed: func(ctx context.Context, id string, err error) {
			log.WarnContext(ctx, "left to the deletion queue", "id", id, "error", err)
		},
	}
}
