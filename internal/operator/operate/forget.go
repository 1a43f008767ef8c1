package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/archive"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/reconcile"
	"github.com/lullhq/lull/internal/redrive"
	"github.com/lullhq/lull/internal/shard"
)

// ForgetOrder says which document to forget.
type ForgetOrder struct {
	Key    shard.DocID `json:"key"`
	DryRun bool        `json:"dry_run,omitempty"` // only say what there is
	By     string      `json:"by"`                // who asks, for the audit
}

// Forgotten says what was removed, and what remains.
type Forgotten struct {
	Key   shard.DocID  `json:"key"`
	Steps []ForgetStep `json:"steps"`
	// Remaining counts what is still there, and Waits how much of that goes by itself.
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
	Waits   int      `json:"waits,omitempty"`   // of what remains: goes by itself
}

// Tombstone is the place of the step that writes one.
const Tombstone = "tombstone"

// forgetting is one run.
type forgetting struct {
	*Operator
	ForgetOrder

	known bool // anything knows the document
	out   Forgotten
}

func (g *forgetting) add(s ForgetStep) {
	if sink := g.Key.Sink(); sink != "" && !strings.HasPrefix(s.Place, "sink ") {
		s.Place += " of sink " + sink
	}
	g.known = g.known || s.Found > 0
	g.out.Steps = append(g.out.Steps, s)
	g.out.Remaining += s.Found - s.Removed
	g.out.Waits += s.Waits
}

// Forget removes a document wherever lull keeps it. The tombstone comes first: from then on nothing
// brings it back that lull still finds in a queue.
func (o *Operator) Forget(ctx context.Context, r ForgetOrder) (Forgotten, error) {
	g := &forgetting{Operator: o, ForgetOrder: r, out: Forgotten{Key: r.Key, DryRun: r.DryRun}}
	if err := cmp.Or(whole(r.Key), named(r.By)); err != nil {
		return g.out, err
	}
	if id := r.Key.ID(); strings.TrimSpace(id) != id || strings.ContainsAny(id, "*?") && !g.exact(ctx) {
		return g.out, inputf("key %q: its id begins or ends with a space, or looks like a pattern: forget takes one "+
			"whole key", string(r.Key))
	}
	if _, err := o.rows(r.Key); err != nil {
		return g.out, err
	}
	rows := o.Config.RowsOf(r.Key)
	for _, row := range rows {
		if _, err := o.auditedSink(row.Collection(), o.Config.SinkOf(row)); err != nil {
			return g.out, err
		}
	}
	for _, row := range rows {
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

// exact reports whether a document of this very key has a row.
func (g *forgetting) exact(ctx context.Context) bool {
	rows, err := g.Shards.Read(ctx, []shard.DocID{g.Key}, shard.Consistent)
	return err == nil && rows[0].Exists()
}

var errLook = errors.New("only looking")

// sink writes the tombstone and deletes the document from the sink.
func (g *forgetting) sink(ctx context.Context, name string) error {
	tombstone, doc := ForgetStep{Place: Tombstone}, ForgetStep{Place: "sink " + name}
	var until int64
	key := func(row shard.Row, c shard.InSink) (shard.OrderKey, error) {
		if row.Exists() {
			tombstone.Found = 1
		}
		if c != (shard.InSink{}) {
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
		g.DryRun = true // until it is there the other places are only looked at
	default:
		return err
	}
	g.add(tombstone)
	g.add(doc)
	return nil
}

// newest is the version that the tombstone names, for people.
func (g *forgetting) newest(row shard.Row, c shard.InSink) (shard.Version, error) {
	if p, err := max(row.Committed, row.Pending, c.Key).Parts(); err == nil &&
		(row.VersionClass == 0 || p.Version.Class() == row.VersionClass) {
		return p.Version, nil
	}
	return g.firstVersion(g.Key.Collection(), row.VersionClass)
}

// elsewhere reports whether anything but row and sink knows the document, or another sink's row: a
// key with a typing error gets no tombstone.
func (g *forgetting) elsewhere(ctx context.Context) bool {
	rows, err := g.Shards.Read(ctx, g.Config.RowsOf(g.Key), shard.Consistent)
	if g.known || err == nil && slices.ContainsFunc(rows, shard.Row.Exists) {
		return true
	}
	look := &forgetting{Operator: g.Operator, ForgetOrder: g.ForgetOrder}
	look.DryRun = true
	err = errors.Join(look.scheduledEvents(ctx, ""), look.letters(ctx, ""), look.manifests(ctx, ""))
	return err == nil && look.known
}

func (g *forgetting) scheduledEvents(ctx context.Context, _ string) error {
	s := ForgetStep{Place: "scheduled events"}
	for cursor := ""; ; {
		items, next, err := g.Schedule.List(ctx, g.Key, cursor, pageSize)
		if err != nil {
			return fmt.Errorf("list scheduled events: %w", err)
		}
		for _, it := range items {
			s.Found++
			if g.DryRun {
				continue
			}
			if err := g.Schedule.Delete(ctx, it.ID); err != nil {
				return fmt.Errorf("delete a scheduled event: %w", err)
			}
			s.Removed++
		}
		if cursor = next; cursor == "" {
			g.add(s)
			return nil
		}
	}
}

// letters drops the dead letters of the document. A message that others share stays until they are
// gone. One without a key may speak of the document all the same: it is named.
func (g *forgetting) letters(ctx context.Context, _ string) error {
	s, unclear := ForgetStep{Place: "dead letters"}, ForgetStep{Place: "dead letters without a key that name it"}
	var mine []deadletter.Facts
	others := g.Config.RowsOf(g.Key)[1:]
	own := redrive.Selection{Filter: deadletter.Filter{Document: g.Key.Plain()}}
	err := g.redrives().List(ctx, own, func(f deadletter.Facts) error {
		// Those of a sink that the settings no longer have go with those of the first one.
		if f.Doc == g.Key || g.Key.Sink() == "" && !slices.Contains(others, f.Doc) {
			mine = append(mine, f)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list dead letters: %w", err)
	}
	for _, f := range mine {
		s.Found++
		if err := g.letter(ctx, f, &s); err != nil {
			return err
		}
	}
	if g.Key.Sink() != "" { // those without a key were looked at for the first sink
		g.add(s)
		return nil
	}
	n := 0
	err = g.redrives().List(ctx, redrive.Selection{}, func(f deadletter.Facts) error {
		if n++; n > maxCount {
			return errEnough
		}
		if f.Doc != "" {
			return nil
		}
		l, ok, err := g.Dead.Get(ctx, f.ID)
		if err == nil && ok && strings.Contains(l.Body, g.Key.ID()) {
			unclear.Found++
			unclear.Remains = append(unclear.Remains, fmt.Sprintf("look at it with `lull dead show %s`, then `lull dead drop %s`",
				f.ID, f.ID))
		}
		return err
	})
	if err != nil && !errors.Is(err, errEnough) {
		return fmt.Errorf("look into dead letters without a key: %w", err)
	}
	g.add(s)
	if unclear.Found > 0 {
		g.add(unclear)
	}
	return nil
}

// letter drops a dead letter, unless its message is that of another document's dead letter too.
func (g *forgetting) letter(ctx context.Context, f deadletter.Facts, s *ForgetStep) error {
	shared := 0
	if f.Hash != "" {
		with, err := g.Dead.Message(ctx, f.Hash)
		if err != nil {
			return fmt.Errorf("list the dead letters of a message: %w", err)
		}
		for _, other := range with {
			if other.Doc.Plain() != g.Key.Plain() {
				shared++
			}
		}
	}
	if g.DryRun {
		return nil
	}
	if err := g.Dead.Drop(ctx, f.ID); err != nil {
		return fmt.Errorf("drop dead letter %s: %w", f.ID, err)
	}
	g.Journal.Note(journal.Note{
		Step: journal.Dropped, At: g.Clock.Now(), Doc: f.Doc, Key: f.Key, Lane: f.Lane, Letter: f.ID,
		Detail: "by " + g.By + ": forgotten",
	})
	if shared > 0 {
		s.Remains = append(s.Remains, fmt.Sprintf("the message of %s stays: %d dead letters of other documents share it, "+
			"so redrive or drop them", f.ID, shared))
		return nil
	}
	s.Removed++
	return nil
}

// manifests counts the flights that hold a message of the document. Index takes it out at its next
// turn, because the tombstone is newer.
func (g *forgetting) manifests(ctx context.Context, _ string) error {
	s := ForgetStep{Place: "flights"}
	for cursor, seen := "", 0; ; {
		list, next, err := g.Flights.List(ctx, cursor, pageSize)
		if err != nil {
			return fmt.Errorf("list flights: %w", err)
		}
		holds := make([]bool, len(list))
		err = g.Parallel.Try(forgetParallel, len(list), func(i int) error {
			entries, err := g.entries(ctx, list[i].ID)
			holds[i] = slices.ContainsFunc(entries, func(e heldEntry) bool { return e.Doc == g.Key })
			return err
		})
		if err != nil {
			return fmt.Errorf("read manifests: %w", err)
		}
		for _, h := range holds {
			if h {
				s.Found++
				s.Waits++
			}
		}
		if seen += len(list); next == "" || seen >= maxCount {
			if next != "" {
				s.Remains = append(s.Remains, fmt.Sprintf("only the oldest %d flights were read: ask again", seen))
			}
			break
		}
		cursor = next
	}
	if s.Found > 0 {
		s.Remains = append(s.Remains, "they end by themselves: ask again")
	}
	g.add(s)
	return nil
}

// forgetParallel is how many manifests are read at the same time.
const forgetParallel = 16

// archived takes the document out of the archive, all of which it reads: an object does not say
// whose messages it has.
func (g *forgetting) archived(ctx context.Context, _ string) error {
	if g.Archive == nil {
		return nil
	}
	s := ForgetStep{Place: "archive"}
	f := archive.Forgetter{Store: g.Archive, Sources: g.Sources}
	done, err := f.Forget(ctx, g.Key, g.DryRun)
	if err != nil {
		return err
	}
	for _, name := range done.Unread[:min(len(done.Unread), 10)] {
		s.Remains = append(s.Remains, fmt.Sprintf("object %s cannot be read: look at it, and delete it", name))
	}
	if s.Found = done.Messages; !g.DryRun {
		s.Removed = s.Found
	}
	known := g.known || s.Found > 0 // what cannot be read knows nothing
	s.Found += len(done.Unread)
	if done.Undecoded > 0 {
		s.Remains = append(s.Remains, fmt.Sprintf("%d messages belong to no document, because nothing decodes them: "+
			"they go when the archive expires", done.Undecoded))
	}
	g.add(s)
	g.known = known
	return nil
}

// Forget removes a document wherever lull keeps it.
func (c *Client) Forget(ctx context.Context, o ForgetOrder) (Forgotten, error) {
	return ask[ForgetOrder, Forgotten](ctx, c, "forget", o)
}
