package objects

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/names"
	"claimcheck.dev/claimcheck/shared/objects/keys"
)

// SignerOptions says where the objects are and who signs.
type SignerOptions struct {
	Bucket string
	Region string
	// Endpoint is the base URL of another S3 than AWS's, without a path; the bucket then goes into the path. "" is AWS.
	Endpoint string
	// ContentDomain is the host, with its port if any, that links show instead of that of S3. It must forward path and
	// query unchanged to the host they were signed for. "" leaves links as they are.
	ContentDomain string
	// Credentials sign. When they say that they expire, no request is signed for longer.
	Credentials aws.CredentialsProvider
}

// Signer presigns uploads and downloads. It makes no network calls of its own, though its credentials may have to be
// renewed.
type Signer struct {
	base          url.URL // of the bucket, without a trailing slash
	region        string
	contentDomain string
	credentials   aws.CredentialsProvider
	v4            *v4.Signer
}

var (
	_ files.UploadSigner = (*Signer)(nil)
	_ files.LinkSigner   = (*Signer)(nil)
)

// NewSigner returns a signer for a bucket.
func NewSigner(o SignerOptions) *Signer {
	return &Signer{
		base:          bucketURL(o.Bucket, o.Region, o.Endpoint),
		region:        o.Region,
		contentDomain: o.ContentDomain,
		credentials:   o.Credentials,
		// S3 signs the path as it is sent, unlike every other service.
		v4: v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }),
	}
}

// SignUpload presigns the one PUT that can store the bytes of f. Headers are all the client must send: each is part of
// the signature, so S3 refuses another type, another length, other bytes than those of a declared digest, and a second
// upload while the first is there. It returns files.ErrUploadExpired when less than a second is left until until, and
// files.ErrTryAgain when the credentials can't be renewed.
func (s *Signer) SignUpload(ctx context.Context, f files.File, now, until time.Time) (files.SignedRequest, error) {
	if !files.ValidID(f.ID) {
		return files.SignedRequest{}, fmt.Errorf("%q is not a file id", f.ID) // it becomes a path
	}
	if f.Size == 0 {
		// The signer leaves a zero length unsigned, and any body would pass.
		return files.SignedRequest{}, files.ErrEmptyFile
	}
	headers := map[string]string{"Content-Type": f.ContentType, "If-None-Match": "*"}
	if f.Size > 0 {
		headers["Content-Length"] = strconv.FormatInt(f.Size, 10)
	}
	if f.SHA256 != "" {
		digest, err := hex.DecodeString(f.SHA256)
		if err != nil || len(digest) != 32 {
			return files.SignedRequest{}, fmt.Errorf("the record of %s holds no valid SHA-256", f.ID)
		}
		headers["X-Amz-Checksum-Sha256"] = base64.StdEncoding.EncodeToString(digest)
	}
	signed, err := s.presign(ctx, request{
		method: http.MethodPut, key: keys.Staging(f.ID), headers: headers, length: f.Size,
		now: now, until: until, tooLate: files.ErrUploadExpired,
	})
	if err != nil {
		return files.SignedRequest{}, err
	}
	return files.SignedRequest{Method: http.MethodPut, URL: signed.url.String(), Headers: headers, ExpiresAt: signed.expires}, nil
}

// SignLink presigns a GET or HEAD of the sealed object of f as an attachment under its own name and type, on the
// content domain. It returns files.ErrFileExpired when less than a second is left until until, and files.ErrTryAgain
// when the credentials can't be renewed.
func (s *Signer) SignLink(ctx context.Context, f files.File, method string, now, until time.Time) (files.SignedRequest, error) {
	if method != http.MethodGet && method != http.MethodHead {
		return files.SignedRequest{}, fmt.Errorf("links are for GET and HEAD, not %q", method)
	}
	if !keys.IsSealed(f.Sealed) {
		return files.SignedRequest{}, fmt.Errorf("the record of %s names no sealed object", f.ID)
	}
	signed, err := s.presign(ctx, request{
		method: method, key: f.Sealed, now: now, until: until, tooLate: files.ErrFileExpired,
		query: url.Values{
			"response-content-type":        {f.ContentType},
			"response-content-disposition": {names.Disposition(f.Filename)},
			"response-cache-control":       {keys.CacheControl},
		},
	})
	if err != nil {
		return files.SignedRequest{}, err
	}
	// The signature covers the host that S3 sees; the content domain forwards to it.
	if s.contentDomain != "" {
		signed.url.Host = s.contentDomain
	}
	return files.SignedRequest{Method: method, URL: signed.url.String(), ExpiresAt: signed.expires}, nil
}

// maxLife is the longest that S3 accepts.
const maxLife = 7 * 24 * time.Hour

type request struct {
	method, key string
	headers     map[string]string
	length      int64
	query       url.Values
	now, until  time.Time
	tooLate     error // what it means when until has come
}

type presigned struct {
	url     *url.URL
	expires time.Time
}

// presign signs r for whole seconds: S3 counts X-Amz-Expires from X-Amz-Date, and the end of that is the truth.
func (s *Signer) presign(ctx context.Context, r request) (presigned, error) {
	creds, err := s.credentials.Retrieve(ctx)
	if err != nil {
		return presigned{}, fmt.Errorf("getting the signing credentials: %w", err)
	}
	date := r.now.UTC().Truncate(time.Second)
	life := min(r.until.Sub(date), maxLife)
	if life < time.Second {
		return presigned{}, r.tooLate
	}
	if creds.CanExpire {
		life = min(life, creds.Expires.Sub(date))
	}
	life = life.Truncate(time.Second)
	if life < time.Second {
		return presigned{}, fmt.Errorf("the signing credentials have expired: %w", files.ErrTryAgain)
	}
	req := &http.Request{
		Method: r.method,
		URL:    &url.URL{Scheme: s.base.Scheme, Host: s.base.Host, Path: s.base.Path + "/" + r.key},
		Host:   s.base.Host,
		Header: make(http.Header, len(r.headers)),
	}
	for k, v := range r.headers {
		if k == "Content-Length" {
			req.ContentLength = r.length // where the signer looks for it
			continue
		}
		req.Header.Set(k, v)
	}
	query := r.query
	if query == nil {
		query = make(url.Values, 1)
	}
	query.Set("X-Amz-Expires", strconv.FormatInt(int64(life/time.Second), 10))
	req.URL.RawQuery = query.Encode()
	signed, _, err := s.v4.PresignHTTP(ctx, creds, req, "UNSIGNED-PAYLOAD", "s3", s.region, date)
	if err != nil {
		return presigned{}, errors.New("the request can't be signed") // the cause could quote it
	}
	u, err := url.Parse(signed)
	if err != nil {
		return presigned{}, errors.New("the signed request has no valid URL")
	}
	return presigned{url: u, expires: date.Add(life)}, nil
}
