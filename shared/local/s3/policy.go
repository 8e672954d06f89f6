package s3

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"strings"
	"time"

	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/s3err"

	"claimcheck.dev/claimcheck/shared/local/sts"
)

// Role is what an account may do.
type Role int

const (
	// Function may do everything with the bucket, like a function's role.
	Function Role = iota
	// Presign may only presign: PutObject on staging/* and GetObject (HEAD
	// included) on files/*, and only with the signature in the query.
	Presign
)

// Account is what a pair of credentials stands for.
type Account struct {
	SecretAccessKey string
	Role            Role
	// NoList takes s3:ListBucket away from a Function: lists are refused, and a
	// missing key is 403 instead of 404, as on S3. Presign never has it.
	NoList bool
}

// MaxSignatureAge is how old the signature of a presigned request on staging/
// may be, whatever its X-Amz-Expires says: the bucket policy's s3:signatureAge.
const MaxSignatureAge = 3_900_000 * time.Millisecond

const (
	stagingPrefix = "staging/"
	filesPrefix   = "files/"
)

// action is an IAM action without its "s3:".
type action string

const (
	getObject    action = "GetObject"
	putObject    action = "PutObject"
	deleteObject action = "DeleteObject"
	listBucket   action = "ListBucket"
)

var errDenied = s3err.GetAPIError(s3err.ErrAccessDenied)

// authorize decides about an authenticated request, like the identity and
// bucket policies of the template together. The gateway has checked the
// signature before it calls the backend, so a forged request is answered
// SignatureDoesNotMatch here as on S3, never AccessDenied.
func (b *bucket) authorize(ctx context.Context, a action, key string) error {
	x := exchangeOf(ctx)
	account, err := b.account(ctx)
	if err != nil {
		return err
	}
	if account.Role == Presign {
		allowed := a == putObject && strings.HasPrefix(key, stagingPrefix) ||
			a == getObject && strings.HasPrefix(key, filesPrefix)
		if !allowed || !x.presigned {
			return errDenied
		}
	}
	if a == listBucket && account.NoList {
		return errDenied
	}
	if strings.HasPrefix(key, stagingPrefix) {
		if a == putObject && x.ifNoneMatch == "" {
			return errDenied
		}
		if x.presigned && time.Since(x.signed) > MaxSignatureAge {
			return errDenied
		}
	}
	return nil
}

// account returns the account of the request that ctx belongs to.
func (b *bucket) account(ctx context.Context) (Account, error) {
	caller, ok := ctx.Value("account").(auth.Account)
	if !ok || caller.Access == "" {
		return Account{}, errDenied
	}
	account, err := b.lookup(caller.Access, caller.SessionToken)
	if err != nil {
		return Account{}, errDenied
	}
	return account, nil
}

// missing is the answer for a key that is not there.
func (b *bucket) missing(ctx context.Context) error {
	if account, err := b.account(ctx); err != nil || account.NoList || account.Role == Presign {
		return errDenied
	}
	return s3err.GetAPIError(s3err.ErrNoSuchKey)
}

// accounts lets the gateway check signatures, session tokens included. To the
// gateway every account is an administrator: what it may do is decided by
// authorize.
type accounts struct {
	lookup func(accessKeyID, sessionToken string) (Account, error)
}

var errExpiredToken = s3err.APIError{
	Code: "ExpiredToken", Description: "The provided token has expired.", HTTPStatusCode: 400,
}

// DeriveSigningKey finds the key a request must be signed with. It is what
// the gateway asks first, because session tokens pass through here alone.
func (a accounts) DeriveSigningKey(accessKeyID, sessionToken, date, region, service string) ([]byte, auth.Account, error) {
	account, err := a.lookup(accessKeyID, sessionToken)
	switch {
	case errors.Is(err, sts.ErrUnknownKey):
		return nil, auth.Account{}, auth.ErrNoSuchUser
	case errors.Is(err, sts.ErrInvalidToken):
		return nil, auth.Account{}, auth.ErrInvalidSessionToken
	case errors.Is(err, sts.ErrExpiredToken):
		return nil, auth.Account{}, errExpiredToken
	case err != nil:
		return nil, auth.Account{}, err
	}
	key := []byte("AWS4" + account.SecretAccessKey)
	for _, part := range []string{date, region, service, "aws4_request"} {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	return key, auth.Account{
		Access:       accessKeyID,
		Role:         auth.RoleAdmin,
		SessionToken: sessionToken,
		IsSession:    sessionToken != "",
	}, nil
}

var errNoAdmin = s3err.GetAPIError(s3err.ErrAdminMethodNotSupported)

// The rest of the interface serves the gateway's administration API, which
// the host in front does not expose.

func (accounts) GetUserAccount(string) (auth.Account, error) {
	return auth.Account{}, auth.ErrNoSuchUser
}
func (accounts) CreateAccount(auth.Account) error                  { return errNoAdmin }
func (accounts) ResolveAccounts([]string) ([]string, error)        { return nil, errNoAdmin }
func (accounts) UpdateUserAccount(string, auth.MutableProps) error { return errNoAdmin }
func (accounts) DeleteUserAccount(string) error                    { return errNoAdmin }
func (accounts) ListUserAccounts() ([]auth.Account, error)         { return nil, errNoAdmin }
func (accounts) Shutdown() error                                   { return nil }
