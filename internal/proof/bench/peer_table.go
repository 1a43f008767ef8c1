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

// Bytes of the peers' items.
const (
	idempotencyBytes = 200
	lockBytes        = 150
	versionBytes     = 150
)

// VersionTable collapses each batch, and asks a row of each document whether its version is older,
// which an equal one is not. It writes what is left in bulk. The sink compares versions too, so a
// slow invocation does no harm.
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

// Idempotency is the loop of Powertools' idempotency utility around each message: a conditional
// write that says "in progress", the work, a write that says "completed". A message that somebody
// else works on stays and comes back.
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
	lockPoll   = 200 * time.Millisecond // between two tries for a lock
)

// LockPolling takes a lock per document, waiting for it inside the function, compares the version
// key, writes and sets it. Lock and version key are items here, so that every contender is priced
// by requests.
func LockPolling(ctx context.Context, w *World) {
	locks, versions := newTable(w, lockBytes), newTable(w, lockBytes)
	w.poll(ctx, "consumer", peerTimeout, func(ctx context.Context, v *fault.Invocation, clk clock.Clock,
		batch []queue.Message,
	) []string {
		return each(parseAll(batch), func(m parsed) bool {
			me := w.invoked.Add(1) // a fresh owner
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
			_, _, _ = locks.write(ctx, v, docKey(m), func(r *record) bool { // else it expires
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
