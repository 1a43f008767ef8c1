package sim

import (
	"math"
	"time"

	"github.com/lullhq/lull/internal/config"
)

// How DynamoDB and Application Auto Scaling treat provisioned capacity.
const (
	// burstCredit is how many seconds of unused capacity a table saves:
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/burst-adaptive-capacity.html
	burstCredit = 300
	// warmUp is how long a run begins without throttling. Then the capacity is what suits the last
	// minute, as if auto scaling had known the load.
	warmUp = 2 * time.Minute
	// Auto scaling raises the capacity after minutesAbove with a use above the target. It lowers it
	// after minutesBelow with a use below.
	minutesAbove, minutesBelow = 2, 15
	// lowBy is how far below the target, in percentage points, auto scaling begins to lower.
	lowBy = 10
	// scalingActs is how long the metric, the alarm and the change of the table take. AWS says
	// minutes.
	scalingActs = 3 * time.Minute
)

// Capacity is how a provisioned capacity was used in a run, after the warm-up.
type Capacity struct {
	Ready     int     `json:"ready"`  // units a second, at the end
	Used      float64 `json:"used"`   // percent of what was ready, on average
	Raised    int     `json:"raised"` // how often auto scaling raised it
	Throttled int64   `json:"throttled"`
}

// provision is a provisioned capacity of the table. The zero provision refuses nothing.
type provision struct {
	w            *World
	of           config.Capacity
	ready        float64 // units a second; 0 during the warm-up
	saved        float64 // units that may be used now: burstCredit seconds at most
	since        time.Duration
	minute       float64 // units used in this minute
	above, below int     // minutes in a row
	used, paid   float64 // units, since the warm-up
	raised       int
	throttled    int64
}

// newProvision begins to count, if the table is billed by its capacity.
func newProvision(w *World, of config.Capacity) *provision {
	p := &provision{w: w, of: of}
	if w.cfg.Table.Billing == config.Provisioned {
		w.after(time.Minute, p.look)
	}
	return p
}

// take uses units, and reports whether there were enough.
func (p *provision) take(units float64) bool {
	if p.ready > 0 {
		p.save()
		if p.saved < units {
			p.throttled++
			return false
		}
		p.saved -= units
		p.used += units
	}
	p.minute += units
	return true
}

// save adds the capacity of the time that has passed.
func (p *provision) save() {
	more := (p.w.now - p.since).Seconds() * p.ready
	p.since, p.paid = p.w.now, p.paid+more
	p.saved = min(p.saved+more, burstCredit*p.ready)
}

// look is auto scaling, once a minute. It sees what was used, never what was refused.
func (p *provision) look() {
	p.w.after(time.Minute, p.look)
	rate, target := p.minute/60, float64(p.of.Target)/100
	p.minute = 0
	switch {
	case p.w.now < warmUp:
		return
	case p.ready == 0:
		p.ready, p.since = p.fit(rate/target), p.w.now
		p.saved = burstCredit * p.ready
		return
	}
	p.above, p.below = p.above+1, p.below+1
	if rate <= target*p.ready {
		p.above = 0
	}
	if rate >= (target-lowBy/100.0)*p.ready {
		p.below = 0
	}
	if p.above == minutesAbove || p.below == minutesBelow {
		p.above, p.below = 0, 0
		p.w.after(scalingActs, func() { p.become(p.fit(rate / target)) })
	}
}

func (p *provision) become(ready float64) {
	p.save()
	if ready > p.ready {
		p.raised++
	}
	p.ready = ready
}

// fit is the capacity within its bounds.
func (p *provision) fit(units float64) float64 {
	return min(max(math.Ceil(units), float64(p.of.Min)), float64(p.of.Max))
}

// result is the use of the capacity; nil if it was never limited.
func (p *provision) result() *Capacity {
	if p.ready == 0 {
		return nil
	}
	p.save()
	return &Capacity{
		Ready: int(p.ready), Used: 100 * p.used / max(p.paid, 1), Raised: p.raised, Throttled: p.throttled,
	}
}
