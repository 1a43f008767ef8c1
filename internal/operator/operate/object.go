// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/pipeline/objects"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// ObjectOrder asks how far an object of many documents was read. It may also abort the reading, or
// reset it.
type ObjectOrder struct {
	Object string `json:"object"`          // s3://bucket/key, without any escapes in the key
	Abort  bool   `json:"abort,omitempty"` // stop reading the object
	Reset  bool   `json:"reset,omitempty"` // withdraw its sequencer, so that objects with smaller sequencers are read
	Why    string `json:"why,omitempty"`
	By     string `json:"by,omitempty"` // the operator, for the audit; required with Abort and Reset
}

// ObjectResult says how far each sink has read the object. It is empty if no sink has read
// anything.
type ObjectResult struct {
	Sinks []ObjectProgress `json:"sinks"`
}

// ObjectProgress is how far an object was read for one sink.
type ObjectProgress struct {
	Sink string `json:"sink"`
	objects.Progress
	Moved   time.Time `json:"moved"`
	Changed bool      `json:"changed,omitempty"` // aborted or reset by this order
}

// objectReads says how far objects of many documents were read.
type objectReads struct {
	layout
	records

	Journal journal.Journal
}

// Object says how far an object was read, aborts the reading, or withdraws the object's sequencer.
// An abort applies to the object that is at the key now. A newer object with the same key is read
// again.
func (o *objectReads) Object(ctx context.Context, order ObjectOrder) (ObjectResult, error) {
	result := ObjectResult{Sinks: []ObjectProgress{}}
	place, ok := strings.CutPrefix(order.Object, "s3://")
	bucket, key, _ := strings.Cut(place, "/")
	wrong := want(ok && bucket != "" && key != "", "object %q: want s3://bucket/key", order.Object)
	if order.Abort || order.Reset {
		wrong = cmp.Or(wrong, want(!order.Abort || !order.Reset, "abort and reset: want one of them"), named(order.By))
	}
	if wrong != nil {
		return result, wrong
	}
	for _, sink := range o.sinks() {
		row, err := o.table().One(ctx, shard.ObjectRow(sink, bucket, key), shard.Consistent)
		if err != nil {
			return result, fmt.Errorf("read the object's row of sink %s: %w", sink, err)
		}
		if row.Cursor == "" {
			continue
		}
		p := ObjectProgress{Sink: sink, Moved: row.RanAt.Time()}
		if p.Progress, err = objects.Parse(row.Cursor); err != nil {
			return result, fmt.Errorf("sink %s: %w", sink, err)
		}
		if order.Abort && !p.Done && p.Aborted == "" && p.Version != "" || order.Reset && p.Version != "" {
			if err = o.change(ctx, row, &p, order); err != nil {
				return result, fmt.Errorf("sink %s: %w", sink, err)
			}
		}
		p.At = objects.Position{From: p.At.From} // only the reading program needs the other fields
		result.Sinks = append(result.Sinks, p)
	}
	return result, nil
}

// change aborts or resets the reading. If a slice is being read in the meantime, its progress is
// refused, and the next receive of its message sees the change.
func (o *objectReads) change(ctx context.Context, row shard.Row, p *ObjectProgress, order ObjectOrder) error {
	by, step := order.By, journal.Aborted
	if order.Why != "" {
		by += ": " + order.Why
	}
	detail := order.Object + " by " + by
	if order.Reset {
		reset, err := p.Reset()
		if err != nil {
			return err
		}
		step = journal.Reset
		detail += ": sequencer " + p.Version
		p.Progress = reset
	} else {
		p.Aborted = by
	}
	now := max(shard.MicrosOf(o.Clock.Now()), row.RanAt+1)
	_, err := o.table().Ensure(ctx, shard.Advance(row.Doc, row.RanAt, now, p.String(), row.ExpiresAt),
		func(row shard.Row) bool { return row.RanAt == now })
	if _, refused := shard.AsRefused(err); refused {
		return errors.New("a slice of the object was read in the meantime: repeat the command")
	} else if err != nil {
		return fmt.Errorf("the reading may be changed or not: repeat the command: %w", err)
	}
	p.Changed, p.Moved = true, now.Time()
	o.Journal.Note(journal.Note{
		Step: step, At: o.Clock.Now(), Sink: p.Sink, Detail: detail,
	})
	return nil
}
