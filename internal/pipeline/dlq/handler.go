package dlq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/backoff"
	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/fanout"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/rows"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// Decoder turns a message into the events it carries. It returns at least one result and never
// fails as a whole.
type Decoder interface {
	// DecodeContext loads what pointers name under the context.
	DecodeContext(ctx context.Context, m queue.Message) []event.Result
}

// Handler is dlq for one sink. All fields are required except Senders and Parallel.
type Handler struct {
	Shards  shard.Store
	Letters deadletter.Store
	Sources Decoder
	Live    queue.Queue // where messages that never ran go back to
	Bulk    queue.Queue
	Dead    queue.Queue // the dead-letter queue itself: to wait for leases
	Config  *config.Config
	Sink    string
	Clock   clock.Clock
	Journal journal.Journal

	// Senders are the ids of the roles whose dead letters are believed: what SQS says of their
	// messages, up to the colon. nil where nobody else can send to the dead-letter queue, as within
	// one process.
	Senders []string

	Parallel fanout.Runner // nil for goroutines
}

const (
	// maxParallel bounds the calls that one invocation makes at once.
	maxParallel = 16
	// maxDecodes bounds the messages that are taken apart at once: a pointer may lead to a body of
	// several megabytes, which is held twice for a moment.
	maxDecodes = 4
	// maxLoadBytes is after how many bytes no other body is loaded for one message, which may hold
	// pointers to hundreds of them. A message that needs more waits, and ends as a dead letter.
	maxLoadBytes = 16 << 20
	// decodeTime is for loading the bodies that pointers name: a third of the function's time.
	decodeTime = 10 * time.Second
)

// Handle judges the batch and returns the ids of the messages that the queue must keep, never nil,
// each once. It does not fail as a whole: whatever goes wrong keeps the message it concerns. What
// there was no time for stays too, and is not begun anew: what is stored by then is found stored.
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
	// Round by round over the messages, so that one of many events keeps no other waiting.
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

// job is one message of an invocation. Its steps do not run beside each other, its tasks do.
type job struct {
	h       *Handler
	m       queue.Message
	ln      flight.Lane
	claimed deadletter.Reason // of a dead letter that nobody vouches for, empty for any other message
	results []event.Result    // the message's, where it is judged by what it carries
	tasks   []task            // the dead letters to be stored
	kept    bool              // the message stays, whatever its tasks do
}

// task stores one dead letter of a message.
type task struct {
	job    *job
	letter deadletter.Letter
	events []*verdict // those of a message that is judged by what it carries; the dead letter is theirs
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

// done reports whether the message may go.
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

// read finds out what the message is.
func (j *job) read(ctx context.Context) {
	l, err := deadletter.Read(j.m)
	switch {
	case errors.Is(err, deadletter.ErrNoLetter): // moved by SQS, or by a service that could not deliver it
	case !j.h.believes(j.m.Sender):
		if j.untrusted(); j.kept {
			return
		}
	case err == nil:
		j.tasks = []task{{job: j, letter: l}}
		return
	case errors.Is(err, deadletter.ErrSchema):
		j.h.note(journal.Note{Step: journal.Schema, Message: j.m.ID, Detail: "dead letter"})
		j.kept = true
		return
	} // else its facts are broken: judged by what it carries
	j.m, j.claimed = deadletter.Inside(j.m)
	j.ln = lane(j.m.MovedFrom)
	if p := fanout.Catch(func() { j.results = j.h.Sources.DecodeContext(ctx, j.m) }); p != nil {
		j.h.note(journal.Note{
			Step: journal.Panicked, Message: j.m.ID, Sent: j.m.Sent, Detail: "decode: " + p.Error(),
			Stack: string(p.Stack),
		})
		j.results = []event.Result{{Invalid: &event.Invalid{Reason: deadletter.Panic, Problem: "decode: " + p.Error()}}}
	}
	for i := range j.results {
		// Each may be a part of a body that was loaded, and would keep the whole of it.
		e := &j.results[i].Event
		e.Data, e.DataRef, e.Version = "", "", ""
	}
}

// believes reports whether the sender may say that a message is a dead letter (ADR 0019).
func (h *Handler) believes(sender string) bool {
	role, _, _ := strings.Cut(sender, ":")
	return h.Senders == nil || role != "" && slices.Contains(h.Senders, role)
}

// untrusted is about what says that it is a dead letter and comes from nobody who sends them: it is
// forged, or from a role that there was before. It is judged by the message that it carries.
func (j *job) untrusted() {
	j.h.note(journal.Note{
		Step: journal.Untrusted, Message: j.m.ID, Sent: j.m.Sent,
		Detail: "not sent by receive or index: judged by what it carries",
	})
	// What a function of before sends is followed by its REJECT or PARK. Until that is written, the
	// row says less than the dead letter: the first receive comes too early.
	if j.m.ReceiveCount <= 1 {
		j.kept = true
		return
	}
}

// sent stores a dead letter that receive or index sent: its event was counted there.
func (h *Handler) sent(ctx context.Context, l deadletter.Letter) bool {
	if h.Config.DeadLetters == config.DeadLettersNone {
		h.note(h.of(l.Facts, journal.Dropped, string(l.Reason)+": "+l.Detail))
		return true
	}
	if l.Doc != "" && l.Key != "" {
		// committed only grows, and nothing else of the row is believed here: the cheaper read will
		// do.
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

const supersededDetail = "superseded: its version or a newer one is committed"

// superseded reports whether the row makes the dead letter pointless. Keys of another class do not
// compare.
func superseded(r shard.Row, k shard.OrderKey) bool {
	j := shard.Judge(r, k, k.Class(), false)
	return j == shard.Stale || j == shard.Duplicate
}

// astray says to which sink a document belongs, and whether that is another one than ours.
func (h *Handler) astray(doc shard.DocID) (sink string, astray bool) {
	sink = h.Config.SinkOf(doc)
	return sink, sink != h.Sink
}

// named gives what came to the wrong queue a name of its own: it is not the version's dead letter,
// which the document's own sink stores. So it does with a message that cannot be judged: every sink
// that got it has to be sent it again.
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

// lane is the lane of the queue that SQS moved a message from, by the end of its name: queues are
// called <stack>-<sink>-<lane>.
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

// of is a note about a dead letter, not about a message.
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
