// SPDX-License-Identifier: Apache-2.0

package searchable_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/operator/searchability"
	"github.com/lullhq/lull/searchable"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stack answers the questions of a real handler, one answer after the other, and the last one
// again.
type stack struct {
	asked   atomic.Int64
	answers []searchable.Sink
	err     error
	last    searchable.Question
}

func (s *stack) answer(ctx context.Context, q searchable.Question) (searchable.Answer, error) {
	n := int(s.asked.Add(1))
	s.last = q
	if n == 1 && s.err != nil {
		return searchable.Answer{}, s.err
	}
	if len(s.answers) == 0 {
		<-ctx.Done()
		return searchable.Answer{}, ctx.Err()
	}
	in := s.answers[min(n, len(s.answers))-1]
	a := searchable.Answer{Key: q.Key, Version: q.Version, Searchable: in.Searchable}
	a.Sinks = []searchable.Sink{in}
	return a, nil
}

func serve(t *testing.T, s *stack) *searchable.Client {
	t.Helper()
	server := httptest.NewServer(searchability.Handler(s.answer, func(error) {}))
	t.Cleanup(server.Close)
	t.Cleanup(server.Client().CloseIdleConnections)
	return &searchable.Client{URL: server.URL + "/", HTTP: server.Client(), Pause: time.Millisecond}
}

var (
	yes     = searchable.Sink{Sink: "search", Searchable: searchable.Yes, How: searchable.Asked, Place: searchable.Committed}
	waits   = searchable.Sink{Sink: "search", Searchable: searchable.No, Place: searchable.Waiting, Why: "it waits"}
	dead    = searchable.Sink{Sink: "search", Searchable: searchable.No, Place: searchable.Dead, Why: "a dead letter"}
	unknown = searchable.Sink{Sink: "search", Searchable: searchable.Unknown, Place: searchable.Committed, Why: "no interval"}
)

// Wait asks until the answer is yes, or until no later answer can be yes.
func TestWaitAsksUntilAnAnswerIsFinal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stack *stack
		asked int64
		err   error
		says  string
	}{
		"yes":                   {&stack{answers: []searchable.Sink{yes}}, 1, nil, ""},
		"after a while":         {&stack{answers: []searchable.Sink{waits, waits, yes}}, 3, nil, ""},
		"after an error":        {&stack{err: errors.New("the table is away"), answers: []searchable.Sink{yes}}, 2, nil, ""},
		"a dead letter":         {&stack{answers: []searchable.Sink{waits, dead}}, 2, searchable.ErrNever, "sink search: "},
		"unknown":               {&stack{answers: []searchable.Sink{unknown}}, 1, searchable.ErrUnknown, "no interval"},
		"a version of no class": {&stack{err: &searchability.Error{Parameter: "version", Err: errors.New("bad")}}, 1, nil, "status 400: version: bad"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := serve(t, c.stack).Wait(t.Context(), "content", "a ?&#/+ä", "7")
			if c.stack.asked.Load() != c.asked || c.err != nil && !errors.Is(err, c.err) ||
				c.says == "" && (err != nil || a.Searchable != searchable.Yes) || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("asked %d times: got %+v, %v", c.stack.asked.Load(), a, err)
			}
			if want := (searchable.Question{Key: "content#a ?&#/+ä", Version: "7", Wait: searchable.MaxWait}); c.stack.last != want {
				t.Errorf("asked %+v, want %+v", c.stack.last, want)
			}
		})
	}
}

// If the context ends, the last answer says what the version waits for.
func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := &stack{answers: []searchable.Sink{waits}}
	c := serve(t, s)
	c.Sign = func(*http.Request) error { // called before each question
		if s.asked.Load() == 2 {
			cancel()
		}
		return nil
	}
	a, err := c.Wait(ctx, "content", "a", "7")
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "sink search: it waits") ||
		a.Sinks[0] != waits {
		t.Errorf("got %+v, %v", a, err)
	}
}

// An answer that is not from lull is an error, with its status.
func TestAskSaysWhatAnotherServerAnswers(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"Message":"Forbidden"}`: "status 403: Forbidden", "<html>": "status 403: no reason was given",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(body))
		}))
		_, err := (&searchable.Client{URL: server.URL, HTTP: server.Client()}).Wait(t.Context(), "content", "a", "7")
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		server.Close()
	}
}
