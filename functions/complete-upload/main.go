// Command complete-upload serves POST /v1/uploads/{id}/complete: it verifies an upload now instead of when its event
// arrives.
package main

import (
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/records"
	"claimcheck.dev/claimcheck/shared/startup"
	"claimcheck.dev/claimcheck/shared/wiring/verification"
)

type config struct {
	verification.Config
	Table        string `env:"TABLE_NAME"`
	HandlePrefix string `env:"HANDLE_PREFIX"`
}

func main() {
	cfg, env := startup.Load[config]()
	table := records.Connect(env, cfg.Table)
	startup.Warm(table.Warm)

	completer := &files.Completer{Verifier: verification.Verifier(env, cfg.Config, table), Now: time.Now}
	auth := &access.Authenticator{Keys: table, Now: time.Now}
	lambda.Start(endpoint(auth, completer, cfg.HandlePrefix).Serve)
}
