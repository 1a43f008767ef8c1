// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/lullhq/lull/event"
)

// Loader fetches an object from S3: the body of a message that contains only a pointer. A Loader
// checks the size of the object before it reads the object. An error that is an *event.Invalid is
// permanent. Any other error may be temporary, and becomes an Invalid that is Transient.
type Loader func(ctx context.Context, bucket, key string) ([]byte, error)

// WithLoader returns a set that also decodes messages whose body is a pointer to an object in S3.
// The object must be in a place that payload.allow lists.
func (s *Set) WithLoader(load Loader) *Set {
	with := *s
	with.load, with.loaded = load, new(sync.Mutex)
	return &with
}

type budgetKey struct{}

// LoadAtMost bounds how many bytes of bodies are loaded under the context. After this many bytes
// are loaded, no other load starts. A message whose body is not loaded has an Invalid that is
// Transient.
func LoadAtMost(ctx context.Context, bytes int64) context.Context {
	left := new(atomic.Int64)
	left.Store(bytes)
	return context.WithValue(ctx, budgetKey{}, left)
}

var errBudget = errors.New("the limit of loaded bodies is reached for this batch")

// decoding is the state of decoding one message. Loaded bodies are decoded one at a time, because
// several at once, with their unwrapped contents, would need more memory than a small function has.
type decoding struct {
	set    *Set
	locked bool // set.loaded is locked
}

func (d *decoding) end() {
	if d.locked {
		d.set.loaded.Unlock()
		d.locked = false
	}
}

// body fetches the object that a pointer names, if the source may refer to it.
func (d *decoding) body(ctx context.Context, r *Rules, p event.Pointer) (string, *event.Invalid) {
	if bad := r.Allowed("s3BucketName", p.Bucket, p.Key); bad != nil {
		return "", bad
	}
	d.end() // if a body is another pointer, other messages must not wait while the next body is loaded
	text, err := d.load(ctx, p)
	if err == nil {
		d.set.loaded.Lock()
		d.locked = true
		err = ctx.Err() // the context may have ended while decoding waited for the lock
	}
	if err == nil {
		return string(text), nil
	}
	var bad *event.Invalid
	if errors.As(err, &bad) {
		return "", bad
	}
	return "", &event.Invalid{
		Reason: event.Payload, Field: "s3Key", Problem: "the body that the pointer names cannot be loaded at the " +
			"moment", Err: err,
	}
}

func (d *decoding) load(ctx context.Context, p event.Pointer) ([]byte, error) {
	left, bounded := ctx.Value(budgetKey{}).(*atomic.Int64)
	if bounded && left.Load() <= 0 {
		return nil, errBudget
	}
	text, err := d.set.load(ctx, p.Bucket, p.Key)
	if bounded {
		left.Add(-int64(len(text)))
	}
	return text, err
}
