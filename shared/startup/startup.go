// Package startup is the part of every function's main that may end the process: what is missing or wrong in the
// environment is reported in full, and the instance stops before it takes a request.
package startup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"claimcheck.dev/claimcheck/shared/awsenv"
	"claimcheck.dev/claimcheck/shared/settings"
)

// warmFor bounds what a function does before its first request: Lambda gives init ten seconds.
const warmFor = 5 * time.Second

// memoryOfCPU is the memory, in MB, with which Lambda gives a function one whole CPU; less has that share of one.
// (AWS Lambda Developer Guide, "Configure Lambda function memory".)
const memoryOfCPU = 1769

// Load reads the settings T and the Lambda environment, or exits naming every variable that is missing or wrong. It also
// keeps Go to the CPUs that the function's memory pays for.
func Load[T any]() (T, awsenv.Env) {
	keepToShare(os.Getenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE"))
	cfg, err := settings.Load[T](os.LookupEnv)
	env, envErr := awsenv.Load()
	if err := errors.Join(err, envErr); err != nil {
		fmt.Fprintf(os.Stderr, "%s can't start:\n%v\n", cmp.Or(os.Getenv("AWS_LAMBDA_FUNCTION_NAME"), "the function"), err)
		os.Exit(1)
	}
	return cfg, env
}

// keepToShare lowers GOMAXPROCS to what a function of so many MB of memory may use. A small one sees two CPUs or more but
// has a fraction of one, out of which waking threads on the others is paid too: a fifth of what a request takes.
func keepToShare(memory string) {
	mb, err := strconv.Atoi(memory)
	if err != nil {
		return // not on Lambda
	}
	if n := max(1, mb/memoryOfCPU); n < runtime.GOMAXPROCS(0) {
		runtime.GOMAXPROCS(n)
	}
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
