package s3

import (
	"context"
	"errors"
	"fmt"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/deadletter"
)

// errTooLarge says that an object is larger than what may be read of one.
var errTooLarge = errors.New("object is too large")

// MaxReference is the most bytes read of an object that a message refers to: what one bulk request
// takes.
const MaxReference = 5 << 20

// Load reads an object of any bucket that a message refers to. An error that is an *event.Invalid
// is for good: the object is not there or is too large. A denied permission is not: an operator may
// grant it.
func (b *Bucket) Load(ctx context.Context, bucket, key string) ([]byte, error) {
	body, err := b.get(ctx, bucket, key, MaxReference)
	var problem string
	missing := errors.Is(err, errMissing)
	switch {
	case missing:
		problem = "the object is not there"
	case errors.Is(err, errTooLarge):
		problem = fmt.Sprintf("the object has more than %d bytes", MaxReference)
	case err != nil:
		return nil, fmt.Errorf("load reference: %w", err)
	default:
		return body, nil
	}
	return nil, &event.Invalid{Reason: deadletter.Payload, Field: "dataref", Problem: problem, Missing: missing}
}
