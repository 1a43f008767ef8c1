// SPDX-License-Identifier: Apache-2.0

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
	// DecodeContext decodes a message. If the message contains pointers to bodies, it loads the
	// bodies under the context.
	DecodeContext(ctx context.Context, m queue.Message) []event.Result
}

// Handler is dlq for one sink. All fields are required except Senders and Parallel.
type Handler struct {
	Shards  shard.Store
	Letters deadletter.Store
	Sources Decoder
	Live    queue.Queue // the queues of the lanes, to give messages back to them
	Bulk    queue.Queue
	Dead    queue.Queue // the dead-letter queue, to change the visibility of messages
	Config  *config.Config
	Sink    string
	Clock   clock.Clock
	Journal journal.Journal

	// Senders has the roles whose dead letters are believed; nil within one process.
	Senders queue.Senders

	Parallel fanout.Runner // nil means goroutines
}

const (
	// maxParallel bounds the calls that one invocation makes in parallel.
	maxParallel = 16
	// maxDecodes bounds the messages that are decoded in parallel. A pointer may name a body of
	// several megabytes, which is in memory twice for a moment.
	maxDecodes = 4
	// maxLoadBytes bounds the bytes that are loaded for one message, which may contain hundreds of
	// pointers. A message that needs more bytes waits, and becomes a dead letter in the end.
	maxLoadBytes = 16 << 20
	// decodeTime is the time for loading the bodies that pointers name. It is a third of the
	// function's time.
	decodeTime = 10 * time.Second
)

// Handle judges the batch and returns the ids of the messages that the queue must keep, each once,
// never nil. Handle does not fail as a whole: a failure keeps only the message that it affects. If
// the time is over, the remaining messages stay in the queue. The next receive then finds out which
// dead letters are already stored.
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
	// Run the tasks in turns over the messages, so that a message with many events does not block
	// the others.
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

// job is one message of an invocation. The steps of a job run one after the other, its tasks in
// parallel.
type job struct {
	h       *Handler
	m       queue.Message
	ln      flight.Lane
	claimed deadletter.Reason // the reason that an untrusted dead letter gives; empty for any other message
	results []event.Result    // the decoded events of a message that is judged
	tasks   []task            // the dead letters to be stored
	kept    bool              // the message stays, even if its tasks succeed
}

// task stores one dead letter of a message.
type task struct {
	job    *job
	letter deadletter.Letter
	events []*verdict // the events that share the dead letter; nil if the message itself is a dead letter
	stored bool
}

// run stores the dead letter of the task, while there is time.
func (t *task) run(ctx context.Context) {
	switch {
	case ctx.Err() != nil:
	case t.events == nil:
		t.stored = t.job.h.storeSent(ctx, t.job.h.named(t.letter))
	default:
		t.stored = t.job.parkTask(ctx, t)
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

// read finds out whether the message is a trusted dead letter. If not, read decodes the events of
// the message.
func (j *job) read(ctx context.Context) {
	l, err := deadletter.Read(j.m)
	switch {
	// SQS moved the message, or a service sent it here because it could not deliver it
	case errors.Is(err, deadletter.ErrNoLetter):
	case !j.h.Senders.Ours(j.m.Sender):
		if j.untrusted(); j.kept {
			return
		}
	case err == nil:
		j.tasks = []task{{job: j, letter: l}}
		return
	} // otherwise the facts of the dead letter are broken: judge the message inside
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
		// These strings may be parts of a loaded body, and would keep all of the body in memory.
		e := &j.results[i].Event
		e.Data, e.DataRef, e.Version = "", "", ""
	}
}

// untrusted handles a dead letter whose sender does not have a role of lull's functions. The dead
// letter is forged, or was sent under a role that no longer exists. It is judged by the message
// inside it.
func (j *job) untrusted() {
	j.h.note(journal.Note{
		Step: journal.Untrusted, Message: j.m.ID, Sent: j.m.Sent,
		Detail: "not sent by lull: judged by the message inside",
	})
	// A function of an earlier deployment may have sent the dead letter. Its REJECT or PARK
	// follows, and until then the row has less information than the dead letter. So the first
	// receive is too early to judge.
	if j.m.ReceiveCount <= 1 {
		j.kept = true
		return
	}
}

// storeSent stores a dead letter from receive or index. They have already counted its event.
func (h *Handler) storeSent(ctx context.Context, l deadletter.Letter) bool {
	if h.Config.DeadLetters == config.DeadLettersNone {
		h.note(h.letterNote(l.Facts, journal.Dropped, string(l.Reason)+": "+l.Detail))
		return true
	}
	if l.Doc != "" && l.Key != "" {
		// Only committed is used, and committed only grows, so the cheaper eventual read is enough.
		row, err := h.rows().One(ctx, l.Doc, shard.Eventual)
		if err != nil {
			h.note(h.letterNote(l.Facts, journal.Failed, "read the row: "+err.Error()))
			return false
		}
		if superseded(row, l.Key) {
			h.note(h.letterNote(l.Facts, journal.Dropped, supersededDetail))
			return true
		}
	}
	return h.store(ctx, l)
}

const supersededDetail = "superseded: its version or a newer one is committed, or an operator took the version back"

// superseded reports whether the row makes the dead letter unnecessary. Keys of different classes
// cannot be compared.
func superseded(r shard.Row, k shard.OrderKey) bool {
	j := shard.Judge(r, k, k.Class(), false)
	return j == shard.Stale || j == shard.Duplicate || j == shard.TakenBack
}

// astray returns the sink of a document, and whether that sink is not the sink of this dlq.
func (h *Handler) astray(doc shard.DocID) (sink string, astray bool) {
	sink = h.Config.SinkOf(doc)
	return sink, sink != h.Sink
}

// named gives a dead letter from the wrong queue a separate id, because only the document's own
// sink stores the dead letter of the version. A message that cannot be judged also gets an id for
// each sink, because it must be redriven to every sink that received it.
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
		h.note(h.letterNote(l.Facts, journal.Failed, "park the dead letter: "+err.Error()))
		return false
	}
	if parking == deadletter.Other {
		h.note(h.letterNote(l.Facts, journal.Conflict, "the stored dead letter holds another message of this version, and stays"))
	}
	h.note(h.letterNote(l.Facts, journal.Parked, string(l.Reason)+": "+l.Detail))
	return true
}

func (h *Handler) rows() rows.Table { return rows.Table{Store: h.Shards, Clock: h.Clock} }

// lane returns the lane of the queue that SQS moved a message from. The name of the queue ends with
// the lane: <stack>-<sink>-<lane>.
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

// letterNote returns a note about a dead letter, not about a message.
func (h *Handler) letterNote(f deadletter.Facts, step journal.Step, detail string) journal.Note {
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
