package dlq

import (
	"context"

	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/shard"
)

// marks reports whether the row gets to know. It does not where a message could not be read, came
// to the wrong queue or has keys that do not compare with the row's: none of them says anything
// about the version that the row waits for. Nor does a message that SQS did not move: whoever sent
// it here ends no version.
func (j *job) marks(v *verdict) bool {
	return j.m.MovedFrom != "" && v.row.Doc == v.Doc && v.Key != "" &&
		(v.reason == deadletter.ReceiveCount || v.reason == deadletter.TooOld)
}

// mark is PARK after the dead letter is stored. It reports whether the message may go.
func (j *job) mark(ctx context.Context, v *verdict) bool {
	h := j.h
	note := func(step journal.Step, detail string) { j.note(&v.Event, step, detail) }
	mark, row, err := h.rows().Park(ctx, v.Doc, v.Key, h.Config.Expires(h.Clock.Now()), v.row,
		func(t shard.Transition) { note(journal.RowRefused, t.String()) })
	switch {
	case err != nil:
		note(journal.Failed, "PARK: "+err.Error())
	case mark == shard.MarkForeign:
		note(journal.Schema, "row")
	case mark == shard.MarkLeased:
		h.wait(ctx, j.m, row.LeaseUntil)
	case mark == shard.MarkAgain:
		note(journal.Failed, "PARK: the row keeps changing")
	}
	return mark.Done()
}
