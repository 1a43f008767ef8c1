package index

import "github.com/lullhq/lull/internal/shard"

// maxLeave is how many messages leave one flight at most. Each costs a share of a receive when
// it returns, and is in flight for the queue's visibility. Under much traffic a flight holds
// hundreds. A few more turns then cost less (ADR 0028).
const maxLeave = 100

// mayLeave reports whether superseded messages may leave this flight. They may not while the
// sink is unhealthy or throttles, because the older one would return before the newer one is
// written. The messages of a rescued flight may not leave either, because nothing brings them
// back.
func (s *planner) mayLeave() bool {
	return s.firstVisible() <= s.longestHold() && s.sink.circuit == shard.CircuitClosed && !s.sink.tripped && s.budget.keepsUp() &&
		s.config.SupersededLeave() && len(s.remainingReceipts()) <= maxLeave
}

// leaves reports whether all remaining messages are superseded and may leave. SQS shows them
// again when their visibility ends. By then the newer versions should be written, and receive
// acknowledges the older ones as stale. A message leaves only once: if it returns too early it
// stays in its flight, so that the cap applies to it.
//
// The newer versions may be due after the messages return. If they are due later than the
// queue's visibility from now, the messages are extended to that time.
func (s *planner) leaves() (extend shard.Micros, ok bool) {
	if !s.mayLeave() {
		return 0, false
	}
	newer := shard.Micros(0)
	for _, d := range s.docs {
		for _, e := range d.left() {
			if d.step.Newer == 0 || s.message(e).ReceiveCount > 1 {
				return 0, false
			}
			newer = max(newer, d.step.Newer)
		}
	}
	if newer <= s.firstVisible().Add(-s.config.Index.Timeout) {
		return 0, true
	}
	return newer.Add(s.config.Extended(s.window())), newer.Sub(s.now()) > s.config.Queues.Visibility
}
