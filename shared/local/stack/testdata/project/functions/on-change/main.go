// Command on-change sends the key of every removed item to a queue.
package main

import (
	"context"
	"log"
	"os"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

func main() {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	queues := sqs.NewFromConfig(cfg)
	lambda.Start(func(ctx context.Context, e events.DynamoDBEvent) error {
		for _, r := range e.Records {
			by := ""
			if r.UserIdentity != nil {
				by = r.UserIdentity.PrincipalID
			}
			_, err := queues.SendMessage(ctx, &sqs.SendMessageInput{
				QueueUrl:    aws.String(os.Getenv("QUEUE_URL")),
				MessageBody: aws.String(r.EventName + " " + r.Change.Keys["pk"].String() + " by " + by),
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}
