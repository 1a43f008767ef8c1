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

// Payloads keeps bodies that are too large for a queue, below a prefix of a bucket of the user's.
// It is safe for concurrent use.
type Payloads struct {
	bucket *Bucket
	prefix string
}

// payloadTimeout bounds one upload: a body may have tens of megabytes, and the network may be slow.
const payloadTimeout = 2 * time.Minute

// NewPayloads returns the bodies below a prefix, which may be empty.
func NewPayloads(cfg aws.Config, bucket, prefix string) *Payloads {
	api := sdk.NewFromConfig(client.Bounded(cfg, payloadTimeout), func(o *sdk.Options) {
		o.UsePathStyle = cfg.BaseEndpoint != nil
	})
	return &Payloads{&Bucket{name: bucket, api: api, limit: payloadTimeout}, prefix}
}

// Put stores a body and returns its place. The key is the body's digest: a repeated body takes no
// more room, and a reference never shows another body.
func (p *Payloads) Put(ctx context.Context, body []byte) (bucket, key string, err error) {
	digest := sha256.Sum256(body)
	key = p.prefix + hex.EncodeToString(digest[:])
	return p.bucket.name, key, p.bucket.put(ctx, key, body)
}
