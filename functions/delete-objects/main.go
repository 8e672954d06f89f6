// Command delete-objects consumes the deletion queue: it removes the bytes of files that have ended.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"claimcheck.dev/claimcheck/shared/background"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/objects/store"
	"claimcheck.dev/claimcheck/shared/records"
	"claimcheck.dev/claimcheck/shared/startup"
)

type config struct {
	Table  string `env:"TABLE_NAME"`
	Bucket string `env:"BUCKET_NAME"`
}

func main() {
	cfg, env := startup.Load[config]()
	table := records.Connect(env, cfg.Table)
	startup.Warm(table.Warm)

	h := handler{purger: &files.Purger{Records: table, Bytes: store.Connect(env, cfg.Bucket)}, log: background.Log()}
	lambda.Start(h.handle)
}
