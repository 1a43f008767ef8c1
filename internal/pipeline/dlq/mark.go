// SPDX-License-Identifier: Apache-2.0

package dlq

import (
	"context"

	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// marks reports whether PARK follows. It does not follow if the message could not be read or was in
// the wrong queue. It does not follow either if the keys of message and row cannot be compared.
// Such a message says nothing about the version that the row waits for. PARK also does not follow
// if SQS did not move the message: a sender must not be able to end a version.
func (j *job) marks(v *verdict) bool {
	return j.m.MovedFrom != "" && v.row.Doc == v.Doc && v.Key != "" &&
		(v.reason == deadletter.ReceiveCount || v.reason == deadletter.TooOld)
}

// mark does PARK after the dead letter is stored. It reports whether the message may be deleted.
func (j *job) mark(ctx context.Context, v *verdict) bool {
	h := j.h
	note := func(step journal.Step, detail string) { j.note(&v.Event, step, detail) }
	mark, row, err := h.rows().Park(ctx, v.Doc, v.Key, h.Config.Lifecycle.Expires(h.Clock.Now()), v.row,
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
