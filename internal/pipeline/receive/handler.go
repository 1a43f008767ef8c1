package receive

import (
	"context"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/pipeline/objects"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/rows"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/shard"
)

// Decoder decodes a message into its events. It returns at least one result and never fails as a
// whole. A Transient fault keeps the message: the body that a pointer names could not be loaded
// now.
type Decoder interface {
	DecodeContext(ctx context.Context, m queue.Message) []event.Result
}

// Handler is receive for one lane of one sink. All fields are required except those from
// Archive on.
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
	NewID    func(now time.Time) flight.ID // a fresh ULID at each call
	Archive  archive.Writer                // stores messages that are received for the first time; nil: no archive
	Objects  objects.Open                  // opens objects of many documents; nil if there are none
	Bulk     queue.Queue                   // the queue for their lines; required with Objects
	Senders  queue.Senders                 // the roles that send for lull; nil within one process
	Parallel fanout.Runner                 // nil: goroutines
}

// maxParallel bounds the conditional writes that one invocation makes at once.
const maxParallel = 32

// Eighths of Tr after which a step ends, finished or not, so that the next steps have their
// time. A slow bucket or table must not stop the judged messages from being held.
const (
	healthShare = 1
	loadShare   = 3
	tableShare  = 5
	// For scheduled events, and for the dead letters of messages that are also held: they must
	// be stored before hold. The other dead letters are sent after hold.
	storeShare = 6
	// objectShare ends the reading of objects. After stopShare no new reading begins.
	objectShare = 7
	stopShare   = 5
)

// until returns a context that ends when so many eighths of the function's time have passed.
func (b *batch) until(ctx context.Context, eighths time.Duration) (context.Context, context.CancelFunc) {
	// The eighths count from the start of the invocation. If a step ends early, the next one has
	// its rest.
	end := b.start.Add(b.h.Config.Receive.Timeout * eighths / 8)
	return b.h.Clock.Deadline(ctx, end.Sub(b.h.Clock.Now()))
}

// Handle judges the batch and returns the ids of the messages that SQS must keep, never nil,
// each once. It does not fail as a whole: a failure keeps the messages it concerns.
func (h *Handler) Handle(ctx context.Context, msgs []queue.Message) []string {
	msgs = h.believe(msgs)
	b := &batch{h: h, start: h.Clock.Now(), msgs: msgs, given: msgs, state: make([]messageState, len(msgs))}
	defer b.archive(ctx) // on every return: a later receive is no longer the first
	h.note(journal.Note{Step: journal.Received, Count: len(msgs), Sent: queue.Oldest(msgs)})
	if off := h.clockOff(b.start, msgs); off != 0 {
		// By this clock messages would seem too old or too new, and rows would keep its times.
		h.note(journal.Note{Step: journal.ClockOff, Count: len(msgs), Detail: "this clock is off by " + off.String()})
		for i := range b.state {
			b.state[i].failed = true
		}
		return b.answer()
	}
	b.readHealth(ctx)
	if b.sendAway(ctx); len(b.msgs) == 0 {
		return b.answer()
	}
	// The steps of design section 6. hold comes before the dead letters, which may be many and
	// are not urgent.
	b.decode(ctx)
	b.collapse()
	b.ask(ctx)
	b.judge()
	b.store(ctx)
	if b.unreachable {
		b.outage(ctx)
	}
	b.hold(ctx)
	b.archive(ctx)
	b.readObjects(ctx)
	b.sendLetters(ctx, false)
	return b.answer()
}

// clockOff compares this clock with SQS's. Every message was sent and received before now, and
// was sent within the queue's retention. A message that is delivered for the first time was
// received at most one visibility ago.
func (h *Handler) clockOff(now time.Time, msgs []queue.Message) time.Duration {
	var happened, first time.Time
	for i := range msgs {
		m := &msgs[i]
		happened = latest(happened, latest(m.Sent, m.FirstReceived))
		if m.ReceiveCount == 1 {
			first = latest(first, m.FirstReceived)
		}
	}
	if off := clock.Off(now, happened, h.Config.Queues.Retention); off != 0 {
		return off
	}
	return clock.Off(now, first, h.Config.Queues.Visibility)
}

// messageState is the state of one message in this batch.
type messageState struct {
	events int  // in the message
	open   int  // events not done
	later  int  // events to be scheduled
	held   bool // the flight is to hold an event of it
	failed bool // an event could not be judged: the message is received again, outside the flight
	// the reason of a dead letter that SQS's own redrive brought here; empty for any other
	// message
	letter deadletter.Reason
	newer  bool // a newer lull sent that dead letter: it stays in the queue
	maker  *deadletter.Maker
}

// batch is one invocation.
type batch struct {
	h     *Handler
	start time.Time
	msgs  []queue.Message
	given []queue.Message // all of them, as they were received
	state []messageState

	archived bool

	events      []pending // the events that are neither skipped nor faulty
	later       []laterEvent
	objects     []object
	docs        []docState
	faults      []fault
	letters     []*outLetter
	readable    bool // the table answered a read
	unreachable bool // the table answered no ADMIT, not even by a refusal
	health      shard.Row
	away        []string // ids of the messages that were sent away
	admitted    time.Time
	id          flight.ID
}

// pending is one event that is to be judged.
type pending struct {
	event.Event
	msg  int // index into msgs
	doc  int // index into docs
	hold bool
	due  shard.Micros
}

func (b *batch) rows() rows.Table { return rows.Table{Store: b.h.Shards, Clock: b.h.Clock} }

func (b *batch) now() shard.Micros { return shard.MicrosOf(b.h.Clock.Now()) }

// answer returns the ids of the messages that are not done.
func (b *batch) answer() []string {
	failed := b.away
	for i, s := range b.state {
		if s.open > 0 || s.failed {
			failed = append(failed, b.msgs[i].ID)
		}
	}
	return queue.Kept(failed)
}

// done completes one event of a message. The message is acknowledged when it has no open events
// and none of its events failed.
func (b *batch) done(p *pending, step journal.Step, detail string) {
	b.state[p.msg].open--
	b.h.note(b.about(p, step, detail))
}

// lost notes a failed call that concerns no single message, with the class of its failure.
func (b *batch) lost(call string, err error) {
	if err != nil {
		b.h.note(journal.Note{Step: journal.CallFailed, Detail: call + ": " + backoff.Class(err)})
	}
}

// fail leaves the message to redelivery. It also keeps the message out of the flight: all of its
// events are judged again together.
func (b *batch) fail(p *pending, detail string) {
	b.state[p.msg].failed = true
	b.h.note(b.about(p, journal.Failed, detail))
}

func (b *batch) about(p *pending, step journal.Step, detail string) journal.Note {
	m := &b.msgs[p.msg]
	return journal.Note{
		Step: step, Doc: p.Doc, Key: p.Key, Op: p.Op, Message: m.ID, Event: p.Index, Sent: m.Sent,
		Trace: m.Attributes[queue.AttrTrace].String, Detail: detail,
	}
}

func (h *Handler) note(n journal.Note) {
	n.At, n.Sink, n.Lane = h.Clock.Now(), h.Sink, string(h.Lane)
	h.Journal.Note(n)
}
