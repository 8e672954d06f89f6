// Command create-link serves POST /v1/files/{id}/links: a signed download of one file.
package main

import (
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/records"
	"claimcheck.dev/claimcheck/shared/startup"
	"claimcheck.dev/claimcheck/shared/wiring/delivery"
)

type config struct {
	delivery.Config
	Table string `env:"TABLE_NAME"`
}

func main() {
	cfg, env := startup.Load[config]()
	table := records.Connect(env, cfg.Table)
	reader, signer := delivery.Reader(env, cfg.Config, table)
	startup.Warm(table.Warm, signer.Warm)

	auth := &access.Authenticator{Keys: table, Now: time.Now}
	lambda.Start(endpoint(auth, reader).Serve)
}
