// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"cmp"
	"context"
	"fmt"

	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/rows"
	"github.com/lullhq/lull/internal/shard"
)

// Became says what became of a dead letter that was sent again. The rows know it before prune
// removes the dead letter. It is empty as long as nothing is decided.
type Became string

// What a redrive can become.
const (
	BecameCommitted Became = "committed"  // its version is committed
	BecameStale     Became = "stale"      // a newer version is committed, or an operator took its version back
	BecameSkipped   Became = "skipped"    // the settings skip it now
	BecameDead      Became = "dead again" // it failed again, and the failure has a dead letter of its own
)

// sentKey is a version of a message that was sent again.
type sentKey struct {
	doc shard.DocID
	key shard.OrderKey
}

// sentKeys returns the versions of a dead letter. If the dead letter has no version, the present
// settings decode its message. all is false if they cannot decode all of it.
func (o *letters) sentKeys(l deadletter.Letter) (found []sentKey, all bool) {
	if l.Doc != "" && l.Key != "" {
		return []sentKey{{l.Doc, l.Key}}, true
	}
	m := queue.Message{ID: l.MessageID, Body: l.Body, Attributes: l.Attributes, Sent: cmp.Or(l.FirstSent, l.Sent)}
	for _, r := range o.Sources.At(l.Sink).Decode(m) {
		switch {
		case r.Invalid != nil || r.Object != nil:
			return nil, false
		case r.Skip == "":
			row, _ := o.lay.Config.RowAt(r.Event.Doc, l.Sink)
			found = append(found, sentKey{row, r.Event.Key})
		}
	}
	return found, true
}

// became returns what became of a dead letter that was sent again, and why.
func (o *letters) became(ctx context.Context, l deadletter.Letter) (state Became, why string, err error) {
	keys, all := o.sentKeys(l)
	switch {
	case !all:
		return "", "", nil
	case len(keys) == 0:
		return BecameSkipped, "the settings skip its message now", nil
	}
	docs := make([]shard.DocID, len(keys))
	for i, k := range keys {
		docs[i] = k.doc
	}
	read, err := rows.Table{Store: o.redrives.Shards, Clock: o.redrives.Clock}.Of(ctx, docs, shard.Consistent)
	if err != nil {
		return "", "", fmt.Errorf("read the row: %w", err)
	}
	state = BecameCommitted
	open := false
	for _, k := range keys {
		row := read[k.doc]
		text := fmt.Sprintf("%s: version %s", k.doc, k.key.VersionText())
		switch shard.Judge(row, k.key, k.key.Class(), false) {
		case shard.Duplicate:
			if why == "" {
				why = text + " is committed"
			}
		case shard.Stale:
			state, why = BecameStale, fmt.Sprintf("%s is not written, because version %s is committed", text,
				row.Committed.VersionText())
		case shard.TakenBack:
			state, why = BecameStale, text+" is not written, because an operator took it back"
		default:
			again, ok, err := o.redrives.Letters.Get(ctx, deadletter.ID(k.doc, k.key, ""))
			if err != nil {
				return "", "", err
			}
			if ok && again.State == deadletter.Parked && !again.Died.Before(l.RedrivenAt) {
				return BecameDead, fmt.Sprintf("%s: %s", again.Reason, again.Detail), nil
			}
			open = true
		}
	}
	if open {
		return "", "", nil
	}
	return state, why, nil
}
