// Command reserve-upload serves POST /v1/uploads: it reserves a slot for a file and presigns the upload.
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
	Table                string        `env:"TABLE_NAME"`
	Bucket               string        `env:"BUCKET_NAME"`
	PresignRole          string        `env:"PRESIGN_ROLE_ARN"`
	HandlePrefix         string        `env:"HANDLE_PREFIX"`
	MaxFileBytes         int64         `env:"MAX_FILE_BYTES"`
	AccountMaxLiveBytes  int64         `env:"ACCOUNT_MAX_LIVE_BYTES"`
	ActorMaxReservations int64         `env:"ACTOR_MAX_RESERVATIONS"`
	FileTTL              time.Duration `env:"FILE_TTL_SECONDS"`
	SingleUseTTL         time.Duration `env:"SINGLE_USE_TTL_SECONDS"`
	ReservationTTL       time.Duration `env:"RESERVATION_TTL_SECONDS"`
	UploadURL            time.Duration `env:"UPLOAD_URL_SECONDS"`
}

func main() {
	cfg, env := startup.Load[config]()
	table := records.Connect(env, cfg.Table)
	signer := objects.Connect(env, objects.Config{Bucket: cfg.Bucket, PresignRole: cfg.PresignRole, LongestURL: cfg.UploadURL})
	uploads := &files.Uploads{
		Records: table,
		Signer:  signer,
		Limits: files.Limits{
			MaxFileBytes:         cfg.MaxFileBytes,
			AccountMaxLiveBytes:  cfg.AccountMaxLiveBytes,
			ActorMaxReservations: cfg.ActorMaxReservations,
			FileTTL:              cfg.FileTTL,
			SingleUseTTL:         cfg.SingleUseTTL,
			ReservationTTL:       cfg.ReservationTTL,
		},
		URLTTL: cfg.UploadURL,
		Now:    time.Now,
		NewID:  files.NewID,
	}
	startup.Warm(table.Warm, signer.Warm, rehearse(*uploads, table, cfg.HandlePrefix))
	auth := &access.Authenticator{Keys: table, Now: time.Now}
	lambda.Start(endpoint(auth, uploads, cfg.HandlePrefix).Serve)
}
