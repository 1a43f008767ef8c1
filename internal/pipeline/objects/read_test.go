// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/shard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var wide = Limits{Lines: 1 << 40, Stop: func() bool { return false }, MaxLine: 1000, MaxText: 1 << 40}

// after returns a Stop that ends a slice after a number of calls.
func after(asked int) func() bool { return func() bool { asked--; return asked < 0 } }

// collect returns a Send that stores the lines.
func collect(to *[]Line) Send {
	return func(lines []Line) (map[int]string, error) {
		*to = append(*to, lines...)
		return nil, nil
	}
}

func TestEachLineIsAMessageOrAFault(t *testing.T) {
	t.Parallel()
	long := `{"a":"` + strings.Repeat("x", 1000) + `"}`
	for _, tt := range []struct {
		name, text string
		lines      []Line
		blank, all int64
		faults     []string // parts of the faults' texts
	}{
		{name: "nothing"},
		{name: "one line", text: `{"a":1}`, all: 1, lines: []Line{{1, 0, `{"a":1}`}}},
		{
			name: "line ends of any system, and blank lines", text: "{\"a\":1}\r\n\n  \t\n{\"a\":2} \n", all: 4, blank: 2,
			lines: []Line{{1, 0, `{"a":1}`}, {4, 14, `{"a":2}`}},
		},
		{name: "a byte order mark", text: "\ufeff{\"a\":1}\n{}", all: 2, lines: []Line{{1, 3, `{"a":1}`}, {2, 11, `{}`}}},
		{name: "files that were joined", text: "\ufeff{}\n\ufeff{}", all: 2, lines: []Line{{1, 3, `{}`}, {2, 9, `{}`}}},
		{
			name: "lines that are not JSON objects", text: "[\n{\"a\":1},\n]\n{\"a\":1}\n\"x\"\n", all: 5,
			lines: []Line{{4, 13, `{"a":1}`}},
			faults: []string{
				"line 1 at byte 0 is not", "line 2 at byte 2 is not", "line 3 at byte 11 is not", "line 5 at byte 21 is not",
			},
		},
		{
			name: "not UTF-8", text: "{\"a\":\"\xff\"}\n{}\n", all: 2, lines: []Line{{2, 10, `{}`}},
			faults: []string{"line 1 at byte 0 is not valid UTF-8"},
		},
		{
			name: "too long", text: "{}\n" + long + "\n{}\n" + long, all: 4, lines: []Line{{1, 0, "{}"}, {3, 1012, "{}"}},
			faults: []string{"line 2 at byte 3 has more than 1000 bytes", "line 4 at byte 1015 has more"},
		},
		{
			name: "a line of many megabytes", text: strings.Repeat("x", 3<<20) + "\n{}", all: 2,
			lines: []Line{{2, 3<<20 + 1, "{}"}}, faults: []string{"line 1 at byte 0 has more than"},
		},
	} {
		for name, data := range map[string][]byte{"plain": []byte(tt.text), "gzip": pack(t, gzip.BestSpeed, tt.text)} {
			var got []Line
			p, err := Read(bytes.NewReader(data), Progress{}, wide, collect(&got))
			if err != nil || !p.Done || !slices.Equal(got, tt.lines) || p.Lines != tt.all || p.Blank != tt.blank ||
				p.Sent != int64(len(tt.lines)) || p.Faults != int64(len(tt.faults)) || p.Text != int64(len(tt.text)) {
				t.Errorf("%s, %s: %+v, %+v, %v", tt.name, name, got, p, err)
			}
			for i, want := range tt.faults {
				if !strings.Contains(p.First[i].String(), want) || !strings.Contains(p.Problem(), want) {
					t.Errorf("%s, %s: %q, want %q", tt.name, name, p.Problem(), want)
				}
			}
		}
	}
}

// inParts reads an object in slices. A slice ends at a random place, or when the connection breaks.
// Between the slices, inParts keeps only the text that a row would keep.
func inParts(t *testing.T, data []byte, l Limits, dice *rand.Rand) (lines []Line, p Progress) {
	t.Helper()
	for kept := ""; !p.Done; kept = p.String() {
		var err error
		if p, err = Parse(kept); err != nil {
			t.Fatal(err)
		}
		l.Lines = int64(1 + dice.IntN(400))
		l.Stop = after(dice.IntN(5))
		in := io.Reader(bytes.NewReader(data[p.At.From:]))
		if dice.IntN(3) == 0 {
			broken := iotest.ErrReader(errors.New("the connection is broken"))
			in = io.MultiReader(io.LimitReader(in, dice.Int64N(200_000)), broken)
		}
		before := p
		p, err = Read(in, p, l, collect(&lines))
		if Final(err) || p.Text < before.Text || p.Lines < before.Lines {
			t.Fatalf("%v; from %+v to %+v", err, before, p)
		}
	}
	return lines, p
}

func TestAnObjectIsReadInParts(t *testing.T) {
	t.Parallel()
	dice := rand.New(rand.NewPCG(7, 7))
	var text strings.Builder
	for i := range 2000 {
		switch dice.IntN(40) {
		case 0:
			text.WriteString(strings.Repeat("\n", dice.IntN(100)))
		case 1:
			text.WriteString(strings.Repeat("long ", dice.IntN(40_000)) + "\n")
		case 2:
			text.WriteString("broken\n")
		default:
			fmt.Fprintf(&text, `{"id":%d,"text":"%s"}`+"\n", i, strings.Repeat("a", dice.IntN(900)))
		}
	}
	for name, data := range map[string][]byte{
		"plain": []byte(text.String()), "gzip": pack(t, gzip.DefaultCompression, text.String()),
		"members": pack(t, gzip.BestSpeed, text.String()[:50_000], text.String()[50_000:]),
	} {
		var want []Line
		whole, err := Read(bytes.NewReader(data), Progress{}, wide, collect(&want))
		if err != nil || len(want) < 1500 {
			t.Fatalf("%s: got %d lines, error %v", name, len(want), err)
		}
		for range 2 {
			got, p := inParts(t, data, wide, dice)
			if !slices.Equal(got, want) || p.String() != whole.String() {
				t.Errorf("%s: %d lines in parts, %d at once; %+v, %+v", name, len(got), len(want), p, whole)
			}
		}
	}
}

// A hostile object neither fills the memory nor makes a slice endless.
func TestAHostileObjectIsBounded(t *testing.T) {
	t.Parallel()
	bomb := pack(t, gzip.BestCompression, strings.Repeat("\x00", 16<<20))
	reads := 0
	p := Progress{}
	for ; !p.Done && reads < 1000; reads++ {
		l := wide
		l.Stop = after(64)
		var err error
		if p, err = Read(bytes.NewReader(bomb[p.At.From:]), p, l, collect(new([]Line))); err != nil {
			t.Fatal(err)
		}
		if len(p.String()) > 100_000 {
			t.Fatalf("the row would have %d bytes", len(p.String()))
		}
	}
	if p.Faults != 1 || reads < 3 || reads > 100 {
		t.Errorf("a bomb was read in %d slices: %+v", reads, p)
	}
	limited := wide
	limited.MaxText = 1 << 20
	p, err := Read(bytes.NewReader(bomb), Progress{}, limited, collect(new([]Line)))
	if !Final(err) || p.Done || p.Text > 2<<20 {
		t.Errorf("more text than allowed: %+v, %v", p, err)
	}
	for name, tt := range map[string]struct {
		data  []byte
		blank int64
	}{
		"empty lines":          {bytes.Repeat([]byte("\n"), 1_000_000), 1_000_000},
		"members without text": {bytes.Repeat(pack(t, gzip.BestSpeed, ""), 10_000), 0},
	} {
		p, err := Read(bytes.NewReader(tt.data), Progress{}, wide, collect(new([]Line)))
		if err != nil || !p.Done || p.Blank != tt.blank {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

func TestWhatCannotBeSentIsReadAgain(t *testing.T) {
	t.Parallel()
	away := errors.New("the queue is away")
	p, err := Read(strings.NewReader("{}\n{}\n"), Progress{Version: "A"}, wide,
		func([]Line) (map[int]string, error) { return nil, away })
	if !errors.Is(err, away) || p.Lines != 0 || p.Done {
		t.Errorf("got %+v, %v; want the progress unchanged", p, err)
	}
	p, err = Read(strings.NewReader("{}\n{\"a\":1}\n{}\n"), Progress{}, wide,
		func([]Line) (map[int]string, error) {
			return map[int]string{1: "has a character that no queue takes"}, nil
		})
	if err != nil || p.Sent != 2 || !strings.Contains(p.Problem(), "line 2 at byte 3 has a character") {
		t.Errorf("got %+v, %v; want one fault", p, err)
	}
}

func TestARowDecidesWhatAMessageOfAnObjectMeans(t *testing.T) {
	t.Parallel()
	const now = shard.Micros(1e15)
	there := Progress{Version: "0055AED6DCD90281E5", Part: 3}
	for _, tt := range []struct {
		name    string
		row     Progress
		version string
		part    int
		moved   shard.Micros
		want    Next
	}{
		{"nothing was read", Progress{}, "0055AED6DCD90281E5", 0, 0, Begin},
		{"a newer object", there, "0055AED6DCD90281E6", 0, now, Begin},
		{"a newer object with a shorter sequencer", there, "0056", 0, now, Begin},
		{"an older object", there, "0055AED6DCD90281E4", 9, 0, Superseded},
		{"the next part", there, there.Version, 3, now, GoOn},
		{"a part whose message was stored before it was counted", there, there.Version, 4, now, GoOn},
		{"an earlier part, which was sent twice", there, there.Version, 2, now, Passed},
		{"an earlier part, and the row has not changed for long", there, there.Version, 0, now.Add(-idle), GoOn},
		{"read to its end", Progress{Version: "00", Done: true}, "00", 0, now, ReadBefore},
		{"aborted", Progress{Version: "00", Aborted: "ann"}, "00", 0, now, WasAborted},
	} {
		if got, err := Decide(tt.row, tt.version, tt.part, tt.moved, now); err != nil || got != tt.want {
			t.Errorf("%s: got %d, %v; want %d", tt.name, got, err, tt.want)
		}
	}
	for text, want := range map[string]TakenBack{
		`{"schema":1,"takenBack":"0A"}`:        {"0A"}, // written by earlier builds, and for one sequencer
		`{"schema":1,"takenBack":["0B","0A"]}`: {"0B", "0A"},
	} {
		p, err := Parse(text)
		if err != nil || !slices.Equal(p.TakenBack, want) || !strings.Contains(p.String(), text[12:len(text)-1]) {
			t.Errorf("%s: read as %+v, %v, written as %s", text, p, err, p)
		}
		if next, err := Decide(p, "0A00", 0, 0, now); err != nil || next != WasReset {
			t.Errorf("%s: %d, %v", text, next, err)
		}
	}
	if _, err := Decide(there, "x", 0, now, now); err == nil {
		t.Error("a broken sequencer has no error")
	}
	if _, err := Parse(`{"schema":2}`); err == nil {
		t.Error("the progress of a newer build was read")
	}
}

// BenchmarkRead reads a gigabyte in slices, as receive does, and stores the progress as text
// between the slices. It reports the largest memory of the process.
func BenchmarkRead(b *testing.B) {
	const lines, part = 1 << 20, 1 << 10
	row := fmt.Sprintf(`{"id":"%%08d","text":"%s"}`+"\n", strings.Repeat("lorem ipsum ", 82))
	for _, packed := range []bool{false, true} {
		b.Run(fmt.Sprint("gzip ", packed), func(b *testing.B) {
			file, err := os.Create(filepath.Join(b.TempDir(), "object"))
			if err != nil {
				b.Fatal(err)
			}
			defer file.Close()
			out := io.WriteCloser(file)
			if packed {
				out = gzip.NewWriter(file)
			}
			for i := range lines {
				fmt.Fprintf(out, row, i)
			}
			if packed {
				_ = out.Close()
			}
			for b.Loop() {
				for p := (Progress{}); !p.Done; {
					l := wide
					l.Lines, l.MaxLine = 10_000, 1<<20
					if _, err := file.Seek(p.At.From, io.SeekStart); err != nil {
						b.Fatal(err)
					}
					p, err = Read(file, p, l, func([]Line) (map[int]string, error) { return nil, nil })
					if err == nil {
						p, err = Parse(p.String())
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(lines)*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
			b.SetBytes(lines * part)
			status, err := os.ReadFile("/proc/self/status")
			if err != nil {
				b.Skip(err)
			}
			_, most, _ := strings.Cut(string(status), "VmHWM:")
			kb, _ := strconv.Atoi(strings.Fields(most)[0])
			b.ReportMetric(float64(kb)/1024, "MB")
		})
	}
}
