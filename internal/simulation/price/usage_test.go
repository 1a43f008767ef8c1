// SPDX-License-Identifier: Apache-2.0

package price

import (
	"math"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
)

func near(got, want float64) bool { return math.Abs(got-want) <= 1e-9*max(1, math.Abs(want)) }

func TestUnitsRoundUpAsTheServicesDo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"a write of nothing", WriteUnits(0), 1},
		{"1 KB", WriteUnits(1024), 1},
		{"one byte above", WriteUnits(1025), 2},
		{"a read", ReadUnits(200, true), 1},
		{"an eventually consistent read", ReadUnits(200, false), 0.5},
		{"a read of an absent item", ReadUnits(0, false), 0.5},
		{"of 5 KB", ReadUnits(5<<10, false), 1},
		{"a request of 64 KB", QueueRequests(64 << 10), 1},
		{"a request of 64 KB and one byte", QueueRequests(64<<10 + 1), 2},
		{"an execution of 12 s", ExpressGBSeconds(12 * time.Second), 0.75},
		{"of 101 ms", ExpressGBSeconds(101 * time.Millisecond), 0.0125},
		{"an invocation of 100.1 ms at 1 GB", LambdaGBSeconds(100100*time.Microsecond, 1024), 0.101},
	} {
		if !near(c.got, c.want) {
			t.Errorf("%s: %v units, want %v", c.name, c.got, c.want)
		}
	}
}

// TestTheSumsOfTheDesign checks two figures of the design. A million flights of 12 s cost about
// $13.5. With seven Standard transitions each, they would cost $175.
func TestTheSumsOfTheDesign(t *testing.T) {
	t.Parallel()
	flights := Usage{ExpressStarts: 1e6, ExpressGBSecs: 1e6 * ExpressGBSeconds(12*time.Second)}
	if got := USEast1.Dollars(flights); math.Abs(got-13.5) > 0.01 {
		t.Errorf("a million flights of 12 s: $%.3f, want about 13.50", got)
	}
	if got := USEast1.Dollars(Usage{Transitions: 7e6}); !near(got, 175) {
		t.Errorf("seven million transitions: $%.3f, want 175", got)
	}
}

func TestTheBillAddsUpAndNamesEveryServiceOnce(t *testing.T) {
	t.Parallel()
	u := Usage{
		WriteUnits: 1e6, ReadUnits: 1e6, QueueRequests: 1e6, Invocations: 1e6, LambdaGBSeconds: 1, ExpressStarts: 1e6,
		ExpressGBSecs: 1,
		Transitions:   1e6, ObjectWrites: 1e6, ObjectReads: 1e6,
	}
	l := USEast1
	want := l.WriteUnits + l.ReadUnits + l.QueueRequests + l.Invocations + l.LambdaGBSecond + l.ExpressStarts +
		l.ExpressGBSecond +
		l.Transitions + l.ObjectWrites + l.ObjectReads
	if got := l.Dollars(u); !near(got, want) {
		t.Errorf("one of each: $%v, want %v", got, want)
	}
	seen := map[string]bool{}
	for _, line := range l.Bill(u) {
		if seen[line.Name] || line.Dollars <= 0 {
			t.Errorf("line %q: $%v, want one line with a positive sum", line.Name, line.Dollars)
		}
		seen[line.Name] = true
	}
}

// TestBreakEvenFollowsFromThePrices: config.BreakEven is the wait at which both kinds of executions
// cost the same, for one turn (ADR 0038). Longer flights are Standard.
func TestBreakEvenFollowsFromThePrices(t *testing.T) {
	t.Parallel()
	l := USEast1
	dollars := func(wait time.Duration, kind config.FlightKind) float64 { // the cost of a million flights
		if kind == config.FlightStandard {
			return 4 * l.Transitions
		}
		return l.ExpressStarts + 1e6*ExpressGBSeconds(wait)*l.ExpressGBSecond
	}
	for wait := range map[time.Duration]bool{
		config.BreakEven - time.Second: true, config.BreakEven + time.Second: true, time.Second: true, time.Hour: true,
	} {
		best := config.FlightExpress
		if dollars(wait, config.FlightStandard) < dollars(wait, best) {
			best = config.FlightStandard
		}
		if got := (config.Flight{Kind: config.FlightAuto}).KindFor(wait); got != best {
			t.Errorf("%s: %s, and %s costs less", wait, got, best)
		}
	}
}
