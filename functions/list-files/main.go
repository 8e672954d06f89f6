// Command list-files serves GET /v1/files: the files of the account, newest first, a page at a time.
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
	Table        string `env:"TABLE_NAME"`
	HandlePrefix string `env:"HANDLE_PREFIX"`
}

func main() {
	cfg, env := startup.Load[config]()
	table := records.Connect(env, cfg.Table)
	startup.Warm(table.Warm)

	lister := &files.Lister{Records: table, Now: time.Now}
	auth := &access.Authenticator{Keys: table, Now: time.Now}
	lambda.Start(endpoint(auth, lister, cfg.HandlePrefix).Serve)
}
