// SPDX-License-Identifier: Apache-2.0

package rebuild_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/rebuild"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// wide is a sink whose engine cannot copy, and whose pages are as large as those of a real engine.
// Reading a page takes longer than beatEvery.
type wide struct{ sink.Rebuilder }

func (wide) Fill(context.Context, sink.Fill) (sink.Filled, error) {
	return sink.Filled{}, sink.ErrNoCopy
}

func (w wide) Walk(ctx context.Context, index, place string) (docs []sink.Versioned, next string, err error) {
	time.Sleep(6 * time.Second) // virtual time
	for next = place; len(docs) < 500; {
		var page []sink.Versioned
		if page, next, err = w.Rebuilder.Walk(ctx, index, next); err != nil || next == "" {
			return append(docs, page...), "", err
		}
		docs = append(docs, page...)
	}
	return docs, next, nil
}

// The engine cannot copy, so the comparison copies all documents. Their ids have the greatest
// length, and JSON escapes each character as six bytes. The new index throttles at first, so a step
// ends before the documents of a page are equal.
func TestAPageOfTheLongestIdsFitsTheRowOfTheJob(t *testing.T) {
	for name, tries := range map[string]int{"at once": 0, "throttled": 2} {
		t.Run(name, func(t *testing.T) {
			play(t, func(g *ground) {
				for i := range 510 {
					g.write(strings.Repeat("<", shard.MaxIDBytes-3)+fmt.Sprintf("%03d", i), shard.Put)
				}
				copies := 0
				g.hook = func(call string) error {
					if call == "transfer" {
						copies++
						var rule memorysink.Rule
						if copies <= tries {
							rule = func(sink.Op) (memorysink.Answer, bool) {
								return memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Throttled, Status: 429}}, true
							}
						}
						g.sink.Beside(g.Row(shard.HealthRow("search")).RebuildInto).SetRule(rule)
					}
					return nil
				}
				s := g.service()
				s.Sink = wide{s.Sink}
				p, err := g.startWith(s, g.order())
				if err != nil || p.Phase != rebuild.Done || copies <= tries {
					g.Fatalf("%s after %d comparisons and %d copies: %v", p.Phase, p.Passes, copies, err)
				}
				if slices.ContainsFunc(g.told, func(p rebuild.Progress) bool { return p.Passes > 2 }) {
					g.Errorf("%d comparisons, want two at most", p.Passes)
				}
				g.settled("at the end")
			})
		})
	}
}
