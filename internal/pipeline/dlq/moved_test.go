// SPDX-License-Identifier: Apache-2.0

package dlq_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// Row 24 of docs/faults.md: the receive count does not count the tries of a version.
func TestReceiveCountIsNotAnAttemptCount(t *testing.T) {
	t.Parallel()
	for _, lane := range []string{"live", "bulk"} {
		t.Run(lane, func(t *testing.T) {
			play(t, nil, func(b *bench) {
				q := b.live
				if lane == "bulk" {
					q = b.bulk
				}
				first := time.Now()
				m := b.send(q, put("1", 1), map[string]queue.Attribute{"x": queue.Text("y")})
				b.Admit(b.Event(m)) // receive ran for this version, but index never did
				time.Sleep(time.Hour)
				b.move(q, m)

				b.keeps(0, "the message is given back")
				if got := len(b.parked()); got != 0 {
					b.Errorf("%d dead letters are parked, want none, because the version never ran", got)
				}
				if got := q.Counts(); got.Delayed != 1 || got.Total() != 1 {
					b.Fatalf("%s queue: %+v, want one delayed message", lane, got)
				}
				time.Sleep(b.Config.Retry.BackoffMax)
				back := b.receive(q)
				if back.Body != m.Body || back.Attributes["x"].String != "y" {
					b.Errorf("the message was given back as %q %v, want the original", back.Body, back.Attributes)
				}
				if got := back.FirstSent(); !got.Equal(first.Truncate(time.Millisecond)) {
					b.Errorf("first sent %s, want %s: a copy is not newer", got, first)
				}

				// If SQS moves the message again too early, dlq gives it back again, with the age
				// of the original.
				time.Sleep(time.Hour)
				b.move(q, back)
				b.handle()
				time.Sleep(b.Config.Retry.BackoffMax)
				if back = b.receive(q); !back.FirstSent().Equal(first.Truncate(time.Millisecond)) {
					b.Errorf("first sent %s, want %s: a copy of a copy is not newer", back.FirstSent(), first)
				}

				// The message is not given back for ever, because the age of the first copy counts.
				time.Sleep(b.Config.Retry.DeadDeadline)
				b.move(q, back)
				b.keeps(0, "the message is parked")
				b.Noted(journal.Returned, 2)
				parked := b.one(deadletter.ReceiveCount)
				if parked.Lane != lane || parked.Sink != "search" {
					b.Errorf("parked %+v, want a dead letter of lane %s", parked, lane)
				}
				if r := b.Row("content#1"); r.Dead != parked.Key || r.Pending != "" || r.ExpiresAt == 0 {
					b.Errorf("row %+v, want the version dead, nothing pending, and a time to expire", r)
				}
			})
		})
	}
}

// Row 26 of docs/faults.md: a message whose row is leased is not parked.
func TestDeadLetterOfALeasedRowIsNotParked(t *testing.T) {
	play(t, nil, func(b *bench) {
		m := b.send(b.live, put("1", 1), nil)
		e := b.Event(m)
		b.Admit(e)
		l := b.Claim(e) // the last permitted attempt is running
		b.move(b.live, m)
		b.keeps(1, "the message is kept")
		b.want(0, 0, 1)
		if r := b.Row(e.Doc); r.Dead != "" || r.Pending != e.Key {
			b.Errorf("row %+v was changed", r)
		}
		time.Sleep(12 * time.Second)
		if got := b.dead.Counts().Visible; got != 0 {
			b.Errorf("%d messages are visible before the lease ends, want none", got)
		}
		b.Commit(l, shard.Put)
		time.Sleep(3 * time.Second)
		b.keeps(0, "the message is done")
		b.want(0, 0, 0)
	})
}

func TestClaimWithoutAnswerIsParkedOnceItsLeaseHasEnded(t *testing.T) {
	play(t, nil, func(b *bench) {
		m := b.send(b.live, put("1", 1), nil)
		e := b.Event(m)
		b.Admit(e)
		b.Claim(e)
		b.move(b.live, m)
		b.handle()
		time.Sleep(15 * time.Second)
		b.keeps(0, "the message is parked")
		b.want(1, 0, 0)
		if got := b.one(deadletter.ReceiveCount); got.Key != e.Key || got.MessageID != m.ID {
			b.Errorf("parked %+v, which is wrong", got)
		}
		// A version that may be in the sink blocks older versions, and a note says so.
		older := b.send(b.live, put("1", 0), nil)
		b.Admit(b.Event(older))
		b.move(b.live, older)
		b.handle()
		b.Noted(journal.Blocked, 1)
		b.want(2, 0, 0)
	})
}

func TestMovedMessageIsJudgedByItsRow(t *testing.T) {
	t.Parallel()
	mismatched := `{"type":"doc.changed","subject":"1","sequence":"01ARZ3NDEKTSV4RRFFQ69G5FAV","sequencetype":"lex","data":{}}`
	type row struct {
		body   string
		row    func(b *bench, m queue.Message) // changes the row before dlq judges the message
		reason deadletter.Reason               // reason of the parked dead letter; empty if nothing is parked
		kept   bool
		step   journal.Step
		pend   bool // a version is still pending in the row afterwards
	}
	usecasetest.Table(t, stage(nil).play, map[string]row{
		"this version was committed": {put("1", 5), func(b *bench, m queue.Message) {
			b.Admit(b.Event(m))
			b.Commit(b.Claim(b.Event(m)), shard.Put)
		}, "", false, journal.Duplicate, false},
		"a newer version was committed": {put("1", 5), func(b *bench, m queue.Message) {
			e := b.EventOf(put("1", 6))
			b.Admit(e)
			b.Commit(b.Claim(e), shard.Put)
		}, "", false, journal.Superseded, false},
		"the dead letter is stored": {put("1", 5), func(b *bench, m queue.Message) {
			e := b.Event(m)
			b.Admit(e)
			b.Write(shard.Park(e.Doc, e.Key, now(), b.Config.Lifecycle.Expires(time.Now()), b.Row(e.Doc)))
		}, "", false, journal.AlreadyDead, false},
		"row of a newer schema": {put("1", 5), func(b *bench, m queue.Message) {
			b.Write(shard.Write{Doc: "content#1", Update: []shard.Action{
				{
					Verb: shard.Set, Attr: shard.AttrSchema,
					Val: shard.Value{Kind: shard.KindNumber, Num: shard.SchemaVersion + 1},
				},
			}})
		}, "", true, journal.Schema, false},
		"a newer version waits, and this version never ran and is old": {put("1", 5), func(b *bench, m queue.Message) {
			time.Sleep(b.Config.Retry.DeadDeadline + time.Second)
			b.Admit(b.EventOf(put("1", 6)))
		}, deadletter.ReceiveCount, false, journal.DeadLettered, true},
		"the row no longer knows the version": {put("1", 5), func(b *bench, m queue.Message) {
			time.Sleep(b.Config.Retry.DeadDeadline + time.Second)
		}, deadletter.ReceiveCount, false, journal.DeadLettered, false},
		"not JSON": {"hello", nil, deadletter.Undecodable, false, journal.DeadLettered, false},
		"no version": {
			`{"type":"doc.changed","subject":"1","data":{}}`, nil, deadletter.VersionInvalid, false,
			journal.DeadLettered, false,
		},
	}, func(b *bench, tt row) {
		m := b.send(b.live, tt.body, nil)
		if tt.row != nil {
			tt.row(b, m)
		}
		b.move(b.live, m)
		if kept := b.handle(); len(kept) == 1 != tt.kept {
			b.Fatalf("kept %v, want kept %t", kept, tt.kept)
		}
		if tt.reason != "" {
			parked := b.one(tt.reason)
			l, _, err := b.Letters.Get(b.Context(), parked.ID)
			if err != nil || l.Body != tt.body {
				b.Errorf("dead letter has the body %q, error %v; want the original byte for byte", l.Body, err)
			}
			if r := b.Row("content#1"); parked.Key != "" && !tt.pend && r.Dead != parked.Key {
				b.Errorf("row %+v, want dead = %s", r, parked.Key)
			}
		} else if parked := b.parked(); len(parked) != 0 {
			b.Errorf("parked %+v, want none", parked)
		}
		b.Noted(tt.step, 1)
		if got := b.Row("content#1").Pending != ""; got != tt.pend {
			b.Errorf("a version is pending afterwards: %t, want %t", got, tt.pend)
		}
	})
	t.Run("versions of another class", func(t *testing.T) {
		lex := func(c *config.Config) { c.Sources["lex"] = config.Source{Kind: "native", Class: config.ClassLex} }
		play(t, lex, func(b *bench) {
			e := b.EventOf(put("1", 6))
			b.Admit(e)
			b.Commit(b.Claim(e), shard.Put)
			before := b.Row(e.Doc)
			b.move(b.live, b.send(b.live, mismatched, map[string]queue.Attribute{queue.AttrSource: queue.Text("lex")}))
			b.handle()
			b.one(deadletter.ClassMismatch)
			if got := b.Row(e.Doc); got != before {
				b.Errorf("the row is now %+v, want it unchanged", got)
			}
		})
	})
}

func s3Records(keys ...string) string {
	var records []string
	for i, k := range keys {
		records = append(records, fmt.Sprintf(`{"eventSource":"aws:s3","eventName":"ObjectCreated:Put","eventTime":"2026-11-20T16:00:00.000Z",
			"s3":{"bucket":{"name":"b"},"object":{"key":%q,"sequencer":"00%d"}}}`, k, i))
	}
	return `{"Records":[` + strings.Join(records, ",") + `]}`
}

func TestMessageWithSeveralEventsGoesAsOnePiece(t *testing.T) {
	t.Parallel()
	from := map[string]queue.Attribute{queue.AttrSource: queue.Text("s3")}
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, nil)
		m := b.send(b.live, s3Records("one", "two"), from)
		r := b.Sources.Decode(m)
		if len(r) != 2 || r[0].Invalid != nil || r[1].Invalid != nil {
			t.Fatalf("decode: %+v", r)
		}
		one, two := r[0].Event, r[1].Event
		b.Admit(one)
		b.Admit(two)
		b.Claim(one)
		b.move(b.live, m)
		if kept := b.handle(); len(kept) != 1 {
			t.Fatalf("kept %v, want the whole message to wait for the lease", kept)
		}
		b.want(0, 0, 1)
		time.Sleep(15 * time.Second)
		b.handle()
		b.want(0, 1, 0) // two of its events never ran, so the whole message is given back
		time.Sleep(b.Config.Retry.DeadDeadline)
		b.move(b.live, b.receive(b.live))
		b.handle()
		b.want(2, 0, 0)
		for _, e := range []shard.DocID{one.Doc, two.Doc} {
			if r := b.Row(e); r.Dead == "" || r.Pending != "" {
				t.Errorf("row %+v, want the version dead", r)
			}
		}
	})
}

func TestMessageThatHasNoRoomToBeSentAgainIsParked(t *testing.T) {
	play(t, nil, func(b *bench) {
		attrs := map[string]queue.Attribute{}
		for i := range queue.MaxAttributes {
			attrs[fmt.Sprint("a", i)] = queue.Text("x")
		}
		b.move(b.live, b.send(b.live, put("1", 1), attrs))
		b.keeps(0, "the message is parked with all attributes")
		b.want(1, 0, 0)
		l, _, _ := b.Letters.Get(b.Context(), b.parked()[0].ID)
		if len(l.Attributes) != queue.MaxAttributes {
			b.Errorf("dead letter has %d attributes, want %d", len(l.Attributes), queue.MaxAttributes)
		}
	})
}

func TestMessageOlderThanRowsIsParkedAsTooOld(t *testing.T) {
	play(t, nil, func(b *bench) {
		old := fmt.Sprint(time.Now().Add(-30 * 24 * time.Hour).UnixMilli())
		b.move(b.live, b.send(b.live, put("1", 1), map[string]queue.Attribute{queue.AttrFirstSent: queue.Text(old)}))
		b.handle()
		b.one(deadletter.TooOld)
	})
}

func TestWithoutDeadLettersEverythingIsCountedAndGone(t *testing.T) {
	play(t, func(c *config.Config) { c.DeadLetters = config.DeadLettersNone }, func(b *bench) {
		m := b.send(b.live, put("1", 1), nil)
		e := b.Event(m)
		b.Admit(e)
		time.Sleep(b.Config.Retry.DeadDeadline + time.Second)
		b.move(b.live, m)
		b.SendLetter(b.dead, queue.Message{Body: "x", Sent: time.Now()}, b.EventOf(put("2", 1)),
			deadletter.RejectedBySink)
		b.handle()
		b.want(0, 0, 0)
		b.Noted(journal.Dropped, 2)
		if r := b.Row(e.Doc); r.Pending != "" {
			b.Errorf("row %+v still has a pending version", r)
		}
	})
}

// Row 33 of docs/faults.md: a row past its TTL counts until DynamoDB deletes it.
func TestRowPastItsTTLCountsInFull(t *testing.T) {
	play(t, nil, func(b *bench) {
		newer := b.EventOf(put("1", 6))
		b.Admit(newer)
		b.Commit(b.Claim(newer), shard.Put)
		time.Sleep(b.Config.Lifecycle.RowRetention + b.Config.Lifecycle.TTLExtra + time.Hour)
		if r := b.Row(newer.Doc); r.ExpiresAt == 0 || r.ExpiresAt >= time.Now().Unix() {
			b.Fatalf("row %+v is not past its TTL", r)
		}
		b.move(b.live, b.send(b.live, put("1", 5), nil))
		b.SendLetter(b.dead, queue.Message{ID: "m", Body: put("1", 4), Sent: time.Now()},
			b.EventOf(put("1", 4)), deadletter.Refusals)
		b.handle()
		b.want(0, 0, 0)
		if got := len(b.Notes.Of(journal.Superseded)) + len(b.Notes.Of(journal.Dropped)); got != 2 {
			b.Errorf("%d messages were found superseded, want both", got)
		}
	})
}

// A message on which the decoder panics must not stay in the queue until its retention ends.
func TestADecoderThatPanicsLeavesADeadLetter(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.h.Sources = panicky{}
		b.move(b.live, b.send(b.live, "hunter2", nil))
		if kept := b.h.Handle(b.Context(), []queue.Message{b.receive(b.dead)}); len(kept) != 0 {
			b.Errorf("kept %v, want none", kept)
		}
		if l := b.one(deadletter.Panic); l.Detail != "decode: panic: string" {
			b.Errorf("parked %+v, want only the class of the panic in the detail", l)
		}
		b.Noted(journal.Panicked, 1)
	})
}

type panicky struct{}

func (panicky) DecodeContext(_ context.Context, m queue.Message) []event.Result { panic(m.Body) }
