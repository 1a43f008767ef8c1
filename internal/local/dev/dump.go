package dev

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"

	"github.com/lullhq/lull/sink"
)

// Dump writes every document read back from the sinks as NDJSON, sorted by collection and id:
// {"id","collection","version","document"}, the version as the upstream wrote it, the document
// digit for digit. The file appears whole or not at all.
func (e *Engine) Dump(ctx context.Context, path string) error {
	return replaceFile(path, public, func(f *os.File) error {
		w := bufio.NewWriterSize(f, 1<<20)
		if len(e.order) == 1 {
			if err := e.dumpSink(ctx, e.order[0], w); err != nil {
				return err
			}
			return w.Flush()
		}
		var all []sink.Stored // several sinks are merged in memory
		for _, name := range e.order {
			if err := e.each(ctx, name, func(s sink.Stored) error { all = append(all, s); return nil }); err != nil {
				return err
			}
		}
		sort.Slice(all, func(i, j int) bool { return before(all[i], all[j]) })
		for _, s := range all {
			if err := dumpLine(w, s); err != nil {
				return err
			}
		}
		return w.Flush()
	})
}

func before(a, b sink.Stored) bool {
	if ca, cb := a.Doc.Collection(), b.Doc.Collection(); ca != cb {
		return ca < cb
	}
	return a.Doc.ID() < b.Doc.ID()
}

func (e *Engine) each(ctx context.Context, name string, f func(sink.Stored) error) error {
	r, ok := e.pipes[name].sink.(sink.Reader)
	if !ok {
		return fmt.Errorf("sink %s cannot be read back", name)
	}
	return r.All(ctx, f)
}

func (e *Engine) dumpSink(ctx context.Context, name string, w *bufio.Writer) error {
	return e.each(ctx, name, func(s sink.Stored) error { return dumpLine(w, s) })
}

func dumpLine(w *bufio.Writer, s sink.Stored) error {
	head, err := json.Marshal(struct {
		ID         string `json:"id"`
		Collection string `json:"collection"`
		Version    string `json:"version"`
	}{s.Doc.ID(), string(s.Doc.Collection()), s.Version})
	if err != nil {
		return fmt.Errorf("dump %s: %w", s.Doc, err)
	}
	for _, part := range [][]byte{head[:len(head)-1], []byte(`,"document":`), s.Document, []byte("}\n")} {
		if _, err := w.Write(part); err != nil {
			return fmt.Errorf("dump: %w", err)
		}
	}
	return nil
}
