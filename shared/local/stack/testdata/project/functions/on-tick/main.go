// Command on-tick answers with the source of its event.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	lambda.Start(func(_ context.Context, e struct{ Source string }) (string, error) { return e.Source, nil })
}
