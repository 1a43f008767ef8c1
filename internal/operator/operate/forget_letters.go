// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"fmt"
	"slices"

	"github.com/lullhq/lull/internal/pipeline/mention"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/queue"
)

// forgetParallel is how many messages are read at the same time.
const forgetParallel = 16

// letters finds the dead letters of the document. It also reads the message of every other dead
// letter, which may contain an event of the document. Such a message stays, and a line names it.
func (g *forgetting) letters(ctx context.Context) (found []ForgetThing, next string, err error) {
	page, next, err := g.Dead.List(ctx, deadletter.Filter{}, g.At.Page, g.Limit)
	if err != nil {
		return nil, "", fmt.Errorf("list dead letters: %w", err)
	}
	g.out.Looked += len(page)
	var others []deadletter.Facts
	for _, f := range page {
		switch {
		case !g.owns(f.Doc):
			others = append(others, f)
			continue
		case g.mayRemove(f.Doc):
			found = append(found, ForgetThing{ID: f.ID, N: 1})
		}
		g.found(placeLetters, 1)
	}
	return found, next, g.others(ctx, others)
}

// maxShared is how many messages a place remembers. A dead letter whose message is not remembered
// is counted as a new message.
const maxShared = 1000

// counted reports whether the message of a dead letter was counted before, and remembers the
// message.
func (g *forgetting) counted(f deadletter.Facts) bool {
	hash := f.Hash[:min(len(f.Hash), hashLength)]
	if hash == "" {
		return false
	}
	if slices.Contains(g.At.Shared, hash) {
		return true
	}
	if len(g.At.Shared) < maxShared {
		g.At.Shared = append(g.At.Shared, hash)
	}
	return false
}

// others checks the messages of dead letters of other documents.
func (g *forgetting) others(ctx context.Context, facts []deadletter.Facts) error {
	answers := make([]mention.Answer, len(facts))
	broken, err := readEach(ctx, g.Parallel, len(facts), func(i int) error {
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
		return fmt.Errorf("look into dead letters: %w", err)
	}
	for i, f := range facts {
		var text string
		switch {
		case broken[i] != nil:
			text = unreadLetter(f)
		case answers[i] == mention.Holds:
			text = fmt.Sprintf("the message of dead letter %s also has an event of it: %s", letterName(f), letterFix(f))
		case answers[i] == mention.Named:
			text = fmt.Sprintf("a part of the message of dead letter %s cannot be decoded, and contains the id: %s",
				letterName(f), letterFix(f))
		default:
			continue
		}
		g.remains(sharedLetters, f.ID, text)
		g.At.Known = g.At.Known || broken[i] == nil
		if !g.counted(f) {
			g.out.Counts[sharedLetters+foundIn]++
		}
	}
	return nil
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
