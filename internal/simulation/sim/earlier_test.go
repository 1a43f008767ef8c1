// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// earlier is the state of a simulated stack of an earlier build, after one minute under injected
// failures: commit b612699 wrote testdata/earlier.json.gz by the program testdata/earlier.go.txt.
type earlier struct {
	Seed     uint64
	Versions bool // the sink has versions
	// Rows are the rows as the stores in memory keep them, and Manifests the bytes of S3's objects.
	Rows      map[string]json.RawMessage
	Manifests map[string]json.RawMessage
	// Messages were in the queues, waiting or in flight. Their flights ended with the earlier build.
	Messages []struct {
		Body       string
		Attributes map[string]queue.Attribute
		Lane       string
	}
	Sink []struct {
		Doc      shard.DocID
		Version  string
		Key      string
		Fence    shard.Fence
		Document json.RawMessage
	}
}

// earlierStates reads the states.
func earlierStates(t testing.TB) (all []earlier) {
	t.Helper()
	file, err := os.Open("testdata/earlier.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(unpacked).Decode(&all); err != nil || len(all) == 0 {
		t.Fatalf("read %s: %d states, %v", file.Name(), len(all), err)
	}
	return all
}

// Each, Put, Delete and Flush make the state a keeper of the stores in memory, which read it.
func (e earlier) Each(room string, f func(key string, value []byte) error) error {
	of := map[string]map[string]json.RawMessage{"row": e.Rows, "manifest": e.Manifests}
	if room == "checkpoints" { // when the manifests were written
		newest := map[string]json.RawMessage{}
		for id := range e.Manifests {
			newest[id] = fmt.Appendf(nil, `{"Newest":%q}`, epoch.Format(time.RFC3339))
		}
		of[room] = newest
	}
	for _, key := range slices.Sorted(maps.Keys(of[room])) {
		if err := f(key, of[room][key]); err != nil {
			return err
		}
	}
	return nil
}

func (earlier) Put(string, string, any) {}
func (earlier) Delete(string, string)   {}
func (earlier) Flush()                  {}

// documents returns the documents that have a row.
func (e earlier) documents() (ids []shard.DocID) {
	for _, key := range slices.Sorted(maps.Keys(e.Rows)) {
		if !strings.HasPrefix(key, "!") {
			ids = append(ids, shard.DocID(key))
		}
	}
	return ids
}

// upgraded returns a simulated run of this build that begins with the state of an earlier build.
// The upstream continues with newer versions of every second document.
func upgraded(t testing.TB, seed uint64, e earlier, change ...func(*Options)) *World {
	t.Helper()
	cfg := settings(t, e.Versions, func(cfg *config.Config) { vary(seed, cfg) })
	var arrivals []Arrival
	for i, doc := range e.documents() {
		if i%2 == 0 {
			continue
		}
		for n := range 3 {
			body := fmt.Sprintf(`{"type":"doc.changed","subject":%q,"sequence":"%d","data":{"title":"new %d"}}`,
				doc.ID(), 1_000_000+n, n)
			at := time.Duration((seed+uint64(7*i+13*n))%90) * time.Second
			arrivals = append(arrivals, Arrival{At: at, Message: queue.Outgoing{Body: body}})
		}
	}
	InOrder(arrivals)
	w := begin(t, Options{
		Config: cfg, Seed: seed, Faults: Swarm, Upstream: Upstream{Arrivals: arrivals, Calm: 2 * time.Minute},
	}, change...)
	w.inherit(t, e)
	return w
}

// inherit puts the state of an earlier build into the stores, before anything has happened.
func (w *World) inherit(t testing.TB, e earlier) {
	t.Helper()
	if err := w.table.rows.Keep(e); err != nil {
		t.Fatal(err)
	}
	if err := w.flights.Flights.Keep(e); err != nil {
		t.Fatal(err)
	}
	p := w.pipes[0]
	has := map[shard.DocID]shard.OrderKey{}
	for _, s := range e.Sink {
		key, err := shard.ParseOrderKey(s.Key)
		if err != nil {
			t.Fatalf("the sink's key of %s: %v", s.Doc, err)
		}
		has[s.Doc] = key
		w.stored(t, p, sink.Op{
			Doc: s.Doc, Kind: shard.Put, Fence: s.Fence, Key: key, Version: s.Version, Document: s.Document,
		})
	}
	for _, doc := range e.documents() {
		row, l := w.table.row(doc), w.oracle.ledger(doc)
		l.committed, l.inSink, l.inSinkOp = row.Committed, has[doc], shard.Put
		if _, there := has[doc]; !there && row.CommittedOp == shard.Delete {
			l.inSink, l.inSinkOp = row.Committed, shard.Delete
			w.stored(t, p, sink.Op{Doc: doc, Kind: shard.Delete, Fence: shard.Fence(row.LastWrite), Key: row.Committed})
		}
	}
	for _, m := range e.Messages {
		q := p.live
		if m.Lane == "bulk" {
			q = p.bulk
		}
		if err := q.send(queue.Outgoing{Body: m.Body, Attributes: m.Attributes}); err != nil {
			t.Fatal(err)
		}
	}
}

// stored writes a document to the sink, as an earlier build did.
func (w *World) stored(t testing.TB, p *pipe, op sink.Op) {
	t.Helper()
	if out := p.engine.docs.Write(background, []sink.Op{op}); out[0].Kind != sink.Applied {
		t.Fatalf("store %s: %+v", op.Doc, out[0])
	}
}

// Earlier is the level of these runs, which exists only in tests.
const Earlier Level = "earlier"

// An upgrade finds the rows, manifests and messages of the earlier build, in the states that faults
// have left. Every promise holds, and the documents that the earlier build left pending are
// written.
func TestEveryPromiseHoldsAfterAnUpgrade(t *testing.T) {
	t.Parallel()
	states := earlierStates(t)
	pending, claimed, leased, wrote := 0, 0, 0, 0
	for w := range runs(t, 20*len(states), Earlier, func(seed uint64) *World {
		w := upgraded(t, seed, states[seed%uint64(len(states))])
		for doc := range w.oracle.docs {
			row := w.table.row(doc)
			pending += one(row.Pending > row.Committed)
			claimed += one(row.Claimed > row.Committed)
			leased += one(row.Leased(shard.MicrosOf(epoch)))
		}
		return w
	}) {
		for _, l := range w.oracle.docs {
			wrote += l.commits
		}
	}
	t.Logf("%d documents were pending, %d claimed, %d leased; %d commits", pending, claimed, leased, wrote)
	if pending == 0 || claimed == 0 || leased == 0 || wrote == 0 {
		t.Error("the states reach too little")
	}
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// The same mutants of the protocol fall in these runs as in the others. So the runs judge what this
// build does with the rows of the earlier one.
func TestMutantsFallAfterAnUpgrade(t *testing.T) {
	t.Parallel()
	if raceEnabled {
		t.Skip("one goroutine at a time runs")
	}
	states := earlierStates(t)
	within := map[string]uint64{ // seeds, with some margin
		"delete at hold": 10, "admit although committed": 10, "claim without lease": 300,
		"cap without claimed": 400, "release forgets claimed": 500, "commit waits for nobody": 10,
	}
	found := 0
	for _, m := range mutants {
		most, listed := within[m.name]
		if !listed {
			continue
		}
		found++
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			caught(t, most, func(seed uint64) *World {
				return m.broken(func(change func(*Options)) *World {
					return upgraded(t, seed, states[seed%uint64(len(states))], change)
				})
			})
		})
	}
	if found != len(within) {
		t.Errorf("%d of %d mutants exist", found, len(within))
	}
}
