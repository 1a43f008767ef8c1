// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/source"
	"github.com/lullhq/lull/source/sourcetest"
)

const pointed = `["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"open-bucket","s3Key":%q}]`

// Only one loaded body is decoded at a time, even if a body is a pointer to another body.
func TestPointersBehindPointersDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	set := newSet(t).WithLoader(func(_ context.Context, _, key string) ([]byte, error) {
		if key == "last" {
			return []byte(`{"type":"doc.deleted","subject":"a","sequence":"1"}`), nil
		}
		return fmt.Appendf(nil, pointed, "last"), nil
	})
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if r := set.Decode(sourcetest.Message("native", fmt.Sprintf(pointed, "first"))); r[0].Event.Doc != "content#a" {
				t.Errorf("got %+v", r[0])
			}
		})
	}
	all.Wait()
}

func TestNoBodyIsLoadedOnceEnoughAre(t *testing.T) {
	t.Parallel()
	loads := 0
	set := newSet(t).WithLoader(func(context.Context, string, string) ([]byte, error) {
		loads++
		return []byte(`{"type":"doc.deleted","subject":"a","sequence":"1"}`), nil
	})
	ctx := source.LoadAtMost(t.Context(), 60)
	for i := range 4 {
		r := set.DecodeContext(ctx, sourcetest.Message("native", fmt.Sprintf(pointed, "x")))
		if bad := r[0].Invalid; (bad != nil) != (i > 1) || bad != nil && !bad.Transient() {
			t.Errorf("body %d: got %+v, want the first two loaded, and the others to be tried again", i, r[0])
		}
	}
	if loads != 2 {
		t.Errorf("%d loads, want 2", loads)
	}
}

func TestAKeyOfTooManyColumnsIsRefused(t *testing.T) {
	t.Parallel()
	set := newSet(t)
	key := func(n int, value string) (columns string) {
		for i := range n {
			columns += fmt.Sprintf(`,"c%02d":%s`, i, value)
		}
		return "{" + columns[1:] + "}"
	}
	for _, n := range []int{source.MaxColumns, source.MaxColumns + 1} {
		for name, body := range map[string]string{
			"debezium": `{"value":{"op":"d","source":{"lsn":1}},"key":` + key(n, `"x"`) + `}`,
			"stream": `{"Records":[{"eventSource":"aws:dynamodb","eventName":"REMOVE","dynamodb":` +
				`{"SequenceNumber":"1","Keys":` + key(n, `{"S":"x"}`) + `}}]}`,
		} {
			r := set.Decode(sourcetest.Message(name, body))
			bad := r[0].Invalid
			if refused := bad != nil && bad.Reason == event.Contract; refused != (n > source.MaxColumns) {
				t.Errorf("%s, %d columns: got %+v", name, n, bad)
			}
		}
	}
}

// The test is not parallel, because it measures the memory of the whole process.
func TestTheEnvelopesOfAMessageAreOpenedOnceForAllOfItsDocuments(t *testing.T) { //nolint:paralleltest // see above
	set := sourcetest.New(t, `
sources:
  native: {kind: native}
  topic: {kind: native, match: [{topic: 'arn:aws:sns:eu-west-1:111122223333:news'}]}
defaultSource: native
`)
	text, err := json.Marshal(`{"type":"doc.changed","subject":"a","sequence":"1","data":{"t":"` +
		strings.Repeat("x", 1<<19) + `"}}`)
	if err != nil {
		t.Fatal(err)
	}
	m := event.Message{Body: `{"Type":"Notification","TopicArn":"arn:aws:sns:eu-west-1:111122223333:news","Message":` +
		string(text) + `}`}
	small := set.Decode(m)[0].Event
	small.Data = "{}"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 20 {
		if _, err := set.Document(m, small); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("%d KB were needed to find the source of one message twenty times", grown>>10)
	}
}
