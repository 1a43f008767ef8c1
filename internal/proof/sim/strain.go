package sim

import (
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/local/fault"
	"github.com/lullhq/lull/internal/queue"
)

// Strain is what the sinks are put to by plan, besides whatever Faults and the seed do to them. It
// does not end with the injected failures, except for an outage.
type Strain struct {
	DownFrom, DownTo time.Duration // no request is answered between the two, pings neither; equal for never
	// documents a second that a sink takes; what is beyond is answered with 429, item by item. 0
	// for any number
	Rate int
}

// plan is the planned outage among the drawn ones.
func (w *World) plan(s Strain) {
	if s.DownTo > s.DownFrom {
		w.outages = append(w.outages, outage{fault.Search, s.DownFrom, s.DownTo})
	}
}

// capacity is what a sink still takes: it gathers a second's worth, like a thread pool with a short
// queue.
type capacity struct {
	rate  int
	left  float64
	since time.Duration
}

func newCapacity(rate int) capacity { return capacity{rate: rate, left: float64(rate)} }

// take takes one document's worth, if there is one.
func (c *capacity) take(now time.Duration) bool {
	if c.rate == 0 {
		return true
	}
	c.left = min(c.left+(now-c.since).Seconds()*float64(c.rate), float64(c.rate))
	c.since = now
	if c.left < 1 {
		return false
	}
	c.left--
	return true
}

// Steady is an upstream that never rests: so many events a second, at random moments, each the next
// version of one of docs documents. A quarter of them goes to a fiftieth of the documents, which
// therefore change again and again. The injected failures end when it does.
func Steady(seed uint64, perSecond float64, docs int, lasting time.Duration) Upstream {
	const hotShare, hotDocs = 0.25, 50
	d := newDice(seed, 0x737465616479)
	versions := make([]int, docs)
	up := Upstream{Calm: lasting}
	for at := d.gap(perSecond); at < lasting; at += d.gap(perSecond) {
		i := d.IntN(docs)
		if d.chance(hotShare) {
			i = d.IntN(max(docs/hotDocs, 1))
		}
		versions[i]++
		body := fmt.Sprintf(`{"type":"doc.changed","subject":"doc-%d","sequence":"%d","data":{"title":"version %d"}}`,
			i, versions[i], versions[i])
		up.Arrivals = append(up.Arrivals, Arrival{at, queue.Outgoing{Body: body}})
	}
	return up
}

// gap is the time to the next of events that come so often and know nothing of each other.
func (d dice) gap(perSecond float64) time.Duration {
	return time.Duration(d.ExpFloat64() / perSecond * float64(time.Second))
}
