// SPDX-License-Identifier: Apache-2.0

package lambda

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/aws/metrics"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// failing is a table whose calls all return an error.
type failing struct{ err error }

func (f failing) Read(context.Context, []shard.DocID, shard.Consistency) ([]shard.Row, error) {
	return nil, f.err
}

func (f failing) Write(context.Context, shard.Write) (shard.Row, error) { return shard.Row{}, f.err }

func TestAFinalErrorOfTheTableIsReported(t *testing.T) {
	t.Parallel()
	w := shard.Redrive("content#a", "k", 1)
	for name, tt := range map[string]struct {
		err  error
		want float64
	}{
		"missing":      {backoff.Permanent(errors.New("table shards does not exist")), 2},
		"passing":      {errors.New("connection reset"), 0},
		"throttled":    {shard.ErrThrottled, 0},
		"refused":      {&shard.Refused{Write: shard.REDRIVE}, 0},
		"out of time":  {context.DeadlineExceeded, 0},
		"no error":     {nil, 0},
		"the caller's": {context.Canceled, 0},
	} {
		j, out := newJournal()
		table := (&Setup{Journal: j}).Reported(failing{tt.err})
		_, read := table.Read(t.Context(), []shard.DocID{"content#a"}, shard.Eventual)
		_, write := table.Write(t.Context(), w)
		if !errors.Is(read, tt.err) || !errors.Is(write, tt.err) {
			t.Errorf("%s: got %v and %v, want the table's own error", name, read, write)
		}
		says := strings.Contains(out.String(), "does not exist")
		j.finish(t.Context())
		if got := total(t, out, metrics.Name(journal.Unreachable)); got != tt.want || says != (tt.want > 0) {
			t.Errorf("%s: reported %v times, want %v: %s", name, got, tt.want, out)
		}
	}
}

func TestAReportedTableIsTheTable(t *testing.T) {
	t.Parallel()
	j, _ := newJournal()
	table := (&Setup{Journal: j}).Reported(memory.NewShards())
	admit := shard.Admit(shard.Admission{Doc: "content#a", Key: "k", Class: shard.ClassInt, Flight: "f", Now: 42})
	if _, err := table.Write(t.Context(), admit); err != nil {
		t.Fatal(err)
	}
	rows, err := table.Read(t.Context(), []shard.DocID{"content#a"}, shard.Consistent)
	if err != nil || len(rows) != 1 || rows[0].Pending != "k" {
		t.Errorf("got %+v, %v", rows, err)
	}
}
