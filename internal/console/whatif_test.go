// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/operate/operatetest"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/queue"
)

// simulator sends one line. If it is endless, it sends lines until the client is gone.
type simulator struct {
	endless bool
	err     error
	asked   string
	ended   chan error
}

func (s *simulator) Settings() string { return "stack: lull\n" }

func (s *simulator) Compare(ctx context.Context, question []byte, tell func(any)) error {
	s.asked = string(question)
	if s.err != nil {
		return s.err
	}
	tell(map[string]any{"share": 0.5, "doing": "<script>"})
	for s.endless && ctx.Err() == nil {
		tell(map[string]any{"share": 0.5})
	}
	if s.ended != nil {
		s.ended <- ctx.Err()
	}
	return ctx.Err()
}

// askConsole sends a request to a console with these options, and returns the answer.
func askConsole(t *testing.T, o Options, method, path, body string) (status int, text string) {
	t.Helper()
	o.Clock = clock.System{}
	w := httptest.NewRecorder()
	New(o).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
	return w.Code, w.Body.String()
}

func TestWhatIfPassesTheQuestionToTheSimulator(t *testing.T) {
	t.Parallel()
	s := &simulator{}
	o := Options{Simulator: s}
	if status, text := askConsole(t, o, http.MethodGet, "/console/whatif", ""); status != http.StatusOK ||
		text != `{"settings":"stack: lull\n"}`+"\n" {
		t.Errorf("%d %s", status, text)
	}
	const question = `{"settings":"a: <b>"}`
	if status, text := askConsole(t, o, http.MethodPost, "/console/whatif", question); status != http.StatusOK ||
		s.asked != question || text != `{"doing":"\u003cscript\u003e","share":0.5}`+"\n" {
		t.Errorf("asked %s, answered %d %s", s.asked, status, text)
	}
	s.err = errors.New("another simulation runs")
	_, text := askConsole(t, o, http.MethodPost, "/console/whatif", "{}")
	if text != `{"error":"another simulation runs"}`+"\n" {
		t.Errorf("busy: %s", text)
	}
	if status, _ := askConsole(t, o, http.MethodPost, "/console/whatif", strings.Repeat("x", maxQuestion+1)); status !=
		http.StatusRequestEntityTooLarge {
		t.Errorf("a large question: %d", status)
	}
}

// A closed page ends its comparison.
func TestWhatIfEndsWithItsRequest(t *testing.T) {
	t.Parallel()
	s := &simulator{endless: true, ended: make(chan error, 1)}
	server := httptest.NewServer(New(Options{Simulator: s, Clock: clock.System{}}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	r := usecasetest.Must(http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/console/whatif",
		strings.NewReader("{}")))(t)
	answer, err := server.Client().Do(r)
	usecasetest.OK(t, err)
	defer answer.Body.Close()
	cancel()
	if err := <-s.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the comparison ended with %v", err)
	}
	server.Client().CloseIdleConnections()
}

// fixedBreaker is a Breaker that has a panel but no stack.
type fixedBreaker struct{ panel *fault.Panel }

func (b fixedBreaker) Panel() *fault.Panel { return b.panel }

func (b fixedBreaker) Recovery() fault.Recovery { return fault.Recovery{PanelState: b.panel.State()} }

// sends is an API that remembers the messages that were composed and published.
type sends struct {
	refers bool
	at     map[time.Time]bool // the times that were used as versions
	sent   []queue.Outgoing
}

func (s *sends) Compose(_ context.Context, c operate.Composition) (operate.Composed, error) {
	s.at[c.At] = true
	m := operate.Composed{Message: queue.Outgoing{Body: c.ID + string(c.Data)}}
	if s.refers {
		m.Ref = "s3://bucket/key"
	}
	return m, nil
}

func (s *sends) Publish(_ context.Context, p operate.Publication) (operate.Published, error) {
	s.sent = append(s.sent, p.Messages...)
	return operate.Published{Messages: len(p.Messages)}, nil
}

func TestBreakItSteersThePanel(t *testing.T) {
	t.Parallel()
	api := &sends{at: map[time.Time]bool{}}
	offers := operatetest.API(operate.API{}, api)
	o := Options{Breaker: fixedBreaker{fault.NewPanel(clock.System{}, nil)}, API: offers}
	for _, step := range []struct {
		path, body string
		status     int
		says       string
	}{
		{"", `{"sink_down":true}`, http.StatusOK, `"sink_down":true`},
		{"", `{"sink_rejects":7}`, http.StatusBadRequest, "use a share from 0 to 1"},
		{"", `{"sink_rejects":"<script>"}`, http.StatusBadRequest, "the JSON that is expected"},
		{"/kill", `{"function":"index"}`, http.StatusOK, `"armed":{"index":1}`},
		{"/kill", `{"function":"prune"}`, http.StatusBadRequest, "receive, index"},
		{"/send", `{"id":"a"}`, http.StatusOK, "{}"},
		{"", `{}`, http.StatusOK, `"armed":{}`},
	} {
		status, text := askConsole(t, o, http.MethodPost, "/console/breakit"+step.path, step.body)
		if status != step.status || !strings.Contains(text, step.says) {
			t.Errorf("%s %s: %d %s, want %d and %q", step.path, step.body, status, text, step.status, step.says)
		}
	}
	if len(api.at) != 3 || api.at[time.Time{}] {
		t.Errorf("the versions are of the times %v, want three", api.at)
	}
	if len(api.sent) != 3 || !strings.HasPrefix(api.sent[2].Body, "a{") {
		t.Errorf("sent %+v, want a burst of three", api.sent)
	}
	api.refers = true
	status, text := askConsole(t, o, http.MethodPost, "/console/breakit/send", `{"id":"a"}`)
	if status != http.StatusConflict {
		t.Errorf("%d %s", status, text)
	}
	if status, text := askConsole(t, o, http.MethodGet, "/console/breakit", ""); status != http.StatusOK ||
		!strings.Contains(text, `"sink_down":false`) || !strings.Contains(text, `"recovered"`) {
		t.Errorf("%d %s", status, text)
	}
	status, _ = askConsole(t, Options{API: offers}, http.MethodGet, "/console/breakit", "")
	if status != http.StatusNotFound {
		t.Errorf("a console that cannot break its stack: %d", status)
	}
}
