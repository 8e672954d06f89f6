// Command openapi serves GET /openapi.json: the description of the API that is built into it.
package main

import "github.com/aws/aws-lambda-go/lambda"

func main() { lambda.Start(endpoint().Serve) }
