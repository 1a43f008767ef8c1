// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/seam/queue"
)

// Strain is the planned limit and outage of the sinks, in addition to Faults and the seed. The
// limit does not end with the injected failures.
type Strain struct {
	DownFrom, DownTo time.Duration // in this period no request and no ping is answered; equal times mean no outage
	// DownSilent makes a sink in an outage keep each request until the caller hangs up. Without
	// DownSilent, the sink refuses a request within milliseconds.
	DownSilent bool
	// Rate is how many documents a second a sink accepts. The sink answers each further item with
	// 429. 0 means no limit.
	Rate int
	// Throttling is how the sink limits the rate. The zero Throttling is a bucket.
	Throttling Throttling
	PingDenied bool // the sink refuses pings, but answers documents
}

// silentUntil returns when a silent sink will answer again, or 0 if the sink is not silent.
func (s Strain) silentUntil(now time.Duration) time.Duration {
	if s.DownSilent && s.DownFrom <= now && now < s.DownTo {
		return s.DownTo
	}
	return 0
}

// Throttling is how a sink with a limited rate answers further documents.
type Throttling byte

// The ways in which engines throttle.
const (
	ThrottleBucket Throttling = iota // saves up to one second of the rate, like a thread pool with a short queue
	ThrottleQueue                    // requests wait up to [queueLength], and the sink refuses further requests
	ThrottleRandom                   // above its rate, a sink refuses items at random
	ThrottleLate                     // the same with [lateLength], so most answers come later than lull waits
	ThrottleDrift                    // a bucket whose rate goes up and down by half, in ten minutes
)

// ParseThrottling parses a way of throttling from the command line.
func ParseThrottling(s string) (Throttling, error) {
	way := slices.Index([]string{"bucket", "queue", "random", "late", "drift"}, s)
	if way < 0 {
		return 0, fmt.Errorf("%q is not a kind of throttling: use bucket, queue, random, late or drift", s)
	}
	return Throttling(way), nil
}

// plan adds the planned outage to the random outages.
func (w *World) plan(s Strain) {
	if s.DownTo > s.DownFrom {
		w.outages = append(w.outages, outage{service: fault.Search, from: s.DownFrom, to: s.DownTo})
	}
}

// queueLength is the longest time that documents wait in a sink that queues.
const queueLength = 3 * time.Second

// lateLength is the longest time that documents wait in a sink that answers late.
const lateLength = 30 * time.Second

// capacity is how much a sink still accepts.
type capacity struct {
	rate  int
	how   Throttling
	dice  dice
	left  float64       // documents left in the bucket
	busy  time.Duration // when the queue will be empty
	asked float64       // the rate of requested documents in the last seconds
	since time.Duration
}

func newCapacity(s Strain, d dice) capacity {
	return capacity{rate: s.Rate, how: s.Throttling, dice: d, left: float64(s.Rate)}
}

// rateAt returns how many documents a second the sink accepts now.
func (c *capacity) rateAt(now time.Duration) float64 {
	if c.how != ThrottleDrift {
		return float64(c.rate)
	}
	return float64(c.rate) * (1 + math.Sin(2*math.Pi*now.Minutes()/10)/2)
}

// take takes the capacity for one document, if there is enough. done is when the sink will have
// finished the document.
func (c *capacity) take(now time.Duration) (done time.Duration, ok bool) {
	if c.rate == 0 {
		return now, true
	}
	rate, passed := c.rateAt(now), (now - c.since).Seconds()
	c.since = now
	switch c.how {
	case ThrottleQueue, ThrottleLate:
		longest := queueLength
		if c.how == ThrottleLate {
			longest = lateLength
		}
		c.busy = max(c.busy, now)
		if c.busy-now > longest {
			return now, false
		}
		c.busy += time.Duration(float64(time.Second) / rate)
		return c.busy, true
	case ThrottleRandom:
		const window = 3 // seconds
		c.asked = c.asked*math.Exp(-passed/window) + 1.0/window
		return now, !c.dice.chance(1 - rate/c.asked)
	}
	c.left = min(c.left+passed*rate, rate)
	if c.left < 1 {
		return now, false
	}
	c.left--
	return now, true
}

// Load is a steady upstream. The bursts of a Load begin at random times. Each burst has the next
// versions of one document. A quarter of the bursts goes to a fiftieth of the documents, which
// therefore change again and again. The injected failures end when the load ends.
type Load struct {
	Rate      float64       // events a second, above 0
	Burst     int           // events in each burst, at least 1
	Spread    time.Duration // the time within which the events of a burst are sent
	Documents int           // number of documents, at least 1
	Lasting   time.Duration
	Surge     Surge
}

// Surge multiplies the rate of a load from a given time on. The zero Surge changes nothing.
type Surge struct {
	Factor float64
	From   time.Duration
}

// at returns the factor at a given time.
func (s Surge) at(now time.Duration) float64 {
	if s.Factor == 0 || now < s.From {
		return 1
	}
	return s.Factor
}

// Steady returns a load without bursts.
func Steady(seed uint64, perSecond float64, docs int, lasting time.Duration) Upstream {
	return Load{Rate: perSecond, Burst: 1, Documents: docs, Lasting: lasting}.Upstream(seed)
}

// Upstream returns the load's messages as native events. The same seed gives the same events.
func (l Load) Upstream(seed uint64) Upstream {
	up, _ := l.upstream(seed, func(n, version int, _ time.Duration) (said, error) {
		body := fmt.Sprintf(`{"type":"doc.changed","subject":"doc-%d","sequence":"%d","data":{"title":"version %d"}}`, n,
			version, version)
		return said{Written: feed.Written{Outgoing: queue.Outgoing{Body: body}}}, nil
	})
	return up
}

// By returns the messages of the load, each in the format of its source.
func (l Load) By(seed uint64, s *Scribe) (Upstream, error) {
	return l.upstream(seed, func(n, version int, at time.Duration) (said, error) {
		return s.write(n, version, false, at)
	})
}

func (l Load) upstream(seed uint64, write func(n, version int, at time.Duration) (said, error)) (Upstream, error) {
	const hotShare, hotDocs = 0.25, 50
	d, each := newDice(seed, 0x737465616479), l.Rate/float64(l.Burst)
	versions := make([]int, l.Documents)
	up := Upstream{Calm: l.Lasting}
	for at := d.gap(each); at < l.Lasting; at += d.gap(each * l.Surge.at(at)) {
		i := d.IntN(l.Documents)
		if d.chance(hotShare) {
			i = d.IntN(max(l.Documents/hotDocs, 1))
		}
		for n := range l.Burst {
			versions[i]++
			sent := at + l.Spread*time.Duration(n)/time.Duration(l.Burst)
			p, err := write(i, versions[i], sent)
			if err != nil {
				return up, err
			}
			up.add(sent, p)
			up.Calm = max(up.Calm, sent)
		}
	}
	InOrder(up.Arrivals)
	return up, nil
}

// add adds a message, and before it the change of the object to which the message refers.
func (up *Upstream) add(at time.Duration, p said) {
	up.Arrivals = append(up.Arrivals, Arrival{At: at, Message: p.Outgoing})
	if p.object != nil {
		up.Objects = append(up.Objects, *p.object)
	}
}

// gap returns a random time to the next event, for independent events at this rate.
func (d dice) gap(perSecond float64) time.Duration {
	return time.Duration(d.ExpFloat64() / perSecond * float64(time.Second))
}
