// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// holdSlack is how long a message is held in addition to its window and its quiet time.
const holdSlack = 3 * time.Second

// usualRate is the default traffic of a queue, in messages a second.
const usualRate = 500

// The quotas of Step Functions: how many executions an account may start a second, sustained. The
// quota of Standard is that of the smaller regions.
const (
	expressStarts  = 6_000
	standardStarts = 150
)

// accountConcurrency is how many invocations may run at once in an account with the standard quota.
// It is the limit of a lane that sets no limit.
const accountConcurrency = 1_000

// PollerRate is how many messages a second one poller of an event source mapping receives, with the
// time in which its function runs: it receives ten with each request. AWS publishes no figure. The
// simulator's pollers receive 400, and this leaves a quarter of it free.
const PollerRate = 300

// unreserved is the part of accountConcurrency that AWS keeps for functions without a reservation.
const unreserved = 100

// loadRules keep the expected traffic below the platform's quotas.
var loadRules = []Rule{
	{
		"in-flight",
		"The sum over a sink's collections of rate x hold <= 80,000. hold = W + 3s + quiet (or minInterval) where " +
			"superseded messages leave their flights early, W + 5s + twice that + Ti <= V. Else it is W + 3s + " +
			"max wait (or minInterval) + cap grace.",
		each((*Config).namedSinks, checkInFlight),
	},
	{
		"expected-rates",
		"The sum of the collections' rates is at most queues.expectedRate.",
		each((*Config).namedSinks, checkExpectedRates),
	},
	{
		"live-concurrency", "queues.live.maxConcurrency is 0 or at least 2: the mapping accepts no smaller number.",
		checkLiveConcurrency,
	},
	{
		"live-pollers",
		"queues.live.maxConcurrency, unless it is 0, is at least queues.expectedRate / 300: a poller receives " +
			"about 300 messages a second.",
		checkLivePollers,
	},
	{
		"flight-starts",
		"The flights of all queues start no faster than the quotas of their kinds: 6,000 a second for Express, 150 for " +
			"Standard. Without queues.live.maxConcurrency, 1,000 batches are gathered at once.",
		checkFlightStarts,
	},
}

// first is how long after a message was sent its first turn comes, if no newer event follows.
func (t timing) first() time.Duration { return max(t.Quiet, t.MinInterval) }

// held is how long a message is in flight at most. With a short window, a superseded message leaves
// its flight in its first turn. It then stays invisible for the queue's visibility, and
// [Queues.SupersededLeave] bounds the number of such messages. With a long window, a superseded
// message stays in its flight until the newer version is written (ADR 0028).
func (c *Config) held(t timing) time.Duration {
	window := c.Queues.slowest().Window
	if window+pollSlack+2*t.first()+c.Index.Timeout <= c.Queues.Visibility {
		return window + holdSlack + t.first()
	}
	return window + holdSlack + t.Hold()
}

// traffic is what a sink's queue is expected to hold.
type traffic struct {
	known    float64 // messages a second of the collections that set a rate
	standard float64 // the part of known whose executions are Standard
	held     float64 // messages in flight of the collections that set a rate
	rest     *timing // the collection without a rate that holds a message longest; nil if all set a rate
	long     bool    // whether any collection without a rate has Standard executions
	most     *timing // the collection with a rate that holds the most messages; nil if no collection sets a rate
}

func (c *Config) traffic(sink string) traffic {
	var l traffic
	share := 0.0
	for _, t := range c.expected(sink) {
		standard := c.Flight.KindFor(t.first()) == FlightStandard
		if rate := float64(t.own.ExpectedRate); rate > 0 {
			held := rate * c.held(t).Seconds()
			l.known, l.held = l.known+rate, l.held+held
			if standard {
				l.standard += rate
			}
			if held > share {
				share, l.most = held, &t
			}
			continue
		}
		l.long = l.long || standard
		if l.rest == nil || c.held(t) > c.held(*l.rest) {
			l.rest = &t
		}
	}
	return l
}

// holding is how many messages of a sink's queue are in flight at most, with the expected traffic.
func (c *Config) holding(sink string) float64 {
	l := c.traffic(sink)
	if rest := float64(c.Queues.ExpectedRate) - l.known; l.rest != nil && rest > 0 {
		return l.held + rest*c.held(*l.rest).Seconds()
	}
	return l.held
}

// fits is how many messages a second a queue has room for.
func (c *Config) fits(l traffic) float64 {
	room := float64(c.Queues.MaxInFlight) - l.held
	if l.rest == nil || room < 0 {
		return l.known
	}
	return l.known + math.Floor(room/c.held(*l.rest).Seconds())
}

// Room is how many messages a second a sink's queue has room for, if it carries no other
// collection.
func (c *Config) Room(collection string) float64 {
	return float64(c.Queues.MaxInFlight) / c.held(timing{Debounce: c.For(collection)}).Seconds()
}

// expectedRate is the default traffic of a queue, usually usualRate. It is less if the queue cannot
// hold the messages of usualRate. It is also less if those messages would start more Standard
// executions than the quota allows.
func (c *Config) expectedRate() int {
	rate, least := float64(usualRate), 1.0
	for name := range c.Sinks {
		l := c.traffic(name)
		if least = max(least, l.known); l.rest != nil {
			rate = min(rate, c.fits(l))
		}
	}
	for rate > least && c.standardStarts(rate) > standardStarts {
		rate--
	}
	return int(max(rate, least))
}

// checkInFlight multiplies rates by the time for which each message is held. The default limit of
// 80,000 leaves a third of the quota of SQS, 120,000, free.
func checkInFlight(c *Config, f *checker, s namedSink) {
	held, l := c.holding(s.name), c.traffic(s.name)
	if held <= max(float64(c.Queues.MaxInFlight), 0) { // a sink without traffic keeps every limit, even a negative one
		return
	}
	var parts []string
	if l.rest != nil && float64(c.Queues.ExpectedRate) > l.known {
		parts = append(parts, fmt.Sprintf("%.0f a second x a hold of %s by %s", float64(c.Queues.ExpectedRate)-l.known,
			words(c.held(*l.rest)), c.holds(*l.rest)))
	}
	if l.most != nil {
		parts = append(parts, fmt.Sprintf("%.0f of collections that have expectedRate", math.Ceil(l.held)))
	}
	problem := fmt.Sprintf("%s = %.0f held messages is more than the queues.maxInFlight of %d",
		strings.Join(parts, " + "), math.Ceil(held), c.Queues.MaxInFlight)
	remedy := ", or let AWS raise the quota, and raise queues.maxInFlight too"
	most := c.fits(l)
	if l.rest == nil || most <= l.known {
		t := l.most
		if t == nil {
			t = l.rest
		}
		f.fault(c.holds(*t), nil, "makes too many messages wait: "+problem,
			"shorten it, or lower "+t.path+".expectedRate"+remedy)
		return
	}
	f.fault("queues.expectedRate", c.Queues.ExpectedRate, "is too much: "+problem, fmt.Sprintf(
		"lower it to at most %.0f per queue and spread the collections over more sinks, shorten %s, write the rate of "+
			"collections with long windows as collections.<name>.expectedRate", most, c.holds(*l.rest))+remedy)
}

// holds names the setting that decides how long messages of a timing are held.
func (c *Config) holds(t timing) string {
	short := c.held(t) == c.Queues.slowest().Window+holdSlack+t.first()
	switch {
	case t.MinInterval > t.Quiet && (short || t.MinInterval > t.MaxWait):
		return t.minInterval()
	case short || t.own.MaxWait == nil && t.own.Quiet != nil:
		return t.quiet()
	}
	return t.maxWait()
}

func checkExpectedRates(c *Config, f *checker, s namedSink) {
	if l := c.traffic(s.name); l.known > float64(c.Queues.ExpectedRate) {
		f.fault("queues.expectedRate", c.Queues.ExpectedRate, fmt.Sprintf(
			"is less than the rates of the collections of sinks.%s together, %.0f", s.name, l.known),
			fmt.Sprintf("raise it to at least %.0f", l.known))
	}
}

func checkLiveConcurrency(c *Config, f *checker) {
	if n := c.Queues.Live.MaxConcurrency; n > 0 && n < minConcurrency {
		f.fault("queues.live.maxConcurrency", n, "is less than a mapping accepts", "write at least 2, or 0 for no limit")
	}
}

// checkLivePollers compares the traffic with what the mapping's pollers receive. Without a limit,
// AWS adds pollers up to 1,250, which is enough for any queue.
func checkLivePollers(c *Config, f *checker) {
	n, rate := c.Queues.Live.MaxConcurrency, c.Queues.ExpectedRate
	if n < minConcurrency || n*PollerRate >= rate {
		return
	}
	f.fault("queues.live.maxConcurrency", n, fmt.Sprintf(
		"allows %d pollers, which receive about %d messages a second: fewer than the queues.expectedRate of %d",
		n, n*PollerRate, rate),
		fmt.Sprintf("raise it to at least %d, write 0 for no limit, or lower queues.expectedRate",
			(rate+PollerRate-1)/PollerRate))
}

// checkFlightStarts counts one flight per batch. A batch is closed when it has reached its size or
// its window has ended. So there are never more batches than messages.
func checkFlightStarts(c *Config, f *checker) {
	rate := float64(c.Queues.ExpectedRate)
	var express float64
	if c.Flight.Kind != FlightStandard { // with auto, a flight that is Standard now may be Express later
		express = c.Queues.starts(slices.Repeat([]float64{rate}, len(c.Sinks)))
	}
	for _, k := range []struct {
		kind          FlightKind
		starts, quota float64
		other         string
	}{
		{FlightExpress, express, expressStarts, ""},
		{FlightStandard, c.standardStarts(rate), standardStarts, ", or set flight.kind to express"},
	} {
		if k.starts <= k.quota {
			continue
		}
		limit := "lower "
		if c.Queues.Live.MaxConcurrency == 0 {
			limit = "set "
		}
		f.fault("flight.kind", string(c.Flight.Kind), fmt.Sprintf(
			"would start %.0f %s executions a second at the expected rate: the quota is %.0f", math.Ceil(k.starts), k.kind,
			k.quota),
			"raise queues.live.batch and queues.live.window, or lower queues.expectedRate, or "+limit+
				"queues.live.maxConcurrency"+k.other)
	}
}

// standardStarts returns how many Standard executions a second start if each queue gets this rate
// of messages.
func (c *Config) standardStarts(rate float64) float64 {
	var rates []float64 // of each sink
	for name := range c.Sinks {
		l := c.traffic(name)
		slow := l.standard
		if l.long {
			slow += max(rate-l.known, 0)
		}
		rates = append(rates, slow)
	}
	return c.Queues.starts(rates)
}

// starts returns how many flights a second all lanes start, at a rate of messages for each sink.
func (q Queues) starts(rates []float64) float64 {
	var all, starts float64
	for _, rate := range rates {
		all += rate
	}
	for _, l := range q.lanes() {
		if l.MaxConcurrency == 0 { // the lanes of all sinks share the account's concurrency
			starts += l.starts(all)
			continue
		}
		for _, rate := range rates {
			starts += l.starts(rate)
		}
	}
	return starts
}

// starts returns how many flights a second a lane starts at a rate of messages.
func (l Lane) starts(rate float64) float64 {
	// Without a window, each message may form its own batch.
	if l.Window <= 0 || l.Batch <= 0 {
		return rate
	}
	byWindow := float64(l.Concurrency(accountConcurrency)) / l.Window.Seconds()
	return min(rate, max(byWindow, rate/float64(l.Batch)))
}
