package sim

import (
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/sink"
)

// history records what callers asked of a document's row and of the sink, and what they heard, for a check of linearizability. It
// keeps nothing unless it is on.
type history struct {
	on     bool
	clock  int64 // a moment for each call and each return: no two are the same
	Rows   []RowOp
	Reads  []SinkRead
	Writes []SinkWrite
}

// RowOp is one conditional write: called, and returned with an answer or with none.
type RowOp struct {
	Client   int64
	Write    shard.Write
	Call     int64
	Return   int64 // 0: no answer; it may have been applied, or may yet be
	Old      shard.Row
	Refused  bool
	Throttle bool
}

// SinkWrite is a version that was applied by the sink.
type SinkWrite struct {
	Doc shard.DocID
	Key shard.OrderKey
	At  int64
}

// SinkRead is a commit: the sink holds this version or a newer one from then on.
type SinkRead struct {
	Doc shard.DocID
	Key shard.OrderKey
	At  int64
}

func (h *history) tick() int64 {
	h.clock++
	return h.clock
}

// called begins a write of a document's row and returns its number.
func (h *history) called(v *invocation, w shard.Write) int {
	if !h.on || !w.Doc.IsDocument() {
		return -1
	}
	h.Rows = append(h.Rows, RowOp{Client: v.ID, Write: w, Call: h.tick()})
	return len(h.Rows) - 1
}

// returned ends it: with the row before, or with a refusal's image.
func (h *history) returned(id int, old shard.Row, err error) {
	if id < 0 {
		return
	}
	op := &h.Rows[id]
	op.Return, op.Old = h.tick(), old
	if refused, ok := shard.AsRefused(err); ok {
		op.Refused, op.Old = true, refused.Row
	} else if err != nil {
		op.Throttle = true
	}
}

func (h *history) applied(op sink.Op) {
	if h.on {
		h.Writes = append(h.Writes, SinkWrite{op.Doc, op.Key, h.tick()})
	}
}
