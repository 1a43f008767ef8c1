// SPDX-License-Identifier: Apache-2.0

package dlq_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// faulty puts an injector between the handler and its stores.
func (b *bench) faulty(inj fault.Injector) {
	v := fault.NewInvocation(inj, "dlq", 1)
	b.h.Shards, b.h.Letters = v.Shards(b.Shards), v.DeadLetters(b.Letters)
}

// old sends a message that SQS has moved and that dlq must park.
func (b *bench) old() queue.Message {
	b.Helper()
	m := b.send(b.live, put("1", 1), nil)
	b.Admit(b.Event(m))
	time.Sleep(b.Config.Retry.DeadDeadline + time.Second)
	b.move(b.live, m)
	return m
}

func TestCrashBetweenStoringAndParkIsHarmless(t *testing.T) {
	t.Parallel()
	for _, verdict := range []fault.Verdict{fault.FailBefore, fault.FailAfter} {
		synctest.Test(t, func(t *testing.T) {
			b := setup(t, nil)
			m := b.old()
			b.faulty(usecasetest.Fails("PARK", verdict, 100))
			if kept := b.handle(); verdict == fault.FailBefore && len(kept) != 1 {
				t.Fatalf("kept %v, want the message: PARK was not applied", kept)
			}
			b.faulty(usecasetest.Healthy)
			time.Sleep(time.Minute)
			b.handle()
			b.want(1, 0, 0)
			if r := b.Row("content#1"); r.Dead != b.Event(m).Key || r.Pending != "" {
				t.Errorf("row %+v, want the version dead", r)
			}
		})
	}
}

// Row 25 of docs/faults.md: if a dead letter cannot be parked, its message stays.
func TestFailedParkingKeepsTheMessage(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.old()
		b.faulty(usecasetest.Fails("PutLetter", fault.FailBefore, 100))
		b.keeps(1, "the message is kept")
		if r := b.Row("content#1"); r.Dead != "" {
			b.Errorf("row %+v marks the version dead, but no dead letter is stored", r)
		}
		b.faulty(usecasetest.Healthy)
		time.Sleep(time.Minute)
		b.handle()
		b.want(1, 0, 0)
	})
}

func TestParkGivesWayToWhatHappensMeanwhile(t *testing.T) {
	t.Parallel()
	type row struct {
		race func(b *bench, m queue.Message)
		kept bool
		dead bool
	}
	usecasetest.Table(t, stage(nil).play, map[string]row{
		"a flight claims the version": {func(b *bench, m queue.Message) { b.Claim(b.Event(m)) }, true, false},
		"a flight commits the version": {
			func(b *bench, m queue.Message) { b.Commit(b.Claim(b.Event(m)), shard.Put) }, false, false,
		},
		"a newer version is admitted": {func(b *bench, m queue.Message) {
			b.Admit(b.EventOf(put("1", 2)))
		}, false, false},
		"another invocation parks the version": {func(b *bench, m queue.Message) {
			e := b.Event(m)
			b.Write(shard.Park(e.Doc, e.Key, now(), 1, b.Row(e.Doc)))
		}, false, true},
		"the burst has ended, so PARK has its other form": {func(b *bench, m queue.Message) {
			older := b.EventOf(put("1", 0))
			b.Write(shard.Write{Doc: older.Doc, Drop: true})
			b.Admit(older)
		}, false, true},
	}, func(b *bench, tt row) {
		m := b.old()
		b.faulty(usecasetest.At("PARK", func() { tt.race(b, m) }))
		if kept := b.handle(); len(kept) == 1 != tt.kept {
			b.Errorf("kept %v, want kept %t", kept, tt.kept)
		}
		if got := b.Row("content#1").Dead != ""; got != tt.dead {
			b.Errorf("marked dead: %t, want %t", got, tt.dead)
		}
		if got := len(b.parked()); got != 1 {
			b.Errorf("%d dead letters, want one, which was stored before PARK", got)
		}
	})
}

func TestDeadLetterDeliveredTwiceIsParkedOnce(t *testing.T) {
	play(t, nil, func(b *bench) {
		m := queue.Message{ID: "m", Body: put("1", 1), Sent: time.Now()}
		e := b.Event(m)
		b.Admit(e)
		for range 3 {
			b.SendLetter(b.dead, m, e, deadletter.RejectedBySink)
		}
		b.handle()
		b.want(1, 0, 0)
		if r := b.Row(e.Doc); r.Dead != "" || r.Pending != e.Key {
			b.Errorf("row %+v was changed, although the REJECT of index follows a dead letter of index", r)
		}
	})
}

func TestDeadLetterOfACommittedVersionIsDroppedAsSuperseded(t *testing.T) {
	play(t, nil, func(b *bench) {
		m := queue.Message{ID: "m", Body: put("1", 1), Sent: time.Now()}
		newer := b.EventOf(put("1", 2))
		b.Admit(newer)
		b.Commit(b.Claim(newer), shard.Put)
		b.SendLetter(b.dead, m, b.Event(m), deadletter.Refusals)
		b.handle()
		b.want(0, 0, 0)
		b.Noted(journal.Dropped, 1)
	})
}

func TestDeadLetterOfANewerLullIsLeftAlone(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.dead.Send(b.Context(), []queue.Outgoing{
			{Body: "x", Attributes: map[string]queue.Attribute{deadletter.AttrLetter: queue.Text(`{"schema":3}`)}},
		})
		b.dead.Send(b.Context(), []queue.Outgoing{
			{Body: "y", Attributes: map[string]queue.Attribute{deadletter.AttrLetter: queue.Text(`forged`)}},
		})
		b.keeps(1, "the dead letter with a newer schema is kept")
		b.want(1, 0, 1)
		b.Noted(journal.Schema, 1)
	})
}

// SQS's own redrive gave the dead letter to receive, which did not touch it. Then SQS moved it back
// by its receive count.
func TestADeadLetterOfANewerLullThatSQSMovedIsLeftAlone(t *testing.T) {
	play(t, nil, func(b *bench) {
		m := queue.Message{
			ID: "m", Receipt: "r", Body: put("1", 1), Sent: time.Now().Add(-time.Hour), MovedFrom: "lull-search-live",
			Attributes: map[string]queue.Attribute{deadletter.AttrLetter: queue.Text(`{"schema":3}`)},
		}
		if kept := b.h.Handle(b.Context(), []queue.Message{m}); !slices.Equal(kept, []string{"m"}) {
			b.Errorf("kept %q, want the dead letter", kept)
		}
		b.want(0, 0, 0)
		b.Noted(journal.Schema, 1)
	})
}

func TestTwoInvocationsOverOneDeadLetterAgree(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.old()
		ms, err := b.dead.Receive(b.Context(), 1, 0)
		if err != nil || len(ms) != 1 {
			b.Fatalf("received %d, error %v", len(ms), err)
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if kept := b.h.Handle(b.Context(), append(ms, ms...)); len(kept) != 0 {
					b.Errorf("kept %v", kept)
				}
			})
		}
		wg.Wait()
		if got := len(b.parked()); got != 1 {
			b.Errorf("%d dead letters, want 1", got)
		}
	})
}

func TestAnswerNamesEachMessageOnceAndIsNeverNil(t *testing.T) {
	play(t, nil, func(b *bench) {
		if got := b.h.Handle(b.Context(), nil); got == nil || len(got) != 0 {
			b.Errorf("got %v, want an empty answer", got)
		}
		b.faulty(usecasetest.Fails("PutLetter", fault.FailBefore, 100))
		m := queue.Message{ID: "m", Body: "not JSON", Sent: time.Now()}
		if got := b.h.Handle(b.Context(), []queue.Message{m, m}); len(got) != 1 || got[0] != "m" {
			b.Errorf("got %v, want [m]", got)
		}
	})
}

// Row 53 of docs/faults.md: a refusal that is expected is neither an error nor an alarm.
func TestExpectedRefusalsAreNeitherErrorsNorAlarms(t *testing.T) {
	t.Parallel()
	races := map[string]func(b *bench, m queue.Message){
		"stale": func(b *bench, m queue.Message) {
			e := b.EventOf(put("1", 2))
			b.Admit(e)
			b.Commit(b.Claim(e), shard.Put)
		},
		"duplicate":  func(b *bench, m queue.Message) { b.Commit(b.Claim(b.Event(m)), shard.Put) },
		"lease busy": func(b *bench, m queue.Message) { b.Claim(b.Event(m)) },
		"superseded": func(b *bench, m queue.Message) { b.Admit(b.EventOf(put("1", 2))) },
	}
	for name, race := range races {
		for _, when := range []string{"before the judgement", "between the judgement and PARK"} {
			t.Run(name+" "+when, func(t *testing.T) {
				play(t, nil, func(b *bench) {
					m := b.old()
					if when == "before the judgement" {
						race(b, m)
					} else {
						b.faulty(usecasetest.At("PARK", func() { race(b, m) }))
					}
					b.handle()
					time.Sleep(time.Minute)
					b.handle()
					if b.dead.Counts().Total() != 0 {
						b.Error("the message is still in the queue")
					}
					for _, step := range []journal.Step{
						journal.Failed, journal.Stuck, journal.Schema, journal.Blocked, journal.LeaseLost,
						journal.SinkNewer, journal.Conflict,
					} {
						if n := len(b.Notes.Of(step)); n != 0 {
							b.Errorf("%d notes %s, want none, because the refusal was expected", n, step)
						}
					}
				})
			})
		}
	}
}
