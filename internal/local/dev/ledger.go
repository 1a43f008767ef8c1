package dev

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/shard"
)

// Ledger counts what became of every event, once each, however often its message is delivered. It
// is a journal.
type Ledger struct {
	seed maphash.Seed

	mu      sync.Mutex
	ends    map[uint64]end // by message and event
	written map[uint64]bool
	dead    map[string]int    // events by dead letter: the first is dead, others are its duplicates
	letters map[uint64]string // dead letter by document and key
	counts  map[end]int
	held    map[uint64]bool
	rewrite int
	reject  int
	refusal map[string]bool // dead letters that receive made
	fresh   histogram
	waiting map[uint64]int // scheduled events by document and key
	earlier int            // events of an earlier life of the data folder that go on in this one
	flights int
	refused int
	alarms  map[journal.Step]int
}

// end is how an event ended.
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
	endScheduled
)

// NewLedger returns an empty ledger.
func NewLedger() *Ledger {
	return &Ledger{
		seed: maphash.MakeSeed(), ends: map[uint64]end{}, written: map[uint64]bool{}, dead: map[string]int{},
		letters: map[uint64]string{},
		counts:  map[end]int{}, held: map[uint64]bool{}, alarms: map[journal.Step]int{}, fresh: histogram{},
		waiting: map[uint64]int{}, refusal: map[string]bool{},
	}
}

func (l *Ledger) hash(a, b string, n int) uint64 {
	var h maphash.Hash
	h.SetSeed(l.seed)
	_, _ = h.WriteString(a)
	_ = h.WriteByte(0)
	_, _ = h.WriteString(b)
	_, _ = h.Write([]byte{0, byte(n), byte(n >> 8)})
	return h.Sum64()
}

// knows says that a version was written in an earlier life: an event with it is a duplicate.
func (l *Ledger) knows(doc shard.DocID, k shard.OrderKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written[l.hash(string(doc), string(k), 0)] = true
}

// awaits says that an event was scheduled in an earlier life and still waits.
func (l *Ledger) awaits(doc shard.DocID, k shard.OrderKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.earlier++
	l.counts[endScheduled]++
	l.waiting[l.hash(string(doc), string(k), 0)]++
}

// Note takes a decision.
func (l *Ledger) Note(n journal.Note) {
	l.mu.Lock()
	defer l.mu.Unlock()
	version := func() uint64 { return l.hash(string(n.Doc), string(n.Key), 0) }
	switch n.Step {
	case journal.Skipped:
		l.end(n, endSkipped)
	case journal.Stale:
		l.end(n, endStale)
	case journal.Superseded:
		l.end(n, endSuperseded)
	case journal.Duplicate:
		// The invocation that committed this version may have died before it could say so.
		if v := version(); !l.written[v] {
			l.commit(n, v)
			return
		}
		l.end(n, endDuplicate)
	case journal.Committed:
		v := version()
		if !l.written[v] && shard.SameContent(n.Old.Committed, n.Key) && n.Op == shard.Put {
			l.rewrite++
		}
		l.commit(n, v)
	case journal.DeadLettered, journal.Dropped:
		if n.Message == "" {
			return // dlq and prune speak of letters, not of messages
		}
		l.die(n)
	case journal.AlreadyDead:
		n.Letter = l.letters[version()]
		l.die(n)
	case journal.Scheduled:
		if l.end(n, endScheduled) {
			l.waiting[version()]++
		}
	case journal.Redriven:
		l.revive(n)
	case journal.Held:
		l.held[l.hash(n.Message, "", n.Event)] = true
	case journal.Launched:
		l.flights++
	case journal.RowRefused:
		l.refused++
	case journal.SinkNewer, journal.Stuck, journal.Schema, journal.Blocked, journal.LeaseLost, journal.Conflict:
		l.alarms[n.Step]++
	}
}

// commit counts the event whose version was written; others with the same version are duplicates.
func (l *Ledger) commit(n journal.Note, version uint64) {
	how := endWritten
	if n.Op == shard.Delete {
		how = endDeleted
	}
	if l.written[version] {
		how = endDuplicate
	}
	if l.end(n, how) && how != endDuplicate {
		l.written[version] = true
		l.fresh.add(n.At.Sub(n.Sent))
	}
}

// die counts the first event of a dead letter as dead, and others as its duplicates: there is one
// letter.
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
			l.letters[l.hash(string(n.Doc), string(n.Key), 0)] = n.Letter
		}
	}
}

// revive takes an event back whose dead letter is sent again: what becomes of the copy counts. A
// letter of an earlier life is an event more.
func (l *Ledger) revive(n journal.Note) {
	if l.dead[n.Letter] == 0 {
		l.earlier++
		return
	}
	l.dead[n.Letter]--
	l.counts[endDead]--
	if l.refusal[n.Letter] {
		delete(l.refusal, n.Letter)
		l.reject--
	}
}

// end counts an event once; it reports whether this was the first time.
func (l *Ledger) end(n journal.Note, how end) bool {
	id := l.hash(n.Message, "", n.Event)
	if l.ends[id] != 0 {
		return false
	}
	l.ends[id] = how
	l.counts[how]++
	if n.Key == "" || how == endScheduled {
		return true
	}
	// the copy of a scheduled event has come to its end
	if v := l.hash(string(n.Doc), string(n.Key), 0); l.waiting[v] > 0 {
		l.waiting[v]--
		l.counts[endScheduled]--
	}
	return true
}

// scheduled is how many events wait for their notbefore.
func (l *Ledger) scheduled() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[endScheduled]
}

// histogram counts durations by the millisecond.
type histogram map[int64]int

func (h histogram) add(d time.Duration) { h[max(d.Milliseconds(), 0)]++ }
