// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// request is one bulk call to the sink and the sink's answer.
type request struct {
	docs     []*document
	ops      []sink.Op
	outcomes []sink.Outcome // nil if the call was not sent
	began    shard.Micros
	took     time.Duration
	panicked bool
	broken   []*document // documents that can never be built, so they are not in the call
}

// answered reports whether the outcomes say something about the sink. After a panic of the client
// they do not.
func (r *request) answered() bool { return r.outcomes != nil && !r.panicked }

// writer does step 4 of a turn: it sends documents to the sink.
type writer struct {
	*holding
	engine *engine
	budget *budget
}

// write makes one bulk call for all claimed documents.
func (s *writer) write(ctx context.Context, docs []*document) *request {
	broken, sent := split(docs, func(d *document) bool { return d.fault != "" })
	r := &request{docs: sent, ops: make([]sink.Op, len(sent)), broken: broken}
	for i, d := range sent {
		r.ops[i] = d.op(d.lease.At)
		r.ops[i].Present = d.row.CommittedOp == shard.Put
	}
	if len(r.ops) == 0 || !s.budget.mayGo(ctx, len(r.ops)) {
		return r
	}
	began := s.clock.Now() // its monotonic reading measures the time, even if the clock is set
	outcomes, p := s.engine.send(ctx, r.ops)
	r.began, r.took = shard.MicrosOf(began), s.clock.Now().Sub(began)
	s.budget.sent, s.budget.took = s.budget.sent+len(r.ops), r.took
	r.outcomes, r.panicked = outcomes, p != nil
	s.suspect(sent, r.panicked)
	return r
}

// op returns the write of the newest version. The fence is the time of the claim, or the present
// time if there is no claim.
func (d *document) op(at shard.Micros) sink.Op {
	e := d.newest()
	return sink.Op{
		Doc: d.id.Plain(), Kind: e.Op, Fence: shard.Fence(at), Key: e.Key, Version: d.version, At: at.Time(),
		Document: d.body,
	}
}

// suspect records the documents whose last request ended in a panic of the sink's client. The
// outcome is unknown, so each document is tried again after its lease has expired, alone in its
// request.
func (s *writer) suspect(docs []*document, panicked bool) {
	set := s.state.Panicked.Clone()
	for _, d := range docs {
		if e := d.newest(); panicked {
			set.Put(e.item)
		} else {
			set.Drop(e.item)
		}
	}
	s.state.Panicked = set
}
