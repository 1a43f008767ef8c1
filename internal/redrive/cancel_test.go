package redrive_test

import (
	"errors"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/local/fault"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/redrive"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/usecasetest"
)

// hold admits the event and puts its message into flight "f".
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
			b.Errorf("row %+v: want it dead", r)
		}
		if n := b.Notes.Of(journal.DeadLettered); len(n) != 1 || n[0].Message != m.ID ||
			n[0].Detail != "cancelled: operator ann" {
			b.Errorf("audit %+v", n)
		}
		// It can be had back.
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
		race   func(b *bench) // after the dead letter is stored, before PARK
		want   error
		stored bool // a dead letter is left; it goes once its version is committed
	}{
		{"nothing known", func(b *bench) {}, nil, redrive.ErrNotPending, false},
		{"committed", func(b *bench) { b.hold(m()); b.commit(b.Event(m())) }, nil, redrive.ErrNotPending, false},
		{"being written", func(b *bench) { b.hold(m()); b.Claim(b.Event(m())) }, nil, redrive.ErrWriting, false},
		{"its flight never started", func(b *bench) { b.Admit(b.Event(m())) }, nil, redrive.ErrUnheld, false},
		{"its flight holds something else", func(b *bench) {
			b.hold(message(put("1", 2)))
			b.Admit(b.Event(m()))
		}, nil, redrive.ErrUnheld, false},
		{"newer schema", func(b *bench) { b.hold(m()); future(b) }, nil, redrive.ErrForeign, false},
		{
			"claimed and committed meanwhile", func(b *bench) { b.hold(m()) }, func(b *bench) { b.commit(b.Event(m())) },
			redrive.ErrWritten, false,
		},
		{
			"claimed meanwhile, no answer", func(b *bench) { b.hold(m()) },
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
	t.Run("for nobody", func(t *testing.T) {
		play(t, func(b *bench) {
			if _, err := b.service.Cancel(b.Context(), "content#1", ""); err == nil {
				b.Error("got no error, want somebody to be named")
			}
		})
	})
}
