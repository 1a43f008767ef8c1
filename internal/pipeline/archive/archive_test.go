// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"compress/gzip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 11, 22, 12, 0, 0, 123e6, time.UTC)

func TestMessagesComeBackByteForByte(t *testing.T) {
	t.Parallel()
	want := []queue.Message{
		{ID: "1", Sent: noon, ReceiveCount: 1, Body: `{"title":"größer <b> & \u2028"}`},
		{ID: "2", Sent: noon, ReceiveCount: 1, Body: "not UTF-8: \xff\x00\n", Attributes: map[string]queue.Attribute{
			"a": queue.Text("text\n"), "b": {Type: "String", String: "\xfe"}, "c": {Type: "Binary", Binary: []byte{0, 1}},
		}},
		{ID: "3", Sent: noon, ReceiveCount: 1},
	}
	object, err := Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := Encode(want)
	got, err := Decode(object)
	if err != nil || !reflect.DeepEqual(got, want) || !bytes.Equal(object, again) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if empty, err := Encode(nil); err != nil {
		t.Error(err)
	} else if got, err := Decode(empty); err != nil || len(got) > 0 {
		t.Errorf("got %v, %v, want no message", got, err)
	}
}

func zipped(text string) []byte {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	_, _ = zip.Write([]byte(text))
	_ = zip.Close()
	return out.Bytes()
}

func TestABrokenObjectIsAnError(t *testing.T) {
	t.Parallel()
	whole, err := Encode([]queue.Message{{ID: "1", Sent: noon, Body: "body"}, {ID: "2", Body: "other"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, object := range map[string][]byte{
		"empty": nil, "text": []byte("{}"), "cut off": whole[:len(whole)-9], "flipped": flipped(whole),
		"no header": zipped(""), "not JSON": zipped("{\"schema\":1}\nbody\n"), "half a line": zipped("{\"schema\":1}\n{\"id\""),
		"newer": zipped("{\"schema\":2}\n"), "no schema": zipped("{}\n"),
		"a bomb":          zipped("{\"schema\":1}\n" + strings.Repeat(" ", MaxBytes)),
		"a bomb of lines": zipped("{\"schema\":1}\n" + strings.Repeat("{}\n", MaxBytes/3)),
	} {
		if got, err := Decode(object); err == nil {
			t.Errorf("%s: got %d messages and no error", name, len(got))
		}
	}
}

func flipped(b []byte) []byte {
	b = slices.Clone(b)
	b[len(b)/2] ^= 0x40
	return b
}

func TestNamesSortByTimeAndSayWhatIsInside(t *testing.T) {
	t.Parallel()
	var names []Name
	for i, after := range []time.Duration{
		0, time.Millisecond, time.Second, time.Minute, time.Hour, 24 * time.Hour, 500 * 24 * time.Hour,
	} {
		p := Parts{Received: noon.Add(after), Lane: flight.Bulk, Sink: "news-2", Messages: i, ID: "01ABC"}
		if got, err := p.Name().Parts(); err != nil || got != p {
			t.Errorf("got %+v, %v, want %+v", got, err, p)
		}
		names = append(names, p.Name())
		if n := p.Name(); n < After(p.Received) || n >= After(p.Received.Add(time.Millisecond)) {
			t.Errorf("%s does not sort at its time", n)
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("got %q, want the names in the order of their times", names)
	}
	for _, n := range []Name{
		"", "x", "2026/11/22/12/0000.123_bulk_news_1", "2026/11/22/12/0000.123_other_news_1_ID",
		"2026/13/22/12/0000.123_bulk_news_1_ID", "2026/11/22/12/0000.123_bulk_news_-1_ID",
		"2026/11/22/12/0000.123_bulk_news_01_ID", "2026/11/22/12/0000.123_bulk_news_1_ID_x",
	} {
		if p, err := n.Parts(); err == nil {
			t.Errorf("%q: got %+v, want an error", n, p)
		}
	}
}

func FuzzDecode(f *testing.F) {
	whole, _ := Encode([]queue.Message{{ID: "1", Sent: noon, Body: "body"}})
	f.Add(whole)
	f.Fuzz(func(_ *testing.T, object []byte) { _, _ = Decode(object) })
}
