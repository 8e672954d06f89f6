// Command stream downloads what an event names and answers its SHA-256: what a verification that reads the whole
// object spends at the least.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-lambda-go/lambda"
)

type event struct {
	URL string `json:"url"`
}

func main() {
	lambda.Start(func(ctx context.Context, e event) (string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.URL, nil)
		if err != nil {
			return "", err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return "", fmt.Errorf("the server answered %s", response.Status)
		}
		hash := sha256.New()
		if _, err := io.Copy(hash, response.Body); err != nil {
			return "", err
		}
		return hex.EncodeToString(hash.Sum(nil)), nil
	})
}
