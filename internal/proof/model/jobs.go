// SPDX-License-Identifier: Apache-2.0

package model

// Jobs is the runner of jobs (ADR 0069). The model has one row, two programs that run the same
// command, and an operator who stops the job. Requests may arrive late, after their own retries.
type Jobs struct {
	Rules  JobRules
	Budget JobBudget
}

// JobRules are changes to the design. The zero value is the design.
type JobRules struct {
	CursorFirst bool // the cursor is stored before its step is done
	Apart       bool // counts are stored before the cursor, in a separate write
	AnySaves    bool // SAVE RUN does not check the owner
	AnyEnds     bool // END RUN does not check the owner
	KeepsOwner  bool // a stop does not remove the owner
	StopsDone   bool // a stop marks the job as stopped, even if the job is done and was not started again
	StartsTwice bool // START RUN does not check whether another START RUN was applied in the meantime
}

// JobBudget bounds the faults and the actions of operators.
type JobBudget struct {
	Kills uint8 // programs that are killed, or whose step fails for good
	Lates uint8 // requests that arrive after a retry, or never
	Stops uint8
	Again uint8 // commands that start a finished job again
}

const (
	jobSteps = 2
	jobRuns  = 2 // a finished job is started again once
)

// JobPhase is the phase of a job, or of a program.
type JobPhase uint8

// The phases of a job.
const (
	JobNew JobPhase = iota
	JobRuns
	JobStopped // the operator stopped the job, or the job failed
	JobDone
)

// The phases of a program.
const (
	ProgramIdle    JobPhase = iota
	ProgramStarts           // the program sends START RUN
	ProgramBegins           // the program has the lease, and stores its first state
	ProgramReady            // the program does the next step
	ProgramActed            // the program did the step, and stores the cursor that follows
	ProgramCounted          // the program has stored the counts, and not yet the cursor (Apart)
)

// JobState is the progress of a job.
type JobState struct {
	Phase  JobPhase
	Run    uint8 // how often the job was started before
	Cursor uint8 // the number of finished steps
	Count  uint8
}

// JobKind is the kind of a write to the row of a job.
type JobKind uint8

// The kinds of writes to the row.
const (
	JobStart JobKind = 1 + iota
	JobSave
	JobEnd
)

// JobWrite is a request to write the row of a job.
type JobWrite struct {
	Kind  JobKind
	Token Token
	Fresh bool // no other START RUN was applied after this one was sent
	Stop  bool // the operator sent the write
	State JobState
}

// JobProgram is a program that runs the job.
type JobProgram struct {
	Phase   JobPhase
	Token   Token
	Fresh   bool // no other START RUN was applied after this program's one was sent
	Stopped bool // the operator has stopped the job and removed the lease
	State   JobState
}

// JobsState is the state of all processes at one moment.
type JobsState struct {
	Row      JobState
	Owner    Token
	Lease    bool // the lease has not ended
	Did      [jobRuns]Set
	Programs [2]JobProgram
	Stop     JobWrite // the write that the operator is about to send
	Late     [2]JobWrite
	Budget   JobBudget
}

var _ Machine[JobsState] = Jobs{}

// Initial returns the state without a row.
func (m Jobs) Initial() JobsState { return JobsState{Budget: m.Budget} }

// Canon renames tokens in the order of their places, and removes requests that will be refused.
func (m Jobs) Canon(s JobsState) JobsState {
	var names [16]Token
	next := Token(0)
	name := func(t *Token) {
		if *t != 0 && names[*t] == 0 {
			next++
			names[*t] = next
		}
		*t = names[*t]
	}
	for i := range s.Programs {
		name(&s.Programs[i].Token)
	}
	name(&s.Owner)
	name(&s.Stop.Token)
	for i := range s.Late {
		if s.Late[i].Kind == JobStart && !s.Late[i].Fresh && !m.Rules.StartsTwice {
			s.Late[i] = JobWrite{}
		}
		name(&s.Late[i].Token)
	}
	return s
}

// Check compares the row with the steps that were done.
func (m Jobs) Check(s JobsState) (b Broken) {
	if s.Row.Cursor > 0 && !s.Did[s.Row.Run].Has(int(s.Row.Cursor)-1) {
		b |= Skipped
	}
	if s.Row.Phase == JobDone && s.Row.Count != s.Row.Cursor {
		b |= Miscounted
	}
	return b
}

// Settled reports whether the job is done and no request is on its way.
func (m Jobs) Settled(s JobsState) bool {
	return s.Row.Phase == JobDone && s.Programs == [2]JobProgram{} && s.Late == [2]JobWrite{} && s.Stop == JobWrite{}
}

// Next appends the next steps of the programs, of the operator and of late requests.
func (m Jobs) Next(s JobsState, edges []Edge[JobsState]) []Edge[JobsState] {
	x := &leaving[JobsState]{edges: edges}
	for i := range s.Programs {
		m.program(x, s, i)
	}
	if s.Lease {
		x.addFree(s, Label{Text: "the lease runs out"}).To.Lease = false
	}
	for i, w := range s.Late {
		if w.Kind != 0 {
			e := x.addFree(s, Label{})
			e.To.Late[i] = JobWrite{}
			e.Label.Text = "a late " + m.store(e, w)
		}
	}
	switch {
	case s.Stop.Kind != 0:
		e := x.addFree(s, Label{})
		e.To.Stop = JobWrite{}
		e.Label.Text = "the operator stops the job: " + m.store(e, s.Stop)
	case s.Budget.Stops > 0 && s.Owner != 0:
		t := &x.addEdge(s, false, Label{Text: "the operator reads the row"}).To
		t.Budget.Stops--
		t.Stop = JobWrite{Kind: JobEnd, Token: s.Owner, Stop: true, State: s.Row}
		if s.Row.Phase != JobDone || m.Rules.StopsDone {
			t.Stop.State.Phase = JobStopped
		}
	}
	return x.edges
}

// finished reports whether the job is done, and the bounds do not allow another start.
func (s *JobsState) finished() bool { return s.Row.Phase == JobDone && s.Row.Run == jobRuns-1 }

// program appends the next steps of one program.
func (m Jobs) program(x *leaving[JobsState], s JobsState, i int) {
	me := s.Programs[i]
	l := Label{Exec: uint8(i), Key: Key(me.State.Cursor + 1)}
	if me.Phase == ProgramIdle {
		again := s.Row.Phase == JobDone
		if s.finished() || again && s.Budget.Again == 0 {
			return
		}
		t := &x.addEdge(s, !again, l.withText("program {f} begins")).To
		if again {
			t.Budget.Again--
		}
		t.Programs[i] = JobProgram{Phase: ProgramStarts, Token: s.unusedToken(), Fresh: true}
		return
	}
	if s.Budget.Kills > 0 {
		t := &x.addEdge(s, false, l.withText("program {f} is killed")).To
		t.Budget.Kills--
		t.Programs[i] = JobProgram{}
		if me.Phase == ProgramReady {
			failed := me.State
			failed.Phase = JobStopped
			e := x.addEdge(s, false, l)
			e.To.Budget.Kills--
			e.To.Programs[i] = JobProgram{}
			e.Label.Text = "program {f}: step {k} fails: " +
				m.store(e, JobWrite{Kind: JobEnd, Token: me.Token, State: failed})
		}
	}
	switch {
	case me.Phase == ProgramStarts:
		m.startRun(x, s, i)
	case me.Phase == ProgramReady && !m.Rules.CursorFirst:
		t := &x.addFree(s, l.withText("program {f} does step {k}")).To
		t.Did[me.State.Run] |= 1 << me.State.Cursor
		t.Programs[i].Phase = ProgramActed
	case me.Phase == ProgramActed && m.Rules.CursorFirst:
		step := me.State.Cursor - 1
		l.Key = Key(step + 1)
		t := &x.addFree(s, l.withText("program {f} does step {k}")).To
		t.Did[me.State.Run] |= 1 << step
		if t.Programs[i].Phase = ProgramReady; me.State.Cursor == jobSteps {
			t.Programs[i] = JobProgram{}
		}
	default:
		m.saveRun(x, s, i, l)
	}
}

// unusedToken returns a token that no process has.
func (s *JobsState) unusedToken() Token {
	used := Keys(Key(s.Owner), Key(s.Stop.Token), Key(s.Programs[0].Token), Key(s.Programs[1].Token),
		Key(s.Late[0].Token), Key(s.Late[1].Token))
	t := Token(1)
	for used.Has(Key(t)) {
		t++
	}
	return t
}

// startRun appends START RUN of a program.
func (m Jobs) startRun(x *leaving[JobsState], s JobsState, i int) {
	me, l := s.Programs[i], Label{Exec: uint8(i)}
	w := JobWrite{Kind: JobStart, Token: me.Token, Fresh: me.Fresh}
	m.addLate(x, s, w, l)
	e := x.addFree(s, l)
	t := &e.To
	switch took := s.Owner == me.Token; {
	case s.finished():
		e.Label.Text = "program {f} ends: enough was begun"
		t.Programs[i] = JobProgram{}
		return
	case took:
		e.Label.Text = "program {f}: START RUN was applied"
	default:
		if e.Label.Text = "program {f}: " + m.store(e, w); t.Owner != me.Token {
			t.Programs[i] = JobProgram{}
			return
		}
	}
	p := &t.Programs[i]
	p.Phase, p.Fresh, p.State = ProgramBegins, false, s.Row
	if s.Row.Phase == JobDone {
		p.State = JobState{Run: s.Row.Run + 1}
	}
	p.State.Phase = JobRuns
}

// addLate appends a request without an answer. The program tries again.
func (m Jobs) addLate(x *leaving[JobsState], s JobsState, w JobWrite, l Label) {
	if s.Budget.Lates == 0 {
		return
	}
	t := s
	t.Budget.Lates--
	if add(t.Late[:], w) {
		x.addEdge(t, false, l.withText("a "+nameOfJob(w)+" of program {f} has no answer"))
	}
}

// saveRun appends the write that a program sends next.
func (m Jobs) saveRun(x *leaving[JobsState], s JobsState, i int, l Label) {
	me := s.Programs[i]
	w, phase := JobWrite{Kind: JobSave, Token: me.Token, State: me.State}, ProgramReady
	switch {
	case me.Phase == ProgramBegins:
	case m.Rules.Apart && me.Phase == ProgramActed:
		w.State.Count++
		phase = ProgramCounted
	default:
		w.State.Cursor++
		if !m.Rules.Apart {
			w.State.Count++
		}
		if w.State.Cursor == jobSteps {
			w.Kind, w.State.Phase, phase = JobEnd, JobDone, ProgramIdle
		}
		if m.Rules.CursorFirst {
			phase = ProgramActed
		}
	}
	m.addLate(x, s, w, l)
	e := x.addFree(s, l)
	text := m.store(e, w)
	e.Label.Text = "program {f}: " + text
	p := &e.To.Programs[i]
	// If the END RUN of a program was applied before, the program recognises its own state.
	ended := w.Kind == JobEnd && s.Owner == 0 && s.Row == w.State
	if p.Phase, p.State = phase, w.State; !m.accepts(s, w) && !ended || phase == ProgramIdle {
		*p = JobProgram{}
	}
}

// accepts reports whether the condition of a write holds.
func (m Jobs) accepts(s JobsState, w JobWrite) bool {
	switch {
	case w.Kind == JobStart:
		return !s.Lease && (w.Fresh || m.Rules.StartsTwice)
	case w.Kind == JobSave && m.Rules.AnySaves, w.Kind == JobEnd && m.Rules.AnyEnds:
		return true
	}
	return s.Owner == w.Token
}

func nameOfJob(w JobWrite) string {
	switch {
	case w.Kind == JobStart:
		return "START RUN"
	case w.Kind == JobSave:
		return "SAVE RUN"
	case w.State.Phase == JobDone:
		return "END RUN (done)"
	}
	return "END RUN"
}

// store applies a write to the row, and returns its outcome as a text.
func (m Jobs) store(e *Edge[JobsState], w JobWrite) string {
	t, name := &e.To, nameOfJob(w)
	if !m.accepts(*t, w) {
		return name + ": refused"
	}
	if w.Kind == JobStart {
		t.Owner, t.Lease = w.Token, true
		for i := range t.Programs {
			t.Programs[i].Fresh = false
		}
		for i := range t.Late {
			t.Late[i].Fresh = false
		}
		return name + ": applied"
	}
	if t.Owner != w.Token {
		e.Broken |= Leaseless
	}
	if t.Row.Phase == JobDone && t.Row.Run == w.State.Run && w.State.Phase != JobDone {
		e.Broken |= Undone
	}
	for i := range t.Programs {
		switch p := &t.Programs[i]; {
		case p.Token != w.Token:
		case w.Stop:
			p.Stopped = true
		case p.Stopped:
			e.Broken |= Revived
		}
	}
	t.Row, t.Lease = w.State, w.Kind == JobSave
	if w.Kind == JobEnd && !(w.Stop && m.Rules.KeepsOwner) {
		t.Owner = 0
	}
	if w.Stop && m.Rules.KeepsOwner {
		t.Lease = true
	}
	return name + ": applied"
}
