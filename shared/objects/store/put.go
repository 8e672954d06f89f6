package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/objects/keys"
)

// PutSealed implements files.SealedWriter. S3 compares the digest with what it received.
func (s *Store) PutSealed(ctx context.Context, f files.File, body []byte) (files.Sealed, error) {
	digest := sha256.Sum256(body)
	sum := hex.EncodeToString(digest[:])
	key, err := keys.Sealed(f.ID, sum)
	if err != nil {
		return files.Sealed{}, err
	}
	ctx, cancel, patient := s.patience(ctx)
	defer cancel()
	_, err = s.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket:         &s.bucket,
		Key:            &key,
		Body:           bytes.NewReader(body),
		ContentLength:  aws.Int64(int64(len(body))),
		ContentType:    &f.ContentType,
		CacheControl:   aws.String(keys.CacheControl),
		ChecksumSHA256: aws.String(base64.StdEncoding.EncodeToString(digest[:])),
		IfNoneMatch:    aws.String("*"),
	}, patient)
	if err != nil && status(err) != http.StatusPreconditionFailed { // 412: these bytes are there already
		return files.Sealed{Object: key}, explain("writing", err) // only the reply may have been lost
	}
	return files.Sealed{Object: key, SHA256: sum}, nil
}
