package index

import (
	"cmp"
	"slices"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// recordState is what the turn knows of one message.
type recordState struct {
	open    int  // entries that are not done
	mine    bool // it had entries when this turn began: if not, an earlier turn deleted it or gave it back
	given   bool // it leaves the flight without being deleted
	deleted bool
}

// held is one entry of the manifest that is not done.
type held struct {
	flight.Entry
	record int
	item   int // number in the bitmap
	gone   bool
}

// document is one document of the flight, with the versions that the flight holds, newest first.
type document struct {
	id   shard.DocID
	held []*held
	row  shard.Row
	step shard.Step

	before     shard.Row // as CLAIM found it
	generation string    // of the sink's index; "" if unchanged content is not recognised

	lease     shard.Lease
	body      []byte
	version   string
	reference *event.Event      // loaded under the lease; nil if the message has the payload
	away      bool              // it waits for an enricher that is away
	unloaded  string            // why the payload could not be loaded, for the row; "" if it was loaded
	loadAfter time.Duration     // the shortest wait before it is loaded again
	fault     string            // why the document can never be built: reject it without asking the sink
	faultFor  deadletter.Reason // the dead letter's reason for it
}

// newest returns the newest version that is not done, nil if there is none.
func (d *document) newest() *held {
	for _, e := range d.held {
		if !e.gone {
			return e
		}
	}
	return nil
}

// left returns the versions that are not done, newest first.
func (d *document) left() []*held {
	return slices.DeleteFunc(slices.Clone(d.held), func(e *held) bool { return e.gone })
}

// load groups the remaining entries by document. Documents keep the manifest's order.
func (t *turn) load(m *flight.Manifest) {
	t.manifest, t.records, t.decoded = m, make([]recordState, len(m.Records)), map[int]*decoded{}
	index := map[shard.DocID]*document{}
	item := -1
	for r, e := range m.Entries() {
		// The numbers count every entry of the manifest, also finished ones. So the bitmap means
		// the same in every turn.
		if item++; !t.left.Has(item) {
			continue
		}
		t.records[r].open++
		t.records[r].mine = true
		d := index[e.Doc]
		if d == nil {
			d = &document{id: e.Doc}
			index[e.Doc] = d
			t.docs = append(t.docs, d)
		}
		d.held = append(d.held, &held{Entry: *e, record: r, item: item})
	}
	for _, d := range t.docs {
		// Newest first, as newest expects it. Equal keys keep the order of the manifest.
		slices.SortStableFunc(d.held, func(a, b *held) int { return -cmp.Compare(a.Key, b.Key) })
	}
}

// done completes one entry. The message may be deleted once all of its entries are done.
func (t *turn) done(d *document, e *held, step journal.Step, detail string) {
	t.drop(e)
	t.note(t.about(d, e, step, detail))
}

// drop takes an entry out of the flight: out of the bitmap and out of its message's count.
func (t *turn) drop(e *held) {
	e.gone = true
	t.left.Drop(e.item)
	t.records[e.record].open--
}

// doneUpTo completes every held version that is at most k, by the row: committed >= its key. This
// is the first case of the invariant (design section 2).
func (t *turn) doneUpTo(d *document, k shard.OrderKey) {
	for _, e := range d.left() {
		switch {
		case e.Key > k:
		case e.Key == k:
			t.done(d, e, journal.Duplicate, "this version is committed")
		default:
			t.done(d, e, journal.Superseded, e.Key.Behind(k))
		}
	}
}

// doneStored completes the entries of one version whose dead letter is stored, or which an
// operator took back. An older version may still be good, so its entries stay.
func (t *turn) doneStored(d *document, k shard.OrderKey) {
	step, why := journal.AlreadyDead, "its dead letter is stored"
	if d.row.Took(k) {
		step, why = journal.Stale, "an operator took it back"
	}
	for _, e := range d.left() {
		if e.Key == k {
			t.done(d, e, step, why)
		}
	}
}

// giveUp makes the message of an entry leave the flight undeleted: redelivery admits it again.
// Its other events leave too, so that nothing in this flight can count the message as done.
func (t *turn) giveUp(d *document, e *held, why string) {
	t.records[e.record].given = true
	t.drop(e)
	t.note(t.about(d, e, journal.LeftFlight, why))
}

func (t *turn) about(d *document, e *held, step journal.Step, detail string) journal.Note {
	n := journal.Note{Step: step, Doc: d.id, Detail: detail}
	if e != nil {
		m := t.message(e)
		n.Key, n.Op, n.Message, n.Event, n.Sent = e.Key, e.Op, m.ID, e.Index, m.Sent
		n.Trace = m.Attributes[queue.AttrTrace].String
	}
	return n
}

func (t *turn) message(e *held) *queue.Message { return &t.manifest.Records[e.record].Message }
