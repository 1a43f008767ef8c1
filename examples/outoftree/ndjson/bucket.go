package ndjson

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Bucket is what the sink needs of a place for files.
type Bucket interface {
	// Put writes a file whole or not at all.
	Put(ctx context.Context, name string, content []byte) error
	// Names returns the names that begin with prefix, sorted.
	Names(ctx context.Context, prefix string) ([]string, error)
	// Get reads a file.
	Get(ctx context.Context, name string) ([]byte, error)
}

// S3 is a bucket of Amazon S3.
type S3 struct {
	client *s3.Client
	bucket string
}

// NewS3 returns the bucket of that name.
func NewS3(client *s3.Client, bucket string) *S3 { return &S3{client, bucket} }

// Put is Bucket.Put. S3 shows an object only when it is complete.
func (b *S3) Put(ctx context.Context, name string, content []byte) error {
	_, err := b.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &b.bucket, Key: &name, Body: bytes.NewReader(content), ContentType: aws.String("application/x-ndjson"),
	})
	return err
}

// Names is Bucket.Names. S3 lists in the order of the names.
func (b *S3) Names(ctx context.Context, prefix string) ([]string, error) {
	var names []string
	pages := s3.NewListObjectsV2Paginator(b.client, &s3.ListObjectsV2Input{Bucket: &b.bucket, Prefix: &prefix})
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

// Get is Bucket.Get.
func (b *S3) Get(ctx context.Context, name string) ([]byte, error) {
	object, err := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.bucket, Key: &name})
	if err != nil {
		return nil, err
	}
	defer object.Body.Close()
	return io.ReadAll(object.Body)
}

// refused reports whether S3 answered that it did not take a request. Any other error leaves open
// whether the file was written.
func refused(err error) bool {
	var answer *awshttp.ResponseError
	return errors.As(err, &answer) && answer.HTTPStatusCode() < http.StatusInternalServerError
}

// Folder is a bucket on the local disk, for tests.
type Folder string

// Put is Bucket.Put.
func (f Folder) Put(_ context.Context, name string, content []byte) error {
	path := filepath.Join(string(f), filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", content, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Names is Bucket.Names.
func (f Folder) Names(_ context.Context, prefix string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(string(f), filepath.FromSlash(prefix)))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".new") {
			names = append(names, prefix+e.Name())
		}
	}
	slices.Sort(names)
	return names, err
}

// Get is Bucket.Get.
func (f Folder) Get(_ context.Context, name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(string(f), filepath.FromSlash(name)))
}
