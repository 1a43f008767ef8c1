// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/pipeline/archive"
)

// ArchivePrefix is the prefix of the keys of archived messages.
const ArchivePrefix = "archive/"

// Archive stores the messages that receive archives. An Archive is safe for concurrent use.
type Archive struct{ bucket *Bucket }

var _ archive.Store = (*Archive)(nil)

// NewArchive returns the archive in a bucket.
func NewArchive(b *Bucket) *Archive { return &Archive{b} }

// Put writes an object.
func (a *Archive) Put(ctx context.Context, n archive.Name, object []byte) error {
	if err := a.bucket.put(ctx, ArchivePrefix+string(n), object); err != nil {
		return fmt.Errorf("put %s%s: %w", ArchivePrefix, n, err)
	}
	return nil
}

// Get reads a whole object.
func (a *Archive) Get(ctx context.Context, n archive.Name) ([]byte, error) {
	b, err := a.bucket.get(ctx, a.bucket.name, ArchivePrefix+string(n), maxObject)
	if errors.Is(err, errMissing) {
		return nil, fmt.Errorf("get %s%s: %w", ArchivePrefix, n, archive.ErrNotFound)
	}
	// a lifecycle rule has moved the object to Glacier
	if errors.Is(err, errTooLarge) || client.Code(err) == "InvalidObjectState" {
		err = fmt.Errorf("%w: %w", archive.ErrUnreadable, err)
	}
	if err != nil {
		return nil, fmt.Errorf("get %s%s: %w", ArchivePrefix, n, err)
	}
	return b, nil
}

// List returns one page of objects, in the order of their names.
func (a *Archive) List(ctx context.Context, after, to archive.Name, limit int) (list []archive.Object, more bool,
	err error,
) {
	ctx, cancel := context.WithTimeout(ctx, a.bucket.limit)
	defer cancel()
	out, err := a.bucket.api.ListObjectsV2(ctx, &sdk.ListObjectsV2Input{
		Bucket: &a.bucket.name, ExpectedBucketOwner: a.bucket.owner, Prefix: aws.String(ArchivePrefix),
		StartAfter: aws.String(ArchivePrefix + string(after)), MaxKeys: aws.Int32(int32(min(limit, maxDelete))),
	})
	if err != nil {
		return nil, false, fmt.Errorf("list %s: %w", ArchivePrefix, failure(a.bucket.name, err))
	}
	for _, o := range out.Contents {
		n := archive.Name(strings.TrimPrefix(aws.ToString(o.Key), ArchivePrefix))
		if n >= to {
			return list, false, nil
		}
		list = append(list, archive.Object{Name: n, Bytes: aws.ToInt64(o.Size)})
	}
	return list, aws.ToBool(out.IsTruncated) && len(list) > 0, nil
}

// Remove removes an object and its former versions.
func (a *Archive) Remove(ctx context.Context, n archive.Name) error {
	if err := a.bucket.purge(ctx, ArchivePrefix+string(n), ""); err != nil {
		return fmt.Errorf("remove %s%s: %w", ArchivePrefix, n, err)
	}
	return nil
}

// Rewrite writes an object. After the write, Rewrite removes the former versions of the object.
func (a *Archive) Rewrite(ctx context.Context, n archive.Name, object []byte) error {
	key := ArchivePrefix + string(n)
	out, err := a.bucket.api.PutObject(ctx, &sdk.PutObjectInput{
		Bucket: &a.bucket.name, ExpectedBucketOwner: a.bucket.owner, Key: &key, Body: bytes.NewReader(object),
	})
	if err = failure(a.bucket.name, err); err == nil {
		err = a.bucket.purge(ctx, key, cmp.Or(aws.ToString(out.VersionId), unversioned))
	}
	if err != nil {
		return fmt.Errorf("rewrite %s: %w", key, err)
	}
	return nil
}

// unversioned is S3's name for the version of an object in a bucket without versions.
const unversioned = "null"

// purge removes every version of an object except the version but. A normal deletion would keep
// former versions, and so the data that must be forgotten.
func (b *Bucket) purge(ctx context.Context, key, but string) error {
	in := &sdk.ListObjectVersionsInput{Bucket: &b.name, ExpectedBucketOwner: b.owner, Prefix: &key}
	for pages := sdk.NewListObjectVersionsPaginator(b.api, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return failure(b.name, err)
		}
		var all []types.ObjectIdentifier
		add := func(k, version *string) {
			if aws.ToString(k) == key && aws.ToString(version) != but {
				all = append(all, types.ObjectIdentifier{Key: k, VersionId: version})
			}
		}
		for _, v := range page.Versions {
			add(v.Key, v.VersionId)
		}
		for _, m := range page.DeleteMarkers {
			add(m.Key, m.VersionId)
		}
		if len(all) == 0 {
			continue
		}
		if err := b.deleteAll(ctx, all); err != nil {
			return err
		}
	}
	return nil
}
