// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// stepTurn is the step that index logs when a turn begins.
const stepTurn journal.Step = "turn"

// hostShare is the longest time that a host which is fast enough needs from the start of a turn to
// its claims. In this time, the turn reads the manifest and the rows, and claims all documents that
// are due.
const hostShare = 2 * time.Second

// burst is what the decision log shows about the burst of one document.
type burst struct {
	sent     map[string]time.Time // message -> when it was sent
	received time.Duration        // how long the slowest message waited to be received
	due      time.Time            // when the version that was written last was due
	writes   int                  // the number of commits
	claim    ground.Decision      // the last claim
	wake     ground.Decision      // the start of the turn that made the last claim
	busy     time.Time            // when an earlier turn of the same flight ended
	passed   int                  // the number of turns that began when the burst was due, but did not claim it
}

// bursts groups decisions by document.
func bursts(all ground.Decisions, collection string) map[shard.DocID]*burst {
	of := make(map[shard.DocID]*burst)
	turns, last := make(map[string]ground.Decision), make(map[string]time.Time) // by request
	due := make(map[shard.DocID]map[string]time.Time)                           // version -> when it is due
	for _, d := range all {
		if last[d.Request] = d.At; d.Step == stepTurn {
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
				b.sent[d.Message] = d.SentAt()
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

// timely fails the test unless lull wrote every document of a collection as soon and as rarely as
// it promises. The caller has sent one burst of each document.
//
// For every burst, timely checks what lull decides: the time at which lull asked the state machine
// to wake the flight, and that the first turn after the due time wrote the document. It only logs
// how long the emulator took to wake a flight, and the host to run the turn. It counts writes only
// for bursts that the host was fast enough for: the burst was sent within the spread of bursts,
// received within the window and 2 s, and claimed within 2 s after its turn began. If fewer than
// half of the bursts are left, the test proves nothing and fails.
func timely(t *testing.T, s *ground.Stack, collection string, documents int) {
	t.Helper()
	var of map[shard.DocID]*burst
	// Logs arrive after an invocation has ended.
	ground.Until(t, "the log tells of every document's commit", func() (bool, string) {
		s.Counts(t)
		of = bursts(s.Decisions, collection)
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

// judge compares bursts with the promises of lull. It returns a report of the measured times, and
// the faults.
func judge(of map[shard.DocID]*burst, window, spread time.Duration) (report string, faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	var kept, writes, other int
	var age, share, late []time.Duration
	for _, doc := range slices.Sorted(maps.Keys(of)) {
		b := of[doc]
		if b.wake.Wake.IsZero() || b.due.IsZero() {
			fault("%s: the log does not show when its flight was woken, or when its version was due", doc)
			continue
		}
		delivered := b.wake.At
		if b.due.After(delivered) {
			delivered = b.due // an emulator may wake early
		}
		age = append(age, b.claim.At.Sub(b.claim.SentAt()))
		share = append(share, b.claim.At.Sub(delivered))
		late = append(late, b.wake.At.Sub(b.wake.Wake))
		// A flight runs one turn after the other. A turn handles all documents that are due within
		// a window, and its time is rounded to whole seconds.
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

// typical returns the median and the largest of some durations, as text.
func typical(all []time.Duration) string {
	if len(all) == 0 {
		return "an unknown time"
	}
	slices.Sort(all)
	return fmt.Sprintf("%s (at most %s)", all[len(all)/2].Round(time.Millisecond),
		all[len(all)-1].Round(time.Millisecond))
}

// loggedBurst is what the functions log about one burst with two messages, a turn and a write.
// Times are in seconds.
type loggedBurst struct {
	sent, received [2]float64
	due            float64
	asked, woken   float64
	earlier        float64 // when an earlier turn of the flight began; 0 if there was no earlier turn
	before         float64 // when the earlier turn ended
	claims         []float64
}

// goodBurst is a burst without a fault, on a host that is fast enough.
var goodBurst = loggedBurst{
	sent: [2]float64{0, 1}, received: [2]float64{1.5, 1.5}, due: 5, asked: 6, woken: 6.3, claims: []float64{6.5},
}

func (d loggedBurst) lines(doc string) []string {
	at := func(seconds float64) string {
		since := time.Duration(seconds * float64(time.Second))
		return time.Unix(1_777_888_800, 0).UTC().Add(since).Format(time.RFC3339Nano)
	}
	var all []string
	line := func(seconds float64, step, more string) {
		all = append(all, fmt.Sprintf(`{"timestamp":%q,"msg":%q,"requestId":%q,%s}`, at(seconds), step, "of-"+doc,
			more))
	}
	for i, received := range d.received {
		line(received, "held", fmt.Sprintf(`"doc":%q,"version":"v%d","message":"m%d","age_ms":%d,"until":%q`, doc, i, i,
			int((received-d.sent[i])*1000), at(d.due)))
	}
	if d.earlier != 0 {
		request := "earlier-" + doc
		all = append(all, fmt.Sprintf(`{"timestamp":%q,"msg":"turn","requestId":%q,"flight":%q}`, at(d.earlier), request,
			doc), fmt.Sprintf(`{"timestamp":%q,"msg":"deleted","requestId":%q}`, at(d.before), request))
	}
	line(d.woken, "turn", fmt.Sprintf(`"flight":%q,"wake":%q`, doc, at(d.asked)))
	for _, claimed := range d.claims {
		line(claimed, "claimed", fmt.Sprintf(`"doc":%q,"version":"v1","message":"m1","age_ms":%d`, doc,
			int((claimed-d.sent[1])*1000)))
		line(claimed, "committed", fmt.Sprintf(`"doc":%q,"version":"v1"`, doc))
	}
	return all
}

// The test checks that the judgement of the end-to-end tests about freshness and writes can fail.
func TestBurstsAreJudged(t *testing.T) {
	t.Parallel()
	change := func(how func(*loggedBurst)) loggedBurst { d := goodBurst; how(&d); return d }
	for name, tt := range map[string]struct {
		one  loggedBurst // one of ten bursts; the others are goodBurst
		many int         // how many of the ten are like one; 0 means one
		says string
	}{
		"as it should be": {one: goodBurst},
		"woken late":      {one: change(func(d *loggedBurst) { d.woken, d.claims = 20, []float64{20.5} })},
		"woken early":     {one: change(func(d *loggedBurst) { d.woken, d.claims = 4.9, []float64{6.5} })},
		"claimed late":    {one: change(func(d *loggedBurst) { d.claims = []float64{8.4} })},
		"not claimed in the first turn": {
			one:  change(func(d *loggedBurst) { d.earlier, d.before = 5.5, 5.9 }),
			says: "1 turns of its flight began when it was due, and did not claim it",
		},
		"asked to wake late": {one: change(func(d *loggedBurst) { d.asked = 7.1 }), says: "was asked to wake its flight"},
		"waited for a turn": {one: change(func(d *loggedBurst) {
			d.earlier, d.before, d.asked, d.woken, d.claims = 4, 8, 9, 9.1, []float64{9.3}
		})},
		"written twice": {
			one: change(func(d *loggedBurst) { d.claims = []float64{6.4, 6.5} }), says: "11 writes for 10 bursts",
		},
		"received late": {one: change(func(d *loggedBurst) {
			d.received, d.claims = [2]float64{1.5, 4.1}, []float64{6.4, 6.5}
		})},
		"sent slowly": {one: change(func(d *loggedBurst) { d.sent[0], d.claims = -2.1, []float64{6.4, 6.5} })},
		"received too late": {
			one: change(func(d *loggedBurst) { d.received[0] = 3.1 }), many: 6, says: "kept up with 4 of 10",
		},
	} {
		var log ground.Decisions
		for i := range 10 {
			of := goodBurst
			if i < max(tt.many, 1) {
				of = tt.one
			}
			for _, line := range of.lines(fmt.Sprintf("c#%d", i)) {
				log.Add(line)
			}
		}
		log.Add(`{"_aws":{},"Committed":1}`)
		log.Add("START RequestId: 1")
		_, faults := judge(bursts(log, "c"), time.Second, 3*time.Second)
		if got := strings.Join(faults, "\n"); (got == "") != (tt.says == "") || !strings.Contains(got, tt.says) {
			t.Errorf("%s: got %q, want %q", name, got, tt.says)
		}
	}
}
