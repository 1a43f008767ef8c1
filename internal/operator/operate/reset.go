// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// ResetOrder names the lowest version of a document that is accepted again.
type ResetOrder struct {
	Key   shard.DocID `json:"key"`
	To    string      `json:"to"`              // the lowest version that is accepted again, as the upstream writes it
	Epoch *uint32     `json:"epoch,omitempty"` // the epoch of To; nil for the epoch of the committed version
	By    string      `json:"by,omitempty"`    // the operator, for the audit
}

// Resetted says what a reset changed.
type Resetted struct {
	Key      shard.DocID `json:"key"`
	Version  string      `json:"version"`   // the version that was committed, as the upstream writes it
	OrderKey string      `json:"order_key"` // the same version as an order key
	To       string      `json:"to"`
	// GivenBack says that this reset only accepts one version again, which an earlier reset withdrew.
	GivenBack bool `json:"given_back,omitempty"`
	// Forgotten has the versions below To that earlier resets withdrew and that the row no longer
	// lists. They are stale, until a reset to one of them or below it.
	Forgotten []string `json:"forgotten,omitempty"`
	// Others are the results for the other sinks of the collection, if the key names no sink.
	Others []Resetted `json:"others,omitempty"`
}

// errBusy says that the document is in motion, so that the operator has to try the reset later.
var errBusy = errors.New("nothing was changed")

// resetter resets documents.
type resetter struct {
	layout
	records

	Journal journal.Journal
}

// Reset accepts the versions of a document from To on again (design section 5, RESET). It is
// refused while the document is in motion, or if To is not below the committed version. The
// document stays in the sink until the upstream sends one of the accepted versions. The committed
// version is withdrawn: it is accepted again only after a reset names exactly this version as To.
func (o *resetter) Reset(ctx context.Context, r ResetOrder) (Resetted, error) {
	if err := named(r.By); err != nil {
		return Resetted{}, err
	}
	// A sink that was away may not have the absurd version.
	all, err := eachRow(o.layout, r.Key, func(row shard.DocID) (Resetted, error) {
		r.Key = row
		return o.reset(ctx, r)
	})
	if err != nil {
		return Resetted{}, err
	}
	all[0].Others = all[1:]
	return all[0], nil
}

func (o *resetter) reset(ctx context.Context, r ResetOrder) (Resetted, error) {
	table := o.table()
	row, err := table.One(ctx, r.Key, shard.Consistent)
	if err != nil {
		return Resetted{}, fmt.Errorf("reset %s: read the row: %w", r.Key, err)
	}
	now := shard.MicrosOf(o.Clock.Now())
	if r.Epoch == nil && row.Committed.IsFinal() { // the epoch of a forgotten document's tombstone belongs to no source
		r.Epoch = new(o.newestEpoch(r.Key.Collection()))
	}
	floor, err := resetFloor(row, r, now)
	if err != nil {
		return Resetted{}, fmt.Errorf("reset %s: %w", r.Key, err)
	}
	w, says := shard.Reset(row, floor, now), "versions from %s on are accepted again"
	given := floor > row.Committed
	if given {
		w, says = shard.GiveBack(row, floor), "version %s, which was withdrawn, is accepted again"
	}
	want := w.Apply(row)
	_, err = table.Ensure(ctx, w, func(r shard.Row) bool {
		return r.Committed == want.Committed && r.TakenBack == want.TakenBack
	})
	if _, refused := shard.AsRefused(err); refused {
		return Resetted{}, fmt.Errorf("reset %s: its row changed in the meantime, try again: %w", r.Key, errBusy)
	}
	if err != nil {
		return Resetted{}, fmt.Errorf("reset %s: it may be reset or not: see `lull explain`: %w", r.Key, err)
	}
	out := Resetted{
		Key: r.Key, Version: row.Committed.VersionText(), OrderKey: row.Committed.String(), To: floor.VersionText(),
		GivenBack: given,
	}
	detail := fmt.Sprintf("by %s: "+says, r.By, out.To)
	if !given {
		out.Forgotten = forgotten(row, want, floor)
	}
	if len(out.Forgotten) > 0 {
		detail += "; the row forgot version " + strings.Join(out.Forgotten, ", ")
	}
	o.Journal.Note(journal.Note{
		Step: journal.Reset, At: o.Clock.Now(), Doc: r.Key, Key: row.Committed, Sink: o.Config.SinkOf(r.Key),
		Detail: detail,
	})
	return out, nil
}

// forgotten returns the withdrawn versions that the row no longer lists after the reset. It leaves
// out the version of the floor, which the operator wants to be accepted.
func forgotten(was, is shard.Row, floor shard.OrderKey) (versions []string) {
	for _, k := range was.TakenBack.Keys() {
		if k < floor && !is.TakenBack.Has(k) {
			versions = append(versions, k.VersionText())
		}
	}
	return versions
}

// resetFloor returns the order key that becomes the committed one, or an error that says why the
// row cannot be reset.
func resetFloor(row shard.Row, r ResetOrder, now shard.Micros) (shard.OrderKey, error) {
	switch {
	case row.Foreign():
		return "", errors.New("the row has a newer schema: update lull")
	case row.Committed == "":
		return "", &kindError{errors.New("nothing is committed, so that every version is accepted"), ErrNotFound}
	}
	floor, err := floorOf(row.Committed, r)
	if err != nil || row.TookVersion(floor) && floor > row.Committed {
		return floor, err // accepting one version again does not need an idle document
	}
	switch {
	case row.LeaseUntil >= now:
		return "", fmt.Errorf("it is being written, the lease runs until %s: %w", clockText(row.LeaseUntil), errBusy)
	case row.Pending != "":
		return "", fmt.Errorf("version %s is pending: wait until it is written, or `lull cancel` it: %w",
			row.Pending.VersionText(), errBusy)
	case row.Claimed != "":
		return "", fmt.Errorf("version %s was claimed, got no answer and may be in the sink: redrive its dead letter "+
			"first: %w", row.Claimed.VersionText(), errBusy)
	}
	if floor >= row.Committed {
		was, _ := row.Committed.Parts()
		is, _ := floor.Parts()
		return "", inputf("--to: version %s of epoch %d is not below the committed version %s of epoch %d",
			is.Version.Text(), is.Epoch, was.Version.Text(), was.Epoch)
	}
	if len(row.TakeBack(floor).Keys()) > shard.MaxTakenBack {
		var taken []string
		for _, k := range row.TakenBack.Keys() {
			taken = append(taken, k.VersionText())
		}
		return "", fmt.Errorf("%d versions of it were withdrawn already, and the row remembers no more: accept one of "+
			"them again with --to (%s), or raise the epoch of the source", len(taken), strings.Join(taken, ", "))
	}
	return floor, nil
}

// floorOf returns the floor of the version that the order names.
func floorOf(committed shard.OrderKey, r ResetOrder) (shard.OrderKey, error) {
	is, err := committed.Parts()
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
	return floor, nil
}

// newestEpoch returns the newest epoch of the sources that may feed a collection.
func (o *resetter) newestEpoch(c shard.Collection) (epoch uint32) {
	for _, s := range o.Config.SourcesOf(string(c)) {
		epoch = max(epoch, s.Epoch)
	}
	return epoch
}
