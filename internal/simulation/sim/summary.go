// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"
	"text/template"
	"time"

	lines "github.com/lullhq/lull/internal/local/ledger"
	"github.com/lullhq/lull/internal/simulation/price"
	"github.com/lullhq/lull/internal/terminal"
)

// Summary is the result of a run for people and programs, as `lull simulate` reports it. Durations
// are in milliseconds.
type Summary struct {
	Seed       uint64   `json:"seed"`
	Faults     Level    `json:"faults"`
	Rates      string   `json:"rates,omitempty"` // the rates that are not zero
	Violations []string `json:"violations"`
	// Trace is the hash of all steps. The hash is the same for the same seed, settings and events.
	Trace     string `json:"trace"`
	Decisions int    `json:"decisions"`
	VirtualMS int64  `json:"virtual_ms"`
	SettledMS int64  `json:"settled_ms"` // from the end of the injected failures until no message waited

	// DeadLetters were parked when everything had settled, before their redrive at the end.
	DeadLetters []lines.DeadLine `json:"dead_letters"`

	Freshness Spread `json:"freshness_ms"` // from sent to committed, for every committed version
	Counts    Counts `json:"counts"`
	Bill      Bill   `json:"dollars"`

	// WriteCapacity and ReadCapacity are set for a provisioned table.
	WriteCapacity *Capacity `json:"writeCapacity,omitempty"`
	ReadCapacity  *Capacity `json:"readCapacity,omitempty"`
}

// Spread is a distribution of values.
type Spread struct {
	Count int   `json:"count"`
	P50   int64 `json:"p50"`
	P99   int64 `json:"p99"`
	Max   int64 `json:"max"`
}

// Bill is the cost of the counts at list prices.
type Bill struct {
	Prices     string             `json:"prices"`
	Lines      map[string]float64 `json:"lines"`
	Total      float64            `json:"total"`
	PerMillion float64            `json:"per_million_events"`
}

// Summary returns the summary of a result.
func (r Result) Summary(level Level) Summary {
	s := Summary{
		Seed: r.Seed, Faults: level, Rates: r.Rates.String(), Violations: []string{},
		Trace: fmt.Sprintf("%016x", r.Hash), Decisions: r.Decisions,
		VirtualMS: r.Virtual.Milliseconds(), SettledMS: max(r.Settled, 0).Milliseconds(),
		Freshness: spread(r.Freshness), Counts: r.Counts,
		WriteCapacity: r.Writes, ReadCapacity: r.Reads,
		Bill: bill(r.Counts), DeadLetters: slices.Clip(append([]lines.DeadLine{}, r.Letters...)),
	}
	for _, v := range r.Violations {
		s.Violations = append(s.Violations, v.String())
	}
	return s
}

func spread(all []time.Duration) Spread {
	return Spread{
		Count: len(all), P50: at(all, 0.5).Milliseconds(), P99: at(all, 0.99).Milliseconds(),
		Max: at(all, 1).Milliseconds(),
	}
}

// at returns a quantile of durations, or 0 if there are none.
func at(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	return all[min(int(q*float64(len(all))), len(all)-1)]
}

func bill(c Counts) Bill {
	// The report has a line for KMS, although the simulator uses no KMS key.
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

// String returns the summary in a few lines.
func (s Summary) String() string {
	var b strings.Builder
	_ = page.Execute(&b, s) // writing to a Builder never fails; a test of package command reads the page
	return b.String()
}

var page = template.Must(template.New("summary").Funcs(template.FuncMap{
	"ms":  func(n int64) string { return (time.Duration(n) * time.Millisecond).String() },
	"per": func(n int64, of int) float64 { return float64(n) / float64(max(of, 1)) },
}).Parse(`{{define "capacity"}}{{.Ready}} units ready, {{printf "%.0f" .Used}} % used, raised {{.Raised}} times, ` +
	`{{.Throttled}} requests throttled{{end -}}
{{$c := .Counts -}}
{{$c.Messages}} messages, {{$c.Events}} events in {{ms .VirtualMS}} of virtual time; faults {{.Faults}}, seed {{.Seed}}
{{with .Freshness -}}
freshness  p50 {{ms .P50}}, p99 {{ms .P99}}, max {{ms .Max}}, of {{.Count}} versions written
{{end -}}
sink       {{$c.Applied}} documents in {{$c.Requests}} requests
table      {{$c.RowWrites}} writes ({{printf "%.2f" (per $c.RowWrites $c.Events)}} an event, ` +
	`{{$c.Refused}} refused), {{$c.RowsRead}} rows read
{{with .WriteCapacity}}capacity   {{template "capacity" .}} of writes
{{end}}{{with .ReadCapacity}}capacity   {{template "capacity" .}} of reads
{{end}}flights    {{$c.Executions}} executions, {{$c.Turns}} turns, {{$c.Transitions}} transitions
queue      {{$c.QueueCalls}} calls; bucket {{$c.Puts}} writes, {{$c.Gets}} reads
cost       ${{printf "%.2f" .Bill.PerMillion}} per million events ` +
	`(list prices, {{.Bill.Prices}}; idle polling not counted)
checked    {{.Decisions}} I/O decisions, trace {{.Trace}}, {{.Verdict}}
{{range .Violations}}  {{.}}
{{end}}{{range .First}}dead letter: {{.}}
{{end}}{{with .Further}}... and {{.}} more dead letters
{{end}}`))

// shownLetters is how many dead letters are listed.
const shownLetters = 20

// First returns the first dead letters as text.
func (s Summary) First() (all []string) {
	for _, d := range s.DeadLetters[:min(len(s.DeadLetters), shownLetters)] {
		all = append(all, terminal.Line(d.String()))
	}
	return all
}

// Further returns how many dead letters First leaves out.
func (s Summary) Further() int { return max(len(s.DeadLetters)-shownLetters, 0) }

// Idle reports whether nothing was written although there were events.
func (s Summary) Idle() bool { return s.Counts.Events > 0 && s.Freshness.Count == 0 }

// Verdict says whether the promises held, and for how many events.
func (s Summary) Verdict() string {
	switch {
	case len(s.Violations) > 0:
		return fmt.Sprintf("%d promises broken:", len(s.Violations))
	case s.Counts.Events == 0:
		return "no promise broken, because there were no events"
	case s.Idle():
		return fmt.Sprintf("no promise broken, but nothing was written: %d dead letters", len(s.DeadLetters))
	case len(s.DeadLetters) > 0:
		return fmt.Sprintf("no promise broken, but %d dead letters:", len(s.DeadLetters))
	}
	return "every promise held"
}
