package receive

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/journal"
)

// maxOutageHold is the longest that a message waits for the table between two tries.
const maxOutageHold = 15 * time.Minute

// outage is what happens while the table cannot be reached. Closed: the messages wait, longer at each receive, up to 15 minutes.
// Open (an operator's choice that suspends promise 1): they are also written to the sink at once, never acknowledged.
func (b *batch) outage(ctx context.Context) {
	var receipts []string
	var events []OpenEvent
	count := 1
	for i := range b.events {
		if p := &b.events[i]; b.docs[p.doc].err != nil {
			m := b.msgs[p.msg]
			receipts = append(receipts, m.Receipt)
			count = max(count, m.ReceiveCount)
			events = append(events, OpenEvent{m, p.Event})
		}
	}
	wait := maxOutageHold
	if count < 8 {
		wait = min(wait, b.h.Config.Queues.Visibility<<(count-1))
	}
	b.h.note(journal.Note{Step: journal.Unreachable, Count: len(receipts), Until: b.h.Clock.Now().Add(wait)})
	if b.h.Config.TableOutage == config.TableOutageOpen && b.h.Open != nil {
		if err := b.h.Open(ctx, events); err != nil {
			b.h.note(journal.Note{Step: journal.Failed, Detail: "write open: " + err.Error()})
		}
	}
	_ = b.h.Ingest.Hold(ctx, receipts, wait) // a refused extension changes nothing: they come back earlier
}
