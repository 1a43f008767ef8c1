// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/pipeline/usecasetest"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/enrich"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

func TestPublishSendsToTheQueueOfTheEventsAndNamesWhatItRefuses(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		resync := `{"type":"doc.changed","subject":"r","sequence":"1","mode":"resync","resyncrun":"01ARZ3NDEKTSV4RRFFQ69G5FAV","data":{}}`
		far := `{"type":"doc.changed","subject":"f","collection":"far","sequence":"1","data":{}}`
		got, err := api.Publish(t.Context(), operate.Publication{Messages: outgoing(put("a", 1), resync, far,
			"not JSON", strings.Repeat(" ", 1<<20)+put("b", 1), "")})
		if err != nil || got.Messages != 3 || got.Events != 3 || len(got.Refused) != 3 {
			t.Fatalf("got %+v, error %v; want three sent, three refused", got, err)
		}
		for i, want := range []struct {
			message int
			why     string
		}{{3, "JSON"}, {4, "by dataref"}, {5, "empty"}} {
			if r := got.Refused[i]; r.Message != want.message || !strings.Contains(r.Why, want.why) {
				t.Errorf("refusal %+v, want message %d and %q", r, want.message, want.why)
			}
		}
		for q, want := range map[string]int{"search live": 1, "search bulk": 1, "remote live": 1, "remote bulk": 0} {
			if n := g.sent(q); n != want {
				t.Errorf("%s holds %d messages, want %d", q, n, want)
			}
		}
		if _, err := api.Publish(t.Context(), operate.Publication{
			Messages: outgoing(put("a", 2)),
			Lane:     "bulk",
		}); err != nil || g.sent("search bulk") != 2 {
			t.Errorf("into the bulk lane: error %v, %d messages there", err, g.sent("search bulk"))
		}
		if _, err := api.Publish(t.Context(), operate.Publication{
			Messages: outgoing(put("a", 2)),
			Lane:     "fast",
		}); !errors.Is(err, operate.ErrInput) {
			t.Errorf("into a lane that is none: %v, want ErrInput", err)
		}
		attrs := map[string]queue.Attribute{queue.AttrSource: queue.Text("nobody")}
		got, err = api.Publish(t.Context(), operate.Publication{
			Messages: []queue.Outgoing{{Body: put("a", 3), Attributes: attrs}},
		})
		if err != nil || len(got.Refused) != 1 || !strings.Contains(got.Refused[0].Why, "nobody") {
			t.Errorf("an unknown source: %+v, error %v", got, err)
		}
	})
}

// Where there are several sources, what one of them makes of a message may be about the wrong one.
func TestARefusedMessageSaysWhichOfSeveralSourcesWasTaken(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		cfg := *g.Config
		cfg.Sources = maps.Clone(cfg.Sources)
		cfg.Sources["cms"] = config.Source{Kind: "govuk", Match: []source.Match{{Named: true}}}
		cfg.DefaultSource = "native"
		cfg.Complete()
		sources := usecasetest.Must(source.New(&cfg))(t)
		g.Config, g.Sources = &cfg, sources
		content := `{"content_id":"a","payload_version":1}`
		named := queue.Outgoing{
			Body:       content,
			Attributes: map[string]queue.Attribute{queue.AttrSource: queue.Text("cms")},
		}
		got, err := api.Publish(
			t.Context(),
			operate.Publication{Messages: append(outgoing(content, "not JSON"), named)},
		)
		if err != nil || len(got.Refused) != 3 {
			t.Fatalf("got %+v, error %v; want all refused", got, err)
		}
		const hint = "it names no source (of cms, native), so native decodes it: "
		for i, r := range got.Refused {
			if hinted := strings.HasPrefix(r.Why, hint); hinted != (i < 2) {
				t.Errorf("message %d is refused: %s", r.Message, r.Why)
			}
		}
	})
}

func TestPublishTellsHowFarItCame(t *testing.T) {
	t.Parallel()
	g := setup(t)
	g.Publisher = func(_ context.Context, _ string, _ flight.Lane, out queue.Outgoing) error {
		if strings.Contains(out.Body, `"2"`) {
			return errors.New("no connection")
		}
		return nil
	}
	got, err := g.API().Publish(
		t.Context(),
		operate.Publication{Messages: outgoing(put("a", 1), put("a", 2), put("a", 3))},
	)
	if err == nil || got.Messages != 1 || !strings.Contains(err.Error(), "message 1") ||
		!strings.Contains(err.Error(), "no connection") {
		t.Errorf("got %+v, error %v; want one sent and the second named", got, err)
	}
}

func TestGetReadsTheSink(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		e := g.hold("f", put("a", 7))
		g.commit(e, `{"n":1.10}`)
		d, err := api.Get(t.Context(), "content#a")
		if err != nil || d.ID != "a" || d.Collection != "content" || d.Version != "7" ||
			string(d.Document) != `{"n":1.10}` || d.OrderKey != e.Key.String() || d.Fence == 0 {
			t.Errorf("got %+v, error %v", d, err)
		}
		if _, err := api.Get(t.Context(), "content#b"); !errors.Is(err, operate.ErrNotFound) ||
			!strings.Contains(err.Error(), "content#b") {
			t.Errorf("an unknown document: %v, want ErrNotFound and its name", err)
		}
		if _, err := api.Get(t.Context(), "far#b"); !errors.Is(err, operate.ErrInput) ||
			!strings.Contains(err.Error(), "remote") {
			t.Errorf("a sink that cannot be read: %v, want ErrInput and its name", err)
		}
	})
}

func TestStatusNamesRebuildsThatAreUnderWay(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		if s, err := api.Status(t.Context()); err != nil || len(s.Rebuilds) != 0 {
			t.Errorf("got %+v, error %v, want none", s.Rebuilds, err)
		}
		g.rig.Write(shard.Rebuild("search", "content", "content-2", micros()))
		s, err := api.Status(t.Context())
		if err != nil || len(s.Rebuilds) != 1 || s.Rebuilds[0].Sink != "search" ||
			s.Rebuilds[0].Collection != "content" ||
			s.Rebuilds[0].New != "content-2" {
			t.Errorf("got %+v, error %v", s.Rebuilds, err)
		}
	})
}

func TestStatusCountsQueuesFlightsAndDeadLetters(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.hold("f", put("a", 7))
		redriven := g.die(put("b", 1), deadletter.RejectedBySink)
		g.die(put("c", 1), deadletter.RejectedBySink)
		usecasetest.OK(t, g.rig.Letters.MarkRedriven(t.Context(), redriven, time.Now(), false))
		usecasetest.Must(api.Publish(t.Context(), operate.Publication{Messages: outgoing(put("d", 1))}))(t)
		until := micros().Add(time.Minute)
		g.rig.Write(shard.Trip("remote", micros(), until, 2))
		s, err := api.Status(t.Context())
		if err != nil || s.Flights != 1 || s.Letters != 1 || s.Capped || !s.Pruned.IsZero() {
			t.Errorf("got %+v, error %v", s, err)
		}
		if want := []operate.QueueStatus{{Queue: "search live", Visible: 1}}; !reflect.DeepEqual(s.Queues, want) {
			t.Errorf("queues %+v, want %+v", s.Queues, want)
		}
		if len(s.Sinks) != 2 || s.Sinks[0].Sink != "remote" || !s.Sinks[0].Open ||
			!s.Sinks[0].OpenUntil.Equal(until.Time()) || s.Sinks[0].Level != 2 || s.Sinks[1].Open {
			t.Errorf("sinks %+v", s.Sinks)
		}
	})
}

func TestExplainGathersRowSinkFlightDeadLettersAndDecisions(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.commit(g.hold("f", put("a", 7)), `{}`)
		g.die(put("a", 8), deadletter.RejectedBySink)
		e := g.hold("g", put("a", 9))
		x, err := api.Explain(t.Context(), "content#a")
		if err != nil || !x.Known || x.Version != "7" || x.InSink != "7" || x.Pending != e.Key.String() ||
			x.Flight != "g" || x.Row["flight"] != "g" {
			t.Errorf("got %+v, error %v", x, err)
		}
		if len(x.Held) != 1 || x.Held[0].MessageID != "m-g" || x.Held[0].Version != "9" ||
			x.Held[0].Operation != "put" || x.Held[0].Lane != "live" || x.Held[0].Receives != 1 ||
			x.Held[0].Sent.IsZero() || x.Held[0].Due.IsZero() {
			t.Errorf("held %+v", x.Held)
		}
		if len(x.Letters) != 1 || x.Letters[0].Version != "8" || x.Letters[0].Body != "" {
			t.Errorf("dead letters %+v, want one without its body", x.Letters)
		}
		if len(x.Decisions) != 1 || x.Decisions[0].Text != "about content#a" {
			t.Errorf("decisions %+v", x.Decisions)
		}
		if !strings.HasPrefix(x.Sentence, "Version 9 waits for the lull") {
			t.Errorf("sentence %q", x.Sentence)
		}
		usecasetest.OK(t, g.flights.Delete(t.Context(), "g"))
		if x, err := api.Explain(t.Context(), "content#a"); err != nil || len(x.Held) != 0 {
			t.Errorf("without its manifest: %+v, error %v", x.Held, err)
		}
		if x, err := api.Explain(t.Context(), "content#nobody"); err != nil || x.Known || x.InSink != "" {
			t.Errorf("an unknown document: %+v, error %v", x, err)
		}
		if x, err := api.Explain(t.Context(), "far#nobody"); err != nil ||
			x.InSink != "unknown: it cannot be read from here" {
			t.Errorf("where the sink cannot be read: %+v, error %v", x, err)
		}
	})
}

func TestDeadLettersAreListedAndShown(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		list, err := api.Letters(t.Context(), operate.LetterFilter{})
		if err != nil || list == nil || len(list) != 0 {
			t.Errorf("none: %v, error %v; want an empty list", list, err)
		}
		g.die(put("a", 1), deadletter.RejectedBySink)
		id := g.die(put("b", 1), deadletter.Refusals)
		for name, f := range map[string]operate.LetterFilter{
			"reason": {Reason: deadletter.Refusals}, "key": {Key: "content#b"}, "id": {ID: id},
		} {
			list, err := api.Letters(t.Context(), f)
			if err != nil || len(list) != 1 || list[0].ID != id || list[0].Key != "content#b" ||
				list[0].Version != "1" || list[0].State != deadletter.Parked {
				t.Errorf("by %s: %+v, error %v", name, list, err)
			}
		}
		l, err := api.Letter(t.Context(), id)
		if err != nil || l.Body != put("b", 1) || l.Reason != deadletter.Refusals || l.Lane != "live" ||
			l.MessageID != "m-1" || l.Source != "native" {
			t.Errorf("shown: %+v, error %v", l, err)
		}
		if _, err := api.Letter(t.Context(), "nothing"); !errors.Is(err, operate.ErrNotFound) ||
			!strings.Contains(err.Error(), "nothing") {
			t.Errorf("an unknown dead letter: %v, want ErrNotFound and its id", err)
		}
		if _, err := api.Letters(t.Context(), operate.LetterFilter{Reason: "bad-luck"}); !errors.Is(err,
			operate.ErrInput) || !strings.Contains(err.Error(), "rejected") {
			t.Errorf("an unknown reason: %v, want ErrInput and the reasons", err)
		}
	})
}

func TestRedriveTellsEachDeadLetterAndKeepsItParked(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		sent := g.die(put("a", 1), deadletter.RejectedBySink)
		g.die(put("b", 1), deadletter.RejectedBySink)
		g.commit(g.hold("f", put("b", 2)), `{}`)
		var told []string
		order := operate.LetterOrder{By: "ann", DryRun: true}
		want := map[string]int{"sent": 1, "superseded": 1}
		res, err := api.Redrive(t.Context(), order)
		if err != nil || !maps.Equal(res.Outcomes, map[string]int{"would_send": 1, "superseded": 1}) ||
			g.sent("search live") != 0 {
			t.Errorf("dry run: %+v, error %v, %d sent", res, err, g.sent("search live"))
		}
		order.DryRun = false
		res, err = api.Redrive(t.Context(), order)
		if err != nil || !maps.Equal(res.Outcomes, want) || g.sent("search live") != 1 || len(res.Lines) != 2 {
			t.Errorf("redrive: %+v, error %v, %d sent", res, err, g.sent("search live"))
		}
		for _, l := range res.Lines {
			told = append(told, string(l.Letter.Key)+" "+l.Outcome)
		}
		if got := strings.Join(told, ", "); got != "content#a sent, content#b superseded" {
			t.Errorf("told %q", got)
		}
		if l, err := api.Letter(t.Context(), sent); err != nil || l.State != deadletter.Redriven || l.Redrives != 1 {
			t.Errorf("the dead letter that was sent: %+v, error %v; want it kept", l, err)
		}
		if n := len(g.rig.Notes.Of(journal.Redriven)); n != 1 {
			t.Errorf("%d audit notes, want 1", n)
		}
	})
}

func TestDropDeletesWhatIsSelected(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		id := g.die(put("a", 1), deadletter.RejectedBySink)
		g.die(put("b", 1), deadletter.RejectedBySink)
		res, err := api.Drop(t.Context(), operate.LetterOrder{By: "ann", LetterFilter: operate.LetterFilter{ID: id}})
		if err != nil || res.Outcomes["dropped"] != 1 {
			t.Errorf("drop: %+v, error %v", res, err)
		}
		if list, err := api.Letters(t.Context(), operate.LetterFilter{}); err != nil || len(list) != 1 ||
			list[0].Key != "content#b" {
			t.Errorf("left: %+v, error %v", list, err)
		}
	})
}

func TestWrongOrdersChangeNothing(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.die(put("a", 1), deadletter.RejectedBySink)
		for _, tt := range []struct {
			name string
			o    operate.LetterOrder
			want error
		}{
			{"nobody asks", operate.LetterOrder{All: true}, operate.ErrInput},
			{"a rate below zero", operate.LetterOrder{By: "ann", All: true, Rate: -1}, operate.ErrInput},
			{"an unknown reason", operate.LetterOrder{
				By:           "ann",
				LetterFilter: operate.LetterFilter{Reason: "bad-luck"},
			}, operate.ErrInput},
			{
				"an unknown dead letter",
				operate.LetterOrder{By: "ann", LetterFilter: operate.LetterFilter{ID: "nothing"}},
				operate.ErrNotFound,
			},
			{"a dead letter and a filter", operate.LetterOrder{
				By:           "ann",
				LetterFilter: operate.LetterFilter{ID: "nothing", Key: "content#a"},
			}, operate.ErrInput},
		} {
			for verb, do := range map[string]func(context.Context, operate.LetterOrder) (operate.LetterResult,
				error){"redrive": api.Redrive, "drop": api.Drop} {
				if _, err := do(t.Context(), tt.o); !errors.Is(err, tt.want) {
					t.Errorf("%s, %s: %v, want %v", verb, tt.name, err, tt.want)
				}
			}
		}
		if _, err := api.Drop(t.Context(), operate.LetterOrder{By: "ann"}); !errors.Is(err, operate.ErrInput) {
			t.Errorf("drop of everything, unsaid: %v, want ErrInput", err)
		}
		_, err := api.Cancel(t.Context(), operate.Cancellation{Key: "content#a"})
		if !errors.Is(err, operate.ErrInput) {
			t.Errorf("cancel by nobody: %v, want ErrInput", err)
		}
		if list, err := api.Letters(t.Context(), operate.LetterFilter{}); err != nil || len(list) != 1 ||
			list[0].State != deadletter.Parked || g.sent("search live") != 0 {
			t.Errorf("something was changed: %+v, error %v", list, err)
		}
	})
}

func TestAFailingDeadLetterIsNamedAndTheOthersAreDone(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		stray := deadletter.New(queue.Message{ID: "m", Body: "x", Sent: time.Now()}, deadletter.Undecodable, "", "", "",
			0, time.Now())
		stray.Sink = "gone"
		usecasetest.Must(g.rig.Letters.Park(t.Context(), stray))(t)
		g.die(put("a", 1), deadletter.RejectedBySink)
		res, err := api.Redrive(t.Context(), operate.LetterOrder{By: "ann", All: true})
		if err != nil || res.Outcomes["sent"] != 1 || res.Outcomes["failed"] != 1 || len(res.Lines) != 2 ||
			!strings.Contains(res.Lines[0].Error, `"gone"`) {
			t.Errorf("got %+v, error %v; want one sent, one failed and why", res, err)
		}
	})
}

func TestCancelParksThePendingVersion(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		e := g.hold("f", put("a", 7))
		l, err := api.Cancel(t.Context(), operate.Cancellation{Key: "content#a", By: "ann"})
		if err != nil || l.Reason != deadletter.Cancelled || l.Version != "7" || l.Key != "content#a" {
			t.Errorf("got %+v, error %v", l, err)
		}
		if r := g.rig.Row("content#a"); r.Pending != "" || r.Dead != e.Key {
			t.Errorf("row %+v, want it dead", r)
		}
		for _, doc := range []shard.DocID{"content#a", "content#nobody"} {
			_, err := api.Cancel(t.Context(), operate.Cancellation{Key: doc, By: "ann"})
			if !errors.Is(err, operate.ErrNotFound) || !strings.Contains(err.Error(), "nothing is pending") {
				t.Errorf("cancel %s: %v, want ErrNotFound", doc, err)
			}
		}
	})
}

func TestScheduledEventsAreCountedAndCancelled(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		when := time.Now().Add(2 * time.Hour).UTC().Truncate(time.Second)
		for i, body := range []string{put("a", 5), put("b", 1)} {
			e := g.rig.EventOf(body)
			err := g.Schedule.Put(t.Context(), schedule.Item{
				ID: fmt.Sprint(i), Doc: e.Doc, Key: e.Key, NotBefore: when, Sink: "search", Lane: flight.Live,
				Body: body,
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if s, err := api.Status(t.Context()); err != nil || s.Scheduled != 2 || s.Capped {
			t.Errorf("status %+v, error %v; want 2 scheduled", s, err)
		}
		_, err := api.Cancel(t.Context(), operate.Cancellation{Key: "content#a", By: "ann"})
		if !errors.Is(err, operate.ErrNotFound) || !strings.Contains(err.Error(), "version 5 is scheduled for "+
			when.Format(time.RFC3339)) || !strings.Contains(err.Error(), "--scheduled") {
			t.Errorf("cancel what is pending: %v, want it to say what is scheduled", err)
		}
		l, err := api.Cancel(t.Context(), operate.Cancellation{Key: "content#a", Scheduled: true, By: "ann"})
		if err != nil || l.Version != "5" || l.Reason != deadletter.Cancelled || g.rig.Row("content#a").Dead == "" {
			t.Errorf("cancel what is scheduled: %+v, error %v", l, err)
		}
		_, err = api.Cancel(t.Context(), operate.Cancellation{Key: "content#a", Scheduled: true, By: "ann"})
		if !errors.Is(err, operate.ErrNotFound) || !strings.Contains(err.Error(), "no event is scheduled") {
			t.Errorf("cancel again: %v, want ErrNotFound", err)
		}
		_, err = api.Cancel(t.Context(), operate.Cancellation{Key: "none", Scheduled: true, By: "ann"})
		if !errors.Is(err, operate.ErrInput) {
			t.Errorf("cancel what is not a key: %v, want ErrInput", err)
		}
		if s, err := api.Status(t.Context()); err != nil || s.Scheduled != 1 || s.Letters != 1 {
			t.Errorf("status %+v, error %v; want 1 scheduled, 1 dead letter", s, err)
		}
	})
}

func TestRescueStartsAFlightFromAManifest(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		e := g.hold("f", put("a", 7))
		r, err := api.Rescue(t.Context(), "f")
		if err != nil || r.ID == "" || r.ID == "f" || g.machine.Stop(r.ID) != 1 {
			t.Errorf("got %q, error %v; want a new flight that runs", r.ID, err)
		}
		if _, err := api.Rescue(t.Context(), "nothing"); !errors.Is(err, operate.ErrNotFound) ||
			!strings.Contains(err.Error(), "nothing") {
			t.Errorf("an unknown flight: %v, want ErrNotFound and its name", err)
		}
		g.commit(e, `{}`)
		if _, err := api.Rescue(t.Context(), "f"); !errors.Is(err, operate.ErrNotFound) {
			t.Errorf("a flight that is done: %v, want ErrNotFound", err)
		}
		delete(g.Config.Sinks, "search")
		if _, err := api.Rescue(t.Context(), "f"); !errors.Is(err, operate.ErrInput) ||
			!strings.Contains(err.Error(), "another stack") {
			t.Errorf("a flight of another stack: %v, want ErrInput", err)
		}
	})
}

func TestTheHandlerRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	g := setup(t)
	server := httptest.NewServer(operate.Handler(g.API()))
	t.Cleanup(server.Close)
	for name, tt := range map[string]struct {
		path, body string
		status     int
	}{
		"no JSON":           {"/operate/get", "{", http.StatusBadRequest},
		"no key":            {"/operate/get", `{"key":"content"}`, http.StatusBadRequest},
		"no key to explain": {"/operate/explain", `{}`, http.StatusBadRequest},
		"no key that waits": {"/operate/unwritten", `{"key":"content"}`, http.StatusBadRequest},
		"no key to cancel":  {"/operate/cancel", `{"key":"!health#search","by":"ann"}`, http.StatusBadRequest},
		"no order":          {"/operate/redrive", "[]", http.StatusBadRequest},
		"nothing there":     {"/operate/letter", `{"id":"x"}`, http.StatusNotFound},
		"no such question":  {"/operate/destroy", `{}`, http.StatusNotFound},
	} {
		resp, err := server.Client().Post(server.URL+tt.path, "application/json", strings.NewReader(tt.body))
		usecasetest.OK(t, err)
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != tt.status {
			t.Errorf("%s: %s %s, want %d", name, resp.Status, text, tt.status)
		}
		var e struct{ Error string }
		if err := json.Unmarshal(text, &e); tt.path != "/operate/destroy" && (err != nil || e.Error == "") {
			t.Errorf("%s: answer %s, want an error in words", name, text)
		}
	}
}

func TestTheClientSaysWhatItTalksTo(t *testing.T) {
	t.Parallel()
	serve := func(h http.HandlerFunc) *operate.Client {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return &operate.Client{Base: s.URL, HTTP: s.Client()}
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, tt := range map[string]struct {
		client *operate.Client
		want   string
	}{
		"nobody":         {&operate.Client{Base: gone.URL, HTTP: &http.Client{}}, "is `lull dev` running there?"},
		"something else": {serve(http.NotFound), "it is not a `lull dev`"},
		"no address":     {&operate.Client{Base: "http://[", HTTP: &http.Client{}}, "not an address"},
		"half an answer": {serve(func(w http.ResponseWriter, _ *http.Request) {
			_,
				_ = io.WriteString(w, `{"queues":[`)
		}), "read the answer"},
		"another's errors": {serve(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "{}", http.StatusTeapot)
		}), "it is not a `lull dev`"},
	} {
		if _, err := tt.client.API().Status(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// Whatever a stack says of itself, nothing of a document's content is in it but what was asked for.
func TestExplanationsAndListsHoldNoContent(t *testing.T) {
	t.Parallel()
	g := setup(t)
	secret := `{"type":"doc.changed","subject":"a","sequence":"1","data":{"title":"secret"}}`
	g.hold("f", secret)
	g.die(strings.Replace(secret, `"1"`, `"2"`, 1), deadletter.RejectedBySink)
	x := usecasetest.Must(g.API().Explain(t.Context(), "content#a"))(t)
	list := usecasetest.Must(g.API().Letters(t.Context(), operate.LetterFilter{}))(t)
	for _, v := range []any{x, list} {
		text, err := json.Marshal(v)
		if err != nil || bytes.Contains(text, []byte("secret")) {
			t.Errorf("%s, error %v", text, err)
		}
	}
}

func TestStatusSaysHowEnrichersAre(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		if s, err := api.Status(t.Context()); err != nil || s.Enrichers != nil {
			t.Errorf("got %+v, error %v, want none where the settings have none", s.Enrichers, err)
		}
		g.Config.Collections["content"] = config.Collection{Enrich: &config.Enrich{Kind: config.EnrichHTTP}}
		until := micros().Add(time.Minute)
		s, err := api.Status(t.Context())
		if err != nil || len(s.Enrichers) != 1 || s.Enrichers[0].Collection != "content" || s.Enrichers[0].Away {
			t.Errorf("got %+v, error %v, want that of content, which answers", s.Enrichers, err)
		}
		g.rig.Write(shard.Trip(enrich.HealthName("content"), micros(), until, 1))
		if s, err = api.Status(t.Context()); err != nil || !s.Enrichers[0].Away ||
			!s.Enrichers[0].AwayUntil.Equal(until.Time()) || s.Sinks[0].Open || s.Sinks[1].Open {
			t.Errorf("got %+v, error %v, want it away and its sink healthy", s, err)
		}
	})
}
