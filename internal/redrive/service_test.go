package redrive_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/redrive"
	"github.com/lullhq/lull/internal/shard"
)

func TestRedrivenDeadLetterIsSentByteForByteAndStays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		m := message(body("1", 1))
		m.Attributes = map[string]queue.Attribute{"x": queue.Text("y")}
		e := b.event(m)
		id := b.die(m)
		if r := b.row(e.Doc); r.Dead != e.Key {
			t.Fatalf("row %+v: want dead", r)
		}
		time.Sleep(time.Hour)
		b.one(id, redrive.How{By: "ann"}, redrive.Sent)
		if r := b.row(e.Doc); r.Dead != "" {
			t.Errorf("row %+v still says that it is stored: the copy would be deleted", r)
		}
		got := b.received(b.live)
		if len(got) != 1 || got[0].Body != m.Body || got[0].Attributes["x"].String != "y" ||
			len(got[0].Attributes) != 2 {
			t.Fatalf("sent %+v", got)
		}
		if first := got[0].FirstSent(); !first.Equal(m.Sent.Truncate(time.Millisecond)) {
			t.Errorf("first sent %s, want %s", first, m.Sent)
		}
		if f, ok := b.facts(id); !ok || f.State != deadletter.Redriven || f.Redrives != 1 || f.Auto != 0 ||
			!f.RedrivenAt.Equal(time.Now()) {
			t.Errorf("dead letter %+v, there %t; want it redriven once by an operator", f, ok)
		}
		if n := b.notes.Of(journal.Redriven); len(n) != 1 || n[0].Detail != "by ann" {
			t.Errorf("audit %+v", n)
		}
	})
}

// Faults, line 51.
func TestRedriveAfterNewerCommitIsSuperseded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		id := b.die(message(body("1", 1)))
		newer := b.event(message(body("1", 2)))
		b.admit(newer)
		b.commit(newer)
		b.one(id, redrive.How{DryRun: true}, redrive.Superseded)
		if _, ok := b.facts(id); !ok {
			t.Fatal("a dry run took the dead letter away")
		}
		b.one(id, redrive.How{}, redrive.Superseded)
		if _, ok := b.facts(id); ok {
			t.Error("the dead letter is still there")
		}
		if got := b.received(b.live); len(got) != 0 {
			t.Errorf("%d messages were sent, want none", len(got))
		}
		if n := b.notes.Of(journal.Dropped); len(n) != 1 {
			t.Errorf("%d notes of a drop, want 1", len(n))
		}
		b.one(id, redrive.How{}, redrive.Gone)
	})
}

// Faults, line 51: the dead letter is parked and the operator faster than index's REJECT.
func TestRedriveThatOvertakesRejectStaysParked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		m := message(body("1", 1))
		e := b.event(m)
		b.admit(e)
		l := b.claim(e)
		id := b.letter(m, deadletter.RejectedBySink)
		b.one(id, redrive.How{}, redrive.Busy) // leased
		time.Sleep(14 * time.Second)
		b.one(id, redrive.How{}, redrive.Busy) // the invocation died: pending still
		b.reject(l)
		if f, ok := b.facts(id); !ok || f.State != deadletter.Parked || f.Redrives != 0 {
			t.Fatalf("dead letter %+v, there %t; want it parked", f, ok)
		}
		if got := b.received(b.live); len(got) != 0 {
			t.Errorf("%d messages were sent, want none", len(got))
		}
		b.one(id, redrive.How{}, redrive.Sent)
	})
}

// Faults, line 51.
func TestRefusedRedriveStaysParked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		id := b.die(message(body("1", 1)))
		for n := range 3 {
			time.Sleep(time.Minute)
			b.one(id, redrive.How{}, redrive.Sent)
			copies := b.received(b.live)
			if len(copies) != 1 {
				t.Fatalf("%d copies, want 1", len(copies))
			}
			if again := b.die(copies[0]); again != id { // the sink refuses it again
				t.Fatalf("dead letter %s, want %s: one dead letter for one version", again, id)
			}
			if f, ok := b.facts(id); !ok || f.State != deadletter.Parked || f.Redrives != n+1 {
				t.Fatalf("dead letter %+v, there %t; want it parked and %d redrives", f, ok, n+1)
			}
		}
	})
}

// Faults, line 47.
func TestRedriveOlderThanRowsIsTooOldToJudge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		m := message(body("1", 1))
		id := b.die(m)
		limit := b.cfg.Lifecycle.RowRetention - b.cfg.Lifecycle.ProducerLateness
		time.Sleep(limit - time.Since(m.Sent))
		b.one(id, redrive.How{DryRun: true}, redrive.Sent)
		time.Sleep(time.Millisecond)
		b.one(id, redrive.How{}, redrive.TooOld)
		if got := b.received(b.live); len(got) != 0 {
			t.Fatalf("%d messages were sent, want none", len(got))
		}
		b.one(id, redrive.How{Force: true, By: "ann"}, redrive.Sent)
		copies := b.received(b.live)
		if len(copies) != 1 {
			t.Fatalf("%d copies, want 1", len(copies))
		}
		// Young enough to be judged during the redrive span, and no younger.
		if age, want := time.Since(copies[0].FirstSent()), limit-b.cfg.Lifecycle.RedriveSpan; age < want ||
			age > want+time.Second {
			t.Errorf("the forced copy is %s old, want %s", age, want)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		e := b.event(message(body("1", 1)))
		b.admit(e)
		b.commit(e)
		id := b.die(message(body("1", 2)))
		time.Sleep(b.cfg.Lifecycle.RowRetention)
		b.one(id, redrive.How{}, redrive.Sent) // the row is still there and has a commit to judge it by
	})
}

// Faults, line 52.
func TestCopyUnderArrivalIsNotNewerThanItsOriginal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		arrival := map[string]queue.Attribute{queue.AttrSource: queue.Text("arrival")}
		m := message(`{"type":"doc.changed","subject":"1","data":{"title":"old"}}`)
		m.Sent = m.Sent.Truncate(time.Millisecond)
		m.Attributes = arrival
		id := b.die(m)
		time.Sleep(time.Hour)
		newer := message(`{"type":"doc.changed","subject":"1","data":{"title":"new"}}`)
		newer.Attributes = arrival
		time.Sleep(time.Hour)
		b.one(id, redrive.How{}, redrive.Sent)
		copies := b.received(b.live)
		if len(copies) != 1 {
			t.Fatalf("%d copies, want 1", len(copies))
		}
		if got, want := b.event(copies[0]).Key, b.event(m).Key; got != want {
			t.Errorf("copy has key %s, its original %s", got, want)
		}
		if b.event(copies[0]).Key >= b.event(newer).Key {
			t.Error("copy is newer than what was sent after its original")
		}
	})
}

func TestRowDecidesWhatARedriveMayDo(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		row  func(b *bench, m queue.Message)
		want redrive.Outcome
	}{
		{"no row", func(b *bench, m queue.Message) {}, redrive.Sent},
		{"another version is dead", func(b *bench, m queue.Message) {
			e := b.event(message(body("1", 7)))
			b.write(shard.Park(e.Doc, e.Key, now(), 1, b.row(e.Doc)))
		}, redrive.Sent},
		{
			"an older version is pending", func(b *bench, m queue.Message) { b.admit(b.event(message(body("1", 1)))) },
			redrive.Sent,
		},
		{
			"a newer version is pending", func(b *bench, m queue.Message) { b.admit(b.event(message(body("1", 7)))) },
			redrive.Sent,
		},
		{"it is pending", func(b *bench, m queue.Message) { b.admit(b.event(m)) }, redrive.Busy},
		{"a newer version is being written", func(b *bench, m queue.Message) {
			e := b.event(message(body("1", 7)))
			b.admit(e)
			b.claim(e)
		}, redrive.Busy},
		{"it is committed", func(b *bench, m queue.Message) {
			b.admit(b.event(m))
			b.commit(b.event(m))
		}, redrive.Superseded},
		{"the row has a newer schema", func(b *bench, m queue.Message) {
			b.write(shard.Write{Doc: "content#1", Update: []shard.Action{
				{
					Verb: shard.Set, Attr: shard.AttrSchema,
					Val: shard.Value{Kind: shard.KindNumber, Num: shard.SchemaVersion + 1},
				},
			}})
		}, redrive.Foreign},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t)
				m := message(body("1", 5))
				e := b.event(m)
				l := deadletter.New(m, deadletter.Refusals, "", e.Doc, e.Key, 0, time.Now())
				l.Sink, l.Lane = "search", "bulk"
				if _, err := b.letters.Park(t.Context(), l); err != nil {
					t.Fatal(err)
				}
				tt.row(b, m)
				before := b.row(e.Doc)
				b.one(l.ID, redrive.How{DryRun: true}, tt.want)
				if got := b.row(e.Doc); got != before {
					t.Errorf("a dry run changed the row to %+v", got)
				}
				if n := b.bulk.Counts().Total(); n != 0 {
					t.Fatalf("a dry run sent %d messages", n)
				}
				b.one(l.ID, redrive.How{}, tt.want)
				if got, want := b.bulk.Counts().Total() == 1, tt.want == redrive.Sent; got != want {
					t.Errorf("sent to the bulk lane: %t, want %t", got, want)
				}
			})
		})
	}
}

// downQueue takes nothing.
type downQueue struct{ queue.Queue }

var errDown = errors.New("connection reset")

func (downQueue) Send(_ context.Context, out []queue.Outgoing) []error {
	errs := make([]error, len(out))
	for i := range errs {
		errs[i] = errDown
	}
	return errs
}

// downLetters loses marks.
type downLetters struct{ deadletter.Store }

func (downLetters) MarkRedriven(context.Context, string, time.Time, bool) error { return errDown }

func TestRedriveThatFailsHalfWayLosesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		m := message(body("1", 1))
		id := b.die(m)

		good := b.service.Queues
		b.service.Queues = func(s string, l flight.Lane) queue.Queue { return downQueue{good(s, l)} }
		if got, err := b.service.One(t.Context(), id, redrive.How{}); got != redrive.Failed ||
			!errors.Is(err, errDown) {
			t.Errorf("send failed: got %s, error %v; want failed", got, err)
		}
		if f, ok := b.facts(id); !ok || f.State != deadletter.Parked {
			t.Fatalf("dead letter %+v, there %t; want it parked", f, ok)
		}
		b.service.Queues = good

		b.service.Letters = downLetters{b.letters}
		if got, err := b.service.One(t.Context(), id, redrive.How{}); got != redrive.Sent || !errors.Is(err, errDown) {
			t.Errorf("mark failed: got %s, error %v; want sent and the error", got, err)
		}
		b.service.Letters = b.letters
		b.one(id, redrive.How{}, redrive.Sent) // again: a duplicate, judged by version
		if copies := b.received(b.live); len(copies) != 2 {
			t.Errorf("%d copies, want 2", len(copies))
		}
	})
}

func TestDeadLetterThatCannotBeCopiedStays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		m := message(body("1", 1))
		m.Attributes = map[string]queue.Attribute{}
		for i := range queue.MaxEntries {
			m.Attributes[fmt.Sprint("a", i)] = queue.Text("x")
		}
		b.one(b.die(m), redrive.How{}, redrive.TooLarge)
		empty := deadletter.New(message(""), deadletter.Undecodable, "", "", "", 0, time.Now())
		empty.Sink = "search"
		if _, err := b.letters.Park(t.Context(), empty); err != nil {
			t.Fatal(err)
		}
		b.one(empty.ID, redrive.How{}, redrive.Empty)
		b.one(empty.ID, redrive.How{DryRun: true}, redrive.Empty)
		lost := deadletter.New(message("x"), deadletter.Undecodable, "", "", "", 0, time.Now())
		lost.Sink = "gone"
		if _, err := b.letters.Park(t.Context(), lost); err != nil {
			t.Fatal(err)
		}
		if got, err := b.service.One(t.Context(), lost.ID, redrive.How{}); got != redrive.Failed || err == nil {
			t.Errorf("no such sink: got %s, error %v", got, err)
		}
		if n := len(b.received(b.live)); n != 0 {
			t.Errorf("%d messages were sent", n)
		}
	})
}
