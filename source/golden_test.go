package source_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// TestMessagesDecodeAsWritten reads testdata/decode: one file for each source and one for the
// envelopes. A case is a message and what becomes of it, to the last byte of its order key and its
// document:
//
//	decode source=native [attributes=(name,value,...)] [sent=2026-11-20T16:00:00Z]
//	<body>
//	----
//	<a line for each event>
//
// go test ./source -rewrite writes the expectations anew: read the difference.
func TestMessagesDecodeAsWritten(t *testing.T) {
	t.Parallel()
	set := newSet(t).WithLoader(bucket)
	datadriven.Walk(t, filepath.Join("testdata", "decode"), func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "decode" {
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			var name string
			d.ScanArgs(t, "source", &name)
			m := message(name, d.Input)
			if d.HasArg("attributes") {
				for _, a := range d.CmdArgs {
					for i := 0; a.Key == "attributes" && i+1 < len(a.Vals); i += 2 {
						m.Attributes[a.Vals[i]] = queue.Text(a.Vals[i+1])
					}
				}
			}
			if d.HasArg("sent") {
				var text string
				d.ScanArgs(t, "sent", &text)
				at, err := time.Parse(time.RFC3339, text)
				if err != nil {
					d.Fatalf(t, "read sent: %v", err)
				}
				m.Sent = at
			}
			return render(set, m)
		})
	})
}

// bucket is what the pointers of the test data name.
func bucket(_ context.Context, name, key string) ([]byte, error) {
	switch key {
	case "big.json":
		return []byte(`{"type":"doc.changed","subject":"big","sequence":"1","data":{"from":"` + name + `"}}`), nil
	case "loop.json":
		return []byte(
			`["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"open-bucket","s3Key":"loop.json"}]`), nil
	case "absent.json":
		return nil, &event.Fault{Reason: "payload", Field: "s3Key", Problem: "the object does not exist"}
	}
	return nil, errors.New("timed out")
}

func render(set *source.Set, m queue.Message) string {
	var out strings.Builder
	for i, r := range set.Decode(m) {
		e := r.Event
		if e.Index != i {
			fmt.Fprintf(&out, "WRONG INDEX %d\n", e.Index)
		}
		switch {
		case r.Fault != nil:
			transient := ""
			if r.Fault.Transient() {
				transient = " transient"
			}
			fmt.Fprintf(&out, "%d fault%s %s field=%q doc=%q\n  %s\n", i, transient, r.Fault.Reason, r.Fault.Field,
				r.Fault.Doc, r.Fault.Problem)
		case r.Skip != "":
			fmt.Fprintf(&out, "%d skip: %s\n", i, r.Skip)
		default:
			fmt.Fprintf(&out, "%d %s %q version=%s class=%s%s\n  key %s\n", i, e.Op, string(e.Doc), e.Version, e.Class,
				options(e), e.Key)
			if e.DataRef != "" {
				fmt.Fprintf(&out, "  ref %s\n", e.DataRef)
			} else if e.Op == shard.Put {
				doc, err := set.Document(m, e)
				if err != nil {
					fmt.Fprintf(&out, "  no document: %v\n", err)
				} else {
					fmt.Fprintf(&out, "  document %s\n", doc)
				}
			}
		}
	}
	return out.String()
}

func options(e event.Event) string {
	s := ""
	if e.Resync {
		s += " resync"
	}
	if !e.Time.IsZero() {
		s += " time=" + e.Time.Format(time.RFC3339Nano)
	}
	if !e.NotBefore.IsZero() {
		s += " notbefore=" + e.NotBefore.Format(time.RFC3339Nano)
	}
	return s
}
