// SPDX-License-Identifier: Apache-2.0

package receive

import (
	"fmt"
	"strings"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
)

// sorted holds the events of a batch, sorted by what receive does with them next.
type sorted struct {
	events  []pending // to be judged
	later   []laterEvent
	objects []object
	faults  faults
}

// sortEvents does step 1: it sorts the decoded events of every message. A skipped event is done, an
// invalid event becomes a dead letter, and an event that is not due soon is scheduled.
func sortEvents(in *invocation, batch []message, decoded [][]event.Result) sorted {
	s := sorted{events: make([]pending, 0, len(batch))}
	for i, results := range decoded {
		m := &batch[i]
		switch {
		case m.newer:
			in.note(journal.Note{Step: journal.Schema, Message: m.ID, Sent: m.Sent, Detail: "dead letter"})
			in.fail(&pending{msg: m}, "the dead letter has a newer schema")
		case results == nil:
			in.fail(&pending{msg: m}, "the batch holds more events than receive judges at once")
		}
		for j, r := range results {
			m.open++
			m.events = len(results)
			switch {
			case r.Invalid != nil && r.Invalid.Transient():
				in.fail(&pending{msg: m, Event: event.Event{Index: r.Invalid.Index}},
					r.Invalid.Problem+": "+r.Invalid.Err.Error())
			case r.Invalid != nil:
				p := &pending{msg: m}
				p.Event = event.Event{Index: r.Invalid.Index, Doc: r.Invalid.Doc, Key: r.Invalid.Key}
				s.faults.add(p, r.Invalid.Reason, r.Invalid.Detail())
			case r.Object != nil:
				s.objects = append(s.objects, object{pending{msg: m, Event: event.Event{Index: j}}, r.Object})
			case r.Skip != "":
				p := &pending{msg: m, Event: event.Event{Index: j, Doc: r.Event.Doc}}
				in.complete(p, p.about(journal.Skipped, r.Skip))
			default:
				s.place(in, pending{msg: m, Event: r.Event})
			}
		}
	}
	return s
}

// place adds an event to the batch, unless it belongs to another stack or sink, or is not due soon.
func (s *sorted) place(in *invocation, p pending) {
	cfg := in.config
	// Two stacks must never write one document: neither would know the versions of the other. An
	// event of another part is never skipped, because its sender may have computed a wrong part.
	if !cfg.Ours(p.Doc) {
		s.faults.add(&p, deadletter.Contract, "subject: "+cfg.NotOurs(p.Doc)+
			": its sender has another hash or another number of parts (docs/scale.md)")
		return
	}
	// Each sink has its own queues (design section 8). An event in the wrong queue breaks the
	// contract, unless the settings say that the right queue has the event too.
	if cfg.SinkOf(p.Doc) != in.sink {
		detail := fmt.Sprintf("collection: %s belongs to sink %s, but this is a queue of sink %s", p.Doc.Collection(),
			strings.Join(cfg.SinksFor(string(p.Doc.Collection())), ", "), in.sink)
		if cfg.Queues.Elsewhere == config.ElsewhereSkip {
			in.complete(&p, p.about(journal.Skipped, detail))
		} else {
			s.faults.add(&p, deadletter.Contract, detail)
		}
		return
	}
	// A version that is not due within quiet must not become pending: it would hide versions that
	// are due earlier.
	ahead := p.NotBefore.Sub(in.start)
	if p.NotBefore.IsZero() || ahead <= max(cfg.For(string(p.Doc.Collection())).Quiet, cfg.Index.Guard) {
		s.events = append(s.events, p)
		return
	}
	if limit := cfg.Lifecycle.RowRetention - cfg.Lifecycle.ProducerLateness - 24*time.Hour; ahead > limit {
		s.faults.add(&p, deadletter.TooFarAhead, fmt.Sprintf("notbefore: at most %s ahead, so that its row outlives it",
			limit))
		return
	}
	s.putAside(&p)
}

// maxLater is the number of events of one message that may be scheduled, because each needs a copy
// of the message.
const maxLater = 10

// putAside marks an event that must be scheduled.
func (s *sorted) putAside(p *pending) {
	if p.msg.later == maxLater {
		s.faults.add(p, deadletter.Contract, fmt.Sprintf(
			"notbefore: at most %d events of one message may wait until later: send each other event in a separate message",
			maxLater))
		return
	}
	p.msg.later++
	s.later = append(s.later, laterEvent{p: *p})
}
