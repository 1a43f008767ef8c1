package shard

import (
	"context"
	"errors"
	"fmt"
)

// Store keeps the rows. It is safe for concurrent use. Every method may fail with an error for
// which errors.Is(err, ErrThrottled) holds: nothing was applied, trying again after a back-off is
// safe. After any other error than *Refused it is unknown whether a write was applied.
type Store interface {
	// Read returns one row for each document, in the order asked; a document without an item gives
	// a Row with its Doc only. Duplicate documents are allowed. With Eventual the rows may be older
	// than the last write; with Consistent they are not. "Row absent", "pending < k" and "dead = k"
	// are believed only from a consistent read or from the image of a refused write.
	Read(ctx context.Context, docs []DocID, c Consistency) ([]Row, error)

	// Write evaluates the condition and applies the update in one step and returns the row as it
	// was before. A false condition changes nothing and returns *Refused with the row as it stands
	// (one write unit is used all the same).
	Write(ctx context.Context, w Write) (old Row, err error)
}

// Scanner reads the whole table in segments. Only prune may.
type Scanner interface {
	// Scan returns up to limit rows of a segment (0 <= segment < segments) after the cursor. It also
	// returns the cursor of the next call, empty at the end. It is eventually consistent.
	Scan(ctx context.Context, segment, segments int, cursor string, limit int) (rows []Row, next string, err error)
}

// Consistency of a read.
type Consistency bool

// DynamoDB's two kinds of reads; the consistent one costs twice.
const (
	Eventual   Consistency = false
	Consistent Consistency = true
)

// ErrThrottled says that the store refused to work and applied nothing.
var ErrThrottled = errors.New("table is throttling")

// Refused is a write whose condition was false. Row is the item as it stood: as good as a
// consistent read.
type Refused struct {
	Write Transition
	Row   Row
}

func (r *Refused) Error() string { return fmt.Sprintf("%s refused for %s", r.Write, r.Row.Doc) }

// AsRefused unwraps a refusal.
func AsRefused(err error) (*Refused, bool) { return errors.AsType[*Refused](err) }

// OwnClaim reports whether the row that refused a CLAIM shows that this very claim had been applied
// and only its answer was lost.
func OwnClaim(row Row, b Bid) bool { return row.Owner == b.Token && row.Claimed == b.Key }

// Ended looks at the row that refused the end of a lease (see [Transition.EndsLease]). It reports
// whether the same write had been applied before and its answer was lost.
func Ended(row Row, l Lease, w Write) bool {
	switch w.Transition.Base() {
	case COMMIT:
		return row.Committed == l.Key
	case RELEASE:
		// What remembers the fence. The lock of a claim ahead is gone with its owner.
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
