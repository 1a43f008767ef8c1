package dev

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/lullhq/lull/internal/local/fault"
	"github.com/lullhq/lull/internal/shard"
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
		case op.Call == "Read":
			m.RowReads.Add(int64(op.Count))
		case op.Call == "Scan": // its count is the limit: see scanned
		case op.Transition != 0:
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

// scanned counts the rows that a scan really read.
type scanned struct {
	shard.Scanner
	meter *Meter
}

func (s scanned) Scan(ctx context.Context, segment, segments int, cursor string, limit int) ([]shard.Row, string,
	error,
) {
	rows, next, err := s.Scanner.Scan(ctx, segment, segments, cursor, limit)
	s.meter.RowReads.Add(int64(len(rows)))
	return rows, next, err
}
