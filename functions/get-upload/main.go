// Command get-upload serves GET /v1/uploads/{id}: a reservation with a fresh presigned upload while it waits for bytes.
package main

import (
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/objects"
	"claimcheck.dev/claimcheck/shared/records"
	"claimcheck.dev/claimcheck/shared/startup"
)

type config struct {
	Table        string        `env:"TABLE_NAME"`
	Bucket       string        `env:"BUCKET_NAME"`
	PresignRole  string        `env:"PRESIGN_ROLE_ARN"`
	HandlePrefix string        `env:"HANDLE_PREFIX"`
	MaxFileBytes int64         `env:"MAX_FILE_BYTES"`
	UploadURL    time.Duration `env:"UPLOAD_URL_SECONDS"`
}

func main() {
	cfg, env := startup.Load[config]()
	table := records.Connect(env, cfg.Table)
	signer := objects.Connect(env, objects.Config{Bucket: cfg.Bucket, PresignRole: cfg.PresignRole, LongestURL: cfg.UploadURL})
	startup.Warm(table.Warm, signer.Warm)

	renewer := &files.Renewer{Records: table, Signer: signer, URLTTL: cfg.UploadURL, Now: time.Now}
	auth := &access.Authenticator{Keys: table, Now: time.Now}
	lambda.Start(endpoint(auth, renewer, cfg.HandlePrefix, cfg.MaxFileBytes).Serve)
}
