// Command reconcile runs each hour: it compares the bucket with the records and the counters with the holds, both ways,
// repairs what is wrong and reports it as metrics.
package main

import (
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/objects/store"
	"claimcheck.dev/claimcheck/shared/records"
	"claimcheck.dev/claimcheck/shared/startup"
)

type config struct {
	Table  string `env:"TABLE_NAME"`
	Bucket string `env:"BUCKET_NAME"`
	Stack  string `env:"STACK_NAME"`
}

// reserve is kept free at the end of an invocation, for the page under way.
const reserve = 30 * time.Second

func main() {
	cfg, env := startup.Load[config]()
	table := records.Connect(env, cfg.Table)
	startup.Warm(table.Warm)

	h := handler{
		reconciler: &files.Reconciler{
			Records: table,
			Objects: store.Connect(env, cfg.Bucket),
			Now:     time.Now,
			Reserve: reserve,
		},
		stack:   cfg.Stack,
		metrics: os.Stdout,
		now:     time.Now,
	}
	lambda.Start(h.handle)
}
