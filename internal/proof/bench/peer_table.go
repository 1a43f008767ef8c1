// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/queue"
)

// Sizes of the items in the peers' tables, in bytes.
const (
	idempotencyBytes = 200
	lockBytes        = 150
	versionBytes     = 150
)

// VersionTable collapses each batch, and asks a row of each document whether its version is older
// than the message's. An equal version is not older. The remaining documents are written in bulk.
// The sink also compares versions, so a slow invocation does no harm.
func VersionTable(ctx context.Context, w *World) {
	t := newTable(w, versionBytes)
	w.poll(ctx, "write", peerTimeout, func(ctx context.Context, v *fault.Invocation, _ clock.Clock,
		batch []queue.Message,
	) []string {
		var mu sync.Mutex
		var won []parsed
		failed := each(newest(parseAll(batch)), func(m parsed) bool {
			_, ok, err := t.write(ctx, v, docKey(m), func(r *record) bool {
				if r.event.Version > m.Version {
					return false
				}
				r.event = m.Event
				return true
			})
			if ok && err == nil {
				mu.Lock()
				defer mu.Unlock()
				won = append(won, m)
			}
			return err == nil
		})
		return append(failed, w.inBulk(ctx, v, won)...)
	})
}

var errNotWritten = errors.New("the sink did not take it")

// Idempotency runs the loop of Powertools' idempotency utility around each message. The loop makes
// a conditional write that says "in progress", processes the message, and makes a write that says
// "completed". If another invocation processes the message, the message stays in the queue and is
// received again.
func Idempotency(ctx context.Context, w *World) {
	t := newTable(w, idempotencyBytes)
	w.poll(ctx, "loop", peerTimeout, func(ctx context.Context, v *fault.Invocation, clk clock.Clock,
		batch []queue.Message,
	) []string {
		return each(parseAll(batch), func(m parsed) bool {
			now := clk.Now()
			r, begun, err := t.write(ctx, v, eventKey(m), func(r *record) bool {
				if r.done || r.exists && r.until.After(now) {
					return false
				}
				r.until = now.Add(peerTimeout)
				return true
			})
			if err != nil || !begun {
				return err == nil && r.done
			}
			if !w.put(ctx, v, m)[0] {
				return false
			}
			_, _, err = t.write(ctx, v, eventKey(m), func(r *record) bool {
				r.done = true
				return true
			})
			return err == nil
		})
	})
}

const (
	lockExpiry = 30 * time.Second
	lockPoll   = 200 * time.Millisecond // the wait between two tries to get a lock
)

// LockPolling takes a lock on the document, and waits for the lock inside the function. The
// function then compares the version key, writes the document, and sets the version key. Lock and
// version key are table items here, so that all contenders are priced by requests.
func LockPolling(ctx context.Context, w *World) {
	locks, versions := newTable(w, lockBytes), newTable(w, lockBytes)
	w.poll(ctx, "consumer", peerTimeout, func(ctx context.Context, v *fault.Invocation, clk clock.Clock,
		batch []queue.Message,
	) []string {
		return each(parseAll(batch), func(m parsed) bool {
			me := w.invoked.Add(1) // a new owner
			for {
				now := clk.Now()
				_, got, err := locks.write(ctx, v, docKey(m), func(r *record) bool {
					if r.owner != 0 && r.until.After(now) {
						return false
					}
					r.owner, r.until = me, now.Add(lockExpiry)
					return true
				})
				if got {
					break
				}
				if err != nil || clk.Sleep(ctx, lockPoll) != nil {
					return false
				}
			}
			r, err := versions.read(ctx, v, docKey(m))
			if err == nil && r.event.Version < m.Version {
				if !w.put(ctx, v, m)[0] {
					err = errNotWritten
				} else {
					_, _, err = versions.write(ctx, v, docKey(m), func(r *record) bool {
						r.event = m.Event
						return true
					})
				}
			}
			_, _, _ = locks.write(ctx, v, docKey(m), func(r *record) bool { // if this fails, the lock expires
				if r.owner != me {
					return false
				}
				*r = record{}
				return true
			})
			return err == nil
		})
	})
}
