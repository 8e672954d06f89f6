package session

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"claimcheck.dev/claimcheck/shared/awsenv"
)

// assumer assumes a role by STS's AssumeRole
// (https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html). The SDK's client does the same; for this
// one call it would add half a megabyte to each function that signs, and as much to its memory.
type assumer struct {
	client  *http.Client
	retryer aws.Retryer
	caller  aws.CredentialsProvider
	signer  *v4.Signer
	url     string
	region  string
	form    []byte
}

func newAssumer(env awsenv.Env, arn string) *assumer {
	cfg := env.Config()
	a := &assumer{
		client: env.HTTPClient(awsenv.AttemptTimeout), retryer: cfg.Retryer(), caller: cfg.Credentials,
		signer: v4.NewSigner(), url: env.Endpoint("STS"), region: env.Region,
		form: []byte(url.Values{
			"Action": {"AssumeRole"}, "Version": {"2011-06-15"},
			"RoleArn": {arn}, "RoleSessionName": {sessionName(env.Function)},
			"DurationSeconds": {strconv.Itoa(int(Life / time.Second))},
		}.Encode()),
	}
	if a.url == "" {
		a.url = "https://" + awsenv.Host("sts", env.Region)
	}
	a.url += "/"
	return a
}

// Retrieve implements aws.CredentialsProvider: it tries as often as the clients of awsenv do.
func (a *assumer) Retrieve(ctx context.Context) (aws.Credentials, error) {
	for attempt := 1; ; attempt++ {
		creds, err := a.assume(ctx)
		if err == nil || attempt >= a.retryer.MaxAttempts() || !a.retryer.IsErrorRetryable(err) {
			return creds, err
		}
		delay, late := a.retryer.RetryDelay(attempt, err)
		if late != nil {
			return aws.Credentials{}, err
		}
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return aws.Credentials{}, err
		}
	}
}

// maxAnswer is far more than any answer has.
const maxAnswer = 64 << 10

func (a *assumer) assume(ctx context.Context) (aws.Credentials, error) {
	caller, err := a.caller.Retrieve(ctx)
	if err != nil {
		return aws.Credentials{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, bytes.NewReader(a.form))
	if err != nil {
		return aws.Credentials{}, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("User-Agent", "claimcheck")
	hash := sha256.Sum256(a.form)
	if err := a.signer.SignHTTP(ctx, caller, req, hex.EncodeToString(hash[:]), "sts", a.region, time.Now()); err != nil {
		return aws.Credentials{}, err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return aws.Credentials{}, unanswered(ctx, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return aws.Credentials{}, unanswered(ctx, err)
	}
	if resp.StatusCode != http.StatusOK {
		return aws.Credentials{}, refused(resp, body)
	}
	return granted(body)
}

// unanswered wraps err as the SDK's clients do, so that a lost connection is tried again and a caller's end is not.
func unanswered(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &aws.RequestCanceledError{Err: err}
	}
	return &smithyhttp.RequestSendError{Err: err}
}

func granted(body []byte) (aws.Credentials, error) {
	var answer struct {
		AccessKeyID     string    `xml:"AssumeRoleResult>Credentials>AccessKeyId"`
		SecretAccessKey string    `xml:"AssumeRoleResult>Credentials>SecretAccessKey"`
		SessionToken    string    `xml:"AssumeRoleResult>Credentials>SessionToken"`
		Expiration      time.Time `xml:"AssumeRoleResult>Credentials>Expiration"`
	}
	if err := xml.Unmarshal(body, &answer); err != nil {
		return aws.Credentials{}, errors.New("the answer of STS is not the XML it should be") // the cause could quote it
	}
	creds := aws.Credentials{
		AccessKeyID: answer.AccessKeyID, SecretAccessKey: answer.SecretAccessKey, SessionToken: answer.SessionToken,
		CanExpire: true, Expires: answer.Expiration, Source: "AssumeRole",
	}
	if !creds.HasKeys() || creds.SessionToken == "" || creds.Expires.IsZero() {
		return aws.Credentials{}, errors.New("the answer of STS holds no session")
	}
	return creds, nil
}

// refused is an error that says what the SDK's would: the status, the code and the message.
func refused(resp *http.Response, body []byte) error {
	var answer struct {
		Code    string `xml:"Error>Code"`
		Message string `xml:"Error>Message"`
	}
	if err := xml.Unmarshal(body, &answer); err != nil || answer.Code == "" {
		answer.Code = strings.ReplaceAll(http.StatusText(resp.StatusCode), " ", "")
	}
	return &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: resp},
		Err:      &smithy.GenericAPIError{Code: answer.Code, Message: fmt.Sprintf("%.500s", answer.Message)},
	}
}
