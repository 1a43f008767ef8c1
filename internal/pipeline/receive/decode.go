package receive

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

const (
	// maxLoads bounds the bodies that are loaded at once. Each may be as large as one bulk
	// request.
	maxLoads = 12
	// maxLoadBytes bounds the bytes that are loaded: after so many no other body is. The
	// remaining messages are received again.
	maxLoadBytes = 32 << 20
)

// decode is step 1: it decodes every message by its source. A skipped event is done, an invalid
// one becomes a dead letter, and one that is not due soon is scheduled.
func (b *batch) decode(ctx context.Context) {
	b.events = make([]pending, 0, len(b.msgs))
	for i, results := range b.results(ctx) {
		switch {
		case b.state[i].newer:
			b.h.note(journal.Note{
				Step: journal.Schema, Message: b.msgs[i].ID, Sent: b.msgs[i].Sent, Detail: "dead letter",
			})
			b.fail(&pending{msg: i}, "the dead letter has a newer schema")
		case results == nil:
			b.fail(&pending{msg: i}, "the batch holds more than is judged at once")
		}
		for j, r := range results {
			b.state[i].open++
			b.state[i].events = len(results)
			switch {
			case r.Invalid != nil && r.Invalid.Transient():
				b.fail(&pending{msg: i, Event: event.Event{Index: r.Invalid.Index}},
					r.Invalid.Problem+": "+r.Invalid.Err.Error())
			case r.Invalid != nil:
				p := &pending{msg: i}
				p.Event = event.Event{Index: r.Invalid.Index, Doc: r.Invalid.Doc, Key: r.Invalid.Key}
				b.letter(p, r.Invalid.Reason, r.Invalid.Detail())
			case r.Object != nil:
				b.objects = append(b.objects, object{pending{msg: i, Event: event.Event{Index: j}}, r.Object})
			case r.Skip != "":
				b.done(&pending{msg: i, Event: event.Event{Index: j, Doc: r.Event.Doc}}, journal.Skipped, r.Skip)
			default:
				b.place(pending{msg: i, Event: r.Event})
			}
		}
	}
}

// believe removes lull's own attributes from the messages of other senders (ADR 0057). So these
// attributes are neither in the flight nor in a copy that lull sends in its own name.
func (h *Handler) believe(msgs []queue.Message) []queue.Message {
	copied := false // the slice belongs to the caller
	for i := range msgs {
		m, removed := h.Senders.Believed(msgs[i])
		if removed == nil {
			continue
		}
		if !copied {
			msgs, copied = slices.Clone(msgs), true
		}
		msgs[i] = m
		h.note(journal.Note{
			Step: journal.Untrusted, Message: m.ID, Sent: m.Sent,
			Detail: "not sent by lull: judged without " + strings.Join(removed, ", "),
		})
	}
	return msgs
}

// results decodes every message. Bodies that pointers name are loaded in parallel, for a part of
// the invocation's time. A message whose body was not loaded by then is received again, and does
// not stop the rest from being admitted. A message that the batch has no room for has no
// results.
func (b *batch) results(ctx context.Context) [][]event.Result {
	ctx, cancel := b.until(source.LoadAtMost(ctx, maxLoadBytes), loadShare)
	defer cancel()
	results, room := make([][]event.Result, len(b.msgs)), b.newRoom()
	full := b.open()
	var mu sync.Mutex
	b.h.Parallel.Each(maxLoads, len(b.msgs), func(i int) {
		if full[i] {
			return
		}
		decoded := b.decodeOne(ctx, &b.msgs[i])
		for j := range decoded {
			// These strings may be parts of a loaded body, and would keep all of it in memory.
			// The order key is computed already; index decodes again.
			e := &decoded[j].Event
			e.Data, e.DataRef, e.Version = "", "", ""
		}
		mu.Lock()
		defer mu.Unlock()
		results[i] = decoded
		for _, over := range room.take(i, len(decoded)) {
			results[over] = nil
		}
	})
	return results
}

// open unpacks the messages inside dead letters that were redriven. If unpacking makes the batch
// too large, the message is received again. So is a dead letter from a newer lull, because only
// the newer lull knows where its body is.
func (b *batch) open() (full map[int]bool) {
	bytes := 0
	for i := range b.msgs {
		if _, ok := b.msgs[i].Attributes[deadletter.AttrLetter]; !ok {
			continue
		}
		if full == nil {
			b.msgs, full = slices.Clone(b.msgs), map[int]bool{} // the slice belongs to the caller
		}
		if bytes > maxLetterBytes {
			full[i] = true
			continue
		}
		inside, says, err := deadletter.Inside(b.msgs[i])
		b.state[i].letter = says
		if err != nil && b.h.Senders.Ours(b.msgs[i].Sender) {
			full[i], b.state[i].newer = true, true
			continue
		}
		b.msgs[i] = inside
		b.msgs[i], _ = b.h.Senders.Believed(b.msgs[i])
		bytes += len(b.msgs[i].Body)
	}
	return full
}

// panicTries is how often a message whose decoding panics is received before it becomes a dead
// letter. Another build may decode it.
const panicTries = 3

// decodeOne decodes a message. A panic affects this message only.
func (b *batch) decodeOne(ctx context.Context, m *queue.Message) (results []event.Result) {
	p := fanout.Catch(func() { results = b.h.Sources.DecodeContext(ctx, *m) })
	if p == nil {
		return results
	}
	b.h.note(journal.Note{
		Step: journal.Panicked, Message: m.ID, Sent: m.Sent, Detail: "decode: " + p.Error(), Stack: string(p.Stack),
	})
	bad := &event.Invalid{Reason: deadletter.Panic, Problem: "decode: " + p.Error()}
	if m.ReceiveCount < panicTries {
		bad.Err = p
	}
	return []event.Result{{Invalid: bad}}
}

// place adds an event to the batch, unless it belongs to another sink or is not due soon.
func (b *batch) place(p pending) {
	cfg := b.h.Config
	// Each sink has its own queues (design section 8). An event in the wrong queue breaks the
	// contract, unless the settings say that the right queue has it too.
	if cfg.SinkOf(p.Doc) != b.h.Sink {
		detail := fmt.Sprintf("collection: %s belongs to sink %s, but this is a queue of sink %s", p.Doc.Collection(),
			strings.Join(cfg.SinksFor(string(p.Doc.Collection())), ", "), b.h.Sink)
		if cfg.Queues.Elsewhere == config.ElsewhereSkip {
			b.done(&p, journal.Skipped, detail)
		} else {
			b.letter(&p, deadletter.Contract, detail)
		}
		return
	}
	// A version that is not due within quiet must not become pending: it would hide versions
	// that are due before it.
	ahead := p.NotBefore.Sub(b.start)
	if p.NotBefore.IsZero() || ahead <= max(cfg.For(string(p.Doc.Collection())).Quiet, cfg.Index.Guard) {
		b.events = append(b.events, p)
		return
	}
	if limit := cfg.Lifecycle.RowRetention - cfg.Lifecycle.ProducerLateness - 24*time.Hour; ahead > limit {
		b.letter(&p, deadletter.TooFarAhead, fmt.Sprintf("notbefore: at most %s ahead, so that its row outlives it",
			limit))
		return
	}
	b.putAside(&p)
}

// docState is one document of the batch: its events and its row.
type docState struct {
	id       shard.DocID
	events   []int // indexes into batch.events, newest first
	read     bool  // the row was read before ADMIT, consistently
	before   shard.Row
	after    shard.Row
	asked    int  // the last event that ADMIT was tried for
	answered bool // an ADMIT was applied or refused
	admitted bool
	err      error // why the last ADMIT was neither
}

// collapse is step 2: one ADMIT per document, for the highest order key. The other versions are
// in the same flight. The documents are in the order in which they are admitted.
func (b *batch) collapse() {
	index := make(map[shard.DocID]int, len(b.events))
	for _, i := range b.fair() {
		p := &b.events[i]
		d, ok := index[p.Doc]
		if !ok {
			d = len(b.docs)
			index[p.Doc] = d
			b.docs = append(b.docs, docState{id: p.Doc})
		}
		p.doc = d
		b.docs[d].events = append(b.docs[d].events, i)
	}
	for d := range b.docs {
		ev := b.docs[d].events
		// Newest first: ADMIT begins with the first event. Equal keys keep the fair order.
		slices.SortStableFunc(ev, func(x, y int) int {
			return cmp.Compare(b.events[y].Key, b.events[x].Key)
		})
		for i := 1; i < len(ev); i++ {
			if shard.VersionConflict(b.events[ev[i-1]].Key, b.events[ev[i]].Key) {
				b.h.note(b.about(&b.events[ev[i]], journal.Conflict, "another payload under the same version"))
			}
		}
	}
}

// aged reports whether the message is older than rows are certainly kept (design sections 5 and
// 6).
func (b *batch) aged(p *pending) bool {
	return b.h.Config.Lifecycle.Aged(b.msgs[p.msg].FirstSent(), b.start)
}

// overdue reports whether this message has been tried for longer than deadDeadline. The time
// counts from its own SentTimestamp, or from NotBefore if the queue kept it back until then.
func (b *batch) overdue(p *pending) bool {
	return b.h.Config.Retry.Overdue(b.msgs[p.msg].Sent, p.NotBefore, b.start)
}
