// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// source is the part of the cursor that FromSource needs.
type source struct {
	Ask   []shard.DocID           `json:"ask,omitempty"`   // documents about which the source must be asked
	Waits []Wait                  `json:"waits,omitempty"` // documents to compare again later
	Gone  []operate.ReconcileCopy `json:"gone,omitempty"`  // documents to remove: the source does not have them

	// Silent is how often the source was asked since its last answer.
	Silent    int       `json:"silent,omitempty"`
	NotBefore time.Time `json:"not_before,omitzero"` // when the source may be asked again
	// Answered is the document of the last answer. If the source still answers about it, the source is
	// not away.
	Answered shard.DocID `json:"answered,omitempty"`

	// The bound of removals needs these numbers.
	Has   int `json:"has,omitempty"`   // answers with a document
	Lacks int `json:"lacks,omitempty"` // orphans
}

func (c source) clone() source {
	c.Ask, c.Waits, c.Gone = slices.Clone(c.Ask), slices.Clone(c.Waits), slices.Clone(c.Gone)
	return c
}

// Wait is a document that differed from its source, and is compared again later.
type Wait struct {
	Key     shard.DocID `json:"key"`
	Version string      `json:"version,omitempty"` // what the source showed; empty if the source must be asked again
	Since   time.Time   `json:"since"`
	Sent    bool        `json:"sent,omitempty"` // a repair was sent
}

// SourceAway is the error of a job whose source gives no answer. The job can continue later.
type SourceAway struct {
	Why   string
	Tries int
}

func (e *SourceAway) Error() string {
	return fmt.Sprintf("the source gave no answer %d times in a row: %s", e.Tries, e.Why)
}

const (
	// DefaultRequests is how many requests a second the source gets.
	DefaultRequests = 10
	// together is how many documents are asked about at the same time.
	together = 16
	// maxAsking is how long a step asks the source.
	maxAsking = 20 * time.Second
	// maxRest is how long a step waits for a source that asked lull to wait.
	maxRest = 30 * time.Second
	// someWaits and maxWaits bound Waits, in bytes, as someBytes and maxBytes bound the other lists.
	someWaits = 2 * someBytes
	maxWaits  = 3 * someBytes
	// maxTries is how often in a row a document is asked about without an answer. After that, the
	// job continues with other documents, because the fault may be of this document alone.
	maxTries = 6
	// maxSilent is how often in a row the source may give no answer before the job fails.
	maxSilent = 8
	// eventTime is how long the event of a change may be on its way to lull. Until then the source
	// may be ahead.
	eventTime = 30 * time.Second
)

// asked returns the documents of a page about which the source must be asked. Documents in motion
// are left out: they are compared later.
func asked(p operate.ReconcilePage) (keys []shard.DocID) {
	moving := map[shard.DocID]bool{}
	for _, l := range p.Lines {
		if l.Outcome == inMotion || l.Outcome == later {
			moving[l.Key] = true
		}
	}
	for _, c := range p.Seen {
		if !moving[c.Key] {
			keys = append(keys, c.Key)
		}
	}
	for _, key := range p.Absent {
		if !moving[key] {
			keys = append(keys, key)
		}
	}
	return keys
}

// rest waits until the source may be asked again.
func (s step) rest(ctx context.Context) error {
	return s.Clock.Sleep(ctx, min(s.NotBefore.Sub(s.Clock.Now()), maxRest))
}

// inquire asks the source about documents, at most Rate a second. It stops at the first document
// without an answer, and when the step has taken maxAsking. The answers are those of the first
// documents. It sends no request about a document in known.
func (s step) inquire(ctx context.Context, keys []shard.DocID, known map[shard.DocID]string) (
	all []operate.SourceAnswer, err error,
) {
	rate, began := cmp.Or(s.Rate, DefaultRequests), s.Clock.Now()
	most, sent := max(1, min(together, int(rate))), 0
	if s.Silent > 0 { // one request shows whether the source answers again
		most, keys = 1, keys[:min(1, len(keys))]
	}
	for chunk := range slices.Chunk(keys, most) {
		done, err := s.Stack.AskSource(ctx, operate.SourceOrder{
			Collection: s.Collection, Sink: s.Sink, Keys: chunk, Known: known, Versions: s.Versions,
		})
		if err != nil {
			return nil, err
		}
		requests, quiet := 0, false
		for _, a := range done.Documents {
			if known[a.Key] == "" {
				requests++
			}
			quiet = quiet || a.State == silent
		}
		s.out.Count(countRequests, requests)
		all = append(all, done.Documents...)
		sent += requests
		due := began.Add(time.Duration(float64(sent) / rate * float64(time.Second)))
		if wait := due.Sub(s.Clock.Now()); wait > 0 {
			if err := s.Clock.Sleep(ctx, wait); err != nil {
				return nil, err
			}
		}
		if quiet || s.Clock.Now().Sub(began) >= maxAsking {
			break
		}
	}
	return all, nil
}

// askPage asks the source about the next documents of the page.
func (s step) askPage(ctx context.Context) error {
	answers, err := s.inquire(ctx, s.Ask, nil)
	if err != nil {
		return err
	}
	rest := s.Ask[len(answers):]
	var differ []operate.SourceAnswer
	var unanswered []operate.SourceAnswer
	for _, a := range answers {
		if a.State == silent {
			unanswered = append(unanswered, a)
			continue
		}
		if a.State != inMotion {
			s.Waited, s.Impatient = 0, false // this document came to rest
		}
		s.Answered = a.Key
		if a.Touch.Body != "" {
			s.Has++
		}
		switch {
		case a.State == invalid:
			s.invalid(a)
		case a.State == inMotion:
			s.look(a.Key)
		case a.Drift && a.Ahead:
			s.wait(a, false)
		case a.Drift:
			differ = append(differ, a)
		}
	}
	giveUp, err := s.silence(ctx, unanswered, len(answers))
	if err != nil {
		return err
	}
	s.Ask = slices.Clone(rest)
	for _, a := range unanswered {
		switch {
		case !giveUp:
			s.Ask = append(s.Ask, a.Key)
		case s.betweenPhases():
			s.invalid(a)
		default:
			s.look(a.Key)
		}
	}
	return s.touch(ctx, differ)
}

// silence notes that the source did not answer, and when it may be asked again. giveUp says that
// the unanswered documents were tried often enough. silence returns SourceAway if the source has
// not answered for too long, not even about the document of its last answer.
func (s step) silence(ctx context.Context, unanswered []operate.SourceAnswer, asked int) (giveUp bool, err error) {
	if len(unanswered) < asked {
		s.Silent = 0
	}
	if len(unanswered) == 0 {
		return false, nil
	}
	if len(unanswered) == asked {
		s.Silent++
	}
	giveUp = s.Silent >= maxTries
	wait := min(time.Second<<s.Silent, time.Minute)
	if giveUp {
		answers, err := s.answers(ctx)
		switch {
		case err != nil:
			return false, err
		case answers: // the fault is of these documents alone, and one try is enough for the next one
			s.Silent, wait = maxTries-1, time.Second
		case s.Silent >= maxSilent:
			return false, &SourceAway{unanswered[0].Why, s.Silent}
		}
	}
	for _, a := range unanswered {
		wait = max(wait, a.RetryAfter)
	}
	s.NotBefore = s.Clock.Now().Add(wait).UTC()
	return giveUp, nil
}

// answers reports whether the source still answers about the document of its last answer.
func (s step) answers(ctx context.Context) (bool, error) {
	if s.Answered == "" {
		return false, nil
	}
	done, err := s.Stack.AskSource(ctx, operate.SourceOrder{
		Collection: s.Collection, Sink: s.Sink, Keys: []shard.DocID{s.Answered}, Versions: s.Versions,
	})
	s.out.Count(countRequests, 1)
	return err == nil && done.Documents[0].State != silent, err
}

// invalid counts a document that could not be compared.
func (s step) invalid(a operate.SourceAnswer) {
	if s.Invalid++; s.Invalid <= MaxNamedInvalid {
		s.out.Say(Line{Note: fmt.Sprintf("not compared: %s: %s", a.Key, a.Why)})
	}
	s.out.Count(countEvent+invalid, 1)
}

// wait notes a document that differs, to compare it again later.
func (s step) wait(a operate.SourceAnswer, sent bool) {
	w := Wait{Key: a.Key, Since: s.Clock.Now().UTC().Truncate(time.Second), Sent: sent}
	// A version says enough, unless the content differs at the same version.
	if a.Shown && a.State != changedState {
		w.Version = a.Version
	}
	if more := append(s.Waits, w); size(more) <= maxWaits {
		s.Waits = more
		return
	}
	if sent {
		s.out.Count(countRemaining, 1)
	} else {
		s.out.Count(countMoving, 1)
	}
}

// changedState is the state of a document that has the version of the source, and other content.
const changedState = "changed"

// touch names documents that differ from their source. A repair makes lull fetch them again: it
// sends a message for each, through the bulk lane, as part of one resync run.
func (s step) touch(ctx context.Context, differ []operate.SourceAnswer) error {
	for part := range slices.Chunk(differ, batchSize) {
		outcomes, err := s.send(ctx, part)
		if err != nil {
			return err
		}
		for i, a := range part {
			if outcomes[i] == resent {
				s.wait(a, true)
			}
			s.tell(Line{Key: a.Key, Difference: a.State, Version: a.Version, Outcome: outcomes[i]})
		}
	}
	return nil
}

// send sends the repairs of documents, and returns the outcome of each.
func (s step) send(ctx context.Context, part []operate.SourceAnswer) ([]string, error) {
	outcomes := make([]string, len(part))
	for i := range outcomes {
		outcomes[i] = Found
	}
	if !s.Repair {
		return outcomes, nil
	}
	messages := make([]queue.Outgoing, len(part))
	for i, a := range part {
		messages[i] = a.Touch
		feed.Mark(&messages[i], s.Source, s.Group)
		outcomes[i] = resent
	}
	if err := s.pause(ctx, len(part)); err != nil {
		return nil, err
	}
	done, err := s.Stack.Publish(ctx, operate.Publication{
		Messages: messages, Lane: flight.Bulk, Run: s.Run, Sink: s.Sink,
	})
	if err != nil {
		return nil, err
	}
	for _, r := range done.Refused {
		outcomes[r.Message] = Found
		s.out.Say(Line{Note: fmt.Sprintf("not repaired: %s: %s", part[r.Message].Key, r.Why)})
	}
	return outcomes, nil
}

// waitAgain compares again the documents for which a repair was sent. It also compares those that
// differed, if the event of their change would have arrived by now.
func (s step) waitAgain(ctx context.Context) error {
	due := s.Clock.Now().Add(-min(eventTime, s.Patience/2))
	known := map[shard.DocID]string{}
	waits := map[shard.DocID]Wait{}
	var keys []shard.DocID
	for _, w := range s.Waits {
		if !w.Sent && w.Since.After(due) {
			continue
		}
		keys, waits[w.Key] = append(keys, w.Key), w
		if w.Version != "" {
			known[w.Key] = w.Version
		}
	}
	answers, err := s.inquire(ctx, keys, known)
	if err != nil {
		return err
	}
	var differ, unanswered []operate.SourceAnswer
	var again []Wait // they are compared again after the others
	for _, a := range answers {
		w := waits[a.Key]
		s.Waits = slices.DeleteFunc(s.Waits, func(w Wait) bool { return w.Key == a.Key })
		switch {
		case a.State == silent:
			unanswered, again = append(unanswered, a), append(again, w)
		case w.Sent && (a.Drift || a.State == inMotion): // lull has not yet fetched it
			again = append(again, w)
		case !w.Sent && a.State == inMotion:
			s.look(a.Key)
		case a.State == orphan:
			s.gone(a)
		case a.Drift:
			differ = append(differ, a)
		}
	}
	s.Waits = append(s.Waits, again...)
	s.Silent = min(s.Silent, maxTries-2) // the patience ends this, and no number of tries
	if _, err := s.silence(ctx, unanswered, len(answers)); err != nil {
		return err
	}
	return s.touch(ctx, differ)
}

// giveUpWaits counts the documents that are still waited for.
func (s step) giveUpWaits() {
	for _, w := range s.Waits {
		if w.Sent {
			s.out.Count(countRemaining, 1)
		} else {
			s.out.Count(countMoving, 1)
		}
	}
	s.Waits = nil
}
