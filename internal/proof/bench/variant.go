// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/simulation/price"
)

// Variants returns ideas that could make small flights cheaper. They run lull's real receive and
// index with other halves than the deployed ones. Variants exist only to be measured
// (docs/numbers.md), and no stack uses them.
func Variants() []Contender {
	return []Contender{
		variant("manifest inline", "a manifest of at most 180 KB travels in the execution's input instead of S3.", Inline),
		variant("visibility for small flights",
			"a batch of at most ten messages is admitted and made invisible until W before it is due; a flight "+
				"starts when it comes back.", SmallByVisibility),
		variant("queue as clock",
			"a flight is a message with DelaySeconds in a second queue, with its manifest inside up to 700 KB; index "+
				"consumes that queue. No Step Functions, no S3.", QueueClock),
	}
}

func variant(name, about string, start func(ctx context.Context, w *World)) Contender {
	c := Contenders()[0]
	c.Name, c.About, c.Start = name, about, start
	return c
}

// Inline is lull with small manifests in the execution's input.
func Inline(ctx context.Context, w *World) {
	start(ctx, w, func(l *lull) {
		l.store = func(*fault.Invocation) flight.Store { return pocket{l.flights, l, maxInline} }
	})
}

// pocket stores small manifests with the execution, where they cost no request. Larger manifests go
// to the bucket.
type pocket struct {
	flight.Store // the bucket
	*lull
	limit int
}

func (p pocket) small(m *flight.Manifest) (int, bool) {
	b, err := flight.Encode(m)
	return len(b), err == nil && len(b) <= p.limit
}

func (p pocket) Put(ctx context.Context, m *flight.Manifest) error {
	n, small := p.small(m)
	if !small {
		return p.Store.Put(ctx, m)
	}
	p.Meter.packed(n)
	return p.flights.Flights.Put(ctx, m)
}

func (p pocket) Get(ctx context.Context, id flight.ID) (*flight.Manifest, error) {
	m, err := p.flights.Flights.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if _, small := p.small(m); small {
		return m, nil
	}
	return p.Store.Get(ctx, id)
}

// smallBatch is the largest batch that SmallByVisibility treats as a small flight.
const smallBatch = 10

// SmallByVisibility uses SQS's visibility timeout as the clock for small batches. If a message
// returns while a newer version of its document is pending, it is held once more, for the quiet
// window.
func SmallByVisibility(ctx context.Context, w *World) {
	start(ctx, w, func(l *lull) {
		flown := l.take
		l.take = func(ctx context.Context, v *fault.Invocation, clk clock.Clock, batch []queue.Message) []string {
			if len(batch) > smallBatch {
				return flown(ctx, v, clk, batch)
			}
			var fresh, again []queue.Message
			var stay []string
			later := holds{}
			for _, m := range batch {
				switch {
				case m.ReceiveCount == 1:
					fresh = append(fresh, m)
				case l.superseded(ctx, m):
					stay = append(stay, m.ID)
					later.add(m, l.Config.Debounce.Quiet)
				default:
					again = append(again, m)
				}
			}
			if len(fresh) > 0 {
				h := l.halves(v, clk)
				h.flights, h.launcher = nowhere{}, nowhere{}
				kept := h.receiver().Handle(ctx, fresh)
				stay = append(stay, kept...)
				for _, m := range fresh {
					if slices.Contains(kept, m.ID) {
						later.add(m, m.Sent.Add(l.Config.Debounce.Quiet-l.Config.Queues.Live.Window).Sub(l.clk.Now()))
					}
				}
			}
			if len(again) > 0 {
				stay = append(stay, flown(ctx, v, clk, again)...)
			}
			later.send(ctx, l.queueFor(v))
			return stay
		}
	})
}

// superseded reads the row, and reports whether a version newer than the message's is pending.
func (l *lull) superseded(ctx context.Context, m queue.Message) bool {
	e := l.sources.Load().Decode(m)[0].Event
	rows, err := l.rows().Read(ctx, []shard.DocID{e.Doc}, shard.Consistent)
	return err == nil && rows[0].Pending > e.Key && rows[0].Committed < e.Key
}

// nowhere accepts flights and does nothing with them.
type nowhere struct{ flight.Store }

func (nowhere) Put(context.Context, *flight.Manifest) error { return nil }
func (nowhere) Start(context.Context, flight.State) error   { return nil }

// maxWake is the largest manifest that fits into a message, as base64.
const maxWake = 700 << 10

// wakes is a queue of flights, which is the clock of QueueClock.
type wakes struct {
	pocket
	queue *memory.Queue
}

// QueueClock is lull with a delay queue instead of Step Functions. If a turn leaves messages in the
// flight, it sends the flight again, and deletes the message that started the turn.
func QueueClock(ctx context.Context, w *World) {
	var k *wakes
	start(ctx, w, func(l *lull) {
		k = &wakes{
			pocket{l.flights, l, maxWake},
			memory.NewQueue(w.clk, memory.QueueSettings{Name: "wakes", Visibility: l.Config.Queues.Visibility}),
		}
		l.store = func(*fault.Invocation) flight.Store { return k.pocket }
		l.launch = func(v *fault.Invocation) flight.Launcher { return wakeSender{k, v} }
		w.busy = func() int { return k.queue.Counts().Total() }
	})
	m := memory.NewMapping(k.queue, memory.MappingSettings{
		Batch: queue.MaxEntries, Pollers: w.Scenario.Pollers, Report: w.report,
	}, k.wake)
	w.wg.Go(func() { m.Run(ctx) })
}

// wakeSender sends flights as messages.
type wakeSender struct {
	*wakes
	v *fault.Invocation
}

func (s wakeSender) Start(ctx context.Context, st flight.State) error {
	if len(st.Sample) > 0 { // a comparison by prune has no manifest, so it stays an execution
		return s.v.Launcher(launcher{s.lull}).Start(ctx, st)
	}
	body, err := json.Marshal(st)
	if err != nil {
		return err
	}
	m, err := s.flights.Flights.Get(ctx, st.Flight)
	if err != nil {
		return err
	}
	n, small := s.small(m)
	if !small {
		n = 0
	}
	bytes := len(body) + n*4/3
	s.Meter.Decide(ctx, s.v, fault.Op{Service: fault.SQS, Call: "SendMessage", Count: 1})
	s.Meter.count(func(c *Counts, u *price.Usage) {
		c.Starts++
		u.QueueRequests += 2 * price.QueueRequests(bytes) // one request to send, and one to receive
	})
	now := s.clk.Now()
	return queue.ErrorAt(s.queue.Send(ctx, []queue.Outgoing{
		{Body: string(body), Delay: seconds(wakeOf(m, st, now).Sub(now))},
	}), 0)
}

// wakeOf returns the exact time of the flight's next wake. The flight's own time is already rounded
// up to a whole second, and SQS rounds the delay up again. If no version falls due then, the flight
// waits for the write of another flight. The flight then gets one second more, so that it finds
// this write done.
func wakeOf(m *flight.Manifest, s flight.State, now time.Time) time.Time {
	newest := map[shard.DocID]flight.Entry{}
	item := 0
	for i := range m.Records {
		for _, e := range m.Records[i].Events {
			if n, seen := newest[e.Doc]; s.Remaining.Has(item) && (!seen || e.Key > n.Key) {
				newest[e.Doc] = e
			}
			item++
		}
	}
	wake := s.Wake()
	exact := wake
	for _, e := range newest {
		if due := e.Due.Time(); due.Before(exact) && due.After(wake.Add(-time.Second)) && due.After(now) {
			exact = due
		}
	}
	if exact.Equal(wake) {
		return wake.Add(time.Second)
	}
	return exact
}

// wake is index as the consumer of the queue of flights. Each message is one turn.
func (k *wakes) wake(ctx context.Context, batch []queue.Message) (failed []string, err error) {
	err = k.invoke(ctx, "index", indexMegabytes, k.Config.Index.Timeout,
		func(ctx context.Context, v *fault.Invocation, clk clock.Clock) {
			for _, m := range batch {
				var s flight.State
				if err = json.Unmarshal([]byte(m.Body), &s); err != nil {
					return
				}
				s.Started = 0
				out, e := k.halves(v, clk).indexer().Turn(ctx, s)
				k.Meter.count(func(c *Counts, _ *price.Usage) { c.Turns++ })
				if e == nil && !out.Done {
					e = wakeSender{k, v}.Start(ctx, out)
				}
				if e != nil {
					k.report(fmt.Errorf("turn: %w", e))
					failed = append(failed, m.ID)
				}
			}
		})
	k.Meter.count(func(_ *Counts, u *price.Usage) { u.QueueRequests++ }) // the deletion of the batch
	return failed, err
}
