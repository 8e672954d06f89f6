// Command on-object records each object it hears of; for keys that contain
// "poison" it fails.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func main() {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	db := dynamodb.NewFromConfig(cfg)
	lambda.Start(func(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
		var answer events.SQSEventResponse
		for _, m := range e.Records {
			var n events.S3Event
			if err := json.Unmarshal([]byte(m.Body), &n); err != nil {
				return answer, err
			}
			for _, r := range n.Records {
				if strings.Contains(r.S3.Object.Key, "poison") {
					answer.BatchItemFailures = append(answer.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
					continue
				}
				_, err := db.PutItem(ctx, &dynamodb.PutItemInput{
					TableName: aws.String(os.Getenv("TABLE_NAME")),
					Item: map[string]types.AttributeValue{
						"pk":  &types.AttributeValueMemberS{Value: r.S3.Object.URLDecodedKey},
						"ttl": &types.AttributeValueMemberN{Value: "4102444800"}, // 2100-01-01
					},
				})
				if err != nil {
					return answer, err
				}
			}
		}
		return answer, nil
	})
}
