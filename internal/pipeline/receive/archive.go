// SPDX-License-Identifier: Apache-2.0

package receive

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
)

// archiveShare is the number of eighths of Tr after which lull stops archiving. The rest of the
// time is for the answer.
const archiveShare = 7

// archiver stores the messages of the batch, once. A failure of the archive never fails a message:
// a batch that cannot be archived is counted and processed like any other (ADR 0037).
type archiver struct {
	*invocation
	archive  archive.Writer
	senders  queue.Senders
	newID    func(time.Time) flight.ID
	archived bool
}

func (a *archiver) store(ctx context.Context, given []queue.Message) {
	if a.archive == nil || a.archived {
		return
	}
	a.archived = true
	first := firstTime(a.senders, given)
	if len(first) == 0 {
		return
	}
	ctx, cancel := a.until(ctx, archiveShare)
	defer cancel()
	at := queue.Received(given)
	if at.IsZero() {
		at = a.start
	}
	object, err := archive.Encode(first)
	if err == nil {
		name := archive.Parts{
			Received: at, Lane: a.lane, Sink: a.sink, Messages: len(first), ID: string(a.newID(a.start)),
		}.Name()
		err = backoff.Do(ctx, a.clock, func() error { return a.archive.Put(ctx, name, object) })
	}
	n := journal.Note{Step: journal.Archived, Count: len(first)}
	if err != nil {
		n.Step, n.Detail = journal.ArchiveLost, err.Error()
	}
	a.note(n)
}

// firstTime returns the messages that are received for the first time. A copy that lull sends names
// the time of its original, which is already in the archive. If another sender sets that attribute,
// lull still archives the message.
func firstTime(senders queue.Senders, msgs []queue.Message) []queue.Message {
	var first []queue.Message
	for _, m := range msgs {
		_, copied := m.Attributes[queue.AttrFirstSent]
		_, letter := m.Attributes[deadletter.AttrLetter]
		_, line := queue.LineOf(m.Attributes) // a line of an object is not in the archive yet
		again := (copied && !line || letter) && senders.Ours(m.Sender)
		if m.ReceiveCount <= 1 && !again {
			first = append(first, m)
		}
	}
	return first
}
