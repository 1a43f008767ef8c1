package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/pipeline/mention"
	"github.com/lullhq/lull/internal/pipeline/reconcile"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// ForgetOrder says which document to forget.
type ForgetOrder struct {
	Key    shard.DocID `json:"key"`
	DryRun bool        `json:"dry_run,omitempty"` // only say what there is
	By     string      `json:"by"`                // who asks, for the audit
}

// Forgotten lists, place by place, how much was removed and how much remains.
type Forgotten struct {
	Key   shard.DocID  `json:"key"`
	Steps []ForgetStep `json:"steps"`
	// Remaining counts the things that are still there. Waits counts those of them that end without
	// an operator.
	Remaining int       `json:"remaining"`
	Waits     int       `json:"waits,omitempty"`
	Until     time.Time `json:"refused_until,omitzero"` // until then no version of it is accepted
	DryRun    bool      `json:"dry_run,omitempty"`
}

// ForgetStep is one of the places where lull keeps documents.
type ForgetStep struct {
	Place   string   `json:"place"` // tombstone, sink, scheduled, dead letters, flights, ...
	Found   int      `json:"found"`
	Removed int      `json:"removed"`
	Remains []string `json:"remains,omitempty"` // why something remains there, and what to do; never content
	Waits   int      `json:"waits,omitempty"`   // the part of what remains that ends without an operator
	Single  bool     `json:"single,omitempty"`  // at most one thing is there: each try finds the same one

	unread int // things in Found that cannot be read: they do not prove that the document is known
}

// tombstonePlace is the place of the step that writes a tombstone.
const tombstonePlace = "tombstone"

// After adds what an earlier try removed, so that the counts of several tries count each thing
// once.
func (f Forgotten) After(earlier Forgotten) Forgotten {
	f.Steps = slices.Clone(f.Steps)
	for i := range f.Steps {
		s := &f.Steps[i]
		at := slices.IndexFunc(earlier.Steps, func(e ForgetStep) bool { return e.Place == s.Place })
		if at < 0 {
			continue
		}
		more := earlier.Steps[at].Removed
		if s.Single {
			more = max(more-s.Removed, 0)
			s.Found = max(s.Found-more, s.Removed)
		}
		s.Found, s.Removed = s.Found+more, s.Removed+more
	}
	return f
}

// forgetting is one run.
type forgetting struct {
	*Operator
	ForgetOrder

	rows  []shard.DocID // of all sinks
	known bool          // some place has the document
	out   Forgotten
}

// first reports whether the row belongs to the document's first sink. This row also owns the things
// of sinks that the settings no longer have.
func (g *forgetting) first() bool { return g.Key == g.rows[0] }

// owns reports whether the row g.Key owns the things of doc.
func (g *forgetting) owns(doc shard.DocID) bool {
	return doc == g.Key || g.first() && doc.Plain() == g.Key.Plain() && !slices.Contains(g.rows, doc)
}

// holds says whether a message of another document, or of none, contains the document. Each message
// is checked once: for the row of the sink whose queue it came from.
func (g *forgetting) holds(sink string, doc shard.DocID, m queue.Message) mention.Answer {
	if doc.Plain() == g.Key.Plain() || !g.at(sink) {
		return mention.Nothing
	}
	return mention.In(g.Sources, sink, m, g.Key)
}

// at reports whether messages from the queues of a sink are checked for this row. The first row
// also covers the sinks without a row.
func (g *forgetting) at(sink string) bool {
	of := func(row shard.DocID) bool { return g.Config.SinkOf(row) == sink }
	return of(g.Key) || g.first() && !slices.ContainsFunc(g.rows, of)
}

func (g *forgetting) add(s ForgetStep) {
	if sink := g.Key.Sink(); sink != "" && !strings.HasPrefix(s.Place, "sink ") {
		s.Place += " of sink " + sink
	}
	g.known = g.known || s.Found > s.unread
	g.out.Steps = append(g.out.Steps, s)
	g.out.Remaining += s.Found - s.Removed
	g.out.Waits += s.Waits
}

// Forget removes a document wherever lull keeps it. The tombstone comes first: after it, no message
// that is still in a queue can bring the document back.
func (o *Operator) Forget(ctx context.Context, r ForgetOrder) (Forgotten, error) {
	g := &forgetting{
		Operator: o, ForgetOrder: r, rows: o.Config.RowsOf(r.Key), out: Forgotten{Key: r.Key, DryRun: r.DryRun},
	}
	if err := cmp.Or(whole(r.Key), named(r.By)); err != nil {
		return g.out, err
	}
	if id := r.Key.ID(); (strings.TrimSpace(id) != id || strings.ContainsAny(id, "*?")) && !g.exact(ctx) {
		return g.out, inputf("key %q: its id begins or ends with a space, or looks like a pattern: forget takes one "+
			"whole key", string(r.Key))
	}
	if _, err := o.rows(r.Key); err != nil {
		return g.out, err
	}
	for _, row := range g.rows {
		// A tombstone and a delete do not need to read the sink.
		name := o.Config.SinkOf(row)
		if o.Sinks[name] != nil && errors.Is(o.Unread[name], ErrWriteOnly) {
			continue
		}
		if _, err := o.auditedSink(row.Collection(), name); err != nil {
			return g.out, err
		}
	}
	for _, row := range g.rows {
		g.Key, g.DryRun = row, r.DryRun
		for _, step := range []func(context.Context, string) error{
			g.sink, g.scheduledEvents, g.letters, g.manifests, g.archived,
		} {
			if err := step(ctx, o.Config.SinkOf(row)); err != nil {
				return g.out, fmt.Errorf("forget %s: %w", row, err)
			}
		}
	}
	if !g.known {
		return g.out, fmt.Errorf("%s: %w in the table, the sink, the dead letters, the flights and the schedule: is the "+
			"key right?", r.Key, ErrNotFound)
	}
	return g.out, nil
}

// exact reports whether a row has exactly this key.
func (g *forgetting) exact(ctx context.Context) bool {
	rows, err := g.Shards.Read(ctx, []shard.DocID{g.Key}, shard.Consistent)
	return err == nil && rows[0].Exists()
}

var errLook = errors.New("only looking")

// sink writes the tombstone and deletes the document from the sink.
func (g *forgetting) sink(ctx context.Context, name string) error {
	tombstone, doc := ForgetStep{Place: tombstonePlace, Single: true}, ForgetStep{Place: "sink " + name, Single: true}
	var until int64
	key := func(row shard.Row, c shard.InSink) (shard.OrderKey, error) {
		if row.Exists() {
			tombstone.Found = 1
		}
		// If the sink cannot be read, the row says whether the sink has the document.
		if c != (shard.InSink{}) || g.Readers[name] == nil && row.CommittedOp == shard.Put {
			doc.Found = 1
		}
		until = g.Config.Expires(g.Clock.Now())
		if row.Committed.IsFinal() {
			if until = row.ExpiresAt; g.DryRun {
				return row.Committed, errLook
			}
			return row.Committed, nil
		}
		v, err := g.newest(row, c)
		if err != nil {
			return "", err
		}
		k, err := shard.Final(v)
		if err == nil && (g.DryRun || !row.Exists() && doc.Found == 0 && !g.elsewhere(ctx)) {
			err = errLook
		}
		return k, err
	}
	err := g.reconciler(name).Bury(ctx, reconcile.Burial{Doc: g.Key, Key: key, By: g.By, Why: "forgotten"})
	switch {
	case err == nil:
		tombstone.Found, tombstone.Removed, doc.Removed = 1, 1, doc.Found
		g.out.Until = time.Unix(until, 0).UTC()
	case errors.Is(err, errLook):
	case errors.Is(err, reconcile.ErrMoving):
		tombstone.Found = 1
		tombstone.Remains, tombstone.Waits = []string{err.Error()}, 1
		g.DryRun = true // without a tombstone, only look at the other places
	default:
		return err
	}
	g.add(tombstone)
	g.add(doc)
	return nil
}

// newest returns the version that the tombstone shows to people.
func (g *forgetting) newest(row shard.Row, c shard.InSink) (shard.Version, error) {
	if p, err := max(row.Committed, row.Pending, c.Key).Parts(); err == nil &&
		(row.VersionClass == 0 || p.Version.Class() == row.VersionClass) {
		return p.Version, nil
	}
	return g.firstVersion(g.Key.Collection(), row.VersionClass)
}

// elsewhere reports whether the document is known in a place other than this row and sink. A
// document that is not gets no tombstone, because its key may be a typing error.
func (g *forgetting) elsewhere(ctx context.Context) bool {
	rows, err := g.Shards.Read(ctx, g.Config.RowsOf(g.Key), shard.Consistent)
	if g.known || err == nil && slices.ContainsFunc(rows, shard.Row.Exists) {
		return true
	}
	look := &forgetting{Operator: g.Operator, ForgetOrder: g.ForgetOrder, rows: g.rows}
	look.DryRun = true
	err = errors.Join(look.scheduledEvents(ctx, ""), look.letters(ctx, ""), look.manifests(ctx, ""))
	return err == nil && look.known
}

// archived removes the document from the archive. It reads the whole archive, because the name of
// an object does not say which documents are in it.
func (g *forgetting) archived(ctx context.Context, _ string) error {
	if g.Archive == nil {
		return nil
	}
	s := ForgetStep{Place: "archive"}
	f := archive.Forgetter{
		Store: g.Archive, Sources: g.Sources, Skip: func(sink string) bool { return !g.at(sink) },
	}
	done, err := f.Forget(ctx, g.Key, g.DryRun)
	if err != nil {
		return err
	}
	if s.Found = done.Messages; !g.DryRun {
		s.Removed = s.Found
	}
	for _, name := range done.Unread {
		s.remains("object %s cannot be read: look at it, and delete it", name)
		s.unread++
	}
	for _, name := range done.Named {
		s.remains("nothing decodes a part of a message in object %s, and the id is in it: look at it, and delete it, or "+
			"wait until the archive expires", name)
	}
	if done.Undecoded > 0 {
		s.Remains = append(s.Remains, fmt.Sprintf("%d messages that nothing decodes do not have the id: they go when the "+
			"archive expires", done.Undecoded))
	}
	g.add(s)
	return nil
}

// Forget removes a document wherever lull keeps it.
func (c *Client) Forget(ctx context.Context, o ForgetOrder) (Forgotten, error) {
	return ask[ForgetOrder, Forgotten](ctx, c, "forget", o)
}
