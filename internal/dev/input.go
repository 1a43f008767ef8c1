package dev

import (
	"bufio"
	"bytes"
	"container/heap"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/queue"
)

// maxLine bounds one input line. It is above SQS's limit, so that a message that is too large is refused as a message, with its reason, and not
// as a broken file.
const maxLine = 8 << 20

// Timed is one input message and when to send it, counted from the start.
type Timed struct {
	After time.Duration
	queue.Outgoing
}

// ParseLine reads one input message. An object whose only keys are among after_ms, attributes and body is a timed message; anything else is
// sent as it stands. The error names the field.
func ParseLine(line []byte) (Timed, error) {
	text := string(line)
	var t Timed
	doc := gjson.Parse(text)
	if !doc.IsObject() || !gjson.Valid(text) || !isTimed(doc) {
		t.Body = text
		return t, nil
	}
	if v := doc.Get("after_ms"); v.Exists() {
		if v.Type != gjson.Number || v.Num < 0 || v.Num > 1e12 {
			return t, fmt.Errorf("after_ms: want milliseconds from the start as a number of at least 0")
		}
		t.After = time.Duration(v.Num * float64(time.Millisecond))
	}
	if v := doc.Get("attributes"); v.Exists() {
		attrs, err := parseAttributes(v)
		if err != nil {
			return t, err
		}
		t.Attributes = attrs
	}
	switch v := doc.Get("body"); {
	case !v.Exists():
		return t, fmt.Errorf("body: missing in a timed message")
	case v.Type == gjson.String:
		t.Body = v.Str
	default:
		t.Body = v.Raw
	}
	return t, nil
}

func isTimed(doc gjson.Result) bool {
	timed, any := true, false
	doc.ForEach(func(k, _ gjson.Result) bool {
		switch k.Str {
		case "after_ms", "attributes", "body":
			any = true
		default:
			timed = false
		}
		return timed
	})
	return timed && any
}

// parseAttributes takes {"name": "text"} and SQS's own {"name": {"type": "String", "string": "text"}}.
func parseAttributes(v gjson.Result) (map[string]queue.Attribute, error) {
	if !v.IsObject() {
		return nil, fmt.Errorf("attributes: want an object of names and texts")
	}
	out := map[string]queue.Attribute{}
	var err error
	v.ForEach(func(k, a gjson.Result) bool {
		switch {
		case a.Type == gjson.String:
			out[k.Str] = queue.Text(a.Str)
		case a.Type == gjson.Number:
			out[k.Str] = queue.Attribute{Type: "Number", String: a.Raw}
		case a.IsObject():
			var full queue.Attribute
			if err = json.Unmarshal([]byte(a.Raw), &full); err != nil || full.Type == "" {
				err = fmt.Errorf("attributes.%s: want a text or {type, string}", k.Str)
			}
			out[k.Str] = full
		default:
			err = fmt.Errorf("attributes.%s: want a text", k.Str)
		}
		return err == nil
	})
	return out, err
}

// Input reads messages in order until io.EOF.
type Input interface {
	Next() (Timed, error)
	Close() error
}

// OpenInput opens a file of NDJSON, a folder (its *.json, by name, one message each) or "-" for in.
func OpenInput(path string, in io.Reader) (Input, error) {
	if path == "-" {
		return newLines("standard input", io.NopCloser(in)), nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open events: %w", err)
	}
	if info.IsDir() {
		names, err := filepath.Glob(filepath.Join(path, "*.json"))
		if err != nil {
			return nil, fmt.Errorf("open events: %w", err)
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("open events: folder %s has no *.json", path)
		}
		slices.Sort(names)
		return &folder{names: names}, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open events: %w", err)
	}
	return newLines(path, f), nil
}

type lines struct {
	name string
	c    io.Closer
	s    *bufio.Scanner
	n    int
}

func newLines(name string, r io.ReadCloser) *lines {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 64<<10), maxLine)
	return &lines{name: name, c: r, s: s}
}

func (l *lines) Next() (Timed, error) {
	for l.s.Scan() {
		l.n++
		line := bytes.TrimSuffix(l.s.Bytes(), []byte("\r"))
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		t, err := ParseLine(line)
		if err != nil {
			return t, fmt.Errorf("%s line %d: %w", l.name, l.n, err)
		}
		return t, nil
	}
	if err := l.s.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			return Timed{}, fmt.Errorf("%s line %d: longer than %d MiB", l.name, l.n+1, maxLine>>20)
		}
		return Timed{}, fmt.Errorf("read %s: %w", l.name, err)
	}
	return Timed{}, io.EOF
}

func (l *lines) Close() error { return l.c.Close() }

type folder struct {
	names []string
}

func (f *folder) Next() (Timed, error) {
	if len(f.names) == 0 {
		return Timed{}, io.EOF
	}
	name := f.names[0]
	f.names = f.names[1:]
	b, err := os.ReadFile(name)
	if err != nil {
		return Timed{}, fmt.Errorf("read events: %w", err)
	}
	t, err := ParseLine([]byte(strings.TrimSpace(string(b))))
	if err != nil {
		return t, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

func (f *folder) Close() error { return nil }

// lookahead is how many messages are read ahead of their time, so that after_ms need not be sorted further apart than that.
const lookahead = 50_000

// play sends an input's messages at their times until it ends.
func play(ctx context.Context, clk clock.Clock, in Input, send func(context.Context, Timed) error) error {
	start := clk.Now()
	var ahead timedHeap
	ended := false
	for order := 0; !ended || len(ahead) > 0; {
		for !ended && len(ahead) < lookahead && (len(ahead) == 0 || clk.Now().Sub(start) < ahead[0].After) {
			t, err := in.Next()
			if errors.Is(err, io.EOF) {
				ended = true
				break
			}
			if err != nil {
				return err
			}
			order++
			heap.Push(&ahead, timedOrder{t, order})
		}
		if len(ahead) == 0 {
			continue
		}
		next := ahead[0]
		if wait := next.After - clk.Now().Sub(start); wait > 0 {
			if err := clk.Sleep(ctx, wait); err != nil {
				return err
			}
		}
		heap.Pop(&ahead)
		if err := send(ctx, next.Timed); err != nil {
			return err
		}
	}
	return nil
}

type timedOrder struct {
	Timed
	order int
}

// timedHeap sorts by time, then by the order of the input.
type timedHeap []timedOrder

func (h timedHeap) Len() int { return len(h) }
func (h timedHeap) Less(i, j int) bool {
	return h[i].After < h[j].After || h[i].After == h[j].After && h[i].order < h[j].order
}
func (h timedHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *timedHeap) Push(x any)   { *h = append(*h, x.(timedOrder)) }
func (h *timedHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
