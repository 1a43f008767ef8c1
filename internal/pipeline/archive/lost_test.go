// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
)

// away is a store whose objects cannot be read now.
type away struct{ archive.Store }

var errAway = errors.New("no connection")

func (away) Get(context.Context, archive.Name) ([]byte, error) { return nil, errAway }

// The object may be about the document and may be readable later, so Forget must return an
// error.
func TestForgetFailsWhereAnObjectCannotBeReadNow(t *testing.T) {
	t.Parallel()
	rig := usecasetest.Open(t, nil)
	s := memory.NewArchive(clock.System{}, 24*time.Hour)
	name := archive.Parts{Received: time.Now(), Lane: flight.Live, Sink: "search", ID: "ID"}.Name()
	object := usecasetest.Must(archive.Encode([]queue.Message{{ID: "m", Body: usecasetest.Put("a", 1)}}))(t)
	usecasetest.OK(t, s.Put(t.Context(), name, object))
	f := archive.Forgetter{Store: away{s}, Sources: rig.Sources}
	got, err := f.Look(t.Context(), usecasetest.Doc("a"), "", 10)
	if !errors.Is(err, errAway) || len(got.Unread) != 0 || len(got.Objects) != 0 {
		t.Errorf("got %+v, %v, want the store's error", got, err)
	}
	if err := f.Remove(t.Context(), usecasetest.Doc("a"), name); !errors.Is(err, errAway) {
		t.Errorf("got %v, want the store's error", err)
	}
}

func TestAnObjectHasSoManyMessages(t *testing.T) {
	t.Parallel()
	full := make([]queue.Message, archive.MaxMessages)
	got, err := archive.Decode(usecasetest.Must(archive.Encode(full))(t))
	if err != nil || len(got) != len(full) {
		t.Errorf("%d messages, %v, want %d", len(got), err, len(full))
	}
	more := usecasetest.Must(archive.Encode(slices.Concat(full, []queue.Message{{}})))(t)
	if _, err := archive.Decode(more); err == nil {
		t.Error("got no error for one more")
	}
}

func TestASizeReachesFromTheFirstObjectToTheLast(t *testing.T) {
	t.Parallel()
	s := memory.NewArchive(clock.System{}, 24*time.Hour)
	first := time.Now().Truncate(time.Millisecond)
	for i := range 3 {
		at := first.Add(time.Duration(i) * time.Second)
		name := archive.Parts{Received: at, Lane: flight.Live, Sink: "search", Messages: 2, ID: "ID"}.Name()
		usecasetest.OK(t, s.Put(t.Context(), name, []byte("12345")))
	}
	last := first.Add(2 * time.Second)
	got, err := archive.Measure(t.Context(), s, first, last.Add(time.Second))
	if err != nil || got.Objects != 3 || got.Messages != 6 || got.Bytes != 15 || !got.First.Equal(first) ||
		!got.Last.Equal(last) {
		t.Errorf("got %+v, %v, want three objects from %s to %s", got, err, first, last)
	}
}
