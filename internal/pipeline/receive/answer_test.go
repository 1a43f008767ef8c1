// SPDX-License-Identifier: Apache-2.0

package receive_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/shard"
)

// several adds a source of S3 notifications, which carry several events per message, beside the
// native source.
func several(c *config.Config) {
	c.Sources["s3"] = config.Source{Kind: "s3", Collection: "content"}
	c.DefaultSource = "native"
}

func removed(keys ...string) string {
	var records []string
	for _, key := range keys {
		id, sequencer, _ := strings.Cut(key, "@")
		records = append(records,
			fmt.Sprintf(`{"eventVersion":"2.1","eventSource":"aws:s3","eventName":"ObjectRemoved:Delete",`+
				`"eventTime":"2026-05-04T10:00:00Z","s3":{"bucket":{"name":"b"},"object":{"key":%q,"sequencer":%q}}}`,
				id,
				sequencer))
	}
	return `{"Records":[` + strings.Join(records, ",") + `]}`
}

func notBefore(body string, at time.Time) string {
	return body[:len(body)-1] + fmt.Sprintf(`,"notbefore":%q}`, at.UTC().Format(time.RFC3339Nano))
}

// bubble is the time at which every synctest bubble begins.
var bubble = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// kept is how long a queue keeps a message.
const kept = 6 * 24 * time.Hour

// anyBatch makes a random batch with messages of every kind that receive distinguishes. Some
// messages are in the batch twice.
func anyBatch(t *rapid.T) []queue.Message {
	var batch []queue.Message
	for i := range rapid.IntRange(0, 8).Draw(t, "messages") {
		id, version := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "id"), rapid.IntRange(1, 3).Draw(t, "version")
		age := rapid.SampledFrom([]time.Duration{
			time.Second, time.Minute, 73 * time.Hour,
			29*24*time.Hour + time.Minute,
		}).Draw(t, "age")
		m := queue.Message{
			ID: fmt.Sprintf("m%d", i), Receipt: fmt.Sprintf("r%d", i), Body: put(id, version),
			Sent: bubble.Add(-min(age, kept)), ReceiveCount: rapid.IntRange(1, 3).Draw(t, "receives"),
		}
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			m.Body = "not json"
		case 1:
			m.Body = fmt.Sprintf(`{"type":"doc.changed","subject":%q,"data":{}}`, id) // no version
		case 2:
			m.Body = `{"Service":"Amazon S3","Event":"s3:TestEvent","Bucket":"b"}`
			m.Attributes = map[string]queue.Attribute{queue.AttrSource: queue.Text("s3")}
		case 3:
			m.Body = removed(fmt.Sprintf("%s@0%d", id, version), "d@01")
			m.Attributes = map[string]queue.Attribute{queue.AttrSource: queue.Text("s3")}
		case 4:
			ahead := rapid.SampledFrom([]time.Duration{
				3 * time.Second, 5 * time.Minute, 2 * time.Hour,
				29 * 24 * time.Hour,
			}).Draw(t, "ahead")
			m.Body = notBefore(m.Body, bubble.Add(ahead))
		}
		if age > kept { // a copy of a message that was sent earlier
			first := queue.Attribute{Type: "Number", String: millis(bubble.Add(-age))}
			m.Attributes = maps.Clone(m.Attributes)
			if m.Attributes == nil {
				m.Attributes = map[string]queue.Attribute{}
			}
			m.Attributes[queue.AttrFirstSent] = first
		}
		batch = append(batch, m)
		if rapid.IntRange(0, 5).Draw(t, "twice") == 0 { // a standard queue may deliver both copies into one batch
			m.Receipt += " again"
			batch = append(batch, m)
		}
	}
	return batch
}

// rowState is what the row of a document says about one version.
type rowState struct{ version, state int }

func anyRows(t *rapid.T) map[string]rowState {
	rows := map[string]rowState{}
	for _, id := range []string{"a", "b", "c"} {
		rows[id] = rowState{rapid.IntRange(1, 3).Draw(t, "row's version"), rapid.IntRange(0, 6).Draw(t, "row")}
	}
	return rows
}

// prepare puts the rows of the documents into the given states. It returns which versions are dead
// letters.
func (b *bench) prepare(rows map[string]rowState) (dead map[shard.DocID]shard.OrderKey) {
	dead = map[shard.DocID]shard.OrderKey{}
	for id, s := range rows {
		key := b.EventOf(put(id, s.version)).Key
		b.Change(doc(id), func(r *shard.Row) {
			switch s.state {
			case 1:
				r.Committed, r.CommittedOp, r.LastWrite = key, shard.Put, now().Add(-time.Hour)
			case 2:
				r.Pending, r.BurstStart, r.Flight = key, now().Add(-time.Second), "another"
			case 3:
				r.Dead, dead[doc(id)] = key, key
			case 4:
				r.Pending, r.Claimed, r.BurstStart, r.Owner, r.LeaseUntil = key, key, now().Add(-time.Second),
					"somebody", now().Add(10*time.Second)
			case 5:
				r.Schema = shard.SchemaVersion + 1
			case 6:
				r.VersionClass = shard.ClassSeq
			}
		})
	}
	return dead
}

// troubles makes a percentage of the I/O fail. The seed decides which calls fail.
func troubles(seed uint64, percent int) fault.Injector {
	r := rand.New(rand.NewPCG(seed, 1))
	return decide(func(fault.Op) fault.Verdict {
		if r.IntN(100) >= percent {
			return fault.OK
		}
		return []fault.Verdict{fault.FailBefore, fault.FailAfter, fault.Throttle}[r.IntN(3)]
	})
}

// ends shows where the events of all messages have ended, according to the stores.
type ends struct {
	// The versions whose dead letter was stored before. Another version's mark may replace theirs
	// in the row.
	dead      map[shard.DocID]shard.OrderKey
	letters   []deadletter.Letter
	scheduled []schedule.Item
	delayed   map[string]bool // by body
}

func (b *bench) ends() ends {
	b.Helper()
	e := ends{letters: b.TakeLetters(b.dead), delayed: map[string]bool{}}
	var err error
	if e.scheduled, _, err = b.schedule.Due(b.Context(), time.Now().Add(40*24*time.Hour), "", 1000); err != nil {
		b.Fatal(err)
	}
	if b.live.Counts().Delayed > 0 {
		time.Sleep(queue.MaxDelay) // then the copies that wait in the queue are visible
	}
	copies, err := b.live.Receive(b.Context(), 1000, 0)
	if err != nil {
		b.Fatal(err)
	}
	for _, m := range copies {
		e.delayed[m.Body] = true
	}
	return e
}

// why returns the reason why a message is not done, "" if it is done. It looks only at the stores,
// and not at the notes of receive.
func (b *bench) why(m queue.Message, e ends) string {
	b.Helper()
	for i, r := range b.Sources.Decode(m) {
		stored := slices.ContainsFunc(e.letters, func(l deadletter.Letter) bool {
			return l.MessageID == m.ID &&
				l.Event == i
		})
		if r.Skip != "" || stored {
			continue
		}
		if r.Invalid != nil {
			return fmt.Sprintf("event %d is faulty (%s), and no dead letter was sent", i, r.Invalid)
		}
		ev := r.Event
		row := b.Row(doc(ev.Doc.ID()))
		due := slices.ContainsFunc(e.scheduled, func(it schedule.Item) bool {
			return it.Doc == ev.Doc &&
				it.Key == ev.Key
		})
		if row.Committed < ev.Key && row.Dead != ev.Key && e.dead[ev.Doc] != ev.Key && !due && !e.delayed[m.Body] {
			return fmt.Sprintf("%s %s is neither committed, dead, scheduled nor in a dead letter", ev.Doc, ev.Version)
		}
	}
	return ""
}

// Row 20 of docs/faults.md. For every batch and every failure: the answer is never nil, names only
// messages of the batch, each once, and names each message with an unfinished event. Each named
// message is held by the flight, or noted as failed.
func TestBatchResponseNamesOnlyHeldMessages(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		rows, batch := anyRows(rt), anyBatch(rt)
		seed, percent := rapid.Uint64().Draw(rt, "seed"),
			rapid.SampledFrom([]int{0, 10, 40, 100}).Draw(rt, "percent of I/O that fails")
		var wrong []string
		synctest.Test(t, func(t *testing.T) {
			b := setup(t, several)
			defer b.machine.Close()
			dead := b.prepare(rows)
			b.inject = troubles(seed, percent)
			h, _ := b.handler()
			h.Parallel = oneByOne // the calls have a fixed order, so that the seed decides which I/O fails
			wrong = b.judge(batch, h.Handle(b.Context(), batch), dead)
		})
		for _, w := range wrong {
			rt.Error(w)
		}
	})
}

// judge compares an answer with the contents of the stores.
func (b *bench) judge(batch []queue.Message, answer []string, dead map[shard.DocID]shard.OrderKey) (wrong []string) {
	b.Helper()
	if answer == nil {
		return []string{"the answer is nil"}
	}
	held := map[string]bool{}
	// A flight that could not be stored held its messages too.
	for _, step := range []journal.Step{journal.Failed, journal.Held} {
		for _, n := range b.Notes.Of(step) {
			held[n.Message] = true
		}
	}
	named := map[string]bool{}
	for _, id := range answer {
		if named[id] {
			wrong = append(wrong, id+" is named twice")
		}
		if !slices.ContainsFunc(batch, func(m queue.Message) bool { return m.ID == id }) {
			wrong = append(wrong, id+" is named, but is not in the batch")
		}
		if !held[id] {
			wrong = append(wrong, id+" is named, but neither held nor failed")
		}
		named[id] = true
	}
	for _, m := range b.manifests() {
		for _, r := range m.Records {
			if !named[r.Message.ID] {
				wrong = append(wrong, r.Message.ID+" is held, but the answer does not name it")
			}
		}
	}
	e := b.ends()
	e.dead = dead
	for _, m := range batch {
		if why := b.why(m, e); why != "" && !named[m.ID] {
			wrong = append(wrong, m.ID+" was acknowledged: "+why)
		}
	}
	return wrong
}

func TestAnEmptyBatchHasAnEmptyAnswer(t *testing.T) {
	play(t, nil, func(b *bench) {
		h, _ := b.handler()
		if got := h.Handle(b.Context(), nil); got == nil || len(got) != 0 {
			b.Errorf("answer %#v, want an empty slice that is not nil", got)
		}
		if m := b.manifests(); len(m) != 0 {
			b.Errorf("%d flights for an empty batch, want none", len(m))
		}
	})
}
