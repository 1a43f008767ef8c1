// SPDX-License-Identifier: Apache-2.0

package deadletter

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/lullhq/lull/internal/seam/queue"
)

func TestDeadLetterIsNamedByVersionOrByBody(t *testing.T) {
	t.Parallel()
	k1, k2 := key(t, "1"), key(t, "2")
	ids := map[string]string{
		"one version":                         ID("content#1", k1, "x"),
		"another version":                     ID("content#1", k2, "x"),
		"another document":                    ID("content#2", k1, "x"),
		"undecodable":                         ID("", "", Hash("x", nil)),
		"undecodable, other body":             ID("", "", Hash("y", nil)),
		"undecodable, of a source":            ID("", "", Hash("x", source("a"))),
		"of another source":                   ID("", "", Hash("x", source("b"))),
		"a body like a body and its source":   ID("", "", Hash("xlull-sourceStringa", nil)),
		"a longer document and a shorter key": ID("content#1"+"\x00", k1[1:], "x"),
		"a body that equals document and key": ID("", "", Hash("content#1"+string(k1), nil)),
	}
	seen := map[string]string{}
	for name, id := range ids {
		if other, ok := seen[id]; ok {
			t.Errorf("%q and %q share an id", name, other)
		}
		seen[id] = name
		if len(id) != 32 {
			t.Errorf("%q: id %q, want 32 digits", name, id)
		}
	}
	if a, b := ID("content#1", k1, "x"), ID("content#1", k1, "another body"); a != b {
		t.Errorf("one version got ids %s and %s", a, b)
	}
	if a, b := ID("content#1", "", Hash("x", nil)), ID("", "", Hash("x", nil)); a != b {
		t.Errorf("a body without a key got ids %s and %s", a, b)
	}
	copied := map[string]queue.Attribute{queue.AttrFirstSent: queue.Text("1"), AttrLetter: queue.Text("{}")}
	if a, b := Hash("x", nil), Hash("x", copied); a != b || a != "748146a475bacc89c079835ac719ed23" {
		t.Errorf("a message and its copy have the hashes %s and %s, want the hash of earlier versions", a, b)
	}
}

func source(name string) map[string]queue.Attribute {
	return map[string]queue.Attribute{queue.AttrSource: queue.Text(name)}
}

// A message with many faulty events is hashed only once.
func TestAMakerHashesItsMessageOnce(t *testing.T) { //nolint:paralleltest // it counts allocations
	m := queue.Message{ID: "m", Body: strings.Repeat("x", queue.MaxBytes/2), Attributes: source("s3")}
	maker := Of(m)
	first := maker.New(Contract, "a", "", "", 0, time.Now())
	if first.ID != Hash(m.Body, m.Attributes) || first.ID != maker.Hash() {
		t.Errorf("id %s, want the hash %s", first.ID, Hash(m.Body, m.Attributes))
	}
	if n := testing.AllocsPerRun(100, func() { maker.New(Contract, "a", "", "", 1, time.Now()) }); n > 0 {
		t.Errorf("another dead letter takes %g allocations, so it hashed the message again", n)
	}
	if k := Of(m); k.New(Refusals, "", "content#1", key(t, "1"), 0, time.Now()).ID == "" || k.hash != "" {
		t.Errorf("a version's dead letter hashed the message: %q", k.hash)
	}
}

func TestDetailIsCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "short", strings.Repeat("ä", 200), "x" + strings.Repeat("😀", 100),
		strings.Repeat("\xff", 300), "\xff",
	} {
		got := cut(s)
		if len(got) > MaxDetail || !utf8.ValidString(got) {
			t.Errorf("cut(%d bytes) has %d bytes, valid %t", len(s), len(got), utf8.ValidString(got))
		}
		if len(s) > MaxDetail && utf8.ValidString(s) && len(got) < MaxDetail-3 {
			t.Errorf("cut(%d bytes) has %d bytes only", len(s), len(got))
		}
	}
}

func TestCopyCarriesWhenItsFirstWasSent(t *testing.T) {
	t.Parallel()
	attrs := attributes(3)
	attrs[AttrLetter] = queue.Text("{}")
	out, err := Copy("b", attrs, sent, 1500*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Attributes) != 4 || len(attrs) != 4 {
		t.Errorf("copy has %d attributes, original %d; want 4 and 4", len(out.Attributes), len(attrs))
	}
	if _, ok := out.Attributes[AttrLetter]; ok {
		t.Error("the copy still is a dead letter")
	}
	if out.Delay != 2*time.Second {
		t.Errorf("delay %s, want 2s: whole seconds, rounded up", out.Delay)
	}
	// A later copy of the copy still has the time of the first message.
	m := queue.Message{Body: out.Body, Attributes: out.Attributes, Sent: sent.Add(time.Hour)}
	if got := m.FirstSent(); !got.Equal(sent) {
		t.Errorf("first sent %s, want %s", got, sent)
	}
}

func TestCopyWithoutRoomForItsAgeIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := Copy("b", attributes(10), sent, 0); !errors.Is(err, queue.ErrTooLarge) {
		t.Errorf("ten attributes: got %v, want ErrTooLarge", err)
	}
	if _, err := Copy(strings.Repeat("x", queue.MaxBytes), nil, sent, 0); !errors.Is(err, queue.ErrTooLarge) {
		t.Errorf("1 MiB: got %v, want ErrTooLarge", err)
	}
	again := attributes(9)
	again[queue.AttrFirstSent] = queue.Text("1")
	if _, err := Copy("b", again, sent, 0); err != nil {
		t.Errorf("a copy of a copy: error %v, want none", err)
	}
}

func TestRedrivenDeadLetterShowsAsParkedAfterItsRetention(t *testing.T) {
	t.Parallel()
	const retention = 14 * 24 * time.Hour
	f := Facts{State: Redriven, RedrivenAt: sent}
	if got := f.Shown(sent.Add(retention-1), retention); got != Redriven {
		t.Errorf("before: got %s, want redriven", got)
	}
	if got := f.Shown(sent.Add(retention), retention); got != Parked {
		t.Errorf("after: got %s, want parked", got)
	}
}
