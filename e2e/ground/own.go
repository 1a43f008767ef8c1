package ground

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	run := func(name string, args ...string) error {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = module
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
		}
		return nil
	}
	for to, from := range map[string]string{
		"dist/receive/bootstrap": "./cmd/receive", "dist/index/bootstrap": "./cmd/index", "dist/dlq/bootstrap": "./cmd/dlq",
		"dist/prune/bootstrap": "github.com/lullhq/lull/functions/prune", "stack": "./cmd/stack",
	} {
		err := run("go", "build", "-trimpath", "-buildvcs=false", "-tags", "lambda.norpc", "-ldflags", "-s -w", "-o",
			filepath.Join(folder, to), from)
		if err != nil {
			return nil, err
		}
	}
	if err := run("cp", "lull.yaml", folder); err != nil {
		return nil, err
	}
	s := &Stack{Ground: g, SQS: sqs.NewFromConfig(g.Account)}
	bucket := OwnBucket
	_, made := g.files().CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &bucket})
	app := fmt.Sprintf("./stack -trial -bucket %s", OwnBucket)
	if err := g.cdkIn(ctx, folder, nil, "deploy", "--require-approval", "never", "--app", app); err != nil {
		return nil, errors.Join(err, made)
	}
	for lane, to := range map[string]*string{"live": &s.Live, "bulk": &s.Bulk, "dead": &s.Dead} {
		name := stack + "-" + sink + "-" + lane
		out, err := s.SQS.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name})
		if err != nil {
			return nil, fmt.Errorf("find queue %s: %w", name, err)
		}
		*to = *out.QueueUrl
	}
	return s, nil
}

func (g *Ground) files() *s3.Client {
	return s3.NewFromConfig(g.Account, func(o *s3.Options) { o.UsePathStyle = true })
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
