package receive

import (
	"context"

	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
)

// archiveShare is the eighths of Tr after which the archive is given up. The rest is for the
// answer.
const archiveShare = 7

// archive stores the messages of the batch. It never fails a message: a batch that cannot be
// archived is counted and processed like any other (ADR 0037).
func (b *batch) archive(ctx context.Context) {
	if b.h.Archive == nil || b.archived {
		return
	}
	b.archived = true
	first := b.h.firstTime(b.given)
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

// firstTime returns the messages that are received for the first time. A copy that lull sends
// names the time of its original, which is already in the archive. If another sender sets that
// attribute, its message is archived all the same.
func (h *Handler) firstTime(msgs []queue.Message) []queue.Message {
	var first []queue.Message
	for _, m := range msgs {
		_, copied := m.Attributes[queue.AttrFirstSent]
		_, letter := m.Attributes[deadletter.AttrLetter]
		_, line := queue.LineOf(m.Attributes) // a line of an object, which is not in the archive
		again := (copied && !line || letter) && h.Senders.Ours(m.Sender)
		if m.ReceiveCount <= 1 && !again {
			first = append(first, m)
		}
	}
	return first
}
