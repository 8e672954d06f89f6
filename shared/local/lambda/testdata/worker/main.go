// Command worker does what its event says, so that tests can see an instance
// from outside.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

type event struct {
	Do   string
	File string
}

func main() {
	switch os.Getenv("INIT") {
	case "missing":
		fmt.Fprintln(os.Stderr, "the variable TABLE_NAME is not set")
		os.Exit(3)
	case "hang":
		time.Sleep(time.Hour)
	}
	lambda.Start(handle)
}

func handle(ctx context.Context, e event) (any, error) {
	switch e.Do {
	case "env":
		return os.Environ(), nil
	case "context":
		deadline, _ := ctx.Deadline()
		lc, _ := lambdacontext.FromContext(ctx)
		return map[string]any{
			"id": lc.AwsRequestID, "arn": lc.InvokedFunctionArn, "pid": os.Getpid(),
			"left": time.Until(deadline).Milliseconds(), "trace": os.Getenv("_X_AMZN_TRACE_ID"),
		}, nil
	case "wait": // until the file is there
		for {
			if _, err := os.Stat(e.File); err == nil {
				return os.Getpid(), nil
			}
			time.Sleep(2 * time.Millisecond)
		}
	case "fail":
		return nil, errors.New("no luck")
	case "panic":
		panic("out of luck")
	case "exit":
		os.Exit(7)
	case "child": // leaves a process behind that holds the output open
		cmd := exec.Command("sleep", "600")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		return cmd.Process.Pid, nil
	case "big":
		return strings.Repeat("x", 7<<20), nil
	case "touch":
		return nil, os.WriteFile(e.File, nil, 0o600)
	case "print":
		fmt.Fprint(os.Stderr, "one\ntwo")
		fmt.Println(" and a half")
	}
	return os.Getpid(), nil
}
