// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// tale is a flow of docs/faults.md. Messages arrive in rounds, a failure may be injected, and the
// test checks the result.
type tale struct {
	name   string
	sink   memorysink.Settings
	wrong  func(s *scene) // injects a failure; nil if nothing fails
	rounds []round
	holds  map[string]string // by document: the version in the sink, "" if the sink has no document
	writes map[string]int    // by document: how many writes the sink applied
	ends   ends
	notes  map[journal.Step]int
	fresh  time.Duration // the longest time until an event is written, 0 for any time
}

// round is a set of messages that arrive together. The next round arrives after wait; 0 means when
// all messages are done.
type round struct {
	wait time.Duration
	send []feed.Timed
}

func now(m ...feed.Timed) round { return round{0, m} }

// ends contains how many events had each outcome.
type ends struct{ written, deleted, superseded, stale, duplicates, skipped, dead int }

func fails(call string, what fault.Verdict, times int) func(s *scene) {
	return func(s *scene) { s.inject.next(call, what, times) }
}

// answers makes the sink give an outcome to the next writes of document a.
func answers(kind sink.OutcomeKind, times int) func(s *scene) {
	return func(s *scene) {
		for range times {
			s.sink.Script(doc("a"), memorysink.Answer{Outcome: sink.Outcome{Kind: kind, Reason: "mapper_parsing_exception"}})
		}
	}
}

func (f tale) tell(t *testing.T) {
	t.Helper()
	t.Run(f.name, func(t *testing.T) {
		stage{sink: f.sink}.play(t, func(s *scene) {
			if f.wrong != nil {
				f.wrong(s)
			}
			for _, r := range f.rounds {
				s.send(r.send...)
				if r.wait == 0 {
					s.settle()
				}
				s.wait(r.wait)
			}
			r := s.settle()
			for id, version := range f.holds {
				s.holds(id, version)
				s.neverBack(doc(id))
			}
			for id, n := range f.writes {
				s.writes(id, n)
			}
			got := ends{r.Written, r.Deleted, r.Superseded, r.Stale, r.Duplicates, r.Skipped, r.Dead}
			if got != f.ends || len(r.DeadLetters) != r.Dead {
				t.Errorf("ends %+v with %d dead letters, want %+v", got, len(r.DeadLetters), f.ends)
			}
			for step, n := range f.notes {
				s.noted(step, n)
			}
			if f.fresh != 0 && r.Freshness.Max > f.fresh.Milliseconds() {
				t.Errorf("fresh after %d ms, want at most %s", r.Freshness.Max, f.fresh)
			}
		})
	})
}

func one(id, version string) map[string]string { return map[string]string{id: version} }

func times(id string, n int) map[string]int { return map[string]int{id: n} }

func TestAVersionIsJudgedByItsRow(t *testing.T) {
	var late []feed.Timed
	for v := 2; v < 100; v++ {
		late = append(late, put(0, "a", v))
	}
	resync := func(run string) feed.Timed {
		return native("a", `"7"`, `,"data":{"t":1},"mode":"resync","resyncrun":"00K000000000000000000000`+run+`"`)
	}
	tales := []tale{
		{
			name: "older after newer", rounds: []round{now(put(0, "a", 2)), now(put(0, "a", 1))},
			holds: one("a", "2"), writes: times("a", 1), ends: ends{written: 1, stale: 1},
		},
		{
			name: "delete older than a committed put", rounds: []round{now(put(0, "a", 5)), now(del(0, "a", 4))},
			holds: one("a", "5"), writes: times("a", 1), ends: ends{written: 1, stale: 1},
		},
		{
			name: "equal order key", rounds: []round{now(put(0, "a", 5)), now(put(0, "a", 5))},
			holds: one("a", "5"), writes: times("a", 1), ends: ends{written: 1, duplicates: 1},
		},
		{
			name: "same payload with a later time",
			rounds: []round{
				now(at("2026-01-01T00:00:00Z", put(0, "a", 5))), now(at("2026-01-01T00:00:01Z", put(0, "a", 5))),
			},
			holds: one("a", "5"), writes: times("a", 2), ends: ends{written: 2},
		},
		{
			name: "gap and its latecomers", rounds: []round{now(put(0, "a", 1)), now(put(0, "a", 100)), now(late...)},
			holds: one("a", "100"), writes: times("a", 2), ends: ends{written: 2, stale: 98},
		},
		{
			name: "version beyond int64",
			rounds: []round{
				now(native("a", `"9223372036854775808000"`, `,"data":{}`)),
				now(native("a", `9223372036854775808001`, `,"data":{}`)),
			},
			holds: one("a", "9223372036854775808001"), ends: ends{written: 2}, notes: map[journal.Step]int{journal.SinkNewer: 0},
		},
		{
			name: "resync of an equal version, once per run",
			rounds: []round{
				now(native("a", `"7"`, `,"data":{"t":1}`)), now(resync("0A")), now(resync("0A")),
				now(native("a", `"7"`, `,"data":{"t":1}`)), now(resync("0B")),
			},
			writes: times("a", 3), ends: ends{written: 3, stale: 1, duplicates: 1},
			notes: map[journal.Step]int{journal.SinkNewer: 0},
		},
		{
			name: "delete inside a burst, not the last to arrive",
			rounds: []round{
				now(put(0, "a", 1), del(0, "a", 3), put(0, "a", 2), put(0, "b", 1), del(0, "b", 2), put(0, "b", 3)),
			},
			holds:  map[string]string{"a": "", "b": "3"},
			writes: map[string]int{"a": 1, "b": 1}, ends: ends{written: 1, deleted: 1, superseded: 4},
		},
		{
			name: "rejected newest lets the newest good version through", wrong: func(s *scene) {
				s.sink.SetRule(func(op sink.Op) (memorysink.Answer, bool) {
					return poison("mapping"), op.Version == "3"
				})
			},
			rounds: []round{now(put(0, "a", 1), put(0, "a", 2), put(0, "a", 3))},
			holds:  one("a", "2"), ends: ends{written: 1, superseded: 1, dead: 1},
		},
		{
			name:   "rejected newest keeps the committed state",
			rounds: []round{now(put(0, "a", 1)), now(put(0, "a", 2))}, wrong: func(s *scene) {
				s.sink.SetRule(func(op sink.Op) (memorysink.Answer, bool) {
					return poison("mapping"), op.Version == "2"
				})
			},
			// The copy that lull sends to test the index writes nothing (ADR 0023).
			holds: one("a", "1"), writes: times("a", 1), ends: ends{written: 1, dead: 1},
		},
	}
	for _, later := range []time.Duration{time.Minute, time.Hour, 13 * 24 * time.Hour} {
		tales = append(tales, tale{
			name: "older put after a delete that the sink forgot",
			sink: memorysink.Settings{ForgetAfter: time.Minute},
			rounds: []round{
				now(put(0, "a", 1)), now(del(0, "a", 3)), {wait: later}, now(put(0, "a", 2)),
			},
			holds: one("a", ""), writes: times("a", 2), ends: ends{written: 1, deleted: 1, stale: 1},
		})
	}
	for _, v := range []int{0, 1, 1 << 40} {
		tales = append(tales, tale{
			name: "first version ever", rounds: []round{now(put(0, "a", v))},
			holds: one("a", fmt.Sprint(v)), ends: ends{written: 1},
		})
	}
	for _, f := range tales {
		f.tell(t)
	}
}

func TestALostAnswerOrACrashLosesNothingAndWritesNothingTwice(t *testing.T) {
	for _, f := range []tale{
		{
			name: "answer of CLAIM lost", wrong: fails("CLAIM", fault.FailAfter, 1), fresh: 7500 * time.Millisecond,
			writes: times("a", 1), ends: ends{written: 1}, notes: map[journal.Step]int{journal.Claimed: 1},
		},
		{
			name: "answer of COMMIT lost", wrong: fails("COMMIT", fault.FailAfter, 1), fresh: 7500 * time.Millisecond,
			writes: times("a", 1), ends: ends{written: 1}, notes: map[journal.Step]int{journal.LeaseLost: 0},
		},
		{
			name: "delete after commit fails", wrong: fails("DeleteMessageBatch", fault.FailBefore, 1),
			writes: times("a", 1), ends: ends{written: 1},
			notes: map[journal.Step]int{journal.DeleteLost: 1, journal.Duplicate: 1},
		},
		{
			name: "crash between write and commit: the same write again", wrong: fails("COMMIT", fault.CrashBefore, 1),
			writes: times("a", 2), ends: ends{written: 1}, notes: map[journal.Step]int{journal.Committed: 1},
		},
		{
			name: "answer of StartExecution lost: the flight starts twice", wrong: fails("StartExecution", fault.FailAfter, 1),
			writes: times("a", 1), ends: ends{written: 1},
		},
		{
			name: "thirty lost flights are not attempts", wrong: fails("StartExecution", fault.FailBefore, 4*30),
			writes: times("a", 1), ends: ends{written: 1},
		},
		{
			name: "a retry does not wait for its own lease", wrong: answers(sink.Refused, 1), fresh: 12 * time.Second,
			writes: times("a", 1), ends: ends{written: 1}, notes: map[journal.Step]int{journal.Released: 1},
		},
		{
			name: "crash before REJECT makes no second dead letter", wrong: func(s *scene) {
				answers(sink.Rejected, 3)(s)
				s.inject.next("REJECT", fault.CrashBefore, 1)
			},
			writes: times("a", 0), ends: ends{dead: 1},
		},
		{
			name: "crash before the message of a dead letter is deleted", wrong: func(s *scene) {
				answers(sink.Rejected, 3)(s)
				s.inject.next("DeleteMessageBatch", fault.CrashBefore, 1)
			},
			writes: times("a", 0), ends: ends{dead: 1},
		},
	} {
		f.rounds = []round{now(put(0, "a", 1))}
		f.tell(t)
	}
}

func TestMessagesThatArriveTogetherAreDebouncedAndJudgedEach(t *testing.T) {
	var burst []round
	for v := 1; v <= 50; v++ {
		burst = append(burst, round{20 * time.Millisecond, []feed.Timed{put(0, "a", v)}})
	}
	big := `{"type":"doc.changed","subject":"big","sequence":"1","data":{"t":"` + strings.Repeat("x", queue.MaxBytes) + `"}}`
	poisoned := []feed.Timed{put(0, "bad", 1)}
	for i := range 20 {
		poisoned = append(poisoned, put(0, fmt.Sprintf("good-%d", i), 1))
	}
	for _, f := range []tale{
		{
			name: "50 versions in a second are one write", rounds: burst,
			holds: one("a", "50"), writes: times("a", 1), ends: ends{written: 1, superseded: 49},
		},
		{
			name: "two versions in one batch are one ADMIT", rounds: []round{now(put(0, "a", 1), put(0, "a", 2))},
			holds: one("a", "2"), writes: times("a", 1), ends: ends{written: 1, superseded: 1},
			notes: map[journal.Step]int{journal.Admitted: 1, journal.Held: 2},
		},
		{
			name:   "one message to two receivers",
			rounds: []round{{2500 * time.Millisecond, []feed.Timed{put(0, "a", 1)}}, now(put(0, "a", 1))},
			writes: times("a", 1), ends: ends{written: 1, duplicates: 1},
		},
		{
			name: "events during a write are one more write", sink: memorysink.Settings{Latency: 4 * time.Second},
			rounds: []round{
				{3500 * time.Millisecond, []feed.Timed{put(0, "a", 1)}},
				{2 * time.Second, []feed.Timed{put(0, "a", 2)}},
				now(put(0, "a", 3)),
			},
			holds: one("a", "3"), writes: times("a", 2), ends: ends{written: 2, superseded: 1},
		},
		{
			name: "poison does not hold up the others", rounds: []round{now(poisoned...)}, wrong: func(s *scene) {
				s.sink.SetRule(func(op sink.Op) (memorysink.Answer, bool) {
					return poison("too_large"), op.Doc == doc("bad")
				})
			},
			ends: ends{written: 20, dead: 1}, fresh: 8 * time.Second,
		},
		{
			name: "a bad item of a bulk is neither lost nor sent twice", wrong: answers(sink.Throttled, 1),
			rounds: []round{now(put(0, "a", 1), put(0, "b", 1), put(0, "c", 1))},
			holds:  map[string]string{"a": "1", "b": "1", "c": "1"}, writes: map[string]int{"a": 1, "b": 1, "c": 1},
			ends: ends{written: 3},
		},
		{
			name: "a mapping error is a dead letter at once", rounds: []round{now(put(0, "a", 1))},
			wrong: answers(sink.Rejected, 1), writes: times("a", 0), ends: ends{dead: 1},
		},
		{
			name: "the delete of a missing document succeeds", rounds: []round{now(del(0, "never-there", 1))},
			ends: ends{deleted: 1},
		},
		{
			name: "odd bodies are classified", rounds: []round{now(
				message("not json"), message(""), message(big), message(`[]`), message(`{"type":"doc.changed"}`),
				message("\xff\xfe"), put(0, "good", 1),
			)},
			holds: one("good", "1"), ends: ends{written: 1, dead: 6},
		},
		{
			name: "the test event of S3 is acknowledged", rounds: []round{now(
				message(`{"Service":"Amazon S3","Event":"s3:TestEvent","Time":"2026-11-20T12:00:00Z","Bucket":"b"}`),
			)},
			ends: ends{skipped: 1},
		},
	} {
		f.tell(t)
	}
}

// at adds an event time to an event.
func at(text string, m feed.Timed) feed.Timed {
	m.Body = m.Body[:len(m.Body)-1] + fmt.Sprintf(`,"time":%q}`, text)
	return m
}
