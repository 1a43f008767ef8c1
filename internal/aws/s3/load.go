// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/pipeline/objects"
	"github.com/lullhq/lull/internal/pipeline/payload"
)

// errTooLarge says that an object is larger than the limit.
var errTooLarge = errors.New("object is too large")

var _ payload.Objects = (*Bucket)(nil).Load

var _ objects.Open = (*Bucket)(nil).Open

// Open opens an object of any bucket, starting at the byte from.
func (b *Bucket) Open(ctx context.Context, bucket, key, etag string, from int64) (io.ReadCloser, error) {
	in := &sdk.GetObjectInput{Bucket: &bucket, ExpectedBucketOwner: b.ownerOf(bucket), Key: &key}
	if etag != "" {
		in.IfMatch = aws.String(`"` + strings.Trim(etag, `"`) + `"`)
	}
	if from > 0 {
		in.Range = aws.String("bytes=" + strconv.FormatInt(from, 10) + "-")
	}
	// Only the context of the caller limits the call and reading the answer.
	out, err := b.api.GetObject(ctx, in, func(o *sdk.Options) { o.APIOptions = nil })
	switch code := client.Code(err); {
	case err == nil:
		return out.Body, nil
	case code == "PreconditionFailed":
		return nil, objects.ErrReplaced
	case code == "InvalidRange": // the object was already read to its last byte
		return io.NopCloser(strings.NewReader("")), nil
	case code == "InvalidObjectState":
		return nil, fmt.Errorf("%w: it is in an archive of S3: restore it, then redrive the dead letter", objects.ErrRefused)
	}
	if err = failure(bucket, err); errors.Is(err, errMissing) {
		return nil, objects.ErrGone
	}
	return nil, fmt.Errorf("open object: %w", err)
}

// Load reads an object of any bucket, to which a message refers. An *event.Invalid error is
// permanent: the object is missing or too large. A missing permission is not permanent, because an
// operator may grant it.
func (b *Bucket) Load(ctx context.Context, bucket, key string) ([]byte, error) {
	body, err := b.get(ctx, bucket, key, payload.MaxObject)
	switch {
	case errors.Is(err, errMissing):
		return nil, payload.Missing()
	case errors.Is(err, errTooLarge):
		return nil, payload.TooLarge()
	case err != nil:
		return nil, fmt.Errorf("load reference: %w", err)
	}
	return body, nil
}
