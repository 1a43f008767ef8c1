// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"io"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// trace hashes all steps in order. If the options ask for it, trace also writes them as a story.
type trace struct {
	w     *World
	hash  hash.Hash64
	buf   []byte
	story io.Writer
}

func newTrace(w *World, story io.Writer) trace { return trace{w: w, hash: fnv.New64a(), story: story} }

func (t *trace) number(n int64) {
	t.buf = binary.LittleEndian.AppendUint64(t.buf[:0], uint64(n))
	_, _ = t.hash.Write(t.buf) // writing to a hash never fails
}

func (t *trace) text(s string) {
	t.buf = append(append(t.buf[:0], s...), 0xff)
	_, _ = t.hash.Write(t.buf)
}

func (t *trace) decision(v *fault.Invocation, op fault.Op, verdict fault.Verdict) {
	t.number(int64(t.w.now))
	t.number(v.ID)
	t.text(op.Call)
	t.text(string(op.Doc))
	t.number(int64(op.Count)<<8 | int64(verdict))
	if t.story != nil {
		what := ""
		if verdict != fault.OK {
			what = ": " + verdict.String()
		}
		t.tell("%s %d sends %s %s %s%s (%d)%s", v.Name, v.ID, op.Service, op.Call, op.Doc, op.Flight, op.Count, what)
	}
}

func (t *trace) write(v *invocation, w shard.Write, allowed bool) {
	t.number(int64(t.w.now))
	t.text(w.Transition.String())
	t.text(string(w.Doc))
	if allowed {
		t.number(1)
	}
	if t.story != nil {
		row := t.w.table.row(w.Doc)
		answer := "refused"
		if allowed {
			answer = "done"
		}
		t.tell("  table: %s of %s %d on %s %s; pending %s committed %s claimed %s dead %s owner %q until %s", w.Transition,
			v.Name, v.ID, w.Doc, answer,
			row.Pending, row.Committed, row.Claimed, row.Dead, row.Owner, t.micros(row.LeaseUntil))
	}
}

func (t *trace) item(op sink.Op, out sink.Outcome) {
	t.number(int64(t.w.now))
	t.text(string(op.Doc))
	t.text(string(op.Key))
	t.number(int64(out.Kind))
	if t.story != nil {
		t.tell("  sink: %s %s %s: %s %s", op.Kind, op.Doc, op.Key, out.Kind, out.Reason)
	}
}

func (t *trace) message(q *sqsQueue, m *message, what string) {
	t.number(int64(t.w.now))
	t.text(m.ID)
	t.text(what)
	if t.story != nil {
		about := ""
		for _, e := range q.carried[m] {
			about += " " + string(e.doc) + " " + e.key.String()
		}
		t.tell("  %s: %s %s (received %d)%s", q.Name, m.ID, what, m.ReceiveCount, about)
	}
}

// mark records any other step, for example a kill or the end of an execution.
func (t *trace) mark(what, name string, id int64) {
	t.number(int64(t.w.now))
	t.text(what)
	t.number(id)
	if t.story != nil {
		t.tell("  %s %s %d", what, name, id)
	}
}

func (t *trace) tell(format string, args ...any) {
	if t.story == nil {
		return
	}
	fmt.Fprintf(t.story, "%12.6f ", t.w.now.Seconds())
	fmt.Fprintf(t.story, format+"\n", args...)
}

func (t *trace) micros(m shard.Micros) string {
	if m == 0 {
		return "-"
	}
	return fmt.Sprintf("%.6f", m.Time().Sub(epoch).Seconds())
}
