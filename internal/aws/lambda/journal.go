// SPDX-License-Identifier: Apache-2.0

package lambda

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lullhq/lull/internal/aws/decisionlog"
	"github.com/lullhq/lull/internal/aws/metrics"
	"github.com/lullhq/lull/internal/aws/tracing"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/journal"
)

// Journal passes each note of a function to the metrics, the decision log and the traces.
type Journal struct {
	*metrics.Counters
	Log *decisionlog.Log
	// Traces is nil if tracing is off.
	Traces *tracing.Tracer

	rows func() (reads, writes, refused int64) // nil if the function uses no table
	seen [3]int64
}

// NewJournal returns a journal that writes to out, which is the function's standard output.
func NewJournal(out io.Writer, level slog.Level, base metrics.Base) *Journal {
	return &Journal{
		Counters: metrics.New(out, base),
		Log:      decisionlog.New(out, level, base.Sink, "stack", base.Stack, "function", base.Function),
	}
}

// Note counts a note, logs it, and passes it to the traces.
func (j *Journal) Note(n journal.Note) {
	j.Counters.Note(n)
	j.Log.Note(n)
	j.Traces.Note(n)
}

// finish is called at the end of every invocation. The method writes the metrics, including the
// requests to the table since the last invocation.
func (j *Journal) finish(ctx context.Context) {
	if j.rows != nil {
		reads, writes, refused := j.rows()
		for i, total := range []int64{reads, writes, refused} {
			j.Count([]string{metrics.RowReads, metrics.RowWrites, metrics.RowRefusals}[i], int(total-j.seen[i]))
			j.seen[i] = total
		}
	}
	if err := j.Traces.Flush(ctx, time.Now()); err != nil {
		j.Log.Warn("spans are lost", "error", err.Error())
	}
	j.Log.Flush()
	j.Flush(time.Now(), request(ctx))
}

// request returns the id of the invocation, or "" outside Lambda.
func request(ctx context.Context) string {
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		return lc.AwsRequestID
	}
	return ""
}

// guard calls f. If f panics, guard counts and logs the panic, and returns it as an error.
func guard[T any](j *Journal, f func() (T, error)) (out T, err error) {
	if p := fanout.Catch(func() { out, err = f() }); p != nil {
		j.Count(metrics.Panics, 1)
		j.Log.Error("panic", "what", p.Error(), "trace", string(p.Stack))
		return out, p
	}
	return out, err
}
