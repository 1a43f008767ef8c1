// SPDX-License-Identifier: Apache-2.0

package receive

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// maxParallel bounds the number of conditional writes that one invocation makes in parallel.
const maxParallel = 32

// invocation is what the stages of one call of Handle share.
type invocation struct {
	start    time.Time
	clock    clock.Clock
	config   *config.Config
	sink     string
	lane     flight.Lane
	journal  journal.Journal
	parallel fanout.Runner
}

// until returns a context that ends after the given number of eighths of the function's time.
func (in *invocation) until(ctx context.Context, eighths time.Duration) (context.Context, context.CancelFunc) {
	// The eighths count from the start of the invocation. If a step ends early, the next step may
	// use its remaining time.
	end := in.start.Add(in.config.Receive.Timeout * eighths / 8)
	return in.clock.Deadline(ctx, end.Sub(in.clock.Now()))
}

// late reports whether it is too late to begin new work.
func (in *invocation) late() bool {
	return in.clock.Now().Sub(in.start) >= in.config.Receive.Timeout*stopShare/8
}

func (in *invocation) now() shard.Micros { return shard.MicrosOf(in.clock.Now()) }

func (in *invocation) note(n journal.Note) {
	n.At, n.Sink, n.Lane = in.clock.Now(), in.sink, string(in.lane)
	in.journal.Note(n)
}

// complete completes one event of a message. The message is acknowledged when it has no open events
// and none of its events failed.
func (in *invocation) complete(p *pending, n journal.Note) {
	p.msg.open--
	in.note(n)
}

// fail leaves the message to redelivery. It also keeps the message out of the flight, because all
// events of the message must be judged again together.
func (in *invocation) fail(p *pending, detail string) {
	p.msg.failed = true
	in.note(p.about(journal.Failed, detail))
}

// noteFailed writes a note about a failed call that concerns more than one message, with the class
// of the failure.
func (in *invocation) noteFailed(call string, err error) {
	if err != nil {
		in.note(journal.Note{Step: journal.CallFailed, Detail: call + ": " + backoff.Class(err)})
	}
}

// aged reports whether the message is so old that its row may have been deleted (design sections 5
// and 6).
func (in *invocation) aged(p *pending) bool {
	return in.config.Lifecycle.Aged(p.msg.FirstSent(), in.start)
}

// overdue reports whether this message has been tried for longer than deadDeadline. The time counts
// from the message's SentTimestamp, or from NotBefore if the queue kept the message back until
// then.
func (in *invocation) overdue(p *pending) bool {
	return in.config.Retry.Overdue(p.msg.Sent, p.NotBefore, in.start)
}
