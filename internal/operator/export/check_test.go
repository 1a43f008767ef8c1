// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/export"
	"github.com/lullhq/lull/internal/pipeline/reconcile"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type bench struct {
	*usecasetest.Rig
	sink *memorysink.Sink
}

func open(t *testing.T) *bench {
	t.Helper()
	b := &bench{
		Rig: usecasetest.Open(t, func(c *config.Config) {
			c.Sinks = map[string]config.Sink{"search": {Kind: "memory"}}
			c.DefaultCollection = "content"
		}),
		sink: memorysink.New(clock.System{}, memorysink.Settings{Versions: true}),
	}
	time.Sleep(time.Hour) // virtual time, so that the test can use times before now
	return b
}

// have makes a row that committed a version ten minutes ago, and a document in the sink. Version 0
// makes no row, and an empty text makes no document. A document with version 0 in the sink has no
// version, like one of another writer.
func (b *bench) have(id string, row int, op shard.Operation, inSink int, document string) {
	b.Helper()
	if row > 0 {
		b.Change(usecasetest.Doc(id), func(r *shard.Row) {
			r.VersionClass, r.Committed, r.CommittedOp = shard.ClassInt, b.EventOf(usecasetest.Put(id, row)).Key, op
			r.LastWrite = shard.MicrosOf(time.Now().Add(-10 * time.Minute))
		})
	}
	if document == "" {
		return
	}
	write := sink.Op{
		Doc: usecasetest.Doc(id), Kind: shard.Put, Fence: shard.Fence(time.Now().Add(-10 * time.Minute).UnixMicro()),
		Document: []byte(document),
	}
	if inSink > 0 {
		write.Key, write.Version = b.EventOf(usecasetest.Put(id, inSink)).Key, fmt.Sprint(inSink)
	}
	if out := b.sink.Write(b.Context(), []sink.Op{write}); out[0].Kind != sink.Applied {
		b.Fatalf("write: %+v", out)
	}
}

func (b *bench) check(c shard.Collection, versions bool, bodies ...string) []string {
	b.Helper()
	checker := export.Checker{
		Looker: reconcile.Looker{
			Shards: b.Shards, Reader: b.sink, SinkName: "search", Config: &b.Config, Clock: clock.System{},
		},
		Sources: b.Sources, Collection: c, Versions: versions,
	}
	var messages []queue.Outgoing
	for _, body := range bodies {
		messages = append(messages, queue.Outgoing{Body: body})
	}
	got := usecasetest.Must(checker.Check(b.Context(), messages))(b)
	var texts []string
	for _, v := range got {
		texts = append(texts, fmt.Sprint(v.Message, " ", v.State))
	}
	return texts
}

func TestEachEventOfTheExportIsJudged(t *testing.T) {
	t.Parallel()
	const v5 = `{"title":"v5"}`
	put, del := usecasetest.Put("a", 5), `{"type":"doc.deleted","subject":"a","sequence":"5"}`
	for name, tt := range map[string]struct {
		row      int
		op       shard.Operation
		inSink   int
		document string
		event    string
		want     export.State
		change   func(r *shard.Row)
	}{
		"the same":                             {5, shard.Put, 5, v5, put, export.Same, nil},
		"the same in another order of members": {5, shard.Put, 5, `{ "title" : "v5" }`, put, export.Same, nil},
		"without a row any more":               {0, "", 5, v5, put, export.Same, nil},
		"a field was changed":                  {5, shard.Put, 5, `{"title":"V5"}`, put, export.Changed, nil},
		"a number was changed": {
			5, shard.Put, 5, `{"title":5.0}`, strings.Replace(put, `"v5"`, `5`, 1), export.Changed, nil,
		},
		"it was written over by hand":     {5, shard.Put, 0, `{"title":"v5"}`, put, export.Changed, nil},
		"it is missing":                   {5, shard.Put, 0, "", put, export.Missing, nil},
		"lull never heard of it":          {0, "", 0, "", put, export.Missing, nil},
		"it is older":                     {5, shard.Put, 4, `{"title":"v4"}`, put, export.Older, nil},
		"an event was lost, same content": {4, shard.Put, 4, v5, put, export.Older, nil},
		"kept, because nothing changed":   {5, shard.Put, 4, v5, put, export.Same, nil},
		"lull has a newer version":        {6, shard.Put, 6, `{"title":"v6"}`, put, export.Newer, nil},
		"lull has deleted it since":       {6, shard.Delete, 0, "", put, export.Newer, nil},
		"deleted at this very version":    {5, shard.Delete, 0, "", put, export.Missing, nil},
		"a delete, and it is deleted":     {5, shard.Delete, 0, "", del, export.Same, nil},
		"a delete of an unknown document": {0, "", 0, "", del, export.Same, nil},
		"a delete, and the sink has it":   {5, shard.Delete, 4, v5, del, export.Undone, nil},
		"a delete, then another writer":   {5, shard.Delete, 0, v5, del, export.Undone, nil},
		"a delete, and a newer put":       {6, shard.Put, 6, v5, del, export.Newer, nil},
		"not an event":                    {5, shard.Put, 5, v5, `{`, export.Invalid, nil},
		"leased": {4, shard.Put, 4, v5, put, export.Moving, func(r *shard.Row) {
			r.Owner, r.LeaseUntil = "index", usecasetest.Now().Add(time.Second)
		}},
		"written a moment ago": {5, shard.Put, 0, "", put, export.Moving, func(r *shard.Row) {
			r.LastWrite = usecasetest.Now()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			usecasetest.Story(t, func(t *testing.T) {
				b := open(t)
				b.have("a", tt.row, tt.op, tt.inSink, tt.document)
				if tt.change != nil {
					b.Change("content#a", tt.change)
				}
				if got := b.check("content", false, tt.event); !slices.Equal(got, []string{"0 " + string(tt.want)}) {
					t.Errorf("got %v, want %s", got, tt.want)
				}
			})
		})
	}
}

func TestWhatWaitsIsInMotion(t *testing.T) {
	usecasetest.Story(t, func(t *testing.T) {
		b := open(t)
		b.have("a", 4, shard.Put, 4, `{"title":"v4"}`)
		b.Admit(b.EventOf(usecasetest.Put("a", 5)))
		if got := b.check("content", false, usecasetest.Put("a", 5)); !slices.Equal(got, []string{"0 in_motion"}) {
			t.Errorf("got %v", got)
		}
	})
}

func TestTheNewestEventOfAPageCounts(t *testing.T) {
	usecasetest.Story(t, func(t *testing.T) {
		b := open(t)
		b.have("a", 5, shard.Put, 5, `{"title":"v5"}`)
		b.have("b", 3, shard.Put, 3, `{"title":"v3"}`)
		got := b.check("content", false, usecasetest.Put("a", 4), usecasetest.Put("b", 3), usecasetest.Put("a", 5),
			usecasetest.Put("b", 2), usecasetest.Put("a", 3))
		if want := []string{"1 same", "2 same"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if got := b.check("far", false, usecasetest.Put("a", 4)); !slices.Equal(got, []string{"0 skipped"}) {
			t.Errorf("an event of another collection: got %v, want it skipped", got)
		}
		b.have("c", 5, shard.Put, 5, `{"title":"as the engine keeps it"}`)
		if got := b.check("content", true, usecasetest.Put("c", 5)); !slices.Equal(got, []string{"0 same"}) {
			t.Errorf("versions only: %v", got)
		}
	})
}
