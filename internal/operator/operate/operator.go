// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"iter"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/export"
	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/pipeline/redrive"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

// Operator has the parts of a stack from which its operations are built. All fields are required,
// except Archive, Readers, Unread, Rows, Hint, Sinks, Off, Parallel, History, Table, Size, Connect,
// Fetch, Flow, Others and Publisher.
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
	Off      time.Duration // how far Clock may differ from the stack's clock; 0 if they are the same clock
	Journal  journal.Journal
	Parallel fanout.Runner // nil for goroutines
	// History returns the latest decisions about a document, oldest first. It is nil if the stack
	// does not keep decisions, or if the command does not need them.
	History func(ctx context.Context, doc shard.DocID) ([]Decision, error)

	// Table lists the faults of the table, with the fix for each. It is nil if there is nothing to
	// compare.
	Table func(ctx context.Context) []string

	// Size estimates how many rows and bytes the table has. It is nil if reading the table costs
	// nothing.
	Size func(ctx context.Context) (rows, bytes int64, err error)

	// Connect tries to connect to the host that documents are fetched from. It sends no request. It is
	// nil if this program cannot reach the hosts.
	Connect func(ctx context.Context, f source.Fetch) error

	// Fetch loads the newest state of a document from a source that has the setting fetch. It returns
	// the errors of [payload.Loader.Fetch]. It is nil if this program cannot ask the sources.
	Fetch export.Fetch

	// Flow measures the stack. It is nil if nothing measures it.
	Flow func(ctx context.Context) (Flow, error)

	// Others returns the stack of another part. It is nil if this program reaches only its own stack.
	Others func(part int) Other

	// Publisher, if set, sends a message instead of Queues, so that the stack can count it.
	Publisher func(ctx context.Context, sink string, lane flight.Lane, out queue.Outgoing) error
}

// API returns the operations of the stack. Each service gets the parts of the stack that it uses.
func (o *Operator) API() API {
	lay := layout{o.Config}
	rec := records{o.Shards, o.Clock}
	eng := engines{
		layout:   lay,
		records:  rec,
		Scanner:  o.Scanner,
		Readers:  o.Readers,
		Sinks:    o.Sinks,
		Unread:   o.Unread,
		Hint:     o.Hint,
		Off:      o.Off,
		Journal:  o.Journal,
		Parallel: o.Parallel,
	}
	man, pla, dep := manifests{o.Flights}, plans{o.Schedule}, depths{o.Counts}
	sen, und := sender{o.Queues, o.Publisher, o.Others, o.Config.Parts.This}, underway{lay, rec}
	par := parked{lay, &redrive.Service{
		Shards: o.Shards, Letters: o.Dead, Flights: o.Flights, Schedule: o.Schedule, Queues: o.Queues, Config: o.Config,
		Clock: o.Clock, Journal: o.Journal,
	}}
	pub := &publisher{lay, sen, o.Sources, o.Clock}
	com := &composer{lay, o.Sources, o.Clock}
	doc := &documents{eng}
	rep := &reporter{lay, rec, man, pla, und, o.Counts, o.Dead, o.Table, o.Flow}
	exp := &explainer{eng, man, pla, par, dep, o.History}
	let := &letters{par, o.Sources}
	pau := &pauser{lay, rec, o.Journal}
	reb := &rebuilder{eng, dep, und}
	audit := &comparer{eng, o.Sources, o.Fetch}
	ply := &replayer{lay, rec, sen, o.Archive, o.Sources, o.Journal}
	jobs := &ledger{rec}
	return API{
		Publish:      pub.Publish,
		Forms:        com.Forms,
		Compose:      com.Compose,
		Get:          doc.Get,
		Progress:     doc.Progress,
		Searchable:   doc.Searchable,
		Search:       doc.Search,
		Explain:      exp.Explain,
		Documents:    (&catalog{lay, rec, man, pla, par, o.Dead, o.Rows, o.Parallel}).Documents,
		InGroup:      (&groups{o.Dead, o.Schedule, o.Scanner, o.Parallel}).InGroup,
		Unwritten:    (&unwritten{rec, man, par, o.Sources}).Unwritten,
		Status:       rep.Status,
		Origins:      (&origins{lay, o.Connect, o.Off}).Origins,
		Parts:        o.spread,
		Size:         o.Size,
		Letters:      let.Letters,
		LetterPage:   let.LetterPage,
		LetterGroups: let.LetterGroups,
		Letter:       let.Letter,
		Redrive:      let.Redrive,
		Drop:         let.Drop,
		Cancel:       (&canceller{lay, par, pla}).Cancel,
		Reset:        (&resetter{lay, rec, o.Journal}).Reset,
		Pause:        pau.Pause,
		Resume:       pau.Resume,
		Object:       (&objectReads{lay, rec, o.Journal}).Object,
		Rescue: (&rescuer{
			lay, o.Shards, o.Flights, o.Dead, o.Schedule, o.Launcher, o.Queues, o.Clock, o.Journal,
		}).Rescue,
		Rebuild:      reb.Rebuild,
		Rebuilds:     und.Rebuilds,
		Reconcile:    audit.Reconcile,
		Check:        audit.Check,
		AskSource:    audit.AskSource,
		Unsearchable: audit.Unsearchable,
		Remove:       (&remover{eng}).Remove,
		Archived:     ply.Archived,
		Replay:       ply.Replay,
		Backfill:     (&backfiller{eng}).Backfill,
		Forget:       (&forgetter{eng, man, o.Dead, o.Schedule, o.Archive, o.Sources}).Forget,
		TakeJob:      jobs.TakeJob,
		SaveJob:      jobs.SaveJob,
		EndJob:       jobs.EndJob,
		Jobs:         jobs.Jobs,
		StopJob:      jobs.StopJob,
		DropJob:      jobs.DropJob,
	}
}
