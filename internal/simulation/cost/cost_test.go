// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/proof/tree"
	"github.com/lullhq/lull/internal/simulation/price"
	_ "github.com/lullhq/lull/sink/memorysink"
	_ "github.com/lullhq/lull/source/builtin"
)

var update = flag.Bool("update", false, "write the figures of docs/cost.md anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// defaults returns the default settings with kinds of sinks that this program contains.
func defaults(sinks ...string) *config.Config {
	c := config.Default()
	c.Sinks = map[string]config.Sink{}
	for _, name := range append(sinks, "search") {
		c.Sinks[name] = config.Sink{Kind: "memory"}
	}
	c.DefaultSink = "search"
	c.Complete()
	return &c
}

// keptReady returns the default settings with a provisioned table.
func keptReady() *config.Config {
	c := defaults()
	c.Table.Billing = config.Provisioned
	return c
}

// nothing is the load of an unused stack. peak is the load of GOV.UK. fast is the load of
// docs/numbers.md.
func nothing() Load { return Load{Burst: 3, Spread: 2 * time.Second, Hours: 24, Bytes: 700} }

func peak() Load {
	l := nothing()
	l.Rate, l.Documents = 300_000.0/86_400, 1_000_000
	return l
}

func fast() Load {
	l := nothing()
	l.Rate, l.Burst = 500, 5
	return l
}

func estimate(t *testing.T, c *config.Config, l Load) Estimate {
	t.Helper()
	e, err := Of(t.Context(), c, l)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// item returns a line of a bill.
func item(t *testing.T, b Bill, what string) price.Item {
	t.Helper()
	i := slices.IndexFunc(b.Items, func(i price.Item) bool { return i.What == what })
	if i < 0 {
		t.Fatalf("the bill has no %q: %+v", what, b.Items)
	}
	return b.Items[i]
}

func TestEachLineShowsItsArithmeticAndTheSumIsTheirs(t *testing.T) {
	t.Parallel()
	l := peak()
	l.Key = true
	e := estimate(t, defaults(), l)
	for _, b := range []Bill{e.Floor, e.Ceiling} {
		sum := 0.0
		for _, i := range b.Items {
			if math.Abs(i.Dollars-i.Count*i.Price/i.Per) > 1e-9 || i.Count < 0 {
				t.Errorf("%+v does not multiply", i)
			}
			sum += i.Dollars
		}
		if math.Abs(sum-b.Total) > 1e-6 || b.Requests <= 0 || b.Requests >= b.Total {
			t.Errorf("the lines are $%v, the bill says %v, of which %v for requests and time", sum, b.Total, b.Requests)
		}
	}
	if got := item(t, e.Floor, "keys").Dollars; got != 1 {
		t.Errorf("a key costs $%v", got)
	}
	if item(t, e.Floor, "requests").Count >= item(t, e.Ceiling, "requests").Count {
		t.Error("more pollers make no more requests")
	}
	if text, err := json.Marshal(e); err != nil || !strings.Contains(string(text), `"what":"Express executions"`) {
		t.Errorf("%s, %v", text, err)
	}
	for line := range strings.Lines(e.String()) {
		if len(line) > 101 {
			t.Errorf("%d columns: %q", len(line), line)
		}
	}
}

// TestSettingsAndHoursShow: with a concurrency limit, the live lane keeps five pollers. Events
// during half of the day cost half.
func TestSettingsAndHoursShow(t *testing.T) {
	t.Parallel()
	c := defaults()
	c.Queues.Live.MaxConcurrency = 20
	limited, half := estimate(t, c, peak()), peak()
	if limited.Floor.Pollers != FirstPollers {
		t.Errorf("%d pollers with a limit, want %d", limited.Floor.Pollers, FirstPollers)
	}
	half.Hours = 12
	free, twelve := estimate(t, defaults(), peak()), estimate(t, defaults(), half)
	if free.Floor.Total >= limited.Floor.Total {
		t.Errorf("without a limit $%.2f, with one %.2f", free.Floor.Total, limited.Floor.Total)
	}
	got, want := item(t, twelve.Floor, "Express executions").Count, item(t, free.Floor, "Express executions").Count/2
	if math.Abs(got/want-1) > 0.02 {
		t.Errorf("%v executions in twelve hours, want %v", got, want)
	}
	one, two := estimate(t, defaults(), nothing()), estimate(t, defaults("other"), nothing())
	// All events belong to only one of the sinks.
	for _, sinks := range [][]string{nil, {"other"}} {
		rare := nothing()
		rare.Rate, rare.Burst = 1.0/3600, MaxBurst
		e := estimate(t, defaults(sinks...), rare)
		if got := item(t, e.Floor, "custom metrics").Count; got < 3 || got > 8 {
			t.Errorf("%v custom metrics with %d more sinks, want those of one sink", got, len(sinks))
		}
	}
	const of = "metrics of alarms"
	if one, two := item(t, one.Floor, of).Count, item(t, two.Floor, of).Count; two <= one {
		t.Errorf("%v metrics of alarms for one sink, %v for two", one, two)
	}
}

// TestAnArchiveIsOnTheBill: an archive costs one more PUT for each batch, and storage for as long
// as the settings keep the bodies.
// At one event a second a million events cost ten times as much as the README says for 500.
func TestAPageOfASmallLoadSaysWhyItIsExpensive(t *testing.T) {
	t.Parallel()
	e := Estimate{Events: 1e6, Load: Load{Rate: 1, Burst: 3, Hours: 24}}
	const why = "A small load pays more for a million events: alarms, metrics and idle polling"
	if !strings.Contains(e.String(), why) {
		t.Errorf("got %s, want %q", e, why)
	}
	if e.Load.Rate = 500; strings.Contains(e.String(), why) {
		t.Errorf("500 events a second: got %s, want no reason", e)
	}
}

func TestAnArchiveIsOnTheBill(t *testing.T) {
	t.Parallel()
	l := nothing()
	l.Rate, l.Hours = 2, 1
	with := func(days int) Bill {
		c := defaults()
		c.Archive.Keep = time.Duration(days) * 24 * time.Hour
		return estimate(t, c, l).Floor
	}
	none, week, two := with(0), with(7), with(14)
	if a, b := item(t, none, "PUT and LIST").Count, item(t, week, "PUT and LIST").Count; b < 1.5*a || b > 2.5*a {
		t.Errorf("%.0f PUTs with an archive, %.0f without: want about twice as many", b, a)
	}
	const of = "GB of the archive, packed to a quarter"
	if a, b := item(t, week, of).Count, item(t, two, of).Count; a <= 0 || b != 2*a {
		t.Errorf("%g GB for a week, %g for two", a, b)
	}
}

// TestTheFloorPaysForEachLargeMessage: SQS bills each 64 KB that a poller receives. An answer with
// ten large messages counts as ten requests.
func TestTheFloorPaysForEachLargeMessage(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("two simulations of large messages")
	}
	l := nothing()
	l.Rate, l.Burst, l.Bytes = 20, 1, maxBytes
	e := estimate(t, defaults(), l)
	if got, least := item(t, e.Floor, "requests").Count, e.Events*1.1; got < least {
		t.Errorf("%.0f requests, want %.0f at least: each message received, and a tenth of that for deleting", got, least)
	}
}

// TestAStandardFlightPaysForItsEnd: AWS bills a Standard execution for each state that it enters.
// The last state is Done.
func TestAStandardFlightPaysForItsEnd(t *testing.T) {
	t.Parallel()
	c := defaults()
	c.Flight.Kind = config.FlightStandard
	e := estimate(t, c, nothing())
	runs := float64(month / c.Lifecycle.PruneEvery)
	if got := item(t, e.Floor, "Standard transitions").Count / runs; math.Abs(got-4) > 1e-6 {
		t.Errorf("%v transitions for each flight that prune starts, want 4: Hold, Index, Remaining, Done", got)
	}
}

func TestALoadThatCannotBeIsNamed(t *testing.T) {
	t.Parallel()
	for wrong, change := range map[string]func(l *Load){
		"events a second":    func(l *Load) { l.Rate = -1 },
		"NaN events":         func(l *Load) { l.Rate = math.NaN() },
		"200000 events":      func(l *Load) { l.Rate = 200_000 },
		"% of the capacity":  func(l *Load) { l.Used = 101 },
		"one an hour":        func(l *Load) { l.Rate = 1e-9 },
		"bursts of 0":        func(l *Load) { l.Burst = 0 },
		"bursts over":        func(l *Load) { l.Spread = time.Hour },
		"hours a day":        func(l *Load) { l.Hours = math.Inf(1) },
		"1e-305 hours a day": func(l *Load) { l.Hours = 1e-305 }, // at this value, a million events would cost +Inf
		"documents":          func(l *Load) { l.Documents = -1 },
		"64 bytes an event":  func(l *Load) { l.Bytes = 64 },
		"bursts of 1000 eve": func(l *Load) { l.Burst = 1000 },
	} {
		l := peak()
		change(&l)
		if _, err := Of(t.Context(), defaults(), l); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("got %v, want it to name %q", err, wrong)
		}
	}
}

const page = "docs/cost.md"

// figures returns the figures of docs/cost.md.
func figures(t *testing.T) string {
	t.Helper()
	idle, month := estimate(t, defaults(), nothing()), estimate(t, defaults(), peak())
	second, kept := estimate(t, defaults(), fast()), estimate(t, keptReady(), fast())
	reached := func(v, goal float64) string {
		if v <= goal {
			return "reached"
		}
		return "**not reached**"
	}
	million := func(b Bill) float64 { return b.Requests / second.Events * 1e6 }
	var b strings.Builder
	fmt.Fprintf(&b, "| what | target | estimate | |\n|---|---|---|---|\n")
	for _, row := range []struct {
		what      string
		goal, got float64
	}{
		{"a month in which nothing happens, whole, $", 8, idle.Floor.Total},
		{"a month at GOV.UK's peak with two pollers, whole, $", 50, month.Floor.Total},
		{"a million events at 500/s in bursts of 5, two pollers, requests and time, $", 0.60, million(second.Floor)},
		{"the same with five pollers, $", 0.80, million(second.Ceiling)},
		{"the same with two pollers, table provisioned and used by half, $", 0.60, million(kept.Floor)},
		{"the same with five pollers, table provisioned and used by half, $", 0.80, million(kept.Ceiling)},
	} {
		fmt.Fprintf(&b, "| %s | at most %.2f | %.2f | %s |\n", row.what, row.goal, row.got, reached(row.got, row.goal))
	}
	fmt.Fprintf(&b, "\n```text\n%s```\n", month)
	return b.String()
}

var number = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)

// TestThePageShowsWhatTheCommandPrints compares docs/cost.md with the output of the command. The
// figures change a little with the code, so the test fails only if a figure differs by more than a
// tenth.
func TestThePageShowsWhatTheCommandPrints(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("five simulations")
	}
	shows(t, "figures", figures(t))
}

// shows compares a part of the page with its expected text. With -update it writes the part.
func shows(t *testing.T, part, want string) {
	t.Helper()
	if *update {
		tree.Generated(t, page, part, want, true)
		return
	}
	_, shown, _ := tree.Part(t, page, part)
	// The number of blanks depends on the width of the figures.
	words := func(s string) string { return strings.Join(strings.Fields(number.ReplaceAllString(s, "0")), " ") }
	if words(shown) != words(want) {
		t.Fatalf("the page shows\n%s\nthe command prints\n%s\nrun this test with -update", shown, want)
	}
	are := number.FindAllString(want, -1)
	for i, was := range number.FindAllString(shown, -1) {
		old, _ := strconv.ParseFloat(was, 64)
		now, _ := strconv.ParseFloat(are[i], 64)
		if math.Abs(old-now) > 0.02+0.1*math.Abs(now) {
			t.Errorf("the page says %s, the command %s: run this test with -update", was, are[i])
		}
	}
}

// A million questions cost eight dollars, whatever the stack's load is.
func TestQuestionsHaveAPrice(t *testing.T) {
	t.Parallel()
	c := config.Default()
	without, err := Of(t.Context(), &c, Load{Burst: 3, Hours: 24, Bytes: 700})
	if err != nil {
		t.Fatal(err)
	}
	with, err := Of(t.Context(), &c, Load{Burst: 3, Hours: 24, Bytes: 700, Questions: 1_000_000})
	if err != nil {
		t.Fatal(err)
	}
	// 0.20 for invocations, 500,000 GB-seconds, and 12 million read units
	got, want := with.Floor.Total-without.Floor.Total, 0.20+500_000*0.0000133334+12*0.125
	if math.Abs(got-want) > 1e-6 {
		t.Errorf("got %.4f, want %.4f", got, want)
	}
	if err := (Load{Burst: 1, Hours: 24, Bytes: 700, Questions: -1}).Validate(); err == nil {
		t.Error("fewer than no questions: no error")
	}
}
