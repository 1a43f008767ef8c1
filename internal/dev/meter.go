package dev

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/lullhq/lull/internal/fault"
)

// Meter counts I/O on its way to the next injector, nil for none. It is safe for concurrent use.
type Meter struct {
	Next fault.Injector

	RowWrites, RowReads, SinkCalls, SinkItems, Turns atomic.Int64
	SQSCalls, SQSEntries, Puts, Gets, Starts         atomic.Int64
}

// Decide counts the I/O and asks the next injector.
func (m *Meter) Decide(ctx context.Context, v *fault.Invocation, op fault.Op) fault.Verdict {
	switch op.Service {
	case fault.Table:
		switch {
		case op.Call == "Read" || op.Call == "Scan":
			m.RowReads.Add(int64(op.Count))
		case strings.ToUpper(op.Call[:2]) == op.Call[:2]: // ADMIT, CLAIM, ...: writes of rows
			m.RowWrites.Add(1)
		}
	case fault.Search:
		if op.Call == "_bulk" {
			m.SinkCalls.Add(1)
			m.SinkItems.Add(int64(op.Count))
		}
	case fault.SQS:
		m.SQSCalls.Add(1)
		m.SQSEntries.Add(int64(op.Count))
	case fault.Bucket:
		if strings.HasPrefix(op.Call, "Put") {
			m.Puts.Add(1)
		} else {
			m.Gets.Add(1)
		}
	case fault.States:
		m.Starts.Add(1)
	}
	if m.Next == nil {
		return fault.OK
	}
	return m.Next.Decide(ctx, v, op)
}
