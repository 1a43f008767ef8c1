package dlq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/rows"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// Decoder decodes a message into its events. It returns at least one result and never fails as a
// whole.
type Decoder interface {
	// DecodeContext decodes a message, and loads the bodies that pointers name under the
	// context.
	DecodeContext(ctx context.Context, m queue.Message) []event.Result
}

// Handler is dlq for one sink. All fields are required except Senders and Parallel.
type Handler struct {
	Shards  shard.Store
	Letters deadletter.Store
	Sources Decoder
	Live    queue.Queue // the lanes that messages are given back to
	Bulk    queue.Queue
	Dead    queue.Queue // the dead-letter queue, to change visibility
	Config  *config.Config
	Sink    string
	Clock   clock.Clock
	Journal journal.Journal

	// Senders are the roles whose dead letters are believed; nil within one process.
	Senders queue.Senders

	Parallel fanout.Runner // nil: goroutines
}

const (
	// maxParallel bounds the calls that one invocation makes at once.
	maxParallel = 16
	// maxDecodes bounds the messages that are decoded at once. A pointer may name a body of
	// several megabytes, which is in memory twice for a moment.
	maxDecodes = 4
	// maxLoadBytes bounds the bytes that are loaded for one message, which may contain hundreds
	// of pointers. A message that needs more waits, and becomes a dead letter in the end.
	maxLoadBytes = 16 << 20
	// decodeTime is the time for loading the bodies that pointers name: a third of the
	// function's time.
	decodeTime = 10 * time.Second
)

// Handle judges the batch and returns the ids of the messages that the queue must keep, never
// nil, each once. It does not fail as a whole: a failure keeps the message it concerns. If the
// time is over, the remaining messages stay. At the next receive, dead letters that are stored
// are found stored.
func (h *Handler) Handle(ctx context.Context, msgs []queue.Message) []string {
	jobs := make([]job, len(msgs))
	for i, m := range msgs {
		jobs[i] = job{h: h, m: m}
	}
	loading, cancel := h.Clock.Deadline(ctx, decodeTime)
	defer cancel()
	h.Parallel.Each(maxDecodes, len(jobs), func(i int) { jobs[i].read(source.LoadAtMost(loading, maxLoadBytes)) })
	h.Parallel.Each(maxParallel, len(jobs), func(i int) { jobs[i].judge(ctx) })
	var tasks []*task
	for i := range jobs {
		for n := range jobs[i].tasks {
			tasks = append(tasks, &jobs[i].tasks[n])
		}
	}
	// By turns over the messages, so that a message with many events does not block the others.
	fanout.ByTurns(tasks, func(t *task) *job { return t.job })
	h.Parallel.Each(maxParallel, len(tasks), func(i int) { tasks[i].run(ctx) })

	var failed []string
	for i := range jobs {
		if !jobs[i].done() {
			failed = append(failed, jobs[i].m.ID)
		}
	}
	kept := queue.Kept(failed)
	if len(kept) > 0 {
		h.note(journal.Note{Step: journal.DeadKept, Count: len(kept)})
	}
	return kept
}

// job is one message of an invocation. Its steps run one after the other, its tasks in parallel.
type job struct {
	h       *Handler
	m       queue.Message
	ln      flight.Lane
	claimed deadletter.Reason // the reason that an untrusted dead letter gives; empty for any other message
	results []event.Result    // the events of a message that is judged
	tasks   []task            // the dead letters to be stored
	kept    bool              // the message stays, even if its tasks succeed
}

// task stores one dead letter of a message.
type task struct {
	job    *job
	letter deadletter.Letter
	events []*verdict // the events of the dead letter; nil if the message itself is a dead letter
	stored bool
}

// run stores the dead letter, while there is time.
func (t *task) run(ctx context.Context) {
	switch {
	case ctx.Err() != nil:
	case t.events == nil:
		t.stored = t.job.h.sent(ctx, t.job.h.named(t.letter))
	default:
		t.stored = t.job.bury(ctx, t)
	}
}

// done reports whether the message may be deleted.
func (j *job) done() bool {
	remaining := 0
	for i := range j.tasks {
		if !j.tasks[i].stored {
			remaining++
		}
	}
	if remaining > 0 && len(j.tasks) > 1 {
		j.h.note(journal.Note{
			Step: journal.Failed, Message: j.m.ID, Sent: j.m.Sent, Count: remaining,
			Detail: fmt.Sprintf("%d of %d dead letters are not stored yet", remaining, len(j.tasks)),
		})
	}
	return !j.kept && remaining == 0
}

// read finds out whether the message is a trusted dead letter. Otherwise it decodes its events.
func (j *job) read(ctx context.Context) {
	l, err := deadletter.Read(j.m)
	switch {
	case errors.Is(err, deadletter.ErrNoLetter): // moved by SQS, or by a service that could not deliver it
	case !j.h.Senders.Ours(j.m.Sender):
		if j.untrusted(); j.kept {
			return
		}
	case err == nil:
		j.tasks = []task{{job: j, letter: l}}
		return
	} // otherwise its facts are broken: judge the message inside
	inside, claimed, err := deadletter.Inside(j.m)
	if err != nil && j.h.Senders.Ours(j.m.Sender) {
		j.h.note(journal.Note{Step: journal.Schema, Message: j.m.ID, Detail: "dead letter"})
		j.kept = true
		return
	}
	j.m, j.claimed = inside, claimed
	j.m, _ = j.h.Senders.Believed(j.m)
	j.ln = lane(j.m.MovedFrom)
	if p := fanout.Catch(func() { j.results = j.h.Sources.DecodeContext(ctx, j.m) }); p != nil {
		j.h.note(journal.Note{
			Step: journal.Panicked, Message: j.m.ID, Sent: j.m.Sent, Detail: "decode: " + p.Error(),
			Stack: string(p.Stack),
		})
		j.results = []event.Result{{Invalid: &event.Invalid{Reason: deadletter.Panic, Problem: "decode: " + p.Error()}}}
	}
	for i := range j.results {
		// These strings may be parts of a loaded body, and would keep all of it in memory.
		e := &j.results[i].Event
		e.Data, e.DataRef, e.Version = "", "", ""
	}
}

// untrusted handles a dead letter whose sender is none of the functions' roles. It is forged, or
// from a role that no longer exists. It is judged by the message inside it.
func (j *job) untrusted() {
	j.h.note(journal.Note{
		Step: journal.Untrusted, Message: j.m.ID, Sent: j.m.Sent,
		Detail: "not sent by lull: judged by what it carries",
	})
	// If a former function sent it, that function's REJECT or PARK follows. Until then the row
	// has less information than the dead letter. So the first receive is too early.
	if j.m.ReceiveCount <= 1 {
		j.kept = true
		return
	}
}

// sent stores a dead letter from receive or index, which have counted its event.
func (h *Handler) sent(ctx context.Context, l deadletter.Letter) bool {
	if h.Config.DeadLetters == config.DeadLettersNone {
		h.note(h.of(l.Facts, journal.Dropped, string(l.Reason)+": "+l.Detail))
		return true
	}
	if l.Doc != "" && l.Key != "" {
		// Only committed is used, and it only grows: the cheaper read is enough.
		row, err := h.rows().One(ctx, l.Doc, shard.Eventual)
		if err != nil {
			h.note(h.of(l.Facts, journal.Failed, "read the row: "+err.Error()))
			return false
		}
		if superseded(row, l.Key) {
			h.note(h.of(l.Facts, journal.Dropped, supersededDetail))
			return true
		}
	}
	return h.store(ctx, l)
}

const supersededDetail = "superseded: its version or a newer one is committed, or an operator took it back"

// superseded reports whether the row makes the dead letter unnecessary. Keys of different
// classes do not compare.
func superseded(r shard.Row, k shard.OrderKey) bool {
	j := shard.Judge(r, k, k.Class(), false)
	return j == shard.Stale || j == shard.Duplicate || j == shard.TakenBack
}

// astray returns the sink of a document, and whether that is another sink than ours.
func (h *Handler) astray(doc shard.DocID) (sink string, astray bool) {
	sink = h.Config.SinkOf(doc)
	return sink, sink != h.Sink
}

// named gives a dead letter from the wrong queue a separate id. It is not the version's dead
// letter, which the document's own sink stores. It does the same for a message that cannot be
// judged, because it must be redriven to every sink that received it.
func (h *Handler) named(l deadletter.Letter) deadletter.Letter {
	switch _, astray := h.astray(l.Doc); {
	case l.Doc == "" || l.Key == "":
		if h.Sink != h.Config.DefaultSink {
			l.ID = deadletter.OfSink(h.Sink, l.ID)
		}
	case astray && l.Reason == deadletter.Contract:
		l.ID = deadletter.Astray(h.Sink, l.Doc, l.Key)
	}
	return l
}

// store parks the dead letter.
func (h *Handler) store(ctx context.Context, l deadletter.Letter) bool {
	parking, err := backoff.Get(ctx, h.Clock, func() (deadletter.Parking, error) { return h.Letters.Park(ctx, l) })
	if err != nil {
		h.note(h.of(l.Facts, journal.Failed, "park the dead letter: "+err.Error()))
		return false
	}
	if parking == deadletter.Other {
		h.note(h.of(l.Facts, journal.Conflict, "its dead letter holds another message of this version, which stays"))
	}
	h.note(h.of(l.Facts, journal.Parked, string(l.Reason)+": "+l.Detail))
	return true
}

func (h *Handler) rows() rows.Table { return rows.Table{Store: h.Shards, Clock: h.Clock} }

// lane returns the lane of the queue that SQS moved a message from. The queue's name ends with
// it: <stack>-<sink>-<lane>.
func lane(movedFrom string) flight.Lane {
	if strings.HasSuffix(movedFrom, "-"+string(flight.Bulk)) {
		return flight.Bulk
	}
	return flight.Live
}

func (h *Handler) queue(l flight.Lane) queue.Queue {
	if l == flight.Bulk {
		return h.Bulk
	}
	return h.Live
}

// of returns a note about a dead letter, not about a message.
func (h *Handler) of(f deadletter.Facts, step journal.Step, detail string) journal.Note {
	return journal.Note{
		Step: step, Doc: f.Doc, Key: f.Key, Lane: f.Lane, Event: f.Event, Sent: f.Sent, Detail: detail,
		Letter: f.ID,
	}
}

func (h *Handler) note(n journal.Note) {
	n.At, n.Sink = h.Clock.Now(), h.Sink
	h.Journal.Note(n)
}

func (h *Handler) now() shard.Micros { return shard.MicrosOf(h.Clock.Now()) }
