// Command create-key serves POST /v1/keys: a new key for an actor of the account.
package main

import (
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/records"
	"claimcheck.dev/claimcheck/shared/startup"
)

type config struct {
	Table string `env:"TABLE_NAME"`
}

func main() {
	cfg, env := startup.Load[config]()
	table := records.Connect(env, cfg.Table)
	startup.Warm(table.Warm)

	auth := &access.Authenticator{Keys: table, Now: time.Now}
	lambda.Start(endpoint(auth, table, time.Now).Serve)
}
