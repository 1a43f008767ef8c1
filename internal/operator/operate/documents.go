// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
)

// DocumentFilter selects documents; zero fields select everything.
type DocumentFilter struct {
	State      State            `json:"state,omitempty"` // one of ListedStates
	Collection shard.Collection `json:"collection,omitempty"`
	Key        shard.DocID      `json:"key,omitempty"`      // this document only
	Contains   string           `json:"contains,omitempty"` // a part of the key, in upper or lower case
	Group      string           `json:"group,omitempty"`    // the message group, a tenant, by its row
	Cursor     string           `json:"cursor,omitempty"`   // Next of the page before; empty for the first page
	Limit      int              `json:"limit,omitempty"`    // 1 to 1000; 0 for 100
}

// DocumentPage is a part of a list of documents.
type DocumentPage struct {
	Documents []DocumentLine `json:"documents"`
	// Next is the cursor of the next page. It is empty at the end. An empty page may have a next page.
	Next string `json:"next,omitempty"`
	// Counts has the number of documents by state. It counts the documents that pass the filter,
	// whatever their state. It is nil if counting them needs a scan of the table.
	Counts map[State]int `json:"counts,omitempty"`
	// Notes say what the list cannot show, and why.
	Notes []string  `json:"notes,omitempty"`
	Now   time.Time `json:"now"` // by the stack's clock
}

// DocumentLine describes a document by its row, without asking the sink.
type DocumentLine struct {
	Key        shard.DocID     `json:"key"`
	State      State           `json:"state"`             // the state by the table alone: see [Explanation.Listed]
	Wait       *Wait           `json:"wait,omitempty"`    // why the document is not fresh; nil if it waits for nothing
	Version    string          `json:"version,omitempty"` // the committed version, for people
	Operation  shard.Operation `json:"operation,omitempty"`
	Written    time.Time       `json:"written_at,omitzero"` // the time of the last write
	Pending    string          `json:"pending,omitempty"`   // the version that waits, is scheduled or is dead
	Began      time.Time       `json:"began_at,omitzero"`   // the start of the burst that waits
	Due        time.Time       `json:"due_at,omitzero"`     // when the version that waits or is scheduled is due
	Quiet      time.Duration   `json:"quiet_ns,omitempty"`
	MaxWait    time.Duration   `json:"max_wait_ns,omitempty"`
	LeaseUntil time.Time       `json:"lease_until,omitzero"` // the end of the lease of a claimed document
	Flight     string          `json:"flight,omitempty"`     // the flight that admitted the waiting version
	// Held is the least number of messages about the document that wait in flights. A list reads
	// only a part of the flights.
	Held      int    `json:"held,omitempty"`
	Attempts  int64  `json:"attempts,omitempty"`
	Refusals  int64  `json:"refusals,omitempty"`
	LastError string `json:"last_error,omitempty"`
}

// ListedStates returns the states by which a list can be filtered. They are fewer than [States],
// because a list asks no sink.
func ListedStates() []State {
	return []State{
		StateWaiting, StateClaimed, StateDead, StateRedriven, StateScheduled, StateFresh, StateReset, StateFarAhead,
		StateForgotten, StateDropped, StateUnreadable,
	}
}

// A list reads at most maxWindow flights, and maxGets of them at the same time. Each flight costs
// one read of the bucket.
const (
	maxWindow = 200
	maxGets   = 16
)

// catalog lists documents by their rows.
type catalog struct {
	layout
	records
	manifests
	plans
	parked

	Dead     deadletter.Store
	Rows     iter.Seq[shard.Row] // nil if the rows are not in memory
	Parallel fanout.Runner       // nil for goroutines
}

// Documents lists documents page by page, by their rows. If the rows are in memory
// ([Operator.Rows]), it lists every document by key, also one without a row. Otherwise it lists
// waiting, dead and scheduled documents, found by their flights, dead letters and schedules. It
// never scans the table.
func (o *catalog) Documents(ctx context.Context, f DocumentFilter) (DocumentPage, error) {
	limit, wrong := limited(f.Limit, pageSize, maxPageSize)
	l := lister{
		o: o, f: f, now: shard.MicrosOf(o.Clock.Now()), limit: limit, flights: map[flight.ID][]heldEntry{},
		letters: map[shard.DocID][]Letter{}, planned: map[shard.DocID][]ScheduledEvent{},
	}
	l.page = DocumentPage{Documents: []DocumentLine{}, Now: l.now.Time()}
	err := cmp.Or(wrong, filtered(f.Collection), want(f.State == "" || slices.Contains(ListedStates(), f.State),
		"state %q: want one of %s", f.State, joined(ListedStates())))
	if err != nil {
		return l.page, err
	}
	if err := l.list(ctx); err != nil {
		return l.page, err
	}
	if unknown := o.unknown(f.Collection); unknown != "" && f.Cursor == "" && len(l.page.Documents) == 0 {
		return l.page, inputf("collection: %s", unknown)
	}
	if err := l.hold(ctx); err != nil {
		return l.page, err
	}
	return l.page, l.explain(ctx)
}

func joined(states []State) string {
	var texts []string
	for _, s := range states {
		texts = append(texts, string(s))
	}
	return strings.Join(texts, ", ")
}

// lister makes one page.
type lister struct {
	o       *catalog
	f       DocumentFilter
	now     shard.Micros
	limit   int
	page    DocumentPage
	flights map[flight.ID][]heldEntry // the entries of the flights that were read; nil for a flight that has ended
	letters map[shard.DocID][]Letter  // the dead letters that were read
	planned map[shard.DocID][]ScheduledEvent
	listed  []evidence // one for each document of the page, in the same order
}

func (l *lister) list(ctx context.Context) error {
	switch {
	case l.f.Key != "":
		return l.one(ctx)
	case l.o.Rows != nil:
		return l.all(ctx)
	case l.f.State == StateDead || l.f.State == StateRedriven:
		return l.dead(ctx)
	case l.f.State == StateScheduled:
		return l.scheduled(ctx)
	case l.f.State == "", l.f.State == StateWaiting, l.f.State == StateClaimed:
		return l.pending(ctx)
	}
	l.page.Notes = append(l.page.Notes, fmt.Sprintf(
		"Documents that are %s are not listed: that would need a scan of the whole table. Name a key.", l.f.State))
	return nil
}

// look adds to the evidence what a list knows about a document: all but what its sink has.
func (l *lister) look(r shard.Row, e *evidence) {
	e.row, e.now, e.letters, e.sink = r, l.now, l.letters[r.Doc], sinkAnswer{why: "a list does not ask it"}
	for _, p := range l.planned[r.Doc] {
		// An event that is not newer than the committed version will be stale when its time comes.
		if k, err := shard.ParseOrderKey(p.OrderKey); err == nil && k > r.Committed {
			e.planned = append(e.planned, p)
		}
	}
	e.ahead = l.o.farAhead(r.Committed, l.now.Time())
}

// add adds a document to the page if it passes the filter.
func (l *lister) add(r shard.Row) {
	e := l.o.evidence(r.Doc)
	l.look(r, &e)
	state := e.listed()
	if state == StateNobody || l.f.State != "" && l.f.State != state || !l.grouped(r) {
		return
	}
	d := DocumentLine{
		Key: r.Doc, State: state, Version: r.Committed.VersionText(), Operation: r.CommittedOp,
		Written: r.LastWrite.Time(), Attempts: r.Attempts, Refusals: r.Refusals, LastError: r.LastError,
	}
	switch state {
	case StateWaiting, StateClaimed:
		d.Pending, d.Began = r.Pending.VersionText(), r.BurstStart.Time()
		d.Quiet, d.MaxWait = e.timing.Quiet, e.timing.MaxWait
		if d.Flight = r.Flight; state == StateClaimed {
			d.LeaseUntil = r.LeaseUntil.Time()
		}
	case StateDead, StateRedriven:
		d.Pending = e.newest().Version
	case StateScheduled:
		d.Pending, d.Due = e.planned[0].Version, e.planned[0].NotBefore
	}
	l.page.Documents, l.listed = append(l.page.Documents, d), append(l.listed, e)
}

// explain says of each document of the page why it is not fresh.
func (l *lister) explain(ctx context.Context) error {
	var ids []shard.DocID // the health rows of the sinks for which a document waits
	for i := range l.listed {
		id := shard.HealthRow(l.o.Config.SinkOf(l.listed[i].row.Doc))
		if l.page.Documents[i].State == StateWaiting && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	health := map[shard.DocID]shard.Row{}
	if len(ids) > 0 {
		rows, err := l.o.Shards.Read(ctx, ids, shard.Eventual)
		if err != nil {
			return fmt.Errorf("read the health of the sinks: %w", err)
		}
		for i, id := range ids {
			health[id] = rows[i]
		}
	}
	for i := range l.listed {
		e, d := &l.listed[i], &l.page.Documents[i]
		state := d.State
		if state == StateWaiting {
			e.health = health[shard.HealthRow(l.o.Config.SinkOf(e.row.Doc))]
			e.at(l.now, l.o.Config.Retry)
			for _, h := range l.flights[flight.ID(e.row.Flight)] {
				if h.Doc == e.row.Doc {
					e.held = append(e.held, Held{OrderKey: h.Key.String(), Due: h.Due.Time()})
				}
			}
			state, _ = e.verdict()
		}
		d.Wait = e.wait(state)
	}
	return nil
}

// wants reports whether a key passes the filter.
func (l *lister) wants(doc shard.DocID) bool {
	return doc.IsDocument() && (l.f.Collection == "" || l.f.Collection == doc.Collection()) &&
		(l.f.Contains == "" || strings.Contains(strings.ToLower(string(doc)), strings.ToLower(l.f.Contains)))
}

// grouped reports whether a row passes the filter for its message group.
func (l *lister) grouped(r shard.Row) bool { return l.f.Group == "" || l.f.Group == r.Group }

// one finds a document by its row, its dead letter or its schedule.
func (l *lister) one(ctx context.Context) error {
	if err := l.o.whole(l.f.Key); err != nil {
		return err
	}
	row, err := l.o.table().One(ctx, l.f.Key, shard.Consistent)
	if err != nil {
		return fmt.Errorf("read the row: %w", err)
	}
	if l.letters[row.Doc], err = l.o.lettersOf(ctx, row.Doc, ""); err != nil {
		return err
	}
	if l.planned[row.Doc], _, err = l.o.scheduled(ctx, row.Doc); err != nil {
		return err
	}
	l.add(row)
	return nil
}

// dead lists the documents of dead letters. The pages begin with the oldest dead letters.
func (l *lister) dead(ctx context.Context) error {
	state := deadletter.Parked
	if l.f.State == StateRedriven {
		state = deadletter.Redriven
	}
	facts, next, err := l.o.Dead.List(ctx, deadletter.Filter{State: state, Collection: l.f.Collection}, l.f.Cursor,
		l.limit)
	if err != nil {
		return fmt.Errorf("list dead letters: %w", err)
	}
	l.page.Next = next
	return l.lines(ctx, l.keep(facts))
}

// scheduled lists the documents of scheduled events, earliest first.
func (l *lister) scheduled(ctx context.Context) error {
	items, next, err := l.o.Schedule.List(ctx, "", l.f.Cursor, l.limit)
	if err != nil {
		return fmt.Errorf("list scheduled events: %w", err)
	}
	l.page.Next = next
	return l.lines(ctx, l.plan(items))
}

// lines reads the rows of documents, and adds them.
func (l *lister) lines(ctx context.Context, docs []shard.DocID) error {
	if len(docs) == 0 {
		return nil
	}
	rows, err := l.o.Shards.Read(ctx, docs, shard.Eventual)
	if err != nil {
		return fmt.Errorf("read rows: %w", err)
	}
	for _, r := range rows {
		l.add(r)
	}
	return nil
}
