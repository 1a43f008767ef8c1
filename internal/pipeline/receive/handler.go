// SPDX-License-Identifier: Apache-2.0

package receive

import (
	"context"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/pipeline/objects"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/rows"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/shard"
)

// Decoder decodes a message into its events. It returns at least one result and never fails as a
// whole. After a Transient fault the message stays in the queue: its body could not be loaded now.
type Decoder interface {
	DecodeContext(ctx context.Context, m queue.Message) []event.Result
}

// Handler is receive for one lane of one sink. All fields are required except Archive and the
// fields after it.
type Handler struct {
	Shards   shard.Store
	Flights  flight.Store
	Launcher flight.Launcher
	Ingest   queue.Queue // the queue of the messages, to change their visibility
	Dead     queue.Queue // the dead-letter queue
	Schedule schedule.Store
	Sources  Decoder
	Config   *config.Config
	Sink     string
	Lane     flight.Lane
	Clock    clock.Clock
	Journal  journal.Journal
	NewID    func(now time.Time) flight.ID // returns a fresh ULID at each call
	Archive  archive.Writer                // stores messages that are received for the first time; nil: no archive
	Objects  objects.Open                  // opens objects of many documents; nil if there are none
	Bulk     queue.Queue                   // queue for the lines of the objects; required with Objects
	Senders  queue.Senders                 // the roles that send for lull; nil within one process
	Parallel fanout.Runner                 // nil means goroutines
}

// Each of these shares is the number of eighths of Tr after which a step ends, finished or not.
// Then the next steps have their time. Even if a bucket or the table is slow, the judged messages
// must be held.
const (
	healthShare = 1
	loadShare   = 3
	tableShare  = 5
	// storeShare is for scheduled events, and for the dead letters of messages that are also held:
	// both must be stored before hold. The other dead letters are sent after hold.
	storeShare = 6
	// objectShare ends the reading of objects. After stopShare, receive begins no new reading.
	objectShare = 7
	stopShare   = 5
)

// Handle judges the batch and returns the ids of the messages that SQS must keep, each once, never
// nil. Handle does not fail as a whole: a failure keeps only the messages that it affects. Handle
// lists the stages in their order. Each stage takes what earlier stages returned.
func (h *Handler) Handle(ctx context.Context, msgs []queue.Message) []string {
	in := &invocation{h.Clock.Now(), h.Clock, h.Config, h.Sink, h.Lane, h.Journal, h.Parallel}
	table, hide := rows.Table{Store: h.Shards, Clock: h.Clock}, hider{in, h.Ingest}
	launch, letters := launcher{in, h.Flights, h.Launcher}, letterSender{in, table, h.Dead}

	given := believe(in, h.Senders, msgs)
	archive := archiver{in, h.Archive, h.Senders, h.NewID, false}
	// deferred for every return, because a later receive of these messages is not their first
	defer archive.store(ctx, given)
	in.note(journal.Note{Step: journal.Received, Count: len(given), Sent: queue.Oldest(given)})
	if clockOff(in, given) {
		return answer(given, nil)
	}
	health, readable := readHealth(ctx, in, h.Shards)
	present, absent := sendAway(ctx, hide, health, given)
	if len(present) == 0 {
		return answer(absent, nil)
	}
	// These are the steps of design section 6. hold comes before most dead letters, because there
	// may be many of them and they are not urgent.
	batch := unwrap(h.Senders, present)
	results := decode(ctx, in, h.Sources, batch)
	found := sortEvents(in, batch, results)
	docs := collapse(in, found.events)
	asked := (&admitter{invocation: in, table: table, newID: h.NewID}).admit(ctx, docs)
	dead := pack(nil, append(found.faults, judge{in, health}.judge(docs)...))
	letters.urgent(ctx, dead)
	scheduler{in, h.Ingest, h.Schedule}.store(ctx, found.later)
	if asked.unreachable {
		outage{in, hide, launch, h.NewID}.handle(ctx, batch, found.events, docs, readable || asked.readable)
	}
	holder{in, hide, launch}.hold(ctx, batch, found.events, asked)
	archive.store(ctx, given)
	read := objectReader{in, table, h.Objects, h.Bulk, h.Ingest}.read(ctx, found.objects)
	letters.rest(ctx, pack(dead, read))
	return answer(absent, batch)
}

// answer returns the ids of the messages that are not done: the absent messages, and the messages
// of the batch that have open events or have failed.
func answer(absent []queue.Message, batch []message) []string {
	var kept []string
	for i := range absent {
		kept = append(kept, absent[i].ID)
	}
	for i := range batch {
		if m := &batch[i]; m.open > 0 || m.failed {
			kept = append(kept, m.ID)
		}
	}
	return queue.Kept(kept)
}
