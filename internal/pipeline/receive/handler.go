package receive

import (
	"context"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/archive"
	"github.com/lullhq/lull/internal/backoff"
	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/fanout"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/objects"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/rows"
	"github.com/lullhq/lull/internal/schedule"
	"github.com/lullhq/lull/internal/shard"
)

// Decoder turns a message into the events it carries. It returns at least one result and never
// fails as a whole. A fault that is Transient keeps the message: a body that a pointer names could
// not be loaded now.
type Decoder interface {
	DecodeContext(ctx context.Context, m queue.Message) []event.Result
}

// Handler is receive for one lane of one sink. All fields are required except those from
// Archive on.
type Handler struct {
	Shards   shard.Store
	Flights  flight.Store
	Launcher flight.Launcher
	Ingest   queue.Queue // the queue the messages come from: to back off visibility
	Dead     queue.Queue // the dead-letter queue
	Schedule schedule.Store
	Sources  Decoder
	Config   *config.Config
	Sink     string
	Lane     flight.Lane
	Clock    clock.Clock
	Journal  journal.Journal
	NewID    func(now time.Time) flight.ID // a fresh ULID at each call
	Archive  archive.Writer                // keeps what is received for the first time; nil for nowhere
	Objects  objects.Open                  // opens objects of many documents; nil where there are none
	Bulk     queue.Queue                   // where their lines go; required with Objects
	Parallel fanout.Runner                 // nil for goroutines
}

// maxParallel bounds the conditional writes in flight of one invocation.
const maxParallel = 32

// Eighths of Tr by which a step is over, whatever it has not come to, so that what follows has its
// time: nothing that a slow bucket or table delays may keep what was judged from being held.
const (
	healthShare = 1
	loadShare   = 3
	tableShare  = 5
	// What must be stored elsewhere before a message may be held or go: scheduled events, and the
	// dead letters of messages that are also held. The other dead letters come after hold.
	storeShare = 6
	// objectShare ends the reading of objects, stopShare what it begins anew.
	objectShare = 7
	stopShare   = 5
)

// until is a context that ends when so many eighths of the function's time have passed.
func (b *batch) until(ctx context.Context, eighths time.Duration) (context.Context, context.CancelFunc) {
	// The eighths count from the start of the invocation: a step that ends early leaves its rest to
	// the next.
	end := b.start.Add(b.h.Config.Receive.Timeout * eighths / 8)
	return b.h.Clock.Deadline(ctx, end.Sub(b.h.Clock.Now()))
}

// Handle judges the batch and returns the ids of the messages that SQS must keep, never nil, each
// once. It does not fail as a whole: whatever goes wrong keeps the messages it concerns.
func (h *Handler) Handle(ctx context.Context, msgs []queue.Message) []string {
	b := &batch{h: h, start: h.Clock.Now(), msgs: msgs, given: msgs, state: make([]messageState, len(msgs))}
	defer b.archive(ctx) // wherever this ends: the messages come back, but not for the first time
	h.note(journal.Note{Step: journal.Received, Count: len(msgs), Sent: queue.Oldest(msgs)})
	if off := h.clockOff(b.start, msgs); off != 0 {
		// By this clock messages would be too old, or too new, and their times would stay in rows.
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
	// The steps of design section 6. What the flight holds goes before dead letters, which may be
	// many and have no hurry.
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

// clockOff compares this clock with SQS's. Every message was sent and received before now, and was
// not sent longer ago than messages are kept. One that is delivered for the first time was received
// at most a visibility ago.
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

// messageState is what the batch knows of one message.
type messageState struct {
	events int  // that it carries
	open   int  // events not done
	later  int  // events that wait until later
	held   bool // the flight is to hold an event of it
	failed bool // an event could not be judged: the message comes back by itself, outside the flight
	// of a dead letter that SQS's own redrive brought here, the reason that it gives; empty for any
	// other message
	letter deadletter.Reason
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

// pending is one event that waits for its judgement.
type pending struct {
	event.Event
	msg  int // index into msgs
	doc  int // index into docs
	hold bool
	due  shard.Micros
}

func (b *batch) rows() rows.Table { return rows.Table{Store: b.h.Shards, Clock: b.h.Clock} }

func (b *batch) now() shard.Micros { return shard.MicrosOf(b.h.Clock.Now()) }

// answer lists the messages that are not done.
func (b *batch) answer() []string {
	failed := b.away
	for i, s := range b.state {
		if s.open > 0 || s.failed {
			failed = append(failed, b.msgs[i].ID)
		}
	}
	return queue.Kept(failed)
}

// done completes one event of a message. The message is acknowledged when the count of its open
// events reaches 0 and none of them failed.
func (b *batch) done(p *pending, step journal.Step, detail string) {
	b.state[p.msg].open--
	b.h.note(b.about(p, step, detail))
}

// lost notes a call whose failure concerns no message alone, and what class of failure it was.
func (b *batch) lost(call string, err error) {
	if err != nil {
		b.h.note(journal.Note{Step: journal.CallFailed, Detail: call + ": " + backoff.Class(err)})
	}
}

// fail leaves the message to redelivery. The mark also keeps the message out of the flight: all of
// its events are judged again together.
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
