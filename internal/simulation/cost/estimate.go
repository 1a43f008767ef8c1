// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/simulation/price"
	"github.com/lullhq/lull/internal/simulation/sim"
)

// Estimate is two bills for a month. Floor is the bill with the fewest pollers and requests that
// AWS may use. Ceiling is the bill with the number of pollers with which AWS starts. AWS adds more
// under load.
type Estimate struct {
	Prices  string  `json:"prices"`
	Load    Load    `json:"load"`
	Sinks   int     `json:"sinks"`
	Parts   int     `json:"parts"` // stacks that share the load, because one would hold too many messages
	Events  float64 `json:"eventsPerMonth"`
	Floor   Bill    `json:"floor"`
	Ceiling Bill    `json:"ceiling"`

	provisioned bool // whether the table is billed by its capacity
}

// Bill is the bill for one number of pollers.
type Bill struct {
	Pollers    int          `json:"pollers"` // pollers of the live queue
	Items      []price.Item `json:"items"`
	Total      float64      `json:"total"`
	Requests   float64      `json:"requestsAndTime"` // the part of Total for requests and time, from package price
	PerMillion float64      `json:"perMillionEvents,omitempty"`
}

// measured is the usage of a run.
type measured struct {
	usage  price.Usage
	counts sim.Counts
	*listener
}

// Of estimates the bill for a month. The settings must be valid. Of takes seconds of processor
// time, and ends early with the context's error.
func Of(ctx context.Context, c *config.Config, load Load) (e Estimate, err error) {
	if err := load.Validate(); err != nil {
		return e, err
	}
	c = Native(c)
	idle, err := idling(ctx, c)
	if err != nil {
		return e, err
	}
	e = Estimate{
		Prices: price.USEast1.Region + " " + price.USEast1.Date, Load: load, Sinks: len(c.Sinks),
		Parts: parts(c, load), Events: load.events(),
		provisioned: c.Table.Billing == config.Provisioned,
	}
	part := load.part(e.Parts)
	if expected := int(math.Ceil(part.Rate)); expected > c.Queues.ExpectedRate {
		c.Queues.ExpectedRate = expected // c is a copy, so the caller's settings stay as they are
	}
	busy := int(math.Ceil(part.Rate / config.PollerRate))
	if e.Floor, err = bill(ctx, c, part, idle, max(fewest(c.Queues.Live), busy), true); err != nil {
		return e, err
	}
	if e.Ceiling, err = bill(ctx, c, part, idle, max(FirstPollers, busy), false); err != nil {
		return e, err
	}
	e.Floor, e.Ceiling = e.Floor.times(e.Parts), e.Ceiling.times(e.Parts)
	return e, nil
}

// Native returns the settings with one source for the simulated native events. The estimate
// therefore does not include the cost of decoding another format.
func Native(c *config.Config) *config.Config {
	own := *c
	own.Sources = map[string]config.Source{"native": {Kind: "native", Class: config.ClassInt}}
	own.DefaultSource = "native"
	own.Complete()
	if own.DefaultCollection == "" {
		own.DefaultCollection = slices.Sorted(maps.Keys(own.Collections))[0] // several collections
	}
	return &own
}

// idling returns the usage of one run of prune with its side effects. The usage is the difference
// between two runs of a stack without events.
func idling(ctx context.Context, c *config.Config) (idle measured, err error) {
	const begin = 15 * time.Minute
	short, err := run(ctx, c, quietly(begin), FewestPollers, 0)
	if err != nil {
		return idle, err
	}
	long, err := run(ctx, c, quietly(begin+2*time.Hour), FewestPollers, begin)
	if err != nil {
		return idle, err
	}
	runs := float64(long.counts.Invocations["prune"]-short.counts.Invocations["prune"]) / float64(len(c.Sinks))
	long.usage = long.usage.Plus(short.usage.Times(-1)).Times(1 / runs)
	long.bytes = int(float64(long.bytes-short.bytes) / runs)
	return long, nil
}

// run simulates the functions, and also counts their processor time.
func run(ctx context.Context, c *config.Config, up sim.Upstream, pollers int, from time.Duration) (
	m measured, err error,
) {
	m.listener = newListener(c.Stack, c.DefaultSink)
	m.from = sim.Begin().Add(from)
	ready := *c
	ready.Table.Billing = config.OnDemand // because the capacity that is paid for is available
	r, err := sim.Simulate(ctx, sim.Options{
		Config: &ready, Seed: 1, Faults: sim.NoFaults, Upstream: up, Pollers: pollers, Listen: m.hear,
	})
	if err != nil {
		return m, err
	}
	if len(r.Violations) > 0 {
		return m, fmt.Errorf("simulate: %s", r.Violations[0])
	}
	m.counts, m.usage = r.Counts, r.Counts.Usage()
	m.usage.LambdaGBSeconds += r.Counts.ProcessorGBSeconds(func(f names.Function) int { return f.MegabytesIn(c) })
	return m, nil
}

// bill returns one of the two bills. If full is set, each request of a poller counts as a request
// for ten messages. If full is not set, pollers receive messages as they arrive.
func bill(ctx context.Context, c *config.Config, load Load, idle measured, pollers int, full bool) (b Bill, err error) {
	b.Pollers = pollers
	prunes := float64(month / c.Lifecycle.PruneEvery)
	usage, logs, names := idle.usage.Times(prunes), float64(idle.bytes)*prunes, float64(len(idle.metrics)*len(c.Sinks))
	if load.Rate > 0 {
		m, err := run(ctx, c, load.upstream(), pollers, 0)
		if err != nil {
			return b, err
		}
		scale := load.events() / float64(m.counts.Events)
		runs := float64(m.counts.Invocations["prune"]) / float64(len(c.Sinks))
		busy := m.usage.Plus(idle.usage.Times(-runs))
		if full {
			busy.QueueRequests -= float64(m.counts.Polls - m.counts.FullPolls)
		}
		usage = usage.Plus(busy.Times(scale))
		logs += max(float64(m.bytes)-runs*float64(idle.bytes), 0) * scale
		for name := range m.metrics {
			if !idle.metrics[name] {
				names += load.Hours / 24
			}
		}
	}
	l := price.USEast1
	var capacity []price.Item
	if c.Table.Billing == config.Provisioned {
		capacity = provisioned(c.Table, load, &usage)
	}
	for _, i := range slices.Concat(capacity, l.Items(usage)) {
		if i.Count > 0 {
			b.Requests += i.Dollars
			b.Items = append(b.Items, i)
		}
	}
	sent, err := canary(ctx, c, idle)
	if err != nil {
		return b, err
	}
	b.Items = slices.Concat(b.Items, standing(c, load, pollers), sent, verified(c, load), []price.Item{
		price.NewItem("CloudWatch", "GB of logs", logs/gigabyte, l.LogGB, 1),
		price.NewItem("CloudWatch", "GB of logs kept a month", logs/gigabyte, l.LogStored, 1),
		price.NewItem("CloudWatch", "custom metrics", names, l.Metric, 1),
		price.NewItem("CloudWatch", "metrics of alarms", float64(AlarmMetrics(c)), l.AlarmMetric, 1),
		price.NewItem("CloudWatch", "dashboards", Dashboards, l.Dashboard, 1),
	})
	for _, i := range b.Items {
		b.Total += i.Dollars
	}
	if events := load.events(); events > 0 {
		b.PerMillion = b.Total / events * 1e6
	}
	return b, nil
}

const (
	gigabyte = 1 << 30
	rowBytes = 600 // at most one write unit; most rows have less than half of it
	// longPoll is how long a poller waits at an empty queue. longPoll is the longest wait that SQS
	// allows. AWS documents that Lambda polls this way, and that with little traffic a batch may
	// wait for 20 s.
	longPoll = 20 * time.Second
)

// standing returns the costs that do not depend on the requests of the functions.
func standing(c *config.Config, load Load, pollers int) []price.Item {
	l, sinks := price.USEast1, float64(len(c.Sinks))
	// A poll of the live queue is empty if nothing arrives during the whole wait.
	polls := float64(month / longPoll)
	busy := load.Hours / 24
	quiet := (1 - busy) + busy*math.Exp(-load.Rate*longPoll.Seconds()/float64(pollers))
	dead := float64(FirstPollers) // the mapping of the dead-letter queue has a limit
	empty := polls * (float64(pollers)*(quiet+sinks-1) + sinks*(float64(fewest(c.Queues.Bulk))+dead))
	table := float64(load.Documents) * rowBytes / gigabyte
	items := []price.Item{
		price.NewItem("SQS", "empty long polls, 3 queues a sink", empty, l.QueueRequests, 1e6),
		price.NewItem("DynamoDB", "GB of rows, with recovery", table, l.TableGB, 1),
		price.NewItem("S3", "GB of manifests, kept a day", load.events()/30*float64(load.Bytes)/gigabyte, l.ObjectGB, 1),
	}
	if c.Table.Billing == config.Provisioned {
		alarms := float64(scalingAlarms * len(c.Table.Capacities()))
		items = append(items, price.NewItem("CloudWatch", "metrics of auto scaling's alarms", alarms, l.AlarmMetric, 1))
	} else {
		items = slices.Insert(items, 1, price.NewItem("DynamoDB reads", "prune's pass a day: units", pruneUnits(load),
			l.ReadUnits, 1e6))
	}
	if days := c.Archive.Keep.Hours() / 24; days > 0 {
		items = append(items, price.NewItem("S3", "GB of the archive, packed to a quarter",
			load.events()/30*days*float64(load.Bytes)/4/gigabyte, l.ObjectGB, 1))
	}
	if load.Questions > 0 {
		items = append(items, questions(load)...)
	}
	if load.Key {
		items = append(items, price.NewItem("KMS", "keys", 1, l.Key, 1),
			price.NewItem("KMS", "requests", keyRequests*sinks, l.KeyRequests, 1e6))
	}
	if n := secrets(c); n > 0 {
		items = append(items, price.NewItem("Secrets Manager", "secrets", float64(n), l.Secret, 1))
	}
	return items
}

// A question waits for two seconds: for the end of a burst, or for the refresh of an engine. It
// then reads six times: a row and the health row of its sink, one unit each.
const (
	questionSeconds = 2
	questionUnits   = 6 * 2
)

// questions returns the cost of the questions at the stack's URL, for a collection with one sink.
func questions(load Load) []price.Item {
	l, asked := price.USEast1, float64(load.Questions)
	memory := float64(names.Searchable.Megabytes()) / 1024
	return []price.Item{
		price.NewItem("Lambda", "questions at the URL", asked, l.Invocations, 1e6),
		price.NewItem("Lambda", "GB-seconds of questions", asked*questionSeconds*memory, l.LambdaGBSecond*1e6, 1e6),
		price.NewItem("DynamoDB reads", "questions: units", asked*questionUnits, l.ReadUnits, 1e6),
	}
}

// keyRequests is the number of KMS requests for a sink in a month. SQS makes one an hour for both
// sides of each of three queues. DynamoDB makes one every five minutes for each of four functions.
// S3 makes about one an hour for each function.
const keyRequests = 30*24*(3*2+4) + 30*24*12*4
