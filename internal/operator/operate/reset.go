package operate

import (
	"context"
	"errors"
	"fmt"

	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/shard"
)

// ResetOrder says from which version on a document shall take events again.
type ResetOrder struct {
	Key   shard.DocID `json:"key"`
	To    string      `json:"to"`              // the upstream's version, which is accepted again itself
	Epoch *uint32     `json:"epoch,omitempty"` // of that version; nil for that of the committed one
	By    string      `json:"by,omitempty"`    // for the audit
}

// Resetted says what a reset changed.
type Resetted struct {
	Key      shard.DocID `json:"key"`
	Version  string      `json:"version"`   // what was committed, as the upstream writes it
	OrderKey string      `json:"order_key"` // the same as an order key
	To       string      `json:"to"`
	// Others are those of the other sinks of its collection, where the key names none.
	Others []Resetted `json:"others,omitempty"`
}

// errBusy says that somebody works on the document: the reset is for later.
var errBusy = errors.New("nothing was changed")

// Reset makes the versions of a document from To on new again (design section 5, RESET). It is
// refused while anybody works on the document, and where To is not below what is committed. What is
// in the sink stays until the upstream sends one of those versions.
func (o *Operator) Reset(ctx context.Context, r ResetOrder) (Resetted, error) {
	if err := named(r.By); err != nil {
		return Resetted{}, err
	}
	// One of the sinks that was away may not have the version at all.
	all, err := eachRow(o, r.Key, func(row shard.DocID) (Resetted, error) {
		r.Key = row
		return o.reset(ctx, r)
	})
	if err != nil {
		return Resetted{}, err
	}
	all[0].Others = all[1:]
	return all[0], nil
}

func (o *Operator) reset(ctx context.Context, r ResetOrder) (Resetted, error) {
	table := o.table()
	row, err := table.One(ctx, r.Key, shard.Consistent)
	if err != nil {
		return Resetted{}, fmt.Errorf("reset %s: read the row: %w", r.Key, err)
	}
	now := shard.MicrosOf(o.Clock.Now())
	if r.Epoch == nil && row.Committed.IsFinal() { // that of a tombstone is nobody's
		r.Epoch = new(o.newestEpoch(r.Key.Collection()))
	}
	floor, err := resetFloor(row, r, now)
	if err != nil {
		return Resetted{}, fmt.Errorf("reset %s: %w", r.Key, err)
	}
	w := shard.Reset(r.Key, row.Committed, floor, now)
	_, err = table.Ensure(ctx, w, func(row shard.Row) bool { return row.Committed == floor })
	if _, refused := shard.AsRefused(err); refused {
		return Resetted{}, fmt.Errorf("reset %s: its row changed meanwhile, try again: %w", r.Key, errBusy)
	}
	if err != nil {
		return Resetted{}, fmt.Errorf("reset %s: it may be reset or not, ask explain: %w", r.Key, err)
	}
	out := Resetted{
		Key: r.Key, Version: row.Committed.VersionText(), OrderKey: row.Committed.String(), To: floor.VersionText(),
	}
	o.Journal.Note(journal.Note{
		Step: journal.Reset, At: o.Clock.Now(), Doc: r.Key, Key: row.Committed, Sink: o.Config.SinkOf(r.Key),
		Detail: fmt.Sprintf("by %s: versions from %s on are accepted again", r.By, out.To),
	})
	return out, nil
}

// resetFloor is what the row shall show as committed, or why it cannot be reset.
func resetFloor(row shard.Row, r ResetOrder, now shard.Micros) (shard.OrderKey, error) {
	switch {
	case row.Foreign():
		return "", errors.New("the row has a newer schema: update lull")
	case row.Committed == "":
		return "", &kindError{errors.New("nothing is committed, so that every version is accepted"), ErrNotFound}
	case row.LeaseUntil >= now:
		return "", fmt.Errorf("it is being written, the lease runs until %s: %w", clockText(row.LeaseUntil), errBusy)
	case row.Pending != "":
		return "", fmt.Errorf("version %s is pending: wait until it is written, or `lull cancel` it: %w",
			row.Pending.VersionText(), errBusy)
	case row.Claimed != "":
		return "", fmt.Errorf("version %s was claimed, got no answer and may be in the sink: redrive its dead letter "+
			"first: %w", row.Claimed.VersionText(), errBusy)
	}
	is, err := row.Committed.Parts()
	if err != nil {
		return "", fmt.Errorf("read what is committed: %w", err)
	}
	epoch := is.Epoch
	if r.Epoch != nil {
		epoch = *r.Epoch
	}
	version, err := shard.ParseVersion(is.Version.Class(), r.To)
	if err != nil {
		return "", inputf("--to: %w", err)
	}
	floor, err := shard.Floor(epoch, version)
	if err != nil {
		return "", inputf("--to: %w", err)
	}
	if floor >= row.Committed {
		return "", inputf("--to: version %s of epoch %d is not below the committed version %s of epoch %d", version.Text(),
			epoch, is.Version.Text(), is.Epoch)
	}
	return floor, nil
}

// newestEpoch is the newest epoch of the sources whose events may be of a collection.
func (o *Operator) newestEpoch(c shard.Collection) (epoch uint32) {
	for _, s := range o.Config.SourcesOf(string(c)) {
		epoch = max(epoch, s.Epoch)
	}
	return epoch
}
