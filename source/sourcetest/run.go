// SPDX-License-Identifier: Apache-2.0

package sourcetest

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/config/yamlfile"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/source"
)

// Options says what the suite tests.
type Options struct {
	// Settings is the text of a lull.yaml, with a source for each way in which the kind can be set
	// up.
	Settings string
	// Messages is the path of the file of messages. Empty means "testdata/decode.txt". Each case is
	// a message for one source and its results, including every byte of the order key and the
	// document:
	//
	//	decode source=NAME [attributes=(name,value,...)] [sent=2026-11-20T16:00:00Z]
	//	<body>
	//	----
	//	<a line for each event>
	//
	// go test -rewrite writes the expectations again: read the difference.
	Messages string
	// Load fetches the body of a message that is a pointer to S3. Nil refuses pointers.
	Load source.Loader
}

// Sent is when every message of the suite was sent, unless its case says otherwise.
var Sent = time.UnixMilli(1795190400123).UTC() // 2026-11-20T16:00:00.123Z

// suite is the sources of a settings file, and the messages that the suite decodes with them.
type suite struct {
	*source.Set
	config config.Config
	seeds  []event.Message
}

// New builds the sources of a settings file.
func New(t testing.TB, settings string) *source.Set {
	t.Helper()
	return newSuite(t, Options{Settings: settings}).Set
}

func newSuite(t testing.TB, o Options) *suite {
	t.Helper()
	c, err := yamlfile.Parse([]byte(o.Settings))
	if err != nil {
		t.Fatalf("read the settings: %v", err)
	}
	for name, s := range c.Sources { // allow messages of the suite to name their source
		s.Match = append(s.Match, source.Match{Named: true})
		c.Sources[name] = s
	}
	set, err := source.New(&c)
	if err != nil {
		t.Fatalf("build the sources: %v", err)
	}
	return &suite{Set: set.WithLoader(o.Load), config: c}
}

// Message returns a message for a source.
func Message(source, body string) event.Message {
	return event.Message{
		ID: "m-1", Body: body, Sent: Sent,
		Attributes: map[string]event.Attribute{queue.AttrSource: queue.Text(source)},
	}
}

// Run tests a kind.
func Run(t *testing.T, o Options) {
	t.Helper()
	s := newSuite(t, o)
	datadriven.RunTest(t, cmp.Or(o.Messages, "testdata/decode.txt"), s.decode)
	s.checkExamples(t)
	bySource := make(map[string][]event.Message)
	for _, m := range s.seeds {
		name := m.Attributes[queue.AttrSource].String
		bySource[name] = append(bySource[name], m)
	}
	for name, seeds := range bySource {
		t.Run("source="+name, func(t *testing.T) {
			t.Parallel()
			s.checkConcurrent(t, seeds)
			for _, m := range seeds {
				s.check(t, m)
				s.checkEnvelopes(t, m)
				s.checkVariants(t, m)
			}
		})
	}
}

// checkConcurrent decodes the same messages with one source from several goroutines.
func (s *suite) checkConcurrent(t *testing.T, seeds []event.Message) {
	t.Helper()
	var wg sync.WaitGroup
	for _, m := range seeds {
		want := s.render(m)
		for range 4 {
			wg.Go(func() {
				if got := s.render(m); got != want {
					t.Errorf("decode %q concurrently: got %s, want %s", m.Body, got, want)
				}
			})
		}
	}
	wg.Wait()
}

// decode runs one case of the file.
func (s *suite) decode(t *testing.T, d *datadriven.TestData) string {
	var name string
	d.ScanArgs(t, "source", &name)
	m := Message(name, d.Input)
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "attributes":
			for pair := range slices.Chunk(a.Vals, 2) {
				m.Attributes[pair[0]] = queue.Text(pair[1])
			}
		case "sent":
			at, err := time.Parse(time.RFC3339, a.Vals[0])
			if err != nil {
				d.Fatalf(t, "read sent: %v", err)
			}
			m.Sent = at
		}
	}
	s.seeds = append(s.seeds, m)
	return s.render(m)
}

// Fuzz decodes bodies that the fuzzer chooses with every source of the settings. The seeds are the
// bodies in the file of messages.
func Fuzz(f *testing.F, o Options) {
	f.Helper()
	text, err := os.ReadFile(cmp.Or(o.Messages, "testdata/decode.txt"))
	if err != nil {
		f.Fatalf("read the seeds: %v", err)
	}
	for c := range strings.SplitSeq(string(text), "\n----\n") {
		f.Add(c[strings.LastIndexByte(c, '\n')+1:])
	}
	s := newSuite(f, o)
	names := slices.Sorted(maps.Keys(s.config.Sources))
	f.Fuzz(func(t *testing.T, body string) {
		for _, name := range names {
			s.check(t, Message(name, body))
		}
	})
}
