package dev

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/shard"
)

// Narrator tells what happens, one line per decision, in the words of the design. It is a journal.
type Narrator struct {
	mu    sync.Mutex
	out   io.Writer
	start time.Time
}

// NewNarrator tells to out; times count from start.
func NewNarrator(out io.Writer, start time.Time) *Narrator { return &Narrator{out: out, start: start} }

// Say writes a line of its own.
func (w *Narrator) Say(at time.Time, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// a closed terminal is nobody's fault
	_, _ = fmt.Fprintf(w.out, "%7.1fs  %s\n", at.Sub(w.start).Seconds(), fmt.Sprintf(format, args...))
}

// Note tells a decision, if it is worth a line.
func (w *Narrator) Note(n journal.Note) {
	word, text := tell(n)
	if word == "" {
		return
	}
	who := string(n.Doc)
	if who == "" {
		who = n.Message
	}
	if n.Key != "" {
		who += " v" + VersionText(n.Key)
	}
	w.Say(n.At, "%-9s %-24s %s", word, who, text)
}

// VersionText is the upstream's version in a key, for people.
func VersionText(k shard.OrderKey) string {
	p, err := k.Parts()
	if err != nil {
		return "?"
	}
	return p.Version.Text()
}

func in(n journal.Note) string { return fmt.Sprintf("in %.1f s", max(n.Until.Sub(n.At).Seconds(), 0)) }

// tell is the line of a step: a verb of the design and why.
func tell(n journal.Note) (word, text string) {
	switch n.Step {
	case journal.Skipped:
		return "SKIP", "passed over by its source's rule: " + n.Detail
	case journal.Admitted:
		if n.Old.Pending == "" {
			return "ADMIT", "newer than anything its row has seen: pending. A burst begins"
		}
		return "ADMIT", "newer than the pending version " + VersionText(n.Old.Pending) + ", which it replaces"
	case journal.Held:
		return "HOLD", "message kept in SQS, invisible, until its version is settled; due " + in(n)
	case journal.Stale:
		return "STALE", "a newer version is committed already: acknowledged, the sink is not touched"
	case journal.Duplicate:
		return "DUPLICATE", "this very version is committed: acknowledged"
	case journal.AlreadyDead:
		return "STORED", "its dead letter is stored: acknowledged"
	case journal.DeadLettered:
		return "DEAD", "dead letter: " + n.Detail
	case journal.Dropped:
		return "DROP", n.Detail
	case journal.Scheduled:
		return "SCHEDULE", "not before " + n.Until.UTC().Format(time.RFC3339) + ": stored, then acknowledged"
	case journal.Enqueued:
		return "ENQUEUE", "its time has come: sent to its queue"
	case journal.Superseded:
		return "SETTLE", "superseded: a newer version of the burst was written for it; message deleted"
	case journal.Waiting:
		return "WAIT", n.Detail + "; looks again " + in(n)
	case journal.LeftFlight:
		return "LEAVE", n.Detail + "; its message becomes visible again"
	case journal.Claimed:
		return "CLAIM", "the lull has come: lease taken under a fresh token, its time is the fence"
	case journal.Committed:
		what := "written to the sink, row committed, message deleted"
		if n.Op == shard.Delete {
			what = "deleted from the sink, row committed (a tombstone), message deleted"
		}
		return "SETTLE", what + fmt.Sprintf("; %.1f s after it was sent", n.At.Sub(n.Sent).Seconds())
	case journal.Released:
		return "RELEASE", "nothing was applied, lease given back: " + n.Detail
	case journal.Rejected:
		return "REJECT", "refused for good, letter stored, older versions may go: " + n.Detail
	case journal.OutcomeUnknown:
		return "UNKNOWN", "no answer to be trusted: the lease stays and runs out: " + n.Detail
	case journal.SinkNewer:
		return "ALARM", "the sink holds a newer fence under a live lease (SinkNewer)"
	case journal.LeaseLost:
		return "LOST", "somebody else has the lease: not acknowledged"
	case journal.LaunchLost:
		return "LOST", "the flight did not start: its messages come back by themselves"
	case journal.CircuitOpened:
		return "BREAKER", "the sink is unwell: nothing is claimed for " + strings.TrimPrefix(in(n), "in ")
	case journal.CircuitClosed:
		return "BREAKER", "the sink is well again"
	case journal.Parked:
		return "PARK", "letter stored byte for byte; `lull dead list` shows it"
	case journal.Redriven:
		return "REDRIVE", "letter sent again, to be judged by its version"
	case journal.Returned:
		return "RETURN", "it never ran: back to its queue"
	case journal.Stuck:
		return "ALARM", "stuck: " + n.Detail
	case journal.Unreachable:
		return "OUTAGE", fmt.Sprintf("the table cannot be reached: %d messages wait", n.Count)
	}
	return "", ""
}
