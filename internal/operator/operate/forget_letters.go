package operate

import (
	"context"
	"fmt"

	"github.com/lullhq/lull/internal/pipeline/mention"
	"github.com/lullhq/lull/internal/pipeline/redrive"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
)

// forgetParallel is how many messages are read at the same time. forgetPage is how many are read
// before their memory is freed.
const (
	forgetParallel = 16
	forgetPage     = 256
)

// letters drops the dead letters of the document. It also reads the message of every other dead
// letter, which may contain an event of the document. Such a message stays, and the answer names
// it.
func (g *forgetting) letters(ctx context.Context, _ string) error {
	var own []deadletter.Facts
	shared := ForgetStep{Place: "messages of other dead letters"}
	messages := map[string]bool{} // the messages found so far, by hash
	err := g.letterPages(ctx, func(facts []deadletter.Facts) error {
		var others []deadletter.Facts
		for _, f := range facts {
			if g.owns(f.Doc) {
				own = append(own, f)
			} else {
				others = append(others, f)
			}
		}
		return g.others(ctx, others, messages, &shared)
	})
	if err != nil {
		return err
	}
	s := ForgetStep{Place: "dead letters", Found: len(own)}
	for _, f := range own {
		if g.DryRun {
			break
		}
		if err := g.Dead.Drop(ctx, f.ID); err != nil {
			return fmt.Errorf("drop dead letter %s: %w", f.ID, err)
		}
		g.Journal.Note(journal.Note{
			Step: journal.Dropped, At: g.Clock.Now(), Doc: f.Doc, Key: f.Key, Lane: f.Lane, Letter: f.ID,
			Detail: "by " + g.By + ": forgotten",
		})
		s.Removed++
	}
	g.add(s)
	if shared.Found > 0 {
		g.add(shared)
	}
	return nil
}

// others checks the messages of dead letters of other documents.
func (g *forgetting) others(ctx context.Context, facts []deadletter.Facts, messages map[string]bool,
	s *ForgetStep,
) error {
	answers := make([]mention.Answer, len(facts))
	broken, err := g.readEach(ctx, len(facts), func(i int) error {
		f := facts[i]
		l, there, err := g.Dead.Get(ctx, f.ID)
		if err == nil && there {
			answers[i] = g.holds(f.Sink, f.Doc, queue.Message{
				ID: l.MessageID, Body: l.Body, Attributes: l.Attributes, Sent: l.Sent,
			})
		}
		return err
	})
	if err != nil {
		return err
	}
	for i, f := range facts {
		name, fix := letterName(f), letterFix(f)
		counted := messages[f.Hash]
		switch {
		case broken[i] != nil && g.first():
			s.remains("%s", unreadLetter(f))
			if !counted {
				s.unread++
			}
		case answers[i] == mention.Holds:
			s.remains("the message of dead letter %s has an event of it, too: %s", name, fix)
		case answers[i] == mention.Named:
			s.remains("nothing decodes a part of the message of dead letter %s, and the id is in it: %s", name, fix)
		default:
			continue
		}
		if counted { // another dead letter shares the message
			s.Found--
		}
		if f.Hash != "" {
			messages[f.Hash] = true
		}
	}
	return nil
}

// letterPages calls f with every dead letter, a page at a time.
func (o *Operator) letterPages(ctx context.Context, f func([]deadletter.Facts) error) error {
	var page []deadletter.Facts
	err := o.redrives().List(ctx, redrive.Selection{}, func(l deadletter.Facts) error {
		if page = append(page, l); len(page) < forgetPage {
			return nil
		}
		defer func() { page = nil }()
		return f(page)
	})
	if err == nil {
		err = f(page)
	}
	if err != nil {
		return fmt.Errorf("look into dead letters: %w", err)
	}
	return nil
}

// readEach calls f for each of n messages. broken says which of them cannot be read, even if they
// are read again: such a message does not stop the others.
func (o *Operator) readEach(ctx context.Context, n int, f func(i int) error) (broken []error, err error) {
	broken = make([]error, n)
	return broken, o.Parallel.Try(forgetParallel, n, func(i int) error {
		err := f(i)
		if backoff.Final(err) && ctx.Err() == nil {
			broken[i], err = err, nil
		}
		return err
	})
}

func letterName(f deadletter.Facts) string {
	if f.Doc == "" {
		return f.ID
	}
	return fmt.Sprintf("%s of %s", f.ID, f.Doc)
}

func letterFix(f deadletter.Facts) string {
	return fmt.Sprintf("`lull dead show %s`, then redrive it or `lull dead drop %s`", f.ID, f.ID)
}

func unreadLetter(f deadletter.Facts) string {
	return fmt.Sprintf("the message of dead letter %s cannot be read: %s", letterName(f), letterFix(f))
}

// maxRemains is how many lines say what remains in one place.
const maxRemains = 20

// remains counts one thing more that stays where it is, and says what to do.
func (s *ForgetStep) remains(format string, args ...any) {
	s.Found++
	switch n := len(s.Remains); {
	case n < maxRemains:
		s.Remains = append(s.Remains, fmt.Sprintf(format, args...))
	case n == maxRemains:
		s.Remains = append(s.Remains, "there is more: ask again after these")
	}
}
