package ground

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// OwnBucket is the bucket of the example module's lull.yaml.
const OwnBucket = "pages-of-the-wiki"

// DeployOwn deploys the stack of a module that is not lull's: with the module's own functions, and
// by its own program, which import kinds that lull does not have. It does what the module's README
// says. Of the stack, only the queues of its sink are filled in.
func (g *Ground) DeployOwn(ctx context.Context, module, stack, sink string) (*Stack, error) {
	module, folder := filepath.Join(g.root, module), filepath.Join(g.work, "own")
	for to, from := range map[string]string{
		"dist/receive/bootstrap": "./cmd/receive", "dist/index/bootstrap": "./cmd/index", "dist/dlq/bootstrap": "./cmd/dlq",
		"dist/prune/bootstrap": "github.com/lullhq/lull/functions/prune", "stack": "./cmd/stack",
	} {
		err := run(ctx, module, []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-buildvcs=false",
			"-tags", "lambda.norpc", "-ldflags", "-s -w", "-o", filepath.Join(folder, to), from)
		if err != nil {
			return nil, err
		}
	}
	if err := run(ctx, module, nil, "cp", "lull.yaml", folder); err != nil {
		return nil, err
	}
	s := &Stack{Ground: g, SQS: sqs.NewFromConfig(g.Account)}
	made := g.bucket(ctx, OwnBucket)
	if err := run(ctx, folder, nil, "cdk", "deploy", "--require-approval", "never", "--app",
		"./stack -trial -bucket "+OwnBucket); err != nil {
		return nil, errors.Join(err, made)
	}
	queues := stack + "-" + sink + "-"
	return s, s.find(ctx, map[string]*string{
		queues + "live": &s.Live, queues + "bulk": &s.Bulk, queues + "dead": &s.Dead,
	})
}

func (g *Ground) files() *s3.Client {
	return s3.NewFromConfig(g.Account, func(o *s3.Options) { o.UsePathStyle = true })
}

// bucket makes a bucket. Where it is there already the error means nothing, unless its use fails.
func (g *Ground) bucket(ctx context.Context, name string) error {
	_, err := g.files().CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &name})
	return err
}

// Line is a line of a file that the example module's sink writes.
type Line struct {
	Doc, Op  string
	Document map[string]any
}

// Lines are those of all files in the bucket, the oldest file first.
func (s *Stack) Lines(t testing.TB) (lines []Line) {
	t.Helper()
	bucket := OwnBucket
	listed, err := s.files().ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &bucket})
	must(t, err)
	for _, o := range listed.Contents {
		file, err := s.files().GetObject(t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: o.Key})
		must(t, err)
		text, err := io.ReadAll(file.Body)
		must(t, errors.Join(err, file.Body.Close()))
		for rest := bufio.NewScanner(bytes.NewReader(text)); rest.Scan(); {
			var l Line
			if err := json.Unmarshal(rest.Bytes(), &l); err != nil {
				t.Fatalf("%s: %v", *o.Key, err)
			}
			lines = append(lines, l)
		}
	}
	return lines
}
