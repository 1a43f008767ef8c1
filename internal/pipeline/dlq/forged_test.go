// SPDX-License-Identifier: Apache-2.0

package dlq_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

const (
	index    = "AROAINDEX"
	stranger = "AROASTRANGER:session"
)

// from gives all visible messages of the dead-letter queue to dlq, as if the given sender had sent
// them. It deletes the messages that dlq does not keep.
func (b *bench) from(sender string) (kept int) {
	b.Helper()
	b.h.Senders = []string{"AROARECEIVE", index}
	ms, err := b.dead.Receive(b.Context(), 100, 0)
	if err != nil {
		b.Fatal(err)
	}
	for i := range ms {
		ms[i].Sender = sender
	}
	failed := b.h.Handle(b.Context(), ms)
	for _, m := range ms {
		if len(failed) == 0 {
			b.dead.Delete(b.Context(), []string{m.Receipt})
		}
	}
	time.Sleep(b.Config.Queues.Visibility)
	return len(failed)
}

// forge sends a message that looks like a dead letter from index about an event, with the forger's
// body.
func (b *bench) forge(body, of string, reason deadletter.Reason) deadletter.Letter {
	b.Helper()
	return b.SendLetter(b.dead, queue.Message{ID: "m", Body: body, Sent: time.Now()}, b.EventOf(of), reason)
}

func TestOnlyAFunctionsDeadLetterIsBelieved(t *testing.T) {
	t.Parallel()
	for sender, believed := range map[string]bool{
		index + ":lull-search-index": true, index: true, "AROARECEIVE:lull-search-receive": true,
		stranger: false, "": false, ":": false, "AROAINDEX2:x": false, "AROAINDE:X": false, "x:AROAINDEX": false,
		"AIDAISERVICE": false,
	} {
		t.Run(sender, func(t *testing.T) {
			play(t, nil, func(b *bench) {
				b.forge(put("1", 1), put("2", 7), deadletter.RejectedBySink)
				kept := b.from(sender)
				if kept == 1 == believed {
					t.Fatalf("kept %d messages, which is wrong for this sender", kept)
				}
				if believed {
					b.want(1, 0, 0)
					b.Noted(journal.Untrusted, 0)
					return
				}
				// Nothing is parked in the name of document 2. The body inside is an event that
				// never ran.
				if kept := b.from(sender); kept != 0 {
					t.Fatalf("kept %d messages, want them judged by the message inside", kept)
				}
				b.want(0, 1, 0)
				b.Noted(journal.Untrusted, 2)
				time.Sleep(b.Config.Retry.BackoffMax)
				back := b.receive(b.live)
				if _, forged := back.Attributes[deadletter.AttrLetter]; forged || back.Body != put("1", 1) {
					t.Errorf("the message was given back as %q %v, want the original", back.Body, back.Attributes)
				}
			})
		})
	}
}

func TestAForgedDeadLetterReplacesNoBodyAndEndsNoVersion(t *testing.T) {
	t.Parallel()
	usecasetest.Table(t, stage(nil).play, map[string]bool{
		"admitted": false, "claimed without an answer": true,
	}, func(b *bench, claimed bool) {
		real := b.forge(put("1", 1), put("1", 1), deadletter.RejectedBySink)
		b.from(index)
		pending := b.EventOf(put("2", 3))
		b.Admit(pending)
		if claimed {
			b.Claim(pending)
			time.Sleep(time.Minute)
		}
		b.forge(put("3", 9), put("1", 1), deadletter.RejectedBySink)
		b.forge(put("2", 3), put("2", 3), deadletter.ReceiveCount)
		old := queue.Message{Body: put("2", 3), Sent: time.Now().Add(-100 * time.Hour)}
		b.SendLetter(b.dead, old, pending, deadletter.DeadDeadline)
		for b.from(stranger) != 0 {
		}
		b.want(1, 3, 0)
		if got, _, _ := b.Letters.Get(b.Context(), real.ID); got.Body != put("1", 1) {
			b.Errorf("the parked body is now %q, want it unchanged", got.Body)
		}
		if r := b.Row(pending.Doc); r.Pending != pending.Key || r.Dead != "" {
			b.Errorf("row %+v, want the version still pending", r)
		}
	})
}

// A role that is created again has another id. For fourteen days, the queue may still have dead
// letters that were sent under the old id.
func TestADeadLetterOfAnEarlierRoleIsNotLost(t *testing.T) {
	t.Parallel()
	big := put("1", 1)
	big = strings.Replace(big, `"title":"`, `"title":"`+strings.Repeat("x", queue.MaxBytes-len(big)-100), 1)
	for name, body := range map[string]string{"plain": put("1", 1), "packed": big} {
		for _, marked := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				play(t, nil, func(b *bench) {
					first := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
					e := b.EventOf(body)
					b.Admit(e)
					lease := b.Claim(e)
					m := queue.Message{ID: "m", Body: body, Sent: first}
					l := b.SendLetter(b.dead, m, e, deadletter.RejectedBySink)
					if b.from("AROAEARLIER:lull-search-index") != 1 {
						t.Fatal("the dead letter was judged at once, although REJECT may not have been written")
					}
					if marked {
						expires := b.Config.Lifecycle.Expires(time.Now())
						b.Write(shard.Reject(lease, "mapper_parsing_exception", expires, b.Row(e.Doc)))
					}
					time.Sleep(time.Minute)
					b.from("AROAEARLIER:lull-search-index")
					if !marked { // index died before REJECT, so the version runs again
						b.want(0, 1, 0)
						time.Sleep(b.Config.Retry.BackoffMax)
						if m := b.receive(b.live); m.Body != body || !m.FirstSent().Equal(first) {
							t.Errorf("the message was given back with %d bytes, first sent %s; want %d, %s", len(m.Body), m.FirstSent(),
								len(body), first)
						}
						return
					}
					b.want(1, 0, 0)
					got, _, _ := b.Letters.Get(b.Context(), l.ID)
					if got.Body != body || got.Reason != deadletter.RejectedBySink ||
						!strings.Contains(got.Detail, "mapper_parsing_exception") {
						t.Errorf("parked %+v with %d bytes, want the original message", got.Facts, len(got.Body))
					}
				})
			})
		}
	}
}

// SNS and EventBridge send messages that they cannot deliver. Such a message never ran, whatever
// age it claims and whatever its row says about other copies of it.
func TestWhatSQSDidNotMoveNeverRan(t *testing.T) {
	play(t, nil, func(b *bench) {
		e := b.EventOf(put("1", 1))
		b.Admit(e)
		b.Claim(e)
		time.Sleep(time.Minute)
		old := time.Now().Add(-b.Config.Retry.DeadDeadline - time.Hour)
		b.dead.Send(b.Context(), []queue.Outgoing{
			{Body: put("1", 1), Attributes: map[string]queue.Attribute{"x": queue.Text("y")}},
		})
		l := deadletter.Letter{Body: put("1", 1), Facts: deadletter.Facts{FirstSent: old}}
		out, err := l.Copy(0)
		if err != nil {
			b.Fatal(err)
		}
		b.dead.Send(b.Context(), []queue.Outgoing{out})
		b.keeps(0, "both messages are given back")
		b.want(0, 2, 0)
		if r := b.Row(e.Doc); r.Pending != e.Key || r.Dead != "" {
			b.Errorf("row %+v, want the version still pending", r)
		}
	})
}

// EventBridge Pipes sends the positions of records that it could not deliver. lull cannot write
// these records, but an operator must see them.
func TestWhatAPipeGaveUpOnIsADeadLetter(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.dead.Send(b.Context(), []queue.Outgoing{{Body: `{"context":{"condition":"RetryAttemptsExhausted"},"version":"1.0",` +
			`"DDBStreamBatchInfo":{"shardId":"s-1","startSequenceNumber":"1","endSequenceNumber":"9","streamArn":"arn:x"}}`}})
		b.keeps(0, "the message is judged")
		b.want(1, 0, 0)
		const want = `stopped retrying the records of "arn:x", shard "s-1"`
		if l := b.one(deadletter.Contract); !strings.Contains(l.Detail, want) {
			b.Errorf("parked %+v, want the positions of the records", l)
		}
	})
}

// A later message for the same version does not replace the parked message.
func TestAnotherMessageOfTheSameVersionReplacesNothing(t *testing.T) {
	play(t, nil, func(b *bench) {
		e := b.EventOf(put("1", 1))
		m := queue.Message{ID: "m1", Body: put("1", 1), Sent: time.Now()}
		first := b.SendLetter(b.dead, m, e, deadletter.Refusals)
		b.keeps(0, "the dead letter is parked")
		again := queue.Message{ID: "m2", Body: put("1", 1), Sent: time.Now()}
		again.Attributes = map[string]queue.Attribute{queue.AttrFirstSent: queue.Text("1")} // a copy of the message
		b.SendLetter(b.dead, again, e, deadletter.Refusals)
		b.keeps(0, "the dead letter is parked")
		b.Noted(journal.Conflict, 0)
		for range 2 {
			b.SendLetter(b.dead, queue.Message{ID: "m3", Body: "[" + put("1", 1) + "]", Sent: time.Now()}, e,
				deadletter.RejectedBySink)
			b.keeps(0, "the dead letter is noted")
		}
		b.Noted(journal.Conflict, 2)
		b.want(1, 0, 0)
		got, _, err := b.Letters.Get(b.Context(), first.ID)
		if err != nil || got.Body != put("1", 1) || got.Reason != deadletter.RejectedBySink || got.MessageID != "m2" {
			b.Errorf("got %+v with body %q, error %v: want the first message, and the last reason", got.Facts, got.Body, err)
		}
	})
}

// twoSinks gives the collection "payroll" to another sink than the handler's.
func twoSinks(c *config.Config) {
	c.Sinks["other"] = config.Sink{Kind: "memory", Index: "o"}
	c.Collections = map[string]config.Collection{"content": {}, "payroll": {Sink: "other"}}
}

// A version in the queue of a wrong sink becomes a dead letter of that sink. The version may also
// have a dead letter of the right sink. Whichever dead letter arrives first, neither replaces the
// other, and a redrive sends the dead letter of the right sink to that sink.
func TestAnEventInTheWrongQueueReplacesNoDeadLetter(t *testing.T) {
	t.Parallel()
	body := `{"type":"doc.changed","subject":"1","sequence":"1","collection":"payroll","data":{}}`
	letters := map[string]deadletter.Reason{"search": deadletter.Contract, "other": deadletter.RejectedBySink}
	for _, order := range [][]string{{"search", "other"}, {"other", "search"}} {
		t.Run(order[0]+" first", func(t *testing.T) {
			play(t, twoSinks, func(b *bench) {
				e := b.EventOf(body)
				for _, sink := range order {
					now := time.Now()
					m := queue.Message{ID: sink, Body: body, Sent: now}
					b.sends(sink, deadletter.New(m, letters[sink], "", e.Doc, e.Key, 0, now))
					b.h.Sink = sink
					b.keeps(0, "the dead letter is stored")
				}
				f, ok := b.Facts(deadletter.ID(e.Doc, e.Key, ""))
				if !ok || f.Sink != "other" || f.Reason != deadletter.RejectedBySink {
					b.Errorf("%v: the version's dead letter is from sink %q for %q, want the one of the other sink", order, f.Sink, f.Reason)
				}
				b.want(2, 0, 0)
			})
		})
	}
}

// The age that a sender claims must not end a version of another sink's document, because the
// sender cannot write to that sink.
func TestAMovedMessageEndsNoVersionOfAnotherSink(t *testing.T) {
	play(t, twoSinks, func(b *bench) {
		b.move(b.live, b.send(b.live,
			`{"type":"doc.changed","subject":"1","sequence":"1","collection":"payroll","data":{}}`,
			map[string]queue.Attribute{queue.AttrFirstSent: queue.Text("1")}))
		b.keeps(0, "the message is parked")
		if r := b.Row("payroll#1"); r.Dead != "" {
			b.Errorf("row %+v, want nothing marked", r)
		}
		b.one(deadletter.Contract)
	})
}

// SQS's own redrive moves a dead letter to the live queue, and the redrive policy moves it back
// here. It may be the dead letter that marked the row, so dlq parks it.
func TestADeadLetterThatWentRoundIsParked(t *testing.T) {
	play(t, nil, func(b *bench) {
		e := b.EventOf(put("1", 1))
		b.Change(e.Doc, func(r *shard.Row) { r.Dead = e.Key })
		b.SendLetter(b.live, queue.Message{ID: "m", Body: put("1", 1), Sent: time.Now()}, e, deadletter.RejectedBySink)
		b.move(b.live, b.receive(b.live))
		b.handle()
		b.want(1, 0, 0)
		if l := b.one(deadletter.RejectedBySink); l.Key != e.Key {
			b.Errorf("parked %+v, want the dead letter of %s", l, e.Key)
		}
	})
}

// A topic sends a message to the queues of several sinks. If no sink can decode it, each sink has
// its own dead letter, because each sink must receive the message again.
func TestAMessageThatNothingDecodesIsADeadLetterOfEachSink(t *testing.T) {
	play(t, twoSinks, func(b *bench) {
		for _, sink := range []string{"search", "other", "other"} {
			now := time.Now()
			m := queue.Message{ID: sink, Body: `{"torn`, Sent: now}
			b.sends(sink, deadletter.New(m, deadletter.Undecodable, "", "", "", 0, now))
			b.h.Sink = sink
			b.keeps(0, "the dead letter is stored")
		}
		if all := b.parked(); len(all) != 2 || all[0].Sink == all[1].Sink || all[0].Hash != all[1].Hash {
			b.Errorf("dead letters %+v, want one for each sink, all of one message", all)
		}
	})
}

// A message that dlq gives back has lull's own role as its sender, so receive would believe its
// attributes.
func TestAStrangersAttributesAreNotGivenBackInLullsName(t *testing.T) {
	t.Parallel()
	line := queue.Line{Number: 1, Written: time.Unix(9, 0), Object: "s3://b/k"}
	usecasetest.Table(t, stage(nil).play, map[string]struct {
		sender string
		kept   bool
	}{
		"a dead letter from index": {index + ":lull-search-index", true}, "from another sender": {stranger, false},
	}, func(b *bench, by struct {
		sender string
		kept   bool
	},
	) {
		said := map[string]queue.Attribute{
			queue.AttrLine: queue.Text(line.Text()), queue.AttrEvent: queue.Text("0"), queue.AttrGroup: queue.Text("g"),
		}
		b.dead.Send(b.Context(), []queue.Outgoing{{Body: put("1", 1), Attributes: said}})
		for b.from(by.sender) != 0 {
		}
		time.Sleep(b.Config.Retry.BackoffMax)
		back := b.receive(b.live).Attributes
		if _, kept := back[queue.AttrLine]; kept != by.kept || back[queue.AttrGroup].String != "g" {
			b.Errorf("the message was given back with %v, which is wrong", back)
		}
	})
}
