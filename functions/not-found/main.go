// Command not-found answers every request that no other route takes.
package main

import "github.com/aws/aws-lambda-go/lambda"

func main() { lambda.Start(endpoint().Serve) }
