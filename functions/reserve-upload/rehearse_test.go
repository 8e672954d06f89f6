package main

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"claimcheck.dev/claimcheck/shared/functiontest"
	"claimcheck.dev/claimcheck/shared/records"
)

// unreachable is a DynamoDB that must not be asked.
type unreachable struct{ t *testing.T }

func (u unreachable) Do(*http.Request) (*http.Response, error) {
	u.t.Error("DynamoDB was asked")
	return nil, http.ErrServerClosed
}

// TestRehearsal: it goes all the way to a presigned upload, and leaves nothing behind.
func TestRehearsal(t *testing.T) {
	t.Parallel()
	f := functiontest.New(t)
	table := records.New(dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", HTTPClient: unreachable{t}, Credentials: aws.AnonymousCredentials{},
	}), "table", records.Options{})
	if err := rehearse(*f.Uploads(), table, functiontest.Prefix)(t.Context()); err != nil {
		t.Error(err)
	}
	if s := f.Records.Snapshot(t); len(s.Files) != 0 {
		t.Errorf("%d files are left", len(s.Files))
	}

	uploads := f.Uploads()
	uploads.URLTTL = 0 // over before it begins
	if err := rehearse(*uploads, table, functiontest.Prefix)(t.Context()); err == nil {
		t.Error("a rehearsal that cannot presign says nothing of it")
	}
}
