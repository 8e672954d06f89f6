// Command delete-file serves DELETE /v1/files/{id}: the file ends and its bytes go.
package main

import (
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/records"
	"claimcheck.dev/claimcheck/shared/startup"
	"claimcheck.dev/claimcheck/shared/wiring/cleanup"
)

type config struct {
	Table  string `env:"TABLE_NAME"`
	Bucket string `env:"BUCKET_NAME"`
}

func main() {
	cfg, env := startup.Load[config]()
	table := records.Connect(env, cfg.Table)
	startup.Warm(table.Warm)

	deleter := &files.Deleter{Records: table, Cleaner: cleanup.Cleaner(env, cfg.Bucket), Now: time.Now}
	auth := &access.Authenticator{Keys: table, Now: time.Now}
	lambda.Start(endpoint(auth, deleter).Serve)
}
