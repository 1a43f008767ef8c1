package s3

import (
	"context"
	"errors"
	"fmt"

	"github.com/lullhq/lull/internal/payload"
)

// errTooLarge says that an object is larger than what may be read of one.
var errTooLarge = errors.New("object is too large")

var _ payload.Objects = (*Bucket)(nil).Load

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
