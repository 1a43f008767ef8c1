package archive_test

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/archive"
	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/usecasetest"
)

// bodies are those of an object, nil where there is none.
func bodies(t *testing.T, s archive.Store, n archive.Name) (all []string) {
	t.Helper()
	_, msgs, err := archive.Read(t.Context(), s, n)
	if errors.Is(err, archive.ErrNotFound) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range msgs {
		all = append(all, m.Body)
	}
	return all
}

// pages is a store that lists two objects at a time.
type pages struct{ archive.Store }

func (p pages) List(ctx context.Context, after, before archive.Name, limit int) ([]archive.Object, bool, error) {
	return p.Store.List(ctx, after, before, min(limit, 2))
}

func TestForgetTakesEveryMessageAboutADocumentOut(t *testing.T) {
	t.Parallel()
	rig := usecasetest.Open(t, nil)
	s := memory.NewArchive(clock.System{}, 24*time.Hour)
	f := archive.Forgetter{Store: pages{s}, Sources: rig.Sources}
	a1, a2, b1 := usecasetest.Put("a", 1), usecasetest.Put("a", 2), usecasetest.Put("b", 1)
	both := `{"eventSource":"aws:rmq","rmqMessagesByQueue":{"q::/":[{"basicProperties":{},"data":"` +
		base64.StdEncoding.EncodeToString([]byte(a1)) + `"},{"basicProperties":{},"data":"` +
		base64.StdEncoding.EncodeToString([]byte(b1)) + `"}]}}`
	noVersion := `{"type":"doc.changed","subject":"a","data":{}}`
	var names []archive.Name
	for i, object := range [][]string{{a1, b1}, {b1}, {a1, a2}, {both, b1, "not even JSON", noVersion}} {
		var msgs []queue.Message
		for _, body := range object {
			msgs = append(msgs, queue.Message{ID: "m", Body: body})
		}
		packed := usecasetest.Must(archive.Encode(msgs))(t)
		names = append(names, archive.Parts{
			Received: time.Now().Add(time.Duration(i) * time.Second), Lane: flight.Live, Sink: "search", ID: "ID",
		}.Name())
		usecasetest.OK(t, s.Put(t.Context(), names[i], packed))
	}
	broken := names[3] + "x"
	usecasetest.OK(t, s.Put(t.Context(), broken, []byte("no object")))
	for _, dry := range []bool{true, false} {
		got, err := f.Forget(t.Context(), usecasetest.Doc("a"), dry)
		if err != nil || got.Messages != 5 || got.Undecoded != 1 ||
			!slices.Equal(got.Unread, []archive.Name{broken}) {
			t.Errorf("dry run %t: got %+v, %v", dry, got, err)
		}
		if dry && len(bodies(t, s, names[2])) != 2 {
			t.Error("a dry run removed something")
		}
	}
	for i, want := range [][]string{{b1}, {b1}, nil, {b1, "not even JSON"}} {
		if got := bodies(t, s, names[i]); !slices.Equal(got, want) {
			t.Errorf("object %d: got %q, want %q", i, got, want)
		}
	}
	if got, err := f.Forget(t.Context(), usecasetest.Doc("a"), false); err != nil || got.Messages != 0 {
		t.Errorf("got %+v, %v, want nothing to forget a second time", got, err)
	}
}
