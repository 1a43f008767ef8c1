// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/reconcile"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
	"github.com/lullhq/lull/source"
)

// fanOut adds the sink remote, with a separate engine, to the collection content. Versions that the
// returned ground holds or commits, and its dead letters, belong to the sink remote.
func (g *ground) fanOut() (remote *ground) {
	g.Helper()
	g.Config.Collections["content"] = config.Collection{Sinks: []string{"search", "remote"}}
	g.Config.Debounce.MinInterval = 0
	g.Config.Queues.Elsewhere = ""
	g.Config.Complete()
	var err error
	if g.Sources, err = source.New(g.Config); err != nil {
		g.Fatal(err)
	}
	far, operator := *g, *g.Operator
	operator.Sources = g.Sources.At("remote")
	far.rig = &usecasetest.Rig{T: g.T, Shards: g.rig.Shards, Letters: g.rig.Letters, Sources: operator.Sources}
	far.Operator, far.sink = &operator, memorysink.New(clock.System{}, memorysink.Settings{Versions: true})
	g.Sinks["remote"], g.Readers["remote"] = far.sink, far.sink
	return &far
}

func TestAMessageGoesToEverySinkOfItsCollectionOrToTheOneThatIsNamed(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.fanOut()
		far := strings.Replace(put("f", 1), `"subject"`, `"collection":"far","subject"`, 1)
		for _, tt := range []struct {
			body, sink string
			search     int
			remote     int
			refused    string
		}{
			{put("a", 1), "", 1, 1, ""},
			{put("a", 1), "remote", 0, 1, ""},
			{put("a", 1), "search", 1, 0, ""},
			{far, "", 0, 1, ""},
			{far, "search", 0, 0, "not for sink search"},
		} {
			before := []int{g.sent("search live"), g.sent("remote live")}
			p := operate.Publication{Messages: outgoing(tt.body), Sink: tt.sink}
			done := usecasetest.Must(api.Publish(t.Context(), p))(t)
			got := []int{g.sent("search live") - before[0], g.sent("remote live") - before[1]}
			if !slices.Equal(got, []int{tt.search, tt.remote}) {
				t.Errorf("%s to %q: sent %v", tt.body, tt.sink, got)
			}
			if (len(done.Refused) > 0) != (tt.refused != "") ||
				tt.refused != "" && !strings.Contains(done.Refused[0].Why, tt.refused) {
				t.Errorf("%s to %q: refused %v, want %q", tt.body, tt.sink, done.Refused, tt.refused)
			}
		}
		_, err := api.Publish(t.Context(), operate.Publication{Messages: outgoing(put("a", 1)), Sink: "nowhere"})
		if !errors.Is(err, operate.ErrInput) {
			t.Errorf("to a sink that does not exist: %v", err)
		}
	})
}

// explained returns the explanation of a document, for each sink.
func explained(t *testing.T, api operate.API, key shard.DocID) []operate.Explanation {
	t.Helper()
	x := usecasetest.Must(api.Explain(t.Context(), key))(t)
	return append([]operate.Explanation{x}, x.Others...)
}

func TestADocumentIsExplainedForEachSink(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		remote := g.fanOut()
		g.commit(g.hold("one", put("a", 2)), `{"title":"v2"}`)
		remote.commit(remote.hold("two", put("a", 1)), `{"title":"v1"}`)
		remote.hold("three", put("a", 2))
		for key, want := range map[shard.DocID][]string{
			"content#a":        {"content#a search fresh", "content@remote#a remote waiting"},
			"content@search#a": {"content#a search fresh"},
			"content@remote#a": {"content@remote#a remote waiting"},
		} {
			var got []string
			for _, x := range explained(t, api, key) {
				got = append(got, string(x.Key)+" "+x.Sink+" "+string(x.State))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: got %q, want %q", key, got, want)
			}
		}
		for key, want := range map[shard.DocID]string{"content#a": "search 2", "content@remote#a": "remote 1"} {
			if d, err := api.Get(t.Context(), key); err != nil || d.Sink+" "+d.Version != want {
				t.Errorf("%s: got %s %s, %v, want %s", key, d.Sink, d.Version, err, want)
			}
		}
		g.commit(g.hold("five", put("b", 7)), `{"title":"v7"}`)
		remote.commit(remote.hold("six", put("b", 7)), `{"title":"v7"}`)
		for text, want := range map[string]string{"v1": "remote", "v2": "search", "v7": ""} {
			found, err := api.Search(t.Context(), operate.Search{Text: text})
			if err != nil || len(found.Hits) != 1 || want != "" && found.Hits[0].Sink != want {
				t.Errorf("%s: found %+v, %v: want one hit, in sink %q", text, found.Hits, err, want)
			}
		}
		if _, err := api.Reconcile(t.Context(), operate.ReconcileOrder{Collection: "content", By: "ann"}); err == nil ||
			!strings.Contains(err.Error(), "search, remote: name one") {
			t.Errorf("reconcile of no sink: %v, want both to be named", err)
		}
		res, err := api.Reconcile(t.Context(), operate.ReconcileOrder{Collection: "content", By: "ann", Sink: "remote"})
		if err != nil || res.Rows != 2 || res.Documents != 2 {
			t.Errorf("reconcile of one: %+v, %v: want two rows and two documents", res, err)
		}
	})
}

func TestAnOrderAboutADocumentIsAboutAllOfItsSinks(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		remote := g.fanOut()
		own := shard.DocID("content@remote#a")
		g.commit(g.hold("one", absurd("a")), `{}`)
		remote.commit(remote.hold("two", absurd("a")), `{}`)
		done, err := api.Reset(t.Context(), operate.ResetOrder{Key: "content#a", To: "100", By: "ann"})
		if err != nil || len(done.Others) != 1 || done.Others[0].Key != own || !g.rig.Row(own).Committed.IsFloor() {
			t.Fatalf("reset: %+v, %v, and the row %+v", done, err, g.rig.Row(own))
		}
		g.hold("three", put("a", 200))
		remote.hold("four", put("a", 200))
		usecasetest.Must(api.Cancel(t.Context(), operate.Cancellation{Key: own, By: "ann"}))(t)
		if g.rig.Row(own).Pending != "" || g.rig.Row("content#a").Pending == "" {
			t.Errorf("cancelled for one sink: %+v, %+v", g.rig.Row("content#a"), g.rig.Row(own))
		}
		usecasetest.Must(api.Cancel(t.Context(), operate.Cancellation{Key: "content#a", By: "ann"}))(t)
		if g.rig.Row("content#a").Pending != "" {
			t.Errorf("cancelled for all: %+v", g.rig.Row("content#a"))
		}
		letters, err := api.Letters(t.Context(), operate.LetterFilter{})
		if err != nil || len(letters) != 2 {
			t.Errorf("dead letters %+v, %v: want one of each sink", letters, err)
		}
		for _, id := range []flight.ID{"one", "two", "three", "four"} {
			usecasetest.OK(t, g.flights.Delete(t.Context(), id))
		}
		forgotten, err := forgets(t.Context(), api, operate.Forgetting{Key: own, By: "ann"})
		if err != nil || forgotten.Remaining != 0 {
			t.Fatalf("forget: %+v, %v", forgotten, err)
		}
		for _, row := range []shard.DocID{"content#a", own} {
			if !g.rig.Row(row).Committed.IsFinal() {
				t.Errorf("%s: row %+v, want it to be forgotten", row, g.rig.Row(row))
			}
		}
		for _, s := range []*ground{g, remote} {
			if _, there, _ := s.sink.Get(t.Context(), "content#a"); there {
				t.Error("a sink has it still")
			}
		}
		g.hold("five", put("b", 3))
		remote.hold("six", put("b", 3))
		g.rig.Write(shard.Claim(shard.Bid{
			Doc: "content@remote#b", Key: g.rig.Row("content@remote#b").Pending, Token: "b", Now: micros(),
			Until: micros().Add(time.Minute),
		}))
		if c, err := api.Cancel(t.Context(), operate.Cancellation{Key: "content#b", By: "ann"}); err == nil ||
			!strings.Contains(err.Error(), "the version is being written") {
			t.Errorf("cancelled for one sink, and the other one writes it: %+v, %v, want it told", c, err)
		}
	})
}

func TestAKeyWithoutASinkSelectsTheDeadLettersOfAllSinks(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		remote := g.fanOut()
		g.Config.Debounce.MinInterval = 0
		g.die(put("a", 3), deadletter.RejectedBySink)
		remote.die(put("a", 3), deadletter.RejectedBySink)
		e := g.rig.EventOf(put("a", 2)) // its sink is gone from the settings
		l := deadletter.New(queue.Message{ID: "m", Body: put("a", 2)}, deadletter.Cancelled, "", e.Doc.In("gone"), e.Key, 0,
			time.Now())
		l.Sink, l.Lane = "gone", string(flight.Live)
		usecasetest.Must(g.rig.Letters.Park(t.Context(), l))(t)
		g.die(put("b", 3), deadletter.RejectedBySink)
		for key, want := range map[shard.DocID]int{
			"content#a": 3, "content@search#a": 1, "content@remote#a": 1, "content@gone#a": 1, "content#c": 0,
		} {
			letters, err := api.Letters(t.Context(), operate.LetterFilter{Key: key})
			if err != nil || len(letters) != want {
				t.Errorf("%s: %+v, %v, want %d", key, letters, err, want)
			}
		}
		for i, x := range explained(t, api, "content#a") {
			if len(x.Letters) != 1 || x.Letters[0].Key != x.Key {
				t.Errorf("explained %d: %+v, want the dead letter of this sink", i, x.Letters)
			}
		}
		forgotten, err := forgets(t.Context(), api, operate.Forgetting{Key: "content#a", By: "ann"})
		if want := "dead letters 3/3"; err != nil || !strings.Contains(places(forgotten), want) {
			t.Errorf("forgotten: %s, %v, want %s, those of the added sink and of the one that is gone too", places(forgotten), err, want)
		}
		if letters, err := api.Letters(t.Context(), operate.LetterFilter{}); err != nil || len(letters) != 1 {
			t.Errorf("after forget: %+v, %v, want that of the other document only", letters, err)
		}
	})
}

// A typing error in the name of a sink must not forget another document.
func TestAKeyWithASinkThatItsCollectionDoesNotHaveIsRefused(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.fanOut()
		g.commit(g.hold("one", put("a", 1)), `{}`)
		for _, key := range []shard.DocID{"content@nowhere#a", "far@search#a"} {
			errs := map[string]error{}
			_, errs["explain"] = api.Explain(t.Context(), key)
			_, errs["get"] = api.Get(t.Context(), key)
			_, errs["cancel"] = api.Cancel(t.Context(), operate.Cancellation{Key: key, By: "ann"})
			_, errs["reset"] = api.Reset(t.Context(), operate.ResetOrder{Key: key, To: "0", By: "ann"})
			_, errs["forget"] = forgets(t.Context(), api, operate.Forgetting{Key: key, By: "ann"})
			for name, err := range errs {
				if !errors.Is(err, operate.ErrInput) || !strings.Contains(err.Error(), "is in sink") {
					t.Errorf("%s %s: %v, want the sinks that there are", name, key, err)
				}
			}
		}
		if g.rig.Row("content#a").Committed.IsFinal() {
			t.Error("the document was forgotten")
		}
	})
}

// A sink that was added gets what the first one has, tombstones too, and nothing that is older than
// what came to it meanwhile.
func TestABackfillBringsAnAddedSinkWhatTheFirstOneHas(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		remote := g.fanOut()
		ids := []string{"a", "both", "newer", "gone", "waits", "lost"}
		for _, id := range ids {
			g.commit(g.hold(flight.ID("one-"+id), put(id, 2)), `{"title":"v2"}`)
		}
		remote.commit(remote.hold("two", put("both", 2)), `{"title":"v2"}`)
		remote.commit(remote.hold("three", put("newer", 3)), `{"title":"v3"}`)
		g.hold("four", put("waits", 3)) // the sink remote did not get this version
		gone := g.rig.EventOf(`{"type":"doc.deleted","subject":"gone","sequence":"3"}`)
		l := shard.Lease{Doc: gone.Doc, Key: gone.Key, Token: "delete", At: micros()}
		g.rig.Write(shard.Admit(shard.Admission{
			Doc: l.Doc, Key: l.Key, Class: gone.Class, Flight: "five", Now: micros(),
		}))
		g.rig.Write(shard.Claim(shard.Bid{
			Doc: l.Doc, Key: l.Key, Token: l.Token, Now: l.At, Until: l.At.Add(time.Second),
		}))
		g.rig.Write(shard.Commit(l, shard.Delete, micros(), time.Now().Add(time.Hour).Unix(), g.rig.Row(l.Doc)))
		g.sink.Write(t.Context(), []sink.Op{{Doc: gone.Doc, Kind: shard.Delete, Fence: shard.Fence(l.At), Key: l.Key}})
		g.sink.Write(
			t.Context(),
			[]sink.Op{{Doc: "content#lost", Kind: shard.Delete, Fence: shard.Fence(micros()) + 1}},
		)

		g.Clock = clock.Skewed{Clock: clock.System{}, By: time.Hour} // nothing was written a moment ago
		order := operate.BackfillOrder{Collection: "content", Sink: "remote", By: "ann", Limit: 2}
		fill := func(order operate.BackfillOrder) (map[string]int, []operate.BackfillLine) {
			t.Helper()
			return backfilled(t, api, order)
		}
		want := map[string]int{operate.Copied: 3, operate.There: 2, operate.InMotion: 1, operate.Differs: 1}
		look := order
		look.DryRun = true
		if got, _ := fill(look); !maps.Equal(got, want) || g.rig.Row("content@remote#a").Exists() {
			t.Errorf("a dry run: %v, want %v and nothing changed", got, want)
		}
		got, lines := fill(order)
		if !maps.Equal(got, want) || len(lines) != 1 || lines[0].Key != "content@remote#lost" {
			t.Errorf("%v, want %v; named %+v", got, want, lines)
		}
		for id, version := range map[string]string{"a": "2", "both": "2", "newer": "3", "gone": "", "waits": "2", "lost": ""} {
			s, _, err := remote.sink.Get(t.Context(), shard.DocID("content#"+id))
			if err != nil || s.Version != version {
				t.Errorf("%s: the added sink holds version %q, %v, want %q", id, s.Version, err, version)
			}
		}
		row, first := g.rig.Row("content@remote#gone"), g.rig.Row("content#gone")
		if row.Committed != first.Committed || row.CommittedOp != shard.Delete || row.Owner != "" ||
			row.ExpiresAt == 0 {
			t.Errorf("tombstone %+v, want that of %+v, settled", row, first)
		}
		late := g.rig.EventOf(put("gone", 1))
		if shard.Judge(row, late.Key, late.Class, false) != shard.Stale {
			t.Error("an older put would bring the document back")
		}
		want = map[string]int{operate.There: 4, operate.InMotion: 1, operate.Differs: 1}
		if got, _ := fill(order); !maps.Equal(got, want) {
			t.Errorf("once more: %v, want %v", got, want)
		}
		usecasetest.Must(api.Pause(t.Context(), operate.PauseOrder{Sink: "remote", By: "ann"}))(t)
		order.Cursor = ""
		step, err := api.Backfill(t.Context(), order)
		if err == nil || !strings.Contains(err.Error(), "remote is paused") {
			t.Errorf("into a sink that is paused: %+v, %v, want it refused", step, err)
		}
		for _, bad := range []operate.BackfillOrder{
			{Collection: "content", Sink: "remote"},
			{Collection: "content", Sink: "search", By: "ann"},
			{Collection: "far", Sink: "remote", By: "ann"},
			{Collection: "content", Sink: "nowhere", By: "ann"},
		} {
			if _, err := api.Backfill(t.Context(), bad); !errors.Is(err, operate.ErrInput) {
				t.Errorf("%+v: %v, want it refused", bad, err)
			}
		}
	})
}

// A copy that has begun keeps older versions out, and no flight completes it. So the step that
// began it does not end, unless the sink refuses the document for its own fault.
func TestABackfillDoesNotGoOnBesideACopyThatHasBegun(t *testing.T) {
	for name, tt := range map[string]struct {
		answer sink.Outcome
		goesOn bool
	}{
		"no answer": {sink.Outcome{Kind: sink.Unknown, Reason: "time-out"}, false},
		"settings":  {sink.Outcome{Kind: sink.Configuration, Reason: "security_exception"}, false},
		"refused":   {sink.Outcome{Kind: sink.Refused, Reason: "mapping"}, true},
		"rejected":  {sink.Outcome{Kind: sink.Rejected, Reason: "mapping"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			everyWay(t, func(t *testing.T, g *ground, api operate.API) {
				remote := g.fanOut()
				g.commit(g.hold("one", put("a", 2)), `{"title":"v2"}`)
				g.Sinks["remote"] = answering{g.Sinks["remote"], tt.answer}
				g.Clock = clock.Skewed{Clock: clock.System{}, By: time.Hour} // nothing was written a moment ago
				order := operate.BackfillOrder{Collection: "content", Sink: "remote", By: "ann"}
				step, err := api.Backfill(t.Context(), order)
				switch row := g.rig.Row("content@remote#a"); {
				case !reconcile.Copying(row):
					t.Errorf("row %+v: no copy has begun", row)
				case tt.goesOn && (err != nil || len(step.Lines) != 1 || step.Next == ""):
					t.Errorf("%+v, %v: want the document named, and the next step", step, err)
				case !tt.goesOn && (err == nil || !strings.Contains(err.Error(), "remote#a: its copy has begun")):
					t.Errorf("%+v, %v: want an error that names it", step, err)
				}
				g.Sinks["remote"] = remote.sink
				g.Clock = clock.Skewed{Clock: clock.System{}, By: 2 * time.Hour} // the lease is over
				usecasetest.Must(api.Backfill(t.Context(), order))(t)
				if row := g.rig.Row("content@remote#a"); reconcile.Copying(row) || row.Committed == "" {
					t.Errorf("row %+v: want the copy done by the same step", row)
				}
			})
		})
	}
}

// answering gives each write one answer, and writes nothing.
type answering struct {
	sink.Sink
	is sink.Outcome
}

func (s answering) Write(_ context.Context, ops []sink.Op) []sink.Outcome {
	return slices.Repeat([]sink.Outcome{s.is}, len(ops))
}

// Rows are kept for a month or so, and documents for ever: a document that did not change since
// then has no row.
func TestABackfillBringsDocumentsWhoseRowsAreGone(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		remote := g.fanOut()
		old := time.Now().Add(-2 * g.Config.Lifecycle.RowRetention)
		write := func(id string, at time.Time) {
			e := g.rig.EventOf(put(id, 2))
			out := g.sink.Write(t.Context(), []sink.Op{{
				Doc: e.Doc, Kind: shard.Put, Fence: shard.Fence(shard.MicrosOf(at)), Key: e.Key, Version: e.Version,
				At: at, Document: []byte(`{"title":"v2"}`),
			}})
			if out[0].Kind != sink.Applied {
				t.Fatalf("write: %+v", out)
			}
		}
		for _, id := range []string{"a", "b", "c", "newer", "waits", "again"} {
			write(id, old)
		}
		again := g.rig.EventOf(put("again", 3)) // it was a sink of the collection once, and lost its row since
		remote.sink.Write(t.Context(), []sink.Op{{
			Doc: again.Doc, Kind: shard.Put, Fence: 1, Key: again.Key, Version: "3", Document: []byte(`{}`),
		}})
		write("lost", time.Now().Add(-time.Hour)) // its row should be there
		write("dead", old)
		g.die(put("dead", 3), deadletter.RejectedBySink)
		g.hold("one", put("waits", 3))
		g.sink.Write(t.Context(), []sink.Op{{Doc: "far#a", Kind: shard.Put, Fence: 1, Key: g.rig.EventOf(put("a", 2)).Key}})
		g.commit(g.hold("two", put("young", 2)), `{"title":"v2"}`)
		remote.commit(remote.hold("three", put("newer", 3)), `{"title":"v3"}`)

		g.Clock = clock.Skewed{Clock: clock.System{}, By: time.Hour} // nothing was written a moment ago
		order := operate.BackfillOrder{Collection: "content", Sink: "remote", By: "ann", Limit: 2}
		fill := func(order operate.BackfillOrder) (map[string]int, []operate.BackfillLine) {
			t.Helper()
			return backfilled(t, api, order)
		}
		want := map[string]int{operate.Copied: 5, operate.There: 2, operate.InMotion: 1, operate.Differs: 1}
		look := order
		look.DryRun = true
		if got, lines := fill(look); !maps.Equal(got, want) || g.rig.Row("content@remote#a").Exists() {
			t.Errorf("a dry run: %v, want %v and nothing changed; named %+v", got, want, lines)
		}
		got, lines := fill(order)
		if !maps.Equal(got, want) || len(lines) != 1 || lines[0].Key != "content@remote#lost" {
			t.Errorf("%v, want %v; named %+v", got, want, lines)
		}
		for id, version := range map[string]string{
			"a": "2", "b": "2", "c": "2", "dead": "2", "young": "2", "newer": "3", "again": "3", "waits": "", "lost": "",
		} {
			s, _, err := remote.sink.Get(t.Context(), shard.DocID("content#"+id))
			if err != nil || s.Version != version {
				t.Errorf("%s: the added sink holds version %q, %v, want %q", id, s.Version, err, version)
			}
		}
		want = map[string]int{operate.There: 7, operate.InMotion: 1, operate.Differs: 1}
		if got, _ := fill(order); !maps.Equal(got, want) {
			t.Errorf("once more: %v, want %v", got, want)
		}
	})
}

// backfilled does all steps of a backfill.
func backfilled(t *testing.T, api operate.API, order operate.BackfillOrder) (map[string]int, []operate.BackfillLine) {
	t.Helper()
	got, lines := map[string]int{}, []operate.BackfillLine(nil)
	for order.Cursor = ""; ; {
		step := usecasetest.Must(api.Backfill(t.Context(), order))(t)
		for outcome, n := range step.Outcomes {
			got[outcome] += n
		}
		lines = append(lines, step.Lines...)
		if order.Cursor = step.Next; order.Cursor == "" {
			return got, lines
		}
	}
}
