// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/pipeline/index"
	"github.com/lullhq/lull/internal/proof/tree"
	"github.com/lullhq/lull/internal/shard"
)

// recovery is a sink with an outage while its upstream continues. After the outage, the sink
// accepts only few documents a second.
type recovery struct {
	versions bool
	away     time.Duration
	hooks    Hooks
}

const (
	recoveryPerSecond = 5 // events a second
	recoveryTakes     = 20
	recoveryDocuments = 1000
	recoveryBefore    = 5 * time.Minute
	recoveryAfter     = 20 * time.Minute
)

// back returns when the sink answers again.
func (r recovery) back() time.Duration { return recoveryBefore + r.away }

func (r recovery) run(t *testing.T) Result {
	t.Helper()
	return begin(t, Options{
		Config: settings(t, r.versions, func(*config.Config) {}), Seed: 1, Faults: NoFaults, Pollers: 1,
		Timeline: true, Hooks: r.hooks,
		Upstream: Steady(1, recoveryPerSecond, recoveryDocuments, r.back()+recoveryAfter),
		Strain:   Strain{DownFrom: recoveryBefore, DownTo: r.back(), Rate: recoveryTakes},
	}).Run()
}

// between returns the seconds of a period.
func (r Result) between(from, to time.Duration) []Second {
	return r.Timeline[from/time.Second : to/time.Second]
}

func pings(s Second) int { return s.Pings }

// drained returns how long after the sink's return the number of waiting messages is at most twice
// the number before the outage.
func (r recovery) drained(res Result) time.Duration {
	usual := peak(res.between(time.Minute, recoveryBefore), func(s Second) int { return s.Waiting })
	for i := r.back(); i < r.back()+recoveryAfter; i += time.Second {
		if res.Timeline[i/time.Second].Waiting <= 2*usual {
			return i - r.back()
		}
	}
	return recoveryAfter
}

// TestASinkThatIsBackGetsWhatItTakes checks point 5 of issue 6. Every document is updated several
// times during the outage. The oracles check that documents return in version order, and that every
// newest version is in the sink at the end. The test itself limits the cost of the recovery.
// docs/lifecycles.md has its picture.
func TestASinkThatIsBackGetsWhatItTakes(t *testing.T) {
	t.Parallel()
	for _, versions := range []bool{true, false} {
		t.Run(fmt.Sprintf("versions %t", versions), func(t *testing.T) {
			t.Parallel()
			s := recovery{versions: versions, away: 40 * time.Minute}
			if testing.Short() || raceEnabled {
				s.away = 10 * time.Minute
			}
			r := s.run(t)
			report(t, r, NoFaults)
			if most := 10 + int(s.away/(192*time.Second)); r.Extremes != (Extremes{Receives: r.Extremes.Receives}) ||
				r.Extremes.Receives > most {
				t.Errorf("%+v, want %d receives at most, and neither refusals nor dead letters", r.Extremes, most)
			}
			// During the outage: after the first minute no flight sends documents. lull pings every
			// 7 s for ten minutes, and then once a minute.
			away := r.between(recoveryBefore+time.Minute, s.back())
			often := int(min(s.away, 11*time.Minute)/(7*time.Second)) + int(max(s.away-10*time.Minute, 0)/time.Minute)
			if n, asked := total(away, requests), total(away, pings); n > 0 || asked > often {
				t.Errorf("%d requests and %d pings to a sink that is away for %s, want no requests and at most %d pings",
					n, asked, s.away, often)
			}
			if waiting := away[len(away)-1].Waiting; waiting < len(away)*recoveryPerSecond*9/10 {
				t.Errorf("only %d messages wait at the end of the outage: there is nothing to recover from", waiting)
			}
			// After the outage: the sink gets as much as it accepts, is not overloaded, and the
			// backlog is written in time.
			soon := r.between(s.back(), s.back()+10*time.Minute)
			most, refused, wrote := peak(soon, requests), total(soon, throttled), total(soon, written)
			if limit := recoveryTakes; most > limit {
				t.Errorf("%d requests in one second to a sink that takes %d documents, want at most %d", most,
					recoveryTakes, limit)
			}
			if limit := wrote / 10; refused > limit {
				t.Errorf("%d documents answered with 429 beside %d written, want at most %d", refused, wrote, limit)
			}
			if d, limit := s.drained(r), 5*time.Minute; d > limit {
				t.Errorf("back to normal after %s, want within %s", d, limit)
			}
			// After the backlog, documents are as fresh as before.
			if got, limit := aged(r.between(s.back()+15*time.Minute, s.back()+recoveryAfter), 1),
				8*time.Second; got > limit {
				t.Errorf("in the end the oldest version is written after %s, want quiet + window + 1 s", got)
			}
			t.Logf("%d requests in the worst second, %d documents answered with 429 beside %d written, normal after %s",
				most, refused, wrote, s.drained(r))
		})
	}
}

// TestAnOutageCostsAtMostTwiceTheRunWithoutIt: finding S7 of a review. An outage of half an hour
// once cost sixteen times as much as the run without it, because every flight waited in its
// execution.
func TestAnOutageCostsAtMostTwiceTheRunWithoutIt(t *testing.T) {
	t.Parallel()
	const perSecond = 20
	lasting, from, to := 45*time.Minute, 5*time.Minute, 35*time.Minute
	if testing.Short() || raceEnabled {
		lasting, to = 25*time.Minute, 15*time.Minute
	}
	run := func(s Strain) Result {
		r := begin(t, Options{
			Config: settings(t, true, func(*config.Config) {}), Seed: 1, Faults: NoFaults, Pollers: 1, Timeline: true,
			Upstream: Steady(1, perSecond, recoveryDocuments, lasting), Strain: s,
		}).Run()
		report(t, r, NoFaults)
		return r
	}
	without := run(Strain{}).Summary(NoFaults).Bill.Total
	for name, s := range map[string]Strain{"away": {}, "away, and nobody may ping": {PingDenied: true}} {
		s.DownFrom, s.DownTo = from, to
		r := run(s)
		if cost := r.Summary(NoFaults).Bill.Total; cost > 2*without {
			t.Errorf("%s: $%.3f, want at most twice $%.3f", name, cost, without)
		} else {
			t.Logf("%s: $%.3f, without $%.3f", name, cost, without)
		}
		if r.Extremes.Moved+r.Extremes.Letters > 0 {
			t.Errorf("%s: %+v, want nothing moved", name, r.Extremes)
		}
		soon := r.between(to, lasting)
		back := 0
		for back < len(soon) && soon[back].Waiting > 2*perSecond*8 {
			back++
		}
		if back > 5*60 {
			t.Errorf("%s: normal again after %d seconds, want five minutes at most", name, back)
		}
		t.Logf("%s: normal after %d s, %d requests in the worst second", name, back, peak(soon, requests))
	}
}

// TestAHealthySinkCostsNoWriteOfItsHealthRow: a healthy sink has no budget, so its health row is
// never written.
func TestAHealthySinkCostsNoWriteOfItsHealthRow(t *testing.T) {
	t.Parallel()
	up, n := bursts(1, 20)
	r := build(t, 14, NoFaults, func(o *Options) { o.Upstream, o.Pollers = up, 1 }).Run()
	report(t, r, NoFaults)
	for w := shard.TRIP; w <= shard.SPENDFirst; w++ {
		if got := r.Counts.Writes[w.String()]; got > 0 {
			t.Errorf("%d times %s for %d bursts, want none", got, w, n)
		}
	}
}

// TestWithoutTheSharedRowASinkIsAskedAllTheTime: without the shared health row, every flight asks
// the sink itself. The limits of the test above must then fail.
func TestWithoutTheSharedRowASinkIsAskedAllTheTime(t *testing.T) {
	t.Parallel()
	s := recovery{
		versions: true, away: 5 * time.Minute,
		hooks: Hooks{Index: func(h *index.Handler) { h.Shards = ignoring{h.Shards, only(shard.TRIP)} }},
	}
	r := s.run(t)
	report(t, r, NoFaults)
	away := r.between(recoveryBefore+time.Minute, s.back())
	if n := total(away, requests); n < 50*int(s.away/time.Minute) {
		t.Errorf("%d requests to a sink that is away for %s: it is not the shared row that keeps them back", n, s.away)
	}
}

// TestWriteRecovery writes the pictures and figures of docs/lifecycles.md for an outage of two
// hours.
func TestWriteRecovery(t *testing.T) {
	if !*update {
		t.Skip("make lifecycles runs it with -update")
	}
	s := recovery{versions: true, away: 2 * time.Hour}
	r := s.run(t)
	report(t, r, NoFaults)
	docs := filepath.Join("..", "..", "..", "docs")
	for name, svg := range map[string]string{
		"outage.svg":   Chart(r.Timeline, recoveryTakes, 0, s.back()+recoveryAfter),
		"recovery.svg": Chart(r.Timeline, recoveryTakes, s.back()-time.Minute, s.back()+11*time.Minute),
	} {
		if err := os.WriteFile(filepath.Join(docs, "img", name), []byte(svg), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	away, soon := r.between(recoveryBefore+time.Minute, s.back()), r.between(s.back(), s.back()+10*time.Minute)
	end := r.between(s.back()+15*time.Minute, s.back()+recoveryAfter)
	var table strings.Builder
	row := func(what, format string, args ...any) {
		fmt.Fprintf(&table, "| %s | %s |\n", what, fmt.Sprintf(format, args...))
	}
	table.WriteString("| | |\n|---|---|\n")
	row("events sent, documents", "%d, %d", r.Counts.Events, recoveryDocuments)
	row("sink down: messages that wait at the end of the outage", "%d", away[len(away)-1].Waiting)
	row("sink down, after the first minute: requests; pings", "%d; %d", total(away, requests), total(away, pings))
	row("sink back: everything is normal after", "%s", s.drained(r))
	row("sink back, ten minutes: documents written; refused with 429", "%d; %d", total(soon, written),
		total(soon, throttled))
	row("sink back, ten minutes: requests; most in one second", "%d; %d", total(soon, requests), peak(soon, requests))
	row("oldest version written, fifteen minutes later", "%s", aged(end, 1).Round(10*time.Millisecond))
	row("how often one message was received, at most", "%d", r.Extremes.Receives)
	row("refusals counted; dead letters; messages moved by SQS", "%d; %d; %d", r.Extremes.Refusals, r.Extremes.Letters,
		r.Extremes.Moved)
	row("promises broken", "%d", len(r.Violations))
	tree.Generated(t, "docs/lifecycles.md", "recovery", table.String(), true)
}
