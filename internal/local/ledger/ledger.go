// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"hash/maphash"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// Ledger counts the outcome of every event once, even if its message is delivered several times. A
// Ledger is a journal.Journal, and is safe for concurrent use.
type Ledger struct {
	Meter  Meter     // counts I/O
	Bursts Debouncer // counts the bursts of arriving events

	mu       sync.Mutex
	began    time.Time // start of a run that continues an earlier run; otherwise zero
	seed     maphash.Seed
	messages int
	bytes    int // total size of the bodies of messages
	events   int
	ends     map[uint64]end    // by event
	written  map[uint64]bool   // by version
	dead     map[string]int    // by dead letter: how many of its events count as dead
	letters  map[uint64]string // by version: the id of its dead letter
	counts   map[end]int
	held     map[uint64]bool // by event
	rewrite  int
	steps    map[journal.Step]int // how often a step occurred, for steps that are counters of the report
	reject   int
	refusal  map[string]bool // the ids of dead letters that receive made
	fresh    histogram
	waiting  map[uint64]int // by version: how many scheduled events wait
	flights  int
	recent   history
	parts    parts
	outages  []Outage             // the latest outages of all sinks
	airborne map[string]time.Time // by flight
	flown    time.Duration
}

// Events and versions are stored as hashes to save memory, because a long run has millions of them.
type (
	event struct {
		message string
		index   int
	}
	version struct {
		doc shard.DocID
		key shard.OrderKey
	}
)

func (l *Ledger) event(n journal.Note) uint64 {
	return maphash.Comparable(l.seed, event{n.Message, n.Event})
}

func (l *Ledger) version(doc shard.DocID, k shard.OrderKey) uint64 {
	return maphash.Comparable(l.seed, version{doc, k})
}

// end is the outcome of an event.
type end byte

const (
	_ end = iota
	endSkipped
	endDead
	endDuplicate
	endStale
	endSuperseded
	endWritten
	endDeleted
	endUnchanged
	endScheduled
	endRead
)

// outcomes maps steps of the journal that are an outcome of an event to that outcome.
var outcomes = map[journal.Step]end{
	journal.Skipped: endSkipped, journal.Stale: endStale, journal.Superseded: endSuperseded,
	journal.ObjectRead: endRead, journal.ObjectDone: endRead,
}

// New returns an empty ledger. step is the time that a Point covers; 0 means a second.
func New(step time.Duration) *Ledger {
	return &Ledger{
		recent: newHistory(cmp.Or(step, time.Second)), parts: parts{}, airborne: map[string]time.Time{},
		seed: maphash.MakeSeed(), ends: map[uint64]end{}, written: map[uint64]bool{}, dead: map[string]int{},
		letters: map[uint64]string{}, counts: map[end]int{}, held: map[uint64]bool{}, refusal: map[string]bool{},
		fresh: histogram{}, waiting: map[uint64]int{},
		steps: map[journal.Step]int{},
	}
}

// Sent counts a message that the upstream sent, or that receive made from an object.
func (l *Ledger) Sent(at time.Time, bytes, events int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recent.arrived(at, events)
	l.messages++
	l.bytes += bytes
	l.events += events
}

// MeanBytes returns the average size of the body of a message.
func (l *Ledger) MeanBytes() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes / max(l.messages, 1)
}

// Resume records that an earlier run sent all messages before the given time. An event of such a
// message counts in this run if it gets its outcome in this run.
func (l *Ledger) Resume(began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.began = began.Truncate(time.Millisecond) // in milliseconds, like the SentTimestamp of SQS
}

// Knows records that an earlier run wrote a version. A later event with that version is a
// duplicate.
func (l *Ledger) Knows(doc shard.DocID, k shard.OrderKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written[l.version(doc, k)] = true
}

// Awaits records an event that an earlier run scheduled and that is not due yet.
func (l *Ledger) Awaits(doc shard.DocID, k shard.OrderKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events++
	l.counts[endScheduled]++
	l.waiting[l.version(doc, k)]++
}

// Note counts a decision.
func (l *Ledger) Note(n journal.Note) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.version(n.Doc, n.Key)
	switch n.Step {
	case journal.Fetched, journal.FetchFailed, journal.Enriched, journal.EnrichCalled, journal.EnrichFailed:
		l.steps[n.Step]++
	case journal.Skipped, journal.Stale, journal.Superseded, journal.ObjectRead, journal.ObjectDone:
		l.end(n, outcomes[n.Step])
	case journal.Committed:
		if !l.written[v] && shard.SameContent(n.Old.Committed, n.Key) && n.Op == shard.Put {
			l.rewrite++
		}
		l.commit(n, v)
	case journal.Kept, journal.Duplicate:
		// A duplicate may count as written: the invocation that wrote its version may have been
		// killed before it logged the commit.
		l.commit(n, v)
	case journal.DeadLettered, journal.Dropped:
		if n.Message == "" {
			return // dlq and prune log dead letters without a message, which the ledger does not count
		}
		l.die(n)
	case journal.AlreadyDead:
		n.Letter = l.letters[v]
		l.die(n)
	case journal.Scheduled:
		if l.inherited(n) && l.waiting[v] > 0 { // the earlier run stored the event, but did not delete its message
			l.ends[l.event(n)] = endScheduled
		} else if l.end(n, endScheduled) {
			l.waiting[v]++
		}
	case journal.Redriven:
		l.revive(n)
	case journal.Held:
		l.held[l.event(n)] = true
	case journal.Launched:
		l.flights++
		l.airborne[n.Flight] = n.At
	case journal.CircuitOpened, journal.CircuitClosed, journal.Paused, journal.Resumed:
		l.outage(n)
	case journal.Ended, journal.FlightLost, journal.TwelveHours:
		if at, ok := l.airborne[n.Flight]; ok {
			l.flown += n.At.Sub(at)
			delete(l.airborne, n.Flight)
		}
	}
}

// commit counts an event whose version was written, or was already in the sink. Every further event
// with that version counts as a duplicate.
func (l *Ledger) commit(n journal.Note, version uint64) {
	how := endWritten
	if n.Op == shard.Delete {
		how = endDeleted
	}
	if n.Step == journal.Kept {
		how = endUnchanged
	}
	if l.written[version] {
		how = endDuplicate
	}
	if l.end(n, how) && how != endDuplicate {
		l.written[version] = true
		l.fresh.add(n.At.Sub(n.Sent))
		l.recent.freshness(n.At, n.At.Sub(n.Sent))
	}
}

// die counts the first event of a dead letter as dead. Every further event of that dead letter
// counts as a duplicate.
func (l *Ledger) die(n journal.Note) {
	if n.Letter != "" && l.dead[n.Letter] > 0 {
		l.end(n, endDuplicate)
		return
	}
	if !l.end(n, endDead) {
		return
	}
	if n.Flight == "" && (n.Step == journal.DeadLettered || n.Step == journal.Dropped) {
		l.reject++
		l.refusal[n.Letter] = true
	}
	if n.Letter != "" {
		l.dead[n.Letter]++
		if n.Key != "" {
			l.letters[l.version(n.Doc, n.Key)] = n.Letter
		}
	}
}

// revive subtracts a dead event whose dead letter is redriven, because the redriven copy will get
// another outcome. If the dead letter comes from an earlier run, revive adds one event instead.
func (l *Ledger) revive(n journal.Note) {
	if l.dead[n.Letter] == 0 {
		l.events++
		return
	}
	l.dead[n.Letter]--
	l.counts[endDead]--
	l.parts.ended(n, endDead, -1)
	if l.refusal[n.Letter] {
		delete(l.refusal, n.Letter)
		l.reject--
	}
}

// end counts the outcome of an event. The method returns false and counts nothing if the event
// already has an outcome.
func (l *Ledger) end(n journal.Note, how end) bool {
	id := l.event(n)
	if l.ends[id] != 0 {
		return false
	}
	l.ends[id] = how
	l.counts[how]++
	l.recent.ended(n.At, how)
	l.parts.ended(n, how, 1)
	// This event is the copy of a scheduled event, which no longer waits.
	if v := l.version(n.Doc, n.Key); n.Key != "" && how != endScheduled && l.waiting[v] > 0 {
		l.waiting[v]--
		l.counts[endScheduled]--
	} else if l.inherited(n) {
		l.events++
	}
	return true
}

// Flown returns the total duration of all flights that have ended.
func (l *Ledger) Flown() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flown
}

// Scheduled returns how many events wait for their notbefore.
func (l *Ledger) Scheduled() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[endScheduled]
}

// inherited reports whether the message of the event was sent during an earlier run.
func (l *Ledger) inherited(n journal.Note) bool { return !n.Sent.IsZero() && n.Sent.Before(l.began) }

// histogram counts durations in milliseconds.
type histogram map[int64]int

func (h histogram) add(d time.Duration) { h[max(d.Milliseconds(), 0)]++ }
