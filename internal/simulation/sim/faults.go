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

// The levels: nothing, the standard fault mix of docs/faults.md, or rates that the seed draws, far
// beyond it.
const (
	NoFaults Level = "none"
	Standard Level = "standard"
	Swarm    Level = "swarm"
)

// ParseLevel reads a level as the command line spells it.
func ParseLevel(s string) (Level, error) {
	all := []Level{NoFaults, Standard, Swarm}
	if slices.Contains(all, Level(s)) {
		return Level(s), nil
	}
	return "", fmt.Errorf("faults: %q is not a level: use none, standard or swarm", s)
}

// Rates are the probabilities of everything that may go wrong, the standard mix's and the
// simulator's own.
type Rates struct {
	fault.Rates

	// per invocation of receive, index and prune: its clock is wrong by ten minutes to forty days.
	// The clock of receive is ahead by more than the queue's retention: receive cannot notice less.
	WrongClock float64

	LateKill time.Duration // how much later than its time-out an invocation may be killed
	Stall    float64       // per I/O: the caller pauses, or the request or the answer hangs, by up to StallBy
	StallBy  time.Duration //
	LateEnd  float64       // per COMMIT, RELEASE and REJECT: it arrives up to StallBy late
	// per sink request: it lands after we hung up, within applyDelay where the sink has no versions
	SinkLate      float64
	SinkError     float64       // per sink request: no useful answer, and a part of the items applied
	NotSent       float64       // per sink request: the last items are not sent because time runs out
	ItemThrottle  float64       // per item: 429
	ItemRefused   float64       // per item: an error of no known class
	Enricher      float64       // per request to an enricher: it throttles, fails, leaves out, adds and repeats
	DocumentPause time.Duration // items for a document written more recently: 429
	StaleRead     float64       // per eventually consistent read of a row: an older one
	StaleBy       time.Duration // how old
	Deaf          bool          // the health row never records throttles and outages, so no turn slows down
	TableBudget   int           // writes a second and document, 0 for no limit
	InFlight      int           // messages in flight at most, 0 for SQS's own limit
	// receives before a message moves to the dead-letter queue; 0 for the number in the settings
	Receives     int
	EntryFails   float64       // per entry of a batch call to SQS
	StaleReceipt float64       // per use of an old receipt handle: the service accepts it
	Undelete     float64       // per deleted message: delivered once more
	EarlyAgain   float64       // per received message: delivered again although it is invisible
	AnswerLost   float64       // per answer of receive or dlq: the mapping never gets it
	PollDelay    time.Duration // how long an idle queue may keep its first message to itself
	WakeEarly    time.Duration // how much too early a Wait may end
	StopFlight   float64       // per execution: an operator stops it
	InvokeRefuse float64       // per invocation of index: throttled by Lambda
	// per invocation: its clock is set while it runs, to another difference within Skew
	ClockStep    float64
	Older        float64 // per turn: an older build made the state that it gets
	Newer        float64 // per manifest and per turn: a newer build made the manifest or the state
	ManifestGone float64 // per manifest: it is deleted within a minute
	Slow         float64 // how many times slower than usual every service is; 0 is 1
}

// StandardRates is the standard mix of injected failures and nothing else.
func StandardRates() Rates {
	return Rates{
		Rates: fault.Standard(), StaleRead: 0.05, StaleBy: 500 * time.Millisecond,
		PollDelay: 200 * time.Millisecond,
	}
}

// quietRates is how services behave on a good day. Reads may still be stale: eventual consistency
// allows that.
func quietRates() Rates {
	return Rates{StaleRead: 0.05, StaleBy: 500 * time.Millisecond, PollDelay: 200 * time.Millisecond}
}

// outage is a service that fails every request for a time.
type outage struct {
	service  fault.Service
	from, to time.Duration
	of       *pipe // the only sink that does not answer; nil for all
}

// swarm draws rates. Each failure is missing in some worlds and common in others, so that no
// failure hides another. guard and versions set the limits that the design's promises assume.
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
		r.Skew = d.upTo(20 * time.Second) // beyond the guard: the fence still protects the sink
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
	if d.chance(0.25) { // a world of zombies: an invocation that hangs continues as late as possible
		r.StallBy, r.SinkLate = 10*time.Second+d.upTo(20*time.Second), 0.3*d.Float64()
		r.Stall, r.LateEnd = oneOf(d, 0.05, 0.2, 0.4)*d.Float64(), 0.5*d.Float64()
		r.LateKill = max(guard-2*r.Skew, 0)
	}
	if d.chance(0.2) { // a world whose sink answers little
		r.SinkError, r.SinkLate, r.ItemRefused, r.SinkThrottle = 0.2+0.4*d.Float64(), 0.4*d.Float64(), 0.2*d.Float64(),
			0
	}
	// The health row only steers; no promise depends on it. Without it, turns claim more at a time.
	r.Deaf = d.chance(0.4)
	r.Enricher = r.SinkError // a separate draw would change every seed's world
	return r
}

// outages draws when whole services are away before the injected failures end.
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

// String lists the rates that are not zero, for a failing seed.
func (r Rates) String() string {
	type plain Rates // without this method
	s := fmt.Sprintf("%+v", plain(r))
	var kept []string
	for _, field := range strings.Fields(strings.NewReplacer("{", " ", "}", " ").Replace(s)) {
		if _, v, ok := strings.Cut(field, ":"); ok && v != "0" && v != "0s" && v != "" {
			kept = append(kept, field)
		}
	}
	return strings.Join(kept, " ")
}
