package s3

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/s3err"
	"github.com/versity/versitygw/s3response"
)

// maxKeyBytes is S3's limit for a key.
const maxKeyBytes = 1024

// maxCopyBytes is the largest object CopyObject takes on S3.
const maxCopyBytes = 5 << 30

// bucket is the gateway's storage: one bucket over a store. What it does not
// implement (multipart uploads, versions, tags, locks, configuration calls)
// the embedded type answers with 501 NotImplemented.
type bucket struct {
	backend.BackendUnsupported
	name      string
	store     *store
	lookup    func(accessKeyID, sessionToken string) (Account, error)
	created   func(ObjectCreated) // nil when nobody listens
	sequencer sequencer
	written   func(bytes int64)
}

func (b *bucket) String() string { return "claimcheck local S3" }

// exists is nil for the one bucket there is.
func (b *bucket) exists(name *string) error {
	if aws.ToString(name) != b.name {
		return s3err.GetBucketErr(s3err.ErrNoSuchBucket, aws.ToString(name))
	}
	return nil
}

// GetBucketAcl is what the gateway asks to learn whether a bucket exists, for
// every request.
func (b *bucket) GetBucketAcl(_ context.Context, in *s3.GetBucketAclInput) ([]byte, error) {
	return nil, b.exists(in.Bucket)
}

func (b *bucket) HeadBucket(ctx context.Context, in *s3.HeadBucketInput) (*s3.HeadBucketOutput, error) {
	if err := b.exists(in.Bucket); err != nil {
		return nil, err
	}
	return &s3.HeadBucketOutput{}, b.authorize(ctx, listBucket, "")
}

// The gateway asks for the following on its way to an object; there is no
// such configuration: access is decided by authorize, CORS by the host.

func (b *bucket) GetBucketPolicy(context.Context, string) ([]byte, error) {
	return nil, s3err.GetAPIError(s3err.ErrNoSuchBucketPolicy)
}

func (b *bucket) GetBucketCors(context.Context, string) ([]byte, error) {
	return nil, s3err.GetAPIError(s3err.ErrNoSuchCORSConfiguration)
}

func (b *bucket) GetObjectLockConfiguration(context.Context, string) ([]byte, error) {
	return nil, s3err.GetAPIError(s3err.ErrObjectLockConfigurationNotFound)
}

func (b *bucket) PutObject(ctx context.Context, in s3response.PutObjectInput) (out s3response.PutObjectOutput, err error) {
	key := aws.ToString(in.Key)
	if err := b.authorize(ctx, putObject, key); err != nil {
		return out, err
	}
	if len(key) > maxKeyBytes {
		return out, s3err.GetKeyTooLongErr(int64(len(key)), maxKeyBytes)
	}
	if aws.ToString(in.Tagging) != "" || in.ObjectLockMode != "" || in.ObjectLockLegalHoldStatus != "" {
		return out, s3err.GetAPIError(s3err.ErrNotImplemented)
	}
	condition := putCondition(in.IfMatch, in.IfNoneMatch)
	// A condition that fails already spares the client the upload. The one
	// that counts is checked when publishing.
	if err := condition(b.store.find(key)); err != nil {
		return out, err
	}
	exchangeOf(ctx).proceed()

	o := &object{
		Key:                strings.Clone(key),
		ContentType:        keep(in.ContentType),
		ContentEncoding:    storedEncoding(in.ContentEncoding),
		ContentDisposition: keep(in.ContentDisposition),
		ContentLanguage:    keep(in.ContentLanguage),
		CacheControl:       keep(in.CacheControl),
		Expires:            keep(in.Expires),
		Metadata:           keepAll(in.Metadata),
	}
	if err := b.receive(o, in); err != nil {
		return out, err
	}
	if err := b.publish(o, condition, EventPut); err != nil {
		return out, err
	}
	b.written(o.Size)
	c := o.Checksum.sums()
	return s3response.PutObjectOutput{
		ETag: quote(o.ETag), Size: &o.Size, ChecksumType: types.ChecksumTypeFullObject,
		ChecksumCRC32: c.crc32, ChecksumCRC32C: c.crc32c, ChecksumCRC64NVME: c.crc64nvme,
		ChecksumSHA1: c.sha1, ChecksumSHA256: c.sha256,
	}, nil
}

// receive writes the body of an upload to an incoming file and completes o.
// When it fails nothing is left.
func (b *bucket) receive(o *object, in s3response.PutObjectInput) error {
	body, err := uploadSummer(in)
	if err != nil {
		return err
	}
	name, f, err := b.store.create()
	if err != nil {
		return fmt.Errorf("creating a file for an upload: %w", err)
	}
	etag := md5.New()
	n, err := io.Copy(io.MultiWriter(f, etag), body)
	if closing := f.Close(); err == nil {
		err = closing
	}
	switch {
	case err != nil:
		err = asS3Error(err)
	case n != aws.ToInt64(in.ContentLength):
		// The gateway takes a body that was cut off for one that ended.
		err = s3err.GetAPIError(s3err.ErrIncompleteBody)
	}
	if err != nil {
		b.store.discard(name)
		return err
	}
	o.Blob, o.Size, o.ETag, o.Checksum = name, n, hex.EncodeToString(etag.Sum(nil)), body.result()
	return nil
}

// publish makes a received object visible and then says so. Its incoming file
// is gone afterwards in any case.
func (b *bucket) publish(o *object, condition func(*object) error, eventName string) error {
	defer b.store.discard(o.Blob)
	o.Modified = time.Now().UTC().Truncate(time.Millisecond)
	if b.created == nil {
		return b.store.publish(o, condition, nil)
	}
	event := ObjectCreated{
		Bucket: b.name, Key: o.Key, Size: o.Size, ETag: o.ETag,
		EventName: eventName, Time: o.Modified, Sequencer: b.sequencer.next(o.Modified),
	}
	if err := b.store.publish(o, condition, &event); err != nil {
		return err
	}
	b.deliver(event)
	return nil
}

// deliver hands an event over and forgets it then, not before.
func (b *bucket) deliver(event ObjectCreated) {
	b.created(event)
	b.store.forgetEvent(event)
}

func (b *bucket) GetObject(ctx context.Context, in *s3.GetObjectInput) (*s3.GetObjectOutput, error) {
	o, f, err := b.read(ctx, aws.ToString(in.Key), reading{
		in.Range, in.VersionId, in.PartNumber, in.IfMatch, in.IfNoneMatch, in.IfModifiedSince, in.IfUnmodifiedSince,
	})
	if err != nil {
		return nil, err
	}
	c := sums{}
	if in.ChecksumMode == types.ChecksumModeEnabled && o.contentRange == nil {
		c = o.Checksum.sums()
	}
	return &s3.GetObjectOutput{
		Body: struct {
			io.Reader
			io.Closer
		}{io.NewSectionReader(f, o.offset, o.length), f},
		ContentLength: &o.length, ContentRange: o.contentRange, AcceptRanges: aws.String("bytes"),
		ETag: aws.String(quote(o.ETag)), LastModified: &o.Modified, Metadata: o.Metadata,
		ContentType: &o.ContentType, ContentEncoding: &o.ContentEncoding, ContentDisposition: &o.ContentDisposition,
		ContentLanguage: &o.ContentLanguage, CacheControl: &o.CacheControl, ExpiresString: &o.Expires,
		ChecksumCRC32: c.crc32, ChecksumCRC32C: c.crc32c, ChecksumCRC64NVME: c.crc64nvme,
		ChecksumSHA1: c.sha1, ChecksumSHA256: c.sha256, ChecksumType: checksumType(c),
	}, nil
}

func (b *bucket) HeadObject(ctx context.Context, in *s3.HeadObjectInput) (*s3.HeadObjectOutput, error) {
	o, f, err := b.read(ctx, aws.ToString(in.Key), reading{
		in.Range, in.VersionId, in.PartNumber, in.IfMatch, in.IfNoneMatch, in.IfModifiedSince, in.IfUnmodifiedSince,
	})
	if err != nil {
		return nil, err
	}
	f.Close()
	c := sums{}
	if in.ChecksumMode == types.ChecksumModeEnabled && o.contentRange == nil {
		c = o.Checksum.sums()
	}
	return &s3.HeadObjectOutput{
		ContentLength: &o.length, ContentRange: o.contentRange, AcceptRanges: aws.String("bytes"),
		ETag: aws.String(quote(o.ETag)), LastModified: &o.Modified, Metadata: o.Metadata,
		ContentType: &o.ContentType, ContentEncoding: &o.ContentEncoding, ContentDisposition: &o.ContentDisposition,
		ContentLanguage: &o.ContentLanguage, CacheControl: &o.CacheControl, ExpiresString: &o.Expires,
		ChecksumCRC32: c.crc32, ChecksumCRC32C: c.crc32c, ChecksumCRC64NVME: c.crc64nvme,
		ChecksumSHA1: c.sha1, ChecksumSHA256: c.sha256, ChecksumType: checksumType(c),
	}, nil
}

// reading is what GET and HEAD ask for alike.
type reading struct {
	byteRange, versionID              *string
	part                              *int32
	ifMatch, ifNoneMatch              *string
	ifModifiedSince, ifUnmodifedSince *time.Time
}

// readable is an object and the part of it that was asked for.
type readable struct {
	*object
	offset, length int64
	contentRange   *string // nil for the whole object
}

func (b *bucket) read(ctx context.Context, key string, r reading) (o readable, f *os.File, err error) {
	if err := b.authorize(ctx, getObject, key); err != nil {
		return o, nil, err
	}
	if aws.ToString(r.versionID) != "" || r.part != nil {
		return o, nil, s3err.GetAPIError(s3err.ErrNotImplemented)
	}
	o.object, f, err = b.store.open(key)
	if err != nil {
		return o, nil, err
	}
	if o.object == nil {
		return o, nil, b.missing(ctx)
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	err = backend.EvaluatePreconditions(o.ETag, o.Modified, backend.PreConditions{
		IfMatch: r.ifMatch, IfNoneMatch: r.ifNoneMatch,
		IfModSince: r.ifModifiedSince, IfUnmodeSince: r.ifUnmodifedSince,
	})
	if err != nil {
		return o, f, err
	}
	offset, length, partial, err := backend.ParseObjectRange(o.Size, aws.ToString(r.byteRange))
	if err != nil {
		return o, f, err
	}
	o.offset, o.length = offset, length
	if partial {
		o.contentRange = aws.String(fmt.Sprintf("bytes %d-%d/%d", offset, offset+length-1, o.Size))
	}
	return o, f, nil
}

func (b *bucket) DeleteObject(ctx context.Context, in *s3.DeleteObjectInput) (*s3.DeleteObjectOutput, error) {
	return &s3.DeleteObjectOutput{}, b.delete(ctx, aws.ToString(in.Key), aws.ToString(in.VersionId), in.IfMatch)
}

func (b *bucket) delete(ctx context.Context, key, versionID string, ifMatch *string) error {
	if err := b.authorize(ctx, deleteObject, key); err != nil {
		return err
	}
	if versionID != "" {
		return s3err.GetAPIError(s3err.ErrNotImplemented)
	}
	return b.store.remove(key, func(current *object) error {
		switch {
		case ifMatch == nil:
			return nil
		case current == nil:
			return s3err.GetAPIError(s3err.ErrNoSuchKey)
		case *ifMatch != "*" && unquote(*ifMatch) != current.ETag:
			return s3err.GetPreconditionFailedErr(s3err.ConditionIfMatch)
		}
		return nil
	})
}

func (b *bucket) DeleteObjects(ctx context.Context, in *s3.DeleteObjectsInput) (out s3response.DeleteResult, err error) {
	for _, id := range in.Delete.Objects {
		err := b.delete(ctx, aws.ToString(id.Key), aws.ToString(id.VersionId), id.ETag)
		if err == nil {
			out.Deleted = append(out.Deleted, types.DeletedObject{Key: id.Key})
			continue
		}
		answer := s3err.GetAPIError(s3err.ErrInternalError)
		var s3Error s3err.S3Error
		if errors.As(err, &s3Error) {
			answer = s3Error.BaseError()
		}
		out.Error = append(out.Error, types.Error{Key: id.Key, Code: &answer.Code, Message: &answer.Description})
	}
	return out, nil
}

// putCondition is what a PUT requires of the object it replaces.
func putCondition(ifMatch, ifNoneMatch *string) func(*object) error {
	return func(current *object) error {
		etag := ""
		if current != nil {
			etag = current.ETag
		}
		return backend.EvaluateObjectPutPreconditions(etag, ifMatch, ifNoneMatch, current != nil)
	}
}

// storedEncoding drops the encodings that say nothing about the object:
// aws-chunked describes the request, identity is none.
func storedEncoding(header *string) string {
	var kept []string
	for _, coding := range strings.Split(aws.ToString(header), ",") {
		if coding = strings.TrimSpace(coding); coding != "" && coding != "aws-chunked" && coding != "identity" {
			kept = append(kept, coding)
		}
	}
	return strings.Clone(strings.Join(kept, ", "))
}

// keep copies a string out of a request. The gateway's strings lie in buffers
// that the next request overwrites.
func keep(s *string) string { return strings.Clone(aws.ToString(s)) }

func keepAll(m map[string]string) map[string]string {
	kept := make(map[string]string, len(m))
	for name, value := range m {
		kept[strings.Clone(name)] = strings.Clone(value)
	}
	return kept
}

// asS3Error passes the errors of the protocol on, such as BadDigest. Any other
// error of reading an upload means that the client went away.
func asS3Error(err error) error {
	var s3Error s3err.S3Error
	var pathError *os.PathError
	if errors.As(err, &s3Error) || errors.As(err, &pathError) {
		return err
	}
	return s3err.GetAPIError(s3err.ErrIncompleteBody)
}

func checksumType(c sums) types.ChecksumType {
	if c == (sums{}) {
		return ""
	}
	return types.ChecksumTypeFullObject
}

func quote(etag string) string   { return `"` + etag + `"` }
func unquote(etag string) string { return strings.Trim(etag, `"`) }
