// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lullhq/lull/internal/aws/dynamodb"
	"github.com/lullhq/lull/internal/aws/s3"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/shard"
)

// Stack is a deployed stack and its two upstreams.
type Stack struct {
	*Ground
	Config *config.Config
	Names  names.Names

	Topic, Bus       string // the topic and the bus to which upstream systems publish
	Live, Bulk, Dead string // addresses of the queues

	SQS      *sqs.Client
	Steps    *sfn.Client
	logs     *cloudwatchlogs.Client
	Rows     *dynamodb.Table
	Objects  *s3.Bucket
	Letters  *dynamodb.Letters
	Schedule *dynamodb.Schedule
	Flights  *s3.Flights

	Decisions Decisions // what the functions logged, as far as Counts has read

	settings string   // the path of the settings file for the command line
	options  []string // the variables from which the stack's template is made

	seen map[string]*string // log stream -> where to read on
	sums Counts
}

// Collection returns a name for a collection that no other test uses, not even a test that ran
// earlier on the same servers.
func (s *Stack) Collection(name string) string {
	return name + "-" + strconv.FormatUint(rand.Uint64N(36*36*36*36*36), 36)
}

// Index returns the name of a collection's index.
func (s *Stack) Index(collection string) string {
	if s.Config.SinksFor(collection)[0] == Archive {
		return "archive-of-" + s.Config.Stack + "-" + collection
	}
	return indices(s.Config.Stack, s.Config.Parts) + "-" + collection
}

// Key returns the key of a document.
func Key(collection, id string) shard.DocID { return shard.DocID(collection + "#" + id) }

// Row reads a document's row consistently. If there is no row, it returns the zero Row.
func (s *Stack) Row(t testing.TB, key shard.DocID) shard.Row {
	t.Helper()
	var row shard.Row
	Until(t, "read the row of "+string(key), func() (bool, string) {
		rows, err := s.Rows.Read(t.Context(), []shard.DocID{key}, shard.Consistent)
		if err != nil {
			return false, err.Error()
		}
		row = rows[0]
		return true, ""
	})
	return row
}

// Committed waits until exactly this version of a document is committed.
func (s *Stack) Committed(t testing.TB, key shard.DocID, version int) shard.Row {
	t.Helper()
	var row shard.Row
	Until(t, fmt.Sprintf("version %d of %s is committed", version, key),
		func() (bool, string) {
			row = s.Row(t, key)
			return row.Committed.VersionText() == strconv.Itoa(version),
				fmt.Sprintf("committed %q, pending %q, dead %q, last error %q",
					row.Committed.VersionText(), row.Pending.VersionText(), row.Dead.VersionText(), row.LastError)
		})
	return row
}

// Pending waits until a version is admitted.
func (s *Stack) Pending(t testing.TB, key shard.DocID, version int) {
	t.Helper()
	Until(t, fmt.Sprintf("version %d of %s is pending", version, key), func() (bool, string) {
		row := s.Row(t, key)
		return row.Pending.VersionText() == strconv.Itoa(version), fmt.Sprintf("pending %q", row.Pending.VersionText())
	})
}

// Depth is how many messages of a queue are visible, in flight and delayed.
type Depth struct{ Visible, InFlight, Delayed int }

// Depth counts the messages of a queue. The emulators count exactly.
func (s *Stack) Depth(t testing.TB, queue string) Depth {
	t.Helper()
	d, err := s.ReadDepth(t.Context(), queue)
	Must(t, err)
	return d
}

// ReadDepth is Depth for code that is not a test.
func (s *Stack) ReadDepth(ctx context.Context, queue string) (d Depth, err error) {
	out, err := s.SQS.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &queue, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		return d, fmt.Errorf("count the messages of %s: %w", queue, err)
	}
	for name, to := range map[types.QueueAttributeName]*int{
		types.QueueAttributeNameApproximateNumberOfMessages:           &d.Visible,
		types.QueueAttributeNameApproximateNumberOfMessagesNotVisible: &d.InFlight,
		types.QueueAttributeNameApproximateNumberOfMessagesDelayed:    &d.Delayed,
	} {
		if *to, err = strconv.Atoi(out.Attributes[string(name)]); err != nil {
			return d, fmt.Errorf("count the messages of %s: %s is %q", queue, name, out.Attributes[string(name)])
		}
	}
	return d, nil
}

// Receive receives messages from a queue like any other consumer, and returns their number. The
// messages stay visible.
func (s *Stack) Receive(t testing.TB, queue string) int {
	t.Helper()
	out, err := s.SQS.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: &queue, MaxNumberOfMessages: 10,
		VisibilityTimeout: 0,
	})
	if err != nil {
		t.Fatalf("receive from %s: %v", queue, err)
	}
	return len(out.Messages)
}

// Drained waits until every message was deleted, so that all queues are empty.
func (s *Stack) Drained(t testing.TB) {
	t.Helper()
	Until(t, "every queue is empty", func() (bool, string) {
		var saw []string
		for name, queue := range map[string]string{"live": s.Live, "bulk": s.Bulk, "dead": s.Dead} {
			if d := s.Depth(t, queue); d != (Depth{}) {
				saw = append(saw, fmt.Sprintf("%s %+v", name, d))
			}
		}
		slices.Sort(saw)
		return len(saw) == 0, strings.Join(saw, ", ")
	})
}

// Begun sends events of documents that no other step of the test uses. It waits until the documents
// are written, and until the log shows that the messages are deleted. The returned counts include
// these events, so they do not affect later comparisons.
func (s *Stack) Begun(t testing.TB, events ...Event) Counts {
	t.Helper()
	before := s.Counts(t)
	s.Direct(t, events...)
	for _, e := range events {
		s.Committed(t, Key(e.Collection, e.ID), e.Version)
	}
	s.Drained(t)
	s.Done(t, before, len(events))
	return s.Counts(t)
}

// Settled waits until these versions of a collection are committed and every queue is empty. It
// fails the test unless the sink has exactly these versions.
func (s *Stack) Settled(t testing.TB, collection string, want map[string]int) {
	t.Helper()
	for id, version := range want {
		s.Committed(t, Key(collection, id), version)
	}
	s.Drained(t)
	s.Holds(t, collection, want)
}

// Wrote fails the test unless OpenSearch counts this number of writes to a collection's index since
// before.
func (s *Stack) Wrote(t testing.TB, collection string, before, want int) {
	t.Helper()
	if got := s.Search.Writes(t, s.Index(collection)) - before; got != want {
		t.Errorf("OpenSearch counts %d writes, want %d", got, want)
	}
}

// Holds fails the test unless the sink has exactly these versions, by id. The external version of
// each document must be the fence that lull wrote, and its order key must be the committed key of
// its row.
func (s *Stack) Holds(t testing.TB, collection string, want map[string]int) {
	t.Helper()
	hits := s.Search.Documents(t, s.Index(collection))
	got := make(map[string]int)
	for id, h := range hits {
		version, err := strconv.Atoi(h.Meta.Version)
		if err != nil {
			t.Errorf("document %s of %s: version %q", id, collection, h.Meta.Version)
		}
		got[id] = version
		row := s.Row(t, Key(collection, id))
		if h.Version != int64(h.Meta.Fence) || h.Meta.Key != row.Committed.String() {
			t.Errorf("document %s of %s: external version %d, fence %d, order key %s; its row says %s", id, collection,
				h.Version, h.Meta.Fence, h.Meta.Key, row.Committed)
		}
		// The fence is the time of the claim, which is not later than the commit.
		if fence := shard.Micros(h.Meta.Fence); fence <= 0 || fence > row.LastWrite {
			t.Errorf("document %s of %s: fence %d, but its row was last written at %d", id, collection, fence,
				row.LastWrite)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("%s holds %v, want %v", s.Index(collection), got, want)
	}
}
