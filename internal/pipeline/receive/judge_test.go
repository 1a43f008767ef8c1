// SPDX-License-Identifier: Apache-2.0

package receive_test

import (
	"testing"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// Row 33 of docs/faults.md: DynamoDB deletes expired items within days, not at once. Until then
// they count as rows.
func TestRowPastItsTTLCountsInFull(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.admit(put("a", 2))
		b.commit(b.EventOf(put("a", 2)))
		time.Sleep(b.Config.Lifecycle.RowRetention + b.Config.Lifecycle.TTLExtra + time.Hour)
		if r := b.Row(doc("a")); r.ExpiresAt == 0 || r.ExpiresAt >= time.Now().Unix() {
			b.Fatalf("row %+v is not past its TTL", r)
		}
		b.send(put("a", 1), put("a", 2))
		b.keeps(0, "both messages are acknowledged according to the row")
		b.Noted(journal.Stale, 1)
		b.Noted(journal.Duplicate, 1)
		b.send(put("a", 3)) // a newer version removes the time to expire from the row
		b.poll()
		if r := b.Row(doc("a")); r.Pending != b.EventOf(put("a", 3)).Key || r.ExpiresAt != 0 {
			b.Errorf("row %+v, want version 3 pending and no time to expire", r)
		}
	})
}

// Row 49 of docs/faults.md: receive does not touch a row of a newer schema.
func TestRowOfANewerSchemaIsLeftAlone(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.admit(put("a", 1))
		b.commit(b.EventOf(put("a", 1)))
		b.Change(doc("a"), func(r *shard.Row) { r.Schema = shard.SchemaVersion + 1 })
		before := b.Row(doc("a"))
		// Not even a duplicate is believed, because the meaning of committed in a newer schema is
		// unknown.
		b.send(put("a", 1), put("a", 2), put("b", 1))
		b.keeps(3, "all three messages are kept")
		b.Noted(journal.Schema, 2)
		if r := b.Row(doc("a")); r != before {
			b.Errorf("row %+v, want it untouched: %+v", r, before)
		}
		if m := b.manifests(); len(m) != 1 || len(m[0].Records) != 1 || m[0].Records[0].Events[0].Doc != doc("b") {
			b.Errorf("flights %+v, want only the flight of the other document", m)
		}
		time.Sleep(73 * time.Hour) // long past the dead deadline, this code still must not decide about the row
		b.keeps(2, "both messages of the newer schema are still kept")
		for _, l := range b.TakeLetters(b.dead) {
			if l.Doc == doc("a") {
				b.Errorf("dead letter %+v of a row that this code cannot read", l.Facts)
			}
		}
		b.Change(doc("a"), func(r *shard.Row) { r.Schema = shard.SchemaVersion }) // the newer lull was rolled back
		time.Sleep(time.Minute)
		b.poll()
		b.Noted(journal.Duplicate, 1)
	})
}

func TestAMessageTooOldToJudgeIsADeadLetterAndLeavesAMark(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.admit(put("known", 1))
		b.commit(b.EventOf(put("known", 1)))
		b.send(put("a", 1), put("known", 2))
		time.Sleep(b.Config.Lifecycle.RowRetention - b.Config.Lifecycle.ProducerLateness + time.Minute)
		b.poll()
		l := b.TakeLetters(b.dead)
		if len(l) != 2 || l[0].Reason != deadletter.TooOld && l[1].Reason != deadletter.TooOld {
			b.Errorf("dead letters %+v, want too old to judge for the unknown document, and overdue for the known document", l)
		}
		if r := b.Row(doc("a")); r.Dead != b.EventOf(put("a", 1)).Key || r.Committed != "" {
			b.Errorf("row %+v, want the version dead, and nothing committed", r)
		}
	})
}

func TestTheSameVersionWithAnotherPayloadIsCounted(t *testing.T) {
	other := `{"type":"doc.changed","subject":"a","sequence":"1","data":{"title":"another"}}`
	for name, first := range map[string]func(b *bench, body string){
		"in the batch": func(b *bench, body string) { b.send(body) },
		"pending":      func(b *bench, body string) { b.admit(body) },
		"committed":    func(b *bench, body string) { b.admit(body); b.commit(b.EventOf(body)) },
	} {
		for order, bodies := range map[string][2]string{
			"one way":       {put("a", 1), other},
			"the other way": {other, put("a", 1)},
		} {
			t.Run(name+", "+order, func(t *testing.T) {
				play(t, nil, func(b *bench) {
					first(b, bodies[0])
					b.send(bodies[1])
					b.poll()
					b.Noted(journal.Conflict, 1)
					want := max(b.EventOf(bodies[0]).Key, b.EventOf(bodies[1]).Key)
					if r := b.Row(doc("a")); max(r.Pending, r.Committed) != want {
						b.Errorf("row %+v, want the greater key to win", r)
					}
				})
			})
		}
	}
	t.Run("the same payload is not a conflict", func(t *testing.T) {
		play(t, nil, func(b *bench) {
			b.admit(put("a", 1))
			b.send(put("a", 1), put("a", 1), put("a", 2))
			b.poll()
			b.Noted(journal.Conflict, 0)
		})
	})
}

// If the newest version of a batch becomes a dead letter, the batch must admit the older version,
// because no other batch would admit it.
func TestAnOlderVersionIsAdmittedWhereTheNewestIsADeadLetter(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.Change(doc("a"), func(r *shard.Row) { r.VersionClass, r.Dead = shard.ClassInt, b.EventOf(put("a", 2)).Key })
		b.send(put("a", 2), put("a", 1))
		b.keeps(1, "version 1 is held")
		if r := b.Row(doc("a")); r.Pending != b.EventOf(put("a", 1)).Key {
			b.Errorf("row %+v, want version 1 pending", r)
		}
		b.Noted(journal.AlreadyDead, 1)
	})
}

// A redelivered message reads its row first, because a refused ADMIT would cost more than the read.
func TestARedeliveryReadsBeforeItWrites(t *testing.T) {
	play(t, nil, func(b *bench) {
		writes := 0
		b.inject = usecasetest.On("ADMIT", func(fault.Op) {
			writes++
		})
		b.send(put("a", 1), put("b", 1))
		b.poll()
		if writes != 2 {
			b.Errorf("%d row writes for two new documents, want 2", writes)
		}
		b.commit(b.EventOf(put("a", 1)))
		time.Sleep(41 * time.Second)
		b.keeps(1, "the message that is still pending")
		if writes != 2 {
			b.Errorf("%d row writes after a redelivery that changes nothing, want still 2", writes)
		}
		b.Noted(journal.Duplicate, 1)
	})
}

func TestAReadThatFailsLeavesTheJudgementToADMIT(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.send(put("a", 1))
		b.poll()
		b.commit(b.EventOf(put("a", 1)))
		b.inject = usecasetest.Always("Read", fault.FailBefore)
		time.Sleep(41 * time.Second)
		b.keeps(0, "the row that the refused ADMIT returned shows a duplicate")
		b.Noted(journal.Duplicate, 1)
		b.Noted(journal.RowRefused, 1)
	})
}

func TestOneDocumentsTroubleIsItsOwn(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.inject = usecasetest.Where(fault.Throttle, func(op fault.Op) bool {
			return op.Call == "ADMIT" && op.Doc == doc("a")
		})
		b.send(put("a", 1), put("b", 1))
		b.keeps(2, "both")
		b.Noted(journal.Failed, 1)
		b.Noted(journal.Unreachable, 0)
		if m := b.manifests(); len(m) != 1 || len(m[0].Records) != 1 || m[0].Records[0].Events[0].Doc != doc("b") {
			b.Errorf("flights %+v, want one with the other document", m)
		}
	})
}

// A copy from lull contains the time when its original was sent. That time can make a message
// older, never newer.
func TestFirstSentMakesOlderNeverNewer(t *testing.T) {
	type row struct {
		first   time.Duration
		letters int
	}
	usecasetest.Table(t, stage(nil).play, map[string]row{
		"older": {-30 * 24 * time.Hour, 1},
		"newer": {time.Hour, 0},
	}, func(b *bench, c row) {
		ms := queue.Attribute{Type: "Number", String: millis(time.Now().Add(c.first))}
		out := queue.Outgoing{
			Body:       put("a", 1),
			Attributes: map[string]queue.Attribute{queue.AttrFirstSent: ms},
		}
		if errs := b.live.Send(b.Context(), []queue.Outgoing{out}); errs != nil {
			b.Fatal(errs)
		}
		b.poll()
		b.WantLetters(b.dead, c.letters)
	})
}
