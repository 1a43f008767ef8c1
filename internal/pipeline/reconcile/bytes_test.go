// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// content returns the digest that a row has for a document, if the document was put with that
// version and these bytes.
func (b *bench) content(id string, version int, document string) shard.Content {
	b.Helper()
	made := usecasetest.Must(b.sink.Generation(b.Context(), collection))(b)
	return shard.ContentOf(b.Config.Generation(collection, "search")+"\n"+made, b.key(id, version), []byte(document))
}

// After KEEP the row has a newer version than the sink's copy. If the row has a digest, the bytes
// decide.
func TestBytesDecideWhereTheRowHasThem(t *testing.T) {
	const same, other = `{"title":"x"}`, `{"title":"y"}`
	raise := func(b *bench) {
		s := b.Config.Sinks["search"]
		s.Generation = "2"
		b.Config.Sinks["search"] = s
	}
	type row struct {
		version int    // version in the sink, with the bytes x; the row has version 5
		bytes   string // the bytes of the digest in the row; empty for no digest
		op      shard.Operation
		ago     time.Duration // time since the copy was written; the row's last write is ten minutes ago
		change  func(b *bench)
		want    string
	}
	usecasetest.Table(t, play, map[string]row{
		"kept":                                   {version: 3, bytes: same, want: ""},
		"kept long after it was written":         {version: 3, bytes: same, ago: time.Hour, want: ""},
		"an older copy with other bytes":         {version: 3, bytes: other, ago: time.Hour, want: "a older resync"},
		"the last write, with other bytes":       {version: 3, bytes: other, want: "a older resync"},
		"a row without bytes":                    {version: 3, want: "a older resync"},
		"the same version, the same bytes":       {version: 5, bytes: same, want: ""},
		"the same version, other bytes":          {version: 5, bytes: other, want: "a changed resync"},
		"the same version, no digest in the row": {version: 5, want: ""},
		"another generation, the last write":     {version: 3, bytes: same, change: raise, want: "a older resync"},
		"another generation, an earlier write":   {version: 3, bytes: same, ago: time.Hour, change: raise, want: "a older resync"},
		"another generation, the same version":   {version: 5, bytes: other, change: raise, want: ""},
		"a delete, with an older digest":         {version: 3, bytes: same, op: shard.Delete, want: "a undone reasserted"},
		"an index created again": {version: 3, bytes: same, want: "a missing resync", change: func(b *bench) {
			b.sink.Recreate()
		}},
	}, func(b *bench, tt row) {
		if tt.ago == 0 {
			tt.ago = 10*time.Minute + 2*time.Second // the duration of a request
		}
		if tt.op == "" {
			tt.op = shard.Put
		}
		b.stored("a", tt.version, tt.ago)
		b.row("a", 5, tt.op, func(r *shard.Row) {
			if tt.bytes != "" {
				r.Content = b.content("a", 5, tt.bytes)
			}
		})
		if tt.change != nil {
			tt.change(b)
		}
		if _, err := b.run(); err != nil || strings.Join(b.reported(), "; ") != tt.want {
			b.Errorf("got %q (%v), want %q", b.reported(), err, tt.want)
		}
	})
}

// A change in the sink that does not change lull's mark is found in every document.
func TestDocumentsThatWereChangedBehindLullAreFound(t *testing.T) {
	play(t, func(b *bench) {
		var want []string
		for i := range 250 {
			id := fmt.Sprintf("doc-%03d", i)
			b.stored(id, 3, 10*time.Minute+time.Second)
			b.row(id, 3, shard.Put, func(r *shard.Row) { r.Content = b.content(id, 3, `{"title":"x"}`) })
			if i%50 == 7 {
				s, _, _ := b.sink.Get(b.Context(), usecasetest.Doc(id))
				b.sink.Write(b.Context(), []sink.Op{{
					Doc: s.Doc, Kind: shard.Put, Fence: s.Fence, Key: b.key(id, 3), Version: s.Version, At: s.Indexed,
					Document: []byte(`{"title":"changed"}`),
				}})
				want = append(want, id+" changed resync")
			}
		}
		if _, err := b.run(); err != nil || !slices.Equal(b.reported(), want) {
			b.Errorf("got %v (%v), want %v", b.reported(), err, want)
		}
	})
}
