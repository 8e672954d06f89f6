// Command sweep-expired runs each minute: it ends the files whose time is over.
package main

import (
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"claimcheck.dev/claimcheck/shared/background"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/records"
	"claimcheck.dev/claimcheck/shared/startup"
	"claimcheck.dev/claimcheck/shared/wiring/verification"
)

type config struct {
	verification.Config
	Table string `env:"TABLE_NAME"`
}

// reserve is kept free at the end of an invocation, for what is under way.
const reserve = 5 * time.Second

func main() {
	cfg, env := startup.Load[config]()
	table := records.Connect(env, cfg.Table)
	startup.Warm(table.Warm)

	h := handler{sweeper: &files.Sweeper{
		Records:  table,
		Verifier: verification.Verifier(env, cfg.Config, table),
		Now:      time.Now,
		Reserve:  reserve,
	}, log: background.Log()}
	lambda.Start(h.handle)
}
