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
	Cursor     string           `json:"cursor,omitempty"`   // Next of the page before; empty for the first
	Limit      int              `json:"limit,omitempty"`    // 1 to 1000; 0 for 100
}

// DocumentPage is a part of a list of documents.
type DocumentPage struct {
	Documents []DocumentLine `json:"documents"`
	// Next is the cursor of the next page, empty at the end. A page may be empty and have one.
	Next string `json:"next,omitempty"`
	// Counts are the documents of the whole stack by state. It is nil if counting them takes a
	// scan.
	Counts map[State]int `json:"counts,omitempty"`
	// Notes say what the list cannot show, and why.
	Notes []string  `json:"notes,omitempty"`
	Now   time.Time `json:"now"` // by the stack's clock
}

// DocumentLine describes a document by its row alone, without asking the sink.
type DocumentLine struct {
	Key        shard.DocID     `json:"key"`
	State      State           `json:"state"`
	Version    string          `json:"version,omitempty"` // the committed one, for people
	Operation  shard.Operation `json:"operation,omitempty"`
	Written    time.Time       `json:"written_at,omitzero"` // the last write
	Pending    string          `json:"pending,omitempty"`   // the version that waits, is scheduled or is dead
	Began      time.Time       `json:"began_at,omitzero"`   // start of the burst that waits
	Due        time.Time       `json:"due_at,omitzero"`     // of the version that waits, or is scheduled
	Quiet      time.Duration   `json:"quiet_ns,omitempty"`
	MaxWait    time.Duration   `json:"max_wait_ns,omitempty"`
	LeaseUntil time.Time       `json:"lease_until,omitzero"` // of a claimed document
	Flight     string          `json:"flight,omitempty"`     // the flight that admitted the waiting version
	// Held is the least number of messages about the document that wait in flights. A list reads
	// only a part of the flights.
	Held      int    `json:"held,omitempty"`
	Attempts  int64  `json:"attempts,omitempty"`
	Refusals  int64  `json:"refusals,omitempty"`
	LastError string `json:"last_error,omitempty"`
}

// ListedStates are the states that a list can be filtered by. A row alone says less than [States].
func ListedStates() []State {
	return []State{
		StateWaiting, StateClaimed, StateDead, StateScheduled, StateFresh, StateReset, StateForgotten, StateDropped,
		StateUnreadable,
	}
}

// maxWindow is how many flights a list reads. Each costs one read of the bucket.
const (
	maxWindow = 200
	maxGets   = 16 // at once
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
// ([Operator.Rows]), it lists every document by key. Otherwise it lists waiting, dead and scheduled
// documents, found by their flights, dead letters and schedules. It never scans the table.
func (o *catalog) Documents(ctx context.Context, f DocumentFilter) (DocumentPage, error) {
	limit, wrong := limited(f.Limit, pageSize, maxPageSize)
	l := lister{
		o: o, f: f, now: shard.MicrosOf(o.Clock.Now()), limit: limit, flights: map[flight.ID][]heldEntry{},
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
	return l.page, l.hold(ctx)
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
	flights map[flight.ID][]heldEntry // the flights that were read; nil for one that has ended
}

func (l *lister) list(ctx context.Context) error {
	switch {
	case l.f.Key != "":
		return l.one(ctx)
	case l.f.State == StateDead:
		return l.dead(ctx)
	case l.f.State == StateScheduled:
		return l.scheduled(ctx)
	case l.o.Rows != nil:
		return l.all(ctx)
	case l.f.State == "", l.f.State == StateWaiting, l.f.State == StateClaimed:
		return l.pending(ctx)
	}
	l.page.Notes = append(l.page.Notes, fmt.Sprintf(
		"Documents that are %s are not listed: that would take a scan of the whole table. Name a key.", l.f.State))
	return nil
}

// line describes a document by its row.
func (l *lister) line(r shard.Row) DocumentLine {
	d := DocumentLine{
		Key: r.Doc, State: listedState(r, l.now), Version: r.Committed.VersionText(), Operation: r.CommittedOp,
		Written: r.LastWrite.Time(), Attempts: r.Attempts, Refusals: r.Refusals, LastError: r.LastError,
	}
	switch d.State {
	case StateWaiting, StateClaimed:
		t := l.o.Config.Timing(r.Doc.Collection())
		d.Pending, d.Began, d.Quiet, d.MaxWait = r.Pending.VersionText(), r.BurstStart.Time(), t.Quiet, t.MaxWait
		if d.Flight = r.Flight; d.State == StateClaimed {
			d.LeaseUntil = r.LeaseUntil.Time()
		}
	case StateDead:
		d.Pending = r.Dead.VersionText()
	}
	return d
}

// listedState derives the state from the row alone.
func listedState(r shard.Row, now shard.Micros) State {
	switch {
	case r.Foreign():
		return StateUnreadable
	case r.Pending > r.Committed && r.Leased(now):
		return StateClaimed
	case r.Pending > r.Committed:
		return StateWaiting
	case r.Dead > r.Committed:
		return StateDead
	case r.Committed == "":
		return StateDropped
	case r.Committed.IsFloor():
		return StateReset
	case r.Committed.IsFinal():
		return StateForgotten
	}
	return StateFresh
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
	if err := whole(l.f.Key); err != nil {
		return err
	}
	row, err := l.o.table().One(ctx, l.f.Key, shard.Consistent)
	if err != nil {
		return fmt.Errorf("read the row: %w", err)
	}
	d := l.line(row)
	if !row.Exists() {
		letters, err := l.o.lettersOf(ctx, l.f.Key, deadletter.Parked)
		if err != nil {
			return err
		}
		planned, _, err := l.o.scheduled(ctx, l.f.Key)
		switch {
		case err != nil:
			return err
		case len(letters) > 0:
			d = DocumentLine{Key: l.f.Key, State: StateDead, Pending: letters[0].Version}
		case len(planned) > 0:
			d = DocumentLine{
				Key: l.f.Key, State: StateScheduled, Pending: planned[0].Version, Due: planned[0].NotBefore,
			}
		default:
			return nil
		}
	}
	if (l.f.State == "" || l.f.State == d.State) && l.grouped(row) {
		l.page.Documents = append(l.page.Documents, d)
	}
	return nil
}

// all reads every row in memory, counts it, and keeps the rows of this page in the order of their
// keys.
func (l *lister) all(ctx context.Context) error {
	l.page.Counts = map[State]int{}
	found := make([]shard.Row, 0, l.limit+2) // one more row says that there is a next page
	for r := range l.o.Rows {
		if !r.Doc.IsDocument() {
			continue
		}
		state := listedState(r, l.now)
		l.page.Counts[state]++
		if string(r.Doc) <= l.f.Cursor || l.f.State != "" && l.f.State != state || !l.wants(r.Doc) || !l.grouped(r) ||
			len(found) > l.limit && r.Doc > found[l.limit].Doc {
			continue
		}
		at, _ := slices.BinarySearchFunc(found, r, func(a, b shard.Row) int { return cmp.Compare(a.Doc, b.Doc) })
		if found = slices.Insert(found, at, r); len(found) > l.limit+1 {
			found = found[:l.limit+1]
		}
	}
	if len(found) > l.limit {
		found = found[:l.limit]
		l.page.Next = string(found[l.limit-1].Doc)
	}
	for _, r := range found {
		l.page.Documents = append(l.page.Documents, l.line(r))
	}
	return ctx.Err()
}

// dead lists the documents of parked dead letters, the oldest ones first.
func (l *lister) dead(ctx context.Context) error {
	facts, next, err := l.o.Dead.List(ctx, deadletter.Filter{State: deadletter.Parked, Collection: l.f.Collection},
		l.f.Cursor, l.limit)
	if err != nil {
		return fmt.Errorf("list dead letters: %w", err)
	}
	l.page.Next = next
	facts = slices.DeleteFunc(facts, func(f deadletter.Facts) bool { return f.Doc == "" || !l.wants(f.Doc) })
	slices.SortStableFunc(facts, func(a, b deadletter.Facts) int {
		return cmp.Or(cmp.Compare(a.Doc, b.Doc), cmp.Compare(b.Key, a.Key)) // the newest version of each
	})
	facts = slices.CompactFunc(facts, func(a, b deadletter.Facts) bool { return a.Doc == b.Doc })
	return l.lines(ctx, len(facts), func(i int) shard.DocID { return facts[i].Doc }, func(i int, r shard.Row) {
		d := l.line(r)
		if d.State == StateWaiting || d.State == StateClaimed || r.Took(facts[i].Key) ||
			r.Committed >= facts[i].Key && r.Exists() {
			return // a newer version is pending or committed
		}
		d.State, d.Pending = StateDead, facts[i].Key.VersionText()
		l.page.Documents = append(l.page.Documents, d)
	})
}

// scheduled lists the documents of scheduled events, earliest first.
func (l *lister) scheduled(ctx context.Context) error {
	items, next, err := l.o.Schedule.List(ctx, "", l.f.Cursor, l.limit)
	if err != nil {
		return fmt.Errorf("list scheduled events: %w", err)
	}
	l.page.Next = next
	seen := map[shard.DocID]bool{}
	kept := items[:0]
	for _, it := range items {
		if l.wants(it.Doc) && !seen[it.Doc] {
			seen[it.Doc], kept = true, append(kept, it)
		}
	}
	return l.lines(ctx, len(kept), func(i int) shard.DocID { return kept[i].Doc }, func(i int, r shard.Row) {
		d := l.line(r)
		d.State, d.Pending, d.Due = StateScheduled, kept[i].Key.VersionText(), kept[i].NotBefore
		l.page.Documents = append(l.page.Documents, d)
	})
}

// lines reads the rows of n documents.
func (l *lister) lines(ctx context.Context, n int, doc func(i int) shard.DocID, add func(i int, r shard.Row)) error {
	if n == 0 {
		return nil
	}
	docs := make([]shard.DocID, n)
	for i := range docs {
		docs[i] = doc(i)
	}
	rows, err := l.o.Shards.Read(ctx, docs, shard.Eventual)
	if err != nil {
		return fmt.Errorf("read rows: %w", err)
	}
	for i, r := range rows {
		if l.grouped(r) {
			add(i, r)
		}
	}
	return nil
}
