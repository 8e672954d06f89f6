// Command echo answers what it was asked and what it was started with.
package main

import (
	"context"
	"log"
	"os"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	if os.Getenv("GREETING") == "" {
		log.Fatal("GREETING is not set")
	}
	lambda.Start(func(_ context.Context, r events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		return events.APIGatewayV2HTTPResponse{
			StatusCode: 200, Headers: map[string]string{"x-content": os.Getenv("CONTENT")},
			Body: os.Getenv("GREETING") + " " + r.PathParameters["word"],
		}, nil
	})
}
