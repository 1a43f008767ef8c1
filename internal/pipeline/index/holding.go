// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"slices"

	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// holding is what a flight holds: its messages, its documents, which of them are done, and when the
// flight must wake for the remaining ones.
type holding struct {
	*invocation
	manifest *flight.Manifest
	records  []recordState
	docs     []*document
	left     flight.Remaining
	wake     shard.Micros // when the flight needs its next turn; 0 for never
}

// load groups the remaining entries of the manifest by document. The documents keep the manifest's
// order.
func load(v *invocation, m *flight.Manifest) *holding {
	h := &holding{
		invocation: v, manifest: m, records: make([]recordState, len(m.Records)), left: v.state.Remaining.Clone(),
	}
	index := map[shard.DocID]*document{}
	entries := make([]heldEntry, 0, h.left.Count()) // the documents point into this list, so it must not grow
	item := -1
	for r, e := range m.Entries() {
		// The numbers count every entry of the manifest, also finished entries. So a bit of the
		// bitmap means the same entry in every turn.
		if item++; !h.left.Has(item) {
			continue
		}
		h.records[r].open++
		h.records[r].mine = true
		d := index[e.Doc]
		if d == nil {
			d = &document{id: e.Doc}
			index[e.Doc] = d
			h.docs = append(h.docs, d)
		}
		entries = append(entries, heldEntry{Entry: e, record: r, item: item})
		d.held = append(d.held, &entries[len(entries)-1])
	}
	for _, d := range h.docs {
		// The newest version is first, as the method newest expects. Equal keys keep the order of
		// the manifest.
		slices.SortStableFunc(d.held, func(a, b *heldEntry) int { return -cmp.Compare(a.Key, b.Key) })
	}
	return h
}

// holdEnds reports whether SQS's twelve hours are almost over. A rescued flight has no such end,
// because it holds no messages.
func (h *holding) holdEnds() bool {
	return !h.rescued() && h.clock.Now().After(h.manifest.Received.Add(queue.MaxHold-holdMargin))
}

// rescued reports whether an operator started the flight from the manifest of another flight. The
// messages of a rescued flight may no longer be in the queue.
func (h *holding) rescued() bool {
	return h.state.VisibleUntil >= shard.MicrosOf(h.manifest.Received.Add(queue.MaxHold))
}

func (h *holding) message(e *heldEntry) *queue.Message { return &h.manifest.Records[e.record].Message }

func (h *holding) about(d *document, e *heldEntry, step journal.Step, detail string) journal.Note {
	n := journal.Note{Step: step, Doc: d.id, Detail: detail}
	if e != nil {
		m := h.message(e)
		n.Key, n.Op, n.Message, n.Event, n.Sent = e.Key, e.Op, m.ID, e.Index, m.Sent
		n.Trace = m.Attributes[queue.AttrTrace].String
	}
	return n
}

// complete completes one entry. The message may be deleted once all of its entries are done.
func (h *holding) complete(d *document, e *heldEntry, step journal.Step, detail string) {
	h.drop(e)
	h.note(h.about(d, e, step, detail))
}

// drop takes an entry out of the flight: out of the bitmap, and out of the count of its message.
func (h *holding) drop(e *heldEntry) {
	e.gone = true
	h.left.Drop(e.item)
	h.records[e.record].open--
}

// completeUpTo completes every held version that is at most k, because the row shows that k is
// committed. This is the first case of the invariant (design section 2).
func (h *holding) completeUpTo(d *document, k shard.OrderKey) {
	for e := range d.unfinished() {
		switch {
		case e.Key > k:
		case e.Key == k:
			h.complete(d, e, journal.Duplicate, "this version is committed")
		default:
			h.complete(d, e, journal.Superseded, e.Key.Behind(k))
		}
	}
}

// completeStored completes the entries of a version if its dead letter is stored, or if an
// operator's reset took the version back. An older version may still be good, so the entries of
// older versions stay.
func (h *holding) completeStored(d *document, k shard.OrderKey) {
	step, why := journal.AlreadyDead, "its dead letter is stored"
	if d.row.Took(k) {
		step, why = journal.Stale, "an operator took the version back"
	}
	for e := range d.unfinished() {
		if e.Key == k {
			h.complete(d, e, step, why)
		}
	}
}

// giveUp makes the message of an entry leave the flight undeleted, so that redelivery admits it
// again. The other events of the message leave too, so that nothing in this flight can count the
// message as done.
func (h *holding) giveUp(d *document, e *heldEntry, why string) {
	h.records[e.record].given = true
	h.drop(e)
	h.note(h.about(d, e, journal.LeftFlight, why))
}

// dropUnwritten removes a version from the flight that was committed without a write.
func (h *holding) dropUnwritten(d *document, e *heldEntry, old shard.Row) {
	n := h.about(d, e, journal.Kept, "the same content as version "+old.Committed.VersionText())
	n.Old = old
	h.drop(e)
	h.note(n)
	h.completeUpTo(d, e.Key)
}

// wakeBy asks for another turn at the given time. The earliest time wins, because one wake serves
// the whole flight.
func (h *holding) wakeBy(at shard.Micros) {
	if h.wake == 0 || at < h.wake {
		h.wake = at
	}
}

// wait keeps the document in the flight until the given time.
func (h *holding) wait(d *document, until shard.Micros, why string) {
	h.wakeBy(until)
	n := h.about(d, d.newest(), journal.Waiting, why)
	n.Until = until.Time()
	h.note(n)
}

// waitAll keeps several documents in the flight, all for the same reason.
func (h *holding) waitAll(docs []*document, until shard.Micros, why string) {
	for _, d := range docs {
		h.wait(d, until, why)
	}
}

// waitForOlder keeps a document in the flight if the flight holds an older version. The next turn
// decides about that version.
func (h *holding) waitForOlder(d *document) {
	if d.newest() != nil {
		h.wait(d, h.now(), "the next turn decides about an older version")
	}
}
