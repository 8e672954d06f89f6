// Command get-usage serves GET /v1/usage: what the account and the actor hold of their quotas.
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
	Table                string `env:"TABLE_NAME"`
	AccountMaxLiveBytes  int64  `env:"ACCOUNT_MAX_LIVE_BYTES"`
	ActorMaxReservations int64  `env:"ACTOR_MAX_RESERVATIONS"`
}

func main() {
	cfg, env := startup.Load[config]()
	table := records.Connect(env, cfg.Table)
	startup.Warm(table.Warm)

	meter := &files.Meter{Records: table, Now: time.Now}
	auth := &access.Authenticator{Keys: table, Now: time.Now}
	lambda.Start(endpoint(auth, meter, cfg.AccountMaxLiveBytes, cfg.ActorMaxReservations).Serve)
}
