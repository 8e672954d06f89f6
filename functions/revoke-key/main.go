// Command revoke-key serves DELETE /v1/keys/{id}: the key is refused within a minute.
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
