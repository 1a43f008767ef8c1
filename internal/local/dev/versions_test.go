package dev

import (
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/feed"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/sink"
)

// The flows of docs/faults.md: what is new.

func TestOlderVersionAfterNewerIsStale(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.send(put(0, "a", 2))
		s.settle()
		requests := s.sink.Counts().Requests
		s.send(put(0, "a", 1))
		s.settle()
		s.noted(journal.Stale, 1)
		s.holds("a", "2")
		if got := s.sink.Counts().Requests; got != requests {
			t.Errorf("%d sink requests for a stale event", got-requests)
		}
	})
}

func TestOlderPutAfterDeleteIsStale(t *testing.T) {
	for _, later := range []time.Duration{time.Minute, time.Hour, 13 * 24 * time.Hour} {
		t.Run(later.String(), func(t *testing.T) {
			stage{sink: memory.SinkSettings{ForgetAfter: time.Minute}}.play(t, func(s *scene) {
				s.send(put(0, "a", 1))
				s.settle()
				s.send(del(0, "a", 3))
				s.settle()
				s.holds("a", "")
				s.wait(later)
				s.send(put(0, "a", 2))
				s.settle()
				s.holds("a", "")
				s.noted(journal.Stale, 1)
			})
		})
	}
}

func TestOlderPutIsRefusedAfterTheSinkForgotTheDelete(t *testing.T) {
	stage{sink: memory.SinkSettings{ForgetAfter: time.Minute}}.play(t, func(s *scene) {
		s.send(del(0, "a", 3))
		s.settle()
		s.wait(2 * time.Minute)
		s.send(put(0, "a", 2))
		s.settle()
		s.holds("a", "")
		s.writes("a", 1)
	})
}

func TestDeleteOlderThanCommittedPutIsStale(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.send(put(0, "a", 5))
		s.settle()
		s.send(del(0, "a", 4))
		s.settle()
		s.holds("a", "5")
		s.noted(journal.Stale, 1)
	})
}

func TestEqualOrderKeyIsADuplicate(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.send(put(0, "a", 5))
		s.settle()
		s.send(put(0, "a", 5))
		s.settle()
		s.noted(journal.Duplicate, 1)
		s.writes("a", 1)
	})
}

func at(text string, m feed.Timed) feed.Timed {
	m.Body = m.Body[:len(m.Body)-1] + fmt.Sprintf(`,"time":%q}`, text)
	return m
}

func TestSamePayloadWithLaterTimeIsWrittenAgain(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.send(at("2026-01-01T00:00:00Z", put(0, "a", 5)))
		s.settle()
		s.send(at("2026-01-01T00:00:01Z", put(0, "a", 5)))
		r := s.settle()
		s.writes("a", 2)
		if r.Rewritten != 1 || r.Written != 2 {
			t.Errorf("%d written, %d rewritten, want 2 and 1", r.Written, r.Rewritten)
		}
	})
}

func TestSameVersionOtherPayloadHasOneWinnerInEitherOrder(t *testing.T) {
	x, y := put(0, "a", 5, `{"title":"x"}`), put(0, "a", 5, `{"title":"y"}`)
	for name, order := range map[string][]feed.Timed{"x first": {x, y}, "y first": {y, x}} {
		for _, apart := range []time.Duration{0, 20 * time.Second} {
			t.Run(fmt.Sprintf("%s, %s apart", name, apart), func(t *testing.T) {
				stage{}.play(t, func(s *scene) {
					want := `{"title":"x"}`
					if s.key(y) > s.key(x) {
						want = `{"title":"y"}`
					}
					s.send(order[0])
					s.wait(apart)
					s.send(order[1])
					s.settle()
					got, _, err := s.sink.Get(s.ctx, doc("a"))
					if err != nil || string(got.Document) != want {
						t.Errorf("document %s, want %s, the greater digest in either order (%v)", got.Document, want,
							err)
					}
					if len(s.notes.of(journal.Conflict)) == 0 {
						t.Error("no version conflict was counted")
					}
				})
			})
		}
	}
}

func TestGapIsProcessedAndItsLatecomersAreStale(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.send(put(0, "a", 1))
		s.settle()
		s.send(put(0, "a", 100))
		s.settle()
		for v := 2; v < 100; v++ {
			s.send(put(0, "a", v))
		}
		r := s.settle()
		s.holds("a", "100")
		if r.Stale != 98 {
			t.Errorf("%d stale, want 98", r.Stale)
		}
	})
}

func TestFirstVersionEverIsProcessed(t *testing.T) {
	for _, v := range []int{0, 1, 1 << 40} {
		t.Run(fmt.Sprint(v), func(t *testing.T) {
			stage{}.play(t, func(s *scene) {
				s.send(put(0, "a", v))
				s.settle()
				s.holds("a", fmt.Sprint(v))
			})
		})
	}
}

func TestCounterThatWentBackIsStaleUntilTheEpochIsRaised(t *testing.T) {
	for epoch, want := range map[uint32]string{0: "1000", 1: "3"} {
		t.Run(fmt.Sprintf("epoch %d", epoch), func(t *testing.T) {
			stage{}.play(t, func(s *scene) {
				s.send(put(0, "a", 1000))
				s.settle()
				raised := s.e.withEpoch(t, epoch)
				s.e.sources = raised
				s.send(put(0, "a", 3)) // restored from a backup, its counter began again
				s.settle()
				s.holds("a", want)
			})
		})
	}
}

func TestResyncOfAnEqualVersionIsAppliedOncePerRun(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		resync := func(run string) feed.Timed {
			return native("a", `"7"`, `,"data":{"t":1},"mode":"resync","resyncrun":"`+run+`"`)
		}
		s.send(native("a", `"7"`, `,"data":{"t":1}`))
		s.settle()
		for range 2 {
			s.send(resync("01K0000000000000000000000A"))
			s.settle()
		}
		s.writes("a", 2)
		s.send(native("a", `"7"`, `,"data":{"t":1}`)) // live, the same version: still nothing new
		s.settle()
		s.writes("a", 2)
		s.send(resync("01K0000000000000000000000B"))
		s.settle()
		s.writes("a", 3)
		s.noted(journal.SinkNewer, 0)
	})
}

func TestVersionBeyondInt64ReachesTheSink(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.send(native("a", `"9223372036854775808000"`, `,"data":{}`))
		s.settle()
		s.send(native("a", `9223372036854775808001`, `,"data":{}`))
		s.settle()
		s.holds("a", "9223372036854775808001")
		s.noted(journal.SinkNewer, 0)
	})
}

func poison(reason string) memory.Answer {
	return memory.Answer{Outcome: sink.Outcome{Kind: sink.Rejected, Status: 400, Reason: reason}}
}

func TestRejectedNewestLetsTheNewestGoodVersionThrough(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.sink.SetRule(func(op sink.Op) (memory.Answer, bool) {
			return poison("mapper_parsing_exception: field title"), op.Version == "3"
		})
		s.send(put(0, "a", 1), put(0, "a", 2), put(0, "a", 3))
		r := s.settle()
		s.holds("a", "2")
		if len(r.DeadLetters) != 1 || r.DeadLetters[0].Reason != "rejected" {
			t.Errorf("dead letters %+v, want one, rejected", r.DeadLetters)
		}
		if r.Dead != 1 || r.Superseded != 1 || r.Written != 1 {
			t.Errorf("dead %d, superseded %d, written %d, want one each", r.Dead, r.Superseded, r.Written)
		}
	})
}

func TestRejectedNewestKeepsTheCommittedState(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.send(put(0, "a", 1))
		s.settle()
		s.sink.Script(doc("a"), poison("mapper_parsing_exception: field title"))
		s.send(put(0, "a", 2))
		s.settle()
		s.holds("a", "1")
	})
}

func TestRejectClearsPending(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		s.sink.Script(doc("a"), poison("mapper_parsing_exception: field title"))
		m := put(0, "a", 2)
		s.send(m)
		s.settle()
		row := s.row("a")
		if row.Pending != "" || row.BurstStart != 0 || row.Owner != "" || row.Claimed != "" || row.ClaimedWas != "" {
			t.Errorf("row after REJECT: %+v, want nothing pending, claimed or owned", row)
		}
		if row.Dead != s.key(m) || row.LastError == "" || row.ExpiresAt == 0 {
			t.Errorf("row after REJECT: dead %s, last error %q, expires %d", row.Dead, row.LastError, row.ExpiresAt)
		}
	})
}

func TestCollectionOptionsHoldOnBothPaths(t *testing.T) {
	long := 9 * time.Second
	cfg := func(c *config.Config) {
		c.Collections["slow"] = config.Collection{Quiet: &long}
		c.DefaultCollection = "content"
	}
	slow := func(id string) feed.Timed {
		m := put(0, id, 1)
		m.Body = m.Body[:len(m.Body)-1] + `,"collection":"slow"}`
		return m
	}
	for name, messages := range map[string][]feed.Timed{
		"alone":      {slow("a")},
		"in a batch": {put(0, "x", 1), slow("a"), put(0, "y", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			stage{cfg: cfg}.play(t, func(s *scene) {
				s.send(messages...)
				s.settle()
				for _, n := range s.notes.of(journal.Committed) {
					wait, want := n.At.Sub(n.Sent), 5*time.Second
					if n.Doc.Collection() == "slow" {
						want = long
					}
					if wait < want || wait > want+1500*time.Millisecond {
						t.Errorf("%s written after %s, want its collection's quiet of %s", n.Doc, wait, want)
					}
				}
			})
		})
	}
}
