package verify

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// How much the cursor may name before the job compares it again. What does not fit counts as in
// motion.
const (
	someMessages = 2000
	someBytes    = 20 << 10 // of documents in motion, and of orphans in motion
	maxBytes     = 2 * someBytes
)

// left is how many documents and messages have come to no end yet.
func (c *Cursor) left() int { return len(c.Look) + len(c.Moving) + len(c.Sent) + len(c.Orphans) }

// full reports whether the job compares again what is in motion before it continues.
func (c *Cursor) full() bool { return c.atLeast(1) }

// atLeast reports whether the cursor names at least this part of what it may.
func (c *Cursor) atLeast(part float64) bool {
	return float64(len(c.Moving)+len(c.Sent)) >= part*someMessages || float64(size(c.Look)) >= part*someBytes ||
		float64(size(c.Orphans)) >= part*someBytes
}

// size is how many bytes a list has in the row.
func size(list any) int {
	text, _ := json.Marshal(list) // texts and numbers only
	return len(text)
}

// look keeps a document in motion for the next comparison.
func (s step) look(key shard.DocID) {
	if slices.Contains(s.Look, key) {
		return
	}
	if more := append(s.Look, key); size(more) <= maxBytes {
		s.Look = more
		return
	}
	s.out.Count(countMoving, 1)
}

// lookOrphan keeps an orphan in motion for the next try.
func (s step) lookOrphan(c operate.ReconcileCopy) {
	if more := append(s.Orphans, c); size(more) <= maxBytes {
		s.Orphans = more
		return
	}
	s.out.Count(countMoving, 1)
}

// settle compares what is in motion or was sent again. It ends if nothing is left; in the middle of
// a phase, if half of it is left. It gives up if nothing has come to its end during the patience.
func (s step) settle(ctx context.Context) error {
	before := s.left()
	whole := s.Place.After == "" && !s.Place.Rows && s.Phase != comparing // a phase has ended
	if s.Waited >= s.Patience {
		s.giveUp(!whole)
		return nil
	}
	if whole || !s.Impatient {
		wait := min(cmp.Or(s.Wait, time.Second), s.Patience-s.Waited)
		if err := s.Clock.Sleep(ctx, wait); err != nil {
			return err
		}
		s.Wait, s.Waited = min(2*wait, 15*time.Second), s.Waited+wait
	}
	for _, again := range []func(context.Context) error{s.lookAgain, s.compareAgain, s.removeAgain} {
		if err := again(ctx); err != nil {
			return err
		}
	}
	if s.left() < before {
		s.Waited, s.Impatient = 0, false
	}
	switch {
	case s.left() == 0, !whole && !s.atLeast(0.5):
		s.Settle, s.Wait, s.Waited = false, 0, 0
	case !whole && s.Impatient:
		s.giveUp(true)
	}
	return nil
}

// giveUp counts what has come to no end.
func (s step) giveUp(impatient bool) {
	s.out.Count(countMoving, len(s.Look)+len(s.Moving)+len(s.Orphans))
	s.out.Count(countRemaining, len(s.Sent))
	s.Look, s.Moving, s.Sent, s.Orphans = nil, nil, nil, nil
	s.Settle, s.Wait, s.Waited, s.Impatient = false, 0, 0, impatient
}

// maxKeys is how many documents are compared with one request.
const maxKeys = 1000

// lookAgain compares the documents in motion with their rows again.
func (s step) lookAgain(ctx context.Context) error {
	docs := s.Look
	s.Look = nil
	for keys := range slices.Chunk(docs, maxKeys) {
		o := s.order()
		o.Keys, o.Sample, o.Seen = keys, 0, false
		p, err := s.Stack.Reconcile(ctx, o)
		if err != nil {
			return err
		}
		s.out.Did(len(keys))
		for _, l := range p.Lines {
			s.differs(l)
		}
	}
	return nil
}

// compareAgain compares the messages again that were in motion, or sent for a repair.
func (s step) compareAgain(ctx context.Context) error {
	wanted := slices.Sorted(slices.Values(slices.Concat(s.Moving, s.Sent)))
	if len(wanted) == 0 {
		return nil
	}
	if _, err := s.in.At(s.Spot); err != nil { // it is the one that was read before
		return err
	}
	again := feed.Reader{Open: s.Open}
	defer func() { _ = again.Close() }() // it was only read
	in, err := again.At(feed.Spot{})
	if err != nil {
		return err
	}
	read := 0
	for numbers := range slices.Chunk(wanted, batchSize) {
		var batch []queue.Outgoing
		for _, n := range numbers {
			var m []queue.Outgoing
			for ; read <= n; read++ {
				if m, err = in.Batch(1); err != nil {
					return err
				}
				if len(m) == 0 { // it is shorter than before
					return feed.ErrOther
				}
			}
			batch = append(batch, m...)
		}
		if err := s.compare(ctx, batch, numbers, false); err != nil {
			return err
		}
	}
	return nil
}

// removeAgain tries the orphans in motion again.
func (s step) removeAgain(ctx context.Context) error {
	orphans := s.Orphans
	s.Orphans = nil
	for batch := range slices.Chunk(orphans, removeBatch) {
		if err := s.remove(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}
