package dlq

import (
	"context"

	"github.com/lullhq/lull/internal/backoff"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
)

// markTries bounds how often PARK is tried on a row that keeps changing. The message comes back
// anyway.
const markTries = 4

// marks reports whether the row gets to know. It does not of a message that could not be read, came
// to the wrong queue or has keys that do not compare with the row's: none of them says anything
// about the version that the row waits for.
func (v *verdict) marks() bool {
	return v.row.Doc == v.Doc && v.Key != "" && (v.reason == deadletter.ReceiveCount || v.reason == deadletter.TooOld)
}

// mark is PARK, whose form follows from the newest image of the row. It reports whether the message
// may go: PARK was applied, or the row shows that nothing waits for this version.
func (h *Handler) mark(ctx context.Context, m queue.Message, ln flight.Lane, v *verdict) bool {
	expires := h.Config.Expires(h.Clock.Now())
	for range markTries {
		w := shard.Park(v.Doc, v.Key, h.now(), expires, v.row)
		err := backoff.Row().Do(ctx, h.Clock, func() error {
			_, err := h.Shards.Write(ctx, w)
			return err
		})
		if err == nil {
			return true
		}
		refused, ok := shard.AsRefused(err)
		if !ok {
			h.note(h.about(m, ln, &v.Event, journal.Failed, w.Transition.String()+": "+err.Error()))
			return false
		}
		h.note(h.about(m, ln, &v.Event, journal.RowRefused, w.Transition.String()))
		switch v.row = refused.Row; {
		case v.row.Foreign():
			h.note(h.about(m, ln, &v.Event, journal.Schema, "row"))
			return false
		case v.row.Committed >= v.Key, v.row.Dead == v.Key, v.row.Pending > v.Key:
			return true // written meanwhile (prune drops the letter), marked before, or a newer version waits
		case v.row.LeaseUntil >= h.now():
			return h.wait(ctx, m, v.row.LeaseUntil)
		}
	}
	h.note(h.about(m, ln, &v.Event, journal.Failed, "PARK: the row keeps changing"))
	return false
}
