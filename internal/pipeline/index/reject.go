// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"errors"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// lastRefusal reports whether one more refusal of the document reaches the limit.
func (c *closer) lastRefusal(d *document) bool {
	return d.row.Refusals+1 >= int64(c.config.Retry.MaxRefusals)
}

// reject sends the dead letter and then does REJECT. If the dead letter cannot be sent, the message
// stays and is tried again.
func (c *closer) reject(ctx context.Context, d *document, reason deadletter.Reason, detail string) func() {
	e := d.newest()
	// The dead letter is sent before the row is changed. After a crash in between, the dead letter
	// is sent again, and parking it twice does no harm (design section 10).
	id, err := c.sendLetter(ctx, d, e, reason, detail)
	if c.noteFailed("send the dead letter", d.id, err) {
		release := c.release(ctx, d, "refused: dead letter not sent", 0, false)
		if !errors.Is(err, queue.ErrTooLarge) {
			return release
		}
		return func() {
			release()
			c.giveUp(d, e, "the dead letter is too large to send: SQS moves the message by its receive count")
		}
	}
	why := string(reason) + ": " + detail
	a := c.endLease(ctx, d.lease, d.row, func(image shard.Row) shard.Write {
		return shard.Reject(d.lease, why, c.config.Lifecycle.Expires(c.clock.Now()), image)
	})
	return func() {
		if a.err != nil {
			c.waitAfterUnended(d, a.err, "REJECT")
			return
		}
		d.row = a.row
		c.note(c.about(d, e, journal.Rejected, why))
		c.deadLettered(d, e, id, why)
	}
}

// deadLettered removes a version from the flight after its dead letter is sent and its row records
// the dead letter.
func (c *closer) deadLettered(d *document, e *heldEntry, letterID, why string) {
	c.drop(e)
	n := c.about(d, e, journal.DeadLettered, why)
	if n.Letter = letterID; letterID == "" {
		n.Step = journal.Dropped // `deadLetters: none`
	}
	c.note(n)
	c.completeStored(d, e.Key)
	if next := d.newest(); next != nil {
		// REJECT set `claimed` back to its value before the claim. PARK left `claimed` unchanged.
		// If `claimed` is still higher than the next version, a claim has an unknown outcome.
		if d.row.Claimed > next.Key {
			c.note(c.about(d, next, journal.Blocked,
				"a newer version may be in the sink and is a dead letter: redrive it first"))
		}
		c.waitForOlder(d)
	}
}

// sendLetter sends the dead letter and returns the id of the dead letter, or "" if the settings
// want no dead letters.
func (c *closer) sendLetter(ctx context.Context, d *document, e *heldEntry, reason deadletter.Reason,
	detail string,
) (id string, err error) {
	m := *c.message(e)
	if c.config.DeadLetters == config.DeadLettersNone {
		return "", nil
	}
	l := deadletter.New(m, reason, detail, d.id, e.Key, e.Index, c.clock.Now())
	l.Sink, l.Lane = c.sinkName, string(c.manifest.Lane)
	if l.Refusals = d.row.Refusals; reason == deadletter.Refusals {
		l.Refusals++ // the last refusal: REJECT ends it, and no RELEASE counts it
	}
	l.FirstError, l.LastError = d.row.LastError, detail
	out, err := l.Message()
	if err != nil {
		return "", err
	}
	return l.ID, queue.ErrorAt(c.dead.Send(ctx, []queue.Outgoing{out}), 0)
}

// panicAttempts is the number of unanswered claims after which a panic of the sink's client counts
// as the document's fault. From the fourth on, the document is alone in its request.
const panicAttempts = 6

// parkPanics ends versions on which the sink's client panicked again and again while they were
// alone in their request: first it sends the dead letter, then it does PARK (ADR 0021). PARK needs
// an expired lease. It leaves `claimed` unchanged: the version may be in the sink, so nothing older
// is written. parkPanics returns the other claims.
func parkPanics(ctx context.Context, c *closer, claims []*document) []*document {
	dead, others := split(claims, func(d *document) bool {
		e := d.newest()
		return c.state.Panicked.Has(e.item) && d.row.Claimed == e.Key && d.row.Attempts >= panicAttempts
	})
	c.finishAll(len(dead), func(i int) func() { return parkOne(ctx, c, dead[i]) })
	return others
}

func parkOne(ctx context.Context, c *closer, d *document) func() {
	e := d.newest()
	const detail = "the sink's client panics on this document"
	id, err := c.sendLetter(ctx, d, e, deadletter.Panic, detail)
	if c.noteFailed("send the dead letter", d.id, err) {
		return func() { c.wait(d, c.now().Add(c.delay(c.state.Turn)), "the dead letter was not sent") }
	}
	mark, row, err := c.rows().Park(ctx, d.id, e.Key, c.config.Lifecycle.Expires(c.clock.Now()), d.row,
		func(tr shard.Transition) { c.note(c.about(d, e, journal.RowRefused, tr.String())) })
	c.noteFailed("PARK", d.id, err)
	return func() {
		if !mark.Done() {
			c.wait(d, c.now().Add(c.delay(c.state.Turn)), "PARK did not succeed")
			return
		}
		d.row = row
		c.deadLettered(d, e, id, string(deadletter.Panic)+": "+detail)
	}
}
