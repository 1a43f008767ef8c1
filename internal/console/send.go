// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/terminal"
	"github.com/lullhq/lull/source"
)

// sendRoutes returns the requests of the view Send. Without Options.Send, there are no such
// requests.
//
//	GET  /console/send/forms          the forms of messages that the settings decode, and the trials
//	POST /console/send/write          returns the messages of a trial, and sends nothing
//	POST /console/send?corrects=      sends messages, and returns their decoded events; with corrects=1, the
//	                                  message corrects a dead letter, and the answer says whether it is stale
//	GET  /console/send/states?key=    the states of up to 20 documents, as in `lull explain`
func (c *console) sendRoutes() routes {
	if !c.Send {
		return nil
	}
	c.can["send"] = true
	return routes{
		"GET /console/send/forms":  answered(reader, c.sendForms),
		"POST /console/send/write": answered(reader, c.sendWrite),
		"POST /console/send":       answered(publisher, c.send),
		"GET /console/send/states": answered(reader, c.sendStates),
	}
}

// trial is an example that a user can try. Each step of a trial is a message. A step waits for a
// multiple of the time that a single change needs to reach the sink.
type trial struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Text  string `json:"text"`
	steps []step
}

type step struct {
	version uint32
	delete  bool
	waits   int64
	note    string
	body    string // instead of a version: a body that no source can read
	deep    bool   // the document is nested too deeply for a search engine
}

var trials = []trial{
	{"one", "One event", "A change is written once its document has been quiet for a while.", []step{
		{version: 1, note: "version 1"},
	}},
	{
		"burst",
		"A burst, out of order",
		"Five versions of one document, all at once. One write follows: version 5.",
		[]step{
			{version: 3, note: "version 3"},
			{version: 1, note: "version 1, after version 3"},
			{version: 5, note: "version 5, the newest"},
			{version: 2, note: "version 2, after version 5"},
			{version: 4, note: "version 4, after version 5"},
		},
	},
	{
		"late", "A late old version", "Version 5 is written. Then version 3 arrives, and lull does not write to the sink.",
		[]step{
			{version: 5, note: "version 5"},
			{version: 3, waits: 1, note: "version 3, once version 5 is written"},
		},
	},
	{
		"delete", "A delete, and an older put after it",
		"The document is written and deleted. Version 2 does not restore it.",
		[]step{
			{version: 1, note: "version 1"},
			{version: 3, delete: true, waits: 1, note: "version 3 is a delete"},
			{version: 2, waits: 2, note: "version 2, after the delete"},
		},
	},
	{
		"poison",
		"Poison",
		"Messages that no source can decode, and one that no search engine accepts. They become dead letters.",
		[]step{
			{body: "this is not JSON", note: "not JSON: undecodable"},
			{body: "{}", note: "JSON without an event: it breaks the contract"},
			{version: 1, deep: true, note: "nested too deeply: the search engine rejects it"},
		},
	},
}

func (c *console) sendForms(r *http.Request) (any, error) {
	forms, err := c.API.Forms(r.Context())
	return map[string]any{"forms": forms.Forms, "why": oneLine(forms.Why), "trials": trials}, err
}

// sendAsk names the trial whose messages the page asks for.
type sendAsk struct {
	Trial      string           `json:"trial"`
	Source     string           `json:"source"`
	Collection shard.Collection `json:"collection"`
	ID         string           `json:"id"`
	Data       string           `json:"data"` // the content of the document, a JSON object
}

// draft is a message that is not sent yet.
type draft struct {
	Body       string                     `json:"body"`
	Attributes map[string]queue.Attribute `json:"attributes,omitempty"`
	Note       string                     `json:"note"`
	After      int64                      `json:"after_ms"`      // the wait after the first message, by the stack's clock
	Ref        string                     `json:"ref,omitempty"` // the object that must hold the content
}

func (c *console) sendWrite(r *http.Request) (any, error) {
	q, err := read[sendAsk](r)
	if err != nil {
		return nil, err
	}
	drafts, err := c.drafts(r.Context(), q)
	return map[string]any{"messages": drafts}, err
}

// drafts writes the messages of a trial.
func (c *console) drafts(ctx context.Context, q sendAsk) ([]draft, error) {
	forms, err := c.API.Forms(ctx)
	at := slices.IndexFunc(forms.Forms, func(f operate.Form) bool {
		return (q.Source == "" || f.Source == q.Source) && (q.Collection == "" || f.Collection == string(q.Collection))
	})
	try := slices.IndexFunc(trials, func(t trial) bool { return t.ID == q.Trial })
	data := strings.TrimSpace(q.Data)
	switch {
	case err != nil:
		return nil, err
	case at < 0:
		return nil, badf("no source writes such messages: choose one of the forms")
	case try < 0:
		return nil, badf("trial %q is unknown", terminal.Line(q.Trial))
	case q.ID == "":
		return nil, badf("id is missing: name the document")
	case data == "":
		data = string(forms.Forms[at].Data)
	case !json.Valid([]byte(data)) || data[0] != '{':
		return nil, badf("the content is not a JSON object")
	}
	form, now := forms.Forms[at], c.Clock.Now()
	compose := func(s step) (operate.Composed, error) {
		return c.API.Compose(ctx, operate.Composition{
			Source: form.Source, Collection: shard.Collection(form.Collection), ID: q.ID, Delete: s.delete,
			N: s.version, At: now, Data: contentOf(data, q.Data == "", s),
		})
	}
	// A body that no source can read is sent with the same attributes as a valid body.
	sample, err := compose(step{version: 1})
	if err != nil {
		return nil, err
	}
	drafts := []draft{}
	for _, s := range trials[try].steps {
		d := draft{
			Body: s.body, Attributes: sample.Message.Attributes, Note: s.note, After: s.waits * (form.Fresh + 2000),
		}
		if s.deep && form.Own {
			continue // documents of this kind do not contain the nested content
		}
		if s.body == "" {
			m, err := compose(s)
			if err != nil {
				return nil, err
			}
			d.Body, d.Ref = indented(m.Message.Body), m.Ref
		}
		drafts = append(drafts, d)
	}
	return drafts, nil
}

// deepest is a depth that a message may have, but that a search engine does not accept.
const deepest = 110

// contentOf returns the content of a version. In an example, the title contains the version.
func contentOf(data string, example bool, s step) json.RawMessage {
	put := func(name, value string) { data = source.Pointer{Tokens: []string{name}}.Put(data, value) }
	if example {
		title := cmp.Or(gjson.Get(data, "title").Str, "Example")
		put("title", source.Quoted(fmt.Sprintf("%s, version %d", title, s.version)))
	}
	if s.deep {
		put("deep", strings.Repeat(`{"in":`, deepest)+"1"+strings.Repeat("}", deepest))
	}
	return json.RawMessage(data)
}

// indented returns a body with line breaks. Numbers keep all their digits.
func indented(body string) string {
	var b bytes.Buffer
	if len(body) > maxShown || strings.Count(body, "{") > deepest || json.Indent(&b, []byte(body), "", "  ") != nil {
		return body
	}
	return b.String()
}

// Bounds of the messages in one request, and of the documents whose state is read in one request.
const (
	maxSent   = 100 // the most messages in one request
	maxStates = 20
)

func (c *console) send(r *http.Request) (any, error) {
	q, err := read[operate.Publication](r)
	switch {
	case err != nil:
		return nil, err
	case len(q.Messages) == 0:
		return nil, badf("messages: the list is empty")
	case len(q.Messages) > maxSent:
		return nil, badf("messages: %d, but at most %d are allowed", len(q.Messages), maxSent)
	}
	done, err := c.API.Publish(r.Context(), q)
	for i := range done.Refused {
		done.Refused[i].Why = terminal.Line(done.Refused[i].Why)
	}
	for i := range done.Sent {
		done.Sent[i].Invalid = terminal.Line(done.Sent[i].Invalid)
	}
	answer := struct {
		operate.Published
		Stale string `json:"stale,omitempty"` // why the version that corrects a dead letter is never written
	}{Published: done}
	if r.FormValue("corrects") != "" && err == nil && len(done.Sent) == 1 && done.Sent[0].Version != "" {
		answer.Stale, err = c.stale(r.Context(), done.Sent[0])
	}
	return answer, err
}

// stale says why a version that was sent is never written. It is empty if no newer version is
// committed.
func (c *console) stale(ctx context.Context, e operate.SentEvent) (string, error) {
	x, err := c.API.Explain(ctx, e.Key)
	if err != nil || x.Committed == "" || e.OrderKey == "" {
		return "", err
	}
	sent, err := shard.ParseOrderKey(e.OrderKey)
	if err != nil {
		return "", fmt.Errorf("read the order key of version %s: %w", terminal.Line(e.Version), err)
	}
	committed, err := shard.ParseOrderKey(x.Committed)
	if err != nil {
		return "", fmt.Errorf("read the committed order key of %s: %w", e.Key, err)
	}
	if sent >= committed {
		return "", nil
	}
	return fmt.Sprintf("Version %s is STALE, and is never written: version %s of %s is committed, and is newer.",
		terminal.Line(e.Version), terminal.Line(x.Version), e.Key), nil
}

// sendStates returns the states of several documents. It explains one document after another.
func (c *console) sendStates(r *http.Request) (any, error) {
	type state struct {
		Key      shard.DocID   `json:"key"`
		State    operate.State `json:"state"`
		Version  string        `json:"version"` // the committed one
		Sentence string        `json:"sentence"`
	}
	keys := r.URL.Query()["key"]
	if len(keys) > maxStates {
		return nil, badf("key: %d of them, but at most %d are allowed", len(keys), maxStates)
	}
	states := []state{}
	for _, text := range keys {
		key, err := keyOf(text)
		if err != nil {
			return nil, err
		}
		x, err := c.API.Explain(r.Context(), key)
		if err != nil {
			return nil, err
		}
		states = append(states, state{key, x.State, x.Version, terminal.Line(x.Sentence)})
	}
	return map[string]any{"states": states}, nil
}
