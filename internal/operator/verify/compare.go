// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"fmt"
	"slices"

	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
)

// Close closes the export.
func (v *Verification) Close() error { return v.in.Close() }

const (
	// batchSize is how many messages are compared with one request.
	batchSize = 100
	// maxMessages is how many messages a step compares.
	maxMessages = 1000
	// maxNames is how many messages a step reads only for the names of their documents.
	maxNames = 5000
	// MaxNamedInvalid is how many invalid events the answer names. If an export has another format,
	// all its events are invalid.
	MaxNamedInvalid = 20
)

// nameDocuments reads again the part of a complete export that an earlier program has compared. It
// collects the names of the documents, which were only in the memory of that program. behind says
// that the next step must continue this.
func (v *Verification) nameDocuments(ctx context.Context, c Cursor) (behind bool, err error) {
	if v.CompleteAt.IsZero() || v.named.Messages >= c.Messages || c.Phase == finished {
		return false, nil
	}
	in, err := v.in.At(v.named)
	if err != nil {
		return true, err
	}
	for range maxNames / batchSize {
		batch, err := in.Batch(min(batchSize, c.Messages-v.named.Messages))
		if err != nil {
			return true, err
		}
		if len(batch) == 0 { // the export is shorter than before
			return true, feed.ErrOther
		}
		events, err := v.ask(ctx, batch, true)
		if err != nil {
			return true, err
		}
		v.keep(events)
		if v.named = in.Spot(); v.named.Messages == c.Messages {
			_, err = v.in.At(c.Spot)
			return false, err
		}
	}
	return true, nil
}

func (v *Verification) keep(events []operate.CheckedEvent) {
	if v.exported == nil {
		v.exported = map[uint64]struct{}{}
	}
	for _, e := range events {
		if e.Key != "" && !v.CompleteAt.IsZero() {
			v.exported[hashOf(e.Key)] = struct{}{}
		}
	}
}

// ask compares a batch of the export, or only names its documents.
func (v *Verification) ask(ctx context.Context, batch []queue.Outgoing, names bool) ([]operate.CheckedEvent, error) {
	for i := range batch {
		feed.Mark(&batch[i], v.Source, v.Group)
	}
	done, err := v.Stack.Check(ctx, operate.CheckOrder{
		Collection: v.Collection, Messages: batch, Versions: v.Versions, Sink: v.Sink, Names: names,
	})
	return done.Events, err
}

// compareExport compares the next messages of the export.
func (s step) compareExport(ctx context.Context) error {
	in, err := s.in.At(s.Spot)
	if err != nil {
		return err
	}
	most := s.limit(maxMessages)
	for n := 0; n < most && !s.full(); {
		size := min(batchSize, most-n)
		batch, err := in.Batch(size)
		if err == nil && len(batch) > 0 {
			numbers := make([]int, len(batch))
			for i := range batch {
				numbers[i] = s.Messages + i
			}
			err = s.compare(ctx, batch, numbers, true)
		}
		if err != nil && n > 0 && ctx.Err() == nil {
			return nil // the next step returns this error; this step reports what it has repaired
		}
		if err != nil {
			return err
		}
		n += len(batch)
		if s.Spot = in.Spot(); s.Messages > s.named.Messages {
			s.named = s.Spot
		}
		if in.Ended() {
			// If the export has no event of the collection, end here. Otherwise the answer would
			// look as if nothing differed.
			if s.next(walking); s.Compared == 0 {
				s.next(finished)
			}
			return nil
		}
	}
	s.Settle = s.full()
	return nil
}

// compare compares a batch of the export. If a document differs, a repair sends its message again.
// Messages that were sent or are in motion are compared again later.
func (s step) compare(ctx context.Context, batch []queue.Outgoing, numbers []int, first bool) error {
	events, err := s.ask(ctx, batch, false)
	if err != nil {
		return err
	}
	moving, sent := map[int]bool{}, map[int]bool{}
	var differ []operate.CheckedEvent
	for _, e := range events {
		n := numbers[e.Message]
		before := slices.Contains(s.Sent, n)
		switch {
		case e.Drift && before:
			sent[n] = true
		case e.State == inMotion:
			moving[n] = true
		case e.Drift:
			differ = append(differ, e)
			sent[n] = sent[n] || s.Repair
		}
		sent[n] = sent[n] || moving[n] && before
	}
	if err := s.resend(ctx, batch, numbers, sent); err != nil {
		return err
	}
	s.out.Did(len(batch))
	s.keep(events)
	for _, e := range events {
		if first {
			s.count(e, numbers[e.Message])
		}
	}
	for _, e := range differ {
		outcome := Found
		if s.Repair {
			outcome = resent
		}
		s.tell(Line{Key: e.Key, Difference: e.State, Version: e.Version, Outcome: outcome})
	}
	done := func(n int) bool { return slices.Contains(numbers, n) }
	s.Sent, s.Moving = slices.DeleteFunc(s.Sent, done), slices.DeleteFunc(s.Moving, done)
	for _, n := range numbers {
		switch {
		case sent[n]:
			s.Sent = append(s.Sent, n)
		case moving[n]:
			s.Moving = append(s.Moving, n)
		}
	}
	return nil
}

// count counts an event of the export.
func (s step) count(e operate.CheckedEvent, n int) {
	s.out.Count(countEvent+e.State, 1)
	switch e.State {
	case invalid:
		if s.Invalid++; s.Invalid <= MaxNamedInvalid {
			s.out.Say(Line{Note: fmt.Sprintf("not compared: message %d: %s", n+1, e.Why)})
		}
	case skipped:
	default:
		s.Compared++
	}
	if s.Why == "" {
		s.Why = e.Why[:min(len(e.Why), 300)]
	}
}

// resend sends the messages of a batch that are marked in sent, except those that were sent before.
func (s step) resend(ctx context.Context, batch []queue.Outgoing, numbers []int, sent map[int]bool) error {
	var send []queue.Outgoing
	var of []int
	for i, n := range numbers {
		if sent[n] && !slices.Contains(s.Sent, n) {
			send, of = append(send, batch[i]), append(of, n)
		}
	}
	if len(send) == 0 {
		return nil
	}
	if err := s.pause(ctx, len(send)); err != nil {
		return err
	}
	done, err := s.Stack.Publish(ctx, operate.Publication{
		Messages: send, Lane: flight.Bulk, Run: s.Run, Sink: s.Sink,
	})
	if err != nil {
		return err
	}
	for _, r := range done.Refused {
		s.out.Say(Line{Note: fmt.Sprintf("not repaired: message %d: %s", of[r.Message]+1, r.Why)})
	}
	return nil
}
