// SPDX-License-Identifier: Apache-2.0

package roundtrip

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// step is one step of a round trip.
type step struct {
	*Trip
	*Cursor
	out *job.Step[Check]
}

// say adds a line to the answer.
func (s step) say(check, found string) { s.out.Say(Check{check, true, found}) }

// fault adds a line with a fault. The round trip then continues in the phase next.
func (s step) fault(check string, err error, next phase) {
	s.out.Say(Check{check, false, err.Error()})
	if s.Fault == "" {
		s.Fault, s.Found = check+": "+err.Error(), s.Clock.Now().UTC()
	}
	s.Phase = next
}

// tries repeats a call of the stack a few times.
func tries[A any](ctx context.Context, s step, call func() (A, error)) (a A, err error) {
	p := backoff.Policy{Min: 200 * time.Millisecond, Max: 2 * time.Second, Tries: 3}
	err = p.Do(ctx, s.Clock, func() (err error) {
		a, err = call()
		if errors.Is(err, operate.ErrInput) || errors.Is(err, operate.ErrNotFound) {
			return backoff.Permanent(err)
		}
		return err
	})
	return a, cmp.Or(ctx.Err(), err)
}

// compose writes the event and saves it, before send publishes it.
func (s step) compose(ctx context.Context) error {
	const put, remove = "a synthetic event can be written", "its delete can be written"
	c := operate.Composition{
		Source: s.Source, Collection: shard.Collection(s.Collection), ID: s.Document, Own: true, Deletes: true,
		Data: json.RawMessage(`{"title":"lull","synthetic":true}`),
	}
	if s.Remove {
		c.Source, c.Collection, c.Delete = s.Event.Source, s.Event.Key.Collection(), true
	}
	e, err := tries(ctx, s, func() (operate.Composed, error) { return s.Stack.Compose(ctx, c) })
	if err == nil && s.Remove && e.Key != s.Event.Key {
		err = fmt.Errorf("the delete is for %s, want %s", e.Key, s.Event.Key)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && s.Remove:
		s.fault(remove, err, over)
		return nil
	case err != nil:
		s.fault(put, err, over)
		return nil
	}
	p, err := tries(ctx, s, func() (operate.Progress, error) { return s.progress(ctx, e.Key) })
	if err != nil {
		return s.failed(ctx, "the rows of the document can be read", err)
	}
	if !s.Remove && s.Excused > 0 && away(p) != "" {
		return fmt.Errorf("%s: %w", away(p), errAway)
	}
	if s.Remove {
		s.say(remove, "version "+e.Version)
	}
	s.Event, s.Before, s.Phase = e, marks(p), sending
	if e.Ref != "" && !s.Remove { // the message would refer to an object that does not exist
		s.Remove, s.Phase = true, composing
	}
	return nil
}

// failed ends the round trip with a fault, or returns the error of ctx.
func (s step) failed(ctx context.Context, check string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.fault(check, err, over)
	return nil
}

// send publishes the event.
func (s step) send(ctx context.Context) error {
	check := "a synthetic event is published"
	if s.Remove {
		check = "its delete is published"
	}
	_, err := tries(ctx, s, func() (operate.Published, error) {
		p, err := s.Stack.Publish(ctx, operate.Publication{Messages: []queue.Outgoing{s.Event.Message}, Sink: s.Sink})
		if err == nil && len(p.Refused) > 0 {
			err = backoff.Permanent(fmt.Errorf("refused: %s", p.Refused[0].Why))
		}
		return p, err
	})
	if err != nil {
		return s.failed(ctx, check, err)
	}
	s.say(check, string(s.Event.Key))
	s.Sent, s.Away, s.Phase = s.Clock.Now().UTC(), time.Time{}, waiting
	return nil
}

// waitStep is how long one step waits. Then the job saves its progress, and so keeps its lease.
const waitStep = 30 * time.Second

// awayFor is how long a sink may have been away when a run ends because of that.
const awayFor = 10 * time.Second

// wait looks at the rows until the event is committed, or its time is over.
func (s step) wait(ctx context.Context) error {
	check := "it is committed"
	if s.Remove {
		check = "the delete is committed"
	}
	for began := s.Clock.Now(); ; {
		p, err := s.progress(ctx, s.Event.Key)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		now := s.Clock.Now()
		if err == nil {
			if s.arrived(p, check) {
				return nil
			}
			if why := away(p); why != "" && s.Excused > 0 {
				if now.Sub(s.Away) < awayFor {
					return fmt.Errorf("%s: %w", why, errAway)
				}
				s.Away = now.UTC()
				return nil // the job saves it, and then ends
			}
		}
		if !now.Before(s.latest()) {
			text := fmt.Sprintf("version %s of %s was not committed within %s", cmp.Or(s.Event.Version, "of its arrival"),
				s.Event.Key, s.Allowed)
			if s.Why != nil {
				text += ". " + s.Why(ctx, s.Event.Key)
			}
			if err != nil {
				text += " (" + err.Error() + ")"
			}
			s.fault(check, errors.New(text), over)
			return nil
		}
		if now.Sub(began) >= waitStep {
			return nil
		}
		if err := s.Clock.Sleep(ctx, s.Poll); err != nil {
			return err
		}
	}
}

// latest returns when the event must be committed.
func (s step) latest() time.Time {
	if s.Away.IsZero() {
		return s.Sent.Add(s.Allowed)
	}
	return s.Away.Add(s.Excused + s.Allowed)
}

// arrived reports whether the event is committed in each sink, or became a dead letter.
func (s step) arrived(p operate.Progress, check string) bool {
	op, all, last := shard.Put, true, time.Time{}
	if s.Remove {
		op = shard.Delete
	}
	for _, in := range p.Sinks {
		there, err := s.newer(in.Committed, s.Before[in.Sink].Committed)
		if err != nil {
			s.fault(check, err, over)
			return true
		}
		if in.Written.After(last) {
			last = in.Written
		}
		if there && in.Operation == op {
			continue
		}
		all = false
		if dead, err := s.newer(in.Dead, s.Before[in.Sink].Dead); err == nil && dead {
			s.fault(check, fmt.Errorf("version %s became a dead letter of sink %s: see `lull dead list --key '%s'`",
				s.Event.Version, in.Sink, s.Event.Key), over)
			s.Dead = true
			if !s.Remove { // the sink may hold the document of an earlier round trip
				s.Remove, s.Phase = true, composing
			}
			return true
		}
	}
	if !all {
		return false
	}
	took := s.Clock.Now().Sub(s.Sent)
	if by := last.Sub(s.Sent); by > 0 && by < took {
		took = by // the look at the rows may be much later than the commit
	}
	s.say(check, "after "+took.Round(100*time.Millisecond).String())
	if s.Remove {
		s.Phase = over
		return true
	}
	s.Phase, s.Took = reading, took
	return true
}

// newer reports whether a printed order key has the version of the event or a newer one. If the
// event has no version, the key must be newer than the key before.
func (s step) newer(key, before string) (bool, error) {
	if s.Event.Version == "" {
		return key > before, nil
	}
	return operate.AtLeast(key, s.Event.Version)
}

// read reads the document back from each sink. Whatever it finds, the document is deleted.
func (s step) read(ctx context.Context) error {
	p, err := tries(ctx, s, func() (operate.Progress, error) { return s.progress(ctx, s.Event.Key) })
	if err != nil {
		return s.failed(ctx, "the rows of the document can be read", err)
	}
	s.Phase, s.Remove = composing, true
	for _, in := range p.Sinks {
		check := "the sink holds it"
		if len(p.Sinks) > 1 {
			check = "sink " + in.Sink + " holds it"
		}
		doc, err := tries(ctx, s, func() (operate.Document, error) { return s.Stack.Get(ctx, in.Row) })
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, operate.ErrWriteOnly):
			if len(p.Sinks) > 1 {
				s.say(check, "not checked: "+err.Error())
			}
			continue
		case err == nil && doc.Version != s.Event.Version && s.Event.Version != "":
			err = fmt.Errorf("the sink holds version %s, want %s", doc.Version, s.Event.Version)
		}
		if err != nil {
			s.fault(check, err, composing)
			continue
		}
		s.say(check, "version "+doc.Version)
	}
	return nil
}

// progress reads the rows of the document in the sinks that get it.
func (s step) progress(ctx context.Context, key shard.DocID) (operate.Progress, error) {
	p, err := s.Stack.Progress(ctx, key)
	if err == nil && s.Sink != "" {
		var only []operate.ProgressIn
		for _, in := range p.Sinks {
			if in.Sink == s.Sink {
				only = append(only, in)
			}
		}
		p.Sinks = only
	}
	if err == nil && len(p.Sinks) == 0 {
		err = backoff.Permanent(fmt.Errorf("collection %s is not in sink %s", key.Collection(), s.Sink))
	}
	return p, err
}

// away says why a sink of the document gets nothing at present.
func away(p operate.Progress) string {
	for _, in := range p.Sinks {
		if in.Away != "" {
			return in.Away
		}
	}
	return ""
}

func marks(p operate.Progress) map[string]Mark {
	m := map[string]Mark{}
	for _, in := range p.Sinks {
		m[in.Sink] = Mark{in.Committed, in.Dead}
	}
	return m
}
