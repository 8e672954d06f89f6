// Command verify-upload handles S3 ObjectCreated events from a queue: it verifies what was uploaded to staging/.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"claimcheck.dev/claimcheck/shared/background"
	"claimcheck.dev/claimcheck/shared/records"
	"claimcheck.dev/claimcheck/shared/startup"
	"claimcheck.dev/claimcheck/shared/wiring/verification"
)

type config struct {
	verification.Config
	Table string `env:"TABLE_NAME"`
}

func main() {
	cfg, env := startup.Load[config]()
	table := records.Connect(env, cfg.Table)
	startup.Warm(table.Warm)

	h := handler{bucket: cfg.Bucket, verifier: verification.Verifier(env, cfg.Config, table), log: background.Log()}
	lambda.Start(h.handle)
}
