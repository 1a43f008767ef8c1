// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/pipeline/reconcile"
	"github.com/lullhq/lull/internal/pipeline/redrive"
	"github.com/lullhq/lull/internal/seam/backoff"
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
)

// layout answers questions about sinks, rows and versions from the settings.
type layout struct{ Config *config.Config }

// sinks returns the names of all sinks, sorted.
func (o *layout) sinks() []string { return slices.Sorted(maps.Keys(o.Config.Sinks)) }

// has refuses the name of a sink that the stack does not have. It accepts an empty name.
func (o *layout) has(sink string) error {
	_, ok := o.Config.Sinks[sink]
	return want(ok || sink == "", "sink %q: this stack has %s", sink, strings.Join(o.sinks(), ", "))
}

// row returns the row of a key. A key may name the first sink, but the rows of the first sink do
// not contain its name.
func (o *layout) row(key shard.DocID) shard.DocID {
	if row, there := o.Config.RowAt(key, key.Sink()); there {
		return row
	}
	return key
}

// rows returns the rows of a key: one row if the key names a sink, otherwise one for each sink. It
// refuses a sink that the collection does not have, because the first sink would then be used.
func (o *layout) rows(key shard.DocID) ([]shard.DocID, error) {
	name := key.Sink()
	if err := o.whole(key); err != nil || name == "" {
		return o.Config.RowsOf(key), err
	}
	if _, err := o.sinkOf(key.Collection(), name); err != nil {
		return nil, fmt.Errorf("key %s: %w", key, err)
	}
	return []shard.DocID{o.row(key)}, nil
}

// unknown says that the settings list collections, but not this one. It is empty if they do not,
// or if the collection is empty.
func (o *layout) unknown(c shard.Collection) string {
	known := slices.Sorted(maps.Keys(o.Config.Collections))
	if c == "" || len(known) == 0 || slices.Contains(known, string(c)) {
		return ""
	}
	return fmt.Sprintf("the settings name no collection %q, they name %s", c, strings.Join(known, ", "))
}

// sinkOf returns the wanted sink of a collection. If wanted is empty, the collection must have only
// one.
func (o *layout) sinkOf(c shard.Collection, wanted string) (string, error) {
	all := o.Config.SinksFor(string(c))
	name, known := cmp.Or(wanted, all[0]), strings.Join(all, ", ")
	return name, cmp.Or(
		want(wanted != "" || len(all) == 1, "collection %s is in the sinks %s: name one of them (--sink)", c, known),
		want(slices.Contains(all, name), "sink %s: collection %s is in sink %s", name, c, known))
}

// firstVersion returns the smallest version of a class, or of the collection's class if class is 0.
func (o *layout) firstVersion(c shard.Collection, class shard.Class) (v shard.Version, err error) {
	if class == 0 {
		class, err = o.classOf(c)
	}
	if err != nil {
		return v, err
	}
	return shard.FirstVersion(class)
}

// classOf returns the class of a collection's versions, if the settings allow only one.
func (o *layout) classOf(c shard.Collection) (shard.Class, error) {
	var found shard.Class
	// Look at the sources of the collection first. If there are none, look at all sources.
	for _, sources := range [][]config.Source{
		o.Config.SourcesOf(string(c)), slices.Collect(maps.Values(o.Config.Sources)),
	} {
		for _, s := range sources {
			class, err := shard.ParseClass(string(s.Class))
			if err != nil || found != 0 && class != found {
				return 0, fmt.Errorf("the class of the versions of collection %s is unknown: its sources have several classes", c)
			}
			found = class
		}
		if found != 0 {
			return found, nil
		}
	}
	return 0, fmt.Errorf("the class of the versions of collection %s is unknown: no source has one", c)
}

// records are the rows of the table.
type records struct {
	Shards shard.Store
	Clock  clock.Clock
}

func (o *records) table() rows.Table { return rows.Table{Store: o.Shards, Clock: o.Clock} }

// sender sends messages to the queues.
type sender struct {
	Queues    func(sink string, lane flight.Lane) queue.Queue
	Publisher func(ctx context.Context, sink string, lane flight.Lane, out queue.Outgoing) error // used if set
	// Others reaches the stacks of other parts. It is nil if only this stack is reached.
	Others func(part int) Other
	Part   int // of this stack; 0 if it has all documents
}

// send sends messages to a queue of a sink, in the stack of a part. It returns an error or nil for
// each message, or nil if all were sent.
func (o *sender) send(ctx context.Context, part int, sink string, lane flight.Lane, out []queue.Outgoing) []error {
	if !o.own(part) {
		return o.sendOther(ctx, part, sink, lane, out)
	}
	if o.Publisher != nil {
		errs := make([]error, len(out))
		for i := range out {
			errs[i] = o.Publisher(ctx, sink, lane, out[i])
			if errs[i] != nil && !errors.Is(errs[i], queue.ErrTooLarge) {
				copy(errs[i+1:], queue.FailAll(len(out)-i-1, errs[i])) // the messages after it are not sent
				break
			}
		}
		return queue.Answer(errs)
	}
	if q := o.Queues(sink, lane); q != nil {
		return q.Send(ctx, out)
	}
	return queue.FailAll(len(out), fmt.Errorf("sink %s has no queue in lane %s", sink, lane))
}

// depths counts the messages in the queues.
type depths struct {
	Counts func(ctx context.Context) ([]QueueStatus, error)
}

// waiting counts all messages in the queues of a sink, also the invisible ones. An empty lane
// counts both lanes.
func (o *depths) waiting(ctx context.Context, sink string, lane flight.Lane) (n int, err error) {
	counts, err := o.Counts(ctx)
	for _, q := range counts {
		if q.Sink == sink && strings.HasSuffix(q.Queue, string(lane)) {
			n += q.Visible + q.InFlight + q.Delayed
		}
	}
	return n, err
}

// manifests are the flights and their messages.
type manifests struct{ Flights flight.Store }

// heldEntry is an entry of a flight, with the id of its message. The manifest contains bodies, so
// it is not kept in memory.
type heldEntry struct {
	flight.Entry
	message string
}

// entries returns the entries of a flight. It returns none if the flight has ended, or if a newer
// build of lull wrote its manifest.
func (o *manifests) entries(ctx context.Context, id flight.ID) (all []heldEntry, err error) {
	m, err := o.manifest(ctx, id)
	switch {
	case errors.Is(err, flight.ErrSchema):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get manifest %s: %w", id, err)
	}
	for r, e := range m.Entries() {
		all = append(all, heldEntry{*e, m.Records[r].Message.ID})
	}
	return all, nil
}

// manifest returns the manifest of a flight, or an empty one if the flight has ended.
func (o *manifests) manifest(ctx context.Context, id flight.ID) (*flight.Manifest, error) {
	m, err := o.Flights.Get(ctx, id)
	if errors.Is(err, flight.ErrNotFound) {
		return new(flight.Manifest), nil
	}
	return m, err
}

// plans are the events that wait for their time.
type plans struct{ Schedule schedule.Store }

// scheduled lists the scheduled events of a document, or of all documents, earliest first. capped
// says that there may be more.
func (o *plans) scheduled(ctx context.Context, key shard.DocID) (list []ScheduledEvent, capped bool, err error) {
	for cursor, pages := "", 0; ; pages++ {
		items, next, err := o.Schedule.List(ctx, key, cursor, 1000)
		if err != nil {
			return nil, false, fmt.Errorf("list scheduled events: %w", err)
		}
		for _, it := range items {
			list = append(list, asScheduled(it))
		}
		if next == "" || len(list) >= maxCount || pages == maxPages {
			return list, next != "", nil
		}
		cursor = next
	}
}

func asScheduled(it schedule.Item) ScheduledEvent {
	return ScheduledEvent{
		Version: it.Key.VersionText(), OrderKey: it.Key.String(), NotBefore: it.NotBefore, MessageID: it.MessageID,
	}
}

// parked are the dead letters.
type parked struct {
	lay      layout
	redrives *redrive.Service
}

// selection converts a filter. A key without a sink selects the document in all sinks, also in a
// sink that the settings no longer have.
func (o *parked) selection(f LetterFilter) redrive.Selection {
	s := redrive.Selection{ID: f.ID, Filter: deadletter.Filter{
		Reason: f.Reason, Collection: f.Collection, After: f.After, Before: f.Before, State: f.State,
	}}
	if f.Key.Sink() == "" {
		s.Document = f.Key
	} else {
		s.Doc = o.lay.row(f.Key)
	}
	return s
}

// lettersOf lists the dead letters of one row. An empty state means any state.
func (o *parked) lettersOf(ctx context.Context, row shard.DocID, state deadletter.State) ([]Letter, error) {
	return o.list(ctx, redrive.Selection{Filter: deadletter.Filter{Doc: row, State: state}})
}

func (o *parked) list(ctx context.Context, s redrive.Selection) ([]Letter, error) {
	out := []Letter{}
	err := o.redrives.List(ctx, s, func(facts deadletter.Facts) error {
		out = append(out, asLetter(facts))
		return nil
	})
	return out, kind(err)
}

// readEach calls f for each of n messages. broken has the errors of the messages that can never be
// read. Such a message does not stop the reading of the others.
func readEach(ctx context.Context, parallel fanout.Runner, n int, f func(i int) error) (broken []error, err error) {
	broken = make([]error, n)
	return broken, parallel.Try(forgetParallel, n, func(i int) error {
		err := f(i)
		if backoff.Final(err) && ctx.Err() == nil {
			broken[i], err = err, nil
		}
		return err
	})
}

// engines has the sinks that this program can reach, and the rows of their documents.
type engines struct {
	layout
	records

	Scanner  shard.Scanner
	Readers  map[string]sink.Reader
	Sinks    map[string]sink.Sink
	Unread   map[string]error // why a sink has no reader, by its name; may be nil
	Hint     string           // why a sink may not answer this program; may be empty
	Off      time.Duration    // how far Clock may differ from the stack's clock
	Journal  journal.Journal
	Parallel fanout.Runner // nil for goroutines
}

var errUnread = errors.New("it cannot be read from here")

// reader returns the reader of a sink. The error says why the sink cannot be read.
func (o *engines) reader(name string) (sink.Reader, error) {
	if r := o.Readers[name]; r != nil {
		return r, nil
	}
	return nil, cmp.Or(o.Unread[name], errUnread)
}

// hinted adds to an error why a sink may not answer this program.
func (o *engines) hinted(err error) error {
	if o.Hint == "" || errors.Is(err, ErrWriteOnly) {
		return err
	}
	return fmt.Errorf("%w; %s", err, o.Hint)
}

// auditedSink returns the sink of a collection. It refuses a sink that this program cannot read and
// write.
func (o *engines) auditedSink(c shard.Collection, wanted string) (string, error) {
	name, err := o.sinkOf(c, wanted)
	return name, cmp.Or(belongs(c), err, o.reached(name, c))
}

// reached refuses a sink that this program cannot read and write.
func (o *engines) reached(name string, c shard.Collection) error {
	return want(o.Readers[name] != nil && o.Sinks[name] != nil,
		"sink %s of collection %s cannot be read from here", name, c)
}

func (o *engines) looker(name string) reconcile.Looker {
	return reconcile.Looker{
		Shards: o.Shards, Reader: o.Readers[name], SinkName: name, Config: o.Config, Clock: o.Clock, Off: o.Off,
		Parallel: o.Parallel,
	}
}

func (o *engines) reconciler(name string) *reconcile.Service {
	return &reconcile.Service{
		Looker: o.looker(name), Scanner: o.Scanner, Sink: o.Sinks[name], Journal: o.Journal,
		NewToken: rows.NewToken,
	}
}
