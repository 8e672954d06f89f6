package settings_test

import (
	"strings"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/settings"
)

type limits struct {
	Max int64         `env:"MAX_BYTES"`
	TTL time.Duration `env:"TTL_SECONDS"`
}

type config struct {
	limits
	Table string `env:"TABLE_NAME"`
}

func from(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

func TestLoad(t *testing.T) {
	t.Parallel()
	got, err := settings.Load[config](from(map[string]string{"MAX_BYTES": "104857600", "TTL_SECONDS": "900", "TABLE_NAME": "files ", "OTHER": "x"}))
	want := config{limits{104857600, 15 * time.Minute}, "files "}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := settings.Load[struct{}](from(nil)); err != nil {
		t.Errorf("nothing to read: %v", err)
	}
}

func TestEveryProblemIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	const (
		noMax   = "the environment variable MAX_BYTES is missing"
		noTTL   = "the environment variable TTL_SECONDS is missing"
		noTable = "the environment variable TABLE_NAME is missing"
		badMax  = "the environment variable MAX_BYTES must be a whole number of 1 or more"
		badTTL  = "the environment variable TTL_SECONDS must be a whole number of 1 or more"
	)
	for name, c := range map[string]struct {
		env  map[string]string
		want []string
	}{
		"nothing":          {nil, []string{noMax, noTTL, noTable}},
		"empty":            {map[string]string{"MAX_BYTES": "", "TTL_SECONDS": "", "TABLE_NAME": ""}, []string{noMax, noTTL, noTable}},
		"missing and bad":  {map[string]string{"MAX_BYTES": "many", "TTL_SECONDS": "1"}, []string{badMax, noTable}},
		"zero":             {map[string]string{"MAX_BYTES": "0", "TTL_SECONDS": "0", "TABLE_NAME": "t"}, []string{badMax, badTTL}},
		"negative":         {map[string]string{"MAX_BYTES": "-1", "TTL_SECONDS": "-5", "TABLE_NAME": "t"}, []string{badMax, badTTL}},
		"fractions":        {map[string]string{"MAX_BYTES": "1.5", "TTL_SECONDS": "1e3", "TABLE_NAME": "t"}, []string{badMax, badTTL}},
		"units":            {map[string]string{"MAX_BYTES": "1k", "TTL_SECONDS": "15m", "TABLE_NAME": "t"}, []string{badMax, badTTL}},
		"spaces":           {map[string]string{"MAX_BYTES": " 1", "TTL_SECONDS": "1 ", "TABLE_NAME": "t"}, []string{badMax, badTTL}},
		"beyond an int64":  {map[string]string{"MAX_BYTES": "9223372036854775808", "TTL_SECONDS": "9223372036854775808", "TABLE_NAME": "t"}, []string{badMax, badTTL}},
		"beyond durations": {map[string]string{"MAX_BYTES": "1", "TTL_SECONDS": "9223372037", "TABLE_NAME": "t"}, []string{"the environment variable TTL_SECONDS must be at most 3153600000 (100 years)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := settings.Load[config](from(c.env))
			if err == nil {
				t.Fatal("loaded")
			}
			if got, want := err.Error(), strings.Join(c.want, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	got, err := settings.Load[config](from(map[string]string{"MAX_BYTES": "9223372036854775807", "TTL_SECONDS": "3153600000", "TABLE_NAME": "t"}))
	if err != nil || got.Max != 1<<63-1 || got.TTL != 100*365*24*time.Hour {
		t.Errorf("got %+v, %v", got, err)
	}
	got, err = settings.Load[config](from(map[string]string{"MAX_BYTES": "1", "TTL_SECONDS": "1", "TABLE_NAME": "t"}))
	if err != nil || got.Max != 1 || got.TTL != time.Second {
		t.Errorf("got %+v, %v", got, err)
	}
}

// A value in a message would end up in a log.
func TestValuesAreNotRepeated(t *testing.T) {
	t.Parallel()
	_, err := settings.Load[config](from(map[string]string{"MAX_BYTES": "s3cr3t", "TTL_SECONDS": "s3cr3t"}))
	if err == nil || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("got %v", err)
	}
}
