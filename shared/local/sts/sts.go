// Package sts is the Security Token Service of the local stack: AssumeRole and
// nothing else, in the query protocol that the AWS SDKs speak
// (https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html).
//
// The functions assume one role, the presign role, whose sessions sign the
// URLs that clients get. A session here is what it is on AWS: a temporary
// access key, its secret, and a token that must come with every request; the
// local S3 host recognises them through Sessions.
package sts

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Options configure the service.
type Options struct {
	// Roles are the ARNs that may be assumed.
	Roles []string
	// Sessions issues the credentials.
	Sessions *Sessions
	// Secret returns the secret of a caller's access key, to check the
	// signature of its request with. Its errors are ErrUnknownKey,
	// ErrInvalidToken and ErrExpiredToken.
	Secret func(accessKeyID, sessionToken string) (string, error)
}

// New returns the service as a handler for any path.
func New(o Options) http.Handler { return &service{o, v4.NewSigner()} }

type service struct {
	Options
	signer *v4.Signer
}

// The lengths of a session. Callers are themselves sessions of a role, and
// AWS ends chained sessions after one hour.
const (
	defaultDuration = 3600
	minDuration     = 900
	maxDuration     = 3600
)

// maxBody is more than any AssumeRole request has.
const maxBody = 64 << 10

var sessionName = regexp.MustCompile(`^[\w+=,.@-]{2,64}$`)

// failure is an error answer.
type failure struct {
	status        int
	code, message string
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := rand.Text()
	session, fail := s.serve(r)
	if fail != nil {
		write(w, fail.status, errorResponse{
			Error:     errorBody{Type: "Sender", Code: fail.code, Message: fail.message},
			RequestID: id,
		})
		return
	}
	write(w, http.StatusOK, assumeRoleResponse{
		Result: assumeRoleResult{
			User: assumedRoleUser{
				ID:  "AROALOCAL:" + session.Name,
				ARN: strings.Replace(session.RoleARN, ":iam:", ":sts:", 1) + "/" + session.Name,
			},
			Credentials: credentials{
				session.AccessKeyID, session.SecretAccessKey, session.SessionToken,
				session.Expires.Format("2006-01-02T15:04:05Z"),
			},
		},
		RequestID: id,
	})
}

func (s *service) serve(r *http.Request) (Session, *failure) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return Session{}, &failure{http.StatusBadRequest, "IncompleteBody", "The request body ended early."}
	}
	if fail := s.authenticate(r, body); fail != nil {
		return Session{}, fail
	}
	form := r.URL.Query()
	if r.Method == http.MethodPost {
		if form, err = url.ParseQuery(string(body)); err != nil {
			return Session{}, &failure{http.StatusBadRequest, "MalformedQueryString", "The request body is not a form."}
		}
	}
	if form.Get("Action") != "AssumeRole" || form.Get("Version") != "2011-06-15" {
		return Session{}, &failure{http.StatusBadRequest, "InvalidAction", fmt.Sprintf(
			"Could not find operation %s for version %s: the local STS has AssumeRole only.", form.Get("Action"), form.Get("Version"))}
	}
	role, name := form.Get("RoleArn"), form.Get("RoleSessionName")
	seconds := defaultDuration
	if text := form.Get("DurationSeconds"); text != "" {
		if seconds, err = strconv.Atoi(text); err != nil || seconds < minDuration {
			return Session{}, invalid("DurationSeconds must be a number of at least %d", minDuration)
		}
	}
	switch {
	case !sessionName.MatchString(name):
		return Session{}, invalid("RoleSessionName must be 2 to 64 characters of letters, digits and _+=,.@-")
	case role == "":
		return Session{}, invalid("RoleArn is missing")
	case seconds > maxDuration:
		return Session{}, invalid("The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining")
	case !slices.Contains(s.Roles, role):
		return Session{}, &failure{http.StatusForbidden, "AccessDenied",
			"The caller is not authorized to perform: sts:AssumeRole on resource: " + role}
	}
	return s.Sessions.Issue(role, name, time.Duration(seconds)*time.Second), nil
}

func invalid(format string, args ...any) *failure {
	return &failure{http.StatusBadRequest, "ValidationError", fmt.Sprintf(format, args...)}
}

// authorization is the only form of signature the SDKs send.
var authorization = regexp.MustCompile(
	`^AWS4-HMAC-SHA256 Credential=([^/,]+)/(\d{8})/([^/,]+)/sts/aws4_request, *SignedHeaders=([^,]+), *Signature=([0-9a-f]{64})$`)

// authenticate checks the signature of a request by signing its signed part
// again.
func (s *service) authenticate(r *http.Request, body []byte) *failure {
	parts := authorization.FindStringSubmatch(r.Header.Get("Authorization"))
	signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if parts == nil || err != nil {
		return &failure{http.StatusForbidden, "MissingAuthenticationToken", "Request is missing Authentication Token"}
	}
	accessKeyID, region, headers, signature := parts[1], parts[3], strings.Split(parts[4], ";"), parts[5]
	token := r.Header.Get("X-Amz-Security-Token")
	secret, err := s.Secret(accessKeyID, token)
	switch {
	case errors.Is(err, ErrExpiredToken):
		return &failure{http.StatusForbidden, "ExpiredTokenException", "The security token included in the request is expired"}
	case err != nil:
		return &failure{http.StatusForbidden, "InvalidClientTokenId", "The security token included in the request is invalid."}
	}

	again := &http.Request{Method: r.Method, URL: r.URL, Host: r.Host, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body))}
	for _, name := range headers {
		switch name {
		case "host":
		case "content-length":
			again.ContentLength = int64(len(body))
		default:
			again.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
		}
	}
	hash := sha256.Sum256(body)
	caller := aws.Credentials{AccessKeyID: accessKeyID, SecretAccessKey: secret, SessionToken: token}
	err = s.signer.SignHTTP(context.Background(), caller, again, hex.EncodeToString(hash[:]), "sts", region, signed)
	expected := authorization.FindStringSubmatch(again.Header.Get("Authorization"))
	if err != nil || expected == nil || subtle.ConstantTimeCompare([]byte(expected[5]), []byte(signature)) != 1 {
		return &failure{http.StatusForbidden, "SignatureDoesNotMatch",
			"The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method."}
	}
	return nil
}

type errorResponse struct {
	XMLName   xml.Name `xml:"https://sts.amazonaws.com/doc/2011-06-15/ ErrorResponse"`
	Error     errorBody
	RequestID string `xml:"RequestId"`
}

type errorBody struct{ Type, Code, Message string }

type assumeRoleResponse struct {
	XMLName   xml.Name         `xml:"https://sts.amazonaws.com/doc/2011-06-15/ AssumeRoleResponse"`
	Result    assumeRoleResult `xml:"AssumeRoleResult"`
	RequestID string           `xml:"ResponseMetadata>RequestId"`
}

type assumeRoleResult struct {
	User        assumedRoleUser `xml:"AssumedRoleUser"`
	Credentials credentials
}

type assumedRoleUser struct {
	ID  string `xml:"AssumedRoleId"`
	ARN string `xml:"Arn"`
}

type credentials struct {
	AccessKeyID     string `xml:"AccessKeyId"`
	SecretAccessKey string
	SessionToken    string
	Expiration      string
}

func write(w http.ResponseWriter, status int, answer any) {
	data, err := xml.Marshal(answer)
	if err != nil {
		panic(err) // strings always encode
	}
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(status)
	w.Write(data)
}
