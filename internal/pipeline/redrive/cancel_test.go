// SPDX-License-Identifier: Apache-2.0

package redrive_test

import (
	"errors"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/redrive"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/shard"
)

// hold admits the event of m and puts m into flight "f".
func (b *bench) hold(m queue.Message) {
	b.Helper()
	e := b.Event(m)
	b.Admit(e)
	err := b.flights.Put(b.Context(), &flight.Manifest{
		Schema: flight.SchemaVersion, Flight: "f", Sink: "search", Lane: flight.Bulk, Received: time.Now(),
		Records: []flight.Record{{Message: m, Events: []flight.Entry{{
			Index: e.Index, Doc: e.Doc, Key: e.Key, Class: e.Class, Op: e.Op, Due: now(), Admitted: now(),
		}}}},
	})
	if err != nil {
		b.Fatal(err)
	}
}

func TestCancelMakesThePendingVersionADeadLetter(t *testing.T) {
	play(t, func(b *bench) {
		m := message(put("1", 3))
		e := b.Event(m)
		b.hold(m)
		f, err := b.service.Cancel(b.Context(), "content#1", "ann")
		if err != nil || f.Reason != deadletter.Cancelled || f.Key != e.Key || f.Lane != "bulk" || f.MessageID != m.ID {
			b.Fatalf("cancel: %+v, error %v", f, err)
		}
		l, err := b.service.Show(b.Context(), f.ID)
		if err != nil || l.Body != m.Body || l.Detail != "by ann" {
			b.Errorf("dead letter %+v, error %v; want the message byte for byte", l, err)
		}
		if r := b.Row(e.Doc); r.Dead != e.Key || r.Pending != "" {
			b.Errorf("row %+v, want the version dead", r)
		}
		if n := b.Notes.Of(journal.DeadLettered); len(n) != 1 || n[0].Message != m.ID ||
			n[0].Detail != "cancelled: operator ann" {
			b.Errorf("audit %+v", n)
		}
		// An operator can send the version again.
		b.one(f.ID, redrive.How{By: "ann"}, redrive.Sent)
		if got := b.Take(b.bulk); len(got) != 1 || got[0].Body != m.Body {
			b.Errorf("sent %+v", got)
		}
		if _, err := b.service.Cancel(b.Context(), "content#1", "ann"); !errors.Is(err, redrive.ErrNotPending) {
			b.Errorf("cancel again: got %v, want ErrNotPending", err)
		}
	})
}

func TestCancelRefusesWhatItCannotUndo(t *testing.T) {
	t.Parallel()
	future := func(b *bench) {
		b.Write(shard.Write{Doc: "content#1", Update: []shard.Action{
			{
				Verb: shard.Set, Attr: shard.AttrSchema,
				Val: shard.Value{Kind: shard.KindNumber, Num: shard.SchemaVersion + 1},
			},
		}})
	}
	m := func() queue.Message { return message(put("1", 3)) }
	tests := []struct {
		name   string
		before func(b *bench)
		race   func(b *bench) // runs after the dead letter is stored, and before PARK
		want   error
		stored bool // a dead letter remains; prune deletes it once its version is committed
	}{
		{"no version known", func(b *bench) {}, nil, redrive.ErrNotPending, false},
		{"committed", func(b *bench) { b.hold(m()); b.commit(b.Event(m())) }, nil, redrive.ErrNotPending, false},
		{"being written", func(b *bench) { b.hold(m()); b.Claim(b.Event(m())) }, nil, redrive.ErrWriting, false},
		{"the flight never started", func(b *bench) { b.Admit(b.Event(m())) }, nil, redrive.ErrUnheld, false},
		{"the flight holds another version", func(b *bench) {
			b.hold(message(put("1", 2)))
			b.Admit(b.Event(m()))
		}, nil, redrive.ErrUnheld, false},
		{"newer schema", func(b *bench) { b.hold(m()); future(b) }, nil, redrive.ErrForeign, false},
		{
			"claimed and committed before PARK", func(b *bench) { b.hold(m()) }, func(b *bench) { b.commit(b.Event(m())) },
			redrive.ErrWritten, false,
		},
		{
			"claimed before PARK, no answer", func(b *bench) { b.hold(m()) },
			func(b *bench) { b.Claim(b.Event(m())) }, nil, true,
		},
		{
			"overtaken meanwhile", func(b *bench) { b.hold(m()) },
			func(b *bench) { b.Admit(b.Event(message(put("1", 4)))) }, redrive.ErrOvertaken, true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			play(t, func(b *bench) {
				tt.before(b)
				if tt.race != nil {
					race := usecasetest.At("PARK", func() { tt.race(b) })
					b.service.Shards = fault.NewInvocation(race, "redrive", 1).Shards(b.Shards)
				}
				start := time.Now()
				_, err := b.service.Cancel(b.Context(), "content#1", "ann")
				if !errors.Is(err, tt.want) {
					b.Errorf("got %v, want %v", err, tt.want)
				}
				if tt.want == nil && time.Since(start) < 13*time.Second {
					b.Errorf("took %s: PARK must wait for the lease", time.Since(start))
				}
				if got := len(b.list(redrive.Selection{})) == 1; got != tt.stored {
					b.Errorf("a dead letter is stored: %t, want %t", got, tt.stored)
				}
			})
		})
	}
	t.Run("without an operator", func(t *testing.T) {
		play(t, func(b *bench) {
			if _, err := b.service.Cancel(b.Context(), "content#1", ""); err == nil {
				b.Error("got no error, want one without an operator")
			}
		})
	})
}

// plan schedules an event with this version, due in an hour.
func (b *bench) plan(version int) schedule.Item {
	b.Helper()
	m := message(put("1", version))
	e := b.Event(m)
	it := schedule.Item{
		ID: deadletter.ID(e.Doc, e.Key, ""), Doc: e.Doc, Key: e.Key, Sink: "search", Lane: flight.Bulk, MessageID: m.ID,
		NotBefore: time.Now().Add(time.Duration(version) * time.Hour), FirstSent: m.Sent, Body: m.Body,
	}
	usecasetest.OK(b, b.schedule.Put(b.Context(), it))
	return it
}

func TestCancelTakesTheNextScheduledEvent(t *testing.T) {
	play(t, func(b *bench) {
		late, soon := b.plan(4), b.plan(3)
		for _, want := range []schedule.Item{soon, late} {
			f, err := b.service.CancelScheduled(b.Context(), "content#1", "ann")
			if err != nil || f.Key != want.Key || f.Reason != deadletter.Cancelled || f.Lane != "bulk" ||
				f.Sink != "search" {
				b.Fatalf("cancel: %+v, error %v", f, err)
			}
			if l, err := b.service.Show(b.Context(), f.ID); err != nil || l.Body != want.Body || l.Detail != "by ann" ||
				l.MessageID != want.MessageID {
				b.Errorf("dead letter %+v, error %v; want the message byte for byte", l, err)
			}
			if r := b.Row(want.Doc); r.Dead != want.Key || r.ExpiresAt == 0 {
				b.Errorf("row %+v, want the version dead and a time to expire", r)
			}
		}
		b.Noted(journal.DeadLettered, 2)
		if _, err := b.service.CancelScheduled(b.Context(), "content#1", "ann"); !errors.Is(err, redrive.ErrNotPlanned) {
			b.Errorf("cancel again: %v, want ErrNotPlanned", err)
		}
		if _, err := b.service.CancelScheduled(b.Context(), "content#1", ""); err == nil {
			b.Error("without an operator: got no error, want one")
		}
		b.one(late.ID, redrive.How{By: "ann"}, redrive.Sent) // an operator can send the version again
		if got := b.Take(b.bulk); len(got) != 1 || got[0].Body != late.Body {
			b.Errorf("sent %+v", got)
		}
	})
}

func TestCancelLeavesAScheduledEventThatItCannotStop(t *testing.T) {
	t.Parallel()
	newer := func() queue.Message { return message(put("1", 4)) }
	for name, tt := range map[string]struct {
		before, race func(b *bench)
		want         error
	}{
		"a newer version is committed": {func(b *bench) { b.hold(newer()); b.commit(b.Event(newer())) }, nil, redrive.ErrOutdated},
		"a newer version is pending":   {func(b *bench) { b.hold(newer()) }, nil, redrive.ErrOutdated},
		"a newer version arrives before PARK": {
			func(*bench) {}, func(b *bench) { b.Admit(b.Event(newer())) }, redrive.ErrOvertaken,
		},
		"a newer version is committed before PARK": {
			func(*bench) {},
			func(b *bench) { b.Admit(b.Event(newer())); b.commit(b.Event(newer())) }, redrive.ErrWritten,
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(b *bench) {
				b.plan(3)
				tt.before(b)
				if tt.race != nil {
					race := usecasetest.At("PARK, not pending", func() { tt.race(b) })
					b.service.Shards = fault.NewInvocation(race, "redrive", 1).Shards(b.Shards)
				}
				if _, err := b.service.CancelScheduled(b.Context(), "content#1", "ann"); !errors.Is(err, tt.want) {
					b.Errorf("got %v, want %v", err, tt.want)
				}
				if b.schedule.Len() != 1 {
					b.Error("the event was removed from the schedule")
				}
			})
		})
	}
}

// After a crash or a lost answer at any call, the command returns an error, and the next command
// completes the work.
func TestCancelOfAScheduledEventGoesOnAfterALostAnswer(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"ListScheduled", "GetScheduled", "Read", "PutLetter", "PARK, not pending", "DeleteScheduled"} {
		for _, verdict := range []fault.Verdict{fault.FailBefore, fault.FailAfter} {
			t.Run(call+" "+verdict.String(), func(t *testing.T) {
				play(t, func(b *bench) {
					it := b.plan(3)
					inv := fault.NewInvocation(usecasetest.Fails(call, verdict, -1), "cancel", 1)
					broken := *b.service
					broken.Shards, broken.Letters = inv.Shards(b.Shards), inv.DeadLetters(b.Letters)
					broken.Schedule = inv.Schedule(b.schedule)
					if _, err := broken.CancelScheduled(b.Context(), it.Doc, "ann"); err == nil {
						b.Error("Cancel did not return the error of the broken call")
					}
					f, err := b.service.CancelScheduled(b.Context(), it.Doc, "ann")
					if call == "DeleteScheduled" && verdict == fault.FailAfter {
						if !errors.Is(err, redrive.ErrNotPlanned) {
							b.Errorf("again: %v, want ErrNotPlanned", err)
						}
					} else if err != nil || f.Key != it.Key {
						b.Errorf("again: %+v, %v", f, err)
					}
					if r := b.Row(it.Doc); r.Dead != it.Key || b.schedule.Len() != 0 ||
						len(b.list(redrive.Selection{})) != 1 {
						b.Errorf("row %+v, %d scheduled", r, b.schedule.Len())
					}
				})
			})
		}
	}
}
