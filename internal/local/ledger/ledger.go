package ledger

import (
	"cmp"
	"hash/maphash"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// Ledger counts the outcome of every event once, even if its message is delivered several times. It
// is a journal, and safe for concurrent use.
type Ledger struct {
	Meter  Meter     // of I/O
	Bursts Debouncer // of arrivals

	mu       sync.Mutex
	began    time.Time // start of a run that continues an earlier run; otherwise zero
	seed     maphash.Seed
	messages int
	bytes    int // of the messages' bodies
	events   int
	ends     map[uint64]end    // by event
	written  map[uint64]bool   // by version
	dead     map[string]int    // events by dead letter: the first is dead, the others are duplicates of it
	letters  map[uint64]string // dead letter by version
	counts   map[end]int
	held     map[uint64]bool // by event
	rewrite  int
	steps    map[journal.Step]int // only those that are counts themselves
	reject   int
	refusal  map[string]bool // dead letters that receive made
	fresh    histogram
	waiting  map[uint64]int // scheduled events by version
	flights  int
	recent   recent
	outages  []Outage             // the latest ones, by sink
	airborne map[string]time.Time // by flight
	flown    time.Duration
}

// Events and versions are kept as hashes: a long run has millions of them.
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

// plain are the steps that are an outcome themselves.
var plain = map[journal.Step]end{
	journal.Skipped: endSkipped, journal.Stale: endStale, journal.Superseded: endSuperseded,
	journal.ObjectRead: endRead, journal.ObjectDone: endRead,
}

// New returns an empty ledger. step is the length of a Point; 0 is a second.
func New(step time.Duration) *Ledger {
	return &Ledger{
		recent: recent{step: cmp.Or(step, time.Second)}, airborne: map[string]time.Time{},
		seed: maphash.MakeSeed(), ends: map[uint64]end{}, written: map[uint64]bool{}, dead: map[string]int{},
		letters: map[uint64]string{}, counts: map[end]int{}, held: map[uint64]bool{}, refusal: map[string]bool{},
		fresh: histogram{}, waiting: map[uint64]int{},
		steps: map[journal.Step]int{},
	}
}

// Sent counts a message of the upstream, or one that receive made from an object.
func (l *Ledger) Sent(at time.Time, bytes, events int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recent.arrived(at, events)
	l.messages++
	l.bytes += bytes
	l.events += events
}

// MeanBytes is the average size of a message's body.
func (l *Ledger) MeanBytes() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes / max(l.messages, 1)
}

// Resume says that an earlier run sent the messages before that time. Each of their events counts
// in this run if it ends here.
func (l *Ledger) Resume(began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.began = began.Truncate(time.Millisecond) // in milliseconds, as in SQS's time of sending
}

// Knows records that an earlier run on the data folder wrote a version. An event with that version
// is a duplicate.
func (l *Ledger) Knows(doc shard.DocID, k shard.OrderKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written[l.version(doc, k)] = true
}

// Awaits records an event that an earlier run on the data folder scheduled and that is not due yet.
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
		l.end(n, plain[n.Step])
	case journal.Committed:
		if !l.written[v] && shard.SameContent(n.Old.Committed, n.Key) && n.Op == shard.Put {
			l.rewrite++
		}
		l.commit(n, v)
	case journal.Kept, journal.Duplicate:
		// The invocation that committed a duplicate's version may have been killed before it logged
		// this.
		l.commit(n, v)
	case journal.DeadLettered, journal.Dropped:
		if n.Message == "" {
			return // dlq and prune log dead letters, not messages
		}
		l.die(n)
	case journal.AlreadyDead:
		n.Letter = l.letters[v]
		l.die(n)
	case journal.Scheduled:
		if l.inherited(n) && l.waiting[v] > 0 { // the earlier run stored it, but did not delete its message
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

// commit counts an event whose version was written, or is already in the sink. Further events with
// that version are duplicates.
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

// die counts the first event of a dead letter as dead. Further events of it are duplicates, because
// there is only one dead letter.
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

// revive uncounts a dead event whose dead letter is redriven: the outcome of the copy counts. A
// dead letter of an earlier run adds one event.
func (l *Ledger) revive(n journal.Note) {
	if l.dead[n.Letter] == 0 {
		l.events++
		return
	}
	l.dead[n.Letter]--
	l.counts[endDead]--
	if l.refusal[n.Letter] {
		delete(l.refusal, n.Letter)
		l.reject--
	}
}

// end counts the outcome of an event, unless it is already counted. It returns false if it is.
func (l *Ledger) end(n journal.Note, how end) bool {
	id := l.event(n)
	if l.ends[id] != 0 {
		return false
	}
	l.ends[id] = how
	l.counts[how]++
	l.recent.ended(n.At, how)
	// the copy of a scheduled event has its outcome
	if v := l.version(n.Doc, n.Key); n.Key != "" && how != endScheduled && l.waiting[v] > 0 {
		l.waiting[v]--
		l.counts[endScheduled]--
	} else if l.inherited(n) {
		l.events++
	}
	return true
}

// Flown is the total duration of all flights that ended.
func (l *Ledger) Flown() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flown
}

// Scheduled is how many events wait for their notbefore.
func (l *Ledger) Scheduled() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[endScheduled]
}

// inherited reports whether an earlier run sent the event's message.
func (l *Ledger) inherited(n journal.Note) bool { return !n.Sent.IsZero() && n.Sent.Before(l.began) }

// histogram counts durations in milliseconds.
type histogram map[int64]int

func (h histogram) add(d time.Duration) { h[max(d.Milliseconds(), 0)]++ }
