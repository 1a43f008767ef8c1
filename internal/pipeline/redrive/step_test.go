// SPDX-License-Identifier: Apache-2.0

package redrive_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/pipeline/redrive"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
)

// Row 51 of docs/faults.md: a dead letter is never deleted because of the number of dead letters or
// its age.
func TestDeadLettersAreNeverTrimmed(t *testing.T) {
	play(t, func(b *bench) {
		const letters = 1234
		for i := range letters {
			b.die(message(put(fmt.Sprintf("%04d", i), 1)))
		}
		time.Sleep(400 * 24 * time.Hour)
		if n := len(b.list(redrive.Selection{})); n != letters {
			b.Errorf("listed %d dead letters, want %d", n, letters)
		}
		tally, err := b.redriveAll(redrive.Order{How: redrive.How{Force: true}})
		if err != nil || tally[redrive.Sent] != letters {
			b.Errorf("redrive: %v, error %v; want %d sent", tally, err, letters)
		}
		if n := len(b.list(redrive.Selection{})); n != letters {
			b.Errorf("%d dead letters remain, want all %d after a redrive", n, letters)
		}
	})
}

func TestSelectionByReasonCollectionTimeKeyAndState(t *testing.T) {
	play(t, func(b *bench) {
		start := time.Now()
		b.letter(message(put("1", 1)), deadletter.RejectedBySink)
		time.Sleep(time.Hour)
		b.letter(message(put("2", 1)), deadletter.Refusals)
		time.Sleep(time.Hour)
		third := b.letter(message(`{"type":"doc.changed","collection":"other","subject":"3","sequence":"1","data":{}}`),
			deadletter.RejectedBySink)
		b.letter(message(`not JSON`), deadletter.Undecodable)
		usecasetest.OK(b, b.Letters.MarkRedriven(b.Context(), third, time.Now(), false))
		tests := []struct {
			name string
			s    redrive.Selection
			want string
		}{
			{"all, oldest first", redrive.Selection{}, "1 2 3 "},
			{"reason", redrive.Selection{Filter: deadletter.Filter{Reason: deadletter.RejectedBySink}}, "1 3"},
			{"collection", redrive.Selection{Filter: deadletter.Filter{Collection: "content"}}, "1 2"},
			{"after", redrive.Selection{Filter: deadletter.Filter{After: start.Add(time.Minute)}}, "2 3 "},
			{"before", redrive.Selection{Filter: deadletter.Filter{Before: start.Add(time.Minute)}}, "1"},
			{"key", redrive.Selection{Filter: deadletter.Filter{Doc: "content#2"}}, "2"},
			{"unknown key", redrive.Selection{Filter: deadletter.Filter{Doc: "content#4"}}, ""},
			{"parked", redrive.Selection{Filter: deadletter.Filter{State: deadletter.Parked}}, "1 2 "},
			{"redriven", redrive.Selection{Filter: deadletter.Filter{State: deadletter.Redriven}}, "3"},
			{"id", redrive.Selection{ID: third}, "3"},
		}
		for _, tt := range tests {
			if got := b.list(tt.s); ids(got) != tt.want {
				b.Errorf("%s: got %q, want %q", tt.name, ids(got), tt.want)
			}
		}
		// The third dead letter was redriven without a result. After the retention of the
		// dead-letter queue it shows as parked again.
		time.Sleep(b.Config.Queues.DeadLetterRetention)
		if got := b.list(selection(deadletter.Filter{State: deadletter.Parked})); len(got) != 4 {
			b.Errorf("%d dead letters show as parked, want 4", len(got))
		}
	})
}

func TestBadSelectionsChangeNothing(t *testing.T) {
	play(t, func(b *bench) {
		b.die(message(put("1", 1)))
		for name, order := range map[string]redrive.Order{
			"unknown reason": {Selection: selection(deadletter.Filter{Reason: "nope"})},
			"unknown state":  {Selection: selection(deadletter.Filter{State: "nope"})},
			"bad collection": {Selection: selection(deadletter.Filter{Collection: "No"})},
			"after is later than before": {
				Selection: selection(deadletter.Filter{After: time.Now(), Before: time.Now().Add(-1)}),
			},
			"id and filter": {Selection: redrive.Selection{ID: "x", Filter: deadletter.Filter{Doc: "content#1"}}},
		} {
			if _, err := b.redriveAll(order); !errors.Is(err, redrive.ErrFilter) {
				b.Errorf("%s: got %v, want ErrFilter", name, err)
			}
		}
		everything := redrive.Order{How: redrive.How{By: "ann"}}
		if _, err := b.dropAll(everything); !errors.Is(err, redrive.ErrFilter) {
			b.Errorf("drop with an empty selection and without All: got %v, want ErrFilter", err)
		}
		unknown := redrive.Order{Selection: redrive.Selection{ID: "x"}}
		if _, err := b.redriveAll(unknown); !errors.Is(err, redrive.ErrUnknown) {
			b.Errorf("unknown id: got %v, want ErrUnknown", err)
		}
		if _, err := b.service.Show(b.Context(), "x"); !errors.Is(err, redrive.ErrUnknown) {
			b.Errorf("show an unknown id: got %v, want ErrUnknown", err)
		}
		if _, err := b.dropAll(redrive.Order{All: true}); err == nil {
			b.Error("drop without an operator: no error")
		}
		b.sent(b.live, 0)
		if n := b.Row("content#1"); n.Dead == "" {
			b.Error("the row lost its mark")
		}
	})
}

func TestEachDeadLetterIsDoneOnceAndADryRunSendsNothing(t *testing.T) {
	play(t, func(b *bench) {
		for i := range 20 {
			b.die(message(put(fmt.Sprintf("%02d", i), 1)))
		}
		newer := b.Event(message(put("07", 2)))
		b.Admit(newer)
		b.commit(newer)
		order := redrive.Order{Limit: 3, How: redrive.How{DryRun: true}}
		tally, err := b.redriveAll(order)
		if err != nil || tally[redrive.WouldSend] != 19 || tally[redrive.Superseded] != 1 || tally.total() != 20 {
			b.Errorf("dry run: %v, error %v", tally, err)
		}
		if b.live.Counts().Total() != 0 {
			b.Fatal("a dry run sent something")
		}
		order.DryRun = false
		tally, err = b.redriveAll(order)
		if err != nil || tally[redrive.Sent] != 19 || tally[redrive.Superseded] != 1 || tally.total() != 20 {
			b.Errorf("redrive: %v, error %v", tally, err)
		}
		tally, err = b.redriveAll(order)
		if err != nil || tally.total() != 0 {
			b.Errorf("again: %v, error %v; want no dead letter to send", tally, err)
		}
	})
}

// A dead letter that dies again while the steps run is not selected a second time.
func TestTheStepsSelectWhatDiedBeforeTheFirst(t *testing.T) {
	for verb, do := range map[string]func(*redrive.Service) func(context.Context, redrive.Order) (redrive.Step, error){
		"redrive": func(s *redrive.Service) func(context.Context, redrive.Order) (redrive.Step, error) { return s.Redrive },
		"drop":    func(s *redrive.Service) func(context.Context, redrive.Order) (redrive.Step, error) { return s.Drop },
	} {
		t.Run(verb, func(t *testing.T) {
			play(t, func(b *bench) {
				for i := range 3 {
					b.die(message(put(fmt.Sprint(i), 1)))
				}
				time.Sleep(time.Second)
				order := redrive.Order{How: redrive.How{By: "ann"}, All: true, Limit: 2}
				first, err := do(b.service)(b.Context(), order)
				if err != nil || len(first.Done) != 2 || first.Next == nil || !first.Next.Until.Equal(time.Now()) {
					b.Fatalf("first step: %+v, %v; want two and the time", first, err)
				}
				time.Sleep(time.Second)
				b.die(message(put("late", 1)))
				order.From = *first.Next
				second, err := do(b.service)(b.Context(), order)
				if err != nil || len(second.Done) != 1 || second.Done[0].Doc != "content#2" || second.Next != nil {
					b.Errorf("second step: %+v, %v; want only the third dead letter", second, err)
				}
			})
		})
	}
}

// A message is counted once for its dead letters, also if they are selected by several steps.
func TestAMessageIsSentOnceInSeveralSteps(t *testing.T) {
	play(t, func(b *bench) {
		ids, _ := b.together(5, message("one message "))
		for _, order := range []redrive.Order{
			{Limit: 2, How: redrive.How{DryRun: true}},
			{Limit: 2},
			{Limit: 2, Selection: selection(deadletter.Filter{State: deadletter.Redriven})},
		} {
			tally, err := b.redriveAll(order)
			if err != nil || tally[redrive.Sent]+tally[redrive.WouldSend] != 1 || tally[redrive.Covered] != len(ids)-1 {
				b.Errorf("%+v: %v, error %v; want one message", order, tally, err)
			}
		}
		b.sent(b.live, 2)
	})
}

func TestCampaignGoesOnAfterADeadLetterThatFails(t *testing.T) {
	play(t, func(b *bench) {
		b.die(message(put("1", 1)))
		stray := deadletter.New(message("x"), deadletter.Undecodable, "", "", "", 0, time.Now())
		stray.Sink = "gone"
		usecasetest.Must(b.Letters.Park(b.Context(), stray))(b)
		b.die(message(put("2", 1)))
		tally, err := b.redriveAll(redrive.Order{})
		if err == nil || tally[redrive.Sent] != 2 || tally[redrive.Failed] != 1 {
			b.Errorf("got %v, error %v; want two sent, one failed and the reason", tally, err)
		}
	})
}

func TestDropIsAudited(t *testing.T) {
	play(t, func(b *bench) {
		for i := range 3 {
			b.die(message(put(fmt.Sprint(i), 1)))
		}
		order := redrive.Order{
			Selection: redrive.Selection{Filter: deadletter.Filter{Doc: "content#1"}},
			How:       redrive.How{By: "ann", DryRun: true},
		}
		if tally, err := b.dropAll(order); err != nil || tally[redrive.WouldDrop] != 1 ||
			len(b.Notes.Of(journal.Dropped)) != 0 {
			b.Errorf("dry run: %v, error %v", tally, err)
		}
		order.DryRun = false
		if tally, err := b.dropAll(order); err != nil || tally[redrive.Dropped] != 1 {
			b.Errorf("drop: %v, error %v", tally, err)
		}
		audit := b.Notes.Of(journal.Dropped)
		if len(audit) != 1 || audit[0].Doc != "content#1" || audit[0].Detail != "operator ann dropped the dead letter (rejected)" {
			b.Errorf("audit %+v", audit)
		}
		if r := b.Row("content#1"); r.Dead == "" {
			b.Error("the row has no mark, so a copy in a queue would be tried again")
		}
		if got := ids(b.list(redrive.Selection{})); got != "0 2" {
			b.Errorf("remaining dead letters: %q, want 0 2", got)
		}
	})
}
