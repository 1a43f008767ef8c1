package fault

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Broken is what somebody has broken on purpose. The zero Broken is a stack in which everything
// works.
type Broken struct {
	SinkDown    bool    `json:"sink_down"`    // no request to a sink is answered
	SinkSlowMS  int64   `json:"sink_slow_ms"` // how long each request takes longer, in milliseconds, up to MaxSlow
	SinkRejects float64 `json:"sink_rejects"` // share of documents that the sinks refuse for good, from 0 to 1
	TableAway   bool    `json:"table_away"`   // no request to the table is answered
}

// MaxSlow is longer than index waits for an answer by default.
const MaxSlow = 30 * time.Second

// Validate names every field that is wrong.
func (b Broken) Validate() error {
	var errs []error
	if b.SinkSlowMS < 0 || b.SinkSlowMS > MaxSlow.Milliseconds() {
		errs = append(errs, fmt.Errorf("sink_slow_ms %d: want 0 to %d", b.SinkSlowMS, MaxSlow.Milliseconds()))
	}
	if !(b.SinkRejects >= 0 && b.SinkRejects <= 1) {
		errs = append(errs, fmt.Errorf("sink_rejects %g: want a share from 0 to 1", b.SinkRejects))
	}
	return errors.Join(errs...)
}

// Panel is an injector that somebody steers while a stack runs. What it lets through is the next
// injector's. It is safe for concurrent use.
type Panel struct {
	Next  Injector // nil for none
	Clock clock.Clock

	used atomic.Bool // since the last time that everything worked; says no early, without the lock

	mu      sync.Mutex
	broken  Broken
	armed   map[string]int // invocations to kill, by function
	killed  map[string]int // those that were, by function
	since   time.Time      // when the first of it broke; zero for never
	righted time.Time      // when the last of it was put right; zero while something is broken
}

var _ Injector = (*Panel)(nil)

// NewPanel returns a panel with which nothing is broken.
func NewPanel(clk clock.Clock, next Injector) *Panel {
	return &Panel{Clock: clk, Next: next, armed: map[string]int{}, killed: map[string]int{}}
}

// The moments at which a kill hurts most. The row says that a version is pending, and no flight
// will come for it; the sink has a document, and the row does not know. Both are right after a call
// was applied, and before anybody heard its answer.
var kills = map[string]func(op Op) bool{
	"receive": func(op Op) bool { return op.Transition.Base() == shard.ADMIT },
	"index":   func(op Op) bool { return op.Service == Search && op.Call == "_bulk" },
}

// Functions are those that [Panel.Kill] can kill.
func Functions() []string { return []string{"receive", "index"} }

// Break sets what is broken from now on, in place of what was. The error names what is wrong with
// it: then nothing changes. The zero Broken puts everything right, and takes back the kills that
// wait for an invocation.
func (p *Panel) Break(b Broken) error {
	if err := b.Validate(); err != nil {
		return err
	}
	p.change(func() {
		p.broken = b
		if b == (Broken{}) {
			clear(p.armed)
		}
	})
	return nil
}

// maxArmed bounds how many kills wait for an invocation.
const maxArmed = 10

// Kill kills the next invocation of a function at its worst moment: receive right after it wrote a
// row, index right after the sink took its documents.
func (p *Panel) Kill(function string) error {
	if !slices.Contains(Functions(), function) {
		return fmt.Errorf("function %.40q: want one of %s", function, strings.Join(Functions(), ", "))
	}
	p.change(func() { p.armed[function] = min(p.armed[function]+1, maxArmed) })
	return nil
}

// change changes something and notes since when something is broken, or nothing any more.
func (p *Panel) change(f func()) {
	now := p.Clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.breaks()
	f()
	switch after := p.breaks(); {
	case after && !before:
		p.since, p.righted = now, time.Time{}
	case before && !after:
		p.righted = now
	}
	p.used.Store(p.breaks())
}

// breaks reports whether something is broken, or will be.
func (p *Panel) breaks() bool {
	return p.broken != (Broken{}) || slices.ContainsFunc(Functions(), func(f string) bool { return p.armed[f] > 0 })
}

// PanelState is what a panel shows.
type PanelState struct {
	Broken
	Armed   map[string]int `json:"armed"`   // kills that wait for an invocation, by function
	Killed  map[string]int `json:"killed"`  // invocations that were killed, by function
	Since   time.Time      `json:"since"`   // when something was broken, after everything had worked; zero for never
	Righted time.Time      `json:"righted"` // when everything worked again; zero before that
}

// State is what is broken, and since when.
func (p *Panel) State() PanelState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return PanelState{p.broken, maps.Clone(p.armed), maps.Clone(p.killed), p.since, p.righted}
}

// Recovery is how far a stack has come since somebody broke it. It counts events.
type Recovery struct {
	PanelState
	// Recovered is when nothing was left of what had come before everything worked again, seen for the
	// first time; zero before that.
	Recovered time.Time `json:"recovered"`
	Events    int       `json:"events"`
	Done      int       `json:"done"` // written, unchanged, superseded, stale, deleted, scheduled, duplicate or skipped
	Dead      int       `json:"dead"` // parked dead letters: nothing is lost, and each can be sent again
	Waiting   int       `json:"waiting"`
	// Lost is how many have not ended although no message is left: always 0.
	Lost int `json:"lost"`
}

// Decide fails what is broken and asks the next injector for the rest.
func (p *Panel) Decide(ctx context.Context, v *Invocation, op Op) Verdict {
	if p.used.Load() {
		if verdict := p.decide(ctx, v, op); verdict != OK {
			return verdict
		}
	}
	if p.Next == nil {
		return OK
	}
	return p.Next.Decide(ctx, v, op)
}

func (p *Panel) decide(ctx context.Context, v *Invocation, op Op) Verdict {
	b, last := p.look(v, op)
	switch {
	case last:
		p.change(func() {
			p.armed[v.Name]--
			p.killed[v.Name]++
		})
		return CrashAfter
	case op.Service == Table && b.TableAway, op.Service == Search && b.SinkDown:
		return FailBefore
	case op.Service == Search && b.SinkSlowMS > 0:
		// A caller that gives up meanwhile has sent nothing.
		if p.Clock.Sleep(ctx, time.Duration(b.SinkSlowMS)*time.Millisecond) != nil {
			return FailBefore
		}
	}
	return OK
}

// look is what is broken, and whether this I/O is the last of its invocation.
func (p *Panel) look(v *Invocation, op Op) (b Broken, last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	worst := kills[v.Name]
	return p.broken, p.armed[v.Name] > 0 && worst != nil && worst(op)
}

// Refuses reports whether the sinks refuse a version for good: the same ones each time.
func (p *Panel) Refuses(op sink.Op) bool {
	if !p.used.Load() {
		return false
	}
	p.mu.Lock()
	share := p.broken.SinkRejects
	p.mu.Unlock()
	h := fnv.New32a()
	_, _ = h.Write([]byte(op.Doc)) // a hash takes everything
	_, _ = h.Write([]byte(op.Key))
	return float64(h.Sum32())/(1<<32) < share
}
