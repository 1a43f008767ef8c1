// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/lullhq/lull/internal/shard"
)

// rowModel is a row as design section 5 defines it, without concurrent calls. Each write happens at
// one moment, on the row of that moment.
var rowModel = porcupine.Model{
	Init: func() any { return shard.Row{} },
	Step: func(state, input, output any) (bool, any) {
		row, call := state.(shard.Row), input.(*RowCall)
		row.Doc = call.Write.Doc
		allowed := !call.Read && call.Write.Allowed(row)
		next := row
		if allowed {
			next = call.Write.Apply(row)
		}
		switch {
		case call.Return == 0: // no caller knows whether the write was refused
			return true, next
		case call.Read:
			return call.Row == row, row
		case call.Refused:
			return !allowed && call.Row == row, row
		}
		return allowed && call.Row == row, next
	},
	DescribeOperation: func(input, _ any) string {
		c := input.(*RowCall)
		return fmt.Sprintf("%d: %s %s refused %v saw %+v", c.Client, c.Write.Transition, c.Write.Doc, c.Refused, c.Row)
	},
}

// held is the sink's state of one document.
type held struct {
	key shard.OrderKey
	op  shard.Operation
}

// sinkModel is a register that never goes back. A write of an older version does nothing, and a
// search finds the newest written version.
var sinkModel = porcupine.Model{
	Init: func() any { return held{} },
	Step: func(state, input, _ any) (bool, any) {
		now, call := state.(held), input.(*SinkCall)
		if !call.Read {
			if call.Key > now.key {
				now = held{call.Key, call.Kind}
			}
			return true, now
		}
		want := ""
		if now.op == shard.Put {
			want = now.key.String()
		}
		return call.Found == want, now
	},
	DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
}

// operations returns the calls of a history, by document. If a call without an answer was carried
// out, it counts as ended at that moment. A call that was never carried out is left out.
func operations[T any](calls []T, about func(T) (shard.DocID, Span)) map[shard.DocID][]porcupine.Operation {
	all := map[shard.DocID][]porcupine.Operation{}
	for _, c := range calls {
		doc, s := about(c)
		if end := cmp.Or(s.Return, s.Done); end != 0 {
			all[doc] = append(all[doc], porcupine.Operation{
				ClientId: int(s.Client), Input: c, Call: s.Call, Return: end,
			})
		}
	}
	return all
}

func ofRow(c *RowCall) (shard.DocID, Span)   { return c.Write.Doc, c.Span }
func ofSink(c *SinkCall) (shard.DocID, Span) { return c.Doc, c.Span }

func TestHistoriesAreLinearizable(t *testing.T) {
	t.Parallel()
	rows, sinks := 0, 0
	for _, level := range []Level{Standard, Swarm} {
		for seed := uint64(1); seed <= seeds(60); seed++ {
			h := recorded(t, seed, level)
			report(t, h.w.Run(), level)
			rows, sinks = rows+len(h.Rows), sinks+len(h.Sinks)
			for doc, ops := range operations(h.Rows, ofRow) {
				linearizable(t, seed, level, "row of "+string(doc), rowModel, ops)
			}
			for doc, ops := range operations(h.Sinks, ofSink) {
				if !h.w.HasDied(doc) {
					linearizable(t, seed, level, "sink's "+string(doc), sinkModel, ops)
				}
			}
		}
	}
	t.Logf("%d calls to rows, %d to sinks", rows, sinks)
}

func linearizable(t *testing.T, seed uint64, level Level, what string, m porcupine.Model, ops []porcupine.Operation) {
	t.Helper()
	if got := porcupine.CheckOperationsTimeout(m, ops, 20*time.Second); got != porcupine.Ok {
		t.Errorf("seed %d, %s: %s: %d calls are not linearizable: %s", seed, level, what, len(ops), got)
	}
}

// TestTheLinearizabilityCheckFindsASinkThatGoesBack: without this test, a checker that accepts
// everything would go unnoticed.
func TestTheLinearizabilityCheckFindsASinkThatGoesBack(t *testing.T) {
	t.Parallel()
	older, newer := shard.OrderKey("a"), shard.OrderKey("b")
	calls := []*SinkCall{
		{Span: Span{Client: 1, Call: 1, Return: 2}, Doc: "c#d", Key: newer, Kind: shard.Put},
		{Span: Span{Client: 2, Call: 3, Done: 4}, Doc: "c#d", Key: older, Kind: shard.Put}, // without an answer
		{Span: Span{Client: 3, Call: 5, Return: 6}, Doc: "c#d", Read: true, Found: newer.String()},
	}
	check := func() porcupine.CheckResult {
		return porcupine.CheckOperationsTimeout(sinkModel, operations(calls, ofSink)["c#d"], time.Second)
	}
	if got := check(); got != porcupine.Ok {
		t.Errorf("a search that finds the newest: %s", got)
	}
	calls[2].Found = older.String()
	if got := check(); got != porcupine.Illegal {
		t.Errorf("a search that finds the older one: %s, want it refused", got)
	}
}
