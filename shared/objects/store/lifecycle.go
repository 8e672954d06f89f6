package store

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/objects/keys"
)

var (
	_ files.Bytes            = (*Store)(nil)
	_ files.ReconcileObjects = (*Store)(nil)
)

// Purge implements files.Bytes. The staged object goes first, so that no copy of it can be begun afterwards.
func (s *Store) Purge(ctx context.Context, id string) error {
	prefix, err := keys.SealedPrefix(id)
	if err != nil {
		return err
	}
	if err := s.Discard(ctx, id); err != nil {
		return err
	}
	// What is deleted is not listed again: the next list begins behind it.
	for after := ""; ; {
		out, err := s.list(ctx, prefix, after, 0)
		if err != nil {
			return err
		}
		for _, o := range out.Contents {
			after = aws.ToString(o.Key)
			if err := s.delete(ctx, after); err != nil {
				return err
			}
		}
		if !aws.ToBool(out.IsTruncated) {
			return nil
		}
	}
}

// List implements files.ReconcileObjects; from is a key. What others may keep in the bucket is passed over.
func (s *Store) List(ctx context.Context, from string) (page []files.StoredObject, next string, _ error) {
	out, err := s.list(ctx, "", from, 0)
	if err != nil {
		return nil, "", err
	}
	for _, o := range out.Contents {
		key := aws.ToString(o.Key)
		next = key
		id, staged, ok := keys.Parse(key)
		if ok {
			page = append(page, files.StoredObject{ID: id, Object: key, Staged: staged, Modified: aws.ToTime(o.LastModified)})
		}
	}
	if !aws.ToBool(out.IsTruncated) {
		return page, "", nil
	}
	return page, next, nil
}

// Exists implements files.ReconcileObjects. The answer to HEAD is the same for a missing object and a missing bucket, so
// before an object is given up for lost a list has to agree.
func (s *Store) Exists(ctx context.Context, object string) (bool, error) {
	_, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: &object})
	if err == nil {
		return true, nil
	}
	if status(err) != http.StatusNotFound {
		return false, explain("looking for", err)
	}
	out, err := s.list(ctx, object, "", 1)
	if err != nil {
		return false, err
	}
	return len(out.Contents) > 0 && aws.ToString(out.Contents[0].Key) == object, nil
}

// list reads a page of the keys with a prefix behind the key after, limit at the most or, for 0, what S3 gives.
func (s *Store) list(ctx context.Context, prefix, after string, limit int32) (*s3.ListObjectsV2Output, error) {
	in := s3.ListObjectsV2Input{Bucket: &s.bucket}
	if prefix != "" {
		in.Prefix = &prefix
	}
	if after != "" {
		in.StartAfter = &after
	}
	if limit > 0 {
		in.MaxKeys = &limit
	}
	out, err := s.client.ListObjectsV2(ctx, &in)
	if err != nil {
		if code(err) == "NoSuchBucket" {
			return nil, missing(err)
		}
		return nil, explain("listing", err)
	}
	if aws.ToBool(out.IsTruncated) && len(out.Contents) == 0 {
		return nil, errors.New("S3 listed nothing and said that there is more")
	}
	return out, nil
}

// Remove implements files.Stage, files.Bytes and files.ReconcileObjects. It touches nothing beside the objects of files.
func (s *Store) Remove(ctx context.Context, object string) error {
	if _, _, ok := keys.Parse(object); !ok {
		return fmt.Errorf("%q is not the name of an object of a file", object)
	}
	return s.delete(ctx, object)
}
