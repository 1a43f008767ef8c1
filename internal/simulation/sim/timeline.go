// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"time"

	"github.com/lullhq/lull/internal/fault"
)

// Second summarizes one second of a run.
type Second struct {
	Requests  int // bulk requests sent to a sink
	Pings     int // pings that ask whether the sink is back
	Failed    int // requests and pings without an answer, because of an outage or an injected throttle
	Written   int // documents applied
	Throttled int // documents answered with 429
	Waiting   int // messages in the live and bulk queues at the beginning of the second, including held ones

	// Ages are the ages of the committed versions, from sent to committed, in ascending order.
	Ages []time.Duration
}

// Extremes are the worst values of a run.
type Extremes struct {
	Receives int // the most receives of one message in an ingest queue
	Refusals int // the most refusals that a row ever counted
	Moved    int // messages that SQS moved to a dead-letter queue
	Letters  int // how often a dead letter was parked
}

// timeline records the seconds of a run.
type timeline struct {
	w       *World
	on      bool
	seconds []Second
}

// begin records the number of waiting messages at the beginning of every second.
func (t *timeline) begin() {
	if !t.on || t.w.ended {
		return
	}
	t.now().Waiting = t.w.waiting()
	t.w.after(time.Second, t.begin)
}

// now returns the current second. Without a timeline in the options, it returns a dummy.
func (t *timeline) now() *Second {
	if !t.on {
		return &Second{}
	}
	n := int(t.w.now / time.Second)
	for len(t.seconds) <= n {
		t.seconds = append(t.seconds, Second{})
	}
	return &t.seconds[n]
}

// committed records a version that is committed for the first time.
func (t *timeline) committed(age time.Duration) {
	if s := t.now(); t.on {
		s.Ages = append(s.Ages, age)
	}
}

// decided records every I/O before it is carried out.
func (t *timeline) decided(op fault.Op, verdict fault.Verdict) {
	if op.Service != fault.Search {
		return
	}
	s := t.now()
	if op.Writes() {
		s.Requests++
	} else {
		s.Pings++
	}
	if verdict == fault.FailBefore || verdict == fault.Throttle {
		s.Failed++
	}
}

// sorted returns the timeline so far.
func (t *timeline) sorted() []Second {
	for i := range t.seconds {
		slices.Sort(t.seconds[i].Ages)
	}
	return slices.Clone(t.seconds)
}

// waiting returns how many messages are still in the ingest queues.
func (w *World) waiting() int {
	n := 0
	for _, p := range w.pipes {
		n += p.live.total() + p.bulk.total()
	}
	return n
}
