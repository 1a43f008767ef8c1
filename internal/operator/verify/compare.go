package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
)

// Export is an export of the source that is read from its beginning.
type Export struct {
	feed.Input
	// Read returns how many bytes were read so far, and their SHA-256.
	Read func() (bytes int64, digest string)

	messages int // that were read
}

// next reads at most n messages. It returns fewer at the end.
func (e *Export) next(n int) (batch []queue.Outgoing, err error) {
	for len(batch) < n {
		m, err := e.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, &inputError{err}
		}
		e.messages++
		batch = append(batch, m.Outgoing)
	}
	return batch, nil
}

// inputError is an error of the export that repeating the step cannot help.
type inputError struct{ error }

func (e *inputError) Unwrap() error        { return e.error }
func (e *inputError) Is(target error) bool { return target == operate.ErrInput }

// check refuses an export that does not begin with the bytes that were compared before. It reads up
// to there.
func (e *Export) check(c Cursor) error {
	for at, _ := e.Read(); at < c.Bytes; at, _ = e.Read() {
		if batch, err := e.next(1); err != nil {
			return err
		} else if len(batch) == 0 {
			break
		}
	}
	if at, digest := e.Read(); at != c.Bytes || e.messages != c.Messages || c.Bytes > 0 && digest != c.Digest {
		return &inputError{errExport}
	}
	return nil
}

// open opens the export, at its beginning if at is zero.
func (v *Verification) open(ctx context.Context, at Cursor) (*Export, error) {
	in, err := v.Open(ctx)
	if err != nil {
		return nil, &inputError{err}
	}
	if err := in.check(at); err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return in, nil
}

// Close closes the export.
func (v *Verification) Close() error {
	if v.in == nil {
		return nil
	}
	in := v.in
	v.in = nil
	return in.Close()
}

// at moves the export to the place of a cursor.
func (v *Verification) at(ctx context.Context, c Cursor) (err error) {
	if v.in != nil && v.in.messages == c.Messages {
		return nil
	}
	if err := v.Close(); err != nil {
		return err
	}
	v.in, err = v.open(ctx, c)
	v.checked = v.checked || err == nil
	return err
}

const (
	// batchSize is how many messages are compared with one request.
	batchSize = 100
	// maxMessages is how many messages a step compares.
	maxMessages = 1000
	// maxNames is how many messages a step names without comparing them.
	maxNames = 5000
	// MaxNamedInvalid is how many invalid events are named. In an export of another form, all events
	// are invalid.
	MaxNamedInvalid = 20
)

// nameDocuments collects the documents of the messages that an earlier program has compared, if the
// export is complete: they are only in memory. It reports whether some are left for the next step.
func (v *Verification) nameDocuments(ctx context.Context, c Cursor) (behind bool, err error) {
	if v.CompleteAt.IsZero() || v.named >= c.Messages || c.Phase == finished {
		return false, nil
	}
	if v.exported == nil || v.in == nil || v.in.messages != v.named { // read from the beginning
		v.exported, v.named = map[uint64]struct{}{}, 0
		if err := v.at(ctx, Cursor{}); err != nil {
			return true, err
		}
	}
	for range maxNames / batchSize {
		batch, err := v.in.next(min(batchSize, c.Messages-v.named))
		if err != nil {
			return true, err
		}
		if len(batch) == 0 {
			return true, &inputError{errExport}
		}
		events, err := v.ask(ctx, batch, true)
		if err != nil {
			return true, err
		}
		v.keep(events)
		if v.named = v.in.messages; v.named == c.Messages {
			return false, v.in.check(c)
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
	if err := s.at(ctx, *s.Cursor); err != nil {
		return err
	}
	most := s.limit(maxMessages)
	for n := 0; n < most && !s.full(); {
		size := min(batchSize, most-n)
		batch, err := s.in.next(size)
		if err == nil && len(batch) > 0 {
			numbers := make([]int, len(batch))
			for i := range batch {
				numbers[i] = s.Messages + i
			}
			err = s.compare(ctx, batch, numbers, true)
		}
		if err != nil && n > 0 && ctx.Err() == nil {
			return nil // the next step meets the error again, and this one says what was repaired
		}
		if err != nil {
			return err
		}
		n += len(batch)
		s.Messages = s.in.messages
		s.named = max(s.named, s.Messages)
		s.Bytes, s.Digest = s.in.Read()
		if len(batch) < size {
			if s.next(walking); s.Compared == 0 { // the answer would look as if nothing differed
				s.next(finished)
			}
			return nil
		}
	}
	s.Settle = s.full()
	return nil
}

// compare compares a batch of the export. A repair sends the messages of documents that differ
// again. Messages that were sent or are in motion are compared again later.
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

// resend sends the messages of a batch that sent marks and that were not sent yet.
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
