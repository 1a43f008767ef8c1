package bench

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/local/fault"
	"github.com/lullhq/lull/internal/queue"
)

// Bytes of the peers' items.
const (
	idempotencyBytes = 200
	lockBytes        = 150
)

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
			r, begun := t.write(ctx, v, eventKey(m), func(r *record) bool {
				if r.done || r.exists && r.until.After(now) {
					return false
				}
				r.until = now.Add(peerTimeout)
				return true
			})
			if !begun {
				return r.done
			}
			if !w.put(ctx, v, m) {
				return false
			}
			_, ok := t.write(ctx, v, eventKey(m), func(r *record) bool {
				r.done = true
				return true
			})
			return ok
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
				_, got := locks.write(ctx, v, docKey(m), func(r *record) bool {
					if r.owner != 0 && r.until.After(now) {
						return false
					}
					r.owner, r.until = me, now.Add(lockExpiry)
					return true
				})
				if got {
					break
				}
				if clk.Sleep(ctx, lockPoll) != nil {
					return false
				}
			}
			ok := true
			if versions.read(ctx, v, docKey(m)).version < m.version {
				if ok = w.put(ctx, v, m); ok {
					versions.write(ctx, v, docKey(m), func(r *record) bool {
						r.version = m.version
						return true
					})
				}
			}
			locks.write(ctx, v, docKey(m), func(r *record) bool {
				if r.owner != me {
					return false
				}
				*r = record{}
				return true
			})
			return ok
		})
	})
}
