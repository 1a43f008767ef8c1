package ground

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/names"
)

// Counts are the metrics that the functions have written to their logs, by name, summed over all of
// them.
type Counts map[string]int

// Since is what was added after before.
func (c Counts) Since(before Counts) Counts {
	added := make(Counts)
	for name, n := range c {
		if n -= before[name]; n != 0 {
			added[name] = n
		}
	}
	return added
}

// Counts reads on in the functions' logs and returns the sums since the stack was deployed. Logs
// arrive after the invocation has ended: wait for what must come.
func (s *Stack) Counts(t testing.TB) Counts {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range names.Functions() {
		if err := s.readLogs(t.Context(), s.Names.FunctionLog(Sink, f)); err != nil {
			t.Fatalf("read the log of %s: %v", f, err)
		}
	}
	now := make(Counts)
	for name, n := range s.sums {
		now[name] = n
	}
	return now
}

// Counted waits until a metric has grown to what is wanted since before, and fails the test where
// it is more.
func (s *Stack) Counted(t testing.TB, before Counts, name string, want int) {
	t.Helper()
	var got int
	Until(t, Patience, fmt.Sprintf("%s is %d", name, want), func(context.Context) (bool, string) {
		got = s.Counts(t).Since(before)[name]
		return got >= want, fmt.Sprint(got)
	})
	if got != want {
		t.Errorf("%s: got %d, want %d", name, got, want)
	}
}

func (s *Stack) readLogs(ctx context.Context, group string) error {
	var streams struct {
		LogStreams []struct{ LogStreamName string } `json:"logStreams"`
		NextToken  string                           `json:"nextToken"`
	}
	for {
		in := map[string]any{"logGroupName": group}
		if streams.NextToken != "" {
			in["nextToken"] = streams.NextToken
		}
		streams.LogStreams, streams.NextToken = nil, ""
		if err := s.target(ctx, "logs", "Logs_20140328.DescribeLogStreams", in, &streams); err != nil {
			return err
		}
		for _, stream := range streams.LogStreams {
			if err := s.readStream(ctx, group, stream.LogStreamName); err != nil {
				return err
			}
		}
		if streams.NextToken == "" {
			return nil
		}
	}
}

func (s *Stack) readStream(ctx context.Context, group, stream string) error {
	at := group + " " + stream
	for {
		in := map[string]any{"logGroupName": group, "logStreamName": stream, "startFromHead": true}
		if s.seen[at] != "" {
			in["nextToken"] = s.seen[at]
		}
		var page struct {
			Events           []struct{ Message string } `json:"events"`
			NextForwardToken string                     `json:"nextForwardToken"`
		}
		if err := s.target(ctx, "logs", "Logs_20140328.GetLogEvents", in, &page); err != nil {
			return err
		}
		for _, e := range page.Events {
			s.sums.add(e.Message)
		}
		if len(page.Events) == 0 || page.NextForwardToken == s.seen[at] {
			return nil
		}
		s.seen[at] = page.NextForwardToken
	}
}

// add adds the metrics of one line in CloudWatch's embedded format; other lines have none.
func (c Counts) add(line string) {
	if !strings.HasPrefix(line, "{") || !strings.Contains(line, `"_aws"`) {
		return
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(line), &fields) != nil {
		return
	}
	for name, value := range fields {
		var n int
		if json.Unmarshal(value, &n) == nil {
			c[name] += n
		}
	}
}
