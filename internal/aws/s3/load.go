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
	"github.com/lullhq/lull/internal/objects"
	"github.com/lullhq/lull/internal/payload"
)

// errTooLarge says that an object is larger than what may be read of one.
var errTooLarge = errors.New("object is too large")

var _ payload.Objects = (*Bucket)(nil).Load

var _ objects.Open = (*Bucket)(nil).Open

// Open opens an object of any bucket from a byte on.
func (b *Bucket) Open(ctx context.Context, bucket, key, etag string, from int64) (io.ReadCloser, error) {
	in := &sdk.GetObjectInput{Bucket: &bucket, Key: &key}
	if etag != "" {
		in.IfMatch = aws.String(`"` + strings.Trim(etag, `"`) + `"`)
	}
	if from > 0 {
		in.Range = aws.String("bytes=" + strconv.FormatInt(from, 10) + "-")
	}
	// The caller's context is for the call and for reading its answer.
	out, err := b.api.GetObject(ctx, in, func(o *sdk.Options) { o.APIOptions = nil })
	switch code := client.Code(err); {
	case err == nil:
		return out.Body, nil
	case code == "PreconditionFailed":
		return nil, objects.ErrReplaced
	case code == "InvalidRange": // it was read to its last byte
		return io.NopCloser(strings.NewReader("")), nil
	case code == "InvalidObjectState":
		return nil, fmt.Errorf("%w: it is in an archive of S3: restore it, then redrive the dead letter", objects.ErrRefused)
	}
	if err = failure(bucket, err); errors.Is(err, errMissing) {
		return nil, objects.ErrGone
	}
	return nil, fmt.Errorf("open object: %w", err)
}

// Load reads an object of any bucket that a message refers to. An error that is an *event.Invalid
// is for good: the object is not there or is too large. A denied permission is not: an operator may
// grant it.
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
