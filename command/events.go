package command

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/lullhq/lull/internal/operator/feed"
)

// resyncInput is the events of a resync. It knows how far it has read, byte by byte.
type resyncInput struct {
	feed.Input
	name string // of a file its path, of an object the last part of its key
	size int64  // 0 if unknown
	read int64  // of what is in it, where it is compressed
	sum  hash.Hash
}

// openEvents opens a file, or an object s3://bucket/key.
func (a *app) openEvents(ctx context.Context, from string) (*resyncInput, error) {
	if rest, ok := strings.CutPrefix(from, "s3://"); ok {
		in, err := a.openObject(ctx, rest)
		if err != nil {
			return nil, fmt.Errorf("open events: %s: %w", from, err)
		}
		return in, nil
	}
	f, err := os.Open(from)
	if err != nil {
		return nil, fmt.Errorf("open events: %w", err)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a folder", from)
	}
	if err != nil {
		_ = f.Close() // read only
		return nil, fmt.Errorf("open events: %w", err)
	}
	return newResyncInput(from, info.Size(), f)
}

func (a *app) openObject(ctx context.Context, name string) (*resyncInput, error) {
	bucket, key, _ := strings.Cut(name, "/")
	if bucket == "" || key == "" || strings.HasSuffix(key, "/") {
		return nil, errors.New("want s3://BUCKET/KEY")
	}
	cfg, err := a.aws(ctx)
	if err != nil {
		return nil, fmt.Errorf("find AWS credentials: %w", err)
	}
	client := awss3.NewFromConfig(cfg, func(o *awss3.Options) { o.UsePathStyle = o.BaseEndpoint != nil })
	out, err := client.GetObject(ctx, &awss3.GetObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		return nil, err
	}
	return newResyncInput(path.Base(key), aws.ToInt64(out.ContentLength), out.Body)
}

func newResyncInput(name string, size int64, r io.ReadCloser) (in *resyncInput, err error) {
	in = &resyncInput{name: name, size: size, sum: sha256.New()}
	in.Input, err = feed.Lines(name, r, func(part []byte) {
		in.read += int64(len(part))
		in.sum.Write(part)
	})
	return in, err
}

// goOn reads the messages that a checkpoint counts as done. It returns an error if the input does
// not begin with the same bytes.
func (r *resyncInput) goOn(at checkpoint, bytes int64, messages int, digest string) error {
	n := 0
	for ; r.read < bytes; n++ {
		if _, err := r.Next(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("go on from checkpoint %s: %w", at, err)
		}
	}
	if r.read != bytes || n != messages || r.digest() != digest {
		return fmt.Errorf("checkpoint %s is of another input: remove it to begin anew", at)
	}
	return nil
}

func (r *resyncInput) digest() string { return hex.EncodeToString(r.sum.Sum(nil)) }
