// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/simulation/sim"
	"github.com/lullhq/lull/source"
)

// Load describes the events of a simulation and the strain on the sinks. The JSON fields of a Load
// have the names of the flags of `lull simulate`.
type Load struct {
	Rate      float64 `json:"load"` // events a second
	Burst     int     `json:"burst"`
	Spread    Span    `json:"spread"` // the time within which the events of a burst are sent
	Documents int     `json:"documents"`
	Lasting   Span    `json:"for"`
	Surge     string  `json:"surge,omitempty"` // FACTOR@FROM, such as 2@15m; empty for a constant load
	Strain
}

// Strain is the planned outage and the limits of the sinks.
type Strain struct {
	Down      string `json:"sink-down,omitempty"`      // FROM-TO, counted from the beginning; empty for no outage
	Takes     int    `json:"sink-takes,omitempty"`     // documents a second; 0 for no limit
	Throttles string `json:"sink-throttles,omitempty"` // one of the ways of [sim.ParseThrottling]; empty means bucket
}

// Bounds of a Load. The bounds limit the memory of a simulation.
const (
	MaxRate      = 10_000
	MaxBurst     = 100
	MaxSpread    = time.Minute
	MaxDocuments = 1_000_000
	maxSurge     = 20
	minRate      = 1.0 / 3600 // with a lower rate, a month has too few events for a bill
)

// Steady is the default load of `lull simulate`: no events and no bursts.
func Steady() Load {
	return Load{Burst: 1, Spread: Span(2 * time.Second), Documents: 1000, Lasting: Span(time.Hour)}
}

// Fault is one thing that is wrong in a load.
type Fault struct {
	Field   string `json:"field"` // the field in JSON, and with two dashes the flag on the command line
	Value   string `json:"value"`
	Problem string `json:"problem"`
}

// Error returns the fault as one line.
func (f *Fault) Error() string { return fmt.Sprintf("--%s %s: %s", f.Field, f.Value, f.Problem) }

// Faults returns every Fault in an error, in order.
func Faults(err error) (all []*Fault) {
	for _, e := range config.Apart(err) {
		if f, ok := errors.AsType[*Fault](e); ok {
			all = append(all, f)
		}
	}
	return all
}

// Validate returns every [Fault], joined.
func (l Load) Validate() error {
	_, surgeFits := l.surge()
	return errors.Join(
		want(l.Rate >= minRate && l.Rate <= MaxRate, "load", l.Rate,
			"use at most %d events a second, and at least one an hour", MaxRate),
		want(l.Burst >= 1 && l.Burst <= MaxBurst, "burst", l.Burst, "use 1 to %d events", MaxBurst),
		want(l.Spread >= 0 && time.Duration(l.Spread) <= MaxSpread, "spread", l.Spread, "use 0s to %s", MaxSpread),
		want(l.Documents >= 1 && l.Documents <= MaxDocuments, "documents", l.Documents, "use 1 to %d", MaxDocuments),
		want(l.Lasting > 0, "for", l.Lasting, "use a duration above 0"),
		want(surgeFits, "surge", l.Surge, "use FACTOR@FROM, such as 2@15m: a factor of at most %d, before --for ends", maxSurge),
	)
}

// want returns a fault unless the condition holds. If the condition holds, want returns a nil
// error, because a nil *Fault would not be a nil error.
func want(holds bool, field string, value any, problem string, args ...any) error {
	if holds {
		return nil
	}
	return &Fault{field, fmt.Sprint(value), fmt.Sprintf(problem, args...)}
}

// Upstream returns the load's messages as native events.
func (l Load) Upstream(seed uint64) sim.Upstream { return l.load().Upstream(seed) }

// Of returns the load's messages in the formats of the settings' sources, and the names of these
// sources. Of returns an error if lull can write no message that these sources decode.
func (l Load) Of(seed uint64, cfg *config.Config) (up sim.Upstream, names []string, err error) {
	sources, err := source.New(cfg)
	if err != nil {
		return up, nil, err
	}
	scribe, err := sim.NewScribe(cfg, sources)
	if err != nil {
		return up, nil, err
	}
	names = scribe.Sources()
	if scribe.Native(sources) {
		return l.Upstream(seed), names, nil
	}
	up, err = l.load().By(seed, scribe)
	return up, names, err
}

func (l Load) load() sim.Load {
	surge, _ := l.surge() // Validate refuses any other text
	return sim.Load{
		Surge: surge,
		Rate:  l.Rate, Burst: l.Burst, Spread: time.Duration(l.Spread), Documents: l.Documents,
		Lasting: time.Duration(l.Lasting),
	}
}

// Sim returns the strain in the simulator's form. An outage has to end before the events do, at
// calm. The error joins every [Fault].
func (s Strain) Sim(calm time.Duration) (sim.Strain, error) {
	out := sim.Strain{Rate: s.Takes}
	var way error
	if s.Throttles != "" {
		out.Throttling, way = sim.ParseThrottling(s.Throttles)
	}
	from, to, _ := strings.Cut(s.Down, "-")
	var wrong [2]error
	if s.Down != "" {
		out.DownFrom, wrong[0] = time.ParseDuration(from)
		out.DownTo, wrong[1] = time.ParseDuration(to)
	}
	ends := wrong == [2]error{} && out.DownFrom >= 0 && out.DownTo > out.DownFrom && out.DownTo <= calm
	return out, errors.Join(
		want(s.Takes >= 0, "sink-takes", s.Takes, "use documents a second, 0 for no limit"),
		want(way == nil, "sink-throttles", s.Throttles, "use bucket, queue, random, late or drift"),
		want(s.Down == "" || ends, "sink-down", s.Down,
			"use FROM-TO, such as 15m-2h15m, before the events end at %s", calm.Round(time.Second)),
	)
}

// Span is a duration that is written like 1m30s in JSON.
type Span time.Duration

// String returns the duration as Go writes it.
func (s Span) String() string { return time.Duration(s).String() }

// MarshalText writes the duration.
func (s Span) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a duration.
func (s *Span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%.40q is not a duration: use one such as 1m30s", text)
	}
	*s = Span(d)
	return nil
}
