// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"slices"
)

// Breaker is the shared health row of a sink (design section 8), with three flights that read the
// row. The writes of the row are TRIP, PROBE, CLOSE, and the operator's PAUSE and RESUME. Each
// flight has one document. The sink may become unhealthy at any time, within the budget, and
// recovers by itself. An operator resumes in the end.
type Breaker struct {
	Rules  BreakerRules
	Denied bool // the sink never answers a ping, healthy or not, so that the probe proves nothing
	Budget BreakerBudget
}

// BreakerRules are changes to the design. The zero value is the design.
type BreakerRules struct {
	ProbeForever    bool // probe_until never ends
	ProbeByAnyone   bool // PROBE has no condition
	ProbeDocument   bool // the probe sends a document instead of a ping
	WaitForSuccess  bool // an open circuit breaker waits for a request that succeeds instead of a probe
	CloseRefusedYes bool // a flight whose CLOSE was refused continues as if the circuit breaker were closed
	DeniedTrips     bool // a denied ping counts as an unhealthy sink
	PauseUnread     bool // index does not check for a pause
	CloseUnread     bool // a flight whose CLOSE was applied does not check the returned image for a pause
	CloseResumes    bool // CLOSE ends a pause, as if both were one attribute
	TripResumes     bool // TRIP ends a pause
}

// BreakerBudget says how many faults may still happen.
type BreakerBudget struct {
	Crashes uint8
	Ills    uint8 // how often the sink may become unhealthy
	Pauses  uint8 // how often an operator may pause the sink
}

// Work is the current step of a flight.
type Work uint8

// The steps of a flight.
const (
	Idle     Work = iota
	Admitted      // the flight read the circuit breaker: closed
	Asking        // the document's request is at the sink
	Probing       // the flight's ping is at the sink
	Pinged        // the sink answered the ping: healthy
	Done
)

// Prober is a flight in a BreakerState: its step, and whether it owns the last probe.
type Prober struct {
	Work Work
	Mine bool
}

// BreakerState is the state of all processes at one moment.
type BreakerState struct {
	Open   bool // open_until is set
	Until  bool // open_until is in the future
	Probed bool // probe_until is set
	Probe  bool // probe_until is in the future
	Ill    bool
	Paused bool // paused_at is set
	Halted bool // the operator has paused the sink, and has not resumed it
	Flight [3]Prober
	Left   BreakerBudget
}

var _ Machine[BreakerState] = Breaker{}

// Initial returns a healthy sink with a closed circuit breaker.
func (b Breaker) Initial() BreakerState {
	return BreakerState{Left: b.Budget}
}

// Canon sorts the flights.
func (b Breaker) Canon(s BreakerState) BreakerState {
	slices.SortStableFunc(s.Flight[:], func(a, b Prober) int { return cmp.Compare(b.rank(), a.rank()) })
	return s
}

func (p Prober) rank() int {
	n := 2 * int(p.Work)
	if p.Mine {
		n++
	}
	return n
}

// Check finds two flights that probe under the same live probe_until.
func (b Breaker) Check(s BreakerState) Broken {
	n := 0
	for _, f := range s.Flight {
		if f.Work == Probing && f.Mine && s.Probe {
			n++
		}
	}
	if n > 1 {
		return ProbedByTwo
	}
	return 0
}

// Settled reports whether every document is written.
func (b Breaker) Settled(s BreakerState) bool {
	return !slices.ContainsFunc(s.Flight[:], func(p Prober) bool { return p.Work != Done })
}

// Next appends the edges of time, of the sink, of the operator and of the flights.
func (b Breaker) Next(s BreakerState, edges []Edge[BreakerState]) []Edge[BreakerState] {
	x := leaving[BreakerState]{edges: edges}
	if s.Ill {
		x.addFree(s, Label{Text: "the sink is healthy again"}).To.Ill = false
	} else if s.Left.Ills > 0 {
		t := &x.addEdge(s, false, Label{Text: "the sink becomes unhealthy: it throttles"}).To
		t.Left.Ills--
		t.Ill = true
	}
	if s.Until {
		x.addFree(s, Label{Text: "open_until is past"}).To.Until = false
	}
	if s.Probe && !b.Rules.ProbeForever {
		x.addFree(s, Label{Text: "probe_until is past"}).To.Probe = false
	}
	if s.Halted {
		t := &x.addFree(s, Label{Text: "an operator: RESUME"}).To
		t.Halted, t.Paused = false, false
	} else if s.Left.Pauses > 0 {
		t := &x.addEdge(s, false, Label{Text: "an operator: PAUSE"}).To
		t.Left.Pauses--
		t.Halted, t.Paused = true, true
	}
	for i, f := range s.Flight {
		if f.Work != Idle && f.Work != Done && s.Left.Crashes > 0 {
			t := &x.addEdge(s, false, Label{Text: "index crashes: " + workText[f.Work]}).To
			t.Left.Crashes--
			t.Flight[i] = Prober{}
		}
		switch {
		case f.Work == Idle:
			b.readHealthRow(&x, s, i)
		case f.Work != Done:
			b.act(x.addFree(s, Label{}), i)
		}
	}
	return x.edges
}

var workText = [...]string{
	Admitted: "before it claims", Asking: "before the answer", Probing: "while it probes",
	Pinged: "before CLOSE",
}

// act appends the next step of a flight that has read the health row.
func (b Breaker) act(e *Edge[BreakerState], i int) {
	t, f, text := &e.To, &e.To.Flight[i], &e.Label.Text
	switch f.Work {
	case Admitted:
		f.Work, *text = Asking, "index claims its document, and the request goes to the sink"
	case Asking:
		if t.Ill {
			*text = "the sink throttles the document: TRIP, and the flight waits"
			b.trip(t, f)
			return
		}
		*f, *text = Prober{Work: Done}, "the sink applies the document"
		if b.Rules.WaitForSuccess {
			t.Open, t.Until = false, false
		}
	case Probing:
		switch f.Work = Pinged; {
		case b.Denied && b.Rules.DeniedTrips:
			b.trip(t, f)
			*text = "the sink denies the ping: TRIP, and the flight waits"
		case b.Denied:
			*text = "the sink denies the ping: documents show its health"
		case t.Ill:
			b.trip(t, f)
			*text = "the sink throttles the ping: TRIP, and the flight waits"
		default:
			*text = "the sink answers the ping"
		}
	case Pinged:
		b.closeBreaker(e, f)
	}
}

// closeBreaker is CLOSE. The condition of CLOSE is that the flight still owns probe_until.
func (b Breaker) closeBreaker(e *Edge[BreakerState], f *Prober) {
	t, text, own := &e.To, &e.Label.Text, f.Mine && e.To.Probed
	paused := t.Paused
	*f = Prober{}
	switch {
	case !own && b.Rules.CloseRefusedYes:
		f.Work, *text = Asking, "CLOSE: refused; index claims its document nevertheless"
		if t.Open {
			e.Broken = ClaimedOpen
		}
		return
	case !own:
		*text = "CLOSE: refused: the flight waits"
		return
	}
	t.Open, t.Until, t.Probed, t.Probe = false, false, false, false
	t.Paused = paused && !b.Rules.CloseResumes
	if paused && !b.Rules.CloseUnread {
		*text = "CLOSE: applied; the returned row shows a pause: the flight waits"
		return
	}
	f.Work, *text = Admitted, "CLOSE: applied"
	e.Broken = t.brokenByClaim()
}

// readHealthRow is a flight that reads the health row at the beginning of its turn.
func (b Breaker) readHealthRow(x *leaving[BreakerState], s BreakerState, i int) {
	switch {
	case s.Paused && !b.Rules.PauseUnread: // the flight waits for RESUME
	case !s.Open:
		e := x.addFree(s, Label{Text: "index reads the health row: closed"})
		e.To.Flight[i].Work, e.Broken = Admitted, s.brokenByClaim()
	case s.Until && !b.Rules.ProbeDocument, b.Rules.WaitForSuccess:
	case b.Rules.ProbeDocument:
		e := x.addFree(s, Label{Text: "the circuit breaker is open: index probes with its document"})
		e.To.Flight[i].Work, e.Broken = Asking, ClaimedOpen
	case !s.Probe || b.Rules.ProbeByAnyone:
		t := &x.addFree(s, Label{Text: "open_until is past: PROBE: applied, the ping goes to the sink"}).To
		if !b.Rules.ProbeByAnyone {
			t.endProbes() // every PROBE sets another probe_until
		}
		t.Probed, t.Probe = true, true
		t.Flight[i] = Prober{Work: Probing, Mine: true}
	}
}

// brokenByClaim returns the rule that a flight breaks if it may claim now.
func (s BreakerState) brokenByClaim() Broken {
	if s.Halted {
		return ClaimedPaused
	}
	return 0
}

// trip opens the circuit breaker and ends the probe, unless the circuit breaker was just opened.
// The flight waits.
func (b Breaker) trip(t *BreakerState, f *Prober) {
	*f = Prober{}
	if t.Until {
		return
	}
	t.Open, t.Until, t.Probed, t.Probe = true, true, false, false
	t.Paused = t.Paused && !b.Rules.TripResumes
	t.endProbes()
}

// endProbes makes every flight lose its probe.
func (s *BreakerState) endProbes() {
	for i := range s.Flight {
		s.Flight[i].Mine = false
	}
}
