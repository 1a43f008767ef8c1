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

// maxLines is how many lines one step gets between two flushes: in an outage, a thousand messages
// fail at once for the same reason.
const maxLines = 20

// audited lists the steps that get all their lines: what was dropped, sent elsewhere or written
// without a lease.
var audited = []journal.Step{
	journal.DeadLettered, journal.Rejected, journal.Parked, journal.Dropped, journal.Returned, journal.Redriven,
	journal.OutageWrite, journal.OutageResync, journal.Reasserted, journal.Drift,
}

// Log is the log of one function. Its Logger is for lines that do not come from a note. It is safe
// for concurrent use.
type Log struct {
	*slog.Logger
	base *slog.Logger // without the request
	sink string

	mu    sync.Mutex
	lines map[journal.Step]int
}

var _ journal.Journal = (*Log)(nil)

// New returns a log that writes each line to out in one call. A note that names no sink gets sink.
// Every line has the attributes about.
func New(out io.Writer, level slog.Level, sink string, about ...any) *Log {
	h := slog.NewJSONHandler(terminal.NewWriter(out), &slog.HandlerOptions{Level: level, ReplaceAttr: timestamp})
	base := slog.New(h).With(about...)
	return &Log{Logger: base, base: base, sink: sink, lines: map[journal.Step]int{}}
}

// Request gives every line from now on the id of an invocation, by which Lambda's own lines are
// found. It is called before the invocation does anything.
func (l *Log) Request(id string) { l.Logger = l.base.With("requestId", id) }

// timestamp gives the time the name by which Lambda's log filter finds it.
func timestamp(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		a.Key = "timestamp"
	}
	return a
}

// Level reads a level as Lambda's logging settings spell it. An unknown one is INFO.
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
	// DEBUG lines are not limited: the story of one document needs all of its lines.
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

// attrs are the fields that the note has.
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
