package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/operate"
	"github.com/lullhq/lull/internal/shard"
)

// Pausing is an operator who pauses all sinks for a while.
type Pausing struct {
	At  time.Duration
	For time.Duration
}

// pausing plans the operator. The world is not at rest before the sinks are resumed.
func (w *World) pausing(h Pausing) {
	w.after(h.At, func() {
		w.operator++
		w.pause(false, func() {
			w.after(h.For, func() { w.pause(true, func() { w.operator-- }) })
		})
	})
}

// pause runs a command until every sink is as it says.
func (w *World) pause(resume bool, then func()) {
	w.invoke("operator", patience, func(ctx context.Context, v *invocation) {
		o := w.operate(v)
		order := operate.PauseOrder{All: true, By: "the simulator", Why: "a test"}
		do := o.Pause
		if resume {
			do = o.Resume
		}
		_, _ = do(ctx, order) // what failed is tried again
	}, func(error) {
		for _, p := range w.pipes {
			if (w.table.row(shard.HealthRow(p.name)).PausedAt != 0) == resume {
				w.after(5*time.Second, func() { w.pause(resume, then) })
				return
			}
		}
		then()
	})
}

// halted sees every write of a health row: since when it shows a pause.
func (o *oracle) halted(row shard.Row) {
	if row.PausedAt == 0 {
		delete(o.pauses, row.Doc)
	} else if _, was := o.pauses[row.Doc]; !was {
		o.pauses[row.Doc] = o.w.now
	}
}

// claimed checks that nobody claims for a sink that was paused before the invocation began. An
// eventual read may show the row as it was a little earlier.
func (o *oracle) claimed(v *invocation, doc shard.DocID) {
	row := shard.HealthRow(o.w.pipeOf(doc).name)
	if since, paused := o.pauses[row]; paused && v.began > since+o.w.drawn.StaleBy {
		o.violate("nothing is claimed for a sink that is paused",
			fmt.Sprintf("%s: by %s %d, which began %s after the pause", doc, v.Name, v.ID, v.began-since))
	}
}
