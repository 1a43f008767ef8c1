// SPDX-License-Identifier: Apache-2.0

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

// Dump reads every document from the sinks and writes it to a file of NDJSON, sorted by collection
// and id. A line is {"id","collection","version","document"}: the version as the upstream wrote it,
// and the document digit for digit. If a collection has several sinks, a document of any sink
// except the first also has "sink". Dump writes the whole file or no file. The file has no
// documents of a sink that cannot be read, such as a webhook; Dump calls tell with the name of each
// such sink. If reading a sink fails, the file lacks that sink, and Dump returns the error.
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
			in string // the name of the sink, empty for the first sink of the collection
		}
		var all []held
		for _, name := range readable {
			before := len(all)
			reader, _ := e.pipes[name].sink.(sink.Reader) // readable contains only sinks that are Readers
			err := reader.All(ctx, func(s sink.Stored) error {
				if len(e.order) == 1 {
					return dumpLine(w, s, "") // write at once: All returns sorted documents, and they may be too many for memory
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
