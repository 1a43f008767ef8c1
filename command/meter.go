// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/console"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/local/dev"
	"github.com/lullhq/lull/internal/local/ledger"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/simulation/price"
)

// devMeter reads the counters of a `lull dev` for the console.
type devMeter struct {
	engine *dev.Engine
	since  time.Time
	step   time.Duration
	now    func() time.Time // by the run's clock
}

var _ console.Meter = (*devMeter)(nil)

// flowSteps is how many of the latest steps the rates and the freshness of a `lull dev` cover.
const flowSteps = 60

// flow sums up the latest steps.
func (m *devMeter) flow(ctx context.Context) (operate.Flow, error) {
	measured, err := m.Measure(ctx)
	return measured.Flow(m.now(), flowSteps*m.step), err
}

// Measure reads the counters.
func (m *devMeter) Measure(context.Context) (console.Measured, error) {
	r := m.engine.Counts()
	out := console.Measured{
		Since: m.since.UTC(), Step: m.step, Points: []console.Point{}, Total: console.Counts{
			Events: r.Events, Written: r.Written, Deleted: r.Deleted, Unchanged: r.Unchanged,
			Superseded: r.Superseded, Stale: r.Stale, Duplicates: r.Duplicates, Skipped: r.Skipped, Dead: r.Dead,
			Fetched: r.Fetched, FetchFailed: r.FetchFailed,
			Enriched: r.Enriched, EnrichCalls: r.EnrichCalls, EnrichFailed: r.EnrichFailed,
			P50: time.Duration(r.Freshness.P50) * time.Millisecond,
			P99: time.Duration(r.Freshness.P99) * time.Millisecond,
		}, Dollars: bill(m.engine.Used()), Oldest: m.engine.Oldest(),
	}
	for _, n := range []time.Duration{600, 3600, 3 * 3600, 12 * 3600, 24 * 3600} {
		out.Ranges = append(out.Ranges, n*m.step)
	}
	for _, p := range m.engine.Recent() {
		out.Points = append(out.Points, console.Point{At: p.At, Counts: countsOf(p)})
	}
	out.Long = m.long
	for _, p := range m.engine.Parts() {
		out.Parts = append(out.Parts, console.Part{Kind: string(p.Kind), Name: p.Name, Counts: countsOf(p.Point)})
	}
	for _, o := range m.engine.Outages() {
		out.Outages = append(out.Outages, console.Outage(o))
	}
	return out, nil
}

// long returns the long steps.
func (m *devMeter) long() console.History {
	h := console.History{Step: 60 * m.step, Points: []console.Point{}}
	for _, p := range m.engine.Long() {
		h.Points = append(h.Points, console.Point{At: p.At, Counts: countsOf(p)})
	}
	return h
}

func countsOf(p ledger.Point) console.Counts {
	return console.Counts{
		Events: p.Events, Written: p.Written, Unchanged: p.Unchanged, Superseded: p.Superseded, Stale: p.Stale,
		Dead: p.Dead, P50: p.P50, P99: p.P99,
	}
}

// How long an invocation takes, and how much longer it takes for each call, as docs/numbers.md
// assumes. A call goes to the table, a queue, the bucket or the state machine.
const (
	invocationTime = time.Millisecond
	callTime       = 5 * time.Millisecond
)

// bill returns the price of a run's calls on AWS.
func bill(u dev.Used) *console.Dollars {
	calls := u.RowWrites + u.QueueCalls + u.ObjectWrites + u.ObjectReads + u.Starts
	took := time.Duration(u.Invocations)*invocationTime + time.Duration(calls)*callTime
	usage := price.Usage{
		WriteUnits: float64(u.RowWrites), ReadUnits: float64(u.RowReads), QueueRequests: float64(u.QueueCalls),
		Invocations:     float64(u.Invocations),
		LambdaGBSeconds: took.Seconds() * float64(names.Function("index").Megabytes()) / 1024,
		ExpressStarts:   float64(u.Starts), ExpressGBSecs: u.Flown.Seconds() * 64 / 1024,
		ObjectWrites: float64(u.ObjectWrites), ObjectReads: float64(u.ObjectReads),
	}
	d := &console.Dollars{Counts: "List prices of " + price.USEast1.Region + ", " + price.USEast1.Date +
		", for the calls that this run has made; the time of the functions is estimated. Not counted: requests of the " +
		"queues' pollers that find no message, logs, metrics, alarms, storage, and the search engine. " +
		"`lull cost` estimates the whole bill of a month."}
	for _, i := range price.USEast1.Items(usage) {
		if i.Count > 0 {
			d.Total += i.Dollars
			d.Items = append(d.Items, console.DollarItem{
				Service: i.Service, What: i.What, Count: i.Count, Dollars: i.Dollars,
			})
		}
	}
	return d
}
