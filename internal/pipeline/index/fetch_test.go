// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// cms is a source from which lull fetches documents. After a while it returns the result of answer.
type cms struct {
	mu     sync.Mutex
	loads  []string
	now    int // loads in progress
	most   int
	takes  time.Duration
	answer func(ref string) ([]byte, error)
}

func (c *cms) Fetch(ctx context.Context, from, ref string) ([]byte, error) {
	c.mu.Lock()
	c.loads, c.now = append(c.loads, ref), c.now+1
	c.most = max(c.most, c.now)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.now--
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(c.takes):
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if from != "native" {
		return nil, fmt.Errorf("source %q was asked", from)
	}
	return c.answer(ref)
}

const cmsURL = "https://cms.example.org/"

// pulling configures the default source so that lull fetches its documents.
func pulling(change func(*config.Config, *source.Fetch)) stage {
	return stage{cfg: func(c *config.Config) {
		s := c.Sources["native"]
		s.Fetch = &source.Fetch{URL: cmsURL + "{id}", Version: "/v"}
		if change != nil {
			change(c, s.Fetch)
		}
		c.Sources["native"] = s.Complete()
	}}
}

// from makes a source that shows a version, with a body that contains the version.
func (b *bench) from(version *int) *cms {
	c := &cms{answer: func(string) ([]byte, error) { return fmt.Appendf(nil, `{"v":%d}`, *version), nil }}
	b.fetcher = c
	return c
}

func thin(id string, version int) string {
	return fmt.Sprintf(`{"type":"doc.touched","subject":%q,"sequence":"%d"}`, id, version)
}

var missing = &event.Invalid{
	Reason:  deadletter.Payload,
	Field:   "fetch",
	Problem: "the source answered 404",
	Missing: true,
}

func TestABurstIsFetchedOnceUnderItsLease(t *testing.T) {
	pulling(nil).play(t, func(b *bench) {
		version := 3
		c := b.from(&version)
		answer := c.answer
		c.answer = func(ref string) ([]byte, error) {
			if r := b.Row(doc("a")); r.Owner == "" {
				b.Errorf("row %+v, want a lease while the document is fetched", r)
			}
			return answer(ref)
		}
		b.fly(b.hold(thin("a", 1), thin("a", 3), thin("a", 2)), 1)
		b.shows("a", `{"v":3}`)
		if !slices.Equal(c.loads, []string{cmsURL + "a"}) {
			b.Errorf("loaded %q, want the document once", c.loads)
		}
		b.requests(1, "one")
		b.inQueue(0)
	})
}

// The document that is committed as v1 has the content of v3. The events of v2 and v3 find no older
// content.
func TestAnAnswerThatIsNewerThanItsEventIsWritten(t *testing.T) {
	pulling(nil).play(t, func(b *bench) {
		version := 3
		b.from(&version)
		for v := 1; v <= 3; v++ {
			b.fly(b.hold(thin("a", v)), 1)
			b.shows("a", `{"v":3}`)
			b.holds("a", fmt.Sprint(v))
			if r := b.Row(doc("a")); r.Committed != b.EventOf(thin("a", v)).Key {
				b.Errorf("committed %s, want the event's own version", r.Committed)
			}
		}
		b.inQueue(0)
	})
}

// If a replica lags, lull does not write its old state, and does not count the failure against the
// document or the sink. A source under maintenance may answer 200 with JSON that is not a document.
func TestAPageForMaintenanceIsWaitedOut(t *testing.T) {
	pulling(nil).play(t, func(b *bench) {
		page := `{"status":"maintenance"}`
		b.fetcher = &cms{answer: func(string) ([]byte, error) { return []byte(page), nil }}
		s := b.turn(b.hold(thin("a", 1)))
		page = `{"v":1}`
		b.fly(s, 1)
		b.shows("a", page)
		b.Noted(journal.DeadLettered, 0)
		b.inQueue(0)
	})
}

func TestAnAnswerThatIsOlderThanItsEventIsWaitedOut(t *testing.T) {
	pulling(nil).play(t, func(b *bench) {
		version := 1
		c := b.from(&version)
		b.fly(b.hold(thin("a", 1)), 1)
		s := b.turn(b.hold(thin("a", 2), put("b", 1)))
		b.shows("a", `{"v":1}`)
		b.holds("b", "1")
		r := b.Row(doc("a"))
		if r.Owner != "" || r.Refusals != 0 || !deadletter.StaleSource.Begins(r.LastError) || s.Done {
			b.Errorf("row %+v, done %t: want the lease released, and the flight to wait", r, s.Done)
		}
		s = b.turn(s)
		version = 2
		b.fly(s, 1)
		b.shows("a", `{"v":2}`)
		if len(c.loads) != 1+1+1+1+1 { // document b is fetched too
			b.Errorf("loaded %q", c.loads)
		}
		b.Noted(journal.Fetched, 3)
		b.Noted(journal.FetchFailed, 2)
		b.Noted(journal.CircuitOpened, 0)
		b.Noted(journal.DeadLettered, 0)
		b.inQueue(0)
	})
}

// follow makes the turns of a message's flight until the message is gone, and of the flights that
// receive starts when the message returns.
func (b *bench) follow(s flight.State, until time.Time) (claims int) {
	b.Helper()
	legs := len(b.launched.list)
	for time.Now().Before(until) {
		for !s.Done {
			s = b.turn(s)
		}
		switch {
		case len(b.launched.list) > legs:
			s = b.launched.list[legs]
			legs++
		case b.live.Counts().Total() == 0:
			return len(b.Notes.Of(journal.Claimed))
		default:
			time.Sleep(time.Minute)
			s = b.receive(flight.Live)
			legs = len(b.launched.list)
		}
	}
	return len(b.Notes.Of(journal.Claimed))
}

func TestAStaleSourceEndsAtTheDeadDeadline(t *testing.T) {
	pulling(nil).play(t, func(b *bench) {
		version := 1
		c := b.from(&version)
		b.fly(b.hold(thin("a", 1)), 1)
		began := time.Now()
		claims := b.follow(b.hold(thin("a", 2)), began.Add(80*time.Hour))
		l := b.TakeLetters(b.dead)
		if len(l) != 1 || l[0].Reason != deadletter.StaleSource {
			b.Fatalf("dead letters %+v, want one of a stale source", l)
		}
		if after := l[0].Died.Sub(began); after < b.Config.Retry.DeadDeadline ||
			after > b.Config.Retry.DeadDeadline+time.Hour {
			b.Errorf("the message became a dead letter after %s, want %s", after, b.Config.Retry.DeadDeadline)
		}
		// There is a try every four minutes at most: 72 hours have 1,080 such tries.
		if claims > 1200 || len(c.loads) > 1200 {
			b.Errorf("%d claims, %d loads", claims, len(c.loads))
		}
		if r := b.Row(doc("a")); r.Dead == "" || r.Pending != "" || r.Refusals != 0 {
			b.Errorf("row %+v, want the version dead and nothing pending", r)
		}
		b.shows("a", `{"v":1}`)
	})
}

// While the source is down, nothing is written and nothing becomes a dead letter. lull asks the
// source for one document of the flight at a time until the source answers again.
func TestASourceThatIsDownIsLeftInPeace(t *testing.T) {
	pulling(nil).play(t, func(b *bench) {
		version, down := 1, true
		c := b.from(&version)
		answer := c.answer
		c.answer = func(ref string) ([]byte, error) {
			if down {
				return nil, &source.Unavailable{Problem: "the source answered 503", RetryAfter: 20 * time.Second}
			}
			return answer(ref)
		}
		s := b.turn(b.hold(many(200, thin, "doc")...))
		if n := len(c.loads); n > maxParallel {
			b.Errorf("%d loads in the first turn, want %d at most", n, maxParallel)
		}
		if wait := time.Until(s.Wake()); wait < 20*time.Second {
			b.Errorf("wakes after %s, want Retry-After to be honoured", wait)
		}
		before := len(c.loads)
		for range 10 {
			if s = b.turn(s); s.Done { // the flight continues in a new execution
				s = b.launched.list[len(b.launched.list)-1]
			}
		}
		if n := len(c.loads) - before; n > 10 {
			b.Errorf("%d loads in 10 turns, want one in each turn", n)
		}
		b.Noted(journal.CircuitOpened, 0)
		b.Noted(journal.Committed, 0)
		for i := range 200 {
			if r := b.Row(doc(fmt.Sprint("doc", i))); r.Owner != "" || r.Refusals != 0 {
				b.Fatalf("row %+v, want neither lease nor refusal", r)
			}
		}
		if n := len(b.Notes.Of(journal.Claimed)); n > maxParallel+10 {
			b.Errorf("%d claims, want fewer: each costs two writes of a row", n)
		}
		down = false
		b.follow(s, time.Now().Add(10*time.Minute))
		b.Noted(journal.Committed, 200)
		b.Noted(journal.DeadLettered, 0)
		b.inQueue(0)
	})
}

// A turn claims no more documents than it can load and write, however many are due.
func TestManyDocumentsOfASlowSourceLoseNoLease(t *testing.T) {
	for _, tt := range []struct {
		documents int
		takes     time.Duration
		turns     int
	}{{2000, 200 * time.Millisecond, 4}, {100, 1400 * time.Millisecond, 6}} {
		t.Run(tt.takes.String(), func(t *testing.T) {
			pulling(nil).play(t, func(b *bench) {
				version := 1
				c := b.from(&version)
				c.takes = tt.takes
				turns := b.fly(b.hold(many(tt.documents, thin, "doc")...), tt.turns)
				b.Noted(journal.Committed, tt.documents)
				for _, step := range []journal.Step{
					journal.LeaseLost, journal.OutcomeUnknown, journal.Released, journal.CallFailed,
					journal.CircuitOpened,
				} {
					b.Noted(step, 0)
				}
				if len(c.loads) != tt.documents || c.most > maxParallel {
					b.Errorf(
						"%d loads, %d at a time, want %d, at most %d at a time",
						len(c.loads),
						c.most,
						tt.documents,
						maxParallel,
					)
				}
				b.Logf("%d turns", turns)
				b.inQueue(0)
			})
		})
	}
}

// If a source is so slow that it answers nothing in a turn, its documents are claimed once, and
// other documents are written.
func TestASourceThatNeverAnswersHoldsUpNobody(t *testing.T) {
	pulling(nil).play(t, func(b *bench) {
		version := 1
		b.from(&version).takes = time.Hour
		s := b.hold(append(many(100, thin, "doc"), `{"type":"doc.deleted","subject":"plain","sequence":"1"}`)...)
		for range 4 {
			begin := s.Wake()
			if s = b.turn(s); time.Since(begin) > b.Config.Index.Timeout-sinkMargin {
				b.Errorf("a turn took %s", time.Since(begin))
			}
		}
		if r := b.Row(doc("plain")); r.CommittedOp != shard.Delete {
			b.Errorf("row %+v, want what needs no source to be written", r)
		}
		if n := len(b.Notes.Of(journal.Claimed)); n > 1+maxParallel+4 {
			b.Errorf("%d claims in 4 turns", n)
		}
		b.Noted(journal.OutcomeUnknown, 0)
	})
}

func TestADocumentThatItsSourceDoesNotShow(t *testing.T) {
	for _, tt := range []struct {
		missing source.Missing
		shows   time.Duration // how long after the event the source shows the document, 0 for never
		letters int
		holds   string // the version in the sink, empty for none
		op      shard.Operation
		after   time.Duration // the shortest time until the event is done
	}{
		{source.MissingDelete, 0, 0, "", shard.Delete, 15 * time.Minute},
		{source.MissingDeadLetter, 0, 1, "1", shard.Put, 15 * time.Minute},
		{source.MissingWait, 0, 1, "1", shard.Put, 72 * time.Hour},
		{source.MissingDelete, 2 * time.Minute, 0, "2", shard.Put, 2 * time.Minute},
		{source.MissingDeadLetter, 2 * time.Minute, 0, "2", shard.Put, 2 * time.Minute},
		{source.MissingWait, 2 * time.Hour, 0, "2", shard.Put, 2 * time.Hour},
	} {
		t.Run(fmt.Sprint(tt.missing, tt.shows), func(t *testing.T) {
			pulling(func(_ *config.Config, f *source.Fetch) { f.Missing = tt.missing }).play(t, func(b *bench) {
				version := 2
				c := b.from(&version)
				b.fly(b.hold(thin("a", 1)), 1)
				began, answer := time.Now(), c.answer
				c.answer = func(ref string) ([]byte, error) {
					if tt.shows == 0 || time.Since(began) < tt.shows {
						return nil, missing
					}
					return answer(ref)
				}
				b.follow(b.hold(thin("a", 2)), began.Add(100*time.Hour))
				b.WantLetters(b.dead, tt.letters)
				b.holds("a", tt.holds)
				r := b.Row(doc("a"))
				if r.CommittedOp != tt.op || r.Refusals != 0 || r.Owner != "" || r.Pending != "" {
					b.Errorf("row %+v, want %s", r, tt.op)
				}
				if took := time.Since(began); took < tt.after || took > tt.after+tt.after/4+time.Hour {
					b.Errorf("the event took %s, want at least %s", took, tt.after)
				}
				if r.CommittedOp == shard.Delete {
					// The committed delete has the version of this event: a copy of the event is
					// done, and a newer event is not done.
					b.hold(thin("a", 2))
					b.Noted(journal.Duplicate, 1)
					c.answer = answer
					version = 3
					b.fly(b.hold(thin("a", 3)), 1)
					b.shows("a", `{"v":3}`)
				}
			})
		})
	}
}

// A fault of one document makes it a dead letter at once, and says nothing about the source.
func TestADocumentThatCanNeverBeFetchedIsADeadLetter(t *testing.T) {
	type row struct {
		answer string
		err    error
		detail string
	}
	usecasetest.Table(t, pulling(nil).play, map[string]row{
		"too large":         {"", &event.Invalid{Reason: deadletter.Payload, Field: "fetch", Problem: "it has more bytes"}, "more bytes"},
		"not a document":    {"[1]", nil, "is missing"},
		"not JSON":          {"<p>", nil, "not JSON"},
		"a wrong version":   {`{"v":"x"}`, nil, "/v: "},
		"no longer fetched": {"", &event.Invalid{Reason: deadletter.Payload, Field: "fetch", Problem: "no setting"}, "no setting"},
	}, func(b *bench, tt row) {
		b.fetcher = &cms{answer: func(ref string) ([]byte, error) {
			if strings.HasSuffix(ref, "b") {
				return []byte(`{"v":1}`), nil
			}
			return []byte(tt.answer), tt.err
		}}
		b.fly(b.hold(thin("a", 1), thin("b", 1)), 1)
		l := b.TakeLetters(b.dead)
		if len(l) != 1 || l[0].Reason != deadletter.Payload || !strings.Contains(l[0].Detail, tt.detail) {
			b.Errorf("dead letters %+v, want one: %s", l, tt.detail)
		}
		b.shows("b", `{"v":1}`)
		b.inQueue(0)
	})
}

// In each turn lull first asks an origin for another document. So a document that the origin never
// answers for does not block the others.
func TestADocumentThatIsNeverAnsweredDoesNotStandForItsNeighbour(t *testing.T) {
	pulling(nil).play(t, func(b *bench) {
		version, down := 1, true
		c := b.from(&version)
		answer := c.answer
		c.answer = func(ref string) ([]byte, error) {
			if down || ref == cmsURL+"a" {
				return nil, &source.Unavailable{Problem: "the source did not answer in time"}
			}
			return answer(ref)
		}
		s := b.turn(b.hold(thin("a", 1), thin("b", 1)))
		down = false
		for range 4 {
			s = b.turn(s)
		}
		b.holds("b", "1")
		b.holds("a", "")
	})
}
