package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/pipeline/enrich"
	"github.com/lullhq/lull/internal/pipeline/prune"
	"github.com/lullhq/lull/internal/pipeline/redrive"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/rows"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

// Operator answers from the seams of a stack. All fields are required, except Archive, Readers,
// Sinks, Off, History, Table, Size, Flow, Parallel and Publisher.
type Operator struct {
	Shards   shard.Store
	Scanner  shard.Scanner
	Dead     deadletter.Store
	Schedule schedule.Store
	Flights  flight.Store
	Archive  archive.Store // nil if the stack archives nothing
	Launcher func(sink string) flight.Launcher
	Queues   func(sink string, lane flight.Lane) queue.Queue
	Counts   func(ctx context.Context) ([]QueueStatus, error)
	Readers  map[string]sink.Reader
	Unread   map[string]error     // why a sink has no reader, by its name; may be nil
	Rows     iter.Seq[shard.Row]  // all rows, for Documents; nil if the rows are not in memory
	Hint     string               // why a sink may not answer this program; may be empty
	Sinks    map[string]sink.Sink // the sinks that this program can write to
	Sources  *source.Set
	Config   *config.Config
	Clock    clock.Clock
	Off      time.Duration // how far Clock may differ from the stack's clock; 0 for the same clock
	Journal  journal.Journal
	Parallel fanout.Runner // nil for goroutines
	// History returns the latest decisions about a document, oldest first. It is nil if the stack
	// does not keep decisions, or if the command does not need them.
	History func(ctx context.Context, doc shard.DocID) ([]Decision, error)

	// Table lists what the table lacks, with the fix for each. It is nil if there is nothing to
	// compare.
	Table func(ctx context.Context) []string

	// Size estimates how many rows and bytes the table has. It is nil if reading the table costs
	// nothing.
	Size func(ctx context.Context) (rows, bytes int64, err error)

	// Connect tries the host that documents are fetched from, and sends no request. It is nil if
	// this program cannot reach the hosts.
	Connect func(ctx context.Context, f source.Fetch) error

	// Flow measures the stack. It is nil if nothing measures it.
	Flow func(ctx context.Context) (Flow, error)

	// Publisher, if set, sends a message instead of Queues, so that the stack can count it.
	Publisher func(ctx context.Context, sink string, lane flight.Lane, out queue.Outgoing) error
}

// API returns the operations of the stack. Its functions read the fields of o when they are called.
func (o *Operator) API() API {
	return API{
		Publish: o.Publish, Forms: o.Forms, Compose: o.Compose, Get: o.Get, Search: o.Search, Status: o.Status,
		Origins: o.Origins, Explain: o.Explain, Documents: o.Documents, InGroup: o.InGroup, Unwritten: o.Unwritten,
		Letters: o.Letters, LetterPage: o.LetterPage, LetterGroups: o.LetterGroups, Letter: o.Letter, Redrive: o.Redrive,
		Drop: o.Drop, Cancel: o.Cancel, Reset: o.Reset, Pause: o.Pause, Object: o.Object, Resume: o.Resume,
		Rescue: o.Rescue, Rebuild: o.Rebuild, Rebuilds: o.Rebuilds, Reconcile: o.Reconcile, Archived: o.Archived,
		Replay: o.Replay, Backfill: o.Backfill, Check: o.Check, Unsearchable: o.Unsearchable, Remove: o.Remove,
		Forget: o.Forget, TakeJob: o.TakeJob, SaveJob: o.SaveJob, EndJob: o.EndJob, Jobs: o.Jobs, StopJob: o.StopJob,
		DropJob: o.DropJob, Size: o.Size,
	}
}

// maxSentEvents is how many events an answer names.
const maxSentEvents = 1000

// Publish sends messages. It refuses and names a message that breaks the contract, and sends the
// others.
func (o *Operator) Publish(ctx context.Context, p Publication) (Published, error) {
	var done Published
	var run shard.Run
	var wrong error
	if p.Run != "" {
		run, wrong = runOf(p.Run)
	}
	err := cmp.Or(
		want(p.Lane == "" || p.Lane == flight.Live || p.Lane == flight.Bulk, "lane %q: want %s or %s", p.Lane,
			flight.Live, flight.Bulk),
		o.has(p.Sink), wrong)
	if err != nil {
		return done, err
	}
	for i, out := range p.Messages {
		out, to, err := o.routed(p, out, run)
		if err != nil {
			done.Refused = append(done.Refused, Refusal{i, err.Error()})
			continue
		}
		for _, sink := range to.Sinks() {
			if p.Sink == "" || p.Sink == sink {
				err = cmp.Or(err, queue.ErrorAt(o.send(ctx, sink, to.Lane, []queue.Outgoing{out}), 0))
			}
		}
		switch {
		case errors.Is(err, queue.ErrTooLarge):
			done.Refused = append(done.Refused, Refusal{i, refusal(err).Error()})
			continue
		case err != nil:
			return done, fmt.Errorf("publish message %d (%d before it were sent): %w", i, done.Messages, err)
		}
		done.Messages++
		done.Events += len(to.Events)
		done.Sent = append(done.Sent, sentEvents(i, to.Events[:min(len(to.Events), maxSentEvents-len(done.Sent))])...)
	}
	return done, nil
}

// routed returns the message in the form that the publication asks for, and its route. The error
// says why the message cannot be sent.
func (o *Operator) routed(p Publication, out queue.Outgoing, run shard.Run) (queue.Outgoing, feed.Route, error) {
	out = out.Foreign() // receive believes the operator's role (ADR 0057), but an upstream wrote this
	m := queue.Message{Body: out.Body, Attributes: out.Attributes, Sent: o.Clock.Now()}
	if p.Run != "" {
		marked, err := feed.Resync(o.Config, o.Sources, m, run, p.Collection)
		if err != nil {
			return out, feed.Route{}, err
		}
		out.Body, m.Body = marked.Body, marked.Body
	}
	if why := out.Refusal(); why != nil {
		return out, feed.Route{}, refusal(why)
	}
	to := feed.RouteOf(o.Config, o.Sources, m)
	to.Lane = cmp.Or(p.Lane, to.Lane)
	if fault := to.Fault(); fault != nil && !p.Unchecked {
		return out, to, fmt.Errorf("%s%w", o.decodedBy(m, to.Sink), fault)
	}
	if sinks := to.Sinks(); p.Sink != "" && !slices.Contains(sinks, p.Sink) {
		return out, to, fmt.Errorf("it is not for sink %s, but for %s", p.Sink, strings.Join(sinks, ", "))
	}
	return out, to, nil
}

// decodedBy names the source that decodes a message which does not name its own. It is empty if the
// message names one, or if there is only one source.
func (o *Operator) decodedBy(m queue.Message, sink string) string {
	names := slices.Sorted(maps.Keys(o.Config.Sources))
	by := o.Sources.At(sink).SourceOf(m)
	if _, named := m.Attributes[queue.AttrSource]; named || len(names) < 2 || by == "" {
		return ""
	}
	return fmt.Sprintf("it names no source (of %s), so %s decodes it: ", strings.Join(names, ", "), by)
}

func sentEvents(message int, results []event.Result) (sent []SentEvent) {
	for _, r := range results {
		e := SentEvent{Message: message, Skip: r.Skip}
		switch {
		case r.Invalid != nil:
			e.Key, e.Invalid = r.Invalid.Doc, r.Invalid.Error()
		case r.Skip == "":
			e.Key, e.Version, e.Operation = r.Event.Doc, r.Event.Version, string(r.Event.Op)
		}
		sent = append(sent, e)
	}
	return sent
}

// refusal adds the fix to the reason why no queue takes a message.
func refusal(why error) error {
	if errors.Is(why, queue.ErrTooLarge) {
		return fmt.Errorf("%w: send the payload by dataref", why)
	}
	return why
}

// send sends to a queue of a sink: one error or nil for each message, nil for none.
func (o *Operator) send(ctx context.Context, sink string, lane flight.Lane, out []queue.Outgoing) []error {
	if o.Publisher != nil {
		errs := make([]error, len(out))
		for i := range out {
			errs[i] = o.Publisher(ctx, sink, lane, out[i])
		}
		return queue.Answer(errs)
	}
	if q := o.Queues(sink, lane); q != nil {
		return q.Send(ctx, out)
	}
	return queue.FailAll(len(out), fmt.Errorf("sink %s has no queue in lane %s", sink, lane))
}

func (o *Operator) table() rows.Table { return rows.Table{Store: o.Shards, Clock: o.Clock} }

// sinks are the names of all sinks, sorted.
func (o *Operator) sinks() []string { return slices.Sorted(maps.Keys(o.Config.Sinks)) }

// has refuses the name of a sink that the stack does not have. A question need not name one.
func (o *Operator) has(sink string) error {
	_, ok := o.Config.Sinks[sink]
	return want(ok || sink == "", "sink %q: this stack has %s", sink, strings.Join(o.sinks(), ", "))
}

// row returns the row of a key. People may name the first sink in the key, but its rows leave the
// name out.
func (o *Operator) row(key shard.DocID) shard.DocID {
	if row, there := o.Config.RowAt(key, key.Sink()); there {
		return row
	}
	return key
}

// rows returns the rows of a key: one if the key names a sink, otherwise one for each sink. It
// refuses a sink that the collection does not have, because the key would be taken for one of the
// first sink.
func (o *Operator) rows(key shard.DocID) ([]shard.DocID, error) {
	name := key.Sink()
	if err := whole(key); err != nil || name == "" {
		return o.Config.RowsOf(key), err
	}
	if _, err := o.sinkOf(key.Collection(), name); err != nil {
		return nil, fmt.Errorf("key %s: %w", key, err)
	}
	return []shard.DocID{o.row(key)}, nil
}

var errUnread = errors.New("it cannot be read from here")

// reader reads a sink back. The error says why it cannot be read.
func (o *Operator) reader(name string) (sink.Reader, error) {
	if r := o.Readers[name]; r != nil {
		return r, nil
	}
	return nil, cmp.Or(o.Unread[name], errUnread)
}

// hinted adds why a sink may not answer this program.
func (o *Operator) hinted(err error) error {
	if o.Hint == "" || errors.Is(err, ErrWriteOnly) {
		return err
	}
	return fmt.Errorf("%w; %s", err, o.Hint)
}

// Get reads a document back.
func (o *Operator) Get(ctx context.Context, key shard.DocID) (Document, error) {
	if _, err := o.rows(key); err != nil {
		return Document{}, err
	}
	name := o.Config.SinkOf(key)
	r, err := o.reader(name)
	switch {
	case errors.Is(err, ErrWriteOnly):
		return Document{}, inputf("sink %s is a %s: %w", name, o.Config.Sinks[name].Kind, ErrWriteOnly)
	case err != nil:
		return Document{}, inputf("sink %s of collection %s cannot be read from here", name, key.Collection())
	}
	s, found, err := r.Get(ctx, key.Plain())
	switch {
	case err != nil:
		return Document{}, fmt.Errorf("get %s: %w", key, err)
	case !found:
		return Document{}, fmt.Errorf("%s: %w in sink %s", key, ErrNotFound, name)
	}
	return asDocument(s, name), nil
}

// asDocument converts a document of a sink to the form that people see.
func asDocument(s sink.Stored, name string) Document {
	return Document{
		ID: s.Doc.ID(), Collection: string(s.Doc.Collection()), Sink: name, Version: s.Version, OrderKey: s.Key,
		Fence: int64(s.Fence), Indexed: s.Indexed, Document: s.Document,
	}
}

// Status counts at most maxCount dead letters, flights and scheduled events, and reads at most
// maxPages pages of scheduled events.
const (
	maxCount = 10_000
	maxPages = 10
)

// Status warns of a paused sink from pauseWarning before its messages become dead letters.
const pauseWarning = 12 * time.Hour

// Status returns the queues, the health of the sinks, and the counts of waiting work.
func (o *Operator) Status(ctx context.Context) (Status, error) {
	var s Status
	var err error
	if s.Queues, err = o.Counts(ctx); err != nil {
		return s, fmt.Errorf("count messages: %w", err)
	}
	s.Flow = o.flow(ctx)
	if o.Table != nil {
		s.Wrong = o.Table(ctx)
	}
	for _, q := range s.Queues {
		s.Wrong = append(s.Wrong, q.Wrong...)
	}
	if err := o.health(ctx, &s); err != nil {
		return s, fmt.Errorf("read health: %w", err)
	}
	if s.Rebuilds, err = o.Rebuilds(ctx); err != nil {
		return s, fmt.Errorf("read rebuilds: %w", err)
	}
	forgotten := o.Clock.Now().Add(-o.Config.Queues.DeadLetterRetention)
	if s.Letters, s.Capped, err = o.Dead.Parked(ctx, forgotten, maxCount); err != nil {
		return s, err
	}
	planned, capped, err := o.scheduled(ctx, "")
	if err != nil {
		return s, err
	}
	s.Scheduled, s.Capped = len(planned), s.Capped || capped
	var flights []flight.Stored
	for cursor := ""; ; {
		list, next, err := o.Flights.List(ctx, cursor, 1000)
		if err != nil {
			return s, fmt.Errorf("count flights: %w", err)
		}
		flights = append(flights, list...)
		if s.Flights = len(flights); next == "" || s.Flights >= maxCount {
			s.Capped = s.Capped || next != ""
			break
		}
		cursor = next
	}
	for i, k := range s.Sinks {
		if !k.Open && k.Pause == nil && k.PutOffUntil.IsZero() {
			continue
		}
		s.Sinks[i].PutOff = o.putOff(ctx, k.Sink, s.Queues, flights)
	}
	return s, nil
}

// health adds the state of the sinks and enrichers from their health rows.
func (o *Operator) health(ctx context.Context, s *Status) error {
	var ids []shard.DocID
	for _, name := range o.sinks() {
		ids = append(ids, shard.HealthRow(name), shard.RunRow("prune-"+name))
		for _, c := range o.Config.Enriched(name) {
			ids = append(ids, shard.HealthRow(enrich.HealthName(c)))
		}
	}
	read, err := o.Shards.Read(ctx, ids, shard.Consistent)
	if err != nil {
		return err
	}
	next := func() (row shard.Row) { // in the order of the ids
		row, read = read[0], read[1:]
		return row
	}
	now := shard.MicrosOf(o.Clock.Now())
	for _, name := range o.sinks() {
		h, run, ceiling := next(), next(), o.Config.Ceiling(name)
		p, until, cause := o.pauseOf(h), putOffUntil(o.Config.Retry, h, now), h.LastError
		if h.OpenUntil == 0 && until.IsZero() && shard.Pace(h, now) == 0 {
			cause = "" // the incident is over
		}
		s.Sinks = append(s.Sinks, SinkStatus{
			Cause: cause, PutOffUntil: until,
			Sink: name, Open: h.OpenUntil != 0, OpenUntil: h.OpenUntil.Time(), Since: unhealthySince(o.Config.Retry, h),
			Level: h.Level, Rate: float64(shard.Pace(h, now)) / 1000, Growing: shard.SlowStart(h, now),
			Ceiling: float64(ceiling) / 1000, AtCeiling: ceiling > 0 && shard.Ahead(h, now) > 0, Pause: p,
		})
		if p != nil && o.Clock.Now().After(p.DeadFrom.Add(-pauseWarning)) {
			s.Wrong = append(s.Wrong, fmt.Sprintf("sink %s is paused since %s, and its messages become dead letters from %s "+
				"on: `lull resume %s`, and redrive those that are dead", name, p.Since.Format(time.RFC3339),
				p.DeadFrom.Format(time.RFC3339), name))
		}
		if at := run.RanAt.Time(); at.After(s.Pruned) {
			s.Pruned = at
		}
		for _, c := range o.Config.Enriched(name) {
			h := next()
			s.Enrichers = append(s.Enrichers, EnricherStatus{
				Collection: c, Away: h.OpenUntil != 0, AwayUntil: h.OpenUntil.Time(),
				Rate: float64(shard.Pace(h, now)) / 1000,
			})
		}
	}
	return nil
}

// Origins connects to the hosts that documents are fetched from. If only index may reach a host,
// another machine does not try it.
func (o *Operator) Origins(ctx context.Context) ([]Origin, error) {
	all := []Origin{}
	for _, name := range slices.Sorted(maps.Keys(o.Config.Sources)) {
		f := o.Config.Sources[name].Fetch
		if f == nil {
			continue
		}
		from := Origin{Source: name, Host: f.Host()}
		switch bucket, _, inS3 := f.Bucket(); {
		case inS3:
			from.Host, from.Unchecked = bucket, "index reads the bucket with rights of its own"
		case o.Connect == nil:
			from.Unchecked = "no host is asked from here"
		case o.Off > 0 && f.Private():
			from.Unchecked = "the host is private, and only index may reach it"
		default:
			if err := o.Connect(ctx, *f); err != nil {
				from.Problem = err.Error()
			}
		}
		all = append(all, from)
	}
	return all, nil
}

// scheduled lists the scheduled events of a document, or of all documents, earliest first. capped
// says that there may be more.
func (o *Operator) scheduled(ctx context.Context, key shard.DocID) (list []ScheduledEvent, capped bool, err error) {
	for cursor, pages := "", 0; ; pages++ {
		items, next, err := o.Schedule.List(ctx, key, cursor, 1000)
		if err != nil {
			return nil, false, fmt.Errorf("list scheduled events: %w", err)
		}
		for _, it := range items {
			list = append(list, ScheduledEvent{
				Version: it.Key.VersionText(), OrderKey: it.Key.String(), NotBefore: it.NotBefore,
				MessageID: it.MessageID,
			})
		}
		if next == "" || len(list) >= maxCount || pages == maxPages {
			return list, next != "", nil
		}
		cursor = next
	}
}

func (o *Operator) redrives() *redrive.Service {
	return &redrive.Service{
		Shards: o.Shards, Letters: o.Dead, Flights: o.Flights, Schedule: o.Schedule, Queues: o.Queues,
		Config: o.Config, Clock: o.Clock, Journal: o.Journal,
	}
}

// Rescued names the flight that a rescue has started.
type Rescued struct {
	ID flight.ID `json:"id"`
}

// Rescue starts a flight from the manifest of a stuck one.
func (o *Operator) Rescue(ctx context.Context, id flight.ID) (r Rescued, err error) {
	m, err := o.Flights.Get(ctx, id)
	if errors.Is(err, flight.ErrNotFound) {
		return r, fmt.Errorf("flight %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return r, fmt.Errorf("rescue flight %s: %w", id, err)
	}
	if _, ours := o.Config.Sinks[m.Sink]; !ours {
		return r,
			inputf(
				"rescue flight %s: its sink %q is not in these settings: does the flight belong to another stack?",
				id,
				m.Sink,
			)
	}
	p := prune.Pruner{
		Shards: o.Shards, Flights: o.Flights, Letters: o.Dead, Schedule: o.Schedule,
		Live: o.Queues(m.Sink, flight.Live),
		Bulk: o.Queues(m.Sink, flight.Bulk), Launcher: o.Launcher(m.Sink), Config: o.Config, Sink: m.Sink,
		Clock: o.Clock, Journal: o.Journal, NewID: flight.NewID,
	}
	r.ID, err = p.Rescue(ctx, id)
	return r, kind(err)
}

// Cancel makes the pending version of a document a dead letter, or its next scheduled event.
func (o *Operator) Cancel(ctx context.Context, c Cancellation) (Letter, error) {
	if err := named(c.By); err != nil {
		return Letter{}, err
	}
	// One of the sinks may have written the version already.
	done, err := eachRow(o, c.Key, func(row shard.DocID) (deadletter.Facts, error) {
		f, err := o.cancel(ctx, row, c)
		return f, kind(err)
	})
	if err != nil {
		return Letter{}, err
	}
	return asLetter(done[0]), nil
}

// eachRow changes the rows of a key: one if the key names a sink, otherwise one for each sink. If
// at least one change succeeds, rows with nothing to change are not an error.
func eachRow[A any](o *Operator, key shard.DocID, change func(shard.DocID) (A, error)) (done []A, err error) {
	rows, err := o.rows(key)
	if err != nil {
		return nil, err
	}
	var why error
	for _, row := range rows {
		a, err := change(row)
		switch {
		case err == nil:
			done = append(done, a)
		case !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrInput):
			return nil, err
		default:
			why = cmp.Or(why, err)
		}
	}
	if len(done) == 0 {
		return nil, why
	}
	return done, nil
}

func (o *Operator) cancel(ctx context.Context, row shard.DocID, c Cancellation) (deadletter.Facts, error) {
	cancel := o.redrives().Cancel
	if c.Scheduled {
		cancel = o.redrives().CancelScheduled
	}
	f, err := cancel(ctx, row, c.By)
	if errors.Is(err, redrive.ErrNotPending) {
		if planned, _, look := o.scheduled(ctx, row); look == nil && len(planned) > 0 {
			err = fmt.Errorf("%w, but version %s is scheduled for %s: cancel that with --scheduled", err,
				planned[0].Version, planned[0].NotBefore.UTC().Format(time.RFC3339))
		}
	}
	return f, err
}
