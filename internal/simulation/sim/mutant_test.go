// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/pipeline/dlq"
	"github.com/lullhq/lull/internal/pipeline/index"
	"github.com/lullhq/lull/internal/pipeline/prune"
	"github.com/lullhq/lull/internal/pipeline/receive"
	"github.com/lullhq/lull/internal/pipeline/redrive"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// This file breaks the protocol on purpose. Each mutant breaks one rule of design sections 5 to 10
// that a developer might simplify. Hooks put mutants between the use cases and the simulated
// services. No flag in the product creates mutants.

// mutant is one broken rule. make is called once for each simulated run, so that a mutant's state
// belongs to one run.
type mutant struct {
	name   string
	change string // the difference to the design, in the words of the design
	make   func(w **World) Hooks
}

// editing makes a mutant of conditions: edit changes the writes of these transitions.
func editing(of []shard.Transition, edit func(w *shard.Write)) func(**World) Hooks {
	return seeing(func(s shard.Store) shard.Store { return editedStore{s, of, edit} })
}

// Transitions with all their forms.
var (
	claims  = []shard.Transition{shard.CLAIM, shard.CLAIMAgain}
	commits = []shard.Transition{shard.COMMIT, shard.COMMITNewerWaiting}
	rejects = []shard.Transition{shard.REJECT, shard.REJECTNotPending}
)

func only(t shard.Transition) []shard.Transition { return []shard.Transition{t} }

// indexing makes a mutant of index.
func indexing(change func(h *index.Handler)) func(**World) Hooks {
	return func(**World) Hooks { return Hooks{Index: change} }
}

// seeing makes a mutant of the table as index, receive, prune and the redrive see it.
func seeing(wrap func(shard.Store) shard.Store) func(**World) Hooks {
	return func(**World) Hooks {
		return Hooks{
			Receive: func(h *receive.Handler) { h.Shards = wrap(h.Shards) },
			Index:   func(h *index.Handler) { h.Shards = wrap(h.Shards) },
			Desk:    func(d *redrive.Service) { d.Shards = wrap(d.Shards) },
			Prune:   func(p *prune.Pruner) { p.Shards = wrap(p.Shards) },
		}
	}
}

type editedStore struct {
	shard.Store
	of   []shard.Transition
	edit func(w *shard.Write)
}

func (s editedStore) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	if slices.Contains(s.of, w.Transition) {
		w.Cond, w.Update = slices.Clone(w.Cond), slices.Clone(w.Update)
		s.edit(&w)
	}
	return s.Store.Write(ctx, w)
}

// ignoring reports success for these transitions and writes nothing.
type ignoring struct {
	shard.Store
	of []shard.Transition
}

func (s ignoring) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	if slices.Contains(s.of, w.Transition) {
		return shard.Row{}, nil
	}
	return s.Store.Write(ctx, w)
}

// without removes the clauses of a condition that concern an attribute.
func without(w *shard.Write, attr shard.Attr) {
	w.Cond = slices.DeleteFunc(w.Cond, func(c shard.Clause) bool {
		return slices.ContainsFunc(c, func(t shard.Term) bool { return t.Attr == attr })
	})
}

func keepsPending(w *shard.Write) {
	keeping(w, shard.AttrPending, shard.AttrBurstStart, shard.AttrFlight)
}

// keeping removes the actions of an update that change these attributes.
func keeping(w *shard.Write, attrs ...shard.Attr) {
	w.Update = slices.DeleteFunc(w.Update, func(a shard.Action) bool { return slices.Contains(attrs, a.Attr) })
}

// writing makes a mutant of the writes of index to the sink.
func writing(write writeFunc) func(**World) Hooks {
	return indexing(func(h *index.Handler) { h.Sink = sinkFunc{asked(h.Sink), write} })
}

// sinkFunc is a sink with another Write.
type sinkFunc struct {
	readable
	write writeFunc
}

// readable is a sink whose documents index can read. Every sink of a simulated run is readable, and
// a wrapper around such a sink stays readable.
type readable interface {
	sink.Sink
	sink.Sampler
	sink.Generator
	Get(ctx context.Context, doc shard.DocID) (sink.Stored, bool, error)
}

// asked returns a sink of a simulated run as a readable sink.
func asked(s sink.Sink) readable {
	r, ok := s.(readable)
	if !ok {
		panic(fmt.Sprintf("a %T cannot be read", s))
	}
	return r
}

type writeFunc func(ctx context.Context, ops []sink.Op, to sink.Sink) []sink.Outcome

func (s sinkFunc) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	return s.write(ctx, ops, s.readable)
}

// answering makes a mutant that changes the outcomes of the sink.
func answering(change func(sink.Outcome) sink.Outcome) func(**World) Hooks {
	return writing(func(ctx context.Context, ops []sink.Op, to sink.Sink) []sink.Outcome {
		out := to.Write(ctx, ops)
		for i := range out {
			out[i] = change(out[i])
		}
		return out
	})
}

// mutants are all mutants, in the order of the design's sections.
var mutants = []mutant{
	{"delete at hold", "receive acknowledges what it holds", func(**World) Hooks {
		return Hooks{Answer: func(*receive.Handler, []queue.Message, []string) []string { return []string{} }}
	}},
	{"acknowledge because pending is newer", "receive acknowledges v because pending > v", func(**World) Hooks {
		return Hooks{Answer: acknowledgeOlder}
	}},
	{
		"dead taken for committed", "what dead = k says of k is said of everything older, too",
		seeing(func(s shard.Store) shard.Store {
			return seenStore{s, func(r *shard.Row) { r.Committed = max(r.Committed, r.Dead) }}
		}),
	},
	{"admit although committed", "ADMIT does not ask for committed < k", editing(only(shard.ADMIT), func(w *shard.Write) {
		without(w, shard.AttrCommitted)
	})},
	{
		"cap without claimed", "an older version is claimed at the cap although a newer one was claimed",
		indexing(func(h *index.Handler) {
			h.Shards = seenStore{
				editedStore{h.Shards, only(shard.CLAIM), func(w *shard.Write) { without(w, shard.AttrClaimed) }},
				func(r *shard.Row) { r.Claimed = "" },
			}
		}),
	},
	{"claim without lease", "CLAIM does not ask for lease_until < now", editing(claims, func(w *shard.Write) {
		without(w, shard.AttrLeaseUntil)
	})},
	{
		"no interval between writes", "index looks at last_write neither before nor in CLAIM",
		indexing(func(h *index.Handler) {
			h.Shards = seenStore{
				editedStore{h.Shards, claims, func(w *shard.Write) { without(w, shard.AttrLastWrite) }},
				func(r *shard.Row) { r.LastWrite = 0 },
			}
		}),
	},
	{
		"claim of a dead version", "neither ADMIT nor CLAIM asks for dead <> k",
		editing(append(only(shard.ADMIT), claims...), func(w *shard.Write) { without(w, shard.AttrDead) }),
	},
	{
		"lease shorter than the invocation", "lease_until leaves out Ti: it is guard + applyDelay from now",
		shorterLease(func(w *World) time.Duration { return w.cfg.Index.Timeout }),
	},
	{
		"lease without applyDelay", "lease_until leaves out applyDelay, for a sink without versions",
		shorterLease(func(w *World) time.Duration { return w.cfg.Sinks["search"].Capabilities().ApplyDelay }),
	},
	{
		"lease without guard", "lease_until leaves out the guard",
		shorterLease(func(w *World) time.Duration { return w.cfg.Index.Guard }),
	},
	{
		"fence of the invocation", "the external version is when the invocation began",
		indexing(func(h *index.Handler) {
			began := h.Clock.Now()
			h.Sink = sinkFunc{asked(h.Sink), func(ctx context.Context, ops []sink.Op, to sink.Sink) []sink.Outcome {
				for i := range ops {
					ops[i].Fence = shard.Fence(began.UnixMicro())
				}
				return to.Write(ctx, ops)
			}}
		}),
	},
	{
		"fence of the version", "the external version is a number of the version's own",
		writing(func(ctx context.Context, ops []sink.Op, to sink.Sink) []sink.Outcome {
			for i := range ops {
				ops[i].Fence = shard.Fence(ops[i].Key[len(ops[i].Key)-1])
			}
			out := to.Write(ctx, ops)
			for i := range out {
				if out[i].Kind == sink.Newer {
					out[i].Kind = sink.Applied
				}
			}
			return out
		}),
	},
	{"owner is the flight", "the token is the flight's id", indexing(tokenOfFlight)},
	{
		"own claim by key alone", "a refused CLAIM counts as ours because claimed = k",
		seeing(func(s shard.Store) shard.Store { return ownByKey{s} }),
	},
	{"commit without owner", "COMMIT does not ask for owner = token", editing(commits, func(w *shard.Write) {
		without(w, shard.AttrOwner)
	})},
	{
		"commit waits for nobody", "COMMIT always has its form for a newer version that waits",
		editing(only(shard.COMMIT), func(w *shard.Write) {
			keeping(w, shard.AttrPending, shard.AttrFlight, shard.AttrExpiresAt)
			without(w, shard.AttrPending)
		}),
	},
	{
		"release forgets claimed", "RELEASE sets claimed to committed",
		editing(only(shard.RELEASE), func(w *shard.Write) {
			w.Update = append(w.Update, shard.Action{
				Verb: shard.Copy, Attr: shard.AttrClaimed, From: shard.AttrCommitted,
			})
		}),
	},
	{
		"release after no answer", "an unknown outcome is RELEASEd as if nothing had been applied",
		answering(func(o sink.Outcome) sink.Outcome {
			if o.Kind == sink.Unknown {
				o.Kind = sink.Throttled
			}
			return o
		}),
	},
	{
		"release after a copy without an answer",
		"RELEASE although the copy that asks whose fault a refusal is may still be applied", releasedCopies,
	},
	{
		"the engine's word is believed", "documents die of a refusal although the index refuses what it took before",
		indexing(func(h *index.Handler) { h.Sink = struct{ sink.Sink }{h.Sink} }),
	},
	{
		"a missing index has nothing to delete", "a delete that has no index to go to is applied",
		writing(func(ctx context.Context, ops []sink.Op, to sink.Sink) []sink.Outcome {
			out := to.Write(ctx, ops)
			for i := range out {
				if out[i].Kind == sink.Configuration && len(out) == len(ops) && ops[i].Kind == shard.Delete {
					out[i].Kind = sink.Applied
				}
			}
			return out
		}),
	},
	{
		"second request under one claim", "a request without an answer is sent again under the same claim",
		writing(func(ctx context.Context, ops []sink.Op, to sink.Sink) []sink.Outcome {
			out := to.Write(ctx, ops)
			for range 3 {
				if len(out) == len(ops) && !slices.ContainsFunc(out,
					func(o sink.Outcome) bool { return o.Kind == sink.Unknown }) {
					break
				}
				out = to.Write(ctx, ops)
			}
			return out
		}),
	},
	{
		"short answers count", "a bulk answer with too few items is success for the rest",
		writing(func(ctx context.Context, ops []sink.Op, to sink.Sink) []sink.Outcome {
			out := to.Write(ctx, ops)
			for len(out) < len(ops) {
				out = append(out, sink.Outcome{Kind: sink.Applied})
			}
			return out
		}),
	},
	{
		"no answer is success", "a request without an answer counts as applied",
		answering(func(o sink.Outcome) sink.Outcome {
			if o.Kind == sink.Unknown {
				o.Kind = sink.Applied
			}
			return o
		}),
	},
	{"delete before commit", "index deletes messages when the sink has answered, before COMMIT", deleteAround(true)},
	{"delete before write", "index deletes messages when it has claimed, before the write", deleteAround(false)},
	{
		"reject before the dead letter", "REJECT does not wait until the dead letter is stored",
		indexing(func(h *index.Handler) { h.Dead = unstored{h.Dead} }),
	},
	{
		"reject forgets claimed", "REJECT takes claimed away instead of setting it to claimed_was",
		editing(rejects, func(w *shard.Write) {
			keeping(w, shard.AttrClaimed)
			w.Update = append(w.Update, shard.Action{Verb: shard.Remove, Attr: shard.AttrClaimed})
		}),
	},
	{"reject keeps pending", "REJECT leaves pending at the dead version", editing(rejects, keepsPending)},
	{"park keeps pending", "PARK leaves pending at the dead version", everywhere(func(s shard.Store) shard.Store {
		return editedStore{s, only(shard.PARK), keepsPending}
	})},
	{"redrive deletes the dead letter", "a redrive deletes the parked item after sending", func(**World) Hooks {
		return Hooks{
			Desk:  func(d *redrive.Service) { d.Letters = forgetful{d.Letters} },
			Prune: func(p *prune.Pruner) { p.Letters = forgetful{p.Letters} },
		}
	}},
	{
		"acknowledge an unsent copy", "a scheduled event counts as stored although its sending failed",
		func(**World) Hooks {
			return Hooks{Receive: func(h *receive.Handler) { h.Ingest = unstored{h.Ingest} }}
		},
	},
}

// acknowledgeOlder is the mutant of receive's answer. The mutant acknowledges a message in which
// every event is older than the pending version.
func acknowledgeOlder(h *receive.Handler, batch []queue.Message, failed []string) []string {
	keep := make([]string, 0, len(failed))
	for _, m := range batch {
		if !slices.Contains(failed, m.ID) || slices.Contains(keep, m.ID) {
			continue
		}
		older := true
		for _, r := range h.Sources.DecodeContext(context.Background(), m) {
			rows, err := h.Shards.Read(context.Background(), []shard.DocID{r.Event.Doc}, shard.Consistent)
			older = older && r.Invalid == nil && r.Skip == "" && err == nil && rows[0].Pending > r.Event.Key
		}
		if !older {
			keep = append(keep, m.ID)
		}
	}
	return keep
}

// seenStore changes the rows that are read, and the rows that refusals return.
type seenStore struct {
	shard.Store
	change func(*shard.Row)
}

func (s seenStore) Read(ctx context.Context, docs []shard.DocID, c shard.Consistency) ([]shard.Row, error) {
	rows, err := s.Store.Read(ctx, docs, c)
	for i := range rows {
		s.change(&rows[i])
	}
	return rows, err
}

func (s seenStore) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	old, err := s.Store.Write(ctx, w)
	if refused, ok := shard.AsRefused(err); ok {
		s.change(&refused.Row)
	}
	return old, err
}

// ownByKey treats a refused CLAIM as its own claim if the row shows its key.
type ownByKey struct{ shard.Store }

func (s ownByKey) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	old, err := s.Store.Write(ctx, w)
	if refused, ok := shard.AsRefused(err); ok && slices.Contains(claims, w.Transition) {
		after := w.Apply(refused.Row)
		if refused.Row.Claimed == after.Claimed && refused.Row.Owner != "" && refused.Row.Committed < after.Claimed {
			return refused.Row, nil
		}
	}
	return old, err
}

// shorterLease shortens every lease.
func shorterLease(by func(*World) time.Duration) func(**World) Hooks {
	return func(w **World) Hooks {
		return Hooks{Index: func(h *index.Handler) {
			h.Shards = editedStore{h.Shards, claims, func(wr *shard.Write) {
				for i := range wr.Update {
					if a := &wr.Update[i]; a.Attr == shard.AttrLeaseUntil {
						a.Val.Num -= by(*w).Microseconds()
					}
				}
			}}
		}}
	}
}

// tokenOfFlight makes the flight the owner of its leases.
func tokenOfFlight(h *index.Handler) {
	f := &seenFlights{Store: h.Flights}
	h.Flights = f
	h.NewToken = func() shard.Token { return shard.Token(f.last.Flight) }
}

// seenFlights remembers the manifest that was read last.
type seenFlights struct {
	flight.Store
	last *flight.Manifest
}

func (f *seenFlights) Get(ctx context.Context, id flight.ID) (*flight.Manifest, error) {
	m, err := f.Store.Get(ctx, id)
	f.last = m
	return m, err
}

// deleteAround deletes the messages of the documents that are written, before or after the write.
// deleteAround does not check the row.
func deleteAround(after bool) func(**World) Hooks {
	return indexing(func(h *index.Handler) {
		f := &seenFlights{Store: h.Flights}
		h.Flights = f
		h.Sink = sinkFunc{asked(h.Sink), func(ctx context.Context, ops []sink.Op, to sink.Sink) []sink.Outcome {
			var out []sink.Outcome
			if after {
				out = to.Write(ctx, ops)
			}
			for i, op := range ops {
				if after && (len(out) != len(ops) || out[i].Kind != sink.Applied) {
					continue
				}
				for _, r := range f.last.Records {
					if len(r.Events) == 1 && r.Events[0].Doc == op.Doc && r.Events[0].Key == op.Key {
						h.Queues[f.last.Lane].Delete(ctx, []string{r.Message.Receipt})
					}
				}
			}
			if !after {
				out = to.Write(ctx, ops)
			}
			return out
		}}
	})
}

// releasedCopies treats the copy of a committed document as refused although the sink did not
// answer.
func releasedCopies(w **World) Hooks {
	return writing(func(ctx context.Context, ops []sink.Op, to sink.Sink) []sink.Outcome {
		out := to.Write(ctx, ops)
		for i := range out {
			if l := (*w).oracle.ledger(ops[i].Doc); ops[i].Key == l.committed && out[i].Kind == sink.Unknown {
				out[i] = sink.Outcome{Kind: sink.Throttled, Apart: true, Reason: "no answer"}
			}
		}
		return out
	})(w)
}

// unstored is a queue that hides its failures to send.
type unstored struct{ queue.Queue }

func (q unstored) Send(ctx context.Context, out []queue.Outgoing) []error {
	q.Queue.Send(ctx, out)
	return nil
}

// forgetful deletes a dead letter instead of marking it as redriven.
type forgetful struct{ deadletter.Store }

func (f forgetful) MarkRedriven(ctx context.Context, id string, _ time.Time, _ bool) error {
	return f.Drop(ctx, id)
}

// everywhere makes a mutant like seeing, and includes dlq.
func everywhere(wrap func(shard.Store) shard.Store) func(**World) Hooks {
	return func(w **World) Hooks {
		h := seeing(wrap)(w)
		h.Dlq = func(d *dlq.Handler) { d.Shards = wrap(d.Shards) }
		return h
	}
}
