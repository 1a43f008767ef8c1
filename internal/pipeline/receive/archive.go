package receive

import (
	"context"

	"github.com/lullhq/lull/internal/archive"
	"github.com/lullhq/lull/internal/backoff"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/queue"
)

// archiveShare is the eighths of Tr by which the archive is written or given up: it must not use up
// the time of the answer.
const archiveShare = 7

// archive keeps what the batch was given. It never fails a message: a batch that cannot be archived
// is counted, and goes on (ADR 0037).
func (b *batch) archive(ctx context.Context) {
	if b.h.Archive == nil || b.archived {
		return
	}
	b.archived = true
	first := firstTime(b.given)
	if len(first) == 0 {
		return
	}
	ctx, cancel := b.until(ctx, archiveShare)
	defer cancel()
	at := queue.Received(b.given)
	if at.IsZero() {
		at = b.start
	}
	object, err := archive.Encode(first)
	if err == nil {
		name := archive.Parts{
			Received: at, Lane: b.h.Lane, Sink: b.h.Sink, Messages: len(first), ID: string(b.h.NewID(b.start)),
		}.Name()
		err = backoff.Do(ctx, b.h.Clock, func() error { return b.h.Archive.Put(ctx, name, object) })
	}
	n := journal.Note{Step: journal.Archived, Count: len(first)}
	if err != nil {
		n.Step, n.Detail = journal.ArchiveLost, err.Error()
	}
	b.h.note(n)
}

// firstTime are the messages that are received for the first time. A copy that lull sends says when
// the first was sent: that one is in the archive.
func firstTime(msgs []queue.Message) []queue.Message {
	var first []queue.Message
	for _, m := range msgs {
		_, copied := m.Attributes[queue.AttrFirstSent]
		_, letter := m.Attributes[deadletter.AttrLetter]
		_, line := queue.LineOf(m.Attributes) // of an object, which is not in the archive
		if m.ReceiveCount <= 1 && (!copied || line) && !letter {
			first = append(first, m)
		}
	}
	return first
}
