// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/shard"
)

// Meter counts I/O. A Meter is an injector that asks the next injector, which may be nil, for the
// result. A Meter is safe for concurrent use.
type Meter struct {
	Next fault.Injector

	RowWrites, RowReads, SinkCalls, SinkItems, Turns atomic.Int64
	QueueCalls, ObjectWrites, ObjectReads, Starts    atomic.Int64
}

// Decide counts an I/O and returns the verdict of the next injector.
func (m *Meter) Decide(ctx context.Context, v *fault.Invocation, op fault.Op) fault.Verdict {
	switch {
	case op.Transition != 0:
		m.RowWrites.Add(1)
	case op.Service == fault.Table && op.Call == "Read":
		m.RowReads.Add(int64(op.Count))
	case op.Writes():
		m.SinkCalls.Add(1)
		m.SinkItems.Add(int64(op.Count))
	case op.Service == fault.SQS:
		m.QueueCalls.Add(1)
	case op.Service == fault.Bucket && (strings.HasPrefix(op.Call, "Put") || strings.HasPrefix(op.Call, "List")):
		m.ObjectWrites.Add(1)
	case op.Service == fault.Bucket && strings.HasPrefix(op.Call, "Get"):
		m.ObjectReads.Add(1)
	case op.Service == fault.States:
		m.Starts.Add(1)
	}
	if m.Next == nil {
		return fault.OK
	}
	return m.Next.Decide(ctx, v, op)
}

// Scanner returns a scanner that counts the returned rows. Decide cannot count these rows, because
// op.Count of a scan is only the limit.
func (m *Meter) Scanner(s shard.Scanner) shard.Scanner { return metered{s, m} }

type metered struct {
	shard.Scanner
	meter *Meter
}

func (s metered) Scan(ctx context.Context, segment, segments int, cursor string, limit int) ([]shard.Row, string,
	error,
) {
	rows, next, err := s.Scanner.Scan(ctx, segment, segments, cursor, limit)
	s.meter.RowReads.Add(int64(len(rows)))
	return rows, next, err
}
