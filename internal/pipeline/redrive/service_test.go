// SPDX-License-Identifier: Apache-2.0

package redrive_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/redrive"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

func TestRedrivenDeadLetterIsSentByteForByteAndStays(t *testing.T) {
	play(t, func(b *bench) {
		m := message(put("1", 1))
		m.Attributes = map[string]queue.Attribute{"x": queue.Text("y")}
		e := b.Event(m)
		id := b.die(m)
		if r := b.Row(e.Doc); r.Dead != e.Key {
			b.Fatalf("row %+v, want the version dead", r)
		}
		time.Sleep(time.Hour)
		b.one(id, redrive.How{By: "ann"}, redrive.Sent)
		if r := b.Row(e.Doc); r.Dead != "" {
			b.Errorf("row %+v still has dead = k, so receive would delete the copy", r)
		}
		got := b.Take(b.live)
		if len(got) != 1 || got[0].Body != m.Body || got[0].Attributes["x"].String != "y" ||
			len(got[0].Attributes) != 2 {
			b.Fatalf("sent %+v", got)
		}
		if first := got[0].FirstSent(); !first.Equal(m.Sent.Truncate(time.Millisecond)) {
			b.Errorf("first sent %s, want %s", first, m.Sent)
		}
		if f, ok := b.Facts(id); !ok || f.State != deadletter.Redriven || f.Redrives != 1 || f.Auto != 0 ||
			!f.RedrivenAt.Equal(time.Now()) {
			b.Errorf("dead letter %+v, stored %t; want it redriven once by an operator", f, ok)
		}
		if n := b.Notes.Of(journal.Redriven); len(n) != 1 || n[0].Detail != "by ann" {
			b.Errorf("audit %+v", n)
		}
	})
}

// The row's mark may belong to another dead letter by now. Force makes no difference.
func TestADeadLetterThatWasTakenBackIsNotSentAgain(t *testing.T) {
	play(t, func(b *bench) {
		m := message(put("1", 900))
		e := b.Event(m)
		id := b.die(m)
		b.Change(e.Doc, func(r *shard.Row) { r.Dead, r.TakenBack = "", shard.KeySetOf(e.Key) })
		b.one(id, redrive.How{By: "ann", Force: true}, redrive.Superseded)
		b.sent(b.live, 0)
		if _, there := b.Facts(id); there {
			b.Error("the dead letter is still stored")
		}
	})
}

// The row's mark belongs to the dead letter of the version itself, which remains parked.
func TestRedriveOfAnEventFromAWrongQueueChangesNoRow(t *testing.T) {
	play(t, func(b *bench) {
		m := message(put("1", 1))
		e := b.Event(m)
		b.die(m)
		l := deadletter.New(m, deadletter.Contract, "", e.Doc, e.Key, 0, time.Now())
		l.ID, l.Sink, l.Lane = deadletter.Astray("search", e.Doc, e.Key), "search", "live"
		usecasetest.Must(b.Letters.Park(b.Context(), l))(b)
		b.one(l.ID, redrive.How{By: "ann"}, redrive.Sent)
		b.sent(b.live, 1)
		if r := b.Row(e.Doc); r.Dead != e.Key {
			b.Errorf("row %+v, want the mark of the version's own dead letter", r)
		}
	})
}

// If the row decided, the dead letter would stay busy.
func TestRedriveOfAnEventWithoutAVersionAsksNoRow(t *testing.T) {
	play(t, func(b *bench) {
		e := b.Event(message(put("1", 1)))
		b.Admit(e)
		b.commit(e)
		l := deadletter.New(message(put("1", 2)), deadletter.VersionInvalid, "", e.Doc, "", 0, time.Now())
		l.Sink, l.Lane = "search", "live"
		usecasetest.Must(b.Letters.Park(b.Context(), l))(b)
		b.one(l.ID, redrive.How{By: "ann"}, redrive.Sent)
		b.sent(b.live, 1)
	})
}

// If the copy were sent to the queue that the event came from, receive would skip the copy. No
// other function reads that queue.
func TestRedriveOfASkippedEventGoesToTheSinkOfItsCollection(t *testing.T) {
	play(t, func(b *bench) {
		b.Config.Queues.Elsewhere = config.ElsewhereSkip
		m := message(put("1", 1))
		own := b.die(m)
		stray := deadletter.New(m, deadletter.Contract, "", b.Event(m).Doc, b.Event(m).Key, 0, time.Now())
		stray.ID, stray.Sink, stray.Lane = deadletter.Astray("other", stray.Doc, stray.Key), "other", "live"
		torn := message(`{"torn`)
		unknown := deadletter.New(torn, deadletter.Undecodable, "", "", "", 0, time.Now())
		unknown.Sink, unknown.Lane = "other", "live"
		for _, l := range []deadletter.Letter{stray, unknown} {
			usecasetest.Must(b.Letters.Park(b.Context(), l))(b)
		}
		cms := b.Config.Sources["native"]
		cms.Match = append(cms.Match, source.Match{Sink: "search"})
		b.Config.Sources["bound"] = cms
		if _, err := b.redrive(stray.ID); err == nil {
			b.Error("a sender that may send only to another sink reached this sink")
		}
		b.sent(b.live, 0)
		delete(b.Config.Sources, "bound")
		b.one(stray.ID, redrive.How{By: "ann"}, redrive.Sent)
		b.sent(b.live, 1)
		if _, err := b.redrive(unknown.ID); err == nil {
			b.Error("a dead letter without a document was sent to another sink")
		}
		b.one(own, redrive.How{}, redrive.Sent)
		b.sent(b.live, 1)
	})
}

// See row 51 of docs/faults.md.
func TestRedriveAfterNewerCommitIsSuperseded(t *testing.T) {
	play(t, func(b *bench) {
		id := b.die(message(put("1", 1)))
		newer := b.Event(message(put("1", 2)))
		b.Admit(newer)
		b.commit(newer)
		b.one(id, redrive.How{DryRun: true}, redrive.Superseded)
		if _, ok := b.Facts(id); !ok {
			b.Fatal("a dry run deleted the dead letter")
		}
		b.one(id, redrive.How{}, redrive.Superseded)
		if _, ok := b.Facts(id); ok {
			b.Error("the dead letter is still stored")
		}
		b.sent(b.live, 0)
		b.Noted(journal.Dropped, 1)
		b.one(id, redrive.How{}, redrive.Gone)
	})
}

// Row 51 of docs/faults.md: the dead letter is parked, and the operator is faster than index's
// REJECT.
func TestRedriveThatOvertakesRejectStaysParked(t *testing.T) {
	play(t, func(b *bench) {
		m := message(put("1", 1))
		e := b.Event(m)
		b.Admit(e)
		l := b.Claim(e)
		id := b.letter(m, deadletter.RejectedBySink)
		b.one(id, redrive.How{}, redrive.Busy) // the version is leased
		time.Sleep(14 * time.Second)
		b.one(id, redrive.How{}, redrive.Busy) // the invocation was killed, so the version is still pending
		b.reject(l)
		if f, ok := b.Facts(id); !ok || f.State != deadletter.Parked || f.Redrives != 0 {
			b.Fatalf("dead letter %+v, stored %t; want it parked", f, ok)
		}
		b.sent(b.live, 0)
		b.one(id, redrive.How{}, redrive.Sent)
	})
}

// See row 51 of docs/faults.md.
func TestRefusedRedriveStaysParked(t *testing.T) {
	play(t, func(b *bench) {
		id := b.die(message(put("1", 1)))
		for n := range 3 {
			time.Sleep(time.Minute)
			b.one(id, redrive.How{}, redrive.Sent)
			copies := b.sent(b.live, 1)
			if again := b.die(copies[0]); again != id { // the sink refuses the document again
				b.Fatalf("dead letter %s, want %s, because a version has only one", again, id)
			}
			if f, ok := b.Facts(id); !ok || f.State != deadletter.Parked || f.Redrives != n+1 {
				b.Fatalf("dead letter %+v, stored %t; want it parked and %d redrives", f, ok, n+1)
			}
		}
	})
}

// See row 47 of docs/faults.md.
func TestRedriveOlderThanRowsIsTooOldToJudge(t *testing.T) {
	play(t, func(b *bench) {
		m := message(put("1", 1))
		id := b.die(m)
		limit := b.Config.Lifecycle.RowRetention - b.Config.Lifecycle.ProducerLateness
		time.Sleep(limit - time.Since(m.Sent))
		b.one(id, redrive.How{DryRun: true}, redrive.WouldSend)
		time.Sleep(time.Millisecond)
		b.one(id, redrive.How{}, redrive.TooOld)
		b.sent(b.live, 0)
		b.one(id, redrive.How{Force: true, By: "ann"}, redrive.Sent)
		copies := b.sent(b.live, 1)
		// The copy is young enough to be judged during the redrive span, but not younger.
		if age, want := time.Since(copies[0].FirstSent()), limit-b.Config.Lifecycle.RedriveSpan; age < want ||
			age > want+time.Second {
			b.Errorf("the forced copy is %s old, want %s", age, want)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		e := b.Event(message(put("1", 1)))
		b.Admit(e)
		b.commit(e)
		id := b.die(message(put("1", 2)))
		time.Sleep(b.Config.Lifecycle.RowRetention)
		b.one(id, redrive.How{}, redrive.Sent) // the row still exists, and its committed version decides
	})
}

// See row 52 of docs/faults.md.
func TestCopyUnderArrivalIsNotNewerThanItsOriginal(t *testing.T) {
	play(t, func(b *bench) {
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
		copies := b.sent(b.live, 1)
		if got, want := b.Event(copies[0]).Key, b.Event(m).Key; got != want {
			b.Errorf("the copy has key %s, the original %s", got, want)
		}
		if b.Event(copies[0]).Key >= b.Event(newer).Key {
			b.Error("the copy is newer than an event that was sent after the original")
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
			e := b.Event(message(put("1", 7)))
			b.Write(shard.Park(e.Doc, e.Key, now(), 1, b.Row(e.Doc)))
		}, redrive.Sent},
		{
			"an older version is pending", func(b *bench, m queue.Message) { b.Admit(b.Event(message(put("1", 1)))) },
			redrive.Sent,
		},
		{
			"a newer version is pending", func(b *bench, m queue.Message) { b.Admit(b.Event(message(put("1", 7)))) },
			redrive.Sent,
		},
		{"the version is pending", func(b *bench, m queue.Message) { b.Admit(b.Event(m)) }, redrive.Busy},
		{"a newer version is being written", func(b *bench, m queue.Message) {
			e := b.Event(message(put("1", 7)))
			b.Admit(e)
			b.Claim(e)
		}, redrive.Busy},
		{"the version is committed", func(b *bench, m queue.Message) {
			b.Admit(b.Event(m))
			b.commit(b.Event(m))
		}, redrive.Superseded},
		{"the row has a newer schema", func(b *bench, m queue.Message) {
			b.Write(shard.Write{Doc: "content#1", Update: []shard.Action{
				{
					Verb: shard.Set, Attr: shard.AttrSchema,
					Val: shard.Value{Kind: shard.KindNumber, Num: shard.SchemaVersion + 1},
				},
			}})
		}, redrive.Foreign},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			play(t, func(b *bench) {
				m := message(put("1", 5))
				e := b.Event(m)
				l := deadletter.New(m, deadletter.Refusals, "", e.Doc, e.Key, 0, time.Now())
				l.Sink, l.Lane = "search", "bulk"
				usecasetest.Must(b.Letters.Park(b.Context(), l))(b)
				tt.row(b, m)
				before := b.Row(e.Doc)
				dry := tt.want
				if dry == redrive.Sent {
					dry = redrive.WouldSend
				}
				b.one(l.ID, redrive.How{DryRun: true}, dry)
				if got := b.Row(e.Doc); got != before {
					b.Errorf("a dry run changed the row to %+v", got)
				}
				if n := b.bulk.Counts().Total(); n != 0 {
					b.Fatalf("a dry run sent %d messages", n)
				}
				b.one(l.ID, redrive.How{}, tt.want)
				if got, want := b.bulk.Counts().Total() == 1, tt.want == redrive.Sent; got != want {
					b.Errorf("sent to the bulk lane: %t, want %t", got, want)
				}
			})
		})
	}
}

func TestRedriveThatFailsHalfWayLosesNothing(t *testing.T) {
	play(t, func(b *bench) {
		m := message(put("1", 1))
		id := b.die(m)

		good := b.service.Queues
		down := fault.NewInvocation(usecasetest.Decide(func(op fault.Op) fault.Verdict {
			if op.Call == "SendMessageBatch" || op.Call == "MarkRedriven" {
				return fault.FailBefore
			}
			return fault.OK
		}), "redrive", 1)
		b.service.Queues = func(s string, l flight.Lane) queue.Queue { return down.Queue(good(s, l)) }
		if got, err := b.redrive(id); got != redrive.Failed ||
			!errors.Is(err, fault.ErrInjected) {
			b.Errorf("send failed: got %s, error %v; want failed", got, err)
		}
		if f, ok := b.Facts(id); !ok || f.State != deadletter.Parked {
			b.Fatalf("dead letter %+v, stored %t; want it parked", f, ok)
		}
		b.service.Queues = good

		b.service.Letters = down.DeadLetters(b.Letters)
		if got, err := b.redrive(id); got != redrive.Sent ||
			!errors.Is(err, fault.ErrInjected) {
			b.Errorf("mark failed: got %s, error %v; want sent and the error", got, err)
		}
		b.service.Letters = b.Letters
		b.one(id, redrive.How{}, redrive.Sent) // sent again as a duplicate, which receive judges by its version
		b.sent(b.live, 2)
	})
}

func TestDeadLetterThatCannotBeCopiedStays(t *testing.T) {
	play(t, func(b *bench) {
		m := message(put("1", 1))
		m.Attributes = map[string]queue.Attribute{}
		for i := range queue.MaxEntries {
			m.Attributes[fmt.Sprint("a", i)] = queue.Text("x")
		}
		b.one(b.die(m), redrive.How{}, redrive.TooLarge)
		empty := deadletter.New(message(""), deadletter.Undecodable, "", "", "", 0, time.Now())
		empty.Sink = "search"
		usecasetest.Must(b.Letters.Park(b.Context(), empty))(b)
		b.one(empty.ID, redrive.How{}, redrive.Empty)
		b.one(empty.ID, redrive.How{DryRun: true}, redrive.Empty)
		lost := deadletter.New(message("x"), deadletter.Undecodable, "", "", "", 0, time.Now())
		lost.Sink = "gone"
		usecasetest.Must(b.Letters.Park(b.Context(), lost))(b)
		if got, err := b.redrive(lost.ID); got != redrive.Failed || err == nil {
			b.Errorf("no such sink: got %s, error %v", got, err)
		}
		b.sent(b.live, 0)
	})
}
