// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// evidence is all that is known about a document.
type evidence struct {
	row, health shard.Row
	letters     []Letter // oldest first
	held        []Held   // newest version first
	planned     []ScheduledEvent
	sink        sinkAnswer
	away        bool      // messages wait in the queue undecoded, because the sink is away for long
	undecoded   int       // number of messages in the sink's queues, which may be about any document
	putOff      time.Time // until when messages may be put off after the sink is back; see putOffUntil
	ahead       string    // why the committed version is far too high; empty if it is not
	now         shard.Micros
	timing      shard.Timing
	visibility  time.Duration
	patience    time.Duration // how late the turn of a flight may be
	ceiling     int64         // maxDocumentsPerSecond in thousandths, 0 for no limit
	collection  shard.Collection
	decisions   []Decision // the latest ones; none if the stack keeps none
}

// sinkAnswer is the answer of a sink about a document.
type sinkAnswer struct {
	why     string // why there is no answer; empty if there is one
	found   bool
	bytes   shard.Bytes    // the sink's bytes compared with the row's digest
	key     shard.OrderKey // empty if lull did not write the document
	version string
	at      time.Time
}

// listed returns the state that the table alone shows. Lists show this state, and
// [evidence.verdict] begins with it.
func (e *evidence) listed() State {
	r := e.row
	if !r.Exists() {
		return e.listedRowless()
	}
	newest := newestLetter(r, e.letters)
	switch {
	case r.Foreign():
		return StateUnreadable
	case r.Pending > r.Committed && r.Leased(e.now):
		return StateClaimed
	case r.Pending > r.Committed:
		return StateWaiting
	case newest != nil && newest.State == deadletter.Redriven:
		return StateRedriven
	case newest != nil:
		return StateDead
	case r.Committed == "" && len(e.planned) > 0:
		return StateScheduled
	case r.Committed == "":
		return StateDropped
	case r.Committed.IsFloor():
		return StateReset
	case r.Committed.IsFinal():
		return StateForgotten
	case e.ahead != "":
		return StateFarAhead
	case len(e.planned) > 0:
		return StateScheduled
	}
	return StateFresh
}

func (e *evidence) listedRowless() State {
	n := len(e.letters)
	switch {
	case len(e.planned) > 0:
		return StateScheduled
	case n > 0 && e.letters[n-1].State == deadletter.Redriven:
		return StateRedriven
	case n > 0:
		return StateDead
	case e.sink.found:
		return StateCollected
	}
	return StateNobody
}

// verdict returns the state of the document, and a few sentences that say why the document is in
// it.
func (e *evidence) verdict() (State, string) {
	listed := e.listed()
	decide := e.resting
	switch {
	case listed == StateUnreadable:
		return listed, "Its row has a newer schema than this program: update lull."
	case listed == StateClaimed || listed == StateWaiting:
		return e.onItsWay()
	case !e.row.Exists():
		decide = e.rowless
	}
	state, text := decide(listed)
	if state == StateFresh && e.conflicted() {
		text += " But another event has the same version and other content, and lull refused it: the later event time " +
			"wins, then the greater digest. If the wrong content won, publish the document with a greater version."
	}
	if (e.away || e.health.PausedAt != 0) && e.undecoded > 0 {
		// Messages that are not decoded may be about any document.
		why := "the sink is away for long"
		if e.health.PausedAt != 0 {
			why = e.paused()
		}
		text += fmt.Sprintf(" But %s: receive leaves messages undecoded, and one of the %d in its queues may be about it.",
			why, e.undecoded)
		if state == StateFresh || state == StateNobody || state == StateScheduled || state == StateCollected {
			if state = StateAway; e.health.PausedAt != 0 {
				state = StatePaused
			}
		}
	}
	if !e.putOff.IsZero() && e.undecoded > 0 {
		text += fmt.Sprintf(" But %s: one of the %d messages in its queues may be about it.", e.cameBack(), e.undecoded)
	}
	return state, text
}

// conflicted reports whether the decisions know another event with the committed version and other
// content.
func (e *evidence) conflicted() bool {
	return slices.ContainsFunc(e.decisions, func(d Decision) bool {
		return d.Decided == journal.Conflict && d.Version == e.row.Committed.VersionText()
	})
}

// cameBack says until when the sink was away, and by when its messages are received again.
func (e *evidence) cameBack() string {
	return fmt.Sprintf("the sink was away until %s%s, and what was put off is received again by %s",
		clockText(e.health.LastWrite), e.cause(), e.putOff.UTC().Format(clockLayout))
}

// cause returns in brackets why the sink last refused documents; empty if that is not known.
func (e *evidence) cause() string {
	if e.health.LastError == "" {
		return ""
	}
	return " (" + e.health.LastError + ")"
}

// paused says who paused the sink, when and why.
func (e *evidence) paused() string {
	text := fmt.Sprintf("%s paused the sink at %s", e.health.PausedBy, clockText(e.health.PausedAt))
	if e.health.PausedWhy != "" {
		text += " (" + e.health.PausedWhy + ")"
	}
	return text + ", until `lull resume`"
}

// onItsWay returns the verdict for a row with a pending version.
func (e *evidence) onItsWay() (State, string) {
	r, k := e.row, e.row.Pending
	v := k.VersionText()
	say := func(s State, format string, args ...any) (State, string) {
		text := fmt.Sprintf("Version %s ", v) + fmt.Sprintf(format, args...)
		if e.sink.why == "" && e.sink.found && e.sink.key == k {
			text += " The sink has this version already: only the row does not know."
		}
		return s, text
	}
	// A version without a flight is not written before its message is received again.
	unheld := ""
	if !e.holds(k) {
		unheld = " No flight holds it at the moment: " + e.again()
	}
	switch {
	case r.Leased(e.now):
		return say(StateClaimed, "is being written, or the answer of its write was lost: the lease runs until %s.",
			clockText(r.LeaseUntil))
	case r.Claimed > k:
		what := "redrive its dead letter first"
		if !e.letterOf(r.Claimed) {
			what = "if its dead letter was dropped, publish a newer version"
		}
		return say(StateBlocked, "waits because version %s was claimed, got no answer and may be in the sink: %s.",
			r.Claimed.VersionText(), what)
	case e.health.PausedAt != 0:
		return say(StatePaused, "waits: %s.%s", e.paused(), unheld)
	case e.health.OpenUntil != 0:
		return say(StateOpen, "waits for the sink, which is unhealthy%s: nothing is claimed before %s.%s",
			e.cause(), clockText(e.health.OpenUntil), unheld)
	case r.Attempts > 0:
		return say(StateUnknown, "was claimed %s without an answer; it is tried again, in smaller groups each time.%s",
			times(r.Attempts), unheld)
	case r.Refusals > 0:
		return say(StateRefused, "was refused by the sink %s (%s); it is tried again after a back-off.%s",
			times(r.Refusals), r.LastError, unheld)
	case r.Claimed == k && strings.HasPrefix(r.LastError, sink.Configuration.String()):
		return say(StateConfigured, "was not taken by the sink (%s): correct the sink; it is tried again until then.%s",
			r.LastError, unheld)
	case r.Claimed == k && strings.HasPrefix(r.LastError, sink.Throttled.String()):
		return say(StateThrottled, "was not taken by the sink (%s); it is tried again after a back-off.%s", r.LastError,
			unheld)
	case r.Claimed == k && r.LastError != "":
		return say(StatePostponed, "was not written (%s); it is tried again after a back-off.%s", r.LastError, unheld)
	}
	waited := e.now.Sub(r.BurstStart)
	if unheld != "" && !e.putOff.IsZero() && r.BurstStart <= e.health.LastWrite {
		return say(StateUnheld, "was admitted, %s into its burst, and put off: %s.", waited.Round(100*time.Millisecond),
			e.cameBack())
	}
	if unheld != "" && (shard.Pace(e.health, e.now) > 0 || e.ceiling > 0 && shard.Ahead(e.health, e.now) > 0) {
		return say(StateThrottled, "waits in the queue for its share of the sink, which takes fewer documents than are due: "+
			"its message is received again within four minutes, or %s after a receive if its flight was lost.", e.visibility)
	}
	if unheld != "" {
		return say(StateUnheld, "was admitted, %s into its burst, but no flight holds it: it was not launched, or its "+
			"flight was lost. %s", waited.Round(100*time.Millisecond), capital(e.again()))
	}
	due := e.due(k)
	if pace := shard.Pace(e.health, e.now); pace > 0 && due.Before(e.now.Time()) {
		if shard.SlowStart(e.health, e.now) {
			return say(StateThrottled, "was due at %s, and waits for its share: the sink is back after a pause or an outage, "+
				"and what waited goes at a pace that grows, now %.1f documents a second.",
				due.UTC().Format(clockLayout), float64(pace)/1000)
		}
		return say(StateThrottled, "was due at %s, and waits for its share: the sink throttles, and all flights together "+
			"write %.1f documents a second.", due.UTC().Format(clockLayout), float64(pace)/1000)
	}
	if e.ceiling > 0 && shard.Ahead(e.health, e.now) > 0 && due.Before(e.now.Time()) {
		return say(StateThrottled, "was due at %s, and waits for its share: more is due than maxDocumentsPerSecond lets go, "+
			"%g documents a second.", due.UTC().Format(clockLayout), float64(e.ceiling)/1000)
	}
	if e.now.Sub(shard.MicrosOf(due)) > e.patience {
		return say(StateLate, "was due at %s, and its flight %s has not come: it never started, or was stopped. %s",
			due.UTC().Format(clockLayout), r.Flight, capital(e.again()))
	}
	if pace := e.timing.MinInterval; pace > e.timing.Quiet && r.LastWrite != 0 && r.LastWrite.Add(pace) > e.now {
		return say(StateWaiting, "waits for its pace: the document was written %s ago, and is written once in %s at most. "+
			"Due at %s.", e.now.Sub(r.LastWrite).Round(100*time.Millisecond), pace, due.UTC().Format(clockLayout))
	}
	return say(StateWaiting,
		"waits for the lull: %s into its burst; written %s after the last change, at the latest %s after the first.",
		waited.Round(100*time.Millisecond), e.timing.Quiet, e.timing.MaxWait)
}

// again says when a message without a flight is received again.
func (e *evidence) again() string {
	if e.away {
		return "its sink is away for long, and its message waits in the queue, for a third of the outage and at most four " +
			"minutes each time."
	}
	return fmt.Sprintf("its message is received again when its visibility ends, %s after a receive unless it was "+
		"extended.", e.visibility)
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func capital(s string) string { return string(s[0]-'a'+'A') + s[1:] }

// letterOf reports whether there is a dead letter of a version.
func (e *evidence) letterOf(k shard.OrderKey) bool {
	return slices.ContainsFunc(e.letters, func(l Letter) bool { return l.OrderKey == k.String() })
}

func (e *evidence) holds(k shard.OrderKey) bool { return !e.due(k).IsZero() }

// due returns when the version is due in its flight, or the zero time if no flight holds it.
func (e *evidence) due(k shard.OrderKey) time.Time {
	for _, h := range e.held {
		if h.OrderKey == k.String() {
			return h.Due
		}
	}
	return time.Time{}
}

// rowless returns the verdict for a document without a row.
func (e *evidence) rowless(listed State) (State, string) {
	last := func() Letter { return e.letters[len(e.letters)-1] }
	switch {
	case listed == StateScheduled:
		return listed, "No event of this document was judged yet." + e.plans()
	case listed == StateRedriven:
		return listed, fmt.Sprintf(
			"Nothing was ever committed: its dead letter (%s) was redriven at %s and is judged when it is received.",
			last().Reason, last().Redriven.UTC().Format(clockLayout))
	case len(e.letters) == 1:
		return listed, fmt.Sprintf("Nothing was ever committed: its only event is a dead letter (%s).",
			e.letters[0].Reason)
	case listed == StateDead:
		return listed, fmt.Sprintf(
			"Nothing was ever committed: its only events are %d dead letters, the last for %s.", len(e.letters),
			last().Reason)
	case listed == StateCollected:
		return listed, fmt.Sprintf(
			"The sink holds version %s since %s, and its row is gone: it was collected, because nothing came for as "+
				"long as rows are kept, or the table lost it. The next event begins a new row.", e.sink.version,
			e.sink.at.UTC().Format(clockLayout))
	}
	text := "No event of this document was ever judged, or its row was deleted after the retention of rows."
	if e.sink.why != "" {
		text += " " + e.unasked()
	}
	if e.undecoded > 0 && !e.away {
		text += fmt.Sprintf(" Its sink's queues hold %d messages, and one of them may be about it.", e.undecoded)
	}
	return listed, text
}

// plans says which versions are scheduled.
func (e *evidence) plans() string {
	if len(e.planned) == 0 {
		return ""
	}
	p := e.planned[0]
	text := fmt.Sprintf(" Version %s is scheduled: it is sent at %s", p.Version, p.NotBefore.UTC().Format(clockLayout))
	if n := len(e.planned) - 1; n > 0 {
		text += fmt.Sprintf(", and %d more after it", n)
	}
	return text + "."
}

func (e *evidence) unasked() string { return "The sink was not asked (" + e.sink.why + ")." }

// dead returns the sentence for a row whose newest version is a dead letter.
func (e *evidence) dead(listed State, newest *Letter) string {
	r := e.row
	now, then := "Nothing is in the sink",
		"an older good version follows by itself if one is held; otherwise fix the cause and `lull dead redrive`"
	if r.Committed != "" {
		now, then = fmt.Sprintf("Version %s is in the sink", r.Committed.VersionText()),
			"fix the cause and `lull dead redrive`"
		if r.CommittedOp == shard.Delete {
			now = fmt.Sprintf("It was deleted by version %s", r.Committed.VersionText())
		}
		if state, _ := e.compare(); state != StateFresh {
			now = fmt.Sprintf("Version %s is committed, but the sink does not show it: see `lull index check %s`",
				r.Committed.VersionText(), e.collection)
		}
	}
	what := "the newer version"
	if r.Committed == "" {
		what = "version"
	}
	if listed == StateRedriven {
		return fmt.Sprintf(
			"%s; %s %s, a dead letter (%s), was redriven at %s and is judged when it is received.%s", now, what,
			newest.Version, newest.Reason, newest.Redriven.UTC().Format(clockLayout), e.plans())
	}
	return fmt.Sprintf("%s; %s %s is a dead letter (%s): %s.%s", now, what, newest.Version, newest.Reason,
		then, e.plans())
}

// newestLetter returns the dead letter of the newest version above the committed one, or nil.
func newestLetter(r shard.Row, letters []Letter) *Letter {
	var newest *Letter
	var key shard.OrderKey
	for i, l := range letters {
		if k, err := shard.ParseOrderKey(l.OrderKey); err == nil && k > r.Committed && k > key && !r.Took(k) {
			newest, key = &letters[i], k
		}
	}
	return newest
}

const clockLayout = "2006-01-02T15:04:05.000Z07:00"

func clockText(m shard.Micros) string { return m.Time().Format(clockLayout) }
