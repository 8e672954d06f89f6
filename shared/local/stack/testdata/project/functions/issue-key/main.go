// Command issue-key makes a different key each time.
package main

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/aws/aws-lambda-go/lambda"
)

type request struct {
	Account, Actor, Role string
	Scopes               []string
}

func main() {
	lambda.Start(func(_ context.Context, r request) (map[string]string, error) {
		if r.Role == "king" {
			return nil, errors.New("there is no role king")
		}
		return map[string]string{"key": "ck_" + r.Account + "_" + r.Actor + "_" + rand.Text()}, nil
	})
}
