// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"errors"
	"fmt"
)

// Store keeps the rows. It is safe for concurrent use. Every method may fail with an error for
// which errors.Is(err, ErrThrottled) holds. Nothing was applied then, and the caller may try again
// after a back-off. After any other error except *Refused it is unknown whether a write was
// applied.
type Store interface {
	// Read returns one row for each document, in the order of docs. For a document without an item
	// it returns a Row that has only its Doc. Documents may be listed twice. With Eventual the rows
	// may be older than the last write, with Consistent they are not. A caller must not rely on
	// "row absent", "pending < k" or "dead = k" from an Eventual read. For these facts it needs a
	// consistent read or the image of a refused write.
	Read(ctx context.Context, docs []DocID, c Consistency) ([]Row, error)

	// Write evaluates the condition and applies the update in one step. It returns the row before
	// the update. If the condition is false, Write changes nothing and returns *Refused with the
	// present row. A refused write costs one write unit, as an applied write does.
	Write(ctx context.Context, w Write) (old Row, err error)
}

// Scanner reads the whole table in segments. Only prune may use it.
type Scanner interface {
	// Scan returns up to limit rows of a segment (0 <= segment < segments) after the cursor. It
	// also returns the cursor of the next call, empty at the end. Scan is eventually consistent.
	Scan(ctx context.Context, segment, segments int, cursor string, limit int) (rows []Row, next string, err error)
}

// Consistency is the kind of a read.
type Consistency bool

// These are DynamoDB's two kinds of reads. A consistent read costs twice as much.
const (
	Eventual   Consistency = false
	Consistent Consistency = true
)

// ErrThrottled says that the store refused a call and applied nothing.
var ErrThrottled = errors.New("table is throttling")

// Refused is the error of a write whose condition was false. Row is the item at that moment. It is
// as reliable as a consistent read.
type Refused struct {
	Write Transition
	Row   Row
}

func (r *Refused) Error() string { return fmt.Sprintf("%s refused for %s", r.Write, r.Row.Doc) }

// AsRefused returns the refusal in an error's chain, if there is one.
func AsRefused(err error) (*Refused, bool) { return errors.AsType[*Refused](err) }

// OwnClaim reports whether the row that refused a CLAIM shows that this claim was already applied.
// Then only the answer of an earlier try was lost.
func OwnClaim(row Row, b Bid) bool { return row.Owner == b.Token && row.Claimed == b.Key }

// Ended reports whether a write that ends a lease (see [Transition.EndsLease]) had already been
// applied, so that only its answer was lost. row is the row that refused the write.
func Ended(row Row, l Lease, w Write) bool {
	switch w.Transition.Base() {
	case COMMIT:
		return row.Committed == l.Key
	case RELEASE:
		// The attribute lease_until holds the fence. If the claim was ahead of the clock,
		// lease_until was removed.
		at := row.LeaseUntil
		if l.Ahead {
			at = row.LastWrite
		}
		return row.Owner == "" && at == l.At && row.Claimed == l.Key
	case REJECT:
		return row.Dead == l.Key && row.Owner != l.Token
	case REASSERTED:
		return row.Owner != l.Token && row.LastWrite >= l.At
	}
	return false
}
