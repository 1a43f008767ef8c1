package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/objects"
	"github.com/lullhq/lull/internal/shard"
)

// ObjectOrder asks how far an object of many documents was read, or ends its reading.
type ObjectOrder struct {
	Object string `json:"object"` // s3://bucket/key, the key as it is
	Abort  bool   `json:"abort,omitempty"`
	Why    string `json:"why,omitempty"`
	By     string `json:"by,omitempty"` // who asks, for the audit; required with Abort
}

// ObjectResult is what the sinks have read of the object of a place. It is empty where none has
// read anything.
type ObjectResult struct {
	Sinks []ObjectProgress `json:"sinks"`
}

// ObjectProgress is how far an object was read for one sink.
type ObjectProgress struct {
	Sink string `json:"sink"`
	objects.Progress
	Moved   time.Time `json:"moved"`
	Changed bool      `json:"changed,omitempty"` // aborted by this order
}

// Object says how far an object was read, or aborts that. An abort holds for the object that is
// there now: a newer one at its place is read.
func (o *Operator) Object(ctx context.Context, order ObjectOrder) (ObjectResult, error) {
	result := ObjectResult{Sinks: []ObjectProgress{}}
	place, ok := strings.CutPrefix(order.Object, "s3://")
	bucket, key, _ := strings.Cut(place, "/")
	wrong := want(ok && bucket != "" && key != "", "object %q: want s3://bucket/key", order.Object)
	if order.Abort {
		wrong = cmp.Or(wrong, named(order.By))
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
		if order.Abort && !p.Done && p.Aborted == "" {
			if err = o.abort(ctx, row, &p, order); err != nil {
				return result, fmt.Errorf("sink %s: %w", sink, err)
			}
		}
		p.At = objects.Position{From: p.At.From} // the rest is for the program that reads on
		result.Sinks = append(result.Sinks, p)
	}
	return result, nil
}

func (o *Operator) abort(ctx context.Context, row shard.Row, p *ObjectProgress, order ObjectOrder) error {
	p.Aborted = order.By
	if order.Why != "" {
		p.Aborted += ": " + order.Why
	}
	now := max(shard.MicrosOf(o.Clock.Now()), row.RanAt+1)
	_, err := o.table().Ensure(ctx, shard.Advance(row.Doc, row.RanAt, now, p.String(), row.ExpiresAt),
		func(row shard.Row) bool { return row.RanAt == now })
	if _, refused := shard.AsRefused(err); refused {
		return errors.New("a slice was read meanwhile: ask again")
	} else if err != nil {
		return fmt.Errorf("it may be aborted or not, ask again: %w", err)
	}
	p.Changed, p.Moved = true, now.Time()
	o.Journal.Note(journal.Note{
		Step: journal.Aborted, At: o.Clock.Now(), Sink: p.Sink, Detail: order.Object + " by " + p.Aborted,
	})
	return nil
}
