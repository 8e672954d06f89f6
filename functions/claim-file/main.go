// Command claim-file serves POST /v1/files/{id}/claims: an exclusive lease on a single-use file, with a link.
package main

import (
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/records"
	"claimcheck.dev/claimcheck/shared/startup"
	"claimcheck.dev/claimcheck/shared/wiring/delivery"
)

type config struct {
	delivery.Config
	Table        string        `env:"TABLE_NAME"`
	HandlePrefix string        `env:"HANDLE_PREFIX"`
	Lease        time.Duration `env:"CLAIM_LEASE_SECONDS"`
}

func main() {
	cfg, env := startup.Load[config]()
	table := records.Connect(env, cfg.Table)
	reader, signer := delivery.Reader(env, cfg.Config, table)
	startup.Warm(table.Warm, signer.Warm)

	claims := &files.Claimer{
		Records:  table,
		Verifier: reader.Verifier,
		Signer:   signer,
		Lease:    cfg.Lease,
		LinkTTL:  cfg.LinkTTL,
		Now:      time.Now,
		Random:   files.RandomText,
	}
	auth := &access.Authenticator{Keys: table, Now: time.Now}
	lambda.Start(endpoint(auth, claims, cfg.HandlePrefix).Serve)
}
