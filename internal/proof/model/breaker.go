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
	add := func(t BreakerState, free bool, broken Broken, text string) {
		edges = append(edges, Edge[BreakerState]{To: t, Free: free, Broken: broken, Label: Label{Text: text}})
	}
	if t := s; s.Ill {
		t.Ill = false
		add(t, true, 0, "the sink gets well")
	} else if s.Left.Ills > 0 {
		t.Left.Ills--
		t.Ill = true
		add(t, false, 0, "the sink falls ill: it throttles")
	}
	if t := s; s.Until {
		t.Until = false
		add(t, true, 0, "open_until is past")
	}
	if t := s; s.Probe && !b.Rules.ProbeForever {
		t.Probe = false
		add(t, true, 0, "probe_until is past")
	}
	if t := s; s.Halted {
		t.Halted, t.Paused = false, false
		add(t, true, 0, "an operator: RESUME")
	} else if s.Left.Pauses > 0 {
		t.Left.Pauses--
		t.Halted, t.Paused = true, true
		add(t, false, 0, "an operator: PAUSE")
	}
	for i, f := range s.Flight {
		if t := s; f.Work != Idle && f.Work != Done && s.Left.Crashes > 0 {
			t.Left.Crashes--
			t.Flight[i] = Prober{}
			add(t, false, 0, "index crashes: "+workText[f.Work])
		}
		b.work(s, i, add)
	}
	return edges
}

var workText = [...]string{
	Admitted: "before it claims", Asking: "before the answer", Probing: "while it probes",
	Pinged: "before CLOSE",
}

func (b Breaker) work(s BreakerState, i int, add func(BreakerState, bool, Broken, string)) {
	t := s
	f := &t.Flight[i]
	switch s.Flight[i].Work {
	case Idle:
		b.look(s, i, add)
	case Admitted:
		f.Work = Asking
		add(t, true, 0, "index claims its document, and the request goes to the sink")
	case Asking:
		text := "the sink applies the document"
		switch {
		case s.Ill:
			b.trip(&t, f)
			text = "the sink throttles the document: TRIP, and the flight waits"
		case b.Rules.WaitForSuccess:
			t.Open, t.Until = false, false
			fallthrough
		default:
			*f = Prober{Work: Done}
		}
		add(t, true, 0, text)
	case Probing:
		text := "the sink answers the ping"
		f.Work = Pinged
		switch {
		case b.Denied && b.Rules.DeniedTrips:
			b.trip(&t, f)
			text = "the sink denies the ping: TRIP, and the flight waits"
		case b.Denied:
			text = "the sink denies the ping: documents will tell"
		case s.Ill:
			b.trip(&t, f)
			text = "the sink throttles the ping: TRIP, and the flight waits"
		}
		add(t, true, 0, text)
	case Pinged:
		// CLOSE: probe_until is ours.
		if f.Mine && s.Probed {
			t.Open, t.Until, t.Probed, t.Probe = false, false, false, false
			t.Paused = t.Paused && !b.Rules.CloseResumes
			if s.Paused && !b.Rules.CloseUnread {
				*f = Prober{}
				add(t, true, 0, "CLOSE: applied; its image shows a pause: the flight waits")
				return
			}
			*f = Prober{Work: Admitted}
			add(t, true, s.admitted(), "CLOSE: applied")
			return
		}
		*f = Prober{}
		text, broken := "CLOSE: refused: the flight waits", Broken(0)
		if b.Rules.CloseRefusedYes {
			f.Work = Asking
			text = "CLOSE: refused; index claims its document all the same"
			if s.Open {
				broken = ClaimedOpen
			}
		}
		add(t, true, broken, text)
	}
}

// look is a flight that reads the health row at the beginning of its turn.
func (b Breaker) look(s BreakerState, i int, add func(BreakerState, bool, Broken, string)) {
	t := s
	f := &t.Flight[i]
	switch {
	case s.Paused && !b.Rules.PauseUnread: // it waits
	case !s.Open:
		f.Work = Admitted
		add(t, true, s.admitted(), "index reads the health row: closed")
	case s.Until && !b.Rules.ProbeDocument, b.Rules.WaitForSuccess:
	case b.Rules.ProbeDocument:
		f.Work = Asking
		add(t, true, ClaimedOpen, "the circuit breaker is open: index probes with its document")
	case !s.Probe || b.Rules.ProbeByAnyone:
		for j := range t.Flight {
			if j != i && !b.Rules.ProbeByAnyone {
				t.Flight[j].Mine = false // another probe_until
			}
		}
		t.Probed, t.Probe = true, true
		*f = Prober{Work: Probing, Mine: true}
		add(t, true, 0, "open_until is past: PROBE: applied, the ping goes to the sink")
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
	for j := range t.Flight {
		t.Flight[j].Mine = false
	}
}
