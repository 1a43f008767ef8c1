package transition

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lullhq/lull/internal/config"
)

// Finding is the effect of one changed setting on a deploy.
type Finding struct {
	Setting string `json:"setting"`
	Old     string `json:"old"` // empty if the setting is new
	New     string `json:"new"` // empty if the setting was removed
	// Stack is what happens to the resources of the stack: Updated, Created or Removed. It is
	// Replaced if every resource gets another name.
	Stack Action `json:"stack"`
	Does  string `json:"does"`
	First string `json:"first,omitempty"` // what to do before the deploy, or right after it
	// Serious says that something is replaced, lost or left behind unless the operator does First.
	Serious bool `json:"serious"`
}

// rule is the effect of changing certain settings. The first matching rule is used.
type rule struct {
	settings []string                 // generic names
	when     func(config.Change) bool // nil for every change
	finding  Finding
}

const (
	drain  = "first stop the senders, and wait until `lull status` shows empty queues and no flights"
	resync = "after the deploy, publish everything again: `lull resync`"
)

// none is how an empty text is written.
const none = `""`

// rules lists the settings that affect more than future events.
var rules = []rule{
	{[]string{"stack"}, nil, Finding{
		Stack: Replaced, Serious: true,
		Does:  "another stack beside this one: its table, bucket and queues are new and empty, and this one stays",
		First: "after the deploy, move the senders, publish everything again (`lull resync`), and remove the old stack",
	}},
	{[]string{"sinks.<name>.kind", "sinks.<name>.url", "sinks.<name>.index"}, nil, Finding{
		Does:    "documents are written to another place, which does not hold those that were written before",
		First:   resync,
		Serious: true,
	}},
	{[]string{"table.name"}, func(c config.Change) bool { return c.Old == none }, Finding{
		Stack: Removed, Serious: true, First: resync,
		Does: "the stack's own table stays outside of it, with its rows; the other one knows no version of any document",
	}},
	{[]string{"table.name"}, func(c config.Change) bool { return c.New == none }, Finding{
		Stack: Created, Serious: true, First: resync + "; if a table of the stack's stayed, import it before the deploy",
		Does: "the stack has a table of its own, which begins empty; the other one stays as it is",
	}},
	{[]string{"table.name"}, nil, Finding{
		Serious: true, First: resync, Does: "the other table knows no version of any document",
	}},
	{[]string{"table.billing"}, func(c config.Change) bool { return c.New == string(config.Provisioned) }, Finding{
		Does:  "the table begins with the min of each capacity, and writes are throttled until auto scaling has raised it",
		First: "set table.writes.min and table.reads.min to what the table uses now; lower them a day later", Serious: true,
	}},
	{[]string{"sinks.<name>.liveQueue"}, nil, Finding{
		Stack: Replaced, Serious: true, First: drain + "; if a live queue of the stack's stayed, import or delete it",
		Does: "receive reads another queue; the former one stays with its messages, and nobody reads it",
	}},
	{[]string{"sources.<name>.class"}, nil, Finding{
		Does:  "versions of the new class cannot be compared with those in the rows: events become dead letters",
		First: "leave the class of a source as it is; to begin a new count, raise its epoch", Serious: true,
	}},
	{[]string{"sources.<name>.epoch"}, config.Change.Lowered, Finding{
		Does: "events of the lower epoch are older than what is committed, so they are stale", Serious: true,
		First: "leave the epoch: it may only grow",
	}},
	{[]string{
		"sources.<name>.kind", "defaultSource", "sources.<name>.json.id", "sources.<name>.json.version",
		"sources.<name>.json.collection", "sources.<name>.debezium.key", "sources.<name>.debezium.version",
		"sources.<name>.debezium.binlog", "sources.<name>.debezium.sequence",
		"sources.<name>.s3.stripPrefix", "sources.<name>.s3.stripSuffix",
	}, nil, Finding{
		Does:  "messages that wait are decoded by the new rule, which may give their documents other keys or none",
		First: drain, Serious: true,
	}},
	{[]string{"sources.<name>.govuk.locales"}, func(c config.Change) bool { return c.Old != "" }, Finding{
		Does: "translations get other ids, or are no longer indexed: the sink keeps what it has under the old ids",
		First: "leave the list as it is and add locales at its end; for another list write to another index, " +
			"and after the deploy publish everything again (`lull resync`)",
		Serious: true,
	}},
	{[]string{"queues.retention", "queues.deadLetterRetention"}, config.Change.Lowered, Finding{
		Does: "SQS deletes the messages that are older than the new retention", Serious: true,
		First: "first wait until the queues hold none that old: the metric ApproximateAgeOfOldestMessage",
	}},
	{[]string{"tableOutage"}, to(config.TableOutageOpen), Finding{
		Stack: Created, Does: "an alarm for each sink: outage-writes",
	}},
	{[]string{"tableOutage"}, to(config.TableOutageClosed), Finding{
		Stack: Removed, Does: "an alarm of each sink: outage-writes",
	}},
	{[]string{"commitFeed"}, func(c config.Change) bool { return c.New == "true" }, Finding{
		Stack: Created, Does: "a pipe and its function; the table gets a stream in place. It tells what is committed from now on",
	}},
	{[]string{"commitFeed"}, nil, Finding{
		Stack: Removed, Does: "the pipe and its function go, and the table's stream with what nobody has read of it",
		First: "stop whoever relies on the events", Serious: true,
	}},
	{[]string{"archive.keep"}, func(c config.Change) bool { return c.Old == "0s" }, Finding{
		Stack: Created, Does: "an alarm for each sink: archive-lost; receive archives what comes from now on",
	}},
	{[]string{"archive.keep"}, func(c config.Change) bool { return c.New == "0s" }, Finding{
		Stack: Removed, Serious: true,
		Does:  "an alarm of each sink: archive-lost; S3 deletes the archive",
		First: "if you need it, copy archive/ out of the bucket, or `lull replay` what is to be sent again",
	}},
	{[]string{"archive.keep"}, config.Change.Lowered, Finding{
		Serious: true, Does: "S3 deletes what is older from the archive",
		First: "if you need it, copy it out of the bucket, or `lull replay` what is to be sent again",
	}},
	{[]string{"collections.<name>.enrich.kind"}, func(c config.Change) bool { return c.Old == "" }, Finding{
		Stack: Created, First: resync,
		Does: "documents are enriched from now on; an alarm for their sink: enricher-away",
	}},
	{[]string{"collections.<name>.enrich.kind"}, func(c config.Change) bool { return c.New == "" }, Finding{
		Stack: Removed, First: resync,
		Does: "documents are no longer enriched, and keep the fields that they have; their sink's alarm enricher-away goes",
	}},
	{[]string{
		"collections.<name>.enrich.kind", "collections.<name>.enrich.url", "collections.<name>.enrich.functionARN",
		"collections.<name>.enrich.inputs", "collections.<name>.enrich.version",
	}, nil, Finding{
		First: resync, Does: "documents keep the fields of the former enricher until they are written again",
	}},
	{[]string{"lifecycle.rowRetention"}, config.Change.Raised, Finding{
		Does:    "rows that are gone already are taken for documents without a version, until the new time has passed",
		First:   "until then, drop dead letters that are older than the former retention instead of redriving them",
		Serious: true,
	}},
}

func to(value config.TableOutage) func(config.Change) bool {
	return func(c config.Change) bool { return c.New == string(value) }
}

// Settings lists what a deploy of the newer settings does to a stack that was deployed with the
// older ones, by setting. Both must be complete and valid. It does not know the options of the CDK
// app, or the effects of another version of lull; Templates does.
func Settings(older, newer *config.Config) []Finding {
	whole := entries(older, newer)
	found := slices.Clone(whole)
	for _, c := range config.Changes(older, newer) {
		if slices.ContainsFunc(whole, func(f Finding) bool { return strings.HasPrefix(c.Name+".", f.Setting+".") }) {
			continue // already reported as a whole entry, which was added or removed
		}
		f := Finding{Stack: Updated, Does: "in place"}
		for _, r := range rules {
			if slices.Contains(r.settings, c.Generic) && (r.when == nil || r.when(c)) {
				f = r.finding
				break
			}
		}
		f.Setting, f.Old, f.New, f.Stack = c.Name, c.Old, c.New, cmp.Or(f.Stack, Updated)
		found = append(found, f)
	}
	return append(found, moves(older, newer)...)
}

// entries lists the sinks, sources and collections that were added or removed.
func entries(older, newer *config.Config) (found []Finding) {
	add := func(f Finding) { found = append(found, f) }
	for _, name := range only(newer.Sinks, older.Sinks) {
		add(Finding{
			Setting: "sinks." + name, New: "added", Stack: Created,
			Does: "queues, functions, state machines, rules and alarms of its own",
			First: "if a sink of that name was removed before, its queues stayed: import or delete them first" +
				" (docs/transitions.md)",
		})
	}
	for _, name := range only(older.Sinks, newer.Sinks) {
		add(Finding{
			Setting: "sinks." + name, Old: "removed", Stack: Removed, Serious: true,
			Does: "its functions, state machines and alarms go; its three queues stay, with their messages, " +
				"and nobody reads them",
			First: drain,
		})
	}
	for _, name := range only(newer.Sources, older.Sources) {
		add(Finding{Setting: "sources." + name, New: "added", Stack: Updated, Does: "in place"})
	}
	for _, name := range only(older.Sources, newer.Sources) {
		add(Finding{
			Setting: "sources." + name, Old: "removed", Stack: Updated, Serious: true, First: drain,
			Does: "its messages that wait are decoded by another source, and become dead letters where that one cannot",
		})
	}
	for _, name := range only(newer.Collections, older.Collections) {
		f := Finding{Setting: "collections." + name, New: "added", Stack: Updated, Does: "in place"}
		if newer.Collections[name].Enrich != nil {
			f.Stack, f.Does = Created, "an alarm of its sink: enricher-away"
		}
		if len(older.Collections) == 0 {
			f.Does, f.First, f.Serious = others, "list every collection that events may name", true
		}
		add(f)
	}
	for _, name := range only(older.Collections, newer.Collections) {
		f := Finding{Setting: "collections." + name, Old: "removed", Stack: Updated, Does: "in place"}
		if older.Collections[name].Enrich != nil {
			f.Stack, f.Does = Removed, "the alarm of its sink: enricher-away"
		}
		if len(newer.Collections) > 0 {
			f.Does, f.First, f.Serious = others, drain, true
		}
		add(f)
	}
	return found
}

const others = "events of a collection that is not listed become dead letters; its documents stay in the sink"

// moves lists the collections that the settings name and whose sinks change.
func moves(older, newer *config.Config) (found []Finding) {
	named := merged(older.Collections, newer.Collections)
	if len(named) == 0 {
		named[newer.DefaultCollection] = config.Collection{}
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		from, to := older.SinksFor(name), newer.SinksFor(name)
		if slices.Equal(from, to) {
			continue
		}
		f := moved(name, from, to)
		f.Setting, f.Stack = "collections."+name, Updated
		f.Old, f.New = "sink "+strings.Join(from, ", "), "sink "+strings.Join(to, ", ")
		found = append(found, f)
	}
	return found
}

// moved is the effect of another list of sinks. The rows of the first sink are named after the
// collection only, so the first sink must not change (ADR 0049).
func moved(name string, from, to []string) Finding {
	added := slices.DeleteFunc(slices.Clone(to), func(sink string) bool { return slices.Contains(from, sink) })
	gone := slices.ContainsFunc(from, func(sink string) bool { return !slices.Contains(to, sink) })
	switch {
	case from[0] == to[0] && gone:
		return Finding{
			Serious: true, First: drain,
			Does: "the sink that goes keeps the documents that it has; the others go on",
		}
	case from[0] == to[0] && len(added) == 0:
		return Finding{Does: "nothing: the first sink stays the first"}
	case from[0] == to[0]:
		return Finding{
			Does: "it is written to " + strings.Join(added, ", ") + " too, which begins empty",
			First: "after the deploy, let the senders reach its queue too, and fill it: `lull backfill " + name + " --sink " +
				strings.Join(added, "`, `lull backfill "+name+" --sink ") + "`",
		}
	case len(from) == 1 && len(to) == 1:
		return Finding{
			Serious: true, First: drain + "; then move the senders; " + resync,
			Does: fmt.Sprintf("its documents stay in %s, and its messages that wait there become dead letters", from[0]),
		}
	}
	return Finding{
		Serious: true,
		Does: fmt.Sprintf("%s takes over the rows of %s, the first sink until now, as if it had what they say was written there",
			to[0], from[0]),
		First: fmt.Sprintf("leave %s the first, and add others after it. To replace it: %s, deploy, and for each sink that "+
			"stays `lull index repair %s --sink NAME --source EXPORT`", from[0], strings.TrimPrefix(drain, "first "), name),
	}
}

// only returns the names that a has and b does not have.
func only[V any](a, b map[string]V) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(a)), func(name string) bool {
		_, both := b[name]
		return both
	})
}
