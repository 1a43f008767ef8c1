// SPDX-License-Identifier: Apache-2.0

package receive_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// rabbits makes a message with several events, in the envelope of RabbitMQ.
func rabbits(bodies ...string) string {
	var all []string
	for _, body := range bodies {
		all = append(all, fmt.Sprintf(`{"basicProperties":{},"data":%q}`, base64.StdEncoding.EncodeToString([]byte(body))))
	}
	return `{"rmqMessagesByQueue":{"q::/":[` + strings.Join(all, ",") + `]}}`
}

// faulty makes a message of about the given size with n records of S3. None of the records has an
// object.
func faulty(n, bytes int) string {
	record := `{"eventSource":"aws:s3","eventName":"ObjectCreated:Put"}`
	body := `{"Records":[` + strings.TrimSuffix(strings.Repeat(record+",", n), ",") + `]`
	return body + strings.Repeat(" ", max(bytes-len(body)-1, 0)) + `}`
}

// puts makes n events of documents whose ids begin with name.
func puts(name string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = put(fmt.Sprintf("%s-%d", name, i), 1)
	}
	return out
}

// sendWith sends bodies, each with the same attribute.
func (b *bench) sendWith(name, value string, bodies ...string) {
	b.Helper()
	for _, body := range bodies {
		out := queue.Outgoing{Body: body, Attributes: map[string]queue.Attribute{name: queue.Text(value)}}
		if err := queue.ErrorAt(b.live.Send(b.Context(), []queue.Outgoing{out}), 0); err != nil {
			b.Fatal(err)
		}
	}
}

// held returns the ids of the messages in flights.
func (b *bench) held() (ids []string) {
	b.Helper()
	for _, m := range b.manifests() {
		for _, r := range m.Records {
			ids = append(ids, r.Message.ID)
		}
	}
	return ids
}

// index stands in for the function index: it deletes the messages that are held, as if they were
// written.
func (b *bench) index() {
	b.Helper()
	for _, m := range b.manifests() {
		for _, r := range m.Records {
			b.live.Delete(b.Context(), []string{r.Message.Receipt})
		}
		if err := b.flights.Delete(b.Context(), m.Flight); err != nil {
			b.Fatal(err)
		}
	}
}

// calls records the calls to the queues and to the store of flights, in their order.
func (b *bench) calls() *[]string {
	var calls []string
	b.inject = decide(func(op fault.Op) fault.Verdict {
		if op.Call == "SendMessageBatch" || op.Call == "PutManifest" {
			calls = append(calls, op.Call)
		}
		return fault.OK
	})
	return &calls
}

// Before the bounds, a message of 300 KB with hundreds of faulty records took 16 s of processor
// time. Then no message of its batch was held.
func TestOneMessageOfFaultyEventsIsOneDeadLetter(t *testing.T) {
	play(t, several, func(b *bench) {
		b.sendWith(queue.AttrSource, "s3", faulty(500, 300<<10))
		b.send(puts("good", 99)...)
		calls := b.calls()
		if kept := b.poll(); len(kept) != 99 || len(b.held()) != 99 {
			b.Errorf("%d messages kept, %d held, want the 99 good messages", len(kept), len(b.held()))
		}
		l := b.TakeLetters(b.dead)
		if len(l) != 1 || l[0].Reason != deadletter.Contract || l[0].Doc != "" || l[0].Key != "" ||
			!strings.HasPrefix(l[0].Detail, "500 events of the message, the first: bucket") {
			b.Fatalf("%d dead letters, want one for all 500 events: %.300v", len(l), l)
		}
		b.Noted(journal.DeadLettered, 500) // each event is counted
		if want := []string{"PutManifest", "SendMessageBatch"}; !slices.Equal(*calls, want) {
			b.Errorf("calls %v, want the good messages held first", *calls)
		}
	})
}

func TestAMessageIsOneDeadLetterForEachReason(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.send(rabbits("not json", `{"type":"doc.changed","subject":"a","data":{}}`, "nor this",
			`{"type":"doc.changed","subject":"b","data":{}}`))
		b.keeps(0, "all events are dead letters")
		var reasons []deadletter.Reason
		for _, l := range b.TakeLetters(b.dead) {
			reasons = append(reasons, l.Reason)
		}
		want := []deadletter.Reason{deadletter.Undecodable, deadletter.VersionInvalid}
		if !slices.Equal(reasons, want) {
			b.Errorf("dead letters %v, want %v", reasons, want)
		}
	})
}

// Each version has its own dead letter, unless one message has too many dead letters.
func TestManyVersionsOfOneMessageAreOneDeadLetter(t *testing.T) {
	for n, want := range map[int]int{10: 10, 11: 1} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			play(t, nil, func(b *bench) {
				for i := range n {
					b.Change(doc(fmt.Sprintf("x-%d", i)), func(r *shard.Row) { r.VersionClass = shard.ClassSeq })
				}
				b.send(rabbits(puts("x", n)...))
				b.keeps(0, "all events are dead letters")
				l := b.TakeLetters(b.dead)
				if len(l) != want || (l[0].Key == "") != (want == 1) || (l[0].Doc == "") != (want == 1) {
					b.Errorf("%d dead letters, want %d: %.300v", len(l), want, l)
				}
				b.Noted(journal.DeadLettered, n)
			})
		})
	}
}

// hold must not take a message with an event that is neither done nor stored: index would delete
// the message after it has written the other events.
func TestAMessageIsHeldOnlyAfterItsDeadLetterIsStored(t *testing.T) {
	usecasetest.Table(t, stage(nil).play, map[string]bool{"lost": true, "stored": false}, func(b *bench, lost bool) {
		b.send(rabbits(put("a", 1), "not json"), put("b", 1), "not json either")
		calls := b.calls()
		if lost {
			b.inject = usecasetest.Fails("SendMessageBatch", fault.FailBefore, 1)
		}
		b.poll()
		if lost {
			if held := b.held(); len(held) != 1 {
				b.Errorf("held %v, want only the message without a fault", held)
			}
			return
		}
		if want := []string{"SendMessageBatch", "PutManifest", "SendMessageBatch"}; !slices.Equal(*calls, want) {
			b.Errorf("calls %v, want %v", *calls, want)
		}
		if n := len(b.held()); n != 2 {
			b.Errorf("%d messages held, want 2", n)
		}
	})
}

// 500 overdue events of a message of 900 KB would be 450 MB of dead letters. So each receive sends
// only a part of them, and PARK marks which are sent.
func TestTheDeadLettersOfOneInvocationAreBounded(t *testing.T) {
	play(t, nil, func(b *bench) {
		body := rabbits(puts("x", 40)...)
		body = body[:len(body)-1] + strings.Repeat(" ", 900<<10) + "}"
		b.overdue(body)
		total := 0
		for range 10 {
			b.poll()
			n := b.dead.Counts().Total()
			if n > 9 {
				b.Fatalf("%d dead letters of a message of 900 KB in one invocation, want at most 8 MB", n)
			}
			for total += n; b.dead.Counts().Total() > 0; {
				b.TakeLetters(b.dead)
			}
			time.Sleep(41 * time.Second)
		}
		if total != 40 || b.live.Counts().Total() != 0 {
			b.Errorf("%d dead letters, %d messages left, want each of the 40 versions dead once", total,
				b.live.Counts().Total())
		}
	})
}

// A message with many documents must not use up the time that its batch has for the table.
func TestTheTableIsAskedForOneMessageAfterTheOther(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.send(rabbits(puts("large", 400)...), rabbits(puts("another", 400)...))
		b.send(puts("good", 98)...)
		n := 0
		b.parallel = oneByOne
		b.inject = decide(func(op fault.Op) fault.Verdict {
			if op.Call != "ADMIT" {
				return fault.OK
			}
			if n++; n > 150 { // the table accepts no more writes in this time
				return fault.Throttle
			}
			return fault.OK
		})
		b.poll()
		if n := len(b.held()); n != 98 {
			b.Errorf("%d messages held, want all 98 good ones", n)
		}
	})
}

// The many messages of one group are admitted after the first messages of the other groups.
func TestGroupsShareTheTable(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.sendWith(queue.AttrGroup, "bulk", puts("bulk", 90)...)
		b.sendWith(queue.AttrGroup, "small", puts("small", 9)...)
		b.send(put("none", 1))
		n := 0
		b.parallel = oneByOne
		b.inject = decide(func(op fault.Op) fault.Verdict {
			if op.Call != "ADMIT" {
				return fault.OK
			}
			if n++; n > 32 {
				return fault.Throttle
			}
			return fault.OK
		})
		b.poll()
		for _, id := range []string{"small-0", "small-8", "none"} {
			if b.Row(doc(id)).Pending == "" {
				b.Errorf("%s was not admitted, although %d were", id, n)
			}
		}
	})
}

// A batch has room for every small message, and for the oldest of the large messages. A message
// without room is received again, and gets room when it is older.
func TestABatchIsBoundedAndNobodyStarves(t *testing.T) {
	play(t, nil, func(b *bench) {
		const large = 20
		left := large
		for i := range large {
			b.send(rabbits(puts(fmt.Sprint("large-", i), 490)...))
		}
		for round := 1; ; round++ {
			b.send(puts(fmt.Sprint("good-", round), 80)...)
			b.poll()
			var held, of int
			for _, m := range b.manifests() {
				if m.Items() > 4500 {
					b.Fatalf("a flight holds %d events, which is too many", m.Items())
				}
				for _, r := range m.Records {
					if len(r.Events) > 1 {
						held++
					} else if strings.HasPrefix(r.Events[0].Doc.ID(), fmt.Sprintf("good-%d-", round)) {
						of++
					}
				}
			}
			b.index()
			if of != 80 {
				b.Fatalf("round %d: %d of 80 small messages are held in their first delivery, want all", round, of)
			}
			if held < min(8, left) {
				b.Fatalf("round %d: %d of %d large messages are held, want at least one", round, held, left)
			}
			if left -= held; left == 0 {
				break
			}
			time.Sleep(41 * time.Second)
		}
		for i := range large {
			if b.Row(doc(fmt.Sprintf("large-%d-489", i))).Pending == "" {
				b.Errorf("large message %d was never admitted", i)
			}
		}
	})
}

// A copy contains every event of its message, but stands only for one event. If it stood for all of
// them, it would make copies of the others, and their number would double with each event.
func TestEachScheduledEventIsOneCopyThatMakesNoOthers(t *testing.T) {
	usecasetest.Table(t, stage(nil).play, map[string]time.Duration{
		"in the queue": time.Minute, "as an item": time.Hour,
	}, func(b *bench, ahead time.Duration) {
		var bodies []string
		for i := range 8 {
			bodies = append(bodies, notBefore(put(fmt.Sprintf("x-%d", i), 1),
				time.Now().Add(ahead+time.Duration(i)*time.Minute)))
		}
		b.send(rabbits(bodies...))
		b.keeps(0, "every event is stored")
		if n := b.live.Counts().Total() + b.schedule.Len(); n != 8 {
			b.Errorf("%d copies and items, want one for each event", n)
		}
		items, _, err := b.schedule.Due(b.Context(), time.Now().Add(2*time.Hour), "", 10)
		if err != nil {
			b.Fatal(err)
		}
		time.Sleep(ahead)
		for i := range 8 {
			for _, it := range items[min(i, len(items)):min(i+1, len(items))] { // prune sends the item unchanged
				b.live.Send(b.Context(), []queue.Outgoing{{Body: it.Body, Attributes: it.Attributes}})
				if err := b.schedule.Delete(b.Context(), it.ID); err != nil {
					b.Fatal(err)
				}
			}
			b.poll()
			b.index()
			if n := b.live.Counts().Total() + b.schedule.Len(); n != 7-i {
				b.Fatalf("%d copies are left after event %d, want %d", n, i, 7-i)
			}
			time.Sleep(time.Minute)
		}
		b.Noted(journal.Admitted, 8)
		b.Noted(journal.Scheduled, 8)
	})
}

func TestMoreScheduledEventsThanAMessageMayHaveAreADeadLetter(t *testing.T) {
	play(t, nil, func(b *bench) {
		var bodies []string
		for i := range 300 {
			bodies = append(bodies, notBefore(put(fmt.Sprintf("x-%d", i), 1), time.Now().Add(time.Hour)))
		}
		b.send(rabbits(bodies...))
		b.keeps(0, "every event is stored or in a dead letter")
		l := b.TakeLetters(b.dead)
		if b.schedule.Len() != 10 || len(l) != 1 || !strings.Contains(l[0].Detail, "290 events of the message") {
			b.Errorf("%d items and dead letters %.300v, want 10 items and one dead letter for the other 290 events", b.schedule.Len(), l)
		}
	})
}

// If a dead letter cannot be sent now, its message must make no copies: each try would make more.
func TestNoCopyIsLeftBehindByADeadLetterThatIsNotSent(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.send(rabbits("not json", notBefore(put("b", 1), time.Now().Add(10*time.Minute))))
		sends := 0
		b.inject = decide(func(op fault.Op) fault.Verdict {
			if op.Call == "SendMessageBatch" {
				if sends++; sends == 2 {
					return fault.FailBefore
				}
			}
			return fault.OK
		})
		b.keeps(1, "only one of the two events is sent")
		time.Sleep(41 * time.Second)
		b.keeps(0, "all events are stored")
		if n := b.live.Counts().Delayed; n != 1 {
			b.Errorf("%d copies, want 1", n)
		}
	})
}

// If a batch also contains the worst possible messages, its good messages are still held at once.
func TestGoodMessagesBesideTheWorstAreHeldInTheirFirstDelivery(t *testing.T) {
	play(t, several, func(b *bench) {
		worst := []func(i int){
			func(int) { b.sendWith(queue.AttrSource, "s3", faulty(500, 20<<10)) },
			func(i int) { b.send(rabbits(puts(fmt.Sprint("large-", i), 500)...)) },
			func(i int) {
				b.send(rabbits(append(puts(fmt.Sprint("mixed-", i), 400), slices.Repeat([]string{"not json"}, 100)...)...))
			},
			func(i int) {
				later := puts(fmt.Sprint("later-", i), 400)
				for n := range later {
					later[n] = notBefore(later[n], time.Now().Add(time.Duration(n+1)*time.Minute))
				}
				b.send(rabbits(later...))
			},
			func(int) { b.sendWith(queue.AttrSource, "s3", faulty(501, 20<<10)) },
			func(int) { b.send(strings.Repeat("[", 100<<10)) },
			func(i int) { b.sendWith(queue.AttrFirstSent, "0", rabbits(puts(fmt.Sprint("old-", i), 300)...)) },
			func(i int) {
				b.sendWith(queue.AttrGroup, fmt.Sprint("group-", i), rabbits(puts(fmt.Sprint("own-", i), 200)...))
			},
		}
		for i := range 50 {
			worst[i%len(worst)](i)
		}
		b.send(puts("good", 100)...)
		admits, letters := 0, 0
		b.parallel = oneByOne
		b.inject = decide(func(op fault.Op) fault.Verdict {
			if op.Call == "ADMIT" {
				if admits++; admits > 300 { // the table accepts only two writes for each message
					return fault.Throttle
				}
			}
			return fault.OK
		})
		b.invoke(150)
		good := 0
		for _, m := range b.manifests() {
			for _, r := range m.Records {
				if strings.HasPrefix(r.Events[0].Doc.ID(), "good-") {
					good++
				}
			}
		}
		for b.dead.Counts().Total() > 0 {
			letters += len(b.TakeLetters(b.dead))
		}
		if good != 100 || letters > 300 {
			b.Errorf("%d of 100 good messages are held, with %d dead letters", good, letters)
		}
	})
}

// A message that returns would make another copy each time.
func TestAMessageThatFailsMakesNoCopy(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.Change(doc("a"), func(r *shard.Row) { r.Schema = shard.SchemaVersion + 1 })
		b.send(rabbits(put("a", 1), notBefore(put("b", 1), time.Now().Add(10*time.Minute))))
		for range 3 {
			b.keeps(1, "the other event of the message cannot be judged")
			time.Sleep(41 * time.Second)
		}
		if n := b.live.Counts().Total(); n != 1 {
			b.Errorf("%d messages, want only the original message", n)
		}
	})
}

// FuzzBatch puts any message and a good message into one batch. The good message is held, and the
// number of dead letters and copies of the other message is bounded.
func FuzzBatch(f *testing.F) {
	for _, body := range []string{
		put("a", 1), "", "[", faulty(3, 0), faulty(501, 0), rabbits(put("a", 1), "x", put("a", 2)),
		rabbits(notBefore(put("a", 1), bubble.Add(time.Hour)), notBefore(put("b", 1), bubble.Add(time.Minute)), "{}"),
		removed("k@01", "k@02"), `["x.PayloadS3Pointer",{"s3BucketName":"b","s3Key":"k"}]`,
	} {
		f.Add(body, "native", "", "", 1)
		f.Add(body, "s3", "0", "1", 3)
	}
	f.Fuzz(func(t *testing.T, body, source, firstSent, only string, received int) {
		synctest.Test(t, func(t *testing.T) {
			b := setup(t, several)
			defer b.machine.Close()
			b.parallel = oneByOne
			attributes := map[string]queue.Attribute{}
			for name, value := range map[string]string{
				queue.AttrSource: source, queue.AttrFirstSent: firstSent, queue.AttrEvent: only,
			} {
				if value != "" {
					attributes[name] = queue.Text(value)
				}
			}
			odd := queue.Message{
				ID: "odd", Receipt: "odd", Body: body, Attributes: attributes, Sent: time.Now(), ReceiveCount: max(received, 1),
			}
			good := queue.Message{ID: "good", Receipt: "good", Body: put("good", 1), Sent: time.Now(), ReceiveCount: 1}
			h, _ := b.handler()
			kept := h.Handle(b.Context(), []queue.Message{odd, good})
			if !slices.Contains(b.held(), "good") && !strings.Contains(body, "good") || !slices.Contains(kept, "good") {
				t.Errorf("the good message is not held: %v", kept)
			}
			if n := b.dead.Counts().Total(); n > event.MaxEvents || n*len(body) > 16<<20 {
				t.Errorf("%d dead letters of a message of %d bytes, which is too many", n, len(body))
			}
			if copies := b.live.Counts().Total() + b.schedule.Len(); copies > 10 {
				t.Errorf("%d copies of one message, which is too many", copies)
			}
		})
	})
}
