package index

import (
	"cmp"
	"slices"

	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// holding is what a flight holds: its messages, its documents, which of them are done, and when
// the flight must wake for the others.
type holding struct {
	*invocation
	manifest *flight.Manifest
	records  []recordState
	docs     []*document
	left     flight.Remaining
	wake     shard.Micros // when the next turn is needed; 0 for never
}

// load groups the remaining entries by document. Documents keep the manifest's order.
func load(v *invocation, m *flight.Manifest) *holding {
	h := &holding{
		invocation: v, manifest: m, records: make([]recordState, len(m.Records)), left: v.state.Remaining.Clone(),
	}
	index := map[shard.DocID]*document{}
	item := -1
	for r, e := range m.Entries() {
		// The numbers count every entry of the manifest, also finished ones. So the bitmap means
		// the same in every turn.
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
		d.held = append(d.held, &held{Entry: *e, record: r, item: item})
	}
	for _, d := range h.docs {
		// Newest first, as newest expects it. Equal keys keep the order of the manifest.
		slices.SortStableFunc(d.held, func(a, b *held) int { return -cmp.Compare(a.Key, b.Key) })
	}
	return h
}

// holdEnds reports whether SQS's twelve hours are almost over. A rescued flight holds no messages.
func (h *holding) holdEnds() bool {
	return !h.rescued() && h.clock.Now().After(h.manifest.Received.Add(queue.MaxHold-holdMargin))
}

// rescued reports whether an operator started the flight from the manifest of another one. Its
// messages may not be in the queue any more.
func (h *holding) rescued() bool {
	return h.state.VisibleUntil >= shard.MicrosOf(h.manifest.Received.Add(queue.MaxHold))
}

func (h *holding) message(e *held) *queue.Message { return &h.manifest.Records[e.record].Message }

func (h *holding) about(d *document, e *held, step journal.Step, detail string) journal.Note {
	n := journal.Note{Step: step, Doc: d.id, Detail: detail}
	if e != nil {
		m := h.message(e)
		n.Key, n.Op, n.Message, n.Event, n.Sent = e.Key, e.Op, m.ID, e.Index, m.Sent
		n.Trace = m.Attributes[queue.AttrTrace].String
	}
	return n
}

// done completes one entry. The message may be deleted once all of its entries are done.
func (h *holding) done(d *document, e *held, step journal.Step, detail string) {
	h.drop(e)
	h.note(h.about(d, e, step, detail))
}

// drop takes an entry out of the flight: out of the bitmap and out of its message's count.
func (h *holding) drop(e *held) {
	e.gone = true
	h.left.Drop(e.item)
	h.records[e.record].open--
}

// doneUpTo completes every held version that is at most k, by the row: committed >= its key. This
// is the first case of the invariant (design section 2).
func (h *holding) doneUpTo(d *document, k shard.OrderKey) {
	for _, e := range d.left() {
		switch {
		case e.Key > k:
		case e.Key == k:
			h.done(d, e, journal.Duplicate, "this version is committed")
		default:
			h.done(d, e, journal.Superseded, e.Key.Behind(k))
		}
	}
}

// doneStored completes the entries of one version whose dead letter is stored, or which an
// operator took back. An older version may still be good, so its entries stay.
func (h *holding) doneStored(d *document, k shard.OrderKey) {
	step, why := journal.AlreadyDead, "its dead letter is stored"
	if d.row.Took(k) {
		step, why = journal.Stale, "an operator took it back"
	}
	for _, e := range d.left() {
		if e.Key == k {
			h.done(d, e, step, why)
		}
	}
}

// giveUp makes the message of an entry leave the flight undeleted: redelivery admits it again.
// Its other events leave too, so that nothing in this flight can count the message as done.
func (h *holding) giveUp(d *document, e *held, why string) {
	h.records[e.record].given = true
	h.drop(e)
	h.note(h.about(d, e, journal.LeftFlight, why))
}

// unwritten removes a version from the flight that was committed without a write.
func (h *holding) unwritten(d *document, e *held, old shard.Row) {
	n := h.about(d, e, journal.Kept, "the same content as version "+old.Committed.VersionText())
	n.Old = old
	h.drop(e)
	h.note(n)
	h.doneUpTo(d, e.Key)
}

// again asks for another turn at the given time. The earliest time wins, because one wake serves
// the whole flight.
func (h *holding) again(at shard.Micros) {
	if h.wake == 0 || at < h.wake {
		h.wake = at
	}
}

// wait keeps the document in the flight until the given time.
func (h *holding) wait(d *document, until shard.Micros, why string) {
	h.again(until)
	n := h.about(d, d.newest(), journal.Waiting, why)
	n.Until = until.Time()
	h.note(n)
}

// waitAll keeps documents for one reason.
func (h *holding) waitAll(docs []*document, until shard.Micros, why string) {
	for _, d := range docs {
		h.wait(d, until, why)
	}
}

// waitForOlder keeps a document in the flight if it holds an older version. The next turn
// decides about that version.
func (h *holding) waitForOlder(d *document) {
	if d.newest() != nil {
		h.wait(d, h.now(), "an older version has its turn next")
	}
}
