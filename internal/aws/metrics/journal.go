package metrics

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/journal"
)

// Metrics that no note stands for.
const (
	// a function started with settings that it refuses: it does nothing until they are mended
	ConfigurationErrors = "ConfigurationErrors"
	Panics              = "Panics"        // a batch or a turn ended in a panic
	InvalidEvents       = "InvalidEvents" // an invocation or a record of it is not what the function is for
	TurnsLost           = "TurnsLost"     // a turn ended in an error: the state machine tries it again
	RowReads            = "RowReads"      // rows asked for
	RowWrites           = "RowWrites"     // conditional writes, refused ones among them
	RowRefusals         = "RowRefusals"   // conditional writes refused: each costs its unit all the same
)

// Journal counts notes until they are flushed, and logs what is worth a line. It is safe for
// concurrent use.
type Journal struct {
	base Base
	log  *slog.Logger

	mu     sync.Mutex
	counts map[place]map[string]int
	fresh  map[place][]int64 // milliseconds
	lines  map[journal.Step]int
	out    io.Writer
}

// maxLines is how many lines one step gets between two flushes: an outage fails a thousand messages
// at once, all for the same reason.
const maxLines = 20

// audited lists the steps of which every line counts: what was dropped, sent elsewhere or written
// without a lease.
var audited = map[journal.Step]bool{
	journal.DeadLettered: true, journal.Rejected: true, journal.Parked: true, journal.Dropped: true,
	journal.Returned: true, journal.Redriven: true,
	journal.OutageWrite: true, journal.OutageResync: true, journal.Reasserted: true,
}

// Base is what every line of a function says.
type Base struct {
	Stack    string
	Sink     string // where a note names none
	Function string
}

type place struct{ sink, lane string }

var _ journal.Journal = (*Journal)(nil)

// New returns a journal that writes to out, which is the function's standard output.
func New(out io.Writer, level slog.Level, base Base) *Journal {
	j := &Journal{
		base: base, counts: map[place]map[string]int{}, fresh: map[place][]int64{},
		lines: map[journal.Step]int{}, out: out,
	}
	// One lock for both kinds of lines: they go to the same output.
	h := slog.NewJSONHandler(&locked{j}, &slog.HandlerOptions{Level: level, ReplaceAttr: timestamp})
	j.log = slog.New(h).With("stack", base.Stack, "function", base.Function)
	return j
}

// timestamp gives the time the name by which Lambda's log filter finds it.
func timestamp(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		a.Key = "timestamp"
	}
	return a
}

// locked writes a line under the journal's lock.
type locked struct{ j *Journal }

func (l *locked) Write(p []byte) (int, error) {
	l.j.mu.Lock()
	defer l.j.mu.Unlock()
	return l.j.out.Write(p)
}

// Log is for what no note says.
func (j *Journal) Log() *slog.Logger { return j.log }

// Level reads a level as Lambda's logging settings spell it (AWS_LAMBDA_LOG_LEVEL). What it does
// not know is INFO.
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

// counted lists the steps whose Count is how many there were; every other note counts as one.
var counted = map[journal.Step]bool{journal.Received: true, journal.Extended: true, journal.TwelveHours: true}

// Note counts the note and logs it where its step is worth a line.
func (j *Journal) Note(n journal.Note) {
	sink := n.Sink
	if sink == "" {
		sink = j.base.Sink
	}
	at := place{sink, n.Lane}
	add := 1
	if counted[n.Step] {
		add = n.Count
	}
	l := level(n.Step)
	logged := j.log.Enabled(context.Background(), l)
	j.mu.Lock()
	if logged && !audited[n.Step] {
		j.lines[n.Step]++
		logged = j.lines[n.Step] <= maxLines
	}
	j.count(at, Name(n.Step), add)
	if n.Step == journal.Committed && !n.Sent.IsZero() {
		j.fresh[at] = append(j.fresh[at], max(n.At.Sub(n.Sent).Milliseconds(), 0))
	}
	j.mu.Unlock()
	if logged {
		j.log.LogAttrs(context.Background(), l, string(n.Step), attrs(n, sink)...)
	}
}

// Count adds to a metric of the function's own sink.
func (j *Journal) Count(name string, n int) {
	if n == 0 {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.count(place{sink: j.base.Sink}, name, n)
}

func (j *Journal) count(at place, name string, n int) {
	m := j.counts[at]
	if m == nil {
		m = map[string]int{}
		j.counts[at] = m
	}
	m[name] += n
}

// Name is the metric of a step: sink_newer is SinkNewer.
func Name(s journal.Step) string {
	var b strings.Builder
	for _, word := range strings.Split(string(s), "_") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

// level is how loud a step is. What must never happen is an error, and an alarm of the
// infrastructure's watches its metric; what happens when something outside fails is a warning; what
// an auditor asks for is information.
func level(s journal.Step) slog.Level {
	switch s {
	case journal.SinkNewer, journal.LeaseLost, journal.Stuck, journal.Blocked, journal.Schema, journal.OutageResync:
		return slog.LevelError
	case journal.Failed, journal.LaunchLost, journal.OutcomeUnknown, journal.DeleteLost, journal.TwelveHours,
		journal.CircuitOpened,
		journal.Unreachable, journal.Conflict, journal.OutageWrite:
		return slog.LevelWarn
	case journal.DeadLettered, journal.Rejected, journal.Released, journal.CircuitClosed, journal.Continued,
		journal.Parked, journal.Dropped,
		journal.Returned, journal.Redriven, journal.Reasserted:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// attrs are the fields that the note has.
func attrs(n journal.Note, sink string) []slog.Attr {
	out := make([]slog.Attr, 0, 12)
	text := func(key, value string) {
		if value != "" {
			out = append(out, slog.String(key, value))
		}
	}
	text("sink", sink)
	text("lane", n.Lane)
	text("flight", n.Flight)
	text("doc", string(n.Doc))
	if n.Key != "" {
		text("version", n.Key.String())
	}
	text("op", string(n.Op))
	text("message", n.Message)
	text("letter", n.Letter)
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
	return out
}
