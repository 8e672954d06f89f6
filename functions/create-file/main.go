// Command create-file serves POST /v1/files: a small file sent as the request body, ready in one request.
package main

import (
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/objects/store"
	"claimcheck.dev/claimcheck/shared/records"
	"claimcheck.dev/claimcheck/shared/sniff"
	"claimcheck.dev/claimcheck/shared/startup"
)

type config struct {
	Table               string        `env:"TABLE_NAME"`
	Bucket              string        `env:"BUCKET_NAME"`
	HandlePrefix        string        `env:"HANDLE_PREFIX"`
	InlineMaxBytes      int64         `env:"INLINE_MAX_BYTES"`
	AccountMaxLiveBytes int64         `env:"ACCOUNT_MAX_LIVE_BYTES"`
	FileTTL             time.Duration `env:"FILE_TTL_SECONDS"`
	SingleUseTTL        time.Duration `env:"SINGLE_USE_TTL_SECONDS"`
	ReservationTTL      time.Duration `env:"RESERVATION_TTL_SECONDS"`
}

func main() {
	cfg, env := startup.Load[config]()
	table := records.Connect(env, cfg.Table)
	startup.Warm(table.Warm)

	inline := &files.Inline{
		Records:   table,
		Objects:   store.Connect(env, cfg.Bucket),
		CheckType: sniff.Policy,
		Limits: files.Limits{
			MaxFileBytes:        cfg.InlineMaxBytes,
			AccountMaxLiveBytes: cfg.AccountMaxLiveBytes,
			FileTTL:             cfg.FileTTL,
			SingleUseTTL:        cfg.SingleUseTTL,
			ReservationTTL:      cfg.ReservationTTL,
		},
		Now:   time.Now,
		NewID: files.NewID,
	}
	auth := &access.Authenticator{Keys: table, Now: time.Now}
	lambda.Start(endpoint(auth, inline, cfg.HandlePrefix).Serve)
}
