// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/operate/operatetest"
	"github.com/lullhq/lull/internal/operator/verify"
	"github.com/lullhq/lull/internal/pipeline/index"
	"github.com/lullhq/lull/internal/proof/tree"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

// healingCost is a collection whose sink loses documents, and the figures of the verification that
// brings them back.
type healingCost struct {
	docs, lost, rate int

	took     time.Duration // from the beginning of the verification to its end
	right    time.Duration // from the beginning until the sink had the last document again
	asked    int           // requests of the verification to the source
	fetched  int           // requests of index to the source
	resent   int
	differed int
}

// healingCosts are the rows of the table in docs/verify.md.
func healingCosts() []healingCost {
	return []healingCost{
		{docs: 1000, rate: 10},
		{docs: 1000, lost: 10, rate: 10},
		{docs: 1000, lost: 1000, rate: 10},
		{docs: 1000, lost: 1000, rate: 100},
		{docs: 5000, lost: 5000, rate: 100},
	}
}

// lossAt is when the sink loses documents, after all were written.
const lossAt = 3 * time.Minute

// run simulates the healingCost without other failures.
func (r healingCost) run(t *testing.T) healingCost {
	t.Helper()
	cfg := settings(t, true, func(cfg *config.Config) {
		s := cfg.Sources["native"]
		s.Fetch = &source.Fetch{URL: "https://cms.example.org/{id}", Version: state, Missing: source.MissingDelete}
		cfg.Sources["native"] = s
		cfg.Collections = map[string]config.Collection{"content": {Verify: &config.Verify{Requests: r.rate}}}
	})
	up := Upstream{Calm: lossAt}
	d := newDice(7, 0x66696775)
	for i := range r.docs {
		id, at := fmt.Sprintf("doc-%d", i), d.upTo(time.Minute)
		up.Objects = append(up.Objects, Object{At: at, Doc: id, Version: 1, Ref: "https://cms.example.org/" + id})
		up.Arrivals = append(up.Arrivals, Arrival{At: at, Message: queue.Outgoing{Body: touched(id, 1, "")}})
	}
	InOrder(up.Arrivals)
	var w *World
	requests := 0
	o := &origin{}
	w = begin(t, Options{Config: cfg, Seed: 7, Faults: NoFaults, Upstream: up, Hooks: Hooks{
		Index: func(h *index.Handler) {
			if v, ok := h.Journal.(*invocation); ok {
				h.Fetcher = originClient{objectClient{v}, o}
			}
		},
	}})
	w.lags, w.loses, o.states = true, true, map[string][]Object{}
	for _, one := range up.Objects {
		o.states[one.ref()] = []Object{one}
	}
	w.operator++
	w.after(lossAt, func() {
		r.lose(w)
		requests = w.coverage[step(journal.Fetched)]
		r.verify(w, o, func() { w.operator-- })
	})
	res := w.Run()
	report(t, res, NoFaults)
	r.fetched = w.coverage[step(journal.Fetched)] - requests
	return r
}

// lose deletes documents from the sink, beside lull.
func (r *healingCost) lose(w *World) {
	docs := w.pipes[0].engine.docs
	for i := range r.lost {
		docs.Write(background, []sink.Op{{
			Doc: shard.DocID(fmt.Sprintf("content#doc-%d", i)), Kind: shard.Delete,
			Fence: shard.Fence(epoch.Add(w.now).UnixMicro()),
		}})
	}
	w.oracle.recount(false)
}

// verify runs the scheduled verification to its end.
func (r *healingCost) verify(w *World, o *origin, done func()) {
	h := &healing{Jobbing: jobbed(7, verify.ScheduledID("content", ""), jobEdits{})}
	h.w, h.known, h.limit, h.origin = w, nil, 500, o
	begun, last := w.now, w.now
	watching := true
	w.options.Watch = func(s Step) {
		if watching && s.What == Answered && s.Op.Kind == shard.Put && s.Outcome.Kind == sink.Applied {
			last = w.now
		}
	}
	var carry func()
	carry = func() {
		w.invoke("operator", patience, func(ctx context.Context, v *invocation) {
			_ = verify.Scheduled{
				Stack:  operatetest.API(operate.API{}, scheduledAPI{jobAPI{h.Jobbing, v}}),
				Config: w.cfg, Clock: v.clock,
			}.Portion(ctx, 5*time.Minute)
		}, func(error) {
			s := h.state()
			if s.Phase != job.Done {
				w.after(time.Second, carry)
				return
			}
			watching = false
			r.took, r.right, r.asked = w.now-begun, last-begun, s.Counts["requests"]
			r.differed, r.resent, _, _ = verify.Drift(s)
			done()
		})
	}
	carry()
}

// TestTheCostOfAVerificationIsBounded: a verification asks the source once for each document, at
// most at its rate. A document that the sink lost costs one more request, of index.
func TestTheCostOfAVerificationIsBounded(t *testing.T) {
	t.Parallel()
	for _, r := range healingCosts()[:3] {
		r = r.run(t)
		t.Logf("%+v", r)
		if r.differed != r.lost || r.resent != r.lost || r.asked != r.docs || r.fetched != r.lost {
			t.Errorf("got %+v, want one request for each document and one for each lost one", r)
		}
		if limit := time.Duration(r.docs/r.rate)*time.Second + 2*time.Minute; r.took > limit {
			t.Errorf("the verification took %s, want %s at most", r.took, limit)
		}
	}
}

// TestWriteHealing writes the figures of docs/verify.md.
func TestWriteHealing(t *testing.T) {
	if !*update {
		t.Skip("go test ./internal/simulation/sim -run TestWriteHealing -update runs it")
	}
	var table strings.Builder
	table.WriteString("| documents | lost | `requests` | all right again after | the verification takes | its requests | " +
		"requests of index |\n|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, r := range healingCosts() {
		r = r.run(t)
		right := "–"
		if r.lost > 0 {
			right = r.right.Round(time.Second).String()
		}
		fmt.Fprintf(&table, "| %d | %d | %d | %s | %s | %d | %d |\n", r.docs, r.lost, r.rate, right,
			r.took.Round(time.Second), r.asked, r.fetched)
	}
	tree.Generated(t, "docs/verify.md", "healing", table.String(), true)
}
