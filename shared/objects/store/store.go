// Package store keeps the bytes of files in S3: it implements files.Stage and files.SealedWriter, and files.Bytes and
// files.ReconcileObjects, by which they go again.
//
// A function that uses it must be allowed s3:ListBucket on the bucket. Without that S3 answers 403 for a missing
// object, and 'not uploaded yet' can't be told from a lack of permission; a 403 is therefore always an error here.
package store

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"claimcheck.dev/claimcheck/shared/awsenv"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/objects/keys"
)

// Store is the bucket.
type Store struct {
	client *s3.Client
	env    awsenv.Env
	bucket string
}

var (
	_ files.Stage        = (*Store)(nil)
	_ files.SealedWriter = (*Store)(nil)
)

// Connect returns the store in a bucket, reached with the function's own credentials.
func Connect(env awsenv.Env, bucket string) *Store {
	client := s3.NewFromConfig(env.Config(), func(o *s3.Options) {
		o.BaseEndpoint = env.BaseEndpoint("S3")
		o.UsePathStyle = o.BaseEndpoint != nil
		// Two conditional writes of one key at the same moment: S3 refuses one of them, for the client to repeat.
		o.Retryer = retry.AddWithErrorCodes(o.Retryer, codeConflict)
	})
	return &Store{client: client, env: env, bucket: bucket}
}

const codeConflict = "ConditionalRequestConflict"

// Open implements files.Stage with a single ranged GET: the range tells the size of the whole object.
func (s *Store) Open(ctx context.Context, id string) (files.Staged, error) {
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{
		Bucket: &s.bucket,
		Key:    aws.String(keys.Staging(id)),
		Range:  aws.String("bytes=0-" + strconv.Itoa(files.HeadBytes-1)),
	})
	switch status(err) {
	case 0:
	case http.StatusNotFound:
		return files.Staged{}, missing(err)
	case http.StatusRequestedRangeNotSatisfiable:
		// An empty object has no first byte. Nothing more is known of it, nor needed: empty files are refused.
		return files.Staged{Head: http.NoBody}, nil
	}
	if err != nil {
		return files.Staged{}, explain("reading", err)
	}
	size, err := wholeSize(out)
	if err != nil {
		out.Body.Close()
		return files.Staged{}, err
	}
	return files.Staged{
		Size:     size,
		ETag:     aws.ToString(out.ETag),
		Modified: aws.ToTime(out.LastModified),
		Head:     out.Body,
	}, nil
}

// wholeSize returns the size of the object of which out is a part. S3 sends an empty one as a whole.
func wholeSize(out *s3.GetObjectOutput) (int64, error) {
	if out.ContentRange == nil {
		if out.ContentLength == nil {
			return 0, errors.New("S3 sent neither a range nor a length")
		}
		return *out.ContentLength, nil
	}
	_, total, ok := strings.Cut(*out.ContentRange, "/")
	size, err := strconv.ParseInt(total, 10, 64)
	if !ok || err != nil || size < 0 {
		return 0, fmt.Errorf("S3 sent the range %q, which tells no size", *out.ContentRange)
	}
	return size, nil
}

// Tail implements files.Stage.
func (s *Store) Tail(ctx context.Context, id, etag string, n int64) ([]byte, error) {
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{
		Bucket:  &s.bucket,
		Key:     aws.String(keys.Staging(id)),
		IfMatch: &etag,
		Range:   aws.String("bytes=-" + strconv.FormatInt(n, 10)),
	})
	switch status(err) {
	case 0:
	case http.StatusNotFound:
		return nil, missing(err)
	case http.StatusPreconditionFailed:
		return nil, files.ErrStagedChanged
	}
	if err != nil {
		return nil, explain("reading the end of", err)
	}
	defer out.Body.Close()
	b, err := io.ReadAll(io.LimitReader(out.Body, n))
	if err != nil {
		return nil, explain("reading the end of", err)
	}
	return b, nil
}

// Seal implements files.Stage. S3 copies the bytes and hashes them; they don't pass through here. The copy keeps
// nothing of what the client sent along, such as a Content-Encoding that would make downloads inflate themselves, and
// never replaces an earlier one of the same ETag.
func (s *Store) Seal(ctx context.Context, f files.File, etag string) (files.Sealed, error) {
	key, err := keys.Sealed(f.ID, etag)
	if err != nil {
		return files.Sealed{}, err
	}
	ctx, cancel, patient := s.patience(ctx)
	defer cancel()
	out, err := s.client.CopyObject(ctx, &s3.CopyObjectInput{
		Bucket:            &s.bucket,
		Key:               &key,
		CopySource:        aws.String(s.bucket + "/" + keys.Staging(f.ID)), // of characters that need no escape
		CopySourceIfMatch: &etag,
		IfNoneMatch:       aws.String("*"),
		MetadataDirective: types.MetadataDirectiveReplace,
		ChecksumAlgorithm: types.ChecksumAlgorithmSha256,
		ContentType:       &f.ContentType,
		CacheControl:      aws.String(keys.CacheControl),
	}, patient)
	switch status(err) {
	case 0:
	case http.StatusNotFound:
		return files.Sealed{}, missing(err)
	case http.StatusPreconditionFailed:
		// Either the staged object is another one, or an earlier attempt has made the copy already.
		return s.sealed(ctx, key)
	}
	if err != nil {
		return files.Sealed{}, explain("copying", err)
	}
	if out.CopyObjectResult == nil {
		return files.Sealed{}, errors.New("S3 copied the object without a result")
	}
	return sealed(key, out.CopyObjectResult.ChecksumSHA256, out.CopyObjectResult.ChecksumType)
}

// CopyName implements files.Stage.
func (s *Store) CopyName(id, etag string) string {
	if key, err := keys.Sealed(id, etag); err == nil {
		return key
	}
	return "" // no ETag of S3
}

// sealed describes the copy that exists at key, or returns ErrStagedChanged when there is none.
func (s *Store) sealed(ctx context.Context, key string) (files.Sealed, error) {
	out, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{
		Bucket: &s.bucket, Key: &key, ChecksumMode: types.ChecksumModeEnabled,
	})
	if status(err) == http.StatusNotFound {
		return files.Sealed{}, files.ErrStagedChanged
	}
	if err != nil {
		return files.Sealed{}, explain("looking at the copy of", err)
	}
	return sealed(key, out.ChecksumSHA256, out.ChecksumType)
}

func sealed(key string, checksum *string, kind types.ChecksumType) (files.Sealed, error) {
	digest, err := base64.StdEncoding.DecodeString(aws.ToString(checksum))
	// A composite checksum is one of the checksums of parts, and has another form or says so.
	if err != nil || len(digest) != 32 || kind == types.ChecksumTypeComposite {
		return files.Sealed{}, errors.New("S3 did not return the SHA-256 of the whole copy")
	}
	return files.Sealed{Object: key, SHA256: hex.EncodeToString(digest)}, nil
}

// Discard implements files.Stage.
func (s *Store) Discard(ctx context.Context, id string) error {
	return s.delete(ctx, keys.Staging(id))
}

func (s *Store) delete(ctx context.Context, key string) error {
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: &key})
	if status(err) == http.StatusNotFound && code(err) == "NoSuchKey" {
		return nil // S3 says 204, others may not
	}
	if err != nil {
		return explain("deleting", err)
	}
	return nil
}

// missing tells a missing object from a missing bucket, which no upload will mend.
func missing(err error) error {
	if code(err) == "NoSuchBucket" {
		return fmt.Errorf("the bucket of BUCKET_NAME does not exist: %w", err)
	}
	return files.ErrNotUploaded
}

// status returns the HTTP status of a refusal by S3, or 0 for other errors and for none.
func status(err error) int {
	var resp *smithyhttp.ResponseError
	if errors.As(err, &resp) {
		return resp.HTTPStatusCode()
	}
	return 0
}

func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// explain says what was being done when S3 failed, and with files.ErrTryAgain that it is worth repeating.
func explain(doing string, err error) error {
	if awsenv.Temporary(err) || code(err) == codeConflict {
		return fmt.Errorf("%s an object: %w: %w", doing, files.ErrTryAgain, err)
	}
	return fmt.Errorf("%s an object: %w", doing, err)
}
