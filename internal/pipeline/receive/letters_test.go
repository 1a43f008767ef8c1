// SPDX-License-Identifier: Apache-2.0

package receive_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// overdue keeps a message in the queue until its dead deadline has passed.
func (b *bench) overdue(body string) {
	b.Helper()
	b.send(body)
	time.Sleep(b.Config.Retry.DeadDeadline + time.Minute)
}

func (b *bench) wantLetter(reason deadletter.Reason, version int) {
	b.Helper()
	l := b.TakeLetters(b.dead)
	if len(l) != 1 || l[0].Reason != reason || l[0].Key != b.EventOf(put("a", version)).Key ||
		l[0].Body != put("a", version) {
		b.Errorf("dead letters %+v, want one, %s, of version %d", l, reason, version)
	}
}

// Only a newer build of lull knows where the body of its dead letters is. A dead letter from
// another sender is judged as an event.
func TestADeadLetterOfANewerLullStaysInTheQueue(t *testing.T) {
	t.Parallel()
	usecasetest.Table(t, stage(nil).play, everySender, func(b *bench, by sentBy) {
		b.by(by)
		b.sendWith(queue.AttrLetter, `{"schema":3,"reason":"rejected"}`, put("a", 1), "packed, see an attribute")
		letters, schema := 0, 2
		if by.ours {
			b.keeps(2, "only the newer build can read them")
		} else {
			b.poll()
			letters, schema = 1, 0
		}
		b.InQueue(b.dead, letters, "dead letters by their bodies")
		b.Noted(journal.Schema, schema)
		if got := b.Row(doc("a")).Pending != ""; got == by.ours {
			b.Errorf("the body is pending: %t", got)
		}
	})
}

func TestDeadDeadlineIsADeadLetterThenPARK(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.overdue(put("a", 1))
		key := b.EventOf(put("a", 1)).Key
		b.Change(doc("a"), func(r *shard.Row) { r.Pending, r.BurstStart, r.Flight = key, now(), "a flight that died" })
		b.inject = at("PARK", func() {
			b.InQueue(b.dead, 1, "stored before PARK: a crash between the two must not lose it")
		})
		b.keeps(0, "the message is acknowledged")
		b.wantLetter(deadletter.DeadDeadline, 1)
		if r := b.Row(doc("a")); r.Dead != key || r.Pending != "" || r.BurstStart != 0 || r.ExpiresAt == 0 {
			b.Errorf("row %+v, want the version dead and nothing pending", r)
		}
		b.Noted(journal.DeadLettered, 1)
	})
}

// index leaves the reason in the row, because the message returns to receive when its flight has
// ended.
func TestAnOverdueVersionOfAStaleSourceSaysSo(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.admit(put("a", 1))
		b.Change(doc("a"), func(r *shard.Row) { r.LastError = "stale_source: it shows version 0, which is older" })
		b.overdue(put("a", 1))
		b.poll()
		b.wantLetter(deadletter.StaleSource, 1)
		if r := b.Row(doc("a")); r.Pending != "" || r.Dead != b.EventOf(put("a", 1)).Key {
			b.Errorf("row %+v, want the version dead", r)
		}
	})
}

func TestDeadDeadlineOfAMessageThatNobodyAdmittedLeavesAMark(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.overdue(put("a", 1))
		b.poll()
		b.wantLetter(deadletter.DeadDeadline, 1)
		if r := b.Row(doc("a")); r.Dead != b.EventOf(put("a", 1)).Key || r.ExpiresAt == 0 {
			b.Errorf("row %+v, want a mark that expires: a redelivery must make no second dead letter", r)
		}
		b.Noted(journal.Admitted, 0)
	})
}

func TestDeadDeadlineWaitsWhileTheVersionIsBeingWritten(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.overdue(put("a", 1))
		key := b.EventOf(put("a", 1)).Key
		b.Change(doc("a"), func(r *shard.Row) {
			r.Pending, r.Claimed, r.BurstStart, r.Owner, r.LeaseUntil = key, key, now(), "somebody",
				now().Add(30*time.Second)
		})
		b.keeps(1, "the message is kept while another flight has the lease")
		b.InQueue(b.dead, 0, "the version is being written")
		time.Sleep(41 * time.Second) // the message is visible again, and the lease is over
		b.keeps(0, "the message is done after the lease")
		b.wantLetter(deadletter.DeadDeadline, 1)
	})
}

// The overdue version was not admitted, and never will be. A flight would end for it at once, so
// SQS would deliver it again and again until the lease of the other version ends.
func TestAnOverdueVersionBesideALeasedOneWaitsOutsideAFlight(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.overdue(put("a", 2))
		older := b.EventOf(put("a", 1)).Key
		b.Change(doc("a"), func(r *shard.Row) {
			r.Pending, r.Claimed, r.BurstStart, r.Owner, r.LeaseUntil = older, older, now(), "somebody",
				now().Add(13*time.Second)
		})
		b.keeps(1, "the message")
		if m, l := b.manifests(), b.TakeLetters(b.dead); len(m) != 0 || len(l) != 0 {
			b.Errorf("%d flights and %d dead letters, want neither while another flight writes the document", len(m), len(l))
		}
		time.Sleep(39 * time.Second)
		if n := b.live.Counts().Visible; n != 0 {
			b.Errorf("%d messages are visible, want the message hidden until its visibility ends", n)
		}
		time.Sleep(2 * time.Second)
		b.keeps(0, "the message is done after the lease")
		b.wantLetter(deadletter.DeadDeadline, 2)
	})
}

func TestPARKRefusedBecauseLeasedKeepsTheMessage(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.overdue(put("a", 1))
		key := b.EventOf(put("a", 1)).Key
		b.Change(doc("a"), func(r *shard.Row) { r.Pending, r.BurstStart = key, now() })
		b.inject = at("PARK", func() { // an old flight claims the version between the judgement and PARK
			b.Write(shard.Claim(shard.Bid{
				Doc: doc("a"), Key: key, Token: "t", Now: now(),
				Until: now().Add(13 * time.Second),
			}))
		})
		b.keeps(1, "the message is kept, because its version may soon be in the sink")
		if r := b.Row(doc("a")); r.Dead != "" || r.Owner != "t" {
			b.Errorf("row %+v, want the lease untouched", r)
		}
		b.TakeLetters(b.dead) // the dead letter was stored already; dlq drops it once the version is committed
		time.Sleep(41 * time.Second)
		b.admit(put("a", 2))
		b.commit(b.EventOf(put("a", 2)))
		b.keeps(0, "the message is done after a newer commit")
		b.WantLetters(b.dead, 0)
		b.Noted(journal.Stale, 1)
	})
}

func TestPARKFollowsTheRow(t *testing.T) {
	type row struct {
		race func(b *bench, key shard.OrderKey)
		dead bool
		kept int
	}
	usecasetest.Table(t, stage(nil).play, map[string]row{
		"a newer version was admitted": {func(b *bench, _ shard.OrderKey) { b.admit(put("a", 2)) }, false, 0},
		"a newer version was committed": {func(b *bench, _ shard.OrderKey) {
			b.admit(put("a", 2))
			b.commit(b.EventOf(put("a", 2)))
		}, false, 0},
		"the version was committed itself": {func(b *bench, _ shard.OrderKey) { b.commit(b.EventOf(put("a", 1))) }, false, 0},
		"another function parked the version": {func(b *bench, k shard.OrderKey) {
			b.Write(shard.Park(doc("a"), k, now(), 1, b.Row(doc("a"))))
		}, true, 0},
		"the admission of the version was undone": {func(b *bench, _ shard.OrderKey) {
			b.Change(doc("a"), func(r *shard.Row) { r.Pending, r.BurstStart = "", 0 })
		}, true, 0},
		"a newer schema wrote the row": {func(b *bench, k shard.OrderKey) {
			b.Change(doc("a"), func(r *shard.Row) { r.Schema, r.Committed = shard.SchemaVersion+1, k })
		}, false, 1},
	}, func(b *bench, c row) {
		b.overdue(put("a", 1))
		key := b.EventOf(put("a", 1)).Key
		b.Change(doc("a"), func(r *shard.Row) {
			r.VersionClass, r.Pending, r.BurstStart = shard.ClassInt, key,
				now()
		})
		b.inject = at("PARK", func() { c.race(b, key) })
		if kept := b.poll(); len(kept) != c.kept {
			b.Errorf("kept %v, want %d: the dead letter is stored", kept, c.kept)
		}
		b.Noted(journal.Schema, c.kept)
		if r := b.Row(doc("a")); (r.Dead == key) != c.dead || r.Committed > key && r.Pending != "" {
			b.Errorf("row %+v, want marked dead: %v", r, c.dead)
		}
	})
}

func (b *bench) admit(body string) {
	b.Helper()
	b.Admit(b.EventOf(body))
}

func TestAnOverdueVersionDoesNotStandInForANewerOne(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.overdue(put("a", 1))
		b.send(put("a", 2))
		b.keeps(1, "the newer version is held and the old one acknowledged")
		b.wantLetter(deadletter.DeadDeadline, 1)
		if r := b.Row(doc("a")); r.Pending != b.EventOf(put("a", 2)).Key {
			b.Errorf("row %+v, want version 2 pending", r)
		}
	})
}

func TestADeadNewestVersionLetsAnOlderOneBeAdmitted(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.overdue(put("a", 2))
		b.send(put("a", 1)) // sent later, by a slower producer
		b.keeps(1, "version 1 is held")
		if r := b.Row(doc("a")); r.Pending != b.EventOf(put("a", 1)).Key || r.Dead != b.EventOf(put("a", 2)).Key {
			b.Errorf("row %+v, want version 1 pending and version 2 dead", r)
		}
	})
}

func TestEachDeadLetterStandsForItself(t *testing.T) {
	play(t, nil, func(b *bench) {
		for i := range 11 { // eleven messages need two batches of the queue
			b.send(fmt.Sprintf("broken %d", i))
		}
		down := true
		b.inject = decide(func(op fault.Op) fault.Verdict {
			if op.Call == "SendMessageBatch" && down {
				down = false
				return fault.FailBefore
			}
			return fault.OK
		})
		if kept := b.poll(); len(kept) != 10 {
			b.Errorf("%d messages kept, want the ten whose dead letters were not sent", len(kept))
		}
		if l := b.TakeLetters(b.dead); len(l) != 1 || l[0].Body != "broken 10" {
			b.Errorf("dead letters %+v, want one for the last message", l)
		}
	})
}

func TestWithoutDeadLettersMessagesAreDroppedAloud(t *testing.T) {
	play(t, func(c *config.Config) { c.DeadLetters = config.DeadLettersNone }, func(b *bench) {
		b.overdue(put("a", 1))
		key := b.EventOf(put("a", 1)).Key
		b.Change(doc("a"), func(r *shard.Row) { r.Pending, r.BurstStart = key, now() })
		b.send("not json", put("b", 1))
		b.keeps(1, "the good message is held and the others are dropped")
		b.Noted(journal.Dropped, 2)
		b.Noted(journal.DeadLettered, 0)
		for _, n := range b.Notes.Of(journal.Dropped) {
			if n.Message == "" || n.Detail == "" {
				b.Errorf("note %+v, want the message and the reason", n)
			}
		}
		b.InQueue(b.dead, 0, "the settings want no dead letters")
		if r := b.Row(doc("a")); r.Dead != key || r.Pending != "" {
			b.Errorf("row %+v, want nothing pending, because no message of version 1 is left", r)
		}
	})
}

func TestWithoutDeadLettersALeasedVersionIsKept(t *testing.T) {
	play(t, func(c *config.Config) { c.DeadLetters = config.DeadLettersNone }, func(b *bench) {
		b.overdue(put("a", 1))
		key := b.EventOf(put("a", 1)).Key
		b.Change(doc("a"), func(r *shard.Row) { r.Pending, r.BurstStart = key, now() })
		b.inject = at("PARK", func() {
			b.Write(shard.Claim(shard.Bid{
				Doc: doc("a"), Key: key, Token: "t", Now: now(),
				Until: now().Add(13 * time.Second),
			}))
		})
		b.keeps(1, "the message is kept, because another flight is writing it")
		b.Noted(journal.Dropped, 0)
	})
}

// If a body cannot be loaded now, it may be loadable later. So its message is neither done nor a
// dead letter.
func TestABodyThatCannotBeLoadedNowKeepsTheMessage(t *testing.T) {
	place := func(c *config.Config) { c.Payload.Allow = []config.BucketPrefix{{Bucket: "b"}} }
	pointer := `["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"b","s3Key":"large"}]`
	type row struct {
		err           error
		kept, letters int
	}
	usecasetest.Table(t, stage(place).play, map[string]row{
		"not now":  {errors.New("throttled"), 1, 0},
		"for good": {&event.Invalid{Reason: deadletter.Payload, Problem: "no such object"}, 0, 1},
	}, func(b *bench, c row) {
		broken := true
		b.Sources = b.Sources.WithLoader(func(context.Context, string, string) ([]byte, error) {
			if broken {
				return nil, c.err
			}
			return []byte(put("a", 1)), nil
		})
		b.send(pointer)
		if kept := b.poll(); len(kept) != c.kept {
			b.Errorf("kept %v, want %d messages", kept, c.kept)
		}
		b.WantLetters(b.dead, c.letters)
		b.Noted(journal.Failed, c.kept)
		broken = false
		time.Sleep(41 * time.Second)
		if b.poll(); c.kept == 1 && b.Row(doc("a")).Pending == "" {
			b.Error("the message was not admitted after its body could be loaded")
		}
	})
}

func TestACollectionOfAnotherSinkIsADeadLetter(t *testing.T) {
	play(t, func(c *config.Config) {
		c.Sinks["other"] = config.Sink{Kind: "memory"}
		c.Collections["elsewhere"] = config.Collection{Sink: "other"}
		c.DefaultSink, c.DefaultCollection = "search", "content"
	}, func(b *bench) {
		body := put("a", 1)
		b.send(body[:len(body)-1]+`,"collection":"elsewhere"}`, put("a", 1))
		b.keeps(1, "the message of this sink is kept")
		l := b.TakeLetters(b.dead)
		if len(l) != 1 || l[0].Reason != deadletter.Contract || l[0].Doc.Collection() != "elsewhere" {
			b.Errorf("dead letters %+v, want one for the message of the other sink", l)
		}
	})
}

// An event of a document of another part becomes a dead letter, even if events of other sinks are
// skipped. It is possible that no other queue has the event.
func TestADocumentOfAnotherPartIsADeadLetter(t *testing.T) {
	play(t, func(c *config.Config) {
		c.Stack, c.Parts = "lull-2", config.Parts{Of: 3, This: 2}
		c.Queues.Elsewhere = config.ElsewhereSkip
	}, func(b *bench) {
		var ids, others []string
		for i := range 12 {
			id := fmt.Sprint("d", i)
			if b.send(put(id, 1)); event.Part("content", id, 3) == 2 {
				ids = append(ids, id)
			} else {
				others = append(others, id)
			}
		}
		b.keeps(len(ids), "the documents of this part are kept")
		for _, id := range ids {
			if b.Row(doc(id)).Pending == "" {
				b.Errorf("%s of this part is not admitted", id)
			}
		}
		l := b.TakeLetters(b.dead)
		if len(l) != len(others) || len(ids) == 0 {
			b.Fatalf("%d dead letters, want one for each of the %d documents of other parts", len(l), len(others))
		}
		for i, id := range others {
			if l[i].Reason != deadletter.Contract || l[i].Doc != doc(id) || b.Row(doc(id)).Pending != "" ||
				!strings.Contains(l[i].Detail, "of 3, and this is stack lull-2 of part 2") {
				b.Errorf("dead letter %+v, row %+v, want one of %s", l[i].Facts, b.Row(doc(id)), id)
			}
		}
	})
}

func TestAVersionOfAnotherClassIsADeadLetter(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.Change(doc("a"), func(r *shard.Row) { r.VersionClass, r.Committed = shard.ClassSeq, "\x01" })
		before := b.Row(doc("a"))
		b.send(put("a", 1), put("a", 2), put("b", 1))
		b.keeps(1, "the message of the other document is kept")
		l := b.TakeLetters(b.dead)
		if len(l) != 2 || slices.ContainsFunc(l,
			func(l deadletter.Letter) bool { return l.Reason != deadletter.ClassMismatch }) {
			b.Errorf("dead letters %+v, want both versions", l)
		}
		if r := b.Row(doc("a")); r != before {
			b.Errorf("row %+v, want it untouched: %+v", r, before)
		}
	})
}

// SQS's own redrive moves messages from the dead-letter queue to a queue of events, before dlq has
// stored them. The row marks the version dead, and the message is its only copy.
func TestADeadLetterThatSQSMovesBackIsADeadLetterAgain(t *testing.T) {
	t.Parallel()
	many := map[string]queue.Attribute{} // more attributes than a dead letter can have unpacked
	for i := range queue.MaxAttributes - 1 {
		many[fmt.Sprint("trace-", i)] = queue.Text("x")
	}
	long := strings.Repeat("x", queue.MaxBytes-len(put("a", 1))-len(`,"note":""`))
	usecasetest.Table(t, stage(nil).play, map[string]queue.Message{
		"as it is":        {Body: put("a", 1)},
		"packed":          {Body: strings.Replace(put("a", 1), "{", `{"note":"`+long+`",`, 1)},
		"many attributes": {Body: put("a", 1), Attributes: many},
	}, func(b *bench, m queue.Message) {
		m.ID, m.Sent = "m", time.Now()
		e := b.EventOf(put("a", 1))
		b.SendLetter(b.live, m, e, deadletter.Refusals)
		b.Change(doc("a"), func(r *shard.Row) { r.Dead, r.LastError = e.Key, "500 item failed" })
		b.keeps(0, "the dead letter is stored elsewhere")
		l := b.TakeLetters(b.dead)
		if len(l) != 1 || l[0].Key != e.Key || l[0].Reason != deadletter.Refusals || l[0].Body != m.Body ||
			len(l[0].Attributes) < len(m.Attributes) || !strings.Contains(l[0].Detail, "500 item failed") {
			b.Errorf("dead letters %.300v, want the dead letter that was moved", l)
		}
		// Without the mark in the row, the dead letter is an event like any other.
		b.Change(doc("a"), func(r *shard.Row) { r.Dead = "" })
		b.SendLetter(b.live, m, e, deadletter.Refusals)
		b.keeps(1, "the event is held")
		if held := b.manifests()[0].Records[0].Message; held.Body != m.Body {
			b.Errorf("the flight holds %.100q, want the original body", held.Body)
		}
	})
}

// A small message may unpack to a megabyte, so a batch unpacks only some of them.
func TestDeadLettersThatUnpackToTooMuchComeBack(t *testing.T) {
	play(t, nil, func(b *bench) {
		long := strings.Replace(put("a", 1), "{", `{"note":"`+strings.Repeat("x", queue.MaxBytes-300)+`",`, 1)
		for i := range 20 {
			b.SendLetter(b.live, queue.Message{ID: fmt.Sprint(i), Body: long, Sent: time.Now()}, b.EventOf(put("a", 1)),
				deadletter.Refusals)
		}
		b.keeps(20, "the messages of the flight, and the messages without room")
		b.Noted(journal.Held, 9)
		b.Noted(journal.Failed, 11)
	})
}
