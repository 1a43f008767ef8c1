// SPDX-License-Identifier: Apache-2.0

package model

// Pace is minInterval (promise 5) with time. One document has three versions that arrive at any
// moment. Two hosts have clocks that differ. The row has leases and last_write. Times are relative
// to now, so that the number of states stays finite.
type Pace struct {
	Rules PaceRules
	Skew  int8 // how far the second host's clock is ahead
	Least int8 // the smallest allowed time between two committed writes
	// Crashes is the number of crashes that may still happen.
	Crashes uint8
}

// PaceRules are changes to the design. The zero value is the design.
type PaceRules struct {
	ByClaim   bool // last_write is the time of the claim, not of the commit
	Unchecked bool // CLAIM does not check minInterval
}

// The settings of the model, in ticks.
const (
	minInterval = 3
	paceTimeout = 2 // an invocation is killed after this many ticks
	paceGuard   = 1
	longAgo     = -minInterval - paceTimeout - paceGuard - 3
)

// Host is the invocation that runs on one machine.
type Host struct {
	Phase   Phase // Waiting, Sent, Applied
	Key     Key
	Age     int8 // ticks since the claim
	At      int8 // the time of the claim by the host's clock, relative to now
	Applied int8 // when the sink applied the write, relative to now
}

// PaceState is the state of all processes at one moment.
type PaceState struct {
	Pending, Committed Key
	Owner              uint8 // the number of the host, plus 1
	LeaseUntil         int8  // relative to now; longAgo means no lease
	LastWrite          int8
	Last               int8 // when the sink applied the last committed write
	Hosts              [2]Host
	Left               uint8
}

var _ Machine[PaceState] = Pace{}

// Initial returns the state without a row.
func (p Pace) Initial() PaceState {
	return PaceState{LeaseUntil: longAgo, LastWrite: longAgo, Last: longAgo, Left: p.Crashes}
}

// Canon replaces times that are long ago by longAgo.
func (p Pace) Canon(s PaceState) PaceState {
	s.LeaseUntil, s.LastWrite, s.Last = max(s.LeaseUntil, longAgo), max(s.LastWrite, longAgo), max(s.Last, longAgo)
	return s
}

// Check returns nothing, because the steps themselves report what they break.
func (p Pace) Check(PaceState) Broken { return 0 }

// Settled reports whether every version is committed.
func (p Pace) Settled(s PaceState) bool { return s.Committed == MaxKey && s.Hosts == [2]Host{} }

// Next appends the next steps of receive, of the hosts and of time.
func (p Pace) Next(s PaceState, edges []Edge[PaceState]) []Edge[PaceState] {
	x := leaving[PaceState]{edges: edges}
	if s.Pending < MaxKey && s.Committed < MaxKey {
		next := max(s.Pending, s.Committed) + 1
		x.addFree(s, Label{Key: next, Text: "receive: ADMIT {k}"}).To.Pending = next
	}
	late := false
	for h, host := range s.Hosts {
		late = late || host.Phase != Waiting && host.Age >= paceTimeout
		p.host(&x, s, h)
	}
	if !late {
		x.addFree(s, Label{Text: "a tick passes"}).To.tick()
	}
	return x.edges
}

func (s *PaceState) tick() {
	s.LeaseUntil--
	s.LastWrite--
	s.Last--
	for h := range s.Hosts {
		if host := &s.Hosts[h]; host.Phase != Waiting {
			host.Age++
			host.At--
			host.Applied--
		}
	}
}

func (p Pace) host(x *leaving[PaceState], s PaceState, h int) {
	host := s.Hosts[h]
	now := int8(h) * p.Skew
	l := Label{Exec: uint8(h), Key: host.Key}
	if overdue := host.Age >= paceTimeout; host.Phase != Waiting && (s.Left > 0 || overdue) {
		t := x.addEdge(s, overdue, l.withText("host {f}: killed before it is done with {k}"))
		t.To.Left = max(s.Left, 1) - 1
		t.To.Hosts[h] = Host{}
	}
	switch host.Phase {
	case Waiting:
		free := s.LeaseUntil < now && s.LastWrite < now
		if s.Pending == None || !free || s.LastWrite > now-minInterval && !p.Rules.Unchecked {
			return
		}
		l.Key = s.Pending
		t := x.addFree(s, l.withText("host {f}: CLAIM {k}: applied; the request goes to the sink"))
		t.To.Owner, t.To.LeaseUntil = uint8(h)+1, now+paceTimeout+paceGuard
		t.To.Hosts[h] = Host{Phase: Sent, Key: s.Pending, At: now}
	case Sent:
		t := &x.addFree(s, l.withText("the sink applies {k} (host {f})")).To.Hosts[h]
		t.Phase, t.Applied = Applied, 0
	case Applied:
		e := x.addFree(s, l.withText("host {f}: COMMIT {k}: refused"))
		e.To.Hosts[h] = Host{}
		if s.Owner == uint8(h)+1 && s.Committed < host.Key {
			e.Label.Text = "host {f}: COMMIT {k}: applied"
			p.commit(e, host, now)
		}
	}
}

func (p Pace) commit(e *Edge[PaceState], host Host, now int8) {
	t := &e.To
	if t.Last > longAgo && host.Applied-t.Last < p.Least {
		e.Broken = TooSoon
	}
	t.Committed, t.Owner, t.LeaseUntil, t.Last = host.Key, 0, longAgo, host.Applied
	t.LastWrite = max(now, host.At)
	if p.Rules.ByClaim {
		t.LastWrite = host.At
	}
	if t.Pending <= host.Key {
		t.Pending = None
	}
}
