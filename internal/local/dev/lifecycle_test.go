// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/aws/metrics"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// The tests of this file play the flows of docs/faults.md about what operators do and see.

// commits records only the freshness of the writes of each lane, because a resync makes millions of
// notes.
type commits struct {
	mu   sync.Mutex
	ages map[string][]time.Duration
	last map[string]time.Time
	bad  map[journal.Step]int
}

func (c *commits) Note(n journal.Note) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch n.Step {
	case journal.Committed:
		c.ages[n.Lane] = append(c.ages[n.Lane], n.At.Sub(n.Sent))
		c.last[n.Lane] = n.At
	case journal.LeaseLost, journal.SinkNewer, journal.DeadLettered, journal.Stuck, journal.Failed:
		c.bad[n.Step]++
	}
}

// p99 sorts the ages and returns their 99th percentile.
func p99(ages []time.Duration) time.Duration {
	if len(ages) == 0 {
		return 0
	}
	slices.Sort(ages)
	return ages[len(ages)*99/100]
}

// services says how long each AWS service takes to answer.
type services map[fault.Service]time.Duration

func (s services) Decide(_ context.Context, _ *fault.Invocation, op fault.Op) fault.Verdict {
	time.Sleep(s[op.Service])
	return fault.OK
}

// This test is line 50 of docs/faults.md. A full resync is sent at once, together with live changes
// of the same documents. Services and sink need time for each call, so that the test would notice
// live changes that wait behind the resync.
func TestResyncBesideLiveTrafficKeepsLiveFresh(t *testing.T) {
	documents := 100_000
	if testing.Short() {
		documents = 10_000
	}
	const (
		perSecond = 20
		lasting   = 5 * time.Minute
		resynced  = 5 // the version of every document in the resync
	)
	r := rand.New(rand.NewPCG(1, 50))
	newest := make([]int, documents) // by document: the newest version of live events
	var live []feed.Timed
	for at := time.Duration(0); at < lasting; at += time.Second / perSecond {
		d := r.IntN(documents)
		if r.IntN(3) == 0 {
			d = r.IntN(100) // some documents change all the time
		}
		if newest[d] == 0 {
			newest[d] = resynced
		}
		newest[d]++
		live = append(live, put(at, fmt.Sprint("doc-", d), newest[d]))
	}
	seen := &commits{ages: map[string][]time.Duration{}, last: map[string]time.Time{}, bad: map[journal.Step]int{}}
	stage{
		sink: memorysink.Settings{Latency: 200 * time.Millisecond, MaxDocuments: 500}, pollers: 4, journal: seen,
		inject: services{
			fault.Table: 4 * time.Millisecond, fault.SQS: 10 * time.Millisecond,
			fault.Bucket: 40 * time.Millisecond, fault.States: 30 * time.Millisecond,
		},
	}.play(t, func(s *scene) {
		var wg sync.WaitGroup
		wg.Go(func() { s.arrive(live) })
		s.wait(30 * time.Second) // some documents change before the resync, and most change during the resync or never
		for d := range documents {
			s.send(native(fmt.Sprint("doc-", d), fmt.Sprintf(`"%d"`, resynced),
				`,"mode":"resync","resyncrun":"00K0000000000000000000000A","data":{"title":"resynced"}`))
		}
		wg.Wait()
		s.settle()
		promise := s.e.cfg.Debounce.Quiet + s.e.cfg.Queues.Live.Window + time.Second
		if got := p99(seen.ages[string(flight.Live)]); got > promise || got == 0 {
			t.Errorf("live freshness p99 %s, want at most %s", got, promise)
		}
		if len(seen.bad) != 0 {
			t.Errorf("noted %v, want none of them", seen.bad)
		}
		if n := len(seen.ages[string(flight.Bulk)]); n < documents/2 {
			t.Errorf("%d writes of the resync: live traffic cannot have taken its place for %d documents", n, documents)
		}
		for d := range documents {
			id := fmt.Sprint("doc-", d)
			s.holds(id, fmt.Sprint(max(newest[d], resynced)))
			s.neverBack(doc(id))
		}
		t.Logf("%d documents resynced in %s; live p99 %s; %d requests", documents,
			seen.last[string(flight.Bulk)].Sub(s.start)-30*time.Second,
			p99(seen.ages[string(flight.Live)]), s.sink.Counts().Requests)
	})
}

// alarms lists the steps whose metrics raise an alarm at their first count (see the alarms of
// package infra).
var alarms = []journal.Step{
	journal.Stuck, journal.SinkNewer, journal.Blocked, journal.Schema, journal.LeaseLost, journal.Parked,
	journal.Unreachable, journal.CircuitOpened, journal.OutageWrite,
}

// told records what the functions would have logged and counted.
type told struct {
	out  bytes.Buffer
	json *lambda.Journal
}

func newTold() *told {
	l := &told{}
	l.json = lambda.NewJournal(&l.out, slog.LevelDebug, metrics.Base{Stack: "lull", Sink: "search", Function: "index"})
	return l
}

// errors returns the log lines of level ERROR, and the counted metrics that raise an alarm.
func (l *told) errors(t *testing.T) (found []string) {
	t.Helper()
	l.json.Log.Flush()
	l.json.Flush(time.Now(), "request")
	watched := map[string]bool{
		metrics.ConfigurationErrors: true, metrics.Panics: true, metrics.InvalidEvents: true,
		metrics.TurnsLost: true,
	}
	for _, step := range alarms {
		watched[metrics.Name(step)] = true
	}
	for line := range strings.Lines(l.out.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		if fields["level"] == slog.LevelError.String() {
			found = append(found, fmt.Sprint("logged: ", fields["msg"]))
		}
		for name := range fields {
			if watched[name] {
				found = append(found, "counted: "+name)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// hung is a sink whose next request hangs until another invocation has taken over the lease, and is
// then refused with 409.
type hung struct {
	sink.Sink
	first *sync.Once
	hangs time.Duration
}

func (h hung) Write(ctx context.Context, ops []sink.Op) (out []sink.Outcome) {
	h.first.Do(func() {
		time.Sleep(h.hangs)
		out = make([]sink.Outcome, len(ops))
		for i := range out {
			out[i] = sink.Outcome{Kind: sink.Newer, Status: 409, Reason: "version_conflict"}
		}
	})
	if out == nil {
		out = h.Sink.Write(ctx, ops)
	}
	return out
}

// This test is line 53 of docs/faults.md. An expected refusal is neither an error in the log nor an
// alarm. An unexpected refusal is both.
func TestExpectedRefusalsAreNeitherErrorsNorAlarms(t *testing.T) {
	for name, c := range map[string]struct {
		story func(s *scene)
		saw   journal.Step // this step shows that the story reached its subject
		want  []string
	}{
		"stale": {func(s *scene) {
			s.send(put(0, "a", 2))
			s.settle()
			s.send(put(0, "a", 1))
		}, journal.Stale, nil},
		"duplicate": {func(s *scene) {
			s.send(put(0, "a", 1), put(0, "a", 1))
			s.settle()
			s.send(put(0, "a", 1))
		}, journal.Duplicate, nil},
		"superseded": {func(s *scene) {
			s.send(put(0, "a", 1))
			s.wait(2100 * time.Millisecond) // the flight of the first version is running
			s.send(put(0, "a", 2))
		}, journal.Superseded, nil},
		"lease busy": {func(s *scene) {
			s.p.sink = slow{s.p.sink, 3 * time.Second}
			s.send(put(0, "a", 1))
			s.wait(6 * time.Second)
			// the turn of the second execution comes while the first execution writes
			s.startAgain(flight.ID(s.notes.Of(journal.Launched)[0].Flight))
		}, journal.Waiting, nil},
		"refused by the row": {func(s *scene) {
			s.inject.when("CLAIM", func() {
				row := s.row("a")
				w := shard.Claim(shard.Bid{
					Doc: row.Doc, Key: row.Pending, Token: "another",
					Now: shard.MicrosOf(time.Now()), Until: shard.MicrosOf(time.Now()) + 1,
				})
				if _, err := s.e.Shards.Write(s.ctx, w); err != nil {
					s.t.Error(err)
				}
			})
			s.send(put(0, "a", 1))
		}, journal.RowRefused, nil},
		"409 of a lease that has ended": {func(s *scene) {
			s.p.sink = hung{s.p.sink, &sync.Once{}, 20 * time.Second}
			s.send(put(0, "a", 1))
		}, journal.OutcomeUnknown, nil},
		"409 under a live lease": {func(s *scene) {
			s.p.sink = hung{s.p.sink, &sync.Once{}, time.Second}
			s.send(put(0, "a", 1))
		}, journal.SinkNewer, []string{"counted: SinkNewer", "logged: sink_newer"}},
		"a lease that was lost": {func(s *scene) {
			s.inject.when("COMMIT", func() {
				w := shard.Write{Doc: doc("a"), Update: []shard.Action{
					{
						Verb: shard.Set, Attr: shard.AttrOwner,
						Val: shard.Value{Kind: shard.KindString, Text: "somebody else"},
					},
				}}
				if _, err := s.e.Shards.Write(s.ctx, w); err != nil {
					s.t.Error(err)
				}
			})
			s.send(put(0, "a", 1))
		}, journal.LeaseLost, []string{"counted: LeaseLost", "logged: lease_lost"}},
	} {
		t.Run(name, func(t *testing.T) {
			stage{}.play(t, func(s *scene) {
				c.story(s)
				s.settle()
				l := newTold()
				for _, n := range s.notes.All() {
					l.json.Note(n)
				}
				if len(s.notes.Of(c.saw)) == 0 {
					t.Errorf("no note %q: the story is about something else", c.saw)
				}
				if got := l.errors(t); !slices.Equal(got, c.want) {
					t.Errorf("%v, want %v", got, c.want)
				}
				if strings.Contains(l.out.String(), "title") {
					t.Error("a document's content reached the log")
				}
			})
		})
	}
}

// slow is a sink whose requests take the time takes.
type slow struct {
	sink.Sink
	takes time.Duration
}

func (s slow) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	time.Sleep(s.takes)
	return s.Sink.Write(ctx, ops)
}

// This test is line 20 of docs/faults.md. The function receive does all its work, but its answer is
// lost. The event source mapping then keeps the whole batch.
func TestBatchWhoseAnswerIsLostIsJudgedAgain(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.send(put(0, "done", 1))
		s.settle()
		requests := s.sink.Counts().Requests
		s.inject.next("StartExecution", fault.CrashAfter, 1)
		s.send(put(0, "done", 1), put(0, "new", 1), put(0, "broken", 1, `"no object"`))
		s.wait(4 * time.Second)
		if n := s.p.lane(flight.Live).queue.Counts().Total(); n != 3 {
			t.Errorf("%d messages in the queue, want all three: nobody read the answer", n)
		}
		r := s.settle()
		s.writes("done", 1)
		s.writes("new", 1) // written by the flight whose start was not confirmed, and not by a second flight
		if n := s.sink.Counts().Requests - requests; n != 1 {
			t.Errorf("%d sink requests, want one", n)
		}
		if len(r.DeadLetters) != 1 || r.Duplicates != 1 || r.Dead != 1 {
			t.Errorf("dead letters %+v, duplicates %d, dead %d: want one letter, though it was sent twice", r.DeadLetters,
				r.Duplicates, r.Dead)
		}
	})
}

// A sink may ask for a longer wait than an execution may take. Such a wait must not cost a receive
// of the message, and must not lose an execution.
func TestALongRetryAfterBurnsNoReceive(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.sink.ScriptRequests(memorysink.Answer{Outcome: sink.Outcome{
			Kind: sink.Throttled, Status: 429,
			RetryAfter: 30 * time.Minute,
		}})
		s.send(put(0, "a", 1))
		s.settle()
		s.holds("a", "1")
		s.noted(journal.Received, 1)
		if n := s.notes.Of(journal.Continued); len(n) != 1 {
			t.Errorf("continued %d times in half an hour, want once: in a Standard execution", len(n))
		}
	})
}
