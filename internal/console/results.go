// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/terminal"
)

// sentLetter is a dead letter that was sent again.
type sentLetter struct {
	ID  string      `json:"id"`
	Key shard.DocID `json:"key,omitempty"` // empty if nobody could decode the message
	At  time.Time   `json:"at"`            // when it was sent, by the stack's clock
}

// result is what became of a dead letter that was sent again.
type result struct {
	ID    string      `json:"id"`
	Key   shard.DocID `json:"key,omitempty"`
	State resultState `json:"state"`
	Why   string      `json:"why,omitempty"`
}

type resultState string

const (
	resultWaits resultState = "waits"      // lull has not judged it yet
	resultDead  resultState = "dead again" // it failed again
	resultGone  resultState = "gone"       // its version or a newer one was committed
	resultFresh resultState = "fresh"      // the same, and the document is fresh
	// These come from its row, before lull removes the dead letter. See [operate.Became].
	resultCommitted = resultState(operate.BecameCommitted)
	resultStale     = resultState(operate.BecameStale)
)

// results says what became of dead letters that were sent again.
func (c *console) results(r *http.Request) (any, error) {
	q, err := read[struct {
		Sent []sentLetter `json:"sent"`
	}](r)
	if err == nil && len(q.Sent) > maxStates {
		err = badf("sent: %d of them, but at most %d are allowed", len(q.Sent), maxStates)
	}
	if err != nil {
		return nil, err
	}
	all := []result{}
	for _, l := range q.Sent {
		found, err := c.result(r.Context(), l)
		if err != nil {
			return nil, err
		}
		all = append(all, found)
	}
	return map[string]any{"results": all}, nil
}

func (c *console) result(ctx context.Context, l sentLetter) (result, error) {
	res := result{ID: l.ID, Key: l.Key, State: resultWaits}
	letters, err := c.API.Letters(ctx, operate.LetterFilter{ID: l.ID})
	switch {
	case err != nil && !errors.Is(err, operate.ErrNotFound):
		return res, err
	case len(letters) > 0:
		if found := letters[0]; found.State == deadletter.Parked && !found.Died.Before(l.At) {
			res.State, res.Why = resultDead, string(found.Reason)+": "+oneLine(clipped(found.Detail, maxReason))
			return res, nil
		}
		sent, err := c.API.Letter(ctx, l.ID)
		if err != nil && !errors.Is(err, operate.ErrNotFound) {
			return res, err
		}
		if sent.Became != "" {
			res.State, res.Why = resultState(sent.Became), oneLine(clipped(sent.BecameWhy, maxReason))
		}
		if res.State != resultCommitted || l.Key == "" {
			return res, nil
		}
	default:
		res.State, res.Why = resultGone, "its version or a newer one was committed, or an operator dropped it"
	}
	if l.Key == "" {
		return res, nil
	}
	key, err := keyOf(string(l.Key))
	if err != nil {
		return res, err
	}
	x, err := c.API.Explain(ctx, key)
	if err == nil {
		res.Why = terminal.Line(x.Sentence)
		if x.State == operate.StateFresh {
			res.State = resultFresh
		}
	}
	return res, err
}

// closeLetter drops a dead letter whose message a user corrected and sent. It refuses as long as
// the document is not fresh with the version of the corrected message.
func (c *console) closeLetter(r *http.Request) (any, error) {
	q, err := read[struct {
		ID      string `json:"id"`
		Key     string `json:"key"`
		Version string `json:"version"`
	}](r)
	if err == nil && (q.ID == "" || q.Version == "") {
		err = badf("id and version: name the dead letter, and the version that corrects it")
	}
	if err != nil {
		return nil, err
	}
	key, err := keyOf(q.Key)
	if err != nil {
		return nil, err
	}
	x, err := c.API.Explain(r.Context(), key)
	switch {
	case err != nil:
		return nil, err
	case x.State != operate.StateFresh || x.Version != q.Version:
		return nil, Problemf(http.StatusConflict, "%s is %s with version %s: the dead letter stays until version %s is written",
			key, x.State, terminal.Line(x.Version), terminal.Line(q.Version))
	}
	done, err := c.API.Drop(r.Context(), operate.LetterOrder{LetterFilter: operate.LetterFilter{ID: q.ID}, By: c.By})
	if errors.Is(err, operate.ErrNotFound) { // lull removed it, because the version was committed
		return done.Outcomes, nil
	}
	return done.Outcomes, err
}
