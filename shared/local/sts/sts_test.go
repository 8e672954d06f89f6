package sts_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	awssts "github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"claimcheck.dev/claimcheck/shared/local/sts"
)

const role = "arn:aws:iam::000000000000:role/stack-presign"

var start = time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)

// serve runs the service for one caller with an access key of each kind.
func serve(t *testing.T) (*httptest.Server, *sts.Sessions, aws.CredentialsProvider) {
	t.Helper()
	sessions, err := sts.OpenSessions(filepath.Join(t.TempDir(), "key"), func() time.Time { return start })
	if err != nil {
		t.Fatal(err)
	}
	caller := sessions.Issue("arn:aws:iam::000000000000:role/stack-function", "function", time.Hour)
	server := httptest.NewServer(sts.New(sts.Options{
		Roles:    []string{role},
		Sessions: sessions,
		Secret: func(id, token string) (string, error) {
			s, err := sessions.Find(id, token)
			return s.SecretAccessKey, err
		},
	}))
	t.Cleanup(server.Close)
	return server, sessions, credentials.NewStaticCredentialsProvider(caller.AccessKeyID, caller.SecretAccessKey, caller.SessionToken)
}

func client(server *httptest.Server, c aws.CredentialsProvider) *awssts.Client {
	return awssts.New(awssts.Options{Region: "eu-central-1", BaseEndpoint: &server.URL, Credentials: c, RetryMaxAttempts: 1})
}

func code(t *testing.T, err error) string {
	t.Helper()
	var api smithy.APIError
	if !errors.As(err, &api) {
		t.Fatalf("no error of the service: %v", err)
	}
	return api.ErrorCode()
}

func TestAssumeRole(t *testing.T) {
	t.Parallel()
	server, sessions, caller := serve(t)
	provider := stscreds.NewAssumeRoleProvider(client(server, caller), role, func(o *stscreds.AssumeRoleOptions) {
		o.RoleSessionName = "reserve-upload"
		o.Duration = 30 * time.Minute
	})
	got, err := provider.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := start.Truncate(time.Second).Add(30 * time.Minute); !got.Expires.Equal(want) || !got.CanExpire {
		t.Errorf("expires %v, want %v", got.Expires, want)
	}
	session, err := sessions.Find(got.AccessKeyID, got.SessionToken)
	if err != nil {
		t.Fatal(err)
	}
	if session.SecretAccessKey != got.SecretAccessKey || session.RoleARN != role || session.Name != "reserve-upload" {
		t.Errorf("the session is %+v", session)
	}
	if !strings.HasPrefix(got.AccessKeyID, "ASIA") || len(got.AccessKeyID) != 20 || len(got.SecretAccessKey) != 40 {
		t.Errorf("the keys do not look like AWS's: %d and %d characters", len(got.AccessKeyID), len(got.SecretAccessKey))
	}
}

func TestAssumeRoleDefaultsToOneHour(t *testing.T) {
	t.Parallel()
	server, _, caller := serve(t)
	out, err := client(server, caller).AssumeRole(t.Context(), &awssts.AssumeRoleInput{RoleArn: aws.String(role), RoleSessionName: aws.String("name")})
	if err != nil {
		t.Fatal(err)
	}
	if want := start.Truncate(time.Second).Add(time.Hour); !out.Credentials.Expiration.Equal(want) {
		t.Errorf("expires %v, want %v", out.Credentials.Expiration, want)
	}
	if got, want := aws.ToString(out.AssumedRoleUser.Arn), "arn:aws:sts::000000000000:role/stack-presign/name"; got != want {
		t.Errorf("assumed role user %s, want %s", got, want)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	server, sessions, caller := serve(t)
	for name, test := range map[string]struct {
		in   awssts.AssumeRoleInput
		code string
	}{
		"another role": {awssts.AssumeRoleInput{RoleArn: aws.String(role + "2"), RoleSessionName: aws.String("name")}, "AccessDenied"},
		"short":        {awssts.AssumeRoleInput{RoleArn: aws.String(role), RoleSessionName: aws.String("name"), DurationSeconds: aws.Int32(899)}, "ValidationError"},
		"long":         {awssts.AssumeRoleInput{RoleArn: aws.String(role), RoleSessionName: aws.String("name"), DurationSeconds: aws.Int32(3601)}, "ValidationError"},
		"bad name":     {awssts.AssumeRoleInput{RoleArn: aws.String(role), RoleSessionName: aws.String("a b")}, "ValidationError"},
	} {
		if _, err := client(server, caller).AssumeRole(t.Context(), &test.in); code(t, err) != test.code {
			t.Errorf("%s: %v, want %s", name, err, test.code)
		}
	}
	good := &awssts.AssumeRoleInput{RoleArn: aws.String(role), RoleSessionName: aws.String("name")}
	c, err := caller.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	expired := sessions.Issue(role, "old", -time.Second)
	for name, test := range map[string]struct {
		id, secret, token string
		code              string
	}{
		"unknown key":  {"AKIAUNKNOWN", c.SecretAccessKey, "", "InvalidClientTokenId"},
		"no token":     {c.AccessKeyID, c.SecretAccessKey, "", "InvalidClientTokenId"},
		"other token":  {c.AccessKeyID, c.SecretAccessKey, expired.SessionToken, "InvalidClientTokenId"},
		"wrong secret": {c.AccessKeyID, "wrong", c.SessionToken, "SignatureDoesNotMatch"},
		"expired":      {expired.AccessKeyID, expired.SecretAccessKey, expired.SessionToken, "ExpiredTokenException"},
	} {
		_, err := client(server, credentials.NewStaticCredentialsProvider(test.id, test.secret, test.token)).AssumeRole(t.Context(), good)
		if code(t, err) != test.code {
			t.Errorf("%s: %v, want %s", name, err, test.code)
		}
	}
	_, err = client(server, caller).GetCallerIdentity(t.Context(), &awssts.GetCallerIdentityInput{})
	if code(t, err) != "InvalidAction" {
		t.Errorf("another action: %v", err)
	}
	response, err := http.PostForm(server.URL, url.Values{"Action": {"AssumeRole"}, "Version": {"2011-06-15"}, "RoleArn": {role}, "RoleSessionName": {"name"}})
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("without a signature: %d, want 403", response.StatusCode)
	}
}

// A caller that signs fewer headers than the Go SDK, as boto3 does, and one
// TestPlainKey is a caller with a long-lived key and the system's clock.
func TestPlainKey(t *testing.T) {
	t.Parallel()
	sessions, err := sts.OpenSessions(filepath.Join(t.TempDir(), "key"), nil)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(sts.New(sts.Options{
		Roles: []string{role}, Sessions: sessions,
		Secret: func(string, string) (string, error) { return "secret", nil },
	}))
	defer server.Close()
	c := client(server, credentials.NewStaticCredentialsProvider("AKIAPLAIN", "secret", ""))
	out, err := c.AssumeRole(context.Background(), &awssts.AssumeRoleInput{RoleArn: aws.String(role), RoleSessionName: aws.String("name")})
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(*out.Credentials.Expiration); left < 59*time.Minute || left > time.Hour {
		t.Errorf("expires in %v, want one hour", left)
	}
}

func TestSessionsOutliveRestart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "made", "key")
	now := start
	clock := func() time.Time { return now }
	before, err := sts.OpenSessions(path, clock)
	if err != nil {
		t.Fatal(err)
	}
	s := before.Issue(role, "name", time.Minute)
	after, err := sts.OpenSessions(path, clock)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := after.Find(s.AccessKeyID, s.SessionToken); err != nil || got != s {
		t.Errorf("after a restart: %+v, %v", got, err)
	}
	if _, err := after.Find(s.AccessKeyID, ""); !errors.Is(err, sts.ErrInvalidToken) {
		t.Errorf("without the token: %v", err)
	}
	if _, err := after.Find("AKIAOTHER", s.SessionToken); !errors.Is(err, sts.ErrUnknownKey) {
		t.Errorf("a key that is no session's: %v", err)
	}
	now = s.Expires
	if _, err := after.Find(s.AccessKeyID, s.SessionToken); !errors.Is(err, sts.ErrExpiredToken) {
		t.Errorf("at its expiry: %v", err)
	}
	other, err := sts.OpenSessions(filepath.Join(t.TempDir(), "key"), clock)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Find(s.AccessKeyID, s.SessionToken); !errors.Is(err, sts.ErrInvalidToken) {
		t.Errorf("under another key: %v", err)
	}
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sts.OpenSessions(path, nil); err == nil {
		t.Error("a damaged key was accepted")
	}
}
