// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/aws/decisionlog"
	"github.com/lullhq/lull/internal/aws/metrics"
	"github.com/lullhq/lull/internal/seam/journal"
)

// lineBytes is the number of bytes that CloudWatch Logs adds to each line:
// https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html
const lineBytes = 26

// listener writes the functions' log lines and metrics, and counts their bytes.
type listener struct {
	stack, sink string
	running     map[int64]*output
	from        time.Time // earlier log lines make no metric
	bytes       int
	metrics     map[string]bool
}

// output is the output of one invocation.
type output struct {
	text    bytes.Buffer
	metrics *metrics.Counters
	log     *decisionlog.Log
}

func newListener(stack, sink string) *listener {
	return &listener{stack: stack, sink: sink, running: map[int64]*output{}, metrics: map[string]bool{}}
}

// hear receives a note, or the end of an invocation.
func (l *listener) hear(function string, invocation int64, at time.Time, n *journal.Note) {
	o := l.running[invocation]
	if o == nil {
		o = &output{}
		about := metrics.Base{Stack: l.stack, Sink: l.sink, Function: function}
		o.metrics = metrics.New(&o.text, about)
		o.log = decisionlog.New(&o.text, slog.LevelInfo, l.sink, "stack", l.stack, "function", function)
		o.log.Request(request(invocation))
		l.running[invocation] = o
	}
	if n != nil {
		o.metrics.Note(*n)
		o.log.Note(*n)
		return
	}
	delete(l.running, invocation)
	if function == "operator" {
		return
	}
	for _, of := range []string{metrics.RowReads, metrics.RowWrites, metrics.RowRefusals} {
		o.metrics.Count(of, 10) // the value does not change the size of the line
	}
	o.log.Flush()
	o.metrics.Flush(at, request(invocation))
	l.weigh(o, !at.Before(l.from))
}

// weigh counts the bytes of the log lines, and collects the names of the metrics.
func (l *listener) weigh(o *output, names bool) {
	for line := range strings.Lines(o.text.String()) {
		l.bytes += len(line) + lineBytes
		var embedded struct {
			AWS struct {
				CloudWatchMetrics []struct {
					Dimensions [][]string
					Metrics    []struct{ Name string }
				}
			} `json:"_aws"`
			Lane string
		}
		if !names || json.Unmarshal([]byte(line), &embedded) != nil {
			continue
		}
		for _, d := range embedded.AWS.CloudWatchMetrics {
			for _, m := range d.Metrics {
				for _, dimensions := range d.Dimensions {
					name := m.Name
					if len(dimensions) > 2 { // more dimensions than stack and sink
						name += " " + embedded.Lane
					}
					l.metrics[name] = true
				}
			}
		}
	}
}

// request returns a text with the length of an invocation's id.
func request(n int64) string { return fmt.Sprintf("%036d", n) }
