// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/seam/backoff"
)

const (
	// attemptTimeout is the time-out of one request. The largest manifests have a few megabytes.
	attemptTimeout = 4 * time.Second
	// maxObject is the size in bytes of the largest object that is read.
	maxObject = 64 << 20
)

// errMissing says that an object does not exist.
var errMissing = errors.New("object not found")

// Bucket is the bucket in which lull stores data that is too large for the table. A Bucket is safe
// for concurrent use.
type Bucket struct {
	api   *sdk.Client
	name  string
	owner *string       // the account in the bucket's name; nil if there is none
	limit time.Duration // the time-out of one request
}

// ownName matches the name that package infra gives the bucket. The name ends with the account and
// the region.
var ownName = regexp.MustCompile(`-([0-9]{12})-[a-z]+(?:-[a-z]+)+-[0-9]+$`)

// ownerOf returns the account that must own a bucket, or nil for a bucket of the user. After a
// stack is deleted, another account may create a bucket with the same name. With the owner in the
// request, S3 denies requests to that bucket.
func (b *Bucket) ownerOf(bucket string) *string {
	if bucket == b.name {
		return b.owner
	}
	return nil
}

// New returns the bucket with the given name. New switches off the retries of the SDK. If the
// settings name an endpoint, the name of the bucket is in the path, because the address of an
// emulator has no subdomains.
func New(cfg aws.Config, name string) *Bucket {
	api := sdk.NewFromConfig(client.Bounded(cfg, attemptTimeout), func(o *sdk.Options) {
		o.UsePathStyle = cfg.BaseEndpoint != nil
	})
	b := &Bucket{name: name, api: api, limit: client.Limit(cfg, attemptTimeout)}
	if m := ownName.FindStringSubmatch(name); m != nil {
		b.owner = &m[1]
	}
	return b
}

// put writes an object.
func (b *Bucket) put(ctx context.Context, key string, body []byte) error {
	_, err := b.api.PutObject(ctx, &sdk.PutObjectInput{
		Bucket: &b.name, ExpectedBucketOwner: b.owner, Key: &key, Body: bytes.NewReader(body),
	})
	return failure(b.name, err)
}

// create writes an object unless it exists, and reports whether it wrote the object.
func (b *Bucket) create(ctx context.Context, key string, body []byte) (bool, error) {
	_, err := b.api.PutObject(ctx, &sdk.PutObjectInput{
		Bucket: &b.name, ExpectedBucketOwner: b.owner, Key: &key, Body: bytes.NewReader(body),
		IfNoneMatch: aws.String("*"),
	})
	if client.Code(err) == "PreconditionFailed" {
		return false, nil
	}
	return err == nil, failure(b.name, err)
}

// get reads a whole object of at most limit bytes. If the object does not exist, the error is
// errMissing.
func (b *Bucket) get(ctx context.Context, bucket, key string, limit int64) ([]byte, error) {
	body, err := client.Attempt(ctx, b.limit, func(ctx context.Context) ([]byte, error) {
		// Attempt's time-out is for the call and for reading the answer.
		unbounded := func(o *sdk.Options) { o.APIOptions = nil }
		out, err := b.api.GetObject(ctx, &sdk.GetObjectInput{
			Bucket: &bucket, ExpectedBucketOwner: b.ownerOf(bucket), Key: &key,
		}, unbounded)
		if err != nil {
			return nil, err
		}
		defer out.Body.Close()
		if size := aws.ToInt64(out.ContentLength); size > limit {
			return nil, backoff.Permanent(fmt.Errorf("%w: %d bytes, at most %d are read", errTooLarge, size, limit))
		}
		// Allocate the whole buffer at once, because a growing buffer takes several times as much
		// memory.
		body := bytes.NewBuffer(make([]byte, 0, max(aws.ToInt64(out.ContentLength), 0)+bytes.MinRead))
		n, err := body.ReadFrom(io.LimitReader(out.Body, limit+1))
		if err == nil && n > limit {
			return nil, backoff.Permanent(fmt.Errorf("%w: more than %d bytes", errTooLarge, limit))
		}
		return body.Bytes(), err
	})
	return body, failure(bucket, err)
}

// delete removes up to a thousand objects. Removing a missing object succeeds.
func (b *Bucket) delete(ctx context.Context, keys ...string) error {
	ids := make([]types.ObjectIdentifier, len(keys))
	for i := range keys {
		ids[i].Key = &keys[i]
	}
	return b.deleteAll(ctx, ids)
}

// deleteAll removes up to a thousand objects, or versions of objects.
func (b *Bucket) deleteAll(ctx context.Context, ids []types.ObjectIdentifier) error {
	out, err := b.api.DeleteObjects(ctx, &sdk.DeleteObjectsInput{
		Bucket: &b.name, ExpectedBucketOwner: b.owner,
		Delete: &types.Delete{Objects: ids, Quiet: aws.Bool(true)},
	})
	if err != nil {
		return failure(b.name, err)
	}
	for _, e := range out.Errors {
		code := client.Normal(aws.ToString(e.Code))
		if code == "NoSuchKey" {
			continue
		}
		err := fmt.Errorf("bucket %s: delete %s: %s", b.name, aws.ToString(e.Key), code)
		if client.Denied(code) {
			return backoff.Permanent(err)
		}
		return err
	}
	return nil
}

// failure explains an error of S3.
func failure(name string, err error) error {
	if code := client.Code(err); code == "NoSuchKey" || code == "NotFound" {
		return fmt.Errorf("%w: %w", errMissing, err)
	}
	return client.Explain("bucket "+name, err,
		client.Final{
			Says:  " does not exist: deploy the stack, or correct the bucket's name",
			Codes: []string{"NoSuchBucket"},
		},
		client.Final{Says: ": the credentials do not permit this: grant the role the action named here"})
}
