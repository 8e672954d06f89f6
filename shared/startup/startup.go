// Package startup is the part of every function's main that may end the process: what is missing or wrong in the
// environment is reported in full, and the instance stops before it takes a request.
package startup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"claimcheck.dev/claimcheck/shared/awsenv"
	"claimcheck.dev/claimcheck/shared/settings"
)

// warmFor bounds what a function does before its first request: Lambda gives init ten seconds.
const warmFor = 5 * time.Second

// Load reads the settings T and the Lambda environment, or exits naming every variable that is missing or wrong.
func Load[T any]() (T, awsenv.Env) {
	cfg, err := settings.Load[T](os.LookupEnv)
	env, envErr := awsenv.Load()
	if err := errors.Join(err, envErr); err != nil {
		fmt.Fprintf(os.Stderr, "%s can't start:\n%v\n", cmp.Or(os.Getenv("AWS_LAMBDA_FUNCTION_NAME"), "the function"), err)
		os.Exit(1)
	}
	return cfg, env
}

// Warm runs the given steps at once before the first request, such as opening connections. A step that fails is only
// reported: the request that needs it will try again. The last step runs on the caller's own goroutine: when main
// calls, requests find its stack grown.
func Warm(steps ...func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), warmFor)
	defer cancel()
	done := make(chan error, len(steps))
	for i, step := range steps {
		if i == len(steps)-1 {
			done <- step(ctx)
			break
		}
		go func() { done <- step(ctx) }()
	}
	for range steps {
		if err := <-done; err != nil {
			fmt.Fprintf(os.Stderr, "warming up: %v\n", err)
		}
	}
}
