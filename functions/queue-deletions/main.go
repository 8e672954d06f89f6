// Command queue-deletions reads the table's stream: it hands every file that has ended to the deletion queue. It deletes
// nothing itself, because one object that can't be deleted would hold up every change behind it.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"claimcheck.dev/claimcheck/shared/background"
	"claimcheck.dev/claimcheck/shared/startup"
)

type config struct {
	Queue string `env:"DELETION_QUEUE_URL"`
}

func main() {
	cfg, env := startup.Load[config]()
	client := sqs.NewFromConfig(env.Config(), func(o *sqs.Options) { o.BaseEndpoint = env.BaseEndpoint("SQS") })
	lambda.Start(handler{queue: sender{client, cfg.Queue}, log: background.Log()}.handle)
}
