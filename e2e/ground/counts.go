// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	logs "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"

	"github.com/lullhq/lull/internal/deploy/names"
)

// Counts are the metrics that the functions have written to their logs, by name. Each count is the
// sum over all functions.
type Counts map[string]int

// Since returns how much each count has grown since before.
func (c Counts) Since(before Counts) Counts {
	added := make(Counts)
	for name, n := range c {
		if n -= before[name]; n != 0 {
			added[name] = n
		}
	}
	return added
}

// Counts reads the functions' logs up to now, and returns the sums since the stack was deployed.
// Logs arrive after the invocation has ended, so a test has to wait for the counts that it expects.
func (s *Stack) Counts(t testing.TB) Counts {
	t.Helper()
	counts, err := s.ReadCounts(t.Context())
	Must(t, err)
	return counts
}

// ReadCounts is Counts for code that is not a test.
func (s *Stack) ReadCounts(ctx context.Context) (Counts, error) {
	for _, f := range names.Functions() {
		if err := s.readLogs(ctx, s.Names.FunctionLog(Sink, f)); err != nil {
			return nil, fmt.Errorf("read the log of %s: %w", f, err)
		}
	}
	return maps.Clone(s.sums), nil
}

// Counted waits until a metric has grown by want since before. It fails the test if the metric
// grows by more.
func (s *Stack) Counted(t testing.TB, before Counts, name string, want int) {
	t.Helper()
	s.counted(t, before, want, name)
}

// Done waits until this number of messages has been deleted since before. index deletes a message,
// or receive does: a message that was superseded leaves its flight, and receive acknowledges it
// when it is visible again (ADR 0028).
func (s *Stack) Done(t testing.TB, before Counts, want int) {
	t.Helper()
	s.counted(t, before, want, "Deleted", "Stale")
}

// counted is Counted for the sum of some metrics.
func (s *Stack) counted(t testing.TB, before Counts, want int, metrics ...string) {
	t.Helper()
	var got int
	name := strings.Join(metrics, " and ")
	Until(t, fmt.Sprintf("%s is %d", name, want), func() (bool, string) {
		since := s.Counts(t).Since(before)
		got = 0
		for _, m := range metrics {
			got += since[m]
		}
		return got >= want, fmt.Sprint(got)
	})
	if got != want {
		t.Errorf("%s: got %d, want %d", name, got, want)
	}
}

// Grows waits until a metric has grown since before.
func (s *Stack) Grows(t testing.TB, before Counts, name string) {
	t.Helper()
	Until(t, name+" is counted", func() (bool, string) {
		got := s.Counts(t).Since(before)
		return got[name] > 0, fmt.Sprint(got)
	})
}

// Never fails the test if one of the metrics has grown since before.
func (s *Stack) Never(t testing.TB, before Counts, metrics ...string) {
	t.Helper()
	got := s.Counts(t).Since(before)
	for _, name := range metrics {
		if got[name] != 0 {
			t.Errorf("%s: got %d, want 0", name, got[name])
		}
	}
}

func (s *Stack) readLogs(ctx context.Context, group string) error {
	streams := logs.NewDescribeLogStreamsPaginator(s.logs, &logs.DescribeLogStreamsInput{LogGroupName: &group})
	for streams.HasMorePages() {
		page, err := streams.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, stream := range page.LogStreams {
			if err := s.readStream(ctx, group, *stream.LogStreamName); err != nil {
				return err
			}
		}
	}
	return nil
}

// readStream reads the lines of a log stream that were added since the last call.
func (s *Stack) readStream(ctx context.Context, group, stream string) error {
	at := group + " " + stream
	in := &logs.GetLogEventsInput{LogGroupName: &group, LogStreamName: &stream, StartFromHead: aws.Bool(true)}
	for {
		in.NextToken = s.seen[at]
		page, err := s.logs.GetLogEvents(ctx, in)
		if err != nil {
			return err
		}
		for _, e := range page.Events {
			s.sums.add(aws.ToString(e.Message))
			if timedOut(aws.ToString(e.Message)) {
				s.sums[TimedOut]++
			}
			s.Decisions.Add(aws.ToString(e.Message))
		}
		if len(page.Events) == 0 || aws.ToString(page.NextForwardToken) == aws.ToString(in.NextToken) {
			return nil
		}
		s.seen[at] = page.NextForwardToken
	}
}

// TimedOut is the count of invocations that Lambda killed because of their timeout.
const TimedOut = "invocations that timed out"

// timedOut reports whether Lambda wrote this line about an invocation that timed out: as text, or
// as JSON in the record platform.report.
func timedOut(line string) bool {
	return strings.Contains(line, "Task timed out after") ||
		strings.Contains(line, `"platform.report"`) && strings.Contains(line, `"status":"timeout"`)
}

// add adds the metrics of one line in CloudWatch's embedded format. It ignores any other line.
func (c Counts) add(line string) {
	var fields map[string]json.RawMessage
	if !strings.Contains(line, `"_aws"`) || json.Unmarshal([]byte(line), &fields) != nil {
		return
	}
	for name, value := range fields {
		var n int
		if json.Unmarshal(value, &n) == nil {
			c[name] += n
		}
	}
}
