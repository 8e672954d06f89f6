// Package verification assembles the domain's Verifier from its adapters, for every function that verifies uploads.
//
// The packages under wiring are several because what a function imports costs it start-up time: this one links the S3
// client and the type policy, package delivery also the session that signs URLs, package cleanup only the S3 client.
package verification

import (
	"time"

	"claimcheck.dev/claimcheck/shared/awsenv"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/objects/store"
	"claimcheck.dev/claimcheck/shared/records"
	"claimcheck.dev/claimcheck/shared/sniff"
)

// Config is the part of a function's settings that verification needs.
type Config struct {
	Bucket       string `env:"BUCKET_NAME"`
	MaxFileBytes int64  `env:"MAX_FILE_BYTES"`
}

// Verifier verifies uploads in the bucket against the records of table.
func Verifier(env awsenv.Env, cfg Config, table *records.Table) *files.Verifier {
	return &files.Verifier{
		Records:      table,
		Stage:        store.Connect(env, cfg.Bucket),
		CheckType:    sniff.Policy,
		MaxFileBytes: cfg.MaxFileBytes,
		Now:          time.Now,
	}
}
