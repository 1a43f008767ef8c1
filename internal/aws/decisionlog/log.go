// SPDX-License-Identifier: Apache-2.0

package decisionlog

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/terminal"
)

// maxLines is how many lines are written for one step between two flushes. In an outage, a thousand
// messages may fail at once for the same reason.
const maxLines = 20

// audited lists the steps to which maxLines does not apply. In some of these steps, a message was
// dropped or sent to another queue. In others, a document was written without a lease, a delete was
// written again, or the sink may differ from a row.
var audited = []journal.Step{
	journal.DeadLettered, journal.Rejected, journal.Parked, journal.Dropped, journal.Returned, journal.Redriven,
	journal.OutageWrite, journal.OutageResync, journal.Reasserted, journal.Drift,
}

// Log is the log of one function. Use Logger for lines that do not come from a note. A Log is safe
// for concurrent use.
type Log struct {
	*slog.Logger
	base *slog.Logger // the logger without the attribute requestId
	sink string

	mu    sync.Mutex
	lines map[journal.Step]int
}

var _ journal.Journal = (*Log)(nil)

// New returns a log that writes each line to out with one call. sink is the sink of notes that name
// no sink. Every line has the attributes about.
func New(out io.Writer, level slog.Level, sink string, about ...any) *Log {
	h := slog.NewJSONHandler(terminal.NewWriter(out), &slog.HandlerOptions{Level: level, ReplaceAttr: timestamp})
	base := slog.New(h).With(about...)
	return &Log{Logger: base, base: base, sink: sink, lines: map[journal.Step]int{}}
}

// Request adds the id of an invocation to every following line. Lambda's own log lines have the
// same id. Call Request at the start of each invocation.
func (l *Log) Request(id string) { l.Logger = l.base.With("requestId", id) }

// timestamp renames the attribute of the time to the name that Lambda's log filter expects.
func timestamp(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		a.Key = "timestamp"
	}
	return a
}

// Level parses a log level in the spelling of Lambda's settings. An unknown level counts as INFO.
func Level(name string) slog.Level {
	switch strings.ToUpper(name) {
	case "TRACE", "DEBUG":
		return slog.LevelDebug
	case "WARN":
		return slog.LevelWarn
	case "ERROR", "FATAL":
		return slog.LevelError
	}
	return slog.LevelInfo
}

// Note writes a line if the log level includes the note's step.
func (l *Log) Note(n journal.Note) {
	level := level(n.Step)
	if !l.Enabled(context.Background(), level) {
		return
	}
	// DEBUG lines are not limited, because a reader needs all lines about a document.
	if level > slog.LevelDebug && !slices.Contains(audited, n.Step) {
		l.mu.Lock()
		l.lines[n.Step]++
		over := l.lines[n.Step] > maxLines
		l.mu.Unlock()
		if over {
			return
		}
	}
	if n.Sink == "" {
		n.Sink = l.sink
	}
	l.LogAttrs(context.Background(), level, string(n.Step), attrs(n)...)
}

// Flush logs which steps had more lines than maxLines, and resets the counts.
func (l *Log) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, step := range slices.Sorted(maps.Keys(l.lines)) {
		if over := l.lines[step] - maxLines; over > 0 {
			l.Warn("lines left out", "step", step, "count", over)
		}
	}
	clear(l.lines)
}

// level is the log level of a step. A step that must never happen is an error, and an alarm watches
// its metric. A failure outside lull is a warning. An audited step is information.
func level(s journal.Step) slog.Level {
	switch s {
	case journal.SinkNewer, journal.ClockOff, journal.LeaseLost, journal.Stuck, journal.Blocked, journal.Schema,
		journal.OutageResync,
		journal.Drift, journal.SinkConfiguration, journal.Panicked:
		return slog.LevelError
	case journal.Failed,
		journal.DeadKept,
		journal.LaunchLost,
		journal.ArchiveLost,
		journal.OutcomeUnknown,
		journal.DeleteLost,
		journal.TwelveHours,
		journal.CircuitOpened,
		journal.Unreachable,
		journal.Conflict,
		journal.OutageWrite,
		journal.CallFailed,
		journal.FlightLost,
		journal.Untrusted,
		journal.Missed,
		journal.EnrichFailed,
		journal.EnrichAway:
		return slog.LevelWarn
	case journal.DeadLettered, journal.Rejected, journal.Released, journal.CircuitClosed, journal.Continued,
		journal.Parked, journal.Dropped, journal.Returned, journal.Redriven, journal.Reasserted,
		journal.Paused, journal.Resumed, journal.Rebuild, journal.ObjectRead, journal.ObjectDone,
		journal.Aborted:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// attrs returns the attributes for the fields of the note that are set.
func attrs(n journal.Note) []slog.Attr {
	out := make([]slog.Attr, 0, 12)
	text := func(key, value string) {
		if value != "" {
			out = append(out, slog.String(key, value))
		}
	}
	text("sink", n.Sink)
	text("lane", n.Lane)
	text("flight", n.Flight)
	text("doc", string(n.Doc))
	if n.Key != "" {
		text("version", n.Key.String())
	}
	text("op", string(n.Op))
	text("message", n.Message)
	text("dead_letter", n.Letter)
	if n.Message != "" {
		out = append(out, slog.Int("event", n.Event))
	}
	if n.Count != 0 {
		out = append(out, slog.Int("count", n.Count))
	}
	if !n.Until.IsZero() {
		out = append(out, slog.Time("until", n.Until.UTC().Truncate(time.Millisecond)))
	}
	if !n.Sent.IsZero() && !n.At.IsZero() {
		out = append(out, slog.Int64("age_ms", n.At.Sub(n.Sent).Milliseconds()))
	}
	text("detail", n.Detail)
	text("trace", n.Stack)
	return out
}
