// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/terminal"
)

// deadRoutes returns the requests of the view of dead letters.
//
//	GET  /console/dead?reason=&collection=&key=&state=&after=&before=&cursor=&limit=   one page of the list
//	GET  /console/dead/groups?...          counts by reason, with an explanation of each reason
//	GET  /console/dead/letter?id=          the facts about a dead letter
//	GET  /console/dead/body?id=            the part of the body that the page shows
//	POST /console/dead/results             {"sent"}: what became of up to 20 redriven dead letters
//	POST /console/dead/close               {"id", "key", "version"}: drops a dead letter whose document was corrected
//	POST /console/dead/redrive             a line with the outcome of each dead letter, and then the counts
//	POST /console/dead/drop                the same lines; needs the confirmation "drop N"
func (c *console) deadRoutes() routes {
	return routes{
		"GET /console/dead":        answered(reader, c.deadPage),
		"GET /console/dead/groups": answered(reader, c.deadGroups),
		"GET /console/dead/letter": answered(reader, c.deadLetter),
		"GET /console/dead/body": answered(reader, func(r *http.Request) (any, error) {
			l, err := c.API.Letter(r.Context(), r.FormValue("id"))
			return readable(l.Body), err
		}),
		"POST /console/dead/results": answered(reader, c.results),
		"POST /console/dead/close":   answered(operator, c.closeLetter),
		"POST /console/dead/redrive": c.lines(operator, func(r *http.Request) (longAnswer, error) {
			o, err := c.order(r)
			return c.letters(o, operate.RedriveJob), err
		}),
		"POST /console/dead/drop": c.lines(operator, func(r *http.Request) (longAnswer, error) {
			o, err := c.order(r)
			if err == nil && !o.DryRun {
				err = c.confirmed(r.Context(), &o)
			}
			return c.letters(o, operate.DropJob), err
		}),
	}
}

// filterOf reads the filter of a list.
func filterOf(r *http.Request) (f operate.LetterFilter, err error) {
	f = operate.LetterFilter{
		Reason: deadletter.Reason(r.FormValue("reason")), Collection: shard.Collection(r.FormValue("collection")),
		State: deadletter.State(r.FormValue("state")),
	}
	if key := r.FormValue("key"); key != "" {
		if f.Key, err = keyOf(key); err != nil {
			return f, err
		}
	}
	for name, at := range map[string]*time.Time{"after": &f.After, "before": &f.Before} {
		if text := r.FormValue(name); text != "" {
			if *at, err = time.Parse(time.RFC3339, text); err != nil {
				return f, badf("%s: use a time such as 2026-11-20T16:00:00Z", name)
			}
		}
	}
	return f, nil
}

func (c *console) deadPage(r *http.Request) (any, error) {
	f, err := filterOf(r)
	if err != nil {
		return nil, err
	}
	limit, err := limitOf(r, 1000)
	if err != nil {
		return nil, err
	}
	return c.API.LetterPage(r.Context(), operate.LetterQuery{
		LetterFilter: f, Cursor: r.FormValue("cursor"), Limit: limit,
	})
}

// reasonAdvice explains a reason to the user.
type reasonAdvice struct {
	Why        string `json:"why"`
	Fix        string `json:"fix"`
	FailsAgain bool   `json:"fails_again,omitempty"` // a redrive fails the same way, unless the settings change
}

func adviceOf(r deadletter.Reason) reasonAdvice {
	a := r.Advice()
	return reasonAdvice{a.Why, a.Fix, r.FailsAgain()}
}

func (c *console) deadGroups(r *http.Request) (any, error) {
	type group struct {
		operate.LetterGroup
		reasonAdvice
	}
	f, err := filterOf(r)
	if err != nil {
		return nil, err
	}
	counts, err := c.API.LetterGroups(r.Context(), f)
	groups := []group{}
	for _, g := range counts.Groups {
		groups = append(groups, group{g, adviceOf(g.Reason)})
	}
	return map[string]any{
		"groups": groups, "capped": counts.Capped, "reasons": strings.Split(deadletter.Reasons(), ", "),
	}, err
}

func (c *console) deadLetter(r *http.Request) (any, error) {
	l, err := c.API.Letter(r.Context(), r.FormValue("id"))
	bytes := len(l.Body)
	l.Body = ""
	return map[string]any{"dead_letter": l, "bytes": bytes, "advice": adviceOf(l.Reason)}, err
}

// maxShown is how many bytes of a body a page shows.
const maxShown = 256 << 10

// readableBody is a body as readable text. Control characters and invalid UTF-8 are escaped.
type readableBody struct {
	Text  string `json:"text"`
	Bytes int    `json:"bytes"` // the size of the whole body
	Cut   bool   `json:"cut,omitempty"`
	UTF8  bool   `json:"utf8"`
}

func readable(body string) readableBody {
	s := readableBody{Bytes: len(body), UTF8: utf8.ValidString(body)}
	if s.Cut = len(body) > maxShown; s.Cut {
		body = clipped(body, maxShown)
	}
	var b bytes.Buffer
	_, _ = terminal.NewWriter(&b).Write([]byte(body)) // a buffer returns no errors
	s.Text = b.String()
	return s
}

// letterOrder is the request to redrive or drop dead letters.
type letterOrder struct {
	operate.LetterOrder
	IDs     []string `json:"ids"`     // selects these dead letters, one after the other
	Confirm string   `json:"confirm"` // "drop N", where N is the number of dead letters to drop
}

// maxSelected is how many dead letters an order may select one by one.
const maxSelected = 100

func (c *console) order(r *http.Request) (letterOrder, error) {
	o, err := read[letterOrder](r)
	filtered := o.LetterFilter != (operate.LetterFilter{}) || o.All
	slices.Sort(o.IDs)
	o.IDs = slices.Compact(o.IDs)
	switch {
	case err != nil:
	case !filtered && len(o.IDs) == 0:
		err = badf("nothing is selected: give an id, ids, a filter, or all")
	case filtered && len(o.IDs) > 0:
		err = badf("ids: ids exclude an id, a filter, and all")
	case len(o.IDs) > maxSelected:
		err = badf("ids: at most %d; use a filter for more", maxSelected)
	case slices.Contains(o.IDs, ""):
		err = badf("ids: an id is empty")
	case len(o.IDs) > 0 && o.Rate != 0:
		err = badf("rate: ids have no rate; use a filter")
	}
	o.By = c.By
	return o, err
}

// steps returns the orders that carry out o: one for each of its ids, or one for its filter.
func (o letterOrder) steps() []operate.LetterOrder {
	if len(o.IDs) == 0 {
		return []operate.LetterOrder{o.LetterOrder}
	}
	all := make([]operate.LetterOrder, len(o.IDs))
	for i, id := range o.IDs {
		all[i] = o.LetterOrder
		all[i].ID = id
	}
	return all
}

// confirmed compares the number that the user confirmed with the number that would be dropped now.
// It limits the order to dead letters that exist now, so that later dead letters are not dropped.
func (c *console) confirmed(ctx context.Context, o *letterOrder) error {
	if end := c.Clock.Now(); o.ID == "" && len(o.IDs) == 0 && (o.Before.IsZero() || o.Before.After(end)) {
		o.Before = end
	}
	rehearsal := *o
	rehearsal.DryRun = true
	would, err := c.runLetters(ctx, rehearsal, operate.DropJob, func(operate.LetterLine) {})
	n := -would[gone]
	for _, count := range would {
		n += count
	}
	switch want := fmt.Sprintf("drop %d", n); {
	case err != nil:
		return err
	case o.Confirm == "":
		return badf("confirm is missing: dropped events are lost for good; say %q to drop these", want)
	case o.Confirm != want:
		return Problemf(http.StatusConflict, "you confirmed %q, but %d are selected now: look at them again",
			terminal.Line(o.Confirm), n)
	}
	return nil
}

// deadLine is the outcome of one dead letter, or the last line with the counts.
type deadLine struct {
	ID      string         `json:"id,omitempty"`
	Key     shard.DocID    `json:"key,omitempty"`
	Version string         `json:"version,omitempty"`
	Outcome string         `json:"outcome,omitempty"`
	Error   string         `json:"error,omitempty"`
	Counts  map[string]int `json:"counts,omitempty"`
	End     bool           `json:"end,omitempty"`
}

// letterJob is [operate.RedriveJob] or [operate.DropJob].
type letterJob func(operate.API, operate.LetterOrder) operate.LetterJob

// gone is the outcome of a selected dead letter that no longer exists.
const gone = "gone"

// runLetters carries out an order, and returns the counts of the outcomes.
func (c *console) runLetters(ctx context.Context, o letterOrder, of letterJob, say func(operate.LetterLine),
) (map[string]int, error) {
	counts := map[string]int{}
	for _, step := range o.steps() {
		r := step.RunnerOf()
		r.Store, r.Clock, r.By = c.API.JobStore(), clock.System{}, c.By
		state, err := job.Run(ctx, r, of(c.API, step), say)
		if len(o.IDs) > 0 && errors.Is(err, operate.ErrNotFound) {
			say(operate.LetterLine{Letter: operate.Letter{ID: step.ID}, Outcome: gone})
			state.Counts, err = map[string]int{gone: 1}, nil
		}
		for outcome, n := range state.Counts {
			counts[outcome] += n
		}
		if err != nil {
			return counts, err
		}
	}
	return counts, nil
}

// letters redrives or drops dead letters, and reports each one as a line. If it is interrupted,
// every reported dead letter is done, and the remaining dead letters are unchanged.
func (c *console) letters(o letterOrder, of letterJob) longAnswer {
	return func(ctx context.Context, say func(any)) {
		counts, err := c.runLetters(ctx, o, of, func(l operate.LetterLine) {
			say(deadLine{
				ID: l.Letter.ID, Key: l.Letter.Key, Version: l.Letter.Version, Outcome: l.Outcome,
				Error: terminal.Line(l.Error),
			})
		})
		last := deadLine{Counts: counts, End: true}
		if err != nil {
			n := 0
			for _, count := range counts {
				n += count
			}
			last.Error = errorText(fmt.Errorf("%d done: %w", n, err), operator)
		}
		say(last)
	}
}
