package ground

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/shard"
)

// decision is one line of a function's decision log. Its times are the function's own.
type decision struct {
	At      time.Time    `json:"timestamp"`
	Step    journal.Step `json:"msg"`
	Request string       `json:"requestId"`
	Flight  string       `json:"flight"`
	Doc     shard.DocID  `json:"doc"`
	Version string       `json:"version"` // the order key
	Message string       `json:"message"`
	AgeMS   int64        `json:"age_ms"`
	Until   time.Time    `json:"until"`
	Detail  string       `json:"detail"`
	Wake    time.Time    `json:"wake"` // turn: when the state machine was asked to wake the flight
}

// sent is when the message of a decision was sent.
func (d decision) sent() time.Time { return d.At.Add(-time.Duration(d.AgeMS) * time.Millisecond) }

// turn is what index logs when a turn begins.
const turn journal.Step = "turn"

// decisions are what the functions of a stack decided, in the order in which it was read. It is
// whole where the stack logs at DEBUG.
type decisions []decision

// add takes one line of a log; other lines than decisions have none.
func (all *decisions) add(line string) {
	var d decision
	if json.Unmarshal([]byte(line), &d) == nil && d.Step != "" {
		*all = append(*all, d)
	}
}

// Decided waits until the log tells of a step, with that in its detail, since a time.
func (s *Stack) Decided(t testing.TB, since time.Time, step journal.Step, detail string) {
	t.Helper()
	Until(t, fmt.Sprintf("the log tells of %s, %q", step, detail), func() (bool, string) {
		counts := s.Counts(t)
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.ContainsFunc(s.decided, func(d decision) bool {
			return d.Step == step && d.At.After(since) && strings.Contains(d.Detail, detail)
		}), fmt.Sprint(counts)
	})
}

// Dies waits until a flight that is not among the known ones has died of bad settings: the first
// try and two retries, each a lease apart. Then nobody works on it any more. Samples of prune, and
// flights of an earlier test, may meet the same settings.
func (s *Stack) Dies(t testing.TB, known []flight.ID) {
	t.Helper()
	Until(t, "a new flight has been tried three times", func() (bool, string) {
		counts := s.Counts(t)
		s.mu.Lock()
		defer s.mu.Unlock()
		tries := make(map[string]int)
		for _, d := range s.decided {
			if d.Step == "bad settings" && d.Flight != "" && !slices.Contains(known, flight.ID(d.Flight)) {
				tries[d.Flight]++
			}
		}
		manifests := s.FlightIDs(t)
		return slices.ContainsFunc(manifests, func(f flight.ID) bool { return tries[string(f)] >= 3 }),
			fmt.Sprint(tries, counts)
	})
}

// hostShare is how long a host takes at most, where it keeps up, from the begin of a turn to its
// claims: the manifest, the rows, and the claims of as many documents as are due.
const hostShare = 2 * time.Second

// burst is what the log tells of the burst of one document.
type burst struct {
	sent     map[string]time.Time // message -> when it was sent
	received time.Duration        // how long the slowest message waited to be received
	due      time.Time            // of the version that was written last
	writes   int                  // commits
	claim    decision             // the last
	wake     decision             // of the claim's turn
	busy     time.Time            // until when an earlier turn of its flight lasted
	passed   int                  // turns of its flight that began when it was due, and left it
}

// bursts sorts what was decided by document.
func (all decisions) bursts(collection string) map[shard.DocID]*burst {
	of := make(map[shard.DocID]*burst)
	turns, last := make(map[string]decision), make(map[string]time.Time) // by request
	due := make(map[shard.DocID]map[string]time.Time)                    // version -> when it is due
	for _, d := range all {
		if last[d.Request] = d.At; d.Step == turn {
			turns[d.Request] = d
		}
		if !strings.HasPrefix(string(d.Doc), collection+"#") {
			continue
		}
		b := of[d.Doc]
		if b == nil {
			b = &burst{sent: make(map[string]time.Time)}
			of[d.Doc], due[d.Doc] = b, make(map[string]time.Time)
		}
		switch d.Step {
		case journal.Held, journal.Stale, journal.Duplicate:
			if _, again := b.sent[d.Message]; !again {
				b.sent[d.Message] = d.sent()
				b.received = max(b.received, time.Duration(d.AgeMS)*time.Millisecond)
			}
			if !d.Until.IsZero() {
				due[d.Doc][d.Version] = d.Until
			}
		case journal.Claimed:
			b.claim = d
		case journal.Committed:
			b.writes++
		}
	}
	for doc, b := range of {
		b.wake, b.due = turns[b.claim.Request], due[doc][b.claim.Version]
		for request, other := range turns {
			if other.Flight != b.wake.Flight || !other.At.Before(b.wake.At) {
				continue
			}
			if last[request].After(b.busy) {
				b.busy = last[request]
			}
			if !b.due.IsZero() && other.At.After(b.due) {
				b.passed++
			}
		}
	}
	return of
}

// Timely fails the test unless every document of a collection was written as fast and as seldom as
// lull promises. One burst of each was sent.
//
// What lull decides is judged of every burst: when it asked to be woken, and that the first turn
// which began when the burst was due wrote it. How long an emulator takes to wake a flight, and the
// host to run it, is told and not judged. Writes are counted of the bursts that the host kept up
// with: those sent within the spread of bursts, received within the window and 2 s, and claimed
// within 2 s of their turn's begin. Where these are not even half, the test proves nothing and
// fails.
func (s *Stack) Timely(t *testing.T, collection string, documents int) {
	t.Helper()
	var of map[shard.DocID]*burst
	// Logs arrive after an invocation has ended.
	Until(t, "the log tells of every document's commit", func() (bool, string) {
		s.Counts(t)
		s.mu.Lock()
		of = s.decided.bursts(collection)
		s.mu.Unlock()
		committed := 0
		for _, b := range of {
			committed += min(b.writes, 1)
		}
		return committed >= documents, fmt.Sprintf("%d of %d", committed, documents)
	})
	report, faults := judge(of, s.Config.Queues.Live.Window, s.Config.Queues.BurstSpread)
	t.Log(report)
	for _, fault := range faults {
		t.Error(fault)
	}
}

// judge compares bursts with what lull promises of them, and says what it saw.
func judge(of map[shard.DocID]*burst, window, spread time.Duration) (report string, faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	var kept, writes, other int
	var age, share, late []time.Duration
	for _, doc := range slices.Sorted(maps.Keys(of)) {
		b := of[doc]
		if b.wake.Wake.IsZero() || b.due.IsZero() {
			fault("%s: the log does not tell when its flight was woken, or when its version was due", doc)
			continue
		}
		delivered := b.wake.At
		if b.due.After(delivered) {
			delivered = b.due // an emulator may wake early
		}
		age = append(age, b.claim.At.Sub(b.claim.sent()))
		share = append(share, b.claim.At.Sub(delivered))
		late = append(late, b.wake.At.Sub(b.wake.Wake))
		// A flight takes one turn after the other, for what is due within a window, and wakes in whole
		// seconds.
		ready := b.due
		if b.busy.After(ready) {
			ready = b.busy
		}
		if asked := b.wake.Wake.Sub(ready); asked > window+time.Second {
			fault("%s: the state machine was asked to wake its flight %s after it was due, want at most %s", doc, asked,
				window+time.Second)
		}
		if b.passed > 0 {
			fault("%s: %d turns of its flight began when it was due, and did not claim it", doc, b.passed)
		}
		sent := slices.SortedFunc(maps.Values(b.sent), time.Time.Compare)
		if sent[len(sent)-1].Sub(sent[0]) > spread || b.received > window+2*time.Second ||
			b.claim.At.Sub(delivered) > hostShare {
			other += b.writes
			continue
		}
		kept++
		writes += b.writes
	}
	if kept*2 < len(of) {
		fault("the host kept up with %d of %d bursts: it is too slow to tell how fresh documents are", kept, len(of))
	}
	if float64(writes) > 1.05*float64(kept) {
		fault("%d writes for %d bursts, want at most 1.05 for each", writes, kept)
	}
	return fmt.Sprintf("the host kept up with %d of %d bursts: %d writes, and %d for the others; from sending to the "+
		"claim %s; from the wake to the claim %s; woken after the time that was asked for by %s", kept, len(of), writes,
		other, typical(age), typical(share), typical(late)), faults
}

// typical tells the median and the greatest of some durations.
func typical(all []time.Duration) string {
	if len(all) == 0 {
		return "an unknown time"
	}
	slices.Sort(all)
	return fmt.Sprintf("%s (at most %s)", all[len(all)/2].Round(time.Millisecond),
		all[len(all)-1].Round(time.Millisecond))
}
