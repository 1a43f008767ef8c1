// SPDX-License-Identifier: Apache-2.0

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
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// ForgetOrder asks for one step of forgetting a document.
type ForgetOrder struct {
	Key    shard.DocID `json:"key"`
	Group  string      `json:"group,omitempty"`   // the message group that is being forgotten; empty for none
	DryRun bool        `json:"dry_run,omitempty"` // only say what was found
	At     ForgetPlace `json:"at,omitzero"`       // Next of the step before
	Limit  int         `json:"limit,omitempty"`   // how many things to look at, 1 to 256; 0 is 256
	By     string      `json:"by"`                // the operator, for the audit
}

// ForgetPlace is where a step begins. It contains no key of a document, because the table stores
// it.
type ForgetPlace struct {
	Place  string        `json:"place,omitempty"`  // empty at the beginning
	Sink   string        `json:"sink,omitempty"`   // the sink whose row gets its tombstone next
	Page   string        `json:"page,omitempty"`   // the store's cursor
	Remove []ForgetThing `json:"remove,omitempty"` // the things that the step before found: remove them before Page is read
	Known  bool          `json:"known,omitempty"`  // some place has the document
	Look   bool          `json:"look,omitempty"`   // only look, because the document may be unknown
	Held   []string      `json:"held,omitempty"`   // the sinks that had the document at the beginning
	Moving []string      `json:"moving,omitempty"` // the sinks whose rows do not have their tombstone yet
	Shared []string      `json:"shared,omitempty"` // hashes of messages that were counted
}

// ForgetThing is something to remove. One step finds the thing, and the next step removes it. So a
// repeated step does not count it twice.
type ForgetThing struct {
	ID     string `json:"id"`
	N      int    `json:"n"`                // as how many things it is counted
	Shared bool   `json:"shared,omitempty"` // it belongs to a scheduled event of another document
}

// ForgetStep is what one step found and did.
type ForgetStep struct {
	// Counts has, for each place, how many things were found and how many were removed. It also has
	// two other counts.
	Counts map[string]int `json:"counts,omitempty"`
	Lines  []ForgetLine   `json:"lines,omitempty"`
	Looked int            `json:"looked"` // how many things were read
	Until  time.Time      `json:"refused_until,omitzero"`
	Next   *ForgetPlace   `json:"next,omitempty"` // nil at the end
}

// ForgetLine says why something remains in a place, and what to do. It never has content.
type ForgetLine struct {
	Place string `json:"place"`
	ID    string `json:"id,omitempty"`
	// Names says that Text names a document or quotes a sink. Then the row of the job does not store
	// Text.
	Text  string `json:"text,omitempty"`
	Names bool   `json:"names,omitempty"`
}

// The names of the counts of a place.
const (
	foundIn   = " found"
	removedIn = " removed"
)

// The other counts.
const (
	forgetWaiting   = "waiting"   // things that end without an operator
	forgetUndecoded = "undecoded" // messages in the archive that cannot be decoded and do not contain the id
)

// The places of a document, in the order of the steps. Flights come before dead letters, because a
// message that leaves its flight may become a dead letter. It is then found there.
const (
	placeTombstone = "tombstone"
	placeFlights   = "flights"
	placeScheduled = "scheduled events"
	placeLetters   = "dead letters"
	placeArchive   = "archive"

	sharedScheduled = "messages of other scheduled events"
	sharedLetters   = "messages of other dead letters"
)

var forgetPages = []string{placeFlights, placeScheduled, placeLetters, placeArchive}

// How much a step looks at. An object of the archive has up to 10,000 messages.
const (
	maxForget     = 256
	forgetObjects = 16
)

// forgetter forgets documents.
type forgetter struct {
	engines
	manifests

	Dead     deadletter.Store
	Schedule schedule.Store
	Archive  archive.Store // nil if the stack archives nothing
	Sources  *source.Set
}

// forgetting is one step.
type forgetting struct {
	*forgetter
	ForgetOrder

	rows []shard.DocID // the document's rows of all sinks
	out  ForgetStep
}

// Forget does the next step of removing a document wherever lull keeps it. The tombstones are
// written first. After that, no message that is still in a queue can bring the document back. A
// step may be repeated. If no place has the document, it gets no tombstone, because its key may be
// a typing error.
func (o *forgetter) Forget(ctx context.Context, r ForgetOrder) (ForgetStep, error) {
	g := &forgetting{
		forgetter: o, ForgetOrder: r, rows: o.Config.RowsOf(r.Key), out: ForgetStep{Counts: map[string]int{}},
	}
	var wrong error
	g.Limit, wrong = limited(r.Limit, maxForget, maxForget)
	if err := cmp.Or(o.whole(r.Key), named(r.By), wrong); err != nil {
		return ForgetStep{}, err
	}
	if id := r.Key.ID(); (strings.TrimSpace(id) != id || strings.ContainsAny(id, "*?")) && !g.exact(ctx) {
		return ForgetStep{}, inputf("key %q: its id begins or ends with a space, or looks like a pattern: forget takes "+
			"one whole key", string(r.Key))
	}
	if _, err := o.rows(r.Key); err != nil {
		return ForgetStep{}, err
	}
	for _, row := range g.rows {
		// A tombstone and a delete can be written to a sink that cannot be read.
		name := o.Config.SinkOf(row)
		if o.Sinks[name] != nil && errors.Is(o.Unread[name], ErrWriteOnly) {
			continue
		}
		if _, err := o.auditedSink(row.Collection(), name); err != nil {
			return ForgetStep{}, err
		}
	}
	if err := g.step(ctx); err != nil {
		return ForgetStep{}, fmt.Errorf("forget %s: %w", r.Key, err)
	}
	if r.At.Look && !r.DryRun { // later steps find the same things again, and count them
		g.out.Counts, g.out.Lines = nil, nil
	}
	return g.out, nil
}

func (g *forgetting) step(ctx context.Context) error {
	pages := map[string]func(context.Context) ([]ForgetThing, string, error){
		placeFlights: g.flights, placeScheduled: g.scheduledEvents, placeLetters: g.letters, placeArchive: g.archived,
	}
	switch look := pages[g.At.Place]; {
	case g.At.Place == "":
		return g.begin(ctx)
	case g.At.Place == placeTombstone:
		return g.tombstone(ctx)
	case look == nil:
		return inputf("place %q: there is no such place", g.At.Place)
	case len(g.At.Remove) > 0:
		if err := g.remove(ctx); err != nil {
			return err
		}
		return g.next(g.At.Page)
	default:
		found, page, err := look(ctx)
		if err != nil || g.At.Look || len(found) == 0 {
			return cmp.Or(err, g.next(page))
		}
		g.At.Remove, g.At.Page = found, page
		g.out.Next = &g.At
		return nil
	}
}

// next sets the place of the next step: the next page, or the next place.
func (g *forgetting) next(page string) error {
	g.At.Page, g.At.Remove, g.out.Next = page, nil, &g.At
	if page != "" {
		return nil
	}
	g.At.Shared = nil
	switch at := slices.Index(forgetPages, g.At.Place) + 1; {
	case at < len(forgetPages):
		g.At.Place = forgetPages[at]
	case !g.At.Known:
		return unknown(g.Key)
	case g.At.Look && !g.DryRun:
		g.toTombstones(g.At.Held)
	default:
		g.out.Next = nil
	}
	return nil
}

func unknown(key shard.DocID) error {
	return fmt.Errorf("%s: %w in the table, the sink, the dead letters, the flights, the schedule and the archive: "+
		"is the key right?", key, ErrNotFound)
}

func (g *forgetting) toTombstones(held []string) {
	g.At = ForgetPlace{Place: placeTombstone, Sink: g.Config.SinkOf(g.rows[0]), Known: true, Held: held}
	g.out.Next = &g.At
}

// owns reports whether doc is a row of the document. The row may belong to a sink that the settings
// no longer have.
func (g *forgetting) owns(doc shard.DocID) bool { return doc.Plain() == g.Key.Plain() }

// holds says whether a message contains the document, although it belongs to another document or to
// none.
func (g *forgetting) holds(sink string, doc shard.DocID, m queue.Message) mention.Answer {
	if g.owns(doc) {
		return mention.Nothing
	}
	return mention.In(g.Sources, sink, m, g.Key)
}

// mayRemove reports whether the things of a row may be removed, because the row has its tombstone.
// For sinks that the settings no longer have, the first row decides.
func (g *forgetting) mayRemove(doc shard.DocID) bool {
	if !slices.Contains(g.rows, doc) {
		doc = g.rows[0]
	}
	return !slices.Contains(g.At.Moving, g.Config.SinkOf(doc))
}

// found counts things of the document that a place has.
func (g *forgetting) found(place string, n int) {
	g.At.Known = g.At.Known || n > 0
	g.out.Counts[place+foundIn] += n
}

// remains adds a line that names a thing which is not removed.
func (g *forgetting) remains(place, id, text string) {
	g.out.Lines = append(g.out.Lines, ForgetLine{Place: place, ID: id, Text: text, Names: true})
}

// unread counts and names a thing that cannot be read. Such a thing does not prove that the
// document is known.
func (g *forgetting) unread(place, id, text string) {
	g.out.Counts[place+foundIn]++
	g.remains(place, id, text)
}

// exact reports whether a row has exactly this key.
func (g *forgetting) exact(ctx context.Context) bool {
	rows, err := g.Shards.Read(ctx, []shard.DocID{g.Key}, shard.Consistent)
	return err == nil && rows[0].Exists()
}

// begin reads the rows of the document, and the document in its sinks.
func (g *forgetting) begin(ctx context.Context) error {
	for _, row := range g.rows {
		name := g.Config.SinkOf(row)
		look := g.looker(name)
		look.Whole = true
		all, err := look.Look(ctx, []shard.DocID{row})
		if err != nil {
			return err
		}
		f := all[0]
		// If the sink cannot be read, the row says whether the sink has the document.
		held := f.Copy != (shard.InSink{}) || f.Document != nil ||
			g.Readers[name] == nil && f.Row.CommittedOp == shard.Put
		if held {
			g.At.Held = append(g.At.Held, name)
		}
		g.At.Known = g.At.Known || f.Row.Exists() || held
		if g.DryRun {
			g.found(placeTombstone, one(f.Row.Exists()))
			g.found("sink "+name, one(held))
		}
	}
	if g.At.Known && !g.DryRun {
		g.toTombstones(g.At.Held)
		return nil
	}
	g.At.Place, g.At.Look = forgetPages[0], true
	g.out.Next = &g.At
	return nil
}

func one(is bool) int { return map[bool]int{true: 1}[is] }

// tombstone writes the tombstone of a row, and deletes the document from its sink.
func (g *forgetting) tombstone(ctx context.Context) error {
	at := slices.IndexFunc(g.rows, func(row shard.DocID) bool { return g.Config.SinkOf(row) == g.At.Sink })
	if at < 0 {
		return inputf("sink %s: the settings no longer have it: `lull jobs drop forget`, and forget the document again",
			g.At.Sink)
	}
	name, row, until := g.At.Sink, g.rows[at], int64(0)
	key := func(row shard.Row, c shard.InSink) (shard.OrderKey, error) {
		if until = g.Config.Lifecycle.Expires(g.Clock.Now()); row.Committed.IsFinal() {
			until = row.ExpiresAt
			return row.Committed, nil
		}
		v, err := g.newest(row, c)
		if err != nil {
			return "", err
		}
		return shard.Final(v)
	}
	held, removed := one(slices.Contains(g.At.Held, name)), 1
	err := g.reconciler(name).Bury(ctx, reconcile.Burial{
		Doc: row, Key: key, Group: g.Group, By: g.By, Why: "forgotten",
	})
	switch {
	case err == nil:
		g.out.Until = time.Unix(until, 0).UTC()
	case errors.Is(err, reconcile.ErrMoving):
		removed = 0
		g.At.Moving = append(g.At.Moving, name)
		g.remains(placeTombstone, name, err.Error())
	default:
		return err
	}
	for place, n := range map[string]int{placeTombstone: 1, "sink " + name: held} {
		g.out.Counts[place+foundIn] += n
		g.out.Counts[place+removedIn] += n * removed
	}
	g.out.Counts[forgetWaiting] += 1 - removed
	if at++; at < len(g.rows) {
		g.At.Sink = g.Config.SinkOf(g.rows[at])
	} else {
		g.At.Place, g.At.Sink = forgetPages[0], ""
	}
	g.out.Next = &g.At
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

// remove removes the things that the step before found.
func (g *forgetting) remove(ctx context.Context) error {
	for _, t := range g.At.Remove {
		var err error
		place := g.At.Place
		switch place {
		case placeScheduled:
			if t.Shared {
				place = sharedScheduled
			}
			err = g.Schedule.Delete(ctx, t.ID)
		case placeLetters:
			err = g.drop(ctx, t.ID)
		case placeArchive:
			err = archive.Forgetter{Store: g.Archive, Sources: g.Sources}.Remove(ctx, g.Key, archive.Name(t.ID))
		}
		if err != nil {
			return fmt.Errorf("remove %s of the %s: %w", t.ID, place, err)
		}
		g.out.Counts[place+removedIn] += t.N
	}
	return nil
}

// drop drops a dead letter of the document.
func (g *forgetting) drop(ctx context.Context, id string) error {
	l, there, read := g.Dead.Get(ctx, id)
	if err := g.Dead.Drop(ctx, id); err != nil {
		return err
	}
	if there || read != nil { // otherwise an earlier try dropped the dead letter
		g.Journal.Note(journal.Note{
			Step: journal.Dropped, At: g.Clock.Now(), Doc: cmp.Or(l.Doc, g.Key), Key: l.Key, Lane: l.Lane, Letter: id,
			Detail: "by " + g.By + ": forgotten",
		})
	}
	return nil
}
