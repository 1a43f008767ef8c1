// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
)

// A redrive sends a message to the lane that the message came from.
func TestADeadLetterNamesTheLaneOfItsQueue(t *testing.T) {
	for _, lane := range []flight.Lane{flight.Live, flight.Bulk} {
		t.Run(string(lane), func(t *testing.T) {
			stage{}.play(t, func(b *bench) {
				b.sink.Script(doc("a"), poison())
				b.fly(b.holdOn(lane, queue.Outgoing{Body: put("a", 1)}), 1)
				if l := b.TakeLetters(b.dead); len(l) != 1 || l[0].Lane != string(lane) || l[0].Sink != "search" {
					b.Errorf("dead letters %+v, want one of sink search and lane %s", l, lane)
				}
			})
		})
	}
}

// The sink's treatment of a delete, or of a missing index, may depend on whether the sink should
// hold the document.
func TestARequestSaysWhetherTheSinkShouldHoldTheDocument(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		gone := `{"type":"doc.deleted","subject":"a","sequence":"%d"}`
		for _, body := range []string{put("a", 1), put("a", 2), fmt.Sprintf(gone, 3), fmt.Sprintf(gone, 4), put("a", 5)} {
			b.fly(b.hold(body), 2)
			time.Sleep(time.Minute)
		}
		history := b.sink.History(doc("a"))
		want := []bool{false, true, true, false, false}
		if len(history) != len(want) {
			b.Fatalf("%d requests, want %d", len(history), len(want))
		}
		for i, op := range history {
			if op.Present != want[i] {
				b.Errorf("request %d, %s of version %d: present %t, want %t", i, op.Kind, i+1, op.Present, want[i])
			}
		}
	})
}

// Documents beyond maxItemsPerTurn are processed in later turns, after the documents before them.
func TestEachTurnBeginsWhereTheOneBeforeEnded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ documents, limit, turns int }{{3, 2, 2}, {25, 10, 3}, {6, 2, 3}} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			stage{cfg: func(c *config.Config) { c.Index.MaxItemsPerTurn = tt.limit }}.play(t, func(b *bench) {
				var bodies []string
				for i := range tt.documents {
					bodies = append(bodies, put(fmt.Sprintf("doc-%02d", i), 1))
				}
				s := b.hold(bodies...)
				last := fmt.Sprintf("doc-%02d", tt.documents-1)
				for i := range tt.documents - 1 {
					b.leased(doc(fmt.Sprintf("doc-%02d", i)), time.Hour)
				}
				for range tt.turns {
					s = b.turn(s)
				}
				b.holds(last, "1")
			})
		})
	}
}

// If a flight ends because its sink is away, only the waiting messages wait in the queue. Messages
// that are done were deleted, and messages that were given back are visible.
func TestOnlyWhatWaitsForItsSinkGoesAway(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		s := b.hold(put("waits", 1), put("done", 1), put("foreign", 1))
		b.Commit(b.Claim(b.EventOf(put("done", 1))), shard.Put)
		b.Change(doc("foreign"), func(r *shard.Row) { r.Schema = shard.SchemaVersion + 1 })
		b.Write(shardtest.Put(shard.Row{Doc: shard.HealthRow("search"), OpenUntil: now().Add(time.Hour), Level: 7}))
		if s = b.turn(s); !s.Done {
			b.Fatal("the flight waits in its execution for a sink that is away, want it to end")
		}
		if n := b.Notes.Of(journal.Away); len(n) != 1 || n[0].Count != 1 {
			b.Errorf("notes %+v, want one message away", n)
		}
		b.queued(1, 1, "the message of the newer schema is visible at once, the other message waits")
	})
}

// noise returns n characters that hardly compress.
func noise(n int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-"
	dice := rand.New(rand.NewPCG(1, uint64(n)))
	text := make([]byte, n)
	for i := range text {
		text[i] = letters[dice.IntN(len(letters))]
	}
	return string(text)
}

// The dead letter of a message of SQS's largest size is compressed: lull sends the dead letter at
// once and does not ask the sink again.
func TestAMessageThatFillsItsQueueBecomesADeadLetterAtOnce(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		body := strings.Replace(put("a", 1), `"v1"`, `"v1`+noise(queue.MaxBytes-len(put("a", 1)))+`"`, 1)
		b.sink.Script(doc("a"), poison())
		b.fly(b.hold(body), 1)
		b.requests(1, "the request that the sink rejected for good")
		if l := b.TakeLetters(b.dead); len(l) != 1 || l[0].Body != body || l[0].Doc != doc("a") {
			b.Errorf("%d dead letters, want one with the message byte for byte", len(l))
		}
		b.inQueue(0)
	})
}

// If a dead letter is too large even when compressed, SQS moves the message by its receive count.
// The flight does not ask the sink again.
func TestAMessageWhoseDeadLetterHasNoRoomLeavesItsFlight(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		dice := rand.NewChaCha8([32]byte{1})
		filler := make([]byte, queue.MaxBytes-len(put("a", 1))-len("xBinary"))
		_, _ = dice.Read(filler)
		b.sink.Script(doc("a"), poison(), poison())
		full := queue.Outgoing{Body: put("a", 1), Attributes: map[string]queue.Attribute{
			"x": {Type: "Binary", Binary: filler},
		}}
		b.fly(b.holdOn(flight.Live, full), 1)
		b.requests(1, "the flight is over")
		b.Noted(journal.LeftFlight, 1)
		b.queued(1, 0, "the message is received again, and each receive counts")
		if r := b.Row(doc("a")); r.Pending != b.key("a", 1) || r.Dead != "" || r.Owner != "" {
			b.Errorf("row %+v, want the version pending", r)
		}
	})
}

// An older version is blocked only if a newer version was claimed without an answer, and not by its
// own claim.
func TestItsOwnClaimDoesNotBlockAVersion(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		s := b.hold(put("a", 1), put("a", 2))
		b.Change(doc("a"), func(r *shard.Row) { r.Claimed = b.key("a", 1) })
		b.sink.Script(doc("a"), poison())
		b.delivers(s, 3, "a", "1")
		b.Noted(journal.Rejected, 1)
		b.Noted(journal.Blocked, 0)
	})
}
