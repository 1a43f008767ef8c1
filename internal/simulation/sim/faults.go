// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/fault"
)

// Level says how many failures are injected.
type Level string

// Level none injects nothing. Level standard is the fault mix of docs/faults.md. Level swarm has
// much higher rates, which the seed decides.
const (
	NoFaults Level = "none"
	Standard Level = "standard"
	Swarm    Level = "swarm"
)

// ParseLevel parses a level of the command line.
func ParseLevel(s string) (Level, error) {
	all := []Level{NoFaults, Standard, Swarm}
	if slices.Contains(all, Level(s)) {
		return Level(s), nil
	}
	return "", fmt.Errorf("faults: %q is not a level: use none, standard or swarm", s)
}

// Rates are the probabilities of all failures: those of the standard mix, and those that only the
// simulator has.
type Rates struct {
	fault.Rates

	// WrongClock is the probability that the clock of an invocation of receive, index or prune is
	// wrong by ten minutes to forty days. A clock of receive is ahead by more than the queue's
	// retention, because receive cannot notice a smaller error.
	WrongClock float64

	LateKill time.Duration // the longest time between an invocation's time-out and its kill
	Stall    float64       // for each I/O: the caller, the request or the answer is delayed by up to StallBy
	StallBy  time.Duration //
	LateEnd  float64       // for each COMMIT, RELEASE and REJECT: the write arrives up to StallBy late
	// SinkLate is, for each sink request, the probability that the request is applied after lull
	// hung up. If the sink has no versions, that happens within applyDelay.
	SinkLate      float64
	SinkError     float64       // for each sink request: no useful answer, and a part of the items is applied
	NotSent       float64       // for each sink request: the last items are not sent because time runs out
	ItemThrottle  float64       // for each item: status 429
	ItemRefused   float64       // for each item: an error of an unknown class
	Enricher      float64       // for each request to an enricher: a throttle, an error or wrong documents
	DocumentPause time.Duration // items for a document that was written within this time get status 429
	StaleRead     float64       // for each eventually consistent read of a row: an older image
	StaleBy       time.Duration // the largest age of that image
	Deaf          bool          // the health row never records throttles and outages, so no turn slows down
	TableBudget   int           // writes to one document in a second; 0 for no limit
	InFlight      int           // the most messages in flight; 0 for SQS's own limit
	// Receives is the number of receives before a message moves to the dead-letter queue. 0 means
	// the number in the settings.
	Receives     int
	EntryFails   float64       // for each entry of a batch call to SQS
	StaleReceipt float64       // for each use of an old receipt handle: SQS accepts it
	Undelete     float64       // for each deleted message: SQS delivers the message once more
	EarlyAgain   float64       // for each received message: SQS delivers the invisible message again
	AnswerLost   float64       // for each answer of receive or dlq: the mapping never gets the answer
	PollDelay    time.Duration // how long an idle queue may delay the first message
	WakeEarly    time.Duration // how much too early a Wait may end
	StopFlight   float64       // for each execution: an operator stops the execution
	InvokeRefuse float64       // for each invocation of index: Lambda throttles the invocation
	// ClockStep is, for each invocation, the probability that its clock is set to another error
	// within Skew while it runs.
	ClockStep    float64
	Older        float64 // for each turn: an older build wrote the state that the turn gets
	Newer        float64 // for each manifest and each turn: a newer build wrote the manifest or the state
	ManifestGone float64 // for each manifest: the manifest is deleted within a minute
	Slow         float64 // how many times slower than usual every service is; 0 means 1
}

// StandardRates returns the standard mix of injected failures without further failures.
func StandardRates() Rates {
	return Rates{
		Rates: fault.Standard(), StaleRead: 0.05, StaleBy: 500 * time.Millisecond,
		PollDelay: 200 * time.Millisecond,
	}
}

// quietRates returns the behaviour of services without failures. Reads may still be stale, because
// eventual consistency allows that.
func quietRates() Rates {
	return Rates{StaleRead: 0.05, StaleBy: 500 * time.Millisecond, PollDelay: 200 * time.Millisecond}
}

// outage is a period in which a service fails every request.
type outage struct {
	service  fault.Service
	from, to time.Duration
	of       *pipe // the only sink in the outage; nil for all sinks
}

// swarm returns random rates. Each failure is missing in some simulated runs and common in others,
// so that no failure hides another. guard and versions set the limits that the design's promises
// assume.
func (d dice) swarm(guard time.Duration, versions bool) Rates {
	r := Rates{Rates: fault.Standard()}
	rate := func(high float64) float64 {
		if d.chance(0.45) {
			return 0
		}
		return d.logUniform(high/100, high)
	}
	long := func(high time.Duration) time.Duration {
		if d.chance(0.4) {
			return 0
		}
		return d.upTo(high)
	}
	r.DeliverTwice, r.Reorder, r.ReorderBy = rate(0.3), rate(0.4), 200*time.Millisecond+d.upTo(20*time.Second)
	r.FlightLost, r.FlightTwice = rate(0.3), rate(0.3)
	r.IOFailBefore, r.IOFailAfter, r.IOThrottle = rate(0.1), rate(0.1), rate(0.2)
	r.Kill, r.SinkThrottle = rate(0.3), rate(0.3)
	r.Skew = long(guard / 2)
	r.LateKill = d.upTo(max(guard-2*r.Skew, 0))
	if versions && d.chance(0.15) {
		r.Skew = d.upTo(20 * time.Second) // larger than the guard: the fence still protects the sink
	}
	r.Stall, r.StallBy = rate(0.2), 100*time.Millisecond+d.upTo(30*time.Second)
	r.SinkLate, r.SinkError, r.ItemThrottle, r.ItemRefused = rate(0.3), rate(0.3), rate(0.2), rate(0.1)
	r.DocumentPause = long(time.Second)
	r.StaleRead, r.StaleBy = rate(0.8), 100*time.Millisecond+d.upTo(5*time.Second)
	if d.chance(0.2) {
		r.TableBudget = 1 + d.IntN(10)
	}
	if d.chance(0.1) {
		r.InFlight = 2 + d.IntN(20)
	}
	if d.chance(0.15) {
		r.Receives = 2 + d.IntN(5)
	}
	r.EntryFails, r.StaleReceipt, r.Undelete, r.EarlyAgain = rate(0.1), rate(1), rate(0.1), rate(0.1)
	r.AnswerLost, r.PollDelay, r.WakeEarly = rate(0.1), 50*time.Millisecond+long(20*time.Second), long(2*time.Second)
	r.StopFlight, r.InvokeRefuse = rate(0.1), rate(0.2)
	r.Slow = d.logUniform(0.3, 5)
	r.LateEnd = rate(0.2)
	if d.chance(0.25) { // a run with zombies: an invocation that hangs continues as late as possible
		r.StallBy, r.SinkLate = 10*time.Second+d.upTo(20*time.Second), 0.3*d.Float64()
		r.Stall, r.LateEnd = oneOf(d, 0.05, 0.2, 0.4)*d.Float64(), 0.5*d.Float64()
		r.LateKill = max(guard-2*r.Skew, 0)
	}
	if d.chance(0.2) { // a run whose sink rarely answers
		r.SinkError, r.SinkLate, r.ItemRefused, r.SinkThrottle = 0.2+0.4*d.Float64(), 0.4*d.Float64(), 0.2*d.Float64(),
			0
	}
	// The health row only changes the pace, and no promise depends on it. Without a health row,
	// turns claim more documents at a time.
	r.Deaf = d.chance(0.4)
	r.Enricher = r.SinkError // another random number would change the run of every seed
	return r
}

// outages decides at random when whole services do not answer before the injected failures end.
func (d dice) outages(until time.Duration) []outage {
	var out []outage
	for _, s := range []fault.Service{fault.Table, fault.SQS, fault.Bucket, fault.States, fault.Search} {
		if d.chance(0.12) {
			from := d.upTo(until)
			rest := (until - from).Seconds()
			to := from + time.Duration(d.logUniform(1, max(rest, 2))*float64(time.Second))
			out = append(out, outage{service: s, from: from, to: to})
		}
	}
	return out
}

// String lists the rates that are not zero, to describe a failing seed.
func (r Rates) String() string {
	type plain Rates // plain has no String method
	s := fmt.Sprintf("%+v", plain(r))
	var kept []string
	for _, field := range strings.Fields(strings.NewReplacer("{", " ", "}", " ").Replace(s)) {
		if _, v, ok := strings.Cut(field, ":"); ok && v != "0" && v != "0s" && v != "" {
			kept = append(kept, field)
		}
	}
	return strings.Join(kept, " ")
}
