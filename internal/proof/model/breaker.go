package model

import (
	"cmp"
	"slices"
)

// Breaker is the sink's shared health row (design section 8) with flights that look at it: TRIP,
// PROBE, CLOSE, and the operator's PAUSE and RESUME. Each flight has one document. The sink may be
// ill at any time, within the budget, and gets well by itself. An operator resumes in the end.
type Breaker struct {
	Rules  BreakerRules
	Denied bool // the sink answers no ping, ill or well: the probe proves nothing
	Budget BreakerBudget
}

// BreakerRules are changes to the design, which is the zero value.
type BreakerRules struct {
	ProbeForever    bool // probe_until never runs out
	ProbeByAnyone   bool // PROBE has no condition
	ProbeDocument   bool // the probe is a document
	WaitForSuccess  bool // an open circuit breaker waits for a request that succeeds instead of a probe
	CloseRefusedYes bool // a prober whose CLOSE was refused goes on as if the circuit breaker were closed
	DeniedTrips     bool // a ping that is denied counts as a sink that is ill
	PauseUnread     bool // index does not look for a pause
	CloseUnread     bool // a prober whose CLOSE was applied does not look for a pause in its image
	CloseResumes    bool // CLOSE ends a pause, as where both are one attribute
	TripResumes     bool // TRIP ends a pause
}

// BreakerBudget is what may still go wrong.
type BreakerBudget struct {
	Crashes uint8
	Ills    uint8 // times that the sink falls ill
	Pauses  uint8 // times that an operator pauses the sink
}

// Work is what a flight is doing.
type Work uint8

// The phases of a flight.
const (
	Idle     Work = iota
	Admitted      // it read the circuit breaker: closed
	Asking        // its request is at the sink
	Probing       // its ping is at the sink
	Pinged        // its ping was answered: well
	Done
)

// Prober is a flight in a BreakerState: its work, and whether the last probe is its own.
type Prober struct {
	Work Work
	Mine bool
}

// BreakerState is everything at one moment.
type BreakerState struct {
	Open   bool // open_until is set
	Until  bool // ... and lies ahead
	Probed bool // probe_until is set
	Probe  bool // ... and lies ahead
	Ill    bool
	Paused bool // paused_at is set
	Halted bool // the operator has paused, and not resumed
	Flight [3]Prober
	Left   BreakerBudget
}

var _ Machine[BreakerState] = Breaker{}

// Initial is a well sink with a closed circuit breaker.
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

// Check finds two that probe under a live probe_until.
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

// Settled wants every document written.
func (b Breaker) Settled(s BreakerState) bool {
	return !slices.ContainsFunc(s.Flight[:], func(p Prober) bool { return p.Work != Done })
}

// Next appends what can happen: times that pass, the sink, the flights.
func (b Breaker) Next(s BreakerState, edges []Edge[BreakerState]) []Edge[BreakerState] {
	x := leaving[BreakerState]{edges: edges}
	if s.Ill {
		x.free(s, Label{Text: "the sink gets well"}).To.Ill = false
	} else if s.Left.Ills > 0 {
		t := &x.edge(s, false, Label{Text: "the sink falls ill: it throttles"}).To
		t.Left.Ills--
		t.Ill = true
	}
	if s.Until {
		x.free(s, Label{Text: "open_until is past"}).To.Until = false
	}
	if s.Probe && !b.Rules.ProbeForever {
		x.free(s, Label{Text: "probe_until is past"}).To.Probe = false
	}
	if s.Halted {
		t := &x.free(s, Label{Text: "an operator: RESUME"}).To
		t.Halted, t.Paused = false, false
	} else if s.Left.Pauses > 0 {
		t := &x.edge(s, false, Label{Text: "an operator: PAUSE"}).To
		t.Left.Pauses--
		t.Halted, t.Paused = true, true
	}
	for i, f := range s.Flight {
		if f.Work != Idle && f.Work != Done && s.Left.Crashes > 0 {
			t := &x.edge(s, false, Label{Text: "index crashes: " + workText[f.Work]}).To
			t.Left.Crashes--
			t.Flight[i] = Prober{}
		}
		switch {
		case f.Work == Idle:
			b.look(&x, s, i)
		case f.Work != Done:
			b.work(x.free(s, Label{}), i)
		}
	}
	return x.edges
}

var workText = [...]string{
	Admitted: "before it claims", Asking: "before the answer", Probing: "while it probes",
	Pinged: "before CLOSE",
}

// work is what a flight does once it has looked.
func (b Breaker) work(e *Edge[BreakerState], i int) {
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
			*text = "the sink denies the ping: documents will tell"
		case t.Ill:
			b.trip(t, f)
			*text = "the sink throttles the ping: TRIP, and the flight waits"
		default:
			*text = "the sink answers the ping"
		}
	case Pinged:
		b.shut(e, f)
	}
}

// shut is CLOSE: probe_until is ours.
func (b Breaker) shut(e *Edge[BreakerState], f *Prober) {
	t, text, own := &e.To, &e.Label.Text, f.Mine && e.To.Probed
	paused := t.Paused
	*f = Prober{}
	switch {
	case !own && b.Rules.CloseRefusedYes:
		f.Work, *text = Asking, "CLOSE: refused; index claims its document all the same"
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
		*text = "CLOSE: applied; its image shows a pause: the flight waits"
		return
	}
	f.Work, *text = Admitted, "CLOSE: applied"
	e.Broken = t.admitted()
}

// look is a flight that reads the health row at the beginning of its turn.
func (b Breaker) look(x *leaving[BreakerState], s BreakerState, i int) {
	switch {
	case s.Paused && !b.Rules.PauseUnread: // it waits
	case !s.Open:
		e := x.free(s, Label{Text: "index reads the health row: closed"})
		e.To.Flight[i].Work, e.Broken = Admitted, s.admitted()
	case s.Until && !b.Rules.ProbeDocument, b.Rules.WaitForSuccess:
	case b.Rules.ProbeDocument:
		e := x.free(s, Label{Text: "the circuit breaker is open: index probes with its document"})
		e.To.Flight[i].Work, e.Broken = Asking, ClaimedOpen
	case !s.Probe || b.Rules.ProbeByAnyone:
		t := &x.free(s, Label{Text: "open_until is past: PROBE: applied, the ping goes to the sink"}).To
		if !b.Rules.ProbeByAnyone {
			t.unprobed() // another probe_until
		}
		t.Probed, t.Probe = true, true
		t.Flight[i] = Prober{Work: Probing, Mine: true}
	}
}

// admitted is what is broken where a flight may claim from now on.
func (s BreakerState) admitted() Broken {
	if s.Halted {
		return ClaimedPaused
	}
	return 0
}

// trip opens the circuit breaker unless it was just opened, and takes the probe away. The flight
// waits.
func (b Breaker) trip(t *BreakerState, f *Prober) {
	*f = Prober{}
	if t.Until {
		return
	}
	t.Open, t.Until, t.Probed, t.Probe = true, true, false, false
	t.Paused = t.Paused && !b.Rules.TripResumes
	t.unprobed()
}

// unprobed takes the probe away from whoever has it.
func (s *BreakerState) unprobed() {
	for i := range s.Flight {
		s.Flight[i].Mine = false
	}
}
