// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
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

// mentions looks at the whole archive, two objects at a time.
func mentions(t *testing.T, f archive.Forgetter, id string) (all archive.Mentions) {
	t.Helper()
	for first := true; first || all.Next != ""; first = false {
		page := usecasetest.Must(f.Look(t.Context(), usecasetest.Doc(id), all.Next, 2))(t)
		if page.Looked > 2 {
			t.Errorf("read %d objects, want two at a time", page.Looked)
		}
		all.Objects, all.Unread = append(all.Objects, page.Objects...), append(all.Unread, page.Unread...)
		all.Named, all.Undecoded = append(all.Named, page.Named...), all.Undecoded+page.Undecoded
		all.Looked, all.Next = all.Looked+page.Looked, page.Next
	}
	return all
}

func TestForgetTakesEveryMessageAboutADocumentOut(t *testing.T) {
	t.Parallel()
	rig := usecasetest.Open(t, nil)
	s := memory.NewArchive(clock.System{}, 24*time.Hour)
	f := archive.Forgetter{Store: s, Sources: rig.Sources}
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
	got := mentions(t, f, "a")
	if got.Undecoded != 1 || got.Looked != 5 || !slices.Equal(got.Unread, []archive.Name{broken}) ||
		!slices.Equal(got.Objects, []archive.Messages{
			{Name: names[0], Messages: 1},
			{Name: names[2], Messages: 2},
			{Name: names[3], Messages: 2},
		}) {
		t.Errorf("got %+v", got)
	}
	if len(bodies(t, s, names[2])) != 2 {
		t.Error("a look removed something")
	}
	for range 2 { // a removal may be repeated
		for _, o := range got.Objects {
			usecasetest.OK(t, f.Remove(t.Context(), usecasetest.Doc("a"), o.Name))
		}
	}
	for i, want := range [][]string{{b1}, {b1}, nil, {b1, "not even JSON"}} {
		if got := bodies(t, s, names[i]); !slices.Equal(got, want) {
			t.Errorf("object %d: got %q, want %q", i, got, want)
		}
	}
	if got = mentions(t, f, "a"); len(got.Objects) != 0 {
		t.Errorf("got %+v, want nothing to forget a second time", got)
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
	got := mentions(t, archive.Forgetter{Store: s, Sources: rig.Sources}, "alice")
	if len(got.Objects) != 1 || got.Undecoded != 1 || !slices.Equal(got.Named, names[:2]) {
		t.Errorf("got %+v", got)
	}
}
