// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lullhq/lull/internal/operator/feed"
)

// openEvents opens a file, or an object s3://bucket/key.
func openEvents(ctx context.Context, find credentials, from string) (*feed.Export, error) {
	if rest, ok := strings.CutPrefix(from, "s3://"); ok {
		in, err := openObject(ctx, find, rest)
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
		_ = f.Close() // the error does not matter, because nothing was written
		return nil, fmt.Errorf("open events: %w", err)
	}
	return feed.NewExport(from, info.Size(), f)
}

func openObject(ctx context.Context, find credentials, name string) (*feed.Export, error) {
	bucket, key, _ := strings.Cut(name, "/")
	if bucket == "" || key == "" || strings.HasSuffix(key, "/") {
		return nil, errors.New("want s3://BUCKET/KEY")
	}
	cfg, err := find(ctx)
	if err != nil {
		return nil, fmt.Errorf("find AWS credentials: %w", err)
	}
	client := awss3.NewFromConfig(cfg, func(o *awss3.Options) { o.UsePathStyle = o.BaseEndpoint != nil })
	out, err := client.GetObject(ctx, &awss3.GetObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		return nil, err
	}
	return feed.NewExport(path.Base(key), aws.ToInt64(out.ContentLength), out.Body)
}
