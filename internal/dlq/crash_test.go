package dlq_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
)

var errDown = errors.New("connection reset")

// downShards fails writes while it is down; with after they are applied all the same. race, where
// set, happens once before the next write.
type downShards struct {
	shard.Store
	down, after bool
	race        func()
}

func (s *downShards) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	if race := s.race; race != nil {
		s.race = nil
		race()
	}
	if s.down {
		if s.after {
			_, _ = s.Store.Write(ctx, w)
		}
		return shard.Row{}, errDown
	}
	return s.Store.Write(ctx, w)
}

// downLetters fails to park while it is down.
type downLetters struct {
	deadletter.Store
	down bool
}

func (s *downLetters) Park(ctx context.Context, l deadletter.Letter) (bool, error) {
	if s.down {
		return false, errDown
	}
	return s.Store.Park(ctx, l)
}

// old makes a moved message that is to be parked.
func (b *bench) old() queue.Message {
	b.Helper()
	m := b.send(b.live, body("1", 1), nil)
	b.admit(b.event(m))
	time.Sleep(b.cfg.Retry.DeadDeadline + time.Second)
	b.move(b.live, m)
	return m
}

func TestCrashBetweenStoringAndParkIsHarmless(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := setup(t, nil)
			m := b.old()
			down := &downShards{Store: b.shards, down: true, after: after}
			b.h.Shards = down
			if kept := b.handle(); !after && len(kept) != 1 {
				t.Fatalf("kept %v, want the message: PARK was not applied", kept)
			}
			down.down = false
			time.Sleep(time.Minute)
			b.handle()
			b.want(1, 0, 0)
			if r := b.row("content#1"); r.Dead != b.event(m).Key || r.Pending != "" {
				t.Errorf("row %+v: want it dead", r)
			}
		})
	}
}

// Faults, line 25.
func TestFailedParkingKeepsTheMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, nil)
		b.old()
		letters := &downLetters{b.letters, true}
		b.h.Letters = letters
		if kept := b.handle(); len(kept) != 1 {
			t.Fatalf("kept %v, want the message", kept)
		}
		if r := b.row("content#1"); r.Dead != "" {
			t.Errorf("row %+v is dead, and no dead letter is stored", r)
		}
		letters.down = false
		time.Sleep(time.Minute)
		b.handle()
		b.want(1, 0, 0)
	})
}

func TestParkGivesWayToWhatHappensMeanwhile(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		race func(b *bench, m queue.Message)
		kept bool
		dead bool
	}{
		{"somebody claims it", func(b *bench, m queue.Message) { b.claim(b.event(m)) }, true, false},
		{"somebody commits it", func(b *bench, m queue.Message) { b.commit(b.claim(b.event(m))) }, false, false},
		{"a newer version is admitted", func(b *bench, m queue.Message) {
			b.admit(b.event(queue.Message{Body: body("1", 2)}))
		}, false, false},
		{"another invocation parks it", func(b *bench, m queue.Message) {
			e := b.event(m)
			b.write(shard.Park(e.Doc, e.Key, now(), 1, b.row(e.Doc)))
		}, false, true},
		{"its burst is settled: the other form", func(b *bench, m queue.Message) {
			older := b.event(queue.Message{Body: body("1", 0)})
			b.write(shard.Write{Doc: older.Doc, Drop: true})
			b.admit(older)
		}, false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, nil)
				m := b.old()
				b.h.Shards = &downShards{Store: b.shards, race: func() { tt.race(b, m) }}
				if kept := b.handle(); len(kept) == 1 != tt.kept {
					t.Errorf("kept %v, want kept %t", kept, tt.kept)
				}
				if got := b.row("content#1").Dead != ""; got != tt.dead {
					t.Errorf("dead: %t, want %t", got, tt.dead)
				}
				if got := len(b.parked()); got != 1 {
					t.Errorf("%d dead letters, want the one that was stored before PARK", got)
				}
			})
		})
	}
}

func TestDeadLetterDeliveredTwiceIsParkedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, nil)
		m := queue.Message{ID: "m", Body: body("1", 1), Sent: time.Now()}
		e := b.event(m)
		b.admit(e)
		for range 3 {
			b.letterOf(m, e, deadletter.RejectedBySink)
		}
		b.handle()
		b.want(1, 0, 0)
		if r := b.row(e.Doc); r.Dead != "" || r.Pending != e.Key {
			t.Errorf("row %+v was touched: index's REJECT follows its own dead letter", r)
		}
	})
}

func TestDeadLetterOfACommittedVersionIsDroppedAsSuperseded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, nil)
		m := queue.Message{ID: "m", Body: body("1", 1), Sent: time.Now()}
		newer := b.event(queue.Message{Body: body("1", 2)})
		b.admit(newer)
		b.commit(b.claim(newer))
		b.letterOf(m, b.event(m), deadletter.Refusals)
		b.handle()
		b.want(0, 0, 0)
		if got := len(b.notes.Of(journal.Dropped)); got != 1 {
			t.Errorf("%d notes of a drop, want 1", got)
		}
	})
}

func TestDeadLetterOfANewerLullIsLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, nil)
		b.dead.Send(t.Context(), []queue.Outgoing{
			{Body: "x", Attributes: map[string]queue.Attribute{deadletter.AttrLetter: queue.Text(`{"schema":2}`)}},
		})
		b.dead.Send(t.Context(), []queue.Outgoing{
			{Body: "y", Attributes: map[string]queue.Attribute{deadletter.AttrLetter: queue.Text(`forged`)}},
		})
		if kept := b.handle(); len(kept) != 1 {
			t.Errorf("kept %v, want the one with a newer schema", kept)
		}
		b.want(1, 0, 1)
		if got := len(b.notes.Of(journal.Schema)); got != 1 {
			t.Errorf("%d alarms, want 1", got)
		}
	})
}

func TestTwoInvocationsOverOneDeadLetterAgree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, nil)
		b.old()
		ms, err := b.dead.Receive(t.Context(), 1, 0)
		if err != nil || len(ms) != 1 {
			t.Fatalf("received %d, error %v", len(ms), err)
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if kept := b.h.Handle(t.Context(), append(ms, ms...)); len(kept) != 0 {
					t.Errorf("kept %v", kept)
				}
			})
		}
		wg.Wait()
		if got := len(b.parked()); got != 1 {
			t.Errorf("%d dead letters, want 1", got)
		}
	})
}

func TestAnswerNamesEachMessageOnceAndIsNeverNil(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, nil)
		if got := b.h.Handle(t.Context(), nil); got == nil || len(got) != 0 {
			t.Errorf("got %v, want an empty answer", got)
		}
		b.h.Letters = &downLetters{b.letters, true}
		m := queue.Message{ID: "m", Body: "not JSON", Sent: time.Now()}
		if got := b.h.Handle(t.Context(), []queue.Message{m, m}); len(got) != 1 || got[0] != "m" {
			t.Errorf("got %v, want [m]", got)
		}
	})
}

// Faults, line 53.
func TestExpectedRefusalsAreNeitherErrorsNorAlarms(t *testing.T) {
	t.Parallel()
	races := map[string]func(b *bench, m queue.Message){
		"stale": func(b *bench, m queue.Message) {
			e := b.event(queue.Message{Body: body("1", 2)})
			b.admit(e)
			b.commit(b.claim(e))
		},
		"duplicate":  func(b *bench, m queue.Message) { b.commit(b.claim(b.event(m))) },
		"lease busy": func(b *bench, m queue.Message) { b.claim(b.event(m)) },
		"superseded": func(b *bench, m queue.Message) { b.admit(b.event(queue.Message{Body: body("1", 2)})) },
	}
	for name, race := range races {
		for _, when := range []string{"before it is judged", "between judging and PARK"} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					b := setup(t, nil)
					m := b.old()
					if when == "before it is judged" {
						race(b, m)
					} else {
						b.h.Shards = &downShards{Store: b.shards, race: func() { race(b, m) }}
					}
					b.handle()
					time.Sleep(time.Minute)
					b.handle()
					if b.dead.Counts().Total() != 0 {
						t.Error("the message is still there")
					}
					for _, step := range []journal.Step{
						journal.Failed, journal.Stuck, journal.Schema, journal.Blocked, journal.LeaseLost,
						journal.SinkNewer, journal.Conflict,
					} {
						if n := len(b.notes.Of(step)); n != 0 {
							t.Errorf("%d notes %s, want none: it was to be expected", n, step)
						}
					}
				})
			})
		}
	}
}
