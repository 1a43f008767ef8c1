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

// Strain is the planned load limit and outage of the sinks, in addition to Faults and the seed. It
// does not end with the injected failures, except for an outage.
type Strain struct {
	DownFrom, DownTo time.Duration // no request is answered between the two, pings neither; equal for never
	// DownSilent makes a sink that is down keep each request until its caller hangs up. Otherwise the
	// sink refuses it within milliseconds.
	DownSilent bool
	// documents a second that a sink accepts; it answers each further item with 429. 0 for any
	// number
	Rate int
	// how it does so; the zero Throttling is a bucket
	Throttling Throttling
	PingDenied bool // the sink refuses pings; it still answers documents
}

// silentUntil is when a sink that is silent now will answer again; 0 if it is not silent.
func (s Strain) silentUntil(now time.Duration) time.Duration {
	if s.DownSilent && s.DownFrom <= now && now < s.DownTo {
		return s.DownTo
	}
	return 0
}

// Throttling is how a sink with a rate answers further documents.
type Throttling byte

// The ways of engines.
const (
	ThrottleBucket Throttling = iota // it gathers a second's worth, like a thread pool with a short queue
	ThrottleQueue                    // it makes requests wait, up to [queueLength], and refuses beyond
	ThrottleRandom                   // above what it takes it refuses items at random
	ThrottleDrift                    // a bucket; what it takes swings by half, up and down, in ten minutes
)

// ParseThrottling reads a way as the command line spells it.
func ParseThrottling(s string) (Throttling, error) {
	way := slices.Index([]string{"bucket", "queue", "random", "drift"}, s)
	if way < 0 {
		return 0, fmt.Errorf("%q is not a kind of throttling: use bucket, queue, random or drift", s)
	}
	return Throttling(way), nil
}

// plan is the planned outage among the drawn ones.
func (w *World) plan(s Strain) {
	if s.DownTo > s.DownFrom {
		w.outages = append(w.outages, outage{service: fault.Search, from: s.DownFrom, to: s.DownTo})
	}
}

// queueLength is how long documents wait at most in a sink that queues.
const queueLength = 3 * time.Second

// capacity is how much a sink still accepts.
type capacity struct {
	rate  int
	how   Throttling
	dice  dice
	left  float64       // of a bucket
	busy  time.Duration // until when a queue has work
	asked float64       // documents a second that it got in the last seconds
	since time.Duration
}

func newCapacity(s Strain, d dice) capacity {
	return capacity{rate: s.Rate, how: s.Throttling, dice: d, left: float64(s.Rate)}
}

// rateAt is how many documents a second the sink accepts now.
func (c *capacity) rateAt(now time.Duration) float64 {
	if c.how != ThrottleDrift {
		return float64(c.rate)
	}
	return float64(c.rate) * (1 + math.Sin(2*math.Pi*now.Minutes()/10)/2)
}

// take takes one document's worth, if there is one. done is when the sink is through with it.
func (c *capacity) take(now time.Duration) (done time.Duration, ok bool) {
	if c.rate == 0 {
		return now, true
	}
	rate, passed := c.rateAt(now), (now - c.since).Seconds()
	c.since = now
	switch c.how {
	case ThrottleQueue:
		c.busy = max(c.busy, now)
		if c.busy-now > queueLength {
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

// Load is an upstream that never rests. Its bursts begin at random moments, each of the next
// versions of one document. A quarter of them goes to a fiftieth of the documents, which therefore
// change again and again. The injected failures end when it does.
type Load struct {
	Rate      float64       // events a second, above 0
	Burst     int           // events of each burst, 1 at least
	Spread    time.Duration // within which those are sent
	Documents int           // 1 at least
	Lasting   time.Duration
	Surge     Surge
}

// Surge multiplies the rate of a load from a moment on. The zero Surge changes nothing.
type Surge struct {
	Factor float64
	From   time.Duration
}

// at is the factor at a moment.
func (s Surge) at(now time.Duration) float64 {
	if s.Factor == 0 || now < s.From {
		return 1
	}
	return s.Factor
}

// Steady is a load without bursts.
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

// By returns the load's messages in the form of the sources.
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

// add changes the object that a message refers to, and then sends the message.
func (up *Upstream) add(at time.Duration, p said) {
	up.Arrivals = append(up.Arrivals, Arrival{At: at, Message: p.Outgoing})
	if p.object != nil {
		up.Objects = append(up.Objects, *p.object)
	}
}

// gap is the time to the next event, if independent events come at this rate.
func (d dice) gap(perSecond float64) time.Duration {
	return time.Duration(d.ExpFloat64() / perSecond * float64(time.Second))
}
