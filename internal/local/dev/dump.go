package dev

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/lullhq/lull/internal/seam/wholefile"
	"github.com/lullhq/lull/sink"
)

// Dump writes every document read back from the sinks as NDJSON, sorted by collection and id:
// {"id","collection","version","document"}, the version as the upstream wrote it, the document
// digit for digit. Documents of another sink than the first of their collection also have "sink".
// The file appears whole or not at all. The file lacks sinks that cannot be read back, such as a
// webhook; tell is called with the name of each. It also lacks a sink that fails; the error says
// so.
func (e *Engine) Dump(ctx context.Context, path string, tell func(without string)) error {
	var readable []string
	for _, name := range e.order {
		if _, ok := e.pipes[name].sink.(sink.Reader); ok {
			readable = append(readable, name)
		} else if len(e.order) > 1 {
			tell(name)
		}
	}
	if len(readable) == 0 {
		return fmt.Errorf("no sink can be read back: %s", strings.Join(e.order, ", "))
	}
	var failed error
	err := wholefile.Write(path, 0o644, func(f *os.File) error {
		w := bufio.NewWriterSize(f, 1<<20)
		type held struct {
			sink.Stored
			in string // the sink, if it is not the first of its collection
		}
		var all []held
		for _, name := range readable {
			before := len(all)
			reader, _ := e.pipes[name].sink.(sink.Reader) // it is a Reader: see readable
			err := reader.All(ctx, func(s sink.Stored) error {
				if len(e.order) == 1 {
					return dumpLine(w, s, "") // All yields them sorted, and memory may not hold them all
				}
				row, _ := e.cfg.RowAt(s.Doc, name)
				all = append(all, held{s, row.Sink()})
				return nil
			})
			if err != nil {
				all, failed = all[:before], errors.Join(failed, fmt.Errorf("dump sink %s: %w", name, err))
			}
			if err != nil && len(readable) == 1 {
				return failed
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
	if err == nil {
		err = failed
	}
	return err
}

func dumpLine(w *bufio.Writer, s sink.Stored, in string) error {
	if len(s.Document) == 0 {
		return fmt.Errorf("dump %s: lull's metadata of the document cannot be read: another program changed it", s.Doc)
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
