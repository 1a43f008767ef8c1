package dev

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/lullhq/lull/internal/local/wholefile"
	"github.com/lullhq/lull/sink"
)

// Dump writes every document read back from the sinks as NDJSON, sorted by collection and id:
// {"id","collection","version","document"}, the version as the upstream wrote it, the document
// digit for digit. Documents of another sink than the first of their collection also have "sink".
// The file appears whole or not at all.
func (e *Engine) Dump(ctx context.Context, path string) error {
	return wholefile.Write(path, 0o644, func(f *os.File) error {
		w := bufio.NewWriterSize(f, 1<<20)
		type held struct {
			sink.Stored
			in string // the sink, where that is another one than the first of its collection
		}
		var all []held
		for _, name := range e.order {
			r, ok := e.pipes[name].sink.(sink.Reader)
			if !ok {
				return fmt.Errorf("sink %s cannot be read back", name)
			}
			err := r.All(ctx, func(s sink.Stored) error {
				if len(e.order) == 1 {
					return dumpLine(w, s, "") // they come sorted, and memory may not hold them all
				}
				row, _ := e.cfg.RowAt(s.Doc, name)
				all = append(all, held{s, row.Sink()})
				return nil
			})
			if err != nil {
				return err
			}
		}
		slices.SortFunc(all, func(a, b held) int {
			return cmp.Or(cmp.Compare(a.Doc.Collection(), b.Doc.Collection()), cmp.Compare(a.Doc.ID(), b.Doc.ID()),
				cmp.Compare(a.in, b.in))
		})
		for _, s := range all {
			if err := dumpLine(w, s.Stored, s.in); err != nil {
				return err
			}
		}
		return w.Flush()
	})
}

func dumpLine(w *bufio.Writer, s sink.Stored, in string) error {
	if len(s.Document) == 0 {
		return fmt.Errorf("dump %s: what lull wrote beside it cannot be read: somebody else wrote into it", s.Doc)
	}
	head, err := json.Marshal(struct {
		ID         string `json:"id"`
		Collection string `json:"collection"`
		Version    string `json:"version"`
		Sink       string `json:"sink,omitempty"`
	}{s.Doc.ID(), string(s.Doc.Collection()), s.Version, in})
	if err != nil {
		return fmt.Errorf("dump %s: %w", s.Doc, err)
	}
	if _, err := fmt.Fprintf(w, "%s,\"document\":%s}\n", head[:len(head)-1], s.Document); err != nil {
		return fmt.Errorf("dump: %w", err)
	}
	return nil
}
