// Command health serves GET /healthz.
package main

import "github.com/aws/aws-lambda-go/lambda"

func main() { lambda.Start(endpoint().Serve) }
