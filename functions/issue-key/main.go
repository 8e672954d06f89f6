// Command issue-key makes a key for any account. It has no route: whoever may invoke the function (an operator with
// lambda:InvokeFunction) may mint the first owner key of an account.
package main

import (
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"claimcheck.dev/claimcheck/shared/records"
	"claimcheck.dev/claimcheck/shared/startup"
)

type config struct {
	Table string `env:"TABLE_NAME"`
}

func main() {
	cfg, env := startup.Load[config]()
	lambda.Start(issuer{keys: records.Connect(env, cfg.Table), now: time.Now}.issue)
}
