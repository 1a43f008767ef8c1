// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// A second collection is built next to the collection that readers use, while documents change:
// docs/rebuild.md says how.

// newCollection is the collection into which the documents are written again.
const newCollection = "content-v2"

// upstream is a publishing system. The type upstream knows the newest version of each document, and
// whether that version is a delete.
type upstream struct {
	s        *scene
	r        *rand.Rand
	versions []int
	gone     []bool
}

func (u *upstream) id(d int) string { return fmt.Sprint("doc-", d) }

// event returns the newest version of a document as a native event. mark contains additional
// fields, such as the collection.
func (u *upstream) event(d int, mark string) feed.Timed {
	kind, data := "doc.changed", fmt.Sprintf(`,"data":{"title":"version %d"}`, u.versions[d])
	if u.gone[d] {
		kind, data = "doc.deleted", ""
	}
	return message(fmt.Sprintf(`{"type":%q,"subject":%q,"sequence":"%d"%s%s}`, kind, u.id(d),
		u.versions[d], mark, data))
}

// change makes the next version of a random document and publishes it to the given collections. One
// of eight versions is a delete.
func (u *upstream) change(collections ...string) {
	d := u.r.IntN(len(u.versions))
	u.versions[d]++
	u.gone[d] = u.r.IntN(8) == 0
	for _, c := range collections {
		u.s.send(u.event(d, fmt.Sprintf(`,"collection":%q`, c)))
	}
}

// export returns the events that `lull resync --collection content-v2 --run RUN` would send for
// some documents.
func (u *upstream) export(run string, deletes bool, docs func(d int) bool) (out []feed.Timed) {
	for d := range u.versions {
		if docs(d) && (deletes || !u.gone[d]) {
			out = append(out, u.event(d, fmt.Sprintf(`,"collection":%q,"mode":"resync","resyncrun":%q`, newCollection,
				run)))
		}
	}
	return out
}

// is checks that a collection has the given versions of the documents.
func (u *upstream) is(collection string, versions []int, gone []bool) {
	u.s.t.Helper()
	for d, v := range versions {
		id := shard.DocID(collection + "#" + u.id(d))
		got, there, err := u.s.sink.Get(u.s.ctx, id)
		if err != nil {
			u.s.t.Fatal(err)
		}
		if there == gone[d] || there && got.Version != fmt.Sprint(v) {
			u.s.t.Errorf("%s: version %q, there %t; want %d, there %t", id, got.Version, there, v, !gone[d])
		}
		u.s.neverBack(id)
	}
}

func TestACollectionIsRebuiltBesideTheOneThatIsRead(t *testing.T) {
	const documents, changes = 80, 400
	const first, second = "00K0000000000000000000000A", "00K0000000000000000000000B"
	for name, twice := range map[string]bool{"every change published to both": true, "in two passes": false} {
		t.Run(name, func(t *testing.T) {
			stage{}.play(t, func(s *scene) {
				u := &upstream{
					s: s, r: rand.New(rand.NewPCG(1, 6)), versions: make([]int, documents),
					gone: make([]bool, documents),
				}
				for d := range documents {
					u.versions[d] = 1
					s.send(u.event(d, ""))
				}
				s.settle()
				// lull resync export.ndjson --collection content-v2, while documents change. Some
				// change before their old version is sent again.
				old := u.export(first, false, func(int) bool { return true })
				exported := append([]int(nil), u.versions...)
				into := []string{"content"}
				if twice {
					into = append(into, newCollection)
				}
				for n := range changes {
					if i := n - changes/4; i >= 0 && i%3 == 0 && i/3 < len(old) {
						s.send(old[i/3])
					}
					u.change(into...)
					s.wait(100 * time.Millisecond)
				}
				versions, gone := append([]int(nil), u.versions...), append([]bool(nil), u.gone...)
				if !twice {
					// From now on, the upstream publishes to the new collection. Then the upstream
					// sends all changes since the export, including deletes.
					for range changes / 20 {
						u.change(newCollection)
						s.wait(100 * time.Millisecond)
					}
					s.send(u.export(second, true, func(d int) bool { return u.versions[d] != exported[d] })...)
					for range changes / 20 {
						u.change(newCollection)
						s.wait(100 * time.Millisecond)
					}
				}
				r := s.settle()
				u.is("content", versions, gone)
				u.is(newCollection, u.versions, u.gone)
				if r.Dead > 0 {
					t.Errorf("%d dead letters, want none", r.Dead)
				}
				var live []time.Duration
				bulk := 0
				for _, n := range s.notes.Of(journal.Committed) {
					switch {
					case n.Lane == string(flight.Live):
						live = append(live, n.At.Sub(n.Sent))
					case strings.HasPrefix(string(n.Doc), newCollection+"#"):
						bulk++
					}
				}
				if got, promise := p99(live), s.e.cfg.Debounce.Quiet+s.e.cfg.Queues.Live.Window+
					time.Second; got > promise {
					t.Errorf("live freshness p99 %s, want at most %s", got, promise)
				}
				if bulk == 0 || len(live) < changes/4 {
					t.Errorf("%d writes of the resync beside %d live ones: nothing was rebuilt", bulk, len(live))
				}
			})
		})
	}
}
