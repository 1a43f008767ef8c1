package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/proof/price"
)

// Summary is a run's result for people and programs: what `lull simulate` reports. Durations are
// milliseconds.
type Summary struct {
	Seed       uint64   `json:"seed"`
	Faults     Level    `json:"faults"`
	Rates      string   `json:"rates,omitempty"` // those that are not zero
	Violations []string `json:"violations"`
	// hash of everything that happened: the same for the same seed, settings and events
	Trace     string `json:"trace"`
	Decisions int    `json:"decisions"`
	VirtualMS int64  `json:"virtual_ms"`
	SettledMS int64  `json:"settled_ms"` // from the end of the injected failures until nothing waited

	Freshness Spread `json:"freshness_ms"` // from sent to committed, of every version that was committed
	Counts    Counts `json:"counts"`
	Bill      Bill   `json:"dollars"`
}

// Spread is a distribution.
type Spread struct {
	Count int   `json:"count"`
	P50   int64 `json:"p50"`
	P99   int64 `json:"p99"`
	Max   int64 `json:"max"`
}

// Bill is what the counts cost, by list prices.
type Bill struct {
	Prices     string             `json:"prices"`
	Lines      map[string]float64 `json:"lines"`
	Total      float64            `json:"total"`
	PerMillion float64            `json:"per_million_events"`
}

// Summary adds a result up.
func (r Result) Summary(level Level) Summary {
	s := Summary{
		Seed: r.Seed, Faults: level, Rates: r.Rates.String(), Violations: []string{},
		Trace: fmt.Sprintf("%016x", r.Hash), Decisions: r.Decisions,
		VirtualMS: r.Virtual.Milliseconds(), SettledMS: max(r.Settled, 0).Milliseconds(),
		Freshness: spread(r.Freshness), Counts: r.Counts,
		Bill: bill(r.Counts),
	}
	for _, v := range r.Violations {
		s.Violations = append(s.Violations, v.String())
	}
	return s
}

func spread(all []time.Duration) Spread {
	if len(all) == 0 {
		return Spread{}
	}
	return Spread{
		Count: len(all), P50: at(all, 0.5).Milliseconds(), P99: at(all, 0.99).Milliseconds(),
		Max: at(all, 1).Milliseconds(),
	}
}

// at is the quantile of some durations, 0 of none.
func at(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	return all[min(int(q*float64(len(all))), len(all)-1)]
}

func bill(c Counts) Bill {
	// The report keeps its line for KMS: the simulator encrypts nothing with a key of its own.
	b := Bill{Prices: price.USEast1.Region + " " + price.USEast1.Date, Lines: map[string]float64{"KMS": 0}}
	for _, l := range price.USEast1.Bill(c.Usage()) {
		b.Lines[l.Name] = l.Dollars
		b.Total += l.Dollars
	}
	if c.Events > 0 {
		b.PerMillion = b.Total / float64(c.Events) * 1e6
	}
	return b
}

// String is the summary in a few lines.
func (s Summary) String() string {
	var b strings.Builder
	c := s.Counts
	per := func(n int64) float64 { return float64(n) / float64(max(c.Events, 1)) }
	ms := func(n int64) string { return (time.Duration(n) * time.Millisecond).String() }
	fmt.Fprintf(&b, "%d messages, %d events in %s of virtual time; faults %s, seed %d\n", c.Messages, c.Events,
		ms(s.VirtualMS), s.Faults, s.Seed)
	fmt.Fprintf(&b, "freshness  p50 %s, p99 %s, max %s, of %d versions written\n", ms(s.Freshness.P50),
		ms(s.Freshness.P99), ms(s.Freshness.Max), s.Freshness.Count)
	fmt.Fprintf(&b, "sink       %d documents in %d requests\n", c.Applied, c.Requests)
	fmt.Fprintf(&b, "table      %d writes (%.2f an event, %d refused), %d rows read\n", c.RowWrites(),
		per(c.RowWrites()), c.Refused, c.RowsRead)
	fmt.Fprintf(&b, "flights    %d executions, %d turns, %d transitions\n", c.Executions, c.Turns, c.Transitions)
	fmt.Fprintf(&b, "queue      %d calls; bucket %d writes, %d reads\n", c.QueueCalls, c.Puts, c.Gets)
	fmt.Fprintf(&b, "cost       $%.2f per million events (list prices, %s; idle polling not counted)\n",
		s.Bill.PerMillion, s.Bill.Prices)
	fmt.Fprintf(&b, "checked    %d I/O decisions, trace %s, ", s.Decisions, s.Trace)
	if len(s.Violations) == 0 {
		b.WriteString("every promise held\n")
		return b.String()
	}
	fmt.Fprintf(&b, "%d promises broken:\n", len(s.Violations))
	for _, v := range s.Violations {
		fmt.Fprintf(&b, "  %s\n", v)
	}
	return b.String()
}
