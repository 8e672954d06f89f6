// Package cleanup assembles the domain's Cleaner from its adapters, for every function that ends files on
// request.
package cleanup

import (
	"context"

	"claimcheck.dev/claimcheck/shared/awsenv"
	"claimcheck.dev/claimcheck/shared/background"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/objects/store"
)

// Cleaner removes the bytes of ended files at once, reporting on stderr what is left to the deletion queue.
func Cleaner(env awsenv.Env, bucket string) files.Cleaner {
	log := background.Log()
	return files.Cleaner{
		Bytes: store.Connect(env, bucket),
		Failed: func(ctx context.Context, id string, err error) {
			log.WarnContext(ctx, "left to the deletion queue", "id", id, "error", err)
		},
	}
}
