// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/proof/tree"
	"github.com/lullhq/lull/internal/shard"
)

// If the simulator stopped reaching interesting states, every test would still pass. The simulated
// runs must therefore reach each row write with each possible outcome, and each step of the
// journal. The runs must also reach each verdict on an I/O of each service, and each failure of the
// simulator.

// coveragePage has the figures, and coveredWorlds is the number of simulated runs behind them.
// mostWorlds limits how many runs the test makes to reach the rarest point. Every change of the
// product changes these figures.
const (
	coveragePage  = "internal/simulation/sim/testdata/coverage.txt"
	coveredWorlds = 10_000
	mostWorlds    = 30_000
)

// unreachable says why no simulated run reaches a point.
var unreachable = map[point]string{
	{aStep, "stuck", ""}:               "an oracle forbids it",
	{aStep, "sink_newer", ""}:          "only lull writes to the sink here",
	{aStep, "untrusted", ""}:           "only lull sends dead letters here",
	{aWrite, "COLLECT", howRefused}:    "a row that changes between two I/Os after days of rest",
	{aWrite, "REASSERT", howLost}:      "about one world in 10,000: an operator writes it seldom",
	{aWrite, "REASSERTED", howLost}:    "less than one world in 10,000: an operator writes it seldom",
	{aWrite, "REASSERTED", howRefused}: "its lease outlives the invocation",
	{aStep, "archived", ""}:            "no archive here: package receive's tests have one",
	{aStep, "archive_lost", ""}:        "no archive here: package receive's tests have one",
	{aStep, "replayed", ""}:            "no archive here: package replay's tests have one",
	{aStep, "object_read", ""}:         "no objects here: package receive's tests kill it at every call",
	{aStep, "object_done", ""}:         "the same",
	{aStep, "aborted", ""}:             "no objects here: package operate's tests abort one",
}

// These groups of writes need parts that the simulated runs of this test do not have.
func init() {
	for _, group := range []struct {
		why    string
		writes []shard.Transition
	}{
		{"no objects here: package receive's tests kill it at every call", only(shard.ADVANCE)},
		{
			"no ceiling here: see TestEveryPromiseHoldsBelowACeiling",
			[]shard.Transition{shard.YIELD, shard.SEND, shard.SENDFirst},
		},
	} {
		for _, w := range group.writes {
			for _, how := range hows {
				unreachable[point{aWrite, w.String(), how}] = group.why
			}
		}
	}
}

// everyPoint returns all points that the source code names.
func everyPoint(t testing.TB) map[point]bool {
	t.Helper()
	all := map[point]bool{}
	for _, w := range shard.Transitions() {
		for _, how := range hows {
			all[point{aWrite, w.String(), how}] = true
		}
	}
	for _, s := range []fault.Service{fault.Table, fault.SQS, fault.Bucket, fault.States, fault.Search} {
		for v := fault.OK; v <= fault.CrashAfter; v++ {
			all[point{aVerdict, string(s), v.String()}] = true
		}
	}
	named := func(kind pointKind, pattern, text string) {
		for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			all[point{kind, found[1], ""}] = true
		}
	}
	named(aStep, `(?m)^\t\w+ +(?:Step )?= "(\w+)"`, tree.Text(t, "internal/seam/journal/journal.go"))
	for _, name := range tree.Files(t) {
		if path.Dir(name) == "internal/simulation/sim" && path.Ext(name) == ".go" {
			named(aFailure, `(?:strikes\(|point\{aFailure, )"([^"]+)"`, tree.Text(t, name))
		}
	}
	for p := range unreachable {
		delete(all, p)
	}
	return all
}

// worldOf returns one of the simulated runs whose coverage counts. Most of them are wide.
func worldOf(t testing.TB, seed uint64) *World {
	switch seed % 10 {
	case 1:
		w := struck(t, seed, Disaster{Loss: Loss(1 + seed/10%uint64(QueuesPurged)), Live: seed/10%3 == 0})
		w.options.Upstream.Calm += 4 * time.Minute // so that the operator meets the loss
		return lossy(w)
	case 2:
		return lossy(plagued(t, seed, Absurd{}))
	case 3:
		return opened(t, seed)
	case 4:
		return clumsyWorld(t, seed, nil)
	case 5:
		if seed%20 == 5 {
			return lossy(republishing(t, seed, Swarm))
		}
		return sampled(t, seed, false)
	case 6:
		switch seed / 10 % 5 {
		case 0:
			return lossy(paused(t, seed, Hooks{}))
		case 1:
			return fetching(t, seed, nil)
		case 2:
			return lossy(oblivious(t, seed))
		case 3:
			return added(t, seed)
		}
		if seed%500 == 46 { // each of these runs takes seconds
			return resting(t, seed)
		}
	case 7:
		if seed%20 == 7 {
			w, _ := rebuilding(t, seed, rebuildEdits{})
			return lossy(w)
		}
	}
	return wide(t, seed)
}

// lossy makes a simulated run lose more answers, because operators and KEEP write rarely.
func lossy(w *World) *World {
	w.rates.IOFailAfter = 0.25
	return w
}

// resting returns a wide simulated run over many days, so that unused rows are deleted.
func resting(t testing.TB, seed uint64) *World {
	b := widthOf(seed)
	for from := seed; !b.days; from += mostWorlds {
		b = widthOf(from)
	}
	b.shape.more, b.shape.over = 1, 4*24*time.Hour
	return b.world(t, seed)
}

// opened returns the simulated run of a seed with a table outage and `tableOutage: open`.
func opened(t testing.TB, seed uint64) *World {
	w := build(t, seed, Swarm, func(o *Options) { o.Config.TableOutage = config.TableOutageOpen })
	d := newDice(seed, 0x6f70656e)
	from := d.upTo(w.options.Upstream.Calm)
	to := from + 5*time.Second + d.upTo(2*time.Minute)
	w.outages = append(w.outages, outage{service: fault.Table, from: from, to: to})
	return w
}

// cover makes simulated runs until enough returns true, and counts the runs that reach each point.
func cover(t *testing.T, most uint64, enough func(map[point]int) bool) (worlds uint64, count map[point]int) {
	t.Helper()
	count = map[point]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for {
				mu.Lock()
				if worlds == most || t.Failed() || enough(count) {
					mu.Unlock()
					return
				}
				worlds++
				seed := worlds
				mu.Unlock()
				w := worldOf(t, seed)
				r := w.Run()
				mu.Lock()
				for _, v := range r.Violations {
					t.Errorf("world %d: %s", seed, v)
				}
				for p := range w.coverage {
					count[p]++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return worlds, count
}

func TestTheSwarmComesByEveryPoint(t *testing.T) {
	t.Parallel()
	if raceEnabled {
		t.Skip("hundreds of worlds")
	}
	wanted, most := everyPoint(t), uint64(mostWorlds)
	if testing.Short() { // a twentieth of the runs reaches fewer points
		_, page, _ := tree.Part(t, coveragePage, "coverage")
		most = 300
		maps.DeleteFunc(wanted, func(p point, _ bool) bool { return p.stated(page) < coveredWorlds/20 })
		if len(wanted) < 100 {
			t.Fatalf("the page states %d points: is it the right table?", len(wanted))
		}
	}
	missing := func(count map[point]int) (list []point) {
		for p := range wanted {
			if count[p] == 0 {
				list = append(list, p)
			}
		}
		return list
	}
	least := uint64(0)
	if *update {
		most, least = coveredWorlds, coveredWorlds
	}
	worlds, count := cover(t, most, func(count map[point]int) bool { return least == 0 && len(missing(count)) == 0 })
	t.Logf("%d worlds", worlds)
	if list := missing(count); len(list) > 0 {
		t.Errorf("%d worlds never came by %q", worlds, list)
	}
	if *update && !t.Failed() {
		tree.Generated(t, coveragePage, "coverage", coverageTables(wanted, count), true)
	}
}

// The columns of the tables on the page.
var (
	hows     = []string{howApplied, howRefused, howLost}
	verdicts = []string{"ok", "failed before", "failed after", "throttled", "crash before", "crash after"}
)

// row returns the beginning of the point's line in the page's table.
func (p point) row() string {
	if p.kind == aStep {
		return "\n| `" + p.what + "` | "
	}
	return "\n| " + p.what + " | "
}

// stated returns how many simulated runs reach a point according to the page, or 0 if the page
// lacks the point.
func (p point) stated(page string) int {
	_, rest, _ := strings.Cut(page, p.row())
	cells := strings.Split(rest, " | ")
	at := max(slices.Index(hows, p.how), slices.Index(verdicts, p.how), 0)
	n, _ := strconv.Atoi(strings.TrimSuffix(strings.SplitN(cells[min(at, len(cells)-1)], "\n", 2)[0], " |"))
	return n
}

// coverageTables returns the tables of the page.
func coverageTables(wanted map[point]bool, count map[point]int) string {
	var b strings.Builder
	for _, table := range []struct {
		kind pointKind
		of   string
		hows []string
	}{
		{aWrite, "write of a row", hows},
		{aVerdict, "I/O of a service", verdicts},
		{aStep, "step", []string{""}},
		{aFailure, "failure of the simulator", []string{""}},
	} {
		heads := strings.Join(table.hows, " | ")
		fmt.Fprintf(&b, "\n| %s | %s |\n|---|%s\n", table.of, cmp.Or(heads, "worlds"),
			strings.Repeat("---:|", len(table.hows)))
		seen := map[string]bool{}
		for _, p := range slices.SortedFunc(maps.Keys(wanted), func(a, b point) int {
			return cmp.Compare(a.what, b.what)
		}) {
			if p.kind != table.kind || seen[p.what] {
				continue
			}
			seen[p.what] = true
			var cells []string
			for _, how := range table.hows {
				cells = append(cells, strconv.Itoa(count[point{p.kind, p.what, how}]))
			}
			b.WriteString(p.row()[1:] + strings.Join(cells, " | ") + " |\n")
		}
	}
	return b.String()
}
