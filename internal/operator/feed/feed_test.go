// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/queue"
)

func TestALineIsATimedMessageOrSentAsItStands(t *testing.T) {
	t.Parallel()
	text := func(s string) map[string]queue.Attribute { return map[string]queue.Attribute{"a": queue.Text(s)} }
	for _, tt := range []struct {
		name, line string
		after      time.Duration
		attributes map[string]queue.Attribute
		body       string
		problem    string // part of the error
	}{
		{name: "an event", line: `{"type":"doc.changed","subject":"a"}`, body: `{"type":"doc.changed","subject":"a"}`},
		{name: "one key more", line: `{"body":"x","after_ms":5,"id":"1"}`, body: `{"body":"x","after_ms":5,"id":"1"}`},
		{name: "no key", line: `{}`, body: `{}`},
		{name: "a text body is raw text", line: `{"body":"{\"a\":\"\\u00e9\"}\n"}`, body: "{\"a\":\"\\u00e9\"}\n"},
		{
			name: "an object body keeps its bytes",
			line: `{"after_ms":0,"body": {"n": 1.10, "big":12345678901234567890123 }}`,
			body: `{"n": 1.10, "big":12345678901234567890123 }`,
		},
		{name: "an array body", line: `{"body":[1, 2]}`, body: `[1, 2]`},
		{name: "a number body", line: `{"body":1e2}`, body: `1e2`},
		{name: "a null body", line: `{"body":null}`, body: `null`},
		{name: "no body is an empty message", line: `{"after_ms":5}`, after: 5 * time.Millisecond},
		{name: "a time", line: `{"after_ms":1500,"body":"x"}`, after: 1500 * time.Millisecond, body: "x"},
		{
			name: "a fraction of a millisecond", line: `{"after_ms":0.25,"body":"x"}`, after: 250 * time.Microsecond,
			body: "x",
		},
		{name: "no time is zero", line: `{"body":"x"}`, body: "x"},
		{name: "text attributes", line: `{"body":"x","attributes":{"a":"1"}}`, attributes: text("1"), body: "x"},
		{
			name: "number attributes", line: `{"body":"x","attributes":{"a":1.10}}`,
			attributes: map[string]queue.Attribute{"a": {Type: "Number", String: "1.10"}}, body: "x",
		},
		{
			name: "full attributes", line: `{"body":"x","attributes":{"a":{"type":"String","string":"1"}}}`,
			attributes: text("1"), body: "x",
		},
		{
			name: "no attributes", line: `{"body":"x","attributes":{}}`, attributes: map[string]queue.Attribute{},
			body: "x",
		},
		{name: "null attributes", line: `{"body":"x","attributes":null}`, body: "x"},
		{name: "not JSON", line: `body: x`, body: `body: x`},
		{name: "half a timed message", line: `{"body":"x"`, body: `{"body":"x"`},
		{name: "two values", line: `{"body":"x"} {"body":"y"}`, body: `{"body":"x"} {"body":"y"}`},
		{name: "an array", line: `[{"body":"x"}]`, body: `[{"body":"x"}]`},
		{name: "a text", line: `"body"`, body: `"body"`},
		{name: "a time before the start", line: `{"after_ms":-1,"body":"x"}`, problem: "after_ms"},
		{name: "a time as text", line: `{"after_ms":"5","body":"x"}`, problem: "after_ms"},
		{name: "no time at all", line: `{"after_ms":null,"body":"x"}`, problem: "after_ms"},
		{name: "a time beyond all", line: `{"after_ms":1e300,"body":"x"}`, problem: "after_ms"},
		{name: "attributes in a list", line: `{"body":"x","attributes":[]}`, problem: "attributes"},
		{name: "an attribute that is true", line: `{"body":"x","attributes":{"a":true}}`, problem: "attributes.a"},
		{
			name: "an attribute with its value under another name",
			line: `{"body":"x","attributes":{"a":{"type":"String","value":"x"}}}`, problem: "attributes.a",
		},
		{name: "a time beyond thirty years", line: `{"body":"x","after_ms":1e13}`, problem: "from 0 to 1000000000000"},
		{
			name: "an attribute without a type", line: `{"body":"x","attributes":{"a":{"string":"x"}}}`,
			problem: "attributes.a",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseLine([]byte(tt.line))
			if tt.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tt.problem) {
					t.Errorf("error %v, want one about %s", err, tt.problem)
				}
				return
			}
			same := maps.EqualFunc(got.Attributes, tt.attributes,
				func(a, b queue.Attribute) bool { return a.Type == b.Type && a.String == b.String })
			if err != nil || got.After != tt.after || got.Body != tt.body || !same {
				t.Errorf("got %+v, error %v", got, err)
			}
		})
	}
}

func FuzzParseLine(f *testing.F) {
	for _, line := range []string{
		`{"after_ms":5,"attributes":{"a":"b"},"body":{"n":1.0}}`, `{"body":"x"}`, `{}`, `[`,
		"\xff", `{"body":1,"body":2}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		got, err := ParseLine(line)
		if err == nil && (got.After < 0 || len(got.Body) > len(line)) {
			t.Errorf("%q became %+v", line, got)
		}
	})
}

// all reads an input up to its end or its first error.
func all(t *testing.T, in Input) (bodies []string, err error) {
	t.Helper()
	defer func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}()
	for {
		m, err := in.Next()
		if errors.Is(err, io.EOF) {
			return bodies, nil
		}
		if err != nil {
			return bodies, err
		}
		bodies = append(bodies, m.Body)
	}
}

func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, made := t.TempDir(), fstest.MapFS{}
	for name, text := range files {
		made[name] = &fstest.MapFile{Data: []byte(text)}
	}
	if err := os.CopyFS(dir, made); err != nil {
		t.Fatal(err)
	}
	return dir
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var b strings.Builder
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, text)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestInputsAreLinesOrFiles(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 9<<20)
	dir := writeFiles(t, map[string]string{
		"a.ndjson":              "\ufeff{\"n\":1}\r\n\n  \t\n{\"n\":2}\nlast",
		"long.ndjson":           long + "\nnext\n",
		"broken.ndjson":         "one\n\n{\"after_ms\":-1,\"body\":\"x\"}\ntwo\n",
		"empty.ndjson":          "",
		"folder[1]/b.json":      "{\n  \"n\": 2\n}\n",
		"folder[1]/a.json":      "\ufeff{\"body\":\"one\"}",
		"folder[1]/c.json":      "",
		"folder[1]/notes.md":    "no message",
		"folder[1]/d.json/x":    "a folder",
		"bad/a.json":            `{"after_ms":true}`,
		"one.json":              "\ufeff{\n  \"n\": 1\n}\n",
		"packed.ndjson.gz":      zipped(t, "\ufeffone\ntwo"),
		"cut.ndjson.gz":         zipped(t, "one\ntwo")[:20],
		"several.json":          "{\"n\":1}\n{\"n\":2}\n",
		"nothing/here.txt":      "",
		"folder[1]/e.json.save": "no message",
	})
	for _, tt := range []struct {
		name, path string
		want       []string
		problem    string
	}{
		{"lines", "a.ndjson", []string{`{"n":1}`, `{"n":2}`, "last"}, ""},
		{"a line far above the limit of a message", "long.ndjson", []string{long, "next"}, ""},
		{"a broken line", "broken.ndjson", []string{"one"}, "broken.ndjson line 3: after_ms"},
		{"one message on several lines", "one.json", []string{"{\n  \"n\": 1\n}"}, ""},
		{"several messages by another name", "several.json", []string{`{"n":1}`, `{"n":2}`}, ""},
		{"an empty file", "empty.ndjson", nil, ""},
		{"lines with gzip", "packed.ndjson.gz", []string{"one", "two"}, ""},
		{"half a file with gzip", "cut.ndjson.gz", []string{"one", "two"}, "unexpected EOF"},
		{"a folder, by name", "folder[1]", []string{"one", "{\n  \"n\": 2\n}", ""}, ""},
		{"a broken file of a folder", "bad", nil, "a.json: after_ms"},
	} {
		in, err := Open(filepath.Join(dir, tt.path), nil)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		got, err := all(t, in)
		if !slices.Equal(got, tt.want) || (err == nil) != (tt.problem == "") || err != nil &&
			!strings.Contains(err.Error(), tt.problem) {
			t.Errorf("%s: got %.80q, error %v; want %.80q, %s", tt.name, got, err, tt.want, tt.problem)
		}
	}
	for _, path := range []string{"missing", "nothing"} {
		if in, err := Open(filepath.Join(dir, path), nil); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, error %v; want an error that names the path", path, in, err)
		}
	}
	in, err := Open("-", strings.NewReader("a\nb\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := all(t, in); err != nil || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("standard input: %q, error %v", got, err)
	}
}

// played is a message that was sent, and the time when it was sent.
type played struct {
	body string
	at   time.Duration
}

func TestMessagesAreSentAtTheirTimesWhateverTheirOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in := newLines("file", io.NopCloser(strings.NewReader(`{"after_ms":3000,"body":"d"}
a
{"after_ms":1000,"body":"b"}
{"after_ms":1000,"body":"c"}
a2`)), false)
		var got []played
		start := time.Now()
		err := Play(t.Context(), clock.System{}, in, func(_ context.Context, m Timed) error {
			got = append(got, played{m.Body, time.Since(start)})
			return nil
		})
		want := []played{{"a", 0}, {"a2", 0}, {"b", time.Second}, {"c", time.Second}, {"d", 3 * time.Second}}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("got %v, error %v; want %v", got, err, want)
		}
	})
}

func TestALiveInputKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		in, err := Open("-", r)
		if err != nil {
			t.Fatal(err)
		}
		sent := make(chan played, 10)
		start := time.Now()
		ended := make(chan error, 1)
		go func() {
			ended <- Play(t.Context(), clock.System{}, in, func(_ context.Context, m Timed) error {
				sent <- played{m.Body, time.Since(start).Truncate(time.Second)}
				return nil
			})
		}()
		write := func(lines string) {
			t.Helper()
			if _, err := io.WriteString(w, lines); err != nil {
				t.Fatal(err)
			}
		}
		write("{\"after_ms\":2000,\"body\":\"b\"}\n{\"body\":\"a\"}\n")
		time.Sleep(10 * time.Second)
		write("{\"after_ms\":15000,\"body\":\"d\"}\n")
		time.Sleep(2 * time.Second)
		write("c\n")
		time.Sleep(20 * time.Second)
		_ = w.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		close(sent)
		var got []played
		for p := range sent {
			got = append(got, p)
		}
		want := []played{{"a", 0}, {"b", 2 * time.Second}, {"c", 12 * time.Second}, {"d", 15 * time.Second}}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestPlayEndsWithItsContextHoweverLongTheInputIsSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		in, err := Open("-", r)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err = Play(ctx, clock.System{}, in, func(context.Context, Timed) error { return nil })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
		_ = w.Close()
	})
}

func TestABrokenInputAndAFailedSendStopThePlay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in, err := Open("-", strings.NewReader("a\n{\"after_ms\":-1}\n"))
		if err != nil {
			t.Fatal(err)
		}
		err = Play(t.Context(), clock.System{}, in, func(context.Context, Timed) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "standard input line 2") {
			t.Errorf("got %v, want the line", err)
		}
		full := errors.New("full")
		err = Play(t.Context(), clock.System{}, newLines("file", io.NopCloser(strings.NewReader("a\nb")), false),
			func(context.Context, Timed) error { return full })
		if !errors.Is(err, full) {
			t.Errorf("got %v, want the sender's error", err)
		}
	})
}

func TestWhatIsReadAheadIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const messages = lookahead + 5000
		in := &counted{}
		in.left.Store(messages)
		sent := 0
		err := Play(t.Context(), clock.System{}, in, func(context.Context, Timed) error {
			if ahead := messages - int(in.left.Load()) - sent; ahead > lookahead+200 {
				return fmt.Errorf("%d messages are read ahead", ahead)
			}
			sent++
			return nil
		})
		if err != nil || sent != messages {
			t.Errorf("sent %d, error %v; want %d", sent, err, messages)
		}
	})
}

// counted is an input of many messages.
type counted struct{ left atomic.Int64 }

func (c *counted) Next() (Timed, error) {
	if c.left.Add(-1) < 0 {
		return Timed{}, io.EOF
	}
	return Timed{}, nil
}

func (c *counted) Close() error { return nil }

// With such a text, a recursive reader overflows the stack, and recover cannot stop that.
func TestNestingDoesNotEndTheProcess(t *testing.T) {
	t.Parallel()
	open, closed := strings.Repeat("[", 8<<20), strings.Repeat("]", 8<<20)
	for name, text := range map[string]string{
		"only open": open, "open and closed": open + closed, "in a body": `{"body":` + open + closed + `}`,
		"in attributes": `{"body":"x","attributes":` + open + closed + `}`,
		"objects":       strings.Repeat(`{"body":`, 1<<20) + "1" + strings.Repeat("}", 1<<20),
	} {
		if got, err := ParseLine([]byte(text)); err != nil || got.Body != text {
			t.Errorf("%s: got %d bytes and %v, want the unchanged line", name, len(got.Body), err)
		}
		if got, err := Request([]byte(text)).Next(); err != nil || got.Body != text {
			t.Errorf("%s in a request: got %d bytes and %v, want the unchanged body", name, len(got.Body), err)
		}
	}
	body := strings.Repeat("[", event.MaxDepth+1) + strings.Repeat("]", event.MaxDepth+1)
	if got, err := ParseLine([]byte(`{"body":` + body + `}`)); err != nil || got.Body != body {
		t.Errorf("a body that nests one level too deep: got %q and %v, want the unchanged body", got.Body, err)
	}
}
