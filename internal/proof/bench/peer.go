package bench

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fanout"
	"github.com/lullhq/lull/internal/local/fault"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Contender is a way from a queue to a search engine.
type Contender struct {
	Name   string
	About  string // one sentence for the report
	Lacks  string // what it does not give, for the report
	Start  func(ctx context.Context, w *World)
	Delay  bool // the upstream sends every message with DelaySeconds = quiet
	Fenced bool // its writes carry versions that the sink compares

	// Visibility is the queue's; nil for six times the peers' time-out, as AWS advises.
	Visibility func(c *config.Config) time.Duration
}

// Contenders lists them, lull first.
func Contenders() []Contender {
	return []Contender{
		{
			Name: "lull", Fenced: true, Start: Lull, About: "the real code: receive, index, prune.",
			Visibility: func(c *config.Config) time.Duration { return c.Queues.Visibility },
		},
		{
			Name: "execution per document", Start: Executions,
			About: "a row remembers the newest version and its payload, one Standard execution per burst waits until " +
				"the document was quiet and writes it alone.",
			Lacks: "a message that outlives its execution: it is acknowledged as soon as the row has it, and a lost " +
				"or stopped execution is a lost document; bulk requests; a cap: a document that is never quiet is " +
				"never written; room below the quota of a few hundred starts a second",
		},
		{
			Name: "idempotency table", Start: Idempotency,
			About: "as in Powertools: one write before and one after each message, one sink write per event, at once.",
			Lacks: "order: an older message that comes later overwrites a newer one, unless the sink compares the " +
				"upstream's versions; debounce: it writes once per event",
		},
		{
			Name: "lock polling", Start: LockPolling,
			About: "as in GOV.UK's consumer: a lock with expiry, a version key, a blocking wait for the lock, one " +
				"sink write per newer event, at once.",
			Lacks: "debounce; a function that does not wait for somebody else's lock; safety where a lock expires " +
				"during a write: an older version may win",
		},
		{
			Name: "visibility only", Start: Visibility,
			About: "each message is made invisible until it is due, then the batch is collapsed and written in bulk; " +
				"no table.",
			Lacks: "order across batches; one write per burst where the burst comes back in several; a hold that " +
				"burns no receive, so that maxReceiveCount tells poison",
			Visibility: func(c *config.Config) time.Duration { return 6*peerTimeout + c.Queues.Live.Window },
		},
		{
			Name: "DelaySeconds", Start: Delayed, Delay: true,
			About: "the upstream sends with DelaySeconds = quiet; the batch is collapsed and written in bulk; no table.",
			Lacks: "order across batches; quiet: the delay counts from each message, and a burst is written as often " +
				"as it spans batches; freedom of the producers, each of which must set the delay",
		},
	}
}

// parsed is a message that a peer has read.
type parsed struct {
	queue.Message
	doc, version int
}

func parseAll(batch []queue.Message) []parsed {
	out := make([]parsed, len(batch))
	for i := range batch {
		out[i].Message = batch[i]
		out[i].doc, out[i].version = parse(batch[i].Body)
	}
	return out
}

// newest keeps the newest message of every document, in the order in which documents first appear.
func newest(msgs []parsed) []parsed {
	at := make(map[int]int, len(msgs))
	var out []parsed
	for _, m := range msgs {
		i, seen := at[m.doc]
		if !seen {
			at[m.doc] = len(out)
			out = append(out, m)
		} else if m.version > out[i].version {
			out[i] = m
		}
	}
	return out
}

// put writes documents in one request and reports whether all of them were applied.
func (w *World) put(ctx context.Context, v *fault.Invocation, docs ...parsed) bool {
	ops := make([]sink.Op, len(docs))
	for i, d := range docs {
		ops[i] = sink.Op{
			Doc: shard.DocID("content#" + docName(d.doc)), Kind: shard.Put,
			Version: strconv.Itoa(d.version), Document: document,
		}
	}
	if ctx.Err() != nil {
		return false
	}
	for _, o := range v.Sink(w.Sink).Write(ctx, ops) {
		if o.Kind != sink.Applied {
			return false
		}
	}
	return true
}

var document = []byte(`{"title":"a document"}`)

// inBulk writes documents in requests of the sink's size and lists the messages that must stay
// because theirs failed.
func (w *World) inBulk(ctx context.Context, v *fault.Invocation, docs []parsed) (failed []string) {
	for part := range slices.Chunk(docs, w.Config.Sinks[sinkName].BulkDocuments) {
		if !w.put(ctx, v, part...) {
			failed = append(failed, ids(part)...)
		}
	}
	return failed
}

func ids(msgs []parsed) []string {
	out := make([]string, 0, len(msgs))
	seen := make(map[string]bool, len(msgs))
	for _, m := range msgs {
		if !seen[m.ID] {
			seen[m.ID] = true
			out = append(out, m.ID)
		}
	}
	return out
}

// each works on the messages, those of one document in their order and different documents beside
// each other, bounded, and lists those that must stay.
func each(msgs []parsed, f func(m parsed) bool) (failed []string) {
	at := make(map[int]int, len(msgs))
	var groups [][]int
	for i, m := range msgs {
		g, seen := at[m.doc]
		if !seen {
			g = len(groups)
			at[m.doc], groups = g, append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	done := make([]bool, len(msgs))
	fanout.Runner(nil).Each(peerParallel, len(groups), func(g int) {
		for _, i := range groups[g] {
			done[i] = f(msgs[i])
		}
	})
	failed = []string{}
	for i, ok := range done {
		if !ok {
			failed = append(failed, msgs[i].ID)
		}
	}
	return failed
}

// seconds rounds up to what SQS takes.
func seconds(d time.Duration) time.Duration {
	return max((d+time.Second-1)/time.Second, 0) * time.Second
}

// holds are receipts by how long their messages are to be invisible: one call for each time.
type holds map[time.Duration][]string

func (h holds) add(m queue.Message, d time.Duration) {
	h[seconds(d)] = append(h[seconds(d)], m.Receipt)
}

// send makes the calls. A message whose call fails comes back later.
func (h holds) send(ctx context.Context, q queue.Queue) {
	for d, receipts := range h {
		q.Hold(ctx, receipts, d)
	}
}

func eventKey(m parsed) string { return fmt.Sprintf("%d/%d", m.doc, m.version) }
func docKey(m parsed) string   { return strconv.Itoa(m.doc) }
