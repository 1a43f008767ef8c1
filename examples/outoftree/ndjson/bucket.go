// SPDX-License-Identifier: Apache-2.0

package ndjson

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Bucket is a bucket of Amazon S3.
type Bucket struct {
	client *s3.Client
	name   string
}

// NewBucket returns the bucket of that name.
func NewBucket(client *s3.Client, name string) *Bucket { return &Bucket{client, name} }

// Put writes a file. S3 shows an object only when it is complete.
func (b *Bucket) Put(ctx context.Context, name string, content []byte) error {
	_, err := b.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &b.name, Key: &name, Body: bytes.NewReader(content), ContentType: aws.String("application/x-ndjson"),
	})
	return err
}

// Names returns the names that begin with prefix. S3 lists in the order of the names.
func (b *Bucket) Names(ctx context.Context, prefix string) ([]string, error) {
	var names []string
	pages := s3.NewListObjectsV2Paginator(b.client, &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, object := range page.Contents {
			names = append(names, aws.ToString(object.Key))
		}
	}
	return names, nil
}

// Get reads a file.
func (b *Bucket) Get(ctx context.Context, name string) ([]byte, error) {
	object, err := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: &name})
	if err != nil {
		return nil, err
	}
	defer object.Body.Close()
	return io.ReadAll(object.Body)
}

// refused reports whether S3 answered that it refused a request. After any other error, it is
// unknown whether the file was written.
func refused(err error) bool {
	var answer *awshttp.ResponseError
	return errors.As(err, &answer) && answer.HTTPStatusCode() < http.StatusInternalServerError
}
