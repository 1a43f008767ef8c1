// SPDX-License-Identifier: Apache-2.0

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

// The job compares the lists of the cursor again when a list reaches someMessages or someBytes. A
// document that would exceed maxBytes is counted as in motion, and is not compared again.
const (
	someMessages = 2000
	someBytes    = 20 << 10 // of the documents in motion, or of the orphans in motion
	maxBytes     = 2 * someBytes
)

// left returns how many documents and messages must be compared again.
func (c *Cursor) left() int {
	return len(c.Look) + len(c.Moving) + len(c.Sent) + len(c.Orphans) + len(c.Ask) + len(c.Waits)
}

// full reports whether a list is so long that the job must compare it again before the phase
// continues.
func (c *Cursor) full() bool { return c.atLeast(1) }

// atLeast reports whether one of the lists has reached this part of its limit.
func (c *Cursor) atLeast(part float64) bool {
	return float64(len(c.Moving)+len(c.Sent)) >= part*someMessages || float64(size(c.Look)) >= part*someBytes ||
		float64(size(c.Orphans)) >= part*someBytes || float64(size(c.Waits)) >= part*someWaits
}

// size returns the length of a list as JSON, in bytes.
func size(list any) int {
	text, _ := json.Marshal(list) // texts and numbers only
	return len(text)
}

// look notes a document in motion for the next comparison.
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

// lookOrphan notes an orphan in motion for the next try.
func (s step) lookOrphan(c operate.ReconcileCopy) {
	if more := append(s.Orphans, c); size(more) <= maxBytes {
		s.Orphans = more
		return
	}
	s.out.Count(countMoving, 1)
}

// settle compares the lists of the cursor again: documents in motion, and messages that were sent.
// Between two phases it ends when the lists are empty. During a phase it ends when they are at most
// half full. It gives up if no document has come to rest during the patience.
func (s step) settle(ctx context.Context) error {
	before := s.left()
	whole := s.betweenPhases()
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
	for _, again := range []func(context.Context) error{s.lookAgain, s.compareAgain, s.removeAgain, s.waitAgain} {
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

// betweenPhases reports whether the last phase has ended, and the next has not begun.
func (c *Cursor) betweenPhases() bool {
	return c.Place.After == "" && !c.Place.Rows && c.Phase != comparing
}

// giveUp counts the entries of the lists as in motion or as remaining, and empties the lists.
func (s step) giveUp(impatient bool) {
	s.out.Count(countMoving, len(s.Look)+len(s.Moving)+len(s.Orphans))
	s.out.Count(countRemaining, len(s.Sent))
	s.giveUpWaits()
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
		o.Keys, o.Sample, o.Seen = keys, 0, s.FromSource
		p, err := s.Stack.Reconcile(ctx, o)
		if err != nil {
			return err
		}
		s.out.Did(len(keys))
		for _, l := range p.Lines {
			s.differs(l)
		}
		if s.FromSource {
			s.Ask = append(s.Ask, asked(p)...)
		}
	}
	return nil
}

// compareAgain compares again the messages that were in motion, or were sent for a repair.
func (s step) compareAgain(ctx context.Context) error {
	wanted := slices.Sorted(slices.Values(slices.Concat(s.Moving, s.Sent)))
	if len(wanted) == 0 {
		return nil
	}
	if _, err := s.in.At(s.Spot); err != nil { // check that the export is the same as before
		return err
	}
	again := feed.Reader{Open: s.Open}
	defer func() { _ = again.Close() }() // an error does not matter, because nothing was written
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
				if len(m) == 0 { // the export is shorter than before
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
