// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/pipeline/objects"
	"github.com/lullhq/lull/internal/shard"
)

// receive reads an object of many documents, compressed with gzip, in slices. Every line is written
// once, although receive is killed several times.
func TestEveryLineOfAnObjectIsWrittenThoughReceiveIsKilled(t *testing.T) {
	ground.Long(t)
	s := withDefaults(t)
	s.NeedServers(t)
	const c, documents, kills = "catalogue", 1000, 4
	s.Notify(t, c)
	want := make(map[string]int)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	for i := range documents {
		id := fmt.Sprintf("product %04d", i)
		want[id] = i + 1
		if _, err := fmt.Fprintln(w, ground.Event{Collection: c, ID: id, Version: i + 1}.Body()); err != nil {
			t.Fatal(err)
		}
	}
	_, err := io.WriteString(w, "not a document\n")
	ground.Must(t, errors.Join(err, w.Close()))
	s.ObjectIn(t, c, "monday/export.ndjson.gz", packed.String())

	key := shard.ObjectRow(ground.Sink, s.Config.Stack+"-"+c, "monday/export.ndjson.gz")
	killed := 0
	ground.Until(t, "the object is read to its end", func() (bool, string) {
		row := s.Row(t, key)
		p, err := objects.Parse(row.Cursor)
		ground.Must(t, err)
		if killed < kills && p.Part > 0 {
			killed += min(killFunction(t, s.Names.Function(ground.Sink, names.Receive)), 1)
		}
		return p.Done, row.Cursor
	})
	if killed == 0 {
		t.Error("no process of receive was found to kill")
	}
	ground.Until(t, "every line is committed", func() (bool, string) {
		n := len(s.Search.Documents(t, s.Index(c)))
		return n == documents, fmt.Sprintf("%d documents", n)
	})
	s.Holds(t, c, want)
	p, err := objects.Parse(s.Row(t, key).Cursor)
	if err != nil || p.Sent != documents || p.Faults != 1 || p.Lines != documents+1 {
		t.Errorf("the row says %+v, %v", p, err)
	}
	t.Logf("%d kills, %d slices", killed, p.Part)
	s.Says(t, 0, "not a JSON object", "dead", "list")
}
