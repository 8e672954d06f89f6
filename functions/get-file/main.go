// Command get-file serves GET /v1/files/{id}: the record of a file.
package main

import (
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/records"
	"claimcheck.dev/claimcheck/shared/startup"
)

type config struct {
	Table        string `env:"TABLE_NAME"`
	HandlePrefix string `env:"HANDLE_PREFIX"`
}

func main() {
	cfg, env := startup.Load[config]()
	table := records.Connect(env, cfg.Table)
	startup.Warm(table.Warm)

	auth := &access.Authenticator{Keys: table, Now: time.Now}
	lambda.Start(endpoint(auth, table, cfg.HandlePrefix, time.Now).Serve)
}
