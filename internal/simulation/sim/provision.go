// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"time"

	"github.com/lullhq/lull/internal/config"
)

// Constants of DynamoDB and Application Auto Scaling for provisioned capacity.
const (
	// burstCredit is the number of seconds for which a table saves its unused capacity:
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/burst-adaptive-capacity.html
	burstCredit = 300
	// warmUp is how long a run starts without throttling. After the warm-up, the capacity fits the
	// load of the last minute, as if auto scaling had known the load.
	warmUp = 2 * time.Minute
	// Auto scaling raises the capacity after minutesAbove minutes with a use above the target. Auto
	// scaling lowers the capacity after minutesBelow minutes with a use below the target.
	minutesAbove, minutesBelow = 2, 15
	// lowBy is how many percentage points below the target the use must be before auto scaling
	// lowers the capacity.
	lowBy = 10
	// scalingActs is how long the metric, the alarm and the change of the table take together. AWS
	// only says that it takes minutes.
	scalingActs = 3 * time.Minute
)

// Capacity is the use of a provisioned capacity in a run after the warm-up.
type Capacity struct {
	Ready     int     `json:"ready"`  // units a second at the end of the run
	Used      float64 `json:"used"`   // average use, in percent of the provisioned capacity
	Raised    int     `json:"raised"` // how often auto scaling raised the capacity
	Throttled int64   `json:"throttled"`
}

// provision is a provisioned capacity of the table. The zero provision refuses no request.
type provision struct {
	w            *World
	of           config.Capacity
	ready        float64 // units a second; 0 during the warm-up
	saved        float64 // units that may be used now, at most burstCredit seconds of capacity
	since        time.Duration
	minute       float64 // units used in this minute
	above, below int     // consecutive minutes above or below the target
	used, paid   float64 // units used and paid since the warm-up
	raised       int
	throttled    int64
}

// newProvision starts to count if the table is billed by its capacity.
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

// save adds the capacity of the time since the last call.
func (p *provision) save() {
	more := (p.w.now - p.since).Seconds() * p.ready
	p.since, p.paid = p.w.now, p.paid+more
	p.saved = min(p.saved+more, burstCredit*p.ready)
}

// look simulates auto scaling, once a minute. Auto scaling counts only used units, not refused
// requests.
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

// fit returns the nearest capacity within the configured bounds.
func (p *provision) fit(units float64) float64 {
	return min(max(math.Ceil(units), float64(p.of.Min)), float64(p.of.Max))
}

// result returns the use of the capacity, or nil if the capacity was never limited.
func (p *provision) result() *Capacity {
	if p.ready == 0 {
		return nil
	}
	p.save()
	return &Capacity{
		Ready: int(p.ready), Used: 100 * p.used / max(p.paid, 1), Raised: p.raised, Throttled: p.throttled,
	}
}
