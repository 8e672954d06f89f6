// Command extend-claim serves POST /v1/claims/{id}/extend: the lease runs longer.
package main

import (
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/records"
	"claimcheck.dev/claimcheck/shared/startup"
)

type config struct {
	Table string        `env:"TABLE_NAME"`
	Lease time.Duration `env:"CLAIM_LEASE_SECONDS"`
}

func main() {
	cfg, env := startup.Load[config]()
	table := records.Connect(env, cfg.Table)
	startup.Warm(table.Warm)

	claims := &files.Claims{Records: table, Lease: cfg.Lease, Now: time.Now}
	auth := &access.Authenticator{Keys: table, Now: time.Now}
	lambda.Start(endpoint(auth, claims).Serve)
}
