// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lullhq/lull/e2e/ground"
)

// ownBucket is the bucket of the example module's lull.yaml.
const ownBucket = "pages-of-the-wiki"

// deployOwn deploys the stack of another module. The module has its own functions and its own
// program for the stack, which import kinds that lull does not have. deployOwn follows the README
// of the module. In the returned stack, only the queues of the sink are set.
func deployOwn(ctx context.Context, module, stack, sink string) (*ground.Stack, error) {
	module, folder := filepath.Join(here.Root, module), filepath.Join(here.Work, "own")
	for to, from := range map[string]string{
		"dist/receive/bootstrap": "./cmd/receive", "dist/index/bootstrap": "./cmd/index",
		"dist/dlq/bootstrap":   "./cmd/dlq",
		"dist/prune/bootstrap": "github.com/lullhq/lull/functions/prune", "stack": "./cmd/stack",
		"lull": "./cmd/lull",
	} {
		err := ground.Run(ctx, module, []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-buildvcs=false",
			"-tags", "lambda.norpc", "-ldflags", "-s -w", "-o", filepath.Join(folder, to), from)
		if err != nil {
			return nil, err
		}
	}
	if err := ground.Run(ctx, module, nil, "cp", "lull.yaml", folder); err != nil {
		return nil, err
	}
	s := &ground.Stack{Ground: here, SQS: sqs.NewFromConfig(here.Account)}
	made := here.Bucket(ctx, ownBucket)
	if err := ground.Run(ctx, folder, nil, "cdk", "deploy", "--require-approval", "never", "--app",
		"./stack -trial -bucket "+ownBucket); err != nil {
		return nil, errors.Join(err, made)
	}
	queues := stack + "-" + sink + "-"
	return s, s.Find(ctx, map[string]*string{
		queues + "live": &s.Live, queues + "bulk": &s.Bulk, queues + "dead": &s.Dead,
	})
}

// operateOwn runs the module's own command line against the stack, and lull's, which does not link
// the module's kinds.
func operateOwn(t *testing.T) {
	t.Helper()
	folder := filepath.Join(here.Work, "own")
	own, plain := filepath.Join(folder, "lull"), filepath.Join(here.Work, "lull")
	runs := func(program string, commands ...string) {
		t.Helper()
		for _, c := range commands {
			args := append([]string{"--aws", "--config", "lull.yaml"}, strings.Fields(c)...)
			ground.Must(t, ground.Run(t.Context(), folder, nil, program, args...))
		}
	}
	ground.Must(t, ground.Run(t.Context(), folder, nil, own, "config", "check", "--deploy"))
	ground.Must(t, ground.Run(t.Context(), folder, nil, plain, "config", "check"))
	for _, program := range []string{own, plain} {
		runs(program, "status", "list", "dead list", "explain pages#handbook/Leave", "pause lake", "resume lake")
	}
	runs(own, "publish "+ground.File(t, "saved.ndjson", wikiMessage("handbook", "Sick", 1)+"\n"),
		"wait pages#handbook/Sick --version 1")
}

// sinkLine is a line of a file that the example module's sink writes.
type sinkLine struct {
	Doc, Op  string
	Document map[string]any
}

// linesInBucket returns the lines of all files in the bucket, the oldest file first.
func linesInBucket(t testing.TB, s *ground.Stack) (all []sinkLine) {
	t.Helper()
	bucket := ownBucket
	listed, err := s.Files().ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &bucket})
	ground.Must(t, err)
	for _, o := range listed.Contents {
		file, err := s.Files().GetObject(t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: o.Key})
		ground.Must(t, err)
		text, err := io.ReadAll(file.Body)
		ground.Must(t, errors.Join(err, file.Body.Close()))
		for rest := bufio.NewScanner(bytes.NewReader(text)); rest.Scan(); {
			var l sinkLine
			if err := json.Unmarshal(rest.Bytes(), &l); err != nil {
				t.Fatalf("%s: %v", *o.Key, err)
			}
			all = append(all, l)
		}
	}
	return all
}

// wikiMessage returns a message of the invented wiki about a saved page.
func wikiMessage(space, title string, revision int) string {
	return fmt.Sprintf(`{"action":"saved","page":{"space":%q,"title":%q,"revision":%d},"content":{"text":"revision %d"}}`,
		space, title, revision, revision)
}

// A user deploys a kind of sink and a kind of source that lull does not have, with the user's own
// programs. The messages of the wiki become lines in the bucket: the newest revision of a burst,
// once.
func TestAKindOfSinkAndASourceOfOnesOwn(t *testing.T) {
	ground.Long(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	s, err := deployOwn(ctx, "examples/outoftree", "wiki", "lake")
	ground.Must(t, err)
	// shows waits until all queues are empty, and compares all lines that were ever written.
	shows := func(want ...string) {
		t.Helper()
		s.Drained(t)
		var got []string
		for _, l := range linesInBucket(t, s) {
			got = append(got, fmt.Sprintf("%s %s: %v", l.Op, l.Doc, l.Document["text"]))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("the bucket has %q, want %q", got, want)
		}
	}
	s.DirectBodies(t, wikiMessage("handbook", "Leave", 1), wikiMessage("handbook", "Leave", 3),
		wikiMessage("handbook", "Leave", 2),
		wikiMessage("gossip", "Leave", 7)) // not a space of lull.yaml
	const third = "put pages#handbook/Leave: revision 3"
	shows(third)
	s.DirectBodies(t, wikiMessage("handbook", "Leave", 2))
	shows(third)
	s.DirectBodies(t, wikiMessage("handbook", "Leave", 4),
		`{"action":"removed","page":{"space":"handbook","title":"Leave","revision":5}}`)
	shows(third, "delete pages#handbook/Leave: <nil>")
	operateOwn(t)
	if d := s.Depth(t, s.Dead); d != (ground.Depth{}) {
		t.Errorf("the dead-letter queue has %+v, want nothing", d)
	}
}
