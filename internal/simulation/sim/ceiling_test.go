// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/proof/tree"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/setting"
)

// underCeiling gives each sink of a simulated run a limit of documents a second.
func underCeiling(cfg *config.Config, perSecond float64) {
	for name, s := range cfg.Sinks {
		rate := setting.Rate(perSecond * float64(setting.OncePerSecond))
		s.MaxDocumentsPerSecond = &rate
		cfg.Sinks[name] = s
	}
}

// below returns the simulated run of a seed whose sink has a ceiling.
func below(t testing.TB, seed uint64, change ...func(*Options)) *World {
	t.Helper()
	cfg := settings(t, seed%2 == 0, func(cfg *config.Config) {
		vary(seed, cfg)
		cfg.TableOutage = config.TableOutageClosed
		underCeiling(cfg, []float64{0.5, 1, 2, 5, 20}[seed%5])
	})
	o := Options{Config: cfg, Seed: seed, Faults: Swarm, Upstream: Write(seed, sourcesOf(t, cfg))}
	if seed%10 == 3 { // always more than the ceiling allows
		o.Upstream = Steady(seed, 10, 100, 90*time.Second)
	}
	return begin(t, o, change...)
}

// TestEveryPromiseHoldsBelowACeiling: in these simulated runs the sink has a ceiling. Besides all
// other rules, the sink must never get more documents than the ceiling allows: see counted. Some
// requests must have waited, and some unused time must have been given back.
func TestEveryPromiseHoldsBelowACeiling(t *testing.T) {
	t.Parallel()
	reach(t, 2000, Swarm, func(seed uint64) *World { return below(t, seed) },
		point{aWrite, shard.SEND.String(), howApplied}, point{aWrite, shard.SEND.String(), howRefused},
		point{aWrite, shard.SENDFirst.String(), howApplied}, point{aWrite, shard.YIELD.String(), howApplied})
}

// ceilingMutants break the rules that count the documents.
var ceilingMutants = []mutant{
	{
		"send whatever went", "SEND does not ask for sent_until <= :now + burst",
		editing(only(shard.SEND), func(w *shard.Write) {
			w.Cond = slices.DeleteFunc(w.Cond, func(c shard.Clause) bool { return c[0].Op == shard.AtMost })
		}),
	},
	{
		"begin whatever went", "SEND first does not ask whether anything fills the time",
		editing(only(shard.SENDFirst), func(w *shard.Write) { without(w, shard.AttrSentUntil) }),
	},
	{
		"count half", "SEND adds half of what the documents fill",
		editing([]shard.Transition{shard.SEND, shard.SENDFirst}, func(w *shard.Write) {
			for i, a := range w.Update {
				if a.Verb == shard.Add {
					w.Update[i].Val.Num /= 2
				}
			}
		}),
	},
}

func TestEveryMutantOfTheCeilingIsKilled(t *testing.T) {
	t.Parallel()
	if raceEnabled {
		t.Skip("hundreds of worlds")
	}
	for _, m := range ceilingMutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			caught(t, 300, func(seed uint64) *World {
				return m.broken(func(change func(*Options)) *World { return below(t, seed, change) })
			})
		})
	}
}

// pressed is a load that is larger than the sink's ceiling.
type pressed struct {
	ceiling float64
	what    string
	load    Load
	resync  int // the number of documents that a resync sends after a minute of load
}

var pressedSinks = []pressed{
	{5, "steady", Load{Rate: 20, Burst: 1, Documents: 400}, 0},
	{5, "bursts of 5 in 3 s", Load{Rate: 60, Burst: 5, Spread: 3 * time.Second, Documents: 400}, 0},
	{20, "steady", Load{Rate: 50, Burst: 1, Documents: 1000}, 0},
	{20, "bursts of 5 in 3 s", Load{Rate: 250, Burst: 5, Spread: 3 * time.Second, Documents: 1000}, 0},
	{20, "10 a second, beside a resync of 5,000", Load{Rate: 10, Burst: 1, Documents: 1000}, 5000},
	{100, "steady", Load{Rate: 200, Burst: 1, Documents: 6000}, 0},
}

const (
	pressing = 30 * time.Second // the time until all parts of the load are under way
	pressFor = 4 * time.Minute
)

func (p pressed) run(t *testing.T) Result {
	t.Helper()
	p.load.Lasting = pressFor
	up := p.load.Upstream(1)
	for i := range p.resync {
		body := fmt.Sprintf(`{"type":"doc.changed","subject":"old-%d","sequence":"1","mode":"resync","resyncrun":"01JCZ3V5Y0000000000000000A","data":{"title":"old"}}`, i)
		up.Arrivals = append(up.Arrivals, Arrival{At: 0, Message: queue.Outgoing{Body: body}})
	}
	InOrder(up.Arrivals)
	r := begin(t, Options{
		Config: settings(t, true, func(c *config.Config) { underCeiling(c, p.ceiling) }), Seed: 1, Faults: NoFaults,
		Pollers: 2, Timeline: true, Upstream: up,
	}).Run()
	report(t, r, NoFaults)
	return r
}

// TestWhatACeilingLetsIsUsed: a sink with more to write than its ceiling allows must get nearly as
// many documents as the ceiling allows. Slots for superseded versions once stayed unused. The used
// share was then 0.75 to 0.83.
func TestWhatACeilingLetsIsUsed(t *testing.T) {
	t.Parallel()
	for _, p := range pressedSinks {
		t.Run(fmt.Sprintf("%g, %s", p.ceiling, p.what), func(t *testing.T) {
			t.Parallel()
			if testing.Short() && (p.ceiling != 5) || raceEnabled {
				t.Skip("half a minute of simulation for all of them")
			}
			r := p.run(t)
			all := r.between(pressing, pressFor)
			of, most := p.given(all)
			// ADR 0050: at most what the ceiling allows in this time and 1.5 seconds.
			if over := 1 + 1.5/float64(len(all)); of < 0.95 || of > over {
				t.Errorf("given %.3f of the ceiling, want 0.95 at least and %.3f at most", of, over)
			}
			t.Logf("given %.3f; most in a second %d; written after %s, p99 %s, $%.2f a million", of, most,
				aged(all, 0.5), aged(all, 0.99), r.Summary(NoFaults).Bill.PerMillion)
		})
	}
}

// TestWriteCeiling writes the figures of docs/lifecycles.md.
func TestWriteCeiling(t *testing.T) {
	if !*update {
		t.Skip("make lifecycles runs it with -update")
	}
	var table strings.Builder
	table.WriteString("| ceiling | load | written, as a share of the ceiling | most in one second | " +
		"written after, median | p99 | " +
		"$ a million events |\n|---:|---|---:|---:|---:|---:|---:|\n")
	for _, p := range pressedSinks {
		r := p.run(t)
		all := r.between(pressing, pressFor)
		of, most := p.given(all)
		fmt.Fprintf(&table, "| %g | %s | %.2f | %d | %s | %s | %.2f |\n", p.ceiling, p.what, of, most,
			aged(all, 0.5).Round(time.Second), aged(all, 0.99).Round(time.Second), r.Summary(NoFaults).Bill.PerMillion)
	}
	tree.Generated(t, "docs/lifecycles.md", "ceiling", table.String(), true)
}

// given returns the used share of the ceiling, and the most documents in one second.
func (p pressed) given(all []Second) (of float64, most int) {
	for _, s := range all {
		most = max(most, s.Written)
	}
	return float64(total(all, written)) / (p.ceiling * float64(len(all))), most
}

// TestEveryPromiseHoldsWithFewInvocationsOfIndex: Lambda refuses a turn if too many turns run. If
// the turns of an execution are refused too often, the execution ends, and redelivery recovers its
// flight.
func TestEveryPromiseHoldsWithFewInvocationsOfIndex(t *testing.T) {
	t.Parallel()
	refused := false
	for w, r := range runs(t, 400, Swarm, func(seed uint64) *World {
		most := 1 + int(seed%2)
		return build(t, seed, Swarm, func(o *Options) {
			s := o.Config.Sinks["search"]
			s.MaxConcurrency = &most
			o.Config.Sinks["search"] = s
		})
	}) {
		m := w.pipes[0].machine
		if m.turning != 0 {
			t.Fatalf("seed %d: %d turns at the end, want none", r.Seed, m.turning)
		}
		refused = refused || m.crowded > 0
	}
	if !refused {
		t.Error("no turn had to wait for another one")
	}
}
