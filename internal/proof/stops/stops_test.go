// SPDX-License-Identifier: Apache-2.0

package stops

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/simulation/sim"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write docs/runbook/stops.md anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// arrival is how long metrics may take to arrive in CloudWatch. AWS names no limit.
const arrival = time.Minute

// outcome is the result of one way to stop the stack.
type outcome struct {
	way
	rings []ring
	wrote int
}

func (w way) run(t testing.TB) outcome {
	t.Helper()
	length := lasting
	if w.limit > lasting {
		length = stopAt + w.limit
	}
	s, world := newStack(t, sim.Options{Upstream: w.traffic.sends(length), Pollers: 2}, w.breaks)
	if w.traffic == moved {
		for at := stopAt; at < length; at += time.Minute {
			world.Sends(
				"search-dead",
				at,
				queue.Outgoing{Body: body(fmt.Sprintf("moved-%d", int(at.Minutes())), 1, "")},
			)
		}
	}
	return outcome{w, s.run(t, world, length, 0), s.wrote}
}

// TestWhateverStopsAStackSetsAnAlarmOff checks that every way to stop a stack sets an alarm off in
// time.
func TestWhateverStopsAStackSetsAnAlarmOff(t *testing.T) {
	t.Parallel()
	seen := map[string]outcome{}
	for _, section := range []struct {
		file, head, foot string
		runbook          string // the path to the pages of the alarms
		ways             []way
	}{
		{filepath.Join("..", "..", "..", "docs", "runbook", "stops.md"), stopsHead, stopsFoot, "", otherWays()},
		{filepath.Join("testdata", "permissions.md"), permissionsHead, "", "../../../../docs/runbook/", permissionWays(t)},
	} {
		var all table
		for _, w := range section.ways {
			// Many permissions stop the same calls. Ways with the same key run only once.
			alike := fmt.Sprintf(
				"%s %p %v %p %v %v %v %v %v %v %v",
				w.traffic,
				w.breaks.fails,
				w.breaks.fates,
				w.breaks.write,
				w.breaks.unpolled,
				w.breaks.undeleted,
				w.breaks.unlogged,
				w.breaks.payloads,
				w.breaks.feed,
				w.breaks.off,
				w.limit,
			)
			o, known := seen[alike]
			if w.breaks.fails != nil || w.breaks.write != nil {
				alike = w.name
				o, known = seen[alike]
			}
			if !known {
				o = w.run(t)
				seen[alike] = o
			}
			all.add(w.row(t, o), w.name)
		}
		text := section.head + strings.ReplaceAll(all.String(), "](", "]("+section.runbook) + section.foot
		if *update {
			if err := os.WriteFile(section.file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if is, err := os.ReadFile(section.file); err != nil || string(is) != text {
			t.Errorf("%s is not what the simulator shows (%v): review it, then go test ./internal/proof/stops -update",
				section.file, err)
		}
	}
}

// table groups the ways to stop a stack that set the same alarms off after the same time.
type table struct {
	outcomes []string
	ways     map[string][]string // by outcome
}

func (t *table) add(outcome, way string) {
	if t.ways == nil {
		t.ways = map[string][]string{}
	}
	if t.ways[outcome] == nil {
		t.outcomes = append(t.outcomes, outcome)
	}
	if !slices.Contains(t.ways[outcome], way) {
		t.ways[outcome] = append(t.ways[outcome], way)
	}
}

func (t *table) String() string {
	var b strings.Builder
	b.WriteString("| first alarm | after | and then | what stops |\n|---|---:|---|---|\n")
	for _, o := range t.outcomes {
		fmt.Fprintf(&b, "| %s | %s |\n", o, strings.Join(byPlace(t.ways[o]), "<br>"))
	}
	return b.String()
}

// byPlace joins the permissions of the same function for the same resource.
func byPlace(ways []string) (lines []string) {
	rights := map[string][]string{} // by function and resource
	for _, way := range ways {
		right, place, found := strings.Cut(way, "` of ")
		if !found {
			lines = append(lines, way)
			continue
		}
		if rights[place] == nil {
			lines = append(lines, place)
		}
		rights[place] = append(rights[place], right+"`")
	}
	for i, line := range lines {
		if all := rights[line]; all != nil {
			lines[i] = line + ": " + strings.Join(all, ", ")
		}
	}
	return lines
}

// row returns the cells of the table for the outcome of a way.
func (w way) row(t testing.TB, o outcome) string {
	t.Helper()
	if w.harmless != "" {
		if o.wrote < int((lasting-stopAt)/time.Minute)/2 {
			t.Errorf("%s: %d written: something stops, and the table says %q", w.name, o.wrote, w.harmless)
		}
		return fmt.Sprintf("none: %s | | ", w.harmless)
	}
	if len(o.rings) == 0 {
		t.Errorf("%s: no alarm goes off", w.name)
		return "**none** | | "
	}
	first := o.rings[0]
	after := first.after + arrival
	if after > w.limit {
		t.Errorf("%s: %s goes off after %s, want %s at most", w.name, first.kind, after, w.limit)
	}
	var others []string
	for _, r := range o.rings[1:] {
		others = append(others, fmt.Sprintf("%s %d", r.kind, int((r.after+arrival).Minutes())))
	}
	return fmt.Sprintf("[%s](%[1]s.md) | %d min | %s", first.kind, int(after.Minutes()), strings.Join(others, ", "))
}

// TestAHealthyStackSetsNoAlarmOff: no alarm goes off in a stack without messages. No alarm goes off
// under bursts either, although one call in some hundreds fails and one invocation in a thousand is
// killed. A deployment throttles every function for a minute.
func TestAHealthyStackSetsNoAlarmOff(t *testing.T) {
	t.Parallel()
	length := 24 * time.Hour
	if testing.Short() {
		length = 4 * time.Hour
	}
	for _, k := range []traffic{none, live} {
		up := k.sends(length)
		o := sim.Options{Upstream: up, Pollers: 2}
		if k == live {
			for hour := time.Hour; hour < length; hour += time.Hour {
				for n := range 100 {
					at := hour + time.Duration(n)*100*time.Millisecond
					burst := body(fmt.Sprintf("burst-%d", n%40), n+int(hour.Hours())*1000, "")
					o.Upstream.Arrivals = append(o.Upstream.Arrivals,
						sim.Arrival{At: at, Message: queue.Outgoing{Body: burst}})
				}
			}
			r := sim.Rates{StaleRead: 0.05, StaleBy: 500 * time.Millisecond, PollDelay: 200 * time.Millisecond}
			r.IOFailBefore, r.IOFailAfter, r.IOThrottle, r.Kill = 0.0005, 0.0005, 0.0005, 0.001
			o.Rates = &r
		}
		deploy := map[string]sim.Fate{
			"receive": sim.Throttled, "index": sim.Throttled, "prune": sim.Throttled, "dlq": sim.Throttled,
		}
		s, w := newStack(t, o, breaks{fates: deploy, from: 2 * time.Hour, until: 2*time.Hour + time.Minute})
		if rings := s.run(t, w, length, 2); len(rings) > 0 {
			t.Errorf("%q: %v, want no alarm", k, rings)
		}
		if least := int((length - time.Hour) / time.Minute); k == live && s.wrote < least {
			t.Errorf("%d written, want %d at least", s.wrote, least)
		}
	}
}

const stopsHead = `# What goes off when something stops

For the person on call: which alarm goes off first, and after how many minutes. lull's simulator
stops a stack in each of these ways, and the test writes this page
(` + "`go test ./internal/proof/stops -update`" + `).

One event a minute is sent. An alarm goes off within ten minutes for live events, within fifteen for
prune and dlq, and within six hours for bulk messages. One minute is added for metrics to arrive.

`

const stopsFoot = `
[Another table](../../internal/proof/stops/testdata/permissions.md) has each missing permission.

Next: [all alarms](README.md), or the [glossary](../glossary.md).
`

const permissionsHead = `# What goes off when a permission is missing

For the person on call, and for those who change roles. The test that writes the runbook's page
stops.md writes this table too.

If the table says none, documents are still written. Without the right to write logs, a function's
own metrics are missing, and only AWS's metrics set alarms off.

`
