package archive_test

import (
	"context"
	"encoding/base64"
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

// bodies returns the bodies in an object, nil if there is no such object.
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

// A message that cannot be decoded may be about the document too. Its object is named if it
// contains the id, also in base64.
func TestForgetNamesWhatHasTheIDAndIsNotDecoded(t *testing.T) {
	t.Parallel()
	rig := usecasetest.Open(t, nil)
	s := memory.NewArchive(clock.System{}, 24*time.Hour)
	var names []archive.Name
	for i, body := range []string{
		`{"subject":"alice"`, `{"data":"` + base64.StdEncoding.EncodeToString([]byte(`{"subject":"alice"`)) + `"`,
		`{"subject":"bob"`, usecasetest.Put("alice", 1),
	} {
		packed := usecasetest.Must(archive.Encode([]queue.Message{{ID: "m", Body: body}}))(t)
		names = append(names, archive.Parts{
			Received: time.Now().Add(time.Duration(i) * time.Second), Lane: flight.Live, Sink: "search", ID: "ID",
		}.Name())
		usecasetest.OK(t, s.Put(t.Context(), names[i], packed))
	}
	f := archive.Forgetter{Store: s, Sources: rig.Sources, Skip: func(sink string) bool { return sink == "search" }}
	got, err := f.Forget(t.Context(), usecasetest.Doc("alice"), false)
	if err != nil || got.Messages+len(got.Named)+got.Undecoded != 0 {
		t.Errorf("of other sinks: %+v, %v", got, err)
	}
	f.Skip = nil
	got, err = f.Forget(t.Context(), usecasetest.Doc("alice"), false)
	if err != nil || got.Messages != 1 || got.Undecoded != 1 || !slices.Equal(got.Named, names[:2]) {
		t.Errorf("got %+v, %v", got, err)
	}
}
