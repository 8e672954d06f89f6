package s3

import (
	"context"
	"encoding/base64"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/versity/versitygw/s3err"
	"github.com/versity/versitygw/s3response"
)

// behind is a byte no UTF-8 text has: prefix + behind sorts after every key
// with that prefix.
const behind = "\xff"

// ListObjectsV2 lists in the order of the keys' bytes. A continuation token is
// the place to go on from in base64, opaque to callers as on S3.
func (b *bucket) ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input) (s3response.ListObjectsV2Result, error) {
	if err := b.authorize(ctx, listBucket, ""); err != nil {
		return s3response.ListObjectsV2Result{}, err
	}
	prefix, delimiter := aws.ToString(in.Prefix), aws.ToString(in.Delimiter)
	last := aws.ToString(in.StartAfter)
	out := s3response.ListObjectsV2Result{
		Name: in.Bucket, Prefix: &prefix, StartAfter: in.StartAfter, MaxKeys: in.MaxKeys,
	}
	if delimiter != "" {
		out.Delimiter = &delimiter
	}
	if token := aws.ToString(in.ContinuationToken); token != "" {
		decoded, err := base64.URLEncoding.DecodeString(token)
		if err != nil {
			return s3response.ListObjectsV2Result{}, s3err.APIError{
				Code: "InvalidArgument", Description: "The continuation token provided is incorrect", HTTPStatusCode: 400,
			}
		}
		last = string(decoded)
		out.ContinuationToken = &token
	}

	limit := int(aws.ToInt32(in.MaxKeys))
	for len(out.Contents)+len(out.CommonPrefixes) < limit {
		page, _ := b.store.after(prefix, last, 1)
		if len(page) == 0 {
			break
		}
		o := page[0]
		if delimiter != "" {
			if head, _, found := strings.Cut(o.Key[len(prefix):], delimiter); found {
				common := prefix + head + delimiter
				out.CommonPrefixes = append(out.CommonPrefixes, types.CommonPrefix{Prefix: &common})
				last = common + behind
				continue
			}
		}
		last = o.Key
		out.Contents = append(out.Contents, s3response.Object{
			Key: &o.Key, Size: &o.Size, ETag: aws.String(quote(o.ETag)), LastModified: &o.Modified,
			StorageClass:      types.ObjectStorageClassStandard,
			ChecksumAlgorithm: []types.ChecksumAlgorithm{o.Checksum.Algorithm},
			ChecksumType:      types.ChecksumTypeFullObject,
		})
	}
	_, more := b.store.after(prefix, last, 0)
	more = more && limit > 0
	out.IsTruncated = &more
	if more {
		out.NextContinuationToken = aws.String(base64.URLEncoding.EncodeToString([]byte(last)))
	}
	out.KeyCount = aws.Int32(int32(len(out.Contents) + len(out.CommonPrefixes)))
	return out, nil
}
