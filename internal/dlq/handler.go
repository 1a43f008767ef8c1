package dlq

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

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
)

// Decoder turns a message into the events it carries. It returns at least one result and never
// fails as a whole.
type Decoder interface {
	Decode(m queue.Message) []event.Result
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

// maxParallel bounds the messages that one invocation works on at once.
const maxParallel = 16

// Handle judges the batch and returns the ids of the messages that the queue must keep, never nil,
// each once. It does not fail as a whole: whatever goes wrong keeps the message it concerns.
func (h *Handler) Handle(ctx context.Context, msgs []queue.Message) []string {
	settled := make([]bool, len(msgs))
	h.Parallel.Each(maxParallel, len(msgs), func(i int) { settled[i] = h.settle(ctx, msgs[i]) })
	failed := make([]string, 0, len(msgs))
	seen := make(map[string]bool, len(msgs))
	for i, m := range msgs {
		if !settled[i] && !seen[m.ID] {
			seen[m.ID] = true
			failed = append(failed, m.ID)
		}
	}
	return failed
}

// settle reports whether the message may go.
func (h *Handler) settle(ctx context.Context, m queue.Message) bool {
	l, err := deadletter.Read(m)
	switch {
	case errors.Is(err, deadletter.ErrNoLetter):
		return h.moved(ctx, m, "") // by SQS, or by a service that could not deliver it
	case !h.believes(m.Sender):
		return h.untrusted(ctx, m, l, err)
	case err == nil:
		return h.sent(ctx, l)
	case errors.Is(err, deadletter.ErrSchema):
		h.note(journal.Note{Step: journal.Schema, Message: m.ID, Detail: "dead letter"})
		return false
	}
	return h.moved(ctx, m, "") // its facts are broken: judged by what it carries
}

// believes reports whether the sender may say that a message is a dead letter (ADR 0019).
func (h *Handler) believes(sender string) bool {
	role, _, _ := strings.Cut(sender, ":")
	return h.Senders == nil || role != "" && slices.Contains(h.Senders, role)
}

// untrusted settles what says that it is a dead letter and comes from nobody who sends them: it is
// forged, or from a role that there was before. It is judged by the message that it carries. l and
// err are what Read made of it.
func (h *Handler) untrusted(ctx context.Context, m queue.Message, l deadletter.Letter, err error) bool {
	h.note(journal.Note{
		Step: journal.Untrusted, Message: m.ID, Sent: m.Sent,
		Detail: "not sent by receive or index: judged by what it carries",
	})
	// What a function of before sends is followed by its REJECT or PARK. Until that is written, the
	// row says less than the dead letter: the first receive comes too early.
	if m.ReceiveCount <= 1 {
		return false
	}
	if err != nil {
		return h.moved(ctx, m, "")
	}
	first, marked := m.Attributes[queue.AttrFirstSent]
	m.Body, m.Attributes = l.Body, l.Attributes
	if marked { // on the outside stands the earlier one of the two
		m.Attributes = maps.Clone(m.Attributes)
		if m.Attributes == nil {
			m.Attributes = map[string]queue.Attribute{}
		}
		m.Attributes[queue.AttrFirstSent] = first
	}
	return h.moved(ctx, m, l.Reason)
}

// sent settles a dead letter that receive or index sent: its event was counted there.
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

// store parks the dead letter.
func (h *Handler) store(ctx context.Context, l deadletter.Letter) bool {
	_, err := backoff.Get(ctx, h.Clock, func() (bool, error) { return h.Letters.Park(ctx, l) })
	if err != nil {
		h.note(h.of(l.Facts, journal.Failed, "park the dead letter: "+err.Error()))
		return false
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
