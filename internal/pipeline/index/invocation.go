// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/rows"
	"github.com/lullhq/lull/internal/shard"
)

// invocation is what every stage of a turn needs: the clock and deadline, the settings, the table
// and the journal, and the state that the flight carries from turn to turn.
type invocation struct {
	config   *config.Config
	sinkName string
	clock    clock.Clock
	journal  journal.Journal
	shards   shard.Store
	jitter   func() float64
	parallel fanout.Runner
	start    time.Time
	hard     time.Time // when the platform kills this invocation
	lane     flight.Lane
	state    flight.State
}

func (v *invocation) note(n journal.Note) {
	n.At, n.Sink, n.Flight, n.Lane = v.clock.Now(), v.sinkName, string(v.state.Flight), string(v.lane)
	v.journal.Note(n)
}

func (v *invocation) remaining() time.Duration { return v.hard.Sub(v.clock.Now()) }

func (v *invocation) now() shard.Micros { return shard.MicrosOf(v.clock.Now()) }

func (v *invocation) rows() rows.Table { return rows.Table{Store: v.shards, Clock: v.clock} }

// leaseEnd returns when the lease ends. Safety depends on this time: the sink cannot apply a
// request of this invocation later. leaseEnd includes the guard, because the platform kills late
// and clocks differ. It includes applyDelay, because a sink without versions may apply a request
// after lull hung up.
func (v *invocation) leaseEnd() shard.Micros {
	c := v.config
	return shard.MicrosOf(v.hard.Add(c.Index.Guard + c.Sinks[v.sinkName].Capabilities().ApplyDelay))
}

// delay returns the back-off for try n, with full jitter.
func (v *invocation) delay(n int) time.Duration {
	r := v.config.Retry
	return backoff.Policy{Min: r.BackoffMin, Max: r.BackoffMax, Jitter: v.jitter}.Delay(n)
}

// noteFailed writes a note about a failed call, with the class of the failure. It reports whether
// the call failed.
func (v *invocation) noteFailed(call string, doc shard.DocID, err error) bool {
	if err != nil {
		v.note(journal.Note{Step: journal.CallFailed, Doc: doc, Detail: call + ": " + backoff.Class(err)})
	}
	return err != nil
}

// catch runs f, writes a note about a panic and returns the panic. Neither the class nor the stack
// of a panic contains content.
func (v *invocation) catch(doing string, doc shard.DocID, f func()) *fanout.Panic {
	p := fanout.Catch(f)
	if p != nil {
		v.note(journal.Note{Step: journal.Panicked, Doc: doc, Detail: doing + ": " + p.Error(), Stack: string(p.Stack)})
	}
	return p
}

// answer is the result of a write: the rows before and after it, or the row that refused it.
type answer struct {
	old, row shard.Row
	err      error
	refused  bool // err says that the row refused the write
}

// unknown reports that the write may or may not have been applied.
func (a answer) unknown() bool { return a.err != nil && !a.refused }

// ask sends one conditional write, with retries, and returns the answer. After a refusal no second
// read is needed, because the refusal returns the row (design section 5).
func (v *invocation) ask(ctx context.Context, w shard.Write) answer {
	old, err := v.rows().Write(ctx, w)
	if refused, ok := shard.AsRefused(err); ok {
		v.note(journal.Note{Step: journal.RowRefused, Doc: w.Doc, Detail: w.Transition.String()})
		return answer{refused.Row, refused.Row, err, true}
	}
	v.noteFailed(w.Transition.String(), w.Doc, err)
	return answer{old, w.Apply(old), err, false}
}

// each asks the table about the documents in parallel. Then it handles the answers one by one,
// because only one goroutine may change the flight's state. It returns the documents for which take
// reports true.
func each[A any](v *invocation, docs []*document, ask func(*document) A,
	take func(*document, A) bool,
) (yes []*document) {
	answers := fanout.Map(v.parallel, maxParallel, docs, ask)
	for i, d := range docs {
		if take(d, answers[i]) {
			yes = append(yes, d)
		}
	}
	return yes
}

// finishAll does the I/O of n documents in parallel. Then it calls the returned functions one by
// one, because they change the flight's state.
func (v *invocation) finishAll(n int, do func(i int) func()) {
	results := make([]func(), n)
	v.parallel.Each(maxParallel, n, func(i int) { results[i] = do(i) })
	for _, finish := range results {
		finish()
	}
}

// split separates the documents for which the function is reports true from the others.
func split(docs []*document, is func(*document) bool) (yes, no []*document) {
	for _, d := range docs {
		if is(d) {
			yes = append(yes, d)
		} else {
			no = append(no, d)
		}
	}
	return yes, no
}
