// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/config/tree"
	"github.com/lullhq/lull/internal/pipeline/payload"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/source"
)

// TestLimits compares the numbers of docs/limits.md with the numbers of the code.
func TestLimits(t *testing.T) {
	t.Parallel()
	standard := config.Default()
	slow := standard
	slow.SetQuiet(5 * time.Minute)
	days := func(d time.Duration) string { return fmt.Sprintf("%d day", d/(24*time.Hour)) }
	page := read(t, "docs/limits.md")
	for row, number := range map[string]string{
		"a message, attributes included": fmt.Sprintf("%d MB", queue.MaxBytes>>20),
		"an object by reference":         fmt.Sprintf("%d MB", payload.MaxObject>>20),
		"events in one message":          fmt.Sprint(event.MaxEvents),
		"`notbefore` ahead": days(standard.Lifecycle.RowRetention - standard.Lifecycle.ProducerLateness -
			24*time.Hour),
		"envelopes around an event":         fmt.Sprint(standard.Payload.EnvelopeDepth),
		"depth of JSON":                     fmt.Sprint(event.MaxDepth),
		"a document's id":                   fmt.Sprintf("%d bytes", event.MaxIDBytes),
		"columns of a composite key":        fmt.Sprint(source.MaxColumns),
		"an event's age, undecided":         days(standard.Retry.DeadDeadline),
		"a put that comes after its delete": days(standard.Lifecycle.RowRetention),
		"messages in flight of one queue":   thousands(standard.Queues.MaxInFlight),
		"messages a second of one queue":    thousands(greatest(t, 10_000, rate)),
		"one committed write of a document": "each second (`debounce.minInterval`)",
		"messages a second of one queue |":  fmt.Sprintf("%d with `quiet: 5m`", slow.Queues.ExpectedRate),
		"`debounce.quiet`":                  fmt.Sprintf("%d minutes", greatest(t, 20, quiet)),
		"a `lull.yaml`":                     fmt.Sprintf("%d KB", tree.MaxBytes>>10),
	} {
		found := false
		for line := range strings.Lines(page) {
			found = found || strings.HasPrefix(line, "| "+row) && strings.Contains(line, number)
		}
		if !found {
			t.Errorf("docs/limits.md: the row %q does not say %s", row, number)
		}
	}
}

func thousands(n int) string { return fmt.Sprintf("%d,%03d", n/1000, n%1000) }

// greatest returns the greatest n up to a bound for which the default settings are valid.
func greatest(t *testing.T, bound int, set func(*config.Config, int)) int {
	t.Helper()
	for n := bound; n > 0; n-- {
		c := config.Default()
		if set(&c, n); c.Validate() == nil {
			return n
		}
	}
	t.Fatal("no value is valid")
	return 0
}

func rate(c *config.Config, n int) { c.Queues.ExpectedRate = n }

func quiet(c *config.Config, minutes int) { c.SetQuiet(time.Duration(minutes) * time.Minute) }
