// SPDX-License-Identifier: Apache-2.0

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

	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Broken says what a user has broken on purpose. The zero Broken means that everything works.
type Broken struct {
	SinkDown    bool    `json:"sink_down"`    // requests to a sink get no answer
	SinkSlowMS  int64   `json:"sink_slow_ms"` // the extra time of each request, in milliseconds, up to MaxSlow
	SinkRejects float64 `json:"sink_rejects"` // the share of documents that the sinks refuse for good, from 0 to 1
	TableAway   bool    `json:"table_away"`   // requests to the table get no answer
}

// MaxSlow is longer than the time that index waits for an answer by default.
const MaxSlow = 30 * time.Second

// Validate returns an error that names every wrong field.
func (b Broken) Validate() error {
	var errs []error
	if b.SinkSlowMS < 0 || b.SinkSlowMS > MaxSlow.Milliseconds() {
		errs = append(errs, fmt.Errorf("sink_slow_ms %d: use 0 to %d", b.SinkSlowMS, MaxSlow.Milliseconds()))
	}
	if !(b.SinkRejects >= 0 && b.SinkRejects <= 1) {
		errs = append(errs, fmt.Errorf("sink_rejects %g: use a share from 0 to 1", b.SinkRejects))
	}
	return errors.Join(errs...)
}

// Panel is an injector that a user controls while a stack runs. If it does not fail an I/O, the
// next injector decides. A Panel is safe for concurrent use.
type Panel struct {
	Next  Injector // nil for no next injector
	Clock clock.Clock

	used atomic.Bool // whether anything is broken; read without the lock, to save time

	mu      sync.Mutex
	broken  Broken
	armed   map[string]int // how many invocations to kill, by function
	killed  map[string]int // how many invocations were killed, by function
	since   time.Time      // when the first part broke; zero if nothing ever broke
	righted time.Time      // when the last part was fixed; zero while something is broken
}

var _ Injector = (*Panel)(nil)

// NewPanel returns a panel on which nothing is broken.
func NewPanel(clk clock.Clock, next Injector) *Panel {
	return &Panel{Clock: clk, Next: next, armed: map[string]int{}, killed: map[string]int{}}
}

// kills defines the worst moment for a kill of each function. In both cases, a call was applied and
// its answer has not arrived. After receive's write, the row has a pending version without a
// flight. After index's write, the sink has a document that the row does not have as committed.
var kills = map[string]func(op Op) bool{
	"receive": func(op Op) bool { return op.Transition.Base() == shard.ADMIT },
	"index":   Op.Writes,
}

// Functions lists the functions that [Panel.Kill] can kill.
func Functions() []string { return []string{"receive", "index"} }

// Break sets what is broken from this moment on. If a field is wrong, Break returns an error that
// names the field, and changes nothing. The zero Broken fixes everything and cancels waiting kills.
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

// maxArmed limits how many kills may wait for an invocation.
const maxArmed = 10

// Kill kills the next invocation of a function at its worst moment: receive right after it wrote a
// row, index right after the sink took its documents.
func (p *Panel) Kill(function string) error {
	if !slices.Contains(Functions(), function) {
		return fmt.Errorf("function %.40q: use one of %s", function, strings.Join(Functions(), ", "))
	}
	p.change(func() { p.armed[function] = min(p.armed[function]+1, maxArmed) })
	return nil
}

// change calls f, and records the time if the first thing broke or the last thing was fixed.
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

// breaks reports whether something is broken or a kill is waiting.
func (p *Panel) breaks() bool {
	return p.broken != (Broken{}) || slices.ContainsFunc(Functions(), func(f string) bool { return p.armed[f] > 0 })
}

// PanelState is the state that a panel shows.
type PanelState struct {
	Broken
	Armed   map[string]int `json:"armed"`   // kills that wait for an invocation, by function
	Killed  map[string]int `json:"killed"`  // invocations that were killed, by function
	Since   time.Time      `json:"since"`   // when something broke after all had worked; zero for never
	Righted time.Time      `json:"righted"` // when everything worked again; zero before that
}

// State returns what is broken, and since when.
func (p *Panel) State() PanelState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return PanelState{p.broken, maps.Clone(p.armed), maps.Clone(p.killed), p.since, p.righted}
}

// Recovery says how far a stack has recovered since it was broken. It counts events.
type Recovery struct {
	PanelState
	// Recovered is when all events from before the fix were first seen to have ended. Recovered is
	// zero before that.
	Recovered time.Time `json:"recovered"`
	Events    int       `json:"events"`
	Done      int       `json:"done"` // written, unchanged, superseded, stale, deleted, scheduled, duplicate or skipped
	Dead      int       `json:"dead"` // parked dead letters: nothing is lost, and each can be sent again
	Waiting   int       `json:"waiting"`
	// Lost counts events that have not ended although they have no message left. Lost is always 0.
	Lost int `json:"lost"`
}

// Decide fails the I/O if its service is broken. For a service that works, the next injector
// decides.
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
		// If the caller stops waiting, it has sent nothing.
		if p.Clock.Sleep(ctx, time.Duration(b.SinkSlowMS)*time.Millisecond) != nil {
			return FailBefore
		}
	}
	return OK
}

// look returns what is broken, and whether this I/O is the last of its invocation.
func (p *Panel) look(v *Invocation, op Op) (b Broken, last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	worst := kills[v.Name]
	return p.broken, p.armed[v.Name] > 0 && worst != nil && worst(op)
}

// Refuses reports whether the sinks refuse this version for good. The answer for a version is
// always the same.
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
