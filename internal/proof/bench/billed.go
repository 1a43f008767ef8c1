// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/simulation/price"
)

// billedRows is lull's table with a meter. The meter counts the write units that AWS would bill for
// the sizes of the rows.
type billedRows struct {
	*memory.Shards
	meter *Meter
}

// Write costs the units of the larger image of the row. If the condition fails, it costs the units
// of the existing row.
func (b billedRows) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	old, err := b.Shards.Write(ctx, w)
	size, refused := 0, 0
	if r, ok := shard.AsRefused(err); ok {
		size, refused = rowBytes(r.Row), 1
	} else if err == nil {
		size = max(rowBytes(old), rowBytes(w.Apply(old)))
	}
	b.meter.count(func(c *Counts, u *price.Usage) {
		c.RowWrites++
		c.RowRefused += refused
		u.WriteUnits += price.WriteUnits(size)
	})
	return old, err
}

func (b billedRows) Read(ctx context.Context, docs []shard.DocID, consistent shard.Consistency) ([]shard.Row, error) {
	rows, err := b.Shards.Read(ctx, docs, consistent)
	b.meter.count(func(c *Counts, u *price.Usage) {
		c.RowReads += len(docs)
		for i := range rows {
			u.ReadUnits += price.ReadUnits(rowBytes(rows[i]), bool(consistent))
		}
	})
	return rows, err
}

// Scan reads pages. A page costs the units of the total bytes of its rows.
func (b billedRows) Scan(ctx context.Context, segment, segments int, cursor string, limit int) ([]shard.Row, string,
	error,
) {
	rows, next, err := b.Shards.Scan(ctx, segment, segments, cursor, limit)
	bytes := 0
	for i := range rows {
		bytes += rowBytes(rows[i])
	}
	b.meter.count(func(_ *Counts, u *price.Usage) { u.ReadUnits += price.ReadUnits(bytes, false) })
	return rows, next, err
}

// rowBytes returns the size of an item as DynamoDB counts it: the bytes of names and values. A
// number takes about half a byte for each digit, and one byte more.
func rowBytes(r shard.Row) int {
	if !r.Exists() {
		return 0
	}
	n := len("doc") + len(r.Doc)
	for _, a := range rowAttrs {
		v, ok := r.Get(a)
		if !ok {
			continue
		}
		n += len(a) + len(v.Text)
		if v.Kind == shard.KindNumber {
			n += 9 // a time in microseconds has sixteen digits
		}
	}
	return n
}

var rowAttrs = shard.Attrs()

// maxInline is the largest manifest that fits, as base64, into an execution's input of 256 KiB
// beside the state.
const maxInline = 180 << 10

// billedFlights is the bucket with a meter.
type billedFlights struct {
	*memory.Flights
	meter *Meter
}

func (b billedFlights) Put(ctx context.Context, m *flight.Manifest) error {
	packed, err := flight.Encode(m)
	if err != nil {
		return err
	}
	b.meter.packed(len(packed))
	b.meter.count(func(_ *Counts, u *price.Usage) { u.ObjectWrites++ })
	return b.Flights.Put(ctx, m)
}

func (b billedFlights) Get(ctx context.Context, id flight.ID) (*flight.Manifest, error) {
	m, err := b.Flights.Get(ctx, id)
	b.meter.count(func(_ *Counts, u *price.Usage) { u.ObjectReads++ })
	return m, err
}

func (b billedFlights) Continue(ctx context.Context, id flight.ID, n int, s flight.State) (bool, error) {
	b.meter.count(func(_ *Counts, u *price.Usage) { u.ObjectWrites++ })
	return b.Flights.Continue(ctx, id, n, s)
}

func (b billedFlights) List(ctx context.Context, cursor string, limit int) ([]flight.Stored, string, error) {
	b.meter.count(func(_ *Counts, u *price.Usage) { u.ObjectWrites++ }) // listing objects costs as much as a write
	return b.Flights.List(ctx, cursor, limit)
}

// launcher starts executions of the state machine and bills them. Under the standard fault mix the
// launcher loses some starts and doubles others.
type launcher struct{ *lull }

func (l launcher) Start(ctx context.Context, s flight.State) error {
	for range l.starts() {
		l.Meter.started(s.Kind != config.FlightStandard)
		if err := l.machine.Start(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// starts returns how many executions really start after a reported start.
func (w *World) starts() int {
	switch {
	case w.mix.Chance(w.mix.Rates.FlightLost):
		return 0
	case w.mix.Chance(w.mix.Rates.FlightTwice):
		return 2
	}
	return 1
}

// billTurn bills a turn. If the execution ends, it also bills the execution's time.
func (l *lull) billTurn(s, out flight.State, err error) {
	express := s.Kind != config.FlightStandard
	if l.Meter.turned(express); err == nil && out.Done {
		l.Meter.flew(l.clk.Now().Sub(s.Started.Time()), express)
	}
}

// packed counts a manifest and its bytes.
func (m *Meter) packed(bytes int) {
	m.count(func(c *Counts, _ *price.Usage) {
		c.Manifests++
		c.ManifestBytes += bytes
		if bytes <= maxInline {
			c.Small++
		}
	})
}

// started bills the start of an execution, and the execution's last state, Done.
func (m *Meter) started(express bool) {
	m.count(func(c *Counts, u *price.Usage) {
		c.Starts++
		c.Transitions++
		if express {
			u.ExpressStarts++
		} else {
			u.Transitions++
		}
	})
}

// turned bills the states of one turn: Hold, Index, Left.
func (m *Meter) turned(express bool) {
	const states = 3
	m.count(func(c *Counts, u *price.Usage) {
		c.Turns++
		c.Transitions += states
		if !express {
			u.Transitions += states
		}
	})
}

// flew bills the time of a finished execution.
func (m *Meter) flew(d time.Duration, express bool) {
	if express {
		m.count(func(_ *Counts, u *price.Usage) { u.ExpressGBSecs += price.ExpressGBSeconds(d) })
	}
}
