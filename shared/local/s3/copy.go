package s3

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/s3err"
	"github.com/versity/versitygw/s3response"
)

// CopyObject copies on the server's side. The conditions on the source and
// the bytes belong to one state of it; a requested checksum that the source
// does not have is computed from the bytes and answered in the result.
func (b *bucket) CopyObject(ctx context.Context, in s3response.CopyObjectInput) (out s3response.CopyObjectOutput, err error) {
	key := aws.ToString(in.Key)
	sourceBucket, sourceKey, version, err := backend.ParseCopySource(aws.ToString(in.CopySource))
	if err != nil {
		return out, err
	}
	if err := b.exists(&sourceBucket); err != nil {
		return out, err
	}
	if err := b.authorize(ctx, getObject, sourceKey); err != nil {
		return out, err
	}
	if err := b.authorize(ctx, putObject, key); err != nil {
		return out, err
	}
	if len(key) > maxKeyBytes {
		return out, s3err.GetKeyTooLongErr(int64(len(key)), maxKeyBytes)
	}
	if version != "" || in.TaggingDirective == types.TaggingDirectiveReplace || in.ObjectLockMode != "" || in.ObjectLockLegalHoldStatus != "" {
		return out, s3err.GetAPIError(s3err.ErrNotImplemented)
	}
	replace := in.MetadataDirective == types.MetadataDirectiveReplace
	if sourceKey == key && !replace {
		return out, s3err.GetAPIError(s3err.ErrInvalidCopyDest)
	}

	source, f, err := b.store.open(sourceKey)
	if err != nil {
		return out, err
	}
	if source == nil {
		return out, b.missing(ctx)
	}
	defer f.Close()
	if source.Size > maxCopyBytes {
		return out, s3err.GetCopySourceObjectTooLargeErr(maxCopyBytes)
	}
	err = backend.EvaluatePreconditions(source.ETag, source.Modified, backend.PreConditions{
		IfMatch: in.CopySourceIfMatch, IfNoneMatch: in.CopySourceIfNoneMatch,
		IfModSince: in.CopySourceIfModifiedSince, IfUnmodeSince: in.CopySourceIfUnmodifiedSince,
	})
	if err != nil {
		if s, ok := err.(s3err.S3Error); ok && s.StatusCode() == http.StatusNotModified {
			err = s3err.GetPreconditionFailedErr(s3err.ConditionIfNoneMatch)
		}
		return out, err
	}

	o := *source
	o.Key = strings.Clone(key)
	if replace {
		o.ContentType = keep(in.ContentType)
		o.ContentEncoding = storedEncoding(in.ContentEncoding)
		o.ContentDisposition = keep(in.ContentDisposition)
		o.ContentLanguage = keep(in.ContentLanguage)
		o.CacheControl = keep(in.CacheControl)
		o.Expires = keep(in.Expires)
		o.Metadata = keepAll(in.Metadata)
	}
	if in.ChecksumAlgorithm != "" && in.ChecksumAlgorithm != source.Checksum.Algorithm {
		body, err := newSummer(io.NewSectionReader(f, 0, source.Size), in.ChecksumAlgorithm, "")
		if err != nil {
			return out, err
		}
		if _, err := io.Copy(io.Discard, body); err != nil {
			return out, fmt.Errorf("reading the source of a copy: %w", err)
		}
		o.Checksum = body.result()
	}
	if o.Blob, err = b.store.adopt(f); err != nil {
		return out, err
	}
	// The gateway does not pass on the conditions on the destination.
	x := exchangeOf(ctx)
	if err := b.publish(&o, putCondition(x.conditions()), EventCopy); err != nil {
		return out, err
	}
	b.written(o.Size)
	c := o.Checksum.sums()
	return s3response.CopyObjectOutput{CopyObjectResult: &s3response.CopyObjectResult{
		ETag: aws.String(quote(o.ETag)), LastModified: &o.Modified, ChecksumType: types.ChecksumTypeFullObject,
		ChecksumCRC32: c.crc32, ChecksumCRC32C: c.crc32c, ChecksumCRC64NVME: c.crc64nvme,
		ChecksumSHA1: c.sha1, ChecksumSHA256: c.sha256,
	}}, nil
}
