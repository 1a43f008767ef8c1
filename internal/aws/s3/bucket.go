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
	// attemptTimeout bounds one request. The largest manifests have a few megabytes.
	attemptTimeout = 4 * time.Second
	// maxObject is the most bytes read of one object.
	maxObject = 64 << 20
)

// errMissing says that an object does not exist.
var errMissing = errors.New("object not found")

// Bucket is the bucket in which lull keeps what is too large for a row. It is safe for concurrent
// use.
type Bucket struct {
	api   *sdk.Client
	name  string
	owner *string       // the account in the bucket's name; nil if there is none
	limit time.Duration // of one request
}

// ownName matches the name that the infrastructure gives the bucket: it ends with account and
// region.
var ownName = regexp.MustCompile(`-([0-9]{12})-[a-z]+(?:-[a-z]+)+-[0-9]+$`)

// ownerOf is the account that must own the bucket; nil for a bucket of the user's. Names of buckets
// can be guessed: after a stack is deleted, another account may take its bucket's name. With the
// owner in the request, S3 then denies it.
func (b *Bucket) ownerOf(bucket string) *string {
	if bucket == b.name {
		return b.owner
	}
	return nil
}

// New returns the bucket of that name. The SDK's own retries are switched off. If the settings name
// an endpoint, the bucket is part of the path, because an emulator's address has no subdomains.
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

// create writes an object unless it exists, and reports whether it did.
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

// get reads an object of at most limit bytes whole, or errMissing.
func (b *Bucket) get(ctx context.Context, bucket, key string, limit int64) ([]byte, error) {
	body, err := client.Attempt(ctx, b.limit, func(ctx context.Context) ([]byte, error) {
		// The limit covers the call and reading its answer.
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
		// The buffer is allocated once: a growing buffer takes several times as much memory.
		body := bytes.NewBuffer(make([]byte, 0, max(aws.ToInt64(out.ContentLength), 0)+bytes.MinRead))
		n, err := body.ReadFrom(io.LimitReader(out.Body, limit+1))
		if err == nil && n > limit {
			return nil, backoff.Permanent(fmt.Errorf("%w: more than %d bytes", errTooLarge, limit))
		}
		return body.Bytes(), err
	})
	return body, failure(bucket, err)
}

// delete removes objects, at most a thousand. Removing a missing object succeeds.
func (b *Bucket) delete(ctx context.Context, keys ...string) error {
	ids := make([]types.ObjectIdentifier, len(keys))
	for i := range keys {
		ids[i].Key = &keys[i]
	}
	return b.deleteAll(ctx, ids)
}

// deleteAll removes objects, or versions of them, at most a thousand.
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

// failure says what an error of S3 means.
func failure(name string, err error) error {
	if code := client.Code(err); code == "NoSuchKey" || code == "NotFound" {
		return fmt.Errorf("%w: %w", errMissing, err)
	}
	return client.Explain("bucket "+name, err,
		client.Final{
			Says:  " does not exist: deploy the stack, or correct the bucket's name",
			Codes: []string{"NoSuchBucket"},
		},
		client.Final{Says: ": the credentials may not do this: grant the role the action named here"})
}
