package stops

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
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
	sections := []struct {
		heading string
		ways    []way
	}{
		{"Services, functions, and what can be disabled", otherWays()},
		{"Permissions", permissionWays(t)},
	}
	var page strings.Builder
	page.WriteString(intro)
	seen := map[string]outcome{}
	for _, section := range sections {
		fmt.Fprintf(
			&page,
			"\n## %s\n\n| what stops | first alarm | after | and then |\n|---|---|---:|---|\n",
			section.heading,
		)
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
			page.WriteString(w.row(t, o))
		}
	}
	page.WriteString("\nNext: [all alarms](README.md), or the [glossary](../glossary.md).\n")
	file := filepath.Join("..", "..", "..", "docs", "runbook", "stops.md")
	if *update {
		if err := os.WriteFile(file, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if is, err := os.ReadFile(file); err != nil || string(is) != page.String() {
		t.Errorf(
			"%s is not what the simulator shows (%v): review it, then go test ./internal/proof/stops -update",
			file,
			err,
		)
	}
}

// row returns the line of the table for a way.
func (w way) row(t testing.TB, o outcome) string {
	t.Helper()
	if w.harmless != "" {
		if o.wrote < int((lasting-stopAt)/time.Minute)/2 {
			t.Errorf("%s: %d written: something stops, and the table says %q", w.name, o.wrote, w.harmless)
		}
		return fmt.Sprintf("| %s | none: %s | | |\n", w.name, w.harmless)
	}
	if len(o.rings) == 0 {
		t.Errorf("%s: no alarm goes off", w.name)
		return fmt.Sprintf("| %s | **none** | | |\n", w.name)
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
	return fmt.Sprintf(
		"| %s | [%s](%s.md) | %d min | %s |\n",
		w.name,
		first.kind,
		first.kind,
		int(after.Minutes()),
		strings.Join(others, ", "),
	)
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

const intro = `# What goes off when something stops

For the person on call, and for whoever doubts the alarms. lull's simulator stops a stack in each of
these ways and computes which alarm goes off, and after how many minutes. The test writes this page:
` + "`go test ./internal/proof/stops -update`" + `.

One event a minute is sent, and one a minute of what the permission is for. The metrics are those of
the real code, and AWS's own by its documentation. CloudWatch evaluates an alarm each minute over
windows that slide. One minute is added for metrics to arrive, for which AWS names no bound.

On the way of a live event an alarm goes off within ten minutes. For prune and dlq it takes three
intervals of prune, a quarter of an hour. A bulk message may wait for six hours. The minutes of
` + "`prune-idle`" + ` depend on when prune ran last: fourteen at the most.

Where the table says none, nothing stops: the test sees that documents are still written. Without
the right to write logs a function's own metrics are missing. An alarm for that would look at eight
metrics of each sink, for $0.80 a month, and there is none.
`
