// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Contender is a program that brings messages from a queue into a search engine.
type Contender struct {
	Name   string
	About  string // one sentence about the contender, for the report
	Lacks  string // what the contender does not offer, for the report
	Start  func(ctx context.Context, w *World)
	Usual  bool // a common form, weaker than it could be; other contenders are as strong as we can make them
	Delay  bool // whether the upstream sends every message with DelaySeconds = quiet
	Fenced bool // whether the writes carry versions that the sink compares

	// Visibility returns the visibility timeout of the queue. nil means six times the time-out of
	// the peers, as AWS advises.
	Visibility func(c *config.Config) time.Duration
}

// Contenders returns all contenders: lull first, then the strongest form of each rival, then the
// common forms.
func Contenders() []Contender {
	return []Contender{
		{
			Name: "lull", Fenced: true, Start: Lull, About: "the real code: receive, index, prune.",
			Visibility: func(c *config.Config) time.Duration { return c.Queues.Visibility },
		},
		{
			Name: "execution per document", Fenced: true, Start: Express,
			About: "a row keeps the newest version and its payload. One Express execution per burst waits until " +
				"the document was quiet, or max wait is over, and writes it alone.",
			Lacks: "a message that outlives its execution: it is acknowledged as soon as the row has it, so an " +
				"execution that is lost or stopped is a lost change; bulk requests; epochs, when the source's counter " +
				"goes back; an order of two edits with one version",
		},
		{
			Name: "version table", Fenced: true, Start: VersionTable,
			About: "each batch is collapsed; a conditional write asks a row whether the version is older; the " +
				"rest is written in bulk, at once.",
			Lacks: "debounce: a burst is written as often as it spans batches; epochs, when the source's counter goes " +
				"back; an order of two edits with one version; deletes after the sink was restored",
		},
		{
			Name: "DelaySeconds with versions", Fenced: true, Start: Delayed, Delay: true,
			About: "the upstream sends with DelaySeconds = quiet; each batch is collapsed and written in bulk; no table.",
			Lacks: "quiet: the delay counts from each message, and a burst is written as often as it spans batches; " +
				"deletes that last: an older message after index.gc_deletes brings the document back; epochs; an order " +
				"of two edits with one version; freedom of the producers, each of which must set the delay",
		},
		{
			Name: "visibility with versions", Fenced: true, Start: Visibility,
			About: "each message is made invisible until it is due; then each batch is collapsed and written in bulk; " +
				"no table.",
			Lacks: "one write per burst where the burst comes back in several batches; deletes that last: an older " +
				"message after index.gc_deletes brings the document back; epochs; an order of two edits with one " +
				"version; a hold that burns no receive, so that maxReceiveCount tells poison",
			Visibility: func(c *config.Config) time.Duration { return 6*peerTimeout + c.Queues.Live.Window },
		},
		{
			Name: "Standard execution per document", Fenced: true, Usual: true, Start: Standard,
			About: "the same as execution per document, with Standard executions, which may wait for a year.",
			Lacks: "the same as the Express form; a low price: every state transition costs; room below the quota of a few hundred starts a " +
				"second",
		},
		{
			Name: "idempotency table", Usual: true, Start: Idempotency,
			About: "as in Powertools: one write before and one after each message, one sink write per event, at once.",
			Lacks: "order: an older message that comes later overwrites a newer one; debounce: it writes once per event",
		},
		{
			Name: "lock polling", Usual: true, Start: LockPolling,
			About: "as in GOV.UK's consumer: a lock with expiry, a version key, a blocking wait for the lock, one " +
				"sink write per newer event, at once.",
			Lacks: "debounce; a resync, because an equal version is not newer; a function that does not wait for " +
				"somebody else's lock; safety where a lock expires during a write: an older version may win",
		},
		{
			Name: "DelaySeconds", Usual: true, Start: Delayed, Delay: true,
			About: "as DelaySeconds with versions, but the sink compares no versions.",
			Lacks: "order across batches; quiet; deletes that last; freedom of the producers",
		},
	}
}

// Strongest returns the contenders without the common forms for which a stronger form exists.
func Strongest() []Contender {
	return slices.DeleteFunc(Contenders(), func(c Contender) bool { return c.Usual })
}

// parsed is a message that a peer has parsed.
type parsed struct {
	queue.Message
	Event
}

func parseAll(batch []queue.Message) []parsed {
	out := make([]parsed, len(batch))
	for i := range batch {
		out[i] = parsed{batch[i], parse(batch[i].Body)}
	}
	return out
}

// byDocument groups messages by document. The messages of a document stay in order, and the
// documents are in the order of their first message.
func byDocument(msgs []parsed) (groups [][]parsed) {
	at := make(map[int]int, len(msgs))
	for _, m := range msgs {
		i, seen := at[m.Doc]
		if !seen {
			i = len(groups)
			at[m.Doc], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], m)
	}
	return groups
}

// newest returns the newest message of every document. If two messages have the same version, the
// one that was sent last counts as newer.
func newest(msgs []parsed) (out []parsed) {
	for _, all := range byDocument(msgs) {
		out = append(out, slices.MaxFunc(all, func(a, b parsed) int {
			return cmp.Or(cmp.Compare(a.Version, b.Version), a.Sent.Compare(b.Sent))
		}))
	}
	return out
}

// put writes documents in one request, with the upstream's version. put returns which documents are
// done: applied, or older than the document in a sink that compares versions.
func (w *World) put(ctx context.Context, v *fault.Invocation, docs ...parsed) []bool {
	ops := make([]sink.Op, len(docs))
	for i, d := range docs {
		ops[i] = sink.Op{
			Doc: shard.DocID("content#" + docName(d.Doc)), Kind: shard.Put, Fence: shard.Fence(d.Version),
			Version: strconv.Itoa(d.Version),
		}
		if d.Delete {
			ops[i].Kind = shard.Delete
		} else {
			ops[i].Document = fmt.Appendf(nil, `{"rank":"%0*d","title":"a document"}`, numberWide, d.Rank)
		}
	}
	done := make([]bool, len(docs))
	if ctx.Err() != nil {
		return done
	}
	for i, o := range v.Sink(w.Sink).Write(ctx, ops) {
		done[i] = o.Kind == sink.Applied || o.Kind == sink.Newer
	}
	return done
}

// inBulk writes documents in requests of the sink's bulk size. inBulk returns the ids of messages
// whose write failed and that must stay in the queue.
func (w *World) inBulk(ctx context.Context, v *fault.Invocation, docs []parsed) (failed []string) {
	for part := range slices.Chunk(docs, w.Config.Sinks[sinkName].BulkDocuments) {
		for i, ok := range w.put(ctx, v, part...) {
			if !ok {
				failed = append(failed, part[i].ID)
			}
		}
	}
	return failed
}

// each calls f for the messages, in order for one document, and in parallel for different
// documents. each returns the ids of messages that must stay in the queue.
func each(msgs []parsed, f func(m parsed) bool) []string {
	return slices.Concat(fanout.Map(nil, peerParallel, byDocument(msgs), func(all []parsed) (failed []string) {
		for _, m := range all {
			if !f(m) {
				failed = append(failed, m.ID)
			}
		}
		return failed
	})...)
}

// seconds rounds a duration up to whole seconds, as SQS needs.
func seconds(d time.Duration) time.Duration {
	return max(queue.WholeSeconds(d), 0)
}

// holds lists receipts by how long their messages must be invisible. Each duration needs one call.
type holds map[time.Duration][]string

func (h holds) add(m queue.Message, d time.Duration) {
	h[seconds(d)] = append(h[seconds(d)], m.Receipt)
}

// send makes the calls. If the call for a message fails, the message returns later.
func (h holds) send(ctx context.Context, q queue.Queue) {
	for d, receipts := range h {
		q.Hold(ctx, receipts, d)
	}
}

func eventKey(m parsed) string { return fmt.Sprintf("%d/%d", m.Doc, m.Version) }
func docKey(m parsed) string   { return strconv.Itoa(m.Doc) }
