// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/local/emulation"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/simulation/price"
)

// mapping is an event source mapping with ReportBatchItemFailures. The pollers of a mapping gather
// batches and pass them to a function. Each poller passes one batch at a time.
type mapping struct {
	w       *World
	q       *sqsQueue
	name    string
	batch   int
	window  time.Duration
	timeout time.Duration
	pollers []*poller
	most    int // the most pollers under load
	growing bool
	handle  func(ctx context.Context, v *invocation, batch []queue.Message) []string
}

// poller gathers a batch, or waits for its function.
type poller struct {
	asked bool // a ReceiveMessage call of this poller is under way
	busy  bool // its function is running
	held  emulation.Batch
	bytes int // the size of the messages that the poller holds
	round int // the number of the current batch; a timer of an earlier batch is ignored
}

const (
	chunk   = queue.MaxEntries      // the most messages in the answer of one ReceiveMessage
	between = 20 * time.Millisecond // the time between two ReceiveMessage calls of a poller
	growth  = 5                     // pollers added each second
)

// newMapping gives a mapping its first pollers, and subscribes it to the messages of its queue.
func newMapping(m *mapping, pollers int) *mapping {
	m.add(max(pollers, 1))
	m.q.Visible = m.look
	return m
}

func (m *mapping) add(pollers int) {
	for range pollers {
		m.pollers = append(m.pollers, &poller{held: emulation.NewBatch(m.batch, m.window)})
	}
}

// look lets free pollers receive, as many as the visible messages need.
func (m *mapping) look() {
	if !m.w.polls(m.q) {
		return
	}
	var free []*poller
	coming := 0
	for _, p := range m.pollers {
		switch {
		case p.busy:
		case p.asked:
			coming += chunk
		default:
			free = append(free, p)
		}
	}
	for ; len(free) > 0 && coming < m.q.Counts().Visible; coming += chunk {
		i := m.w.dice.IntN(len(free))
		p := free[i]
		free[i] = free[len(free)-1]
		free = free[:len(free)-1]
		delay := between
		if len(p.held.Messages) == 0 {
			delay += m.w.dice.upTo(m.w.rates.PollDelay)
		}
		m.ask(p, delay)
	}
	if len(free) == 0 && coming < m.q.Counts().Visible {
		m.grow()
	}
}

// grow adds a few pollers each second, as AWS does, while there are more messages than the pollers
// can receive.
func (m *mapping) grow() {
	if m.growing || len(m.pollers) >= m.most {
		return
	}
	m.growing = true
	m.w.after(time.Second, func() {
		m.growing = false
		m.add(min(growth, m.most-len(m.pollers)))
		m.look()
	})
}

func (m *mapping) ask(p *poller, delay time.Duration) {
	p.asked = true
	round := p.round
	m.w.after(delay, func() {
		p.asked = false
		if p.round == round && !p.busy {
			m.receive(p)
		}
		if m.q.Counts().Visible > 0 {
			m.look()
		}
	})
}

// receive is one ReceiveMessage call.
func (m *mapping) receive(p *poller) {
	if !m.w.polls(m.q) {
		return
	}
	first := len(p.held.Messages) == 0
	got, bytes := p.held.Fill(m.q.Queue, m.w.now, chunk)
	m.w.counts.queued(bytes)
	m.w.counts.Polls += int64(price.QueueRequests(bytes))
	p.bytes += bytes
	if first && got > 0 {
		round := p.round
		m.w.after(m.window, func() {
			if p.round == round && !p.busy {
				m.invoke(p)
			}
		})
	}
	if p.held.Full {
		m.invoke(p)
	}
}

// invoke passes the batch to the function. Afterwards it deletes the messages that the function
// does not report as failed, unless the answer is lost.
func (m *mapping) invoke(p *poller) {
	batch := p.held.Messages
	p.held = emulation.NewBatch(m.batch, m.window)
	if m.w.halted { // the messages become visible again by themselves
		p.round++
		return
	}
	p.busy = true
	m.w.counts.FullPolls += max(int64((len(batch)+chunk-1)/chunk), int64(price.QueueRequests(p.bytes)))
	p.bytes = 0
	var failed []string
	m.w.invoke(m.name, m.timeout, func(ctx context.Context, v *invocation) {
		m.w.watchBatch(v, m.q, batch)
		failed = m.handle(ctx, v, batch)
	}, func(err error) {
		p.busy = false
		p.round++
		if err == nil && !m.w.strikes("answer to a mapping lost", m.w.rates.AnswerLost) {
			m.settle(batch, failed)
		}
		if m.q.Counts().Visible > 0 {
			m.look()
		}
	})
}

// settle deletes the messages that succeeded. If the answer names a message outside of the batch,
// the whole batch stays, and the function has broken a promise.
func (m *mapping) settle(batch []queue.Message, failed []string) {
	done, err := emulation.Succeeded(batch, failed)
	if failed == nil || err != nil {
		m.w.oracle.violate("batch answer", fmt.Sprintf("%s answered %d messages with %d identifiers: %v", m.name,
			len(batch), len(failed), err))
		return
	}
	if m.w.options.Monitor != nil && !m.w.options.Monitor.Deletes(m.q.Name) {
		return
	}
	for _, receipt := range done {
		m.w.watch(nil, Step{What: Acknowledges, Receipt: m.q.named(receipt)})
		_ = m.q.remove(receipt)
	}
	for calls := len(done); calls > 0; calls -= queue.MaxEntries {
		m.w.counts.queued(0)
	}
}

// idle reports whether no poller gathers a batch or waits for its function.
func (m *mapping) idle() bool {
	for _, p := range m.pollers {
		if p.busy || len(p.held.Messages) > 0 {
			return false
		}
	}
	return true
}
