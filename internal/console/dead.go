package console

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/operate"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/terminal"
)

// deadRoutes are what the view of dead letters asks.
//
//	GET  /console/dead?reason=&collection=&key=&state=&after=&before=&cursor=&limit=   a page
//	GET  /console/dead/groups?...          counts by reason, each with what it means
//	GET  /console/dead/letter?id=          the facts
//	GET  /console/dead/body?id=            the body, as far as it is shown
//	POST /console/dead/redrive             lines: what became of each, and the counts at the end
//	POST /console/dead/drop                the same; needs the confirmation "drop N"
func (c *console) deadRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET "+prefix+"dead", c.deadPage)
	mux.HandleFunc("GET "+prefix+"dead/groups", c.deadGroups)
	mux.HandleFunc("GET "+prefix+"dead/letter", c.deadLetter)
	mux.HandleFunc("GET "+prefix+"dead/body", c.deadBody)
	mux.HandleFunc("POST "+prefix+"dead/redrive", func(w http.ResponseWriter, r *http.Request) {
		if o, ok := c.order(w, r); ok {
			c.campaign(w, r, o.LetterOrder, c.API.Redrive)
		}
	})
	mux.HandleFunc("POST "+prefix+"dead/drop", c.drop)
}

// filterOf reads the filter of a list.
func filterOf(q url.Values) (f operate.LetterFilter, err error) {
	f = operate.LetterFilter{
		Reason: deadletter.Reason(q.Get("reason")), Collection: shard.Collection(q.Get("collection")),
		State: deadletter.State(q.Get("state")),
	}
	if key := q.Get("key"); key != "" {
		if f.Key, err = shard.ParseDocID(key); err != nil {
			return f, &problem{http.StatusBadRequest, "key: " + err.Error()}
		}
	}
	for name, at := range map[string]*time.Time{"after": &f.After, "before": &f.Before} {
		if text := q.Get(name); text != "" {
			if *at, err = time.Parse(time.RFC3339, text); err != nil {
				return f, &problem{http.StatusBadRequest, name + ": want a time such as 2026-11-20T16:00:00Z"}
			}
		}
	}
	return f, nil
}

func (c *console) deadPage(w http.ResponseWriter, r *http.Request) {
	f, err := filterOf(r.URL.Query())
	limit := 0
	if text := r.FormValue("limit"); err == nil && text != "" {
		if limit, err = strconv.Atoi(text); err != nil {
			err = &problem{http.StatusBadRequest, "limit: want a number"}
		}
	}
	var page operate.LetterPage
	if err == nil {
		page, err = c.API.LetterPage(r.Context(), operate.LetterQuery{
			LetterFilter: f, Cursor: r.FormValue("cursor"), Limit: limit,
		})
	}
	if err != nil {
		failed(w, err)
		return
	}
	answer(w, page)
}

// advised is what people have to know of a reason.
type advised struct {
	Why string `json:"why"`
	Fix string `json:"fix"`
}

func adviceOf(r deadletter.Reason) advised { return advised(r.Advice()) }

func (c *console) deadGroups(w http.ResponseWriter, r *http.Request) {
	type group struct {
		operate.LetterGroup
		advised
	}
	f, err := filterOf(r.URL.Query())
	var counts operate.LetterGroups
	if err == nil {
		counts, err = c.API.LetterGroups(r.Context(), f)
	}
	if err != nil {
		failed(w, err)
		return
	}
	groups := []group{}
	for _, g := range counts.Groups {
		groups = append(groups, group{g, adviceOf(g.Reason)})
	}
	answer(w, map[string]any{
		"groups": groups, "capped": counts.Capped, "reasons": strings.Split(deadletter.Reasons(), ", "),
	})
}

func (c *console) deadLetter(w http.ResponseWriter, r *http.Request) {
	l, err := c.API.Letter(r.Context(), r.FormValue("id"))
	if err != nil {
		failed(w, err)
		return
	}
	bytes := len(l.Body)
	l.Body = ""
	answer(w, map[string]any{"dead_letter": l, "bytes": bytes, "advice": adviceOf(l.Reason)})
}

// maxShown is how many bytes of a body a page shows at once.
const maxShown = 256 << 10

// shown is a body for people: control characters and bytes that are not UTF-8 are escaped.
type shown struct {
	Text  string `json:"text"`
	Bytes int    `json:"bytes"` // of the whole body
	Cut   bool   `json:"cut,omitempty"`
	UTF8  bool   `json:"utf8"`
}

func show(body string) shown {
	s := shown{Bytes: len(body), UTF8: utf8.ValidString(body)}
	if s.Cut = len(body) > maxShown; s.Cut {
		body = clipped(body, maxShown)
	}
	var b bytes.Buffer
	_, _ = terminal.NewWriter(&b).Write([]byte(body)) // a buffer takes everything
	s.Text = b.String()
	return s
}

func (c *console) deadBody(w http.ResponseWriter, r *http.Request) {
	l, err := c.API.Letter(r.Context(), r.FormValue("id"))
	if err != nil {
		failed(w, err)
		return
	}
	answer(w, show(l.Body))
}

// letterOrder is what a page asks for.
type letterOrder struct {
	operate.LetterOrder
	Confirm string `json:"confirm"` // "drop N": what is lost, and how many
}

func (c *console) order(w http.ResponseWriter, r *http.Request) (letterOrder, bool) {
	o, err := read[letterOrder](w, r)
	if err == nil && o.LetterFilter == (operate.LetterFilter{}) && !o.All {
		err = &problem{http.StatusBadRequest, "nothing is selected: give an id, a filter, or all"}
	}
	if err != nil {
		failed(w, err)
		return o, false
	}
	o.By = c.By
	return o, true
}

// drop deletes what was counted when somebody confirmed it, and nothing that came since.
func (c *console) drop(w http.ResponseWriter, r *http.Request) {
	o, ok := c.order(w, r)
	if !ok {
		return
	}
	if o.DryRun {
		c.campaign(w, r, o.LetterOrder, c.API.Drop)
		return
	}
	if end := c.Clock.Now(); o.ID == "" && (o.Before.IsZero() || o.Before.After(end)) {
		o.Before = end
	}
	rehearsal := o.LetterOrder
	rehearsal.DryRun = true
	would, err := c.API.Drop(r.Context(), rehearsal)
	n := 0
	for _, count := range would.Outcomes {
		n += count
	}
	switch want := fmt.Sprintf("drop %d", n); {
	case err != nil:
	case o.Confirm == "":
		err = &problem{
			http.StatusBadRequest,
			fmt.Sprintf("confirm is missing: dropped events are lost for good; say %q to drop these", want),
		}
	case o.Confirm != want:
		err = &problem{
			http.StatusConflict, fmt.Sprintf("you confirmed %q, but %d are selected now: look at them again",
				terminal.Line(o.Confirm), n),
		}
	}
	if err != nil {
		changeFailed(w, err)
		return
	}
	c.campaign(w, r, o.LetterOrder, c.API.Drop)
}

// deadLine is what became of one dead letter, or the end.
type deadLine struct {
	ID      string         `json:"id,omitempty"`
	Key     shard.DocID    `json:"key,omitempty"`
	Version string         `json:"version,omitempty"`
	Outcome string         `json:"outcome,omitempty"`
	Error   string         `json:"error,omitempty"`
	Counts  map[string]int `json:"counts,omitempty"`
	End     bool           `json:"end,omitempty"`
}

// campaign redrives or drops, and answers line by line. It ends with the connection: what is left
// stays as it is, and what was said was done.
func (c *console) campaign(w http.ResponseWriter, r *http.Request, o operate.LetterOrder,
	do func(context.Context, operate.LetterOrder) (operate.LetterResult, error),
) {
	ctx, say, end, err := c.lines(w, r)
	if err != nil {
		failed(w, err)
		return
	}
	defer end()
	o.Progress = func(l operate.LetterLine) {
		say(deadLine{
			ID: l.Letter.ID, Key: l.Letter.Key, Version: l.Letter.Version, Outcome: l.Outcome,
			Error: terminal.Line(l.Error),
		})
	}
	res, err := do(ctx, o)
	last := deadLine{Counts: res.Outcomes, End: true}
	if err != nil {
		last.Error = changeSentence(err)
	}
	say(last)
}
