// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"slices"
	"testing"

	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// epoch sets the epoch of the source, as after a restore of its database.
func (b *bench) epoch(n uint32) {
	b.Helper()
	native := b.Config.Sources["native"]
	native.Epoch = n
	b.Config.Sources["native"] = native
	b.Sources = usecasetest.Must(source.New(&b.Config))(b)
}

// After a restore the counter of the source begins at low numbers again, in a new epoch.
func TestALowVersionOfANewEpochIsNewerThanAHighOneBefore(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		sink, export uint32 // epochs
		inSink       int    // versions
		exported     int
		want         string
	}{
		"the sink has the epoch before":   {0, 1, 5, 3, "0 older"},
		"the export has the epoch before": {1, 0, 3, 5, "0 newer"},
	} {
		t.Run(name, func(t *testing.T) {
			usecasetest.Story(t, func(t *testing.T) {
				b := open(t)
				b.epoch(tt.sink)
				b.have("a", tt.inSink, shard.Put, tt.inSink, `{"title":"as the sink has it"}`)
				b.epoch(tt.export)
				if got := b.check("content", false, usecasetest.Put("a", tt.exported)); !slices.Equal(got, []string{tt.want}) {
					t.Errorf("got %v, want %s", got, tt.want)
				}
			})
		})
	}
}

func TestAnEventThatIsThereTwiceHasItsVerdictWhereItComesFirst(t *testing.T) {
	usecasetest.Story(t, func(t *testing.T) {
		b := open(t)
		b.have("a", 5, shard.Put, 5, `{"title":"v5"}`)
		if got := b.check("content", false, usecasetest.Put("a", 5), usecasetest.Put("a", 5)); !slices.Equal(got,
			[]string{"0 same"}) {
			t.Errorf("got %v", got)
		}
	})
}

// The row has a newer version than the delete, but the sink has a document of another writer.
func TestADocumentThatIsWrittenByHandUndoesADelete(t *testing.T) {
	usecasetest.Story(t, func(t *testing.T) {
		b := open(t)
		b.have("a", 6, shard.Put, 0, `{"title":"by hand"}`)
		got := b.check("content", false, `{"type":"doc.deleted","subject":"a","sequence":"5"}`)
		if !slices.Equal(got, []string{"0 undone"}) {
			t.Errorf("got %v", got)
		}
	})
}
