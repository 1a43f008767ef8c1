// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/pipeline/usecasetest"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/shard"
)

// listed are the documents of all pages, as "key state pending", and the notes.
func listed(t *testing.T, api operate.API, f operate.DocumentFilter) (lines, notes []string) {
	t.Helper()
	for range 1000 {
		p := usecasetest.Must(api.Documents(t.Context(), f))(t)
		if f.Limit > 0 && len(p.Documents) > f.Limit {
			t.Fatalf("a page of %d documents, want %d at most", len(p.Documents), f.Limit)
		}
		for _, d := range p.Documents {
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", d.Key, d.State, d.Pending)))
		}
		notes = append(notes, p.Notes...)
		if f.Cursor = p.Next; f.Cursor == "" {
			return lines, notes
		}
	}
	t.Fatal("the list does not end")
	return nil, nil
}

// documents makes one of each: fresh, dead, waiting and scheduled, and a dead letter without a row.
func (g *ground) documents() {
	g.Helper()
	g.commit(g.hold("01A", put("fresh", 1)), `{"title":"v1"}`)
	g.die(put("dead", 3), deadletter.RejectedBySink)
	g.hold("01B", put("waits", 4))
	e := g.rig.EventOf(put("later", 5))
	if err := g.Schedule.Put(g.Context(), schedule.Item{
		ID: "s", Doc: e.Doc, Key: e.Key, NotBefore: time.Now().Add(time.Hour), Sink: "search", Lane: flight.Live,
	}); err != nil {
		g.Fatal(err)
	}
	l := deadletter.New(queue.Message{ID: "m", Body: put("rowless", 7)}, deadletter.Contract, "data: missing",
		"content#rowless", g.rig.EventOf(put("rowless", 7)).Key, 0, time.Now())
	usecasetest.Must(g.rig.Letters.Park(g.Context(), l))(g)
}

func TestDocumentsAreListedByStateWithoutAScan(t *testing.T) {
	t.Parallel()
	const cannot = "need a scan"
	for name, tt := range map[string]struct {
		filter   operate.DocumentFilter
		memory   []string // where the rows are in memory
		deployed []string
		note     string // of a deployed stack
	}{
		"all": {
			memory: []string{
				"content#dead dead 3", "content#fresh fresh", "content#later scheduled 5", "content#rowless dead 7",
				"content#waits waiting 4",
			},
			deployed: []string{"content#waits waiting 4"}, note: cannot,
		},
		"what waits": {
			filter: operate.DocumentFilter{State: operate.StateWaiting},
			memory: []string{"content#waits waiting 4"}, deployed: []string{"content#waits waiting 4"}, note: cannot,
		},
		"what is claimed": {filter: operate.DocumentFilter{State: operate.StateClaimed}, note: cannot},
		"what is dead, with a row or without": {
			filter:   operate.DocumentFilter{State: operate.StateDead},
			memory:   []string{"content#dead dead 3", "content#rowless dead 7"},
			deployed: []string{"content#dead dead 3", "content#rowless dead 7"},
		},
		"what is scheduled": {
			filter: operate.DocumentFilter{State: operate.StateScheduled},
			memory: []string{"content#later scheduled 5"}, deployed: []string{"content#later scheduled 5"},
		},
		"what is fresh": {
			filter: operate.DocumentFilter{State: operate.StateFresh},
			memory: []string{"content#fresh fresh"}, note: cannot,
		},
		"another collection": {filter: operate.DocumentFilter{Collection: "far"}, note: cannot},
		"a part of a key": {
			filter: operate.DocumentFilter{Contains: "WAI"},
			memory: []string{"content#waits waiting 4"}, deployed: []string{"content#waits waiting 4"}, note: cannot,
		},
		"a part of a key of the dead": {
			filter: operate.DocumentFilter{Contains: "less", State: operate.StateDead},
			memory: []string{"content#rowless dead 7"}, deployed: []string{"content#rowless dead 7"},
		},
		"a key": {
			filter: operate.DocumentFilter{Key: "content#fresh"},
			memory: []string{"content#fresh fresh"}, deployed: []string{"content#fresh fresh"},
		},
		"the key of a dead letter without a row": {
			filter: operate.DocumentFilter{Key: "content#rowless"},
			memory: []string{"content#rowless dead 7"}, deployed: []string{"content#rowless dead 7"},
		},
		"a scheduled key": {
			filter: operate.DocumentFilter{Key: "content#later"},
			memory: []string{"content#later scheduled 5"}, deployed: []string{"content#later scheduled 5"},
		},
		"a key in another state": {filter: operate.DocumentFilter{Key: "content#fresh", State: operate.StateDead}},
		"an unknown key":         {filter: operate.DocumentFilter{Key: "content#<script>../%2f#\U0001f600"}},
	} {
		t.Run(name, func(t *testing.T) {
			everyWay(t, func(t *testing.T, g *ground, api operate.API) {
				g.documents()
				scans := &counted{Scanner: g.rig.Shards}
				g.Scanner = scans
				got, notes := listed(t, api, tt.filter)
				if !slices.Equal(slices.Sorted(slices.Values(got)), tt.deployed) || scans.n > 0 {
					t.Errorf("deployed: got %q and %d scans, want %q and none", got, scans.n, tt.deployed)
				}
				if said := strings.Contains(strings.Join(notes, ""), cannot); said != (tt.note != "") {
					t.Errorf("deployed: notes %q", notes)
				}
				g.Rows = g.rig.Shards.All()
				if got, notes = listed(t, api, tt.filter); !slices.Equal(got, tt.memory) || len(notes) > 0 {
					t.Errorf("in memory: got %q and notes %q, want %q and none", got, notes, tt.memory)
				}
			})
		})
	}
}

// counted counts the scans.
type counted struct {
	shard.Scanner
	n int
}

func (c *counted) Scan(ctx context.Context, segment, segments int, cursor string, limit int) ([]shard.Row, string,
	error,
) {
	c.n++
	return c.Scanner.Scan(ctx, segment, segments, cursor, limit)
}

func TestDocumentsComePageByPage(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ flights, each, limit int }{
		"many small flights":                           {230, 1, 50},
		"a page ends within a flight":                  {4, 25, 10},
		"a page ends with a flight":                    {4, 10, 10},
		"one at a time":                                {5, 3, 1},
		"more than one answer looks at, in one flight": {1, 1500, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := setup(t)
			for f := range tt.flights {
				var records []flight.Record
				for n := range tt.each {
					e := g.rig.EventOf(put(fmt.Sprintf("d-%03d-%04d", f, n), 1))
					id := flight.ID(fmt.Sprintf("01%03d", f))
					g.rig.Write(shard.Admit(shard.Admission{
						Doc: e.Doc, Key: e.Key, Class: e.Class, Flight: string(id), Now: micros(),
					}))
					records = append(records, flight.Record{
						Message: queue.Message{ID: string(e.Doc)}, Events: []flight.Entry{{Doc: e.Doc, Key: e.Key}},
					})
				}
				if err := g.flights.Put(t.Context(), &flight.Manifest{
					Schema: flight.SchemaVersion, Flight: flight.ID(fmt.Sprintf("01%03d", f)), Records: records,
				}); err != nil {
					t.Fatal(err)
				}
			}
			for _, g.Rows = range []iter.Seq[shard.Row]{nil, g.rig.Shards.All()} {
				got, _ := listed(t, g.API(), operate.DocumentFilter{Limit: tt.limit})
				n, want := len(slices.Compact(slices.Sorted(slices.Values(got)))), tt.flights*tt.each
				if n != want || n != len(got) {
					t.Errorf("in memory %t: %d documents, %d different, want %d", g.Rows != nil, len(got), n, want)
				}
			}
		})
	}
}

func TestAWaitingDocumentSaysWhenItIsDueAndHowMuchWaits(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.hold("01A", put("a", 1))
		g.hold("01B", put("a", 2))
		for _, g.Rows = range []iter.Seq[shard.Row]{nil, g.rig.Shards.All()} {
			p, err := api.Documents(t.Context(), operate.DocumentFilter{State: operate.StateWaiting})
			if err != nil || len(p.Documents) != 1 {
				t.Fatalf("got %+v, %v", p, err)
			}
			d := p.Documents[0]
			if d.Held != 2 || d.Pending != "2" || d.Due.IsZero() || d.Began.IsZero() || d.Flight != "01B" ||
				d.Quiet != g.Config.Debounce.Quiet || d.MaxWait != g.Config.Debounce.MaxWait {
				t.Errorf("in memory %t: got %+v", g.Rows != nil, d)
			}
		}
		rows, err := api.Documents(t.Context(), operate.DocumentFilter{})
		if err != nil || rows.Counts[operate.StateWaiting] != 1 || len(rows.Counts) != 1 {
			t.Errorf("counts %v, %v", rows.Counts, err)
		}
	})
}

// Each document is counted in one state, and a list by that state has it. So the counts do not
// contradict the lists.
func TestTheCountsAreThoseOfTheLists(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.documents()
		g.Rows = g.rig.Shards.All()
		for _, filter := range []operate.DocumentFilter{
			{}, {State: operate.StateFresh}, {Contains: "e"}, {Collection: "far"},
		} {
			counts := usecasetest.Must(api.Documents(t.Context(), filter))(t).Counts
			sum := 0
			for _, state := range operate.ListedStates() {
				f := filter
				f.State = state
				lines, _ := listed(t, api, f)
				if len(lines) != counts[state] {
					t.Errorf("%+v: %d documents are %s, and %d are listed", filter, counts[state], state, len(lines))
				}
				sum += counts[state]
			}
			filter.State = ""
			if all, _ := listed(t, api, filter); len(all) != sum {
				t.Errorf("%+v: %d documents are counted, and %d are listed: %q", filter, sum, len(all), all)
			}
		}
	})
}

// A list and the explanation of a document have one definition of its state, and of the cause why
// it waits.
func TestAListSaysWhyADocumentWaitsAsItsExplanationDoes(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.documents()
		same := func(key shard.DocID, state operate.State, cause string) {
			t.Helper()
			for _, g.Rows = range []iter.Seq[shard.Row]{nil, g.rig.Shards.All()} {
				x := usecasetest.Must(api.Explain(t.Context(), key))(t)
				p := usecasetest.Must(api.Documents(t.Context(), operate.DocumentFilter{Key: key}))(t)
				d := p.Documents[0]
				if x.State != state || d.State != x.Listed || d.Wait == nil || *d.Wait != *x.Wait ||
					d.Wait.State != state || d.Wait.Cause != cause {
					t.Errorf("%s: the list says %s, %+v; the explanation %s, %s, %+v; want %s because it %q", key, d.State, d.Wait,
						x.Listed, x.State, x.Wait, state, cause)
				}
			}
		}
		same("content#dead", operate.StateDead, "dead letter: rejected")
		same("content#rowless", operate.StateDead, "dead letter: contract")
		same("content#later", operate.StateScheduled, "version 5 is scheduled")
		same("content#waits", operate.StateWaiting, "waits until it is quiet")
		now := micros()
		g.rig.Write(shard.Write{Doc: shard.HealthRow("search"), Update: []shard.Action{
			{Verb: shard.Set, Attr: shard.AttrOpenUntil, Val: shard.Value{
				Kind: shard.KindNumber, Num: int64(now.Add(time.Minute)),
			}},
			{Verb: shard.Set, Attr: shard.AttrLastError, Val: shard.Value{
				Kind: shard.KindString, Text: "no_connection",
			}},
		}})
		same("content#waits", operate.StateOpen, "waits for the sink, which is unhealthy (no_connection)")
		usecasetest.Must(api.Pause(t.Context(), operate.PauseOrder{Sink: "search", By: "ann", Why: "upgrade"}))(t)
		same("content#waits", operate.StatePaused, "waits for the sink, which ann paused (upgrade)")
	})
}

func TestDocumentsRefusesAWrongFilter(t *testing.T) {
	everyWay(t, func(t *testing.T, _ *ground, api operate.API) {
		for name, tt := range map[string]struct {
			filter operate.DocumentFilter
			names  string
		}{
			"a state":         {operate.DocumentFilter{State: "tired"}, "waiting, claimed, dead"},
			"a limit":         {operate.DocumentFilter{Limit: 1001}, "limit"},
			"a negative one":  {operate.DocumentFilter{Limit: -1}, "limit"},
			"a collection":    {operate.DocumentFilter{Collection: "../x"}, "collection"},
			"a key":           {operate.DocumentFilter{Key: "no-collection"}, "key"},
			"another list's":  {operate.DocumentFilter{Cursor: "01A+x"}, "cursor"},
			"a negative page": {operate.DocumentFilter{Cursor: "01A+-2"}, "cursor"},
		} {
			_, err := api.Documents(t.Context(), tt.filter)
			if !errors.Is(err, operate.ErrInput) || !strings.Contains(fmt.Sprint(err), tt.names) {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
}
