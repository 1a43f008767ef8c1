// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// keeps configures the sink to use KEEP.
func keeps(c *config.Config) {
	s := c.Sinks["search"]
	s.Unchanged = sink.Keep
	c.Sinks["search"] = s
	openBucket(c)
}

// version returns a put of one version of a document, with the given title.
func version(id string, n int, title string) string {
	return fmt.Sprintf(`{"type":"doc.changed","subject":%q,"sequence":"%d","data":{"title": %q}}`, id, n, title)
}

// shown checks the key and title in the sink, and the committed version in the row.
func (b *bench) shown(id, version, title string, committed int) {
	b.Helper()
	b.holds(id, version)
	b.shows(id, `{"title":"`+title+`"}`)
	if got := b.Row(doc(id)).Committed.VersionText(); got != fmt.Sprint(committed) {
		b.Errorf("%s: committed %s, want %d", id, got, committed)
	}
}

// noGeneration is a sink that cannot name its index.
type noGeneration struct {
	sink.Sink
	answer string
	err    error
}

func (s noGeneration) Generation(context.Context, shard.Collection) (string, error) {
	return s.answer, s.err
}

func TestWhatTheSinkHasIsCommittedWithoutAWrite(t *testing.T) {
	resync := func(body string) queue.Outgoing {
		return queue.Outgoing{Body: body[:len(body)-1] + `,"mode":"resync","resyncrun":"00VHNCZB000000000000000001"}`}
	}
	raised := func(b *bench) {
		s := b.Config.Sinks["search"]
		s.Generation = "2"
		b.Config.Sinks["search"] = s
	}
	type row struct {
		// changes something after version 1 with the title A is committed and before version 3 is
		// held
		between func(b *bench)
		next    string         // version 3, if its title is not A again
		with    func(b *bench) // changes something before the turn of version 3
		kept    bool
		written int64 // number of requests for version 3, if it is not kept
	}
	usecasetest.Table(t, stage{cfg: keeps}.play, map[string]row{
		"the same bytes":       {kept: true},
		"the same bytes twice": {kept: true, between: func(b *bench) { b.fly(b.hold(version("a", 2, "A")), 1) }},
		"spelt with other space": {
			kept: true, next: `{"type":"doc.changed","subject":"a","sequence":"3","data": { "title" : "A" } }`,
		},
		"other bytes": {next: version("a", 3, "B"), written: 1},
		"other bytes between": {
			between: func(b *bench) { b.fly(b.hold(version("a", 2, "B")), 1) }, written: 1,
		},
		"a delete between": {between: func(b *bench) {
			b.fly(b.hold(`{"type":"doc.deleted","subject":"a","sequence":"2"}`), 1)
		}, written: 1},
		"a write without an answer between": {between: func(b *bench) {
			b.sink.Script(doc("a"), memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Unknown}, Apply: true})
			b.turn(b.hold(version("a", 2, "B")))
		}, written: 1},
		"a write that was refused between": {between: func(b *bench) {
			b.sink.Script(doc("a"), refuse(sink.Rejected))
			b.fly(b.hold(version("a", 2, "B")), 2)
			b.Noted(journal.DeadLettered, 1)
		}, written: 1},
		"an index created again":                 {between: func(b *bench) { b.sink.Recreate() }, written: 1},
		"a generation that was raised":           {between: raised, written: 1},
		"a collection that always writes":        {between: writesAll, written: 1},
		"an older build wrote between":           {between: olderBuild, written: 1},
		"a sink without generations":             {with: answers(noGeneration{}), written: 1},
		"a sink that does not answer":            {with: answers(noGeneration{err: errors.New("away")}), written: 1},
		"a row that was collected":               {between: collect, written: 1},
		"the row changes: another flight writes": {with: leasedMeanwhile, written: 1},
		"the answer is lost":                     {with: failing(fault.FailAfter, 1), kept: true},
		"the table does not answer":              {with: failing(fault.FailBefore, 20), kept: true},
	}, func(b *bench, tt row) {
		b.fly(b.hold(version("a", 1, "A")), 1)
		if tt.between != nil {
			tt.between(b)
		}
		time.Sleep(time.Minute) // a lease that was not released ends
		next := tt.next
		if next == "" {
			next = version("a", 3, "A")
		}
		s := b.hold(next)
		before, kept := b.sink.Counts().Requests, len(b.Notes.Of(journal.Kept))
		if tt.with != nil {
			tt.with(b)
		}
		b.fly(s, 20)
		if got := b.sink.Counts().Requests - before; got != tt.written {
			b.Errorf("%d requests, want %d", got, tt.written)
		}
		r := b.Row(doc("a"))
		notes := b.Notes.Of(journal.Kept)[kept:]
		switch {
		case tt.kept != (len(notes) == 1):
			b.Errorf("noted %+v, want kept: %t", notes, tt.kept)
		case tt.kept:
			b.shown("a", "1", "A", 3)
			if notes[0].Old.Committed >= r.Committed || notes[0].Key != r.Committed {
				b.Errorf("noted %+v, want the row before KEEP", notes[0])
			}
		case tt.next != "":
			b.shown("a", "3", "B", 3)
		default:
			b.shown("a", "3", "A", 3)
		}
		if r.Pending != "" || r.Claimed != "" || r.Owner != "" || r.ExpiresAt == 0 {
			b.Errorf("row %+v, want no pending or claimed version and no lease", r)
		}
	})
	t.Run("an event of a resync", func(t *testing.T) {
		stage{cfg: keeps}.play(t, func(b *bench) {
			b.fly(b.hold(version("a", 1, "A")), 1)
			b.fly(b.holdOn(flight.Bulk, resync(version("a", 1, "A"))), 1)
			b.requests(2, "a resync writes whatever the row says")
			b.Noted(journal.Committed, 2)
			b.fly(b.hold(version("a", 2, "A")), 1)
			b.requests(2, "lull recognises what a resync wrote")
		})
	})
}

func collect(b *bench) { b.Change(doc("a"), func(r *shard.Row) { *r = shard.Row{Doc: r.Doc} }) }

func leasedMeanwhile(b *bench) {
	b.inject = at("KEEP", func() { b.leased(doc("a"), time.Second) })
}

func failing(how fault.Verdict, times int) func(b *bench) {
	return func(b *bench) { b.inject = fails("KEEP", how, times) }
}

// writesAll configures the collection so that it writes every version.
func writesAll(b *bench) {
	off := sink.Write
	b.Config.Collections = map[string]config.Collection{"content": {Unchanged: &off}}
}

// olderBuild commits version 2 as a build without KEEP does: such a build does not change content.
func olderBuild(b *bench) {
	content := b.Row(doc("a")).Content
	writesAll(b)
	b.fly(b.hold(version("a", 2, "B")), 1)
	b.Change(doc("a"), func(r *shard.Row) { r.Content = content })
	b.Config.Collections = nil
}

func answers(g noGeneration) func(b *bench) {
	return func(b *bench) {
		b.through = func(s sink.Sink) sink.Sink { return noGeneration{s, g.answer, g.err} }
	}
}

// The older version of a burst that never ends is kept at the cap. Then a new burst begins, and its
// newest version is decided next.
func TestAnOlderVersionIsKeptAtTheCap(t *testing.T) {
	stage{cfg: keeps}.play(t, func(b *bench) {
		b.fly(b.hold(version("a", 1, "A")), 1)
		s := b.hold(version("a", 2, "A"))
		newer := b.hold(version("a", 3, "B"))
		time.Sleep(b.Config.Debounce.MaxWait + b.Config.Debounce.CapGrace + time.Second)
		began := b.Row(doc("a")).BurstStart
		b.turn(s)
		b.shown("a", "1", "A", 2)
		if r := b.Row(doc("a")); r.Pending.VersionText() != "3" || r.BurstStart <= began {
			b.Errorf("row %+v, want version 3 pending in a burst of its own", r)
		}
		b.fly(newer, 5)
		b.shown("a", "3", "B", 3)
		b.requests(2, "one for version 1, one for version 3")
		b.inQueue(0)
	})
}

// A payload by reference is loaded after CLAIM. lull compares it with the row as CLAIM found it.
func TestALoadedPayloadThatTheSinkHasIsNotSent(t *testing.T) {
	type row struct {
		between func(b *bench)
		content string
		sent    bool
	}
	usecasetest.Table(t, stage{cfg: keeps}.play, map[string]row{
		"the same bytes":         {content: "A"},
		"other bytes":            {content: "B", sent: true},
		"an index created again": {content: "A", between: func(b *bench) { b.sink.Recreate() }, sent: true},
		"a delete between":       {content: "A", between: func(b *bench) { b.fly(b.hold(`{"type":"doc.deleted","subject":"a","sequence":"2"}`), 1) }, sent: true},
		"a claim of an older build, which left content": {content: "A", between: func(b *bench) {
			b.Change(doc("a"), func(r *shard.Row) { r.Claimed, r.ClaimedWas = b.key("a", 2), shard.Lowest })
		}, sent: true},
	}, func(b *bench, tt row) {
		content := "A"
		b.objects(func(string) ([]byte, error) { return []byte(`{"title":"` + content + `"}`), nil })
		b.fly(b.hold(touched("a", 1)), 1)
		if tt.between != nil {
			tt.between(b)
		}
		before := b.sink.Counts().Requests
		content = tt.content
		b.fly(b.hold(touched("a", 3)), 1)
		if sent := b.sink.Counts().Requests > before; sent != tt.sent {
			b.Errorf("sent %t, want %t", sent, tt.sent)
		}
		if tt.sent {
			b.shown("a", "3", tt.content, 3)
		} else {
			b.Noted(journal.Kept, 1)
			b.shown("a", "1", tt.content, 3)
		}
		if r := b.Row(doc("a")); r.Owner != "" || r.Claimed != "" || r.Content == "" {
			b.Errorf("row %+v, want no lease and no claimed version, and the content recorded", r)
		}
		before = b.sink.Counts().Requests
		b.fly(b.hold(touched("a", 4)), 1)
		if b.sink.Counts().Requests != before {
			b.Error("the next version with the same bytes was sent")
		}
	})
}

// After KEEP the sink's copy has an older version than the row. lull can still use that copy to
// find out the cause of a refusal.
func TestADocumentThatWasKeptIsAskedAboutARefusal(t *testing.T) {
	for _, versions := range []bool{true, false} {
		t.Run(fmt.Sprint("versions ", versions), func(t *testing.T) {
			stage{cfg: keeps, noVers: !versions}.play(t, func(b *bench) {
				b.fly(b.hold(version("a", 1, "A")), 1)
				b.fly(b.hold(version("a", 2, "A")), 1)
				b.sink.SetRule(
					func(op sink.Op) (memorysink.Answer, bool) { return refuse(sink.Rejected), op.Version == "3" },
				)
				b.turn(b.hold(version("a", 3, "B")))
				b.requests(3, "two requests for documents, one for the copy")
				b.Noted(journal.DeadLettered, 1) // the sink accepted the copy, so the document is at fault
				b.shown("a", "1", "A", 2)
			})
		})
	}
}

// A turn asks the sink only once which index it has, whatever the number of documents.
func TestATurnAsksOnceWhichIndexItIs(t *testing.T) {
	stage{cfg: keeps}.play(t, func(b *bench) {
		asked := 0
		b.inject = usecasetest.On("_settings", func(fault.Op) {
			asked++
		})
		s := b.hold(version("a", 1, "A"), version("b", 1, "B"), version("c", 1, "C"))
		b.Change(doc("c"), func(r *shard.Row) { r.Attempts = 3 }) // sent in a separate request
		b.fly(s, 1)
		if asked != 1 {
			b.Errorf("asked the sink %d times which index it has, want once", asked)
		}
		b.fly(b.hold(`{"type":"doc.deleted","subject":"a","sequence":"2"}`), 1)
		if asked != 1 {
			b.Errorf("asked the sink for its index because of a delete")
		}
	})
}
