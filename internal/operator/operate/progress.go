// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// Progress says what the rows of a document show, without asking its sinks.
type Progress struct {
	Key   shard.DocID  `json:"key"`
	Sinks []ProgressIn `json:"sinks"`
}

// ProgressIn is the row of a document for one sink.
type ProgressIn struct {
	Sink      string          `json:"sink"`
	Row       shard.DocID     `json:"row"`       // a key that names only this sink
	Committed string          `json:"committed"` // order key in print; empty if no version is committed
	Operation shard.Operation `json:"operation,omitempty"`
	Written   time.Time       `json:"written_at,omitzero"` // when lull last claimed a write that it committed
	Dead      string          `json:"dead,omitempty"`      // order key of the version that became a dead letter
	// Away says why lull writes nothing to the sink at present. It is empty if lull writes.
	Away string `json:"away,omitempty"`
}

// Progress reads the rows of a document and the health of their sinks.
func (o *documents) Progress(ctx context.Context, key shard.DocID) (Progress, error) {
	ids, err := o.rows(key)
	if err != nil {
		return Progress{}, err
	}
	read := make([]shard.DocID, 0, 2*len(ids))
	for _, id := range ids {
		read = append(read, id, shard.HealthRow(o.Config.SinkOf(id)))
	}
	rows, err := o.Shards.Read(ctx, read, shard.Consistent)
	if err != nil {
		return Progress{}, fmt.Errorf("read the rows of %s: %w", key, err)
	}
	p := Progress{Key: key}
	for i, id := range ids {
		row, health := rows[2*i], rows[2*i+1]
		in := ProgressIn{
			Sink: o.Config.SinkOf(id), Row: id, Committed: row.Committed.String(), Operation: row.CommittedOp,
			Dead: row.Dead.String(),
		}
		if row.LastWrite != 0 {
			in.Written = row.LastWrite.Time()
		}
		switch {
		case health.PausedAt != 0:
			in.Away = "sink " + in.Sink + " is paused"
		case shard.Unavailable(health):
			in.Away = "sink " + in.Sink + " is unhealthy"
		}
		p.Sinks = append(p.Sinks, in)
	}
	return p, nil
}

// AtLeast reports whether a printed order key has the upstream's version or a newer one. An empty
// text has no version. The class of the version comes from the key.
func AtLeast(printed, version string) (bool, error) {
	if printed == "" {
		return false, nil
	}
	var p shard.Parts
	k, err := shard.ParseOrderKey(printed)
	if err == nil {
		p, err = k.Parts()
	}
	if err != nil {
		return false, fmt.Errorf("read the row's order key: %w", err)
	}
	want, err := shard.ParseVersion(p.Version.Class(), version)
	if err != nil {
		return false, input(err)
	}
	newer := p.Version.Compare(want)
	// After a reset, the key of the row is below every key of the version, so the version is not
	// committed.
	return newer > 0 || newer == 0 && !k.IsFloor(), nil
}
