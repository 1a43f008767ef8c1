// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lullhq/lull/internal/aws/client"
)

// Payloads stores bodies that are too large for a queue, below a prefix of a bucket of the user.
// The type Payloads is safe for concurrent use.
type Payloads struct {
	bucket *Bucket
	prefix string
}

// payloadTimeout is the time-out of one upload. A body may have tens of megabytes, and the network
// may be slow.
const payloadTimeout = 2 * time.Minute

// NewPayloads returns the store for bodies below a prefix. The prefix may be empty.
func NewPayloads(cfg aws.Config, bucket, prefix string) *Payloads {
	api := sdk.NewFromConfig(client.Bounded(cfg, payloadTimeout), func(o *sdk.Options) {
		o.UsePathStyle = cfg.BaseEndpoint != nil
	})
	return &Payloads{&Bucket{name: bucket, api: api, limit: payloadTimeout}, prefix}
}

// Put stores a body and returns its bucket and key. The key is the prefix and the digest of the
// body. So equal bodies share one object, and a reference never leads to another body.
func (p *Payloads) Put(ctx context.Context, body []byte) (bucket, key string, err error) {
	digest := sha256.Sum256(body)
	key = p.prefix + hex.EncodeToString(digest[:])
	return p.bucket.name, key, p.bucket.put(ctx, key, body)
}
