// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/terminal"
)

// Narrator writes one line for each decision, in the words of the design. A Narrator is a
// journal.Journal.
type Narrator struct {
	mu    sync.Mutex
	out   io.Writer
	start time.Time
}

// NewNarrator returns a narrator that writes to out. The times in its lines count from start.
func NewNarrator(out io.Writer, start time.Time) *Narrator { return &Narrator{out: out, start: start} }

// Say writes an additional line.
func (w *Narrator) Say(at time.Time, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// Ignore an error: if out can no longer be written, the run continues.
	_, _ = fmt.Fprintf(w.out, "%7.1fs  %s\n", at.Sub(w.start).Seconds(), terminal.Line(fmt.Sprintf(format, args...)))
}

// Note writes the line for a decision. Some decisions have no line.
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
		who += " v" + n.Key.VersionText()
	}
	w.Say(n.At, "%-9s %-24s %s", word, who, text)
}

// line is the text for a step: a word of the design, and the reason. Words in braces are replaced
// by values of the note.
type line struct{ word, text string }

// lines contains the line for each step. A special case of a step has its own line.
var lines = map[journal.Step]line{
	journal.Skipped:    {"SKIP", "skipped by a rule of the source: {detail}"},
	journal.ObjectRead: {"READ", "{count} lines of an object became messages: {detail}"},
	journal.ObjectDone: {"READ", "an object was read to its end: {detail}"},
	journal.Admitted:   {"ADMIT", "newer than the pending version {pending}, which it replaces"},
	newBurst:           {"ADMIT", "newer than any version in the row: pending. A burst begins"},
	journal.Held: {
		"HOLD", "message kept in SQS, invisible, until its version is written or superseded; due in {until}",
	},
	journal.Stale: {"STALE", "a newer version is already committed: message deleted, nothing is written"},
	sameStale:     {"STALE", "{detail}: message deleted, nothing is written"},
	journal.Conflict: {
		"CONFLICT", "another event has the same version and other content: only one of them is written, that with the " +
			"later event time, then the greater digest",
	},
	journal.Duplicate:    {"DUPLICATE", "the same version is already committed: message deleted"},
	journal.AlreadyDead:  {"PARKED", "the dead letter of this version is already parked: message deleted"},
	journal.DeadLettered: {"DEAD", "dead letter: {detail}"},
	journal.Dropped:      {"DROP", "{detail}"},
	journal.Scheduled:    {"SCHEDULE", "not before {date}: the event is stored until then, message deleted"},
	journal.Enqueued:     {"ENQUEUE", "the scheduled time has come: the event is sent to its queue"},
	journal.Superseded:   {"SETTLE", "superseded: a newer version of the burst was written for it; message deleted"},
	sameSuperseded:       {"SETTLE", "superseded: {detail}; message deleted"},
	journal.Waiting:      {"WAIT", "{detail}; the flight checks again in {until}"},
	journal.LeftFlight:   {"LEAVE", "{detail}; the message becomes visible again"},
	journal.LeftSuperseded: {
		"LEAVE", "{detail}: the flight ends; the message becomes visible in {until}, and is then deleted as stale",
	},
	journal.Claimed:      {"CLAIM", "the lull has come: lease taken under a new token; the time of the claim is the fence"},
	journal.Fetched:      {"FETCH", "the newest state came from source {detail}: {count} bytes"},
	journal.FetchFailed:  {"FETCH", "source {detail} returned no document to write"},
	journal.Enriched:     {"ENRICH", "the enricher ({detail}) added {count} bytes"},
	journal.EnrichFailed: {"ENRICH", "the enricher gave no usable answer for {count} documents of {detail}"},
	journal.EnrichAway:   {"BREAKER", "the enricher of {detail} is not called for {until}"},
	journal.Committed: {
		"SETTLE", "written to the sink, row committed, message deleted; {age} after it was sent",
	},
	committedDelete: {
		"SETTLE", "deleted from the sink, row committed (a tombstone), message deleted; {age} after it was sent",
	},
	journal.Kept: {
		"SETTLE", "unchanged, {detail}: row committed without a write, message deleted; {age} after it was sent",
	},
	journal.Released: {"RELEASE", "nothing was written, lease released: {detail}"},
	journal.Rejected: {
		"REJECT",
		"refused permanently, dead letter parked, older versions may be written: {detail}",
	},
	journal.OutcomeUnknown:    {"UNKNOWN", "the outcome is unknown: the lease is kept until it expires: {detail}"},
	journal.SinkNewer:         {"ALARM", "the sink has a newer fence although the lease is still valid (SinkNewer)"},
	journal.ClockOff:          {"ALARM", "a clock is wrong: {detail} (ClockOff)"},
	journal.SinkConfiguration: {"ALARM", "the engine or its settings refuse {count} documents, which wait: {detail}"},
	journal.LeaseLost:         {"LOST", "another invocation has the lease: not acknowledged"},
	journal.LaunchLost:        {"LOST", "the flight did not start: SQS delivers its messages again"},
	journal.ArchiveLost:       {"LOST", "{count} messages are not in the archive: {detail}"},
	journal.CircuitOpened:     {"BREAKER", "the sink is unhealthy: no document is claimed for {until}: {detail}"},
	journal.CircuitClosed: {
		"BREAKER",
		"the sink answers again: waiting versions are written, slowly at first; postponed messages return by themselves",
	},
	journal.Parked:      {"PARK", "dead letter parked byte for byte; `lull dead list` shows it"},
	journal.Redriven:    {"REDRIVE", "dead letter sent again: lull compares its version again"},
	journal.Returned:    {"RETURN", "receive never ran for this message: sent back to its queue"},
	journal.Stuck:       {"ALARM", "stuck: {detail}"},
	journal.Away:        {"AWAY", "the sink is away: {count} messages wait in the queue"},
	journal.Requeued:    {"REQUEUE", "{count} messages wait in the queue for their share of the sink"},
	journal.Slowed:      {"BREAKER", "the sink throttles: all flights slow down: {detail}"},
	journal.Paused:      {"PAUSE", "no document is claimed for the sink until an operator resumes it, {detail}"},
	journal.Resumed:     {"RESUME", "documents are written to the sink again, {detail}"},
	journal.Aborted:     {"ABORT", "lull stopped reading an object before its end: {detail}"},
	journal.Rebuild:     {"REBUILD", "{detail}"},
	journal.Missed:      {"REBUILD", "the new index does not have {count} documents, which are noted: {detail}"},
	journal.Unreachable: {"OUTAGE", "the table cannot be reached: {count} messages wait"},
}

// Special cases of a step that have their own line.
const (
	newBurst        = journal.Admitted + " new burst"
	committedDelete = journal.Committed + " delete"
	sameStale       = journal.Stale + " same version"
	sameSuperseded  = journal.Superseded + " same version"
)

// tell returns the line for a note. The function returns an empty word if the step has no line.
func tell(n journal.Note) (word, text string) {
	step := n.Step
	switch {
	case step == journal.Admitted && n.Old.Pending == "":
		step = newBurst
	case step == journal.Committed && n.Op == shard.Delete:
		step = committedDelete
	case step == journal.Stale && n.Detail == shard.SameVersion:
		step = sameStale
	case step == journal.Superseded && n.Detail == shard.SameVersion:
		step = sameSuperseded
	}
	l := lines[step]
	seconds := func(d time.Duration) string {
		if d > 2*time.Minute {
			return d.Round(time.Second).String()
		}
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	text = strings.NewReplacer(
		"{detail}", n.Detail, "{pending}", n.Old.Pending.VersionText(), "{count}", fmt.Sprint(n.Count),
		"{until}", seconds(max(n.Until.Sub(n.At), 0)), "{age}", seconds(n.At.Sub(n.Sent)),
		"{date}", n.Until.UTC().Format(time.RFC3339),
	).Replace(l.text)
	return l.word, text
}
